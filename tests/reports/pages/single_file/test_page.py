"""One experiment as one HTML file: whole, closed, and alive in a browser."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chromium import Watched, watch
from click.testing import CliRunner
from page_checkers import find_barriers
from playwright.sync_api import Browser

from perf.model.errors import UsageError
from perf.model.results import Reason, TrialId, TrialStatus
from reports.commands.report import report
from reports.pages.single_file.document import check_target_file, render_single_file, write_single_file
from reports.site.context import SiteContext
from reports.site.old_trials import find_old_trials
from reports.wording.links import in_file, series_page, trial_page

EXPERIMENT = "cassandra-sensor-write"
DRAWN = "() => document.querySelector('[data-draws]')"
WAIT_MS = 20_000


@pytest.fixture(scope="module")
def context(demo: Any) -> SiteContext:  # noqa: ANN401  conftest is no module
    """Return the made-up history, a trial of it with a hostile reason, and the others old."""
    whole: SiteContext = demo.context()
    reason = Reason(kind="start", text="</script><script>alert(1)</script> & </template><!--")
    chosen = next(one for one, head in whole.heads.items() if head.experiment == EXPERIMENT)
    hostile = replace(whole.heads[chosen], status=TrialStatus.INVALID, reasons=(reason,))
    heads = {**whole.heads, chosen: hostile}
    return replace(whole, heads=heads, old_trials=find_old_trials(heads.values(), 6))


@pytest.fixture(scope="module")
def target(context: SiteContext, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of an experiment."""
    target = tmp_path_factory.mktemp("single") / "report.html"
    write_single_file(context, EXPERIMENT, target)
    return target


def test_it_holds_its_experiment_whole_and_no_other(context: SiteContext, target: Path) -> None:
    text = target.read_text()
    pages = set(re.findall(r'<template data-page="([^"]+)"', text))
    own = {one for one, head in context.heads.items() if head.experiment == EXPERIMENT}
    assert {page for page in pages if page.startswith("trials/")} == set(map(trial_page, own))
    keys = [one.series.key for one in context.judgement.series]
    own_series = {series_page(key) for key in keys if key.workload.startswith("sensor-write@")}
    assert {page for page in pages if page.startswith("series/")} == own_series
    assert 5 < len(own_series) < len(keys)
    assert any(page.startswith("incidents/") for page in pages)


def test_the_verdict_comes_first_and_what_to_look_at_before_the_rest(target: Path) -> None:
    text = target.read_text()
    head = text.partition('<section class="verdict bad">')[2].partition("</section>")[0]
    assert "Regressed</span>" in head
    lead = re.search(r'<p class="lead">(.*)</p>', head)
    assert lead is not None
    assert re.fullmatch(r"Of \d+ series, \d regressed.*; \d incidents?, 24 trials\.", lead[1])
    assert 'Newest trial: <time datetime="2026-03-08' in head
    assert text.index('<h2 id="incidents">') < text.index('<h2 id="series">')


def test_every_link_leads_to_a_page_inside_or_to_a_source(target: Path) -> None:
    text = target.read_text()
    body = text[: text.index("<script>")]
    pages = {in_file(path) for path in re.findall(r'<template data-page="([^"]+)"', body)}
    links = re.findall(r'<a\b[^>]*?href="([^"]*)"', body)
    assert len(links) > 100
    for link in links:
        inside = link.partition("&")[0]
        assert inside in pages or link in {"#page=", "#main"} or link.startswith("https://"), link
    assert " src=" not in body
    assert "<link" not in body


def test_no_text_of_a_trial_ends_what_it_stands_in(target: Path) -> None:
    text = target.read_text()
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in text
    assert "<script>alert(1)" not in text
    assert text.count("<script>") == text.count("</script>") == 3
    assert text.count("</template>") == text.count("<template ")
    assert "unsafe" not in text[:2000]


@pytest.mark.slow
def test_its_pages_and_charts_live_and_it_asks_for_nothing(
    browser: Browser, context: SiteContext, target: Path
) -> None:
    key = next(
        one.series.key for one in context.judgement.series if one.series.key.operation == "write"
    )
    with watch(browser, width=1200, height=900) as watched:
        page = watched.page
        watched.open(target)
        page.click(f'main a[href="{in_file(series_page(key))}"]')
        page.wait_for_function(DRAWN, timeout=WAIT_MS)
        page.focus("#chart")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.title.startsWith('Trial ')", timeout=WAIT_MS)
        page.go_back()
        page.wait_for_function(DRAWN, timeout=WAIT_MS)
        other = page.locator("#measure option:not(:checked)").first.get_attribute("value")
        page.select_option("#measure", other)
        page.wait_for_function("one => location.hash.includes(one)", arg=other, timeout=WAIT_MS)
        page.wait_for_function(DRAWN, timeout=WAIT_MS)
        check(watched, target)


def check(watched: Watched, target: Path) -> None:
    """Nothing was complained about, and nothing but the file itself was asked for."""
    assert watched.complaints == []
    assert target.as_uri() in watched.page.url


@pytest.mark.slow
def test_it_has_no_barriers(browser: Browser, target: Path) -> None:
    with watch(browser, "dark", width=360, bypass_csp=True) as watched:
        watched.open(target)
        assert find_barriers(watched.page) == []
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_an_unknown_experiment_is_refused_with_the_known_ones(context: SiteContext) -> None:
    with pytest.raises(
        UsageError, match=r"no experiment 'nonesuch' .* there is: cassandra-sensor-read"
    ):
        render_single_file(context, "nonesuch")
    with pytest.raises(UsageError, match="the history is empty"):
        render_single_file(replace(context, heads={}), "nonesuch")


def test_only_a_report_of_its_own_kind_is_replaced(
    context: SiteContext, target: Path, tmp_path: Path
) -> None:
    before = target.read_bytes()
    write_single_file(context, EXPERIMENT, target)
    assert target.read_bytes() == before
    (target.parent / ".new-report.html-killed.html").touch()
    write_single_file(context, EXPERIMENT, target)
    assert list(target.parent.iterdir()) == [target]
    precious = tmp_path / "thesis.html"
    for reported in ("precious", "<!doctype html>\n<p>It is made by knickpoint report --single-file"):
        precious.write_text(reported)
        with pytest.raises(UsageError, match="did not write"):
            check_target_file(precious)
        assert precious.read_text() == reported
    os.mkfifo(tmp_path / "pipe.html")
    with pytest.raises(UsageError, match="did not write"):
        check_target_file(tmp_path / "pipe.html")
    with pytest.raises(UsageError, match="is a directory"):
        write_single_file(context, EXPERIMENT, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"thesis.html", "pipe.html"}


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    for more, said in (
        ((), "--output FILE.html"),
        (("--output", str(tmp_path / "a.html")), "the history is empty"),
    ):
        asked = ["--data", str(tmp_path), "--single-file", str(TrialId("a")), *more]
        done = CliRunner().invoke(report, asked)
        assert isinstance(done.exception, UsageError)
        assert said in str(done.exception)
    assert not (tmp_path / "a.html").exists()
