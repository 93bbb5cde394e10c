"""Each kind of page without barriers: by axe-core, both themes, narrow and wide; and by arithmetic."""

import re
from itertools import product
from pathlib import Path

import pytest
from chromium import Watched, watch
from page_checkers import find_barriers
from page_kinds import one_of_each
from playwright.sync_api import Browser

STYLES = Path(__file__).parents[3] / "reports"
VARIABLE = re.compile(r"--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);")
SURFACES = ("paper", "wash", "band")
TEXTS = ("ink", "quiet", "link", "good", "bad", "unsure", "calm")
GRAPHICS = ("edge", "mark", "line-1", "line-2", "line-3", "line-4")
BOXES = ("flame", "flame-more", "flame-less")
"""Grounds of names in a flame graph, and what they are mixed of."""
ORNAMENTS = ("line",)
"""Borders of what is told apart without them."""
MOST_LENGTH = 20_000


def settle(watched: Watched) -> None:
    """Wait until the charts of a page are drawn, or nothing will come any more."""
    watched.page.wait_for_function(
        "() => [...document.querySelectorAll('[data-spec], .plot > .chart')].every("
        "one => !one.checkVisibility() || one.querySelector('svg, canvas') || one.textContent.trim())",
        timeout=MOST_LENGTH,
    )


def check(watched: Watched, paths: list[Path], looks: list[tuple[str, int]]) -> None:
    """Look at each page in each scheme and width; nothing may be found, said or asked for."""
    found = []
    for path in paths:
        watched.open(path)
        settle(watched)
        for scheme, width in looks:
            watched.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            watched.page.set_viewport_size({"width": width, "height": 800})
            where = f"{path.parent.name}/{path.name}, {scheme}, {width} px"
            found += [f"{where}: {barrier}" for barrier in find_barriers(watched.page)]
            wide = watched.page.evaluate("document.documentElement.scrollWidth")
            if wide > width:
                found.append(f"{where}: the page is {wide} px wide")
    assert found == []
    assert watched.complaints == []


@pytest.mark.slow
def test_no_kind_of_page_has_barriers_complains_or_asks_for_anything(
    browser: Browser, demo_site: Path
) -> None:
    paths = one_of_each(demo_site)
    assert {path.parent.name for path in paths} >= {"site", "series", "trials", "incidents"}
    with watch(browser, bypass_csp=True) as watched:
        check(watched, paths, [("light", 360)])
        check(watched, paths[:1], [("dark", 1200)])


@pytest.mark.slow
def test_neither_open_help_nor_open_search_has_barriers(browser: Browser, demo_site: Path) -> None:
    with watch(browser, "dark", width=360, bypass_csp=True) as watched:
        watched.open(demo_site / "method.html")
        watched.page.keyboard.press("/")
        watched.page.keyboard.type("write")
        watched.page.get_by_role("option").first.wait_for()
        watched.page.keyboard.press("ArrowDown")
        assert find_barriers(watched.page) == []
        watched.page.keyboard.press("Escape")
        watched.page.get_by_role("button", name="Keyboard help").click()
        watched.page.get_by_role("dialog").wait_for()
        assert find_barriers(watched.page) == []
        assert watched.complaints == []


@pytest.mark.slow
def test_no_page_has_barriers_complains_or_asks_for_anything(browser: Browser, demo_site: Path) -> None:
    looks = list(product(("light", "dark"), (360, 1200, 2400)))
    with watch(browser, bypass_csp=True) as watched:
        check(watched, one_of_each(demo_site), looks)
        check(watched, sorted(demo_site.rglob("*.html")), [("dark", 360)])


def read_colours() -> dict[str, tuple[str, str]]:
    texts = (path.read_text() for path in sorted(STYLES.rglob("*.css")))
    return {name: (light, dark) for text in texts for name, light, dark in VARIABLE.findall(text)}


def luminance(colour: str) -> float:
    """Return the relative luminance of #rrggbb by WCAG 2.2."""
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_contrast_of_known_colours_is_known() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_every_colour_stands_out_from_every_ground_in_both_themes() -> None:
    colours = read_colours()
    # A new one belongs to a list.
    assert set(colours) == {*SURFACES, *TEXTS, *GRAPHICS, *BOXES, *ORNAMENTS}
    weak = [
        f"{name} on {ground}, {scheme}: {ratio:.2f}, wanted {wanted}"
        for names, grounds, wanted in (
            (TEXTS, SURFACES, 4.5),
            (GRAPHICS, SURFACES, 3.0),
            (("ink",), BOXES, 4.5),
        )
        for name, ground in product(names, grounds)
        for place, scheme in enumerate(("light", "dark"))
        if (ratio := contrast(colours[name][place], colours[ground][place])) < wanted
    ]
    assert weak == []


def test_no_page_overflows_when_text_is_twice_as_large(browser: Browser, demo_site: Path) -> None:
    with watch(browser, width=720) as watched:
        watched.open(demo_site / "index.html")
        watched.page.evaluate(
            "document.documentElement.attributeStyleMap.set('font-size', CSS.percent(200))"
        )
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= 720


@pytest.mark.slow
def test_forced_colours_keep_charts_and_states_readable(browser: Browser, demo_site: Path) -> None:
    path = next(demo_site.glob("series/*throughput*"))
    with watch(browser) as watched:
        watched.page.emulate_media(forced_colors="active", reduced_motion="reduce")
        watched.open(path)
        settle(watched)
        marks = watched.page.evaluate(
            "[...document.querySelectorAll('.chart svg [fill], .chart svg [stroke]')]"
            ".flatMap(one => [one.getAttribute('fill'), one.getAttribute('stroke')])"
        )
        assert len({mark for mark in marks if mark and mark != "none"}) > 3
        badge = "getComputedStyle(document.querySelector('.badge')).borderTopWidth"
        assert watched.page.evaluate(badge) == "1px"
        assert watched.complaints == []


def test_paper_gets_the_content_and_nothing_to_press(browser: Browser, demo_site: Path) -> None:
    with watch(browser, "dark") as watched:
        watched.open(demo_site / "index.html")
        watched.page.emulate_media(media="print")
        for selector in ("nav.site", ".tools", ".skip"):
            assert not watched.page.locator(selector).first.is_visible()
        assert watched.page.locator("h1").is_visible()
        ink = watched.page.evaluate("getComputedStyle(document.body).color")
        assert ink == "rgb(27, 33, 39)"
