"""The page of a series in a real browser: point, drag, choose, follow a link to a view, copy."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chromium import Watched, watch
from made_up_series import INVALID, KEY, SLOWER, make_scene
from playwright.sync_api import Browser, Page

from perf.model.results import SeriesKey, Trial
from reports.pages.series import page as series
from reports.pages.series.point_rows import NEWEST_ROWS
from reports.site.publishing import FRONT
from reports.site.rendering import static_files
from reports.site.writing import SiteFile, batch_of, write_site
from reports.wording.links import series_page, trial_page
from reports.wording.wording import number, percent

TRIALS = 130
POINTS = TRIALS - 2
LIGHT_MARK, DARK_MARK = "rgb(11, 87, 164)", "rgb(138, 188, 255)"
WAIT_MS = 20_000


@pytest.fixture(scope="module")
def site(make_trial: Callable[..., Trial], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a site of series pages alone."""
    target = tmp_path_factory.mktemp("series") / "site"
    context = make_scene(make_trial, TRIALS, target)
    bare = (SiteFile(path, b"<!doctype html>") for path in (FRONT, *map(trial_page, context.heads)))
    statics = batch_of(*bare, *static_files())
    write_site(target, [statics, *series.batches(context)])
    return target


@pytest.fixture(scope="module")
def wide(browser: Browser) -> Iterator[Watched]:
    """Yield one wide page, light."""
    with watch(browser, "light", width=1200, height=900) as page:
        yield page


def show(watched: Watched, site: Path, fragment: str = "", key: SeriesKey = KEY) -> Page:
    """Show a view of the page of a series, wait until all of it is drawn; it is loaded once only."""
    page, path = watched.page, site / series_page(key)
    if page.url.partition("#")[0] == path.as_uri():
        page.mouse.move(0, 0)
        if page.evaluate("location.hash.slice(1)") != fragment:
            redraw(page, lambda: page.evaluate("fragment => (location.hash = fragment)", fragment))
        return page
    watched.open(path, fragment)
    least = 2 if key == KEY else 1  # once more when the other line is there
    is_drawn = "least => Number(document.querySelector('[data-draws]')?.dataset.draws) >= least"
    page.wait_for_function(is_drawn, arg=least, timeout=WAIT_MS)
    return page


def load(watched: Watched, site: Path, fragment: str = "") -> Page:
    """Load the page of the series anew."""
    watched.page.goto("about:blank")
    return show(watched, site, fragment)


def redraw(page: Page, act: Callable[[], object]) -> None:
    """Do something and wait until the chart answered."""
    read = "() => Number(document.querySelector('[data-draws]').dataset.draws)"
    before = page.evaluate(read)
    act()
    page.wait_for_function(f"before => ({read})() > before", arg=before, timeout=WAIT_MS)


def marks(page: Page, colour: str = LIGHT_MARK) -> int:
    """Count the large marks of the main chart: the points of the page's own line."""
    find = f"[...document.querySelectorAll('#chart svg .mark-symbol path[fill=\"{colour}\"]')]"
    return int(page.evaluate(f"{find}.filter(one => one.getAttribute('opacity') === '1').length"))


def plot_box(page: Page) -> dict[str, float]:
    """Return where the data area of the main chart lies in the window."""
    page.locator("#chart").scroll_into_view_if_needed()
    box = page.locator("#chart svg .background").first.bounding_box()
    assert box is not None
    return dict(box)


def at(page: Page, place: float, height: float = 0.5) -> tuple[float, float]:
    box = plot_box(page)
    return box["x"] + box["width"] * place, box["y"] + box["height"] * height


def drag(page: Page, start: float, end: float) -> None:
    page.mouse.move(*at(page, start))
    page.mouse.down()
    page.mouse.move(*at(page, end), steps=3)
    page.mouse.up()


def zoomed(page: Page) -> str:
    return str(page.evaluate("window.knickpoint.state.get('zoom')"))


@pytest.mark.parametrize(
    ("scheme", "mark"), [pytest.param("light", LIGHT_MARK, marks=pytest.mark.slow), ("dark", DARK_MARK)]
)
def test_each_point_is_drawn_in_the_colours_of_the_scheme(
    browser: Browser, site: Path, scheme: str, mark: str
) -> None:
    with watch(browser, scheme, width=360) as watched:
        page = show(
            watched,
            site,
            "zoom=2025-01-01-1.01.cassandra-sensor-write.5.0.1.."
            "2025-02-20-1.01.cassandra-sensor-write.5.0.3",
        )
        assert marks(page, mark) == 51 - 2
        texts = page.locator("#chart svg text").all_text_contents()
        assert {"5.0.1", "5.0.2", "!", "…", "▲"} <= set(texts)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        other = "rgb(201, 162, 245)" if scheme == "dark" else "rgb(122, 61, 184)"
        assert page.locator(f'.track svg .mark-symbol path[fill="{other}"]').count() >= 6
        redraw(page, lambda: page.evaluate("window.knickpoint.theme.set('light')"))
        assert marks(page) == 51 - 2
        assert watched.complaints == []


@pytest.mark.slow
def test_a_drag_zooms_the_address_holds_it_and_z_shows_all_again(wide: Watched, site: Path) -> None:
    page = show(wide, site)
    redraw(page, lambda: drag(page, 0.25, 0.5))
    held = zoomed(page)
    assert "Zoomed in: " in page.locator("#chart-note").inner_text()
    assert 25 <= marks(page) <= 34
    drawn = marks(page)
    address = page.url
    assert held in address
    page = load(wide, site, address.partition("#")[2])
    assert (zoomed(page), marks(page)) == (held, drawn)
    redraw(page, lambda: page.keyboard.press("z"))
    assert zoomed(page) == ""
    redraw(page, lambda: drag(page, 0.2, 0.3))
    redraw(page, lambda: page.mouse.dblclick(*at(page, 0.5, 0.95)))
    assert zoomed(page) == ""
    assert wide.complaints == []


@pytest.mark.slow
def test_back_undoes_a_zoom(wide: Watched, site: Path) -> None:
    page = load(wide, site)
    address = page.url
    redraw(page, lambda: drag(page, 0.25, 0.5))
    first = zoomed(page)
    redraw(page, page.get_by_role("button", name="30", exact=True).click)
    assert (zoomed(page), marks(page)) == ("30", 30)
    redraw(page, page.go_back)
    assert zoomed(page) == first
    redraw(page, page.go_back)
    assert page.url == address
    assert wide.complaints == []


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_verdict_and_chart_are_whole_on_the_first_screen(
    browser: Browser, site: Path, width: int, height: int
) -> None:
    with watch(browser, width=width, height=height) as watched:
        page = show(watched, site)
        chart, verdict = (page.locator(one).bounding_box() for one in ("#chart", ".verdict"))
    assert chart is not None
    assert verdict is not None
    assert chart["y"] + chart["height"] <= height
    assert width < 1000 or verdict["height"] <= 150


def test_a_long_series_opens_at_its_newest_change(wide: Watched, site: Path) -> None:
    page = show(wide, site)
    windows = page.evaluate(
        """() => [[990], [400, 900], []].map((indexes) => {
          const trial = [...Array(1000).keys()].map((at) => `trial-${at}`);
          const order = trial.map((_, slot) => slot);
          const track = { trial, orders: { release: order }, places: { release: order } };
          const changes = indexes.map((index) => ({ index }));
          return window.knickpoint.series.readView({ track, at: order, changes, isWatch: false }).zoom;
        })"""
    )
    assert windows == ["trial-959..trial-999", "trial-798..trial-999", "trial-910..trial-999"]


@pytest.mark.slow
def test_a_tap_shows_a_point_and_its_link_opens_the_trial(browser: Browser, site: Path) -> None:
    with watch(browser, width=390, height=844, has_touch=True) as watched:
        page = show(watched, site)
        tip = page.locator(".tip")
        mark = '#chart svg .mark-symbol path[fill="rgb(11, 87, 164)"][opacity="1"]'
        box = page.locator(mark).nth(10).bounding_box()
        assert box is not None
        page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert "/series/" in page.url
        name = tip.get_by_text("cassandra-sensor-write").inner_text()
        page.touchscreen.tap(*at(page, 0.95, 0.2))
        assert tip.is_hidden()
        page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        tip.get_by_role("link").tap()
        page.wait_for_url(f"**/trials/{name}.html")
        assert watched.complaints == []


@pytest.mark.slow
def test_without_a_script_no_room_is_kept_for_the_chart(browser: Browser, site: Path) -> None:
    with watch(browser, has_script=False) as watched:
        watched.open(site / series_page(KEY))
        chart = watched.page.locator("#chart").bounding_box()
    assert chart is None or chart["height"] < 10


def test_buttons_do_what_dragging_does(wide: Watched, site: Path) -> None:
    page = show(wide, site)
    assert page.get_by_role("button", name="Reset").is_disabled()
    redraw(page, page.get_by_role("button", name="Zoom in").click)
    first, last = zoomed(page).split("..")
    assert ("2025-02-02-1" in first, "2025-04-08-1" in last) == (True, True)
    redraw(page, page.get_by_role("button", name="Move to earlier trials").click)
    assert zoomed(page) < f"{first}..{last}"
    redraw(page, page.get_by_role("button", name="Zoom out").click)
    redraw(page, page.get_by_role("button", name="Reset").click)
    assert zoomed(page) == ""
    assert page.evaluate("location.hash") == ""
    assert wide.complaints == []


@pytest.mark.slow
def test_what_is_chosen_is_in_the_address_and_a_link_to_it_shows_the_same(
    wide: Watched, site: Path
) -> None:
    page = show(wide, site)
    redraw(page, lambda: page.locator("#axis").select_option("night"))
    redraw(page, lambda: page.locator("#values").select_option("first"))
    redraw(page, lambda: page.get_by_label("Logarithmic").check())
    redraw(page, lambda: page.get_by_label("4.1").uncheck())
    fragment = page.evaluate("location.hash.slice(1)")
    assert fragment == "by=night&y=first&scale=log&hide=4.1"
    page = load(wide, site, fragment)
    assert page.locator("#axis").input_value() == "night"
    assert page.locator("#values").input_value() == "first"
    assert page.get_by_label("Logarithmic").is_checked()
    assert not page.get_by_label("4.1").is_checked()
    texts = page.locator("#chart svg text").all_text_contents()
    assert "2025-02" in texts
    assert any(text.startswith("throughput (% of the first point)") for text in texts)
    assert "100 % is the first point" in page.locator("#chart-note").inner_text()
    redraw(page, lambda: page.locator("#values").select_option("previous"))
    assert "no place among values" in page.locator("#chart-note").inner_text()
    assert wide.complaints == []


def test_lines_are_tracks_by_release_and_share_the_chart_by_night(wide: Watched, site: Path) -> None:
    page = show(wide, site)
    assert page.locator(".plot.track").count() == 1
    assert page.locator(".plot.track").get_attribute("aria-label").startswith("Line 4.1: 6 points")
    redraw(page, lambda: page.locator("#axis").select_option("night"))
    assert page.locator(".plot.track").count() == 0
    assert page.locator('#chart svg .mark-symbol path[fill="rgb(122, 61, 184)"]').count() >= 6
    redraw(page, lambda: page.get_by_label("4.1").uncheck())
    assert page.locator('#chart svg .mark-symbol path[fill="rgb(122, 61, 184)"]').count() == 0
    assert wide.complaints == []


def test_pointing_shows_everything_and_a_click_opens_the_trial(wide: Watched, site: Path) -> None:
    page = show(wide, site)
    slot = 40
    page.mouse.move(*at(page, (slot + 0.5) / TRIALS, 0.4))
    reported = page.locator(".tip").inner_text()
    name = "2025-02-10-1.01.cassandra-sensor-write.5.0.2"
    night = "10\N{NO-BREAK SPACE}Feb\N{NO-BREAK SPACE}2025\N{NO-BREAK SPACE}#1"
    for words in (
        name,
        night,
        "5.0.2",
        "2025-02-10 02:00 UTC",
        "in 3 iterations",
        "Median of iterations",
    ):
        assert words in reported
    tip = page.locator(".tip").bounding_box()
    assert tip is not None
    plot = plot_box(page)  # whose points are all seen
    assert tip["y"] >= plot["y"] + plot["height"] or tip["y"] + tip["height"] <= plot["y"]
    mark = '#chart svg .mark-symbol path[fill="rgb(11, 87, 164)"][opacity="1"]'
    # The first is imported and drawn by itself, behind the others; two slots have no point.
    box = page.locator(mark).nth(slot - 3).bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_url(f"**/trials/{name}.html")
    page = show(wide, site)
    page.mouse.move(*at(page, (INVALID + 0.5) / TRIALS, 0.97))
    assert (
        "client fell behind: 3.1\N{NO-BREAK SPACE}% started late" in page.locator(".tip").inner_text()
    )


def test_the_chart_is_used_by_keyboard(wide: Watched, site: Path) -> None:
    page = show(wide, site)
    page.locator("#chart").focus()
    page.keyboard.press("ArrowRight")
    assert "2025-05-10-1" in page.locator(".tip").inner_text()
    page.keyboard.press("ArrowLeft")
    assert "2025-05-09-1" in page.locator(".tip").inner_text()
    page.keyboard.press("Home")
    assert "imported" in page.locator(".tip").inner_text()
    page.keyboard.press("Escape")
    assert page.locator(".tip").is_hidden()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url("**/trials/2025-01-02-1.01.cassandra-sensor-write.5.0.1.html")


@pytest.mark.slow
def test_another_measure_keeps_the_view(wide: Watched, site: Path) -> None:
    page = show(wide, site, "y=first")
    choice = page.locator("#measure")
    assert choice.locator("option").all_text_contents() == [
        "Throughput of write at saturation",
        "p99 response time of write at steady load",
    ]
    choice.select_option(label="p99 response time of write at steady load")
    page.wait_for_url(f"**/{series_page(SLOWER)}#y=first")
    page.locator("[data-draws]").wait_for(timeout=WAIT_MS)
    assert page.locator("#values").input_value() == "first"
    assert wide.complaints == []


@pytest.mark.slow
def test_other_measures_are_drawn_when_near_and_share_cursor_and_zoom(
    wide: Watched, site: Path
) -> None:
    page = show(wide, site)
    page.locator("#others").scroll_into_view_if_needed()
    small = page.locator(".plot.small svg .mark-symbol")
    small.first.wait_for(timeout=WAIT_MS)
    box = page.locator(".plot.small svg .background").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.locator(".cursor:visible").count() == 2
    redraw(
        page,
        lambda: page.evaluate(
            "window.knickpoint.state.set({zoom: "
            "'2025-02-01-1.01.cassandra-sensor-write.5.0.2..2025-02-10-1.01.cassandra-sensor-write.5.0.2'})"
        ),
    )
    page.wait_for_function(
        "document.querySelectorAll('.plot.small svg .mark-symbol path').length <= 11", timeout=WAIT_MS
    )
    assert wide.complaints == []


@pytest.mark.slow
def test_all_points_are_shown_on_demand_in_the_words_of_the_page(wide: Watched, site: Path) -> None:
    page = load(wide, site)
    rows = page.locator("#points-table tbody tr")
    assert rows.count() == NEWEST_ROWS
    page.get_by_role("button", name=f"Show all {POINTS}").click()
    assert rows.count() == POINTS
    assert rows.nth(POINTS - 1).locator("td").nth(3).inner_text().endswith("imported")
    # Each row that Python wrote, written again by the script.
    differing = page.evaluate(
        """async () => {
          const { series } = window.knickpoint;
          const own = await series.load(document.querySelector("[data-series]").dataset.series);
          const text = (row) => [...row.cells].map((cell) => cell.innerText.trim()).join("|");
          const body = document.querySelector("#points-table tbody");
          return [...body.rows].filter((row) => {
            const again = series.rowOf(own, Number(row.id.slice("point-".length)) - 1);
            body.append(again);
            const isEqual = text(row) === text(again) && row.id === again.id;
            again.remove();
            return !isEqual;
          }).map((row) => row.innerText);
        }"""
    )
    assert differing == []
    values = [0, 1.0, -12.345, 999.4, 1000, 123456.7, 0.01234, 1e-14, 4.5e-7, -2500.2]
    values += [
        1.125,
        1.015,
        1.035,
        12346.5,
        12347.5,
        0.25,
        2.5e21,
    ]  # ties, and what only looks like one
    said = page.evaluate("values => values.map(window.knickpoint.words.number)", values)
    assert said == [number(value) for value in values]
    shares = [0.0, 0.12345, -0.5, 0.0001, 12.5]
    said = page.evaluate("values => values.map(window.knickpoint.words.percent)", shares)
    assert said == [percent(value) for value in shares]
    page = load(wide, site, "point-3")
    assert page.locator("#point-3").is_visible()


@pytest.mark.slow
def test_nights_within_an_hour_have_ticks_of_minutes(wide: Watched, site: Path) -> None:
    page = load(wide, site)
    labels = page.evaluate(
        """async () => {
          const { series } = window.knickpoint;
          const own = await series.load(document.querySelector("[data-series]").dataset.series);
          const { started } = own.track;
          const near = started.map((_, at) => 1772323200 + (3000 * at) / started.length);
          const view = { by: "night", y: "", isLog: false, zoom: "", hidden: new Set() };
          const line = { ...own, track: { ...own.track, started: near } };
          const { spec } = series.build([line], view, { height: 300 });
          return spec.layer[0].encoding.x.axis.labelExpr;
        }"""
    )
    times = re.findall(r"03-01 \d\d:\d\d", labels)
    assert times[:3] == ["03-01 00:00", "03-01 00:10", "03-01 00:20"]


def test_all_points_can_be_taken_along(wide: Watched, site: Path) -> None:
    page = show(wide, site)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])

    def copy(form: str) -> str:
        page.get_by_role("button", name=f"Copy all points as {form}").click()
        page.get_by_text(f"Copied {POINTS} rows as {form}.").wait_for()
        return str(page.evaluate("navigator.clipboard.readText()"))

    rows = list(csv.DictReader(io.StringIO(copy("CSV"))))
    assert len(rows) == POINTS
    assert rows[0]["trial"] == "2025-01-01-1.01.cassandra-sensor-write.5.0.1"
    assert (rows[0]["origin"], rows[0]["started"]) == ("imported", "2025-01-01T02:00:00Z")
    reported = json.loads(copy("JSON"))
    assert reported[-1]["value (ops/s)"] == float(rows[-1]["value (ops/s)"])
    assert float(rows[5]["lowest"]) < float(rows[5]["value (ops/s)"]) < float(rows[5]["highest"])
    assert copy("Markdown").count("\n") == POINTS + 2
    assert wide.complaints == []
