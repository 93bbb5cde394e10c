"""The site in a real browser, opened from a file: charts draw, nothing complains or leaves the disk."""

from pathlib import Path

from chromium import Watched
from playwright.sync_api import Page

CHART = "series/cassandra-local-three-sensor-write-saturation-write-throughput-mean-*.html"


def colour_of(page: Page, selector: str, name: str) -> str:
    read = "([s, n]) => getComputedStyle(document.querySelector(s))[n]"
    return str(page.evaluate(read, [selector, name]))


def test_no_page_scrolls_sideways_or_complains(watched: Watched, demo_site: Path) -> None:
    pages = [demo_site / "index.html", demo_site / "testbed.html", next(demo_site.glob(CHART))]
    pages += sorted((demo_site / "incidents").iterdir())
    pages += sorted((demo_site / "comparison").iterdir())
    # A canary, a series of nights, one with a drift, and one without a point.
    for name in ("*canary*", "*local-one*", "*read-latest-response-time-p99*", "*highest-load*"):
        pages += sorted((demo_site / "series").glob(name))
    pages += sorted((demo_site / "trials").glob("2026-03-08*"))
    for path in pages:
        watched.open(path)
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= 360, path
    assert watched.complaints == []


def test_the_headers_of_a_table_stay_low(watched: Watched, demo_site: Path) -> None:
    watched.open(demo_site / "index.html")
    heights = watched.page.evaluate(
        "[...document.querySelectorAll('thead tr')].map(row => row.clientHeight)"
    )
    assert heights
    assert max(heights) < 120  # three lines and a note


def test_the_front_page_notices_its_own_age(watched: Watched, demo_site: Path) -> None:
    watched.page.clock.set_fixed_time("2026-03-08T07:00:00Z")
    watched.open(demo_site / "index.html")
    age = watched.page.locator("#age")
    assert age.is_hidden()
    watched.page.clock.set_fixed_time("2026-03-18T07:00:00Z")
    watched.page.reload()
    assert age.is_visible()
    assert "10 days old" in age.inner_text()
    assert watched.complaints == []


def test_text_has_enough_contrast_in_both_schemes(watched: Watched, demo_site: Path) -> None:
    watched.open(demo_site / "index.html")
    paper = _luminance(colour_of(watched.page, "body", "backgroundColor"))
    for selector in ("body", ".note", "a[href]", ".badge.bad", ".badge.unsure", ".alarm"):
        text = _luminance(colour_of(watched.page, selector, "color"))
        brighter, darker = max(paper, text), min(paper, text)
        assert (brighter + 0.05) / (darker + 0.05) >= 4.5, selector


def _luminance(rgb: str) -> float:
    channels = [int(part) / 255 for part in rgb.removeprefix("rgb(").removesuffix(")").split(",")]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
