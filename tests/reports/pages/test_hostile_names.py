"""A history whose every name is hostile: the site is built, fits, leads on and can be taken along."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Watched, watch
from made_up_hostility import SCRIPT
from page_kinds import find_broken_links, one_of_each
from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def narrow(browser: Browser) -> Iterator[Watched]:
    with watch(browser, width=360) as watched:
        watched.page.on("dialog", lambda dialog: watched.complaints.append(f"said {dialog.message}"))
        watched.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield watched
    assert watched.complaints == []


@pytest.mark.slow
def test_every_kind_of_page_fits_and_leads_on(
    narrow: Watched, hostile_site: Path, demo_site: Path
) -> None:
    pages = one_of_each(hostile_site)
    assert [page.parent.name for page in pages] == [page.parent.name for page in one_of_each(demo_site)]
    found = []
    for path in pages:
        narrow.open(path)
        wide = narrow.page.evaluate("document.documentElement.scrollWidth")
        if wide > 360:
            found.append(f"{path.parent.name}/{path.name[:60]} is {wide} px wide")
    assert found == []
    assert find_broken_links(hostile_site) == []
    assert narrow.complaints == []


@pytest.mark.slow
def test_a_name_of_ten_thousand_letters_fills_no_screens(narrow: Watched, hostile_site: Path) -> None:
    narrow.open(hostile_site / "index.html")
    heights = narrow.page.evaluate(
        "[...document.querySelectorAll('tbody tr, .attention li')].map((row) => row.clientHeight)"
    )
    assert 0 < max(heights) < 700


def test_every_page_shows_names_as_text(hostile_site: Path) -> None:
    texts = [page.read_text() for page in hostile_site.rglob("*.html")]
    assert not any(SCRIPT in text or "<img src=x" in text or "\u202e" in text for text in texts)
    assert any("&lt;script&gt;alert(&#39;pwned&#39;)" in text for text in texts)


def test_files_stay_inside_of_the_site_with_names_that_any_system_takes(hostile_site: Path) -> None:
    assert sorted(path.name for path in hostile_site.parent.iterdir()) == ["site"]
    names = [path.name for path in hostile_site.rglob("*")]
    assert max(map(len, names)) <= 210
    assert all(name.isascii() and name.isprintable() for name in names)


@pytest.mark.slow
def test_such_names_are_found_and_copied(narrow: Watched, hostile_site: Path) -> None:
    page = narrow.page
    narrow.open(hostile_site / "index.html")
    page.locator("#search").fill("alert pwned")
    page.get_by_role("option").first.wait_for()
    assert "<script>" in page.get_by_role("option").first.inner_text()
    table = next(path for path in one_of_each(hostile_site) if "data-copy" in path.read_text())
    narrow.open(table)
    page.get_by_role("button", name="as JSON").first.click()
    page.get_by_text("as JSON.").wait_for()
    assert json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert narrow.complaints == []
