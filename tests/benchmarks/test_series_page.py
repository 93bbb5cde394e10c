"""How soon a series page of 5 000 points is of use, in headless Chromium, from a file.

    pytest tests/benchmarks/test_series_page.py --benchmark-only

Each round opens the page anew: from the navigation to the drawn chart, and from a zoom to the chart
that has answered it. The goal is 1.5 s for both together; nothing here fails if it takes longer.
"""

from collections.abc import Callable, Iterator

import pytest
from chromium import start, watch
from made_up_series import KEY, make_scene
from playwright.sync_api import Page
from pytest_benchmark.fixture import BenchmarkFixture

from perf.model.results import Trial
from reports.pages.series import page as series
from reports.site.publishing import FRONT
from reports.site.rendering import static_files
from reports.site.writing import SiteFile, batch_of, write_site
from reports.wording.links import series_page

POINTS = 5000
TRIALS = POINTS + 2  # one is invalid, one never came
ROUNDS = 15
_DRAWN = "least => Number(document.querySelector('[data-draws]')?.dataset.draws) >= least"
_HALF = """() => {
  const { trial } = window.series.track;
  window.knickpoint.state.set({ zoom: `${trial[1000]}..${trial[3500]}` });
}"""
_KEEP = "async stem => { window.series = await window.knickpoint.series.load(stem); }"


@pytest.fixture(scope="module")
def page(make_trial: Callable[..., Trial], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Yield a page of a browser that has the site's address."""
    target = tmp_path_factory.mktemp("large") / "site"
    context = make_scene(make_trial, TRIALS, target)
    statics = batch_of(SiteFile(FRONT, b"<!doctype html>"), *static_files())
    write_site(target, [statics, *series.batches(context)])
    with start() as browser, watch(browser, width=1200, height=900) as watched:
        watched.open(target / series_page(KEY))
        yield watched.page


def open_and_draw(page: Page, address: str) -> None:
    page.goto(address, wait_until="commit")
    page.wait_for_function(_DRAWN, arg=1)


def leave(page: Page, address: str) -> tuple[tuple[Page, str], dict[str, object]]:
    page.goto("about:blank")
    return (page, address), {}


def test_until_the_chart_is_drawn(benchmark: BenchmarkFixture, page: Page) -> None:
    address = page.url
    benchmark.pedantic(open_and_draw, setup=lambda: leave(page, address), rounds=ROUNDS)


def test_until_the_chart_has_answered_a_zoom(benchmark: BenchmarkFixture, page: Page) -> None:
    address = page.url

    def zoom() -> None:
        before = int(page.locator("[data-draws]").get_attribute("data-draws") or 0)
        page.evaluate(_HALF)
        page.wait_for_function(_DRAWN, arg=before + 1)

    def ready() -> None:
        open_and_draw(*leave(page, address)[0])
        page.wait_for_function(_DRAWN, arg=2)  # the other line, too
        page.evaluate(_KEEP, page.locator("[data-series]").get_attribute("data-series"))

    benchmark.pedantic(zoom, setup=ready, rounds=ROUNDS)
