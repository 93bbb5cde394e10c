"""The page of profiles: the method that moved comes first, and the flame graph is used by keyboard."""

import re
from pathlib import Path

import pytest
from chromium import watch
from made_up_profiles import PROFILED
from playwright.sync_api import Browser

from reports.pages.profile.page import render_profiles
from reports.wording.links import comparison_page, profile_page


def test_the_method_that_moved_comes_first() -> None:
    page, data = render_profiles(PROFILED, ["comparison/cmp-1.html"])
    text = page.content.decode()
    lead = re.search(r'<p class="lead">(.*?)</p>', text, re.DOTALL)
    assert lead is not None
    assert lead[1].startswith("<strong>CommitLog.sync</strong>: +40.0 µs per operation")
    assert re.findall(r'<th scope="row" title="[^"]*">(.*?)</th>', text) == ["CommitLog.sync"]
    assert "&lt;b&gt;no JVM" in text
    assert data.path == "data/profile-cmp-2026-03-02-1-0.js"
    assert data.of == page.path == profile_page(PROFILED.id)


def test_the_comparison_says_why_in_a_sentence_and_leads_to_the_code(demo_site: Path) -> None:
    pages = sorted(demo_site.glob("comparison/*.html"))
    result, *_ = (page for page in pages if "profiles/" in page.read_text())
    text = result.read_text()
    assert "spends 40 µs of CPU more per operation in CommitLog.sync (steady)" in text
    assert f'href="../{profile_page(PROFILED.id)}"' in text
    back = (demo_site / profile_page(PROFILED.id)).read_text()
    assert f'href="../{comparison_page(result.stem)}"' in back


@pytest.mark.slow
def test_the_flame_graph_is_used_by_keyboard(browser: Browser, demo_site: Path) -> None:
    with watch(browser) as watched:
        watched.open(demo_site / profile_page(PROFILED.id))
        graph, status = (watched.page.locator(one) for one in (".flame-graph", ".flame [role=status]"))
        graph.wait_for()
        boxes = graph.locator("[role=treeitem]")
        assert boxes.count() == 8
        graph.focus()
        for _ in range(4):
            watched.page.keyboard.press("ArrowDown")
        # Down the widest: the thread, its worker, what became slower, and what that calls.
        assert status.inner_text().startswith("<fsync>: 10 → 50 (+40)")
        watched.page.keyboard.press("ArrowUp")
        assert status.inner_text().startswith(
            "org.apache.cassandra.db.commitlog.CommitLog.sync(): 10 → 50"
        )
        watched.page.keyboard.press("ArrowRight")
        assert "SkipListMemtable.put" in status.inner_text()
        watched.page.keyboard.press("Enter")
        assert boxes.all_inner_texts() == ["SkipListMemtable.put"]
        watched.page.keyboard.press("Home")
        assert boxes.count() == 8
        watched.page.locator(".flame input[type=search]").fill("commitlog")
        assert graph.locator(".found").all_inner_texts() == ["CommitLog.sync"]
        width = "one => one.getBoundingClientRect().width"
        wide = graph.locator(".found").evaluate(width)
        watched.page.get_by_label("before").check()
        assert graph.locator(".found").evaluate(width) < wide / 2
        assert watched.complaints == []
