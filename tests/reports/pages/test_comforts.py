"""What every page offers to whoever has a script running: the way around, search, keys, theme, ages."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Watched, watch
from playwright.sync_api import Browser, Page, expect

ENTRIES = ["Overview", "Nights", "Series", "Releases", "Compare", "Incidents", "Testbed", "Method"]


@pytest.fixture(scope="module")
def shared(browser: Browser) -> Iterator[Watched]:
    """Yield one wide page for all tests of this file that do not need a fresh one."""
    with watch(browser) as page:
        yield page


@pytest.fixture
def front(shared: Watched, demo_site: Path) -> Iterator[Page]:
    shared.page.goto("about:blank")
    shared.open(demo_site / "index.html")
    shared.page.evaluate("localStorage.clear()")
    yield shared.page
    assert shared.complaints == []


def active(page: Page, what: str) -> str:
    return str(page.evaluate(f"document.activeElement.{what}"))


@pytest.mark.slow
def test_each_page_leads_to_all_others_and_says_where_it_is(front: Page, demo_site: Path) -> None:
    links = front.locator("nav.site a")
    assert links.all_text_contents() == ENTRIES
    assert front.locator("nav.site [aria-current=page]").all_text_contents() == ["Overview"]
    incident = next((demo_site / "incidents").iterdir())
    front.goto(incident.as_uri())
    assert front.locator("nav.site [aria-current=true]").all_text_contents() == ["Incidents"]
    front.locator("nav.site a", has_text="Overview").click()
    front.wait_for_url("**/index.html")


def test_rows_are_walked_and_opened_by_key(front: Page) -> None:
    front.keyboard.press("j")
    first = active(front, "outerHTML")
    assert active(front, "tagName") in {"LI", "TR"}
    assert front.evaluate("document.activeElement.matches(':focus-visible')")
    front.keyboard.press("j")
    assert active(front, "outerHTML") != first
    front.keyboard.press("k")
    assert active(front, "outerHTML") == first
    front.keyboard.press("k")  # there is none before it
    assert active(front, "outerHTML") == first
    for _ in range(12):
        front.keyboard.press("j")
    box = front.evaluate("document.activeElement.getBoundingClientRect().toJSON()")
    assert box["top"] >= 0
    assert box["bottom"] <= 801
    target = front.evaluate("document.activeElement.querySelector('a[href]').href")
    front.keyboard.press("Enter")
    front.wait_for_url(target)


def test_an_incident_is_one_row_and_opens_its_own_page(front: Page) -> None:
    front.locator("tbody[id^=incident-] tr").first.evaluate(
        "row => { row.tabIndex = -1; row.focus(); }"
    )
    name = active(front, "parentElement.id")
    front.keyboard.press("j")
    assert active(front, "parentElement.id") != name
    front.keyboard.press("k")
    assert active(front, "parentElement.id") == name
    front.keyboard.press("Enter")
    front.wait_for_url("**/incidents/*.html")


@pytest.mark.slow
def test_keys_lead_from_incident_to_incident(browser: Browser, demo_site: Path) -> None:
    with watch(browser) as watched:
        page = watched.page
        names = sorted((demo_site / "incidents").glob("*.html"))
        watched.open(next(name for name in names if 'rel="next"' in name.read_text()))
        first = page.url
        page.keyboard.press("]")
        page.wait_for_url(lambda url: url != first)
        page.keyboard.press("[")
        page.wait_for_url(first)
        assert watched.complaints == []


def test_keys_lead_to_pages_and_tell_the_charts_to_reset(front: Page) -> None:
    listen = "document.addEventListener('knickpoint:reset', () => { window.resets += 1; })"
    front.evaluate(f"window.resets = 0; {listen}")
    front.keyboard.press("z")
    front.keyboard.press("Control+z")
    front.keyboard.press("/")
    front.keyboard.type("zjk?")
    assert front.locator("#search").input_value() == "zjk?"
    assert front.evaluate("window.resets") == 1
    front.evaluate("document.activeElement.blur()")
    front.keyboard.press("g")
    front.keyboard.press("b")
    front.wait_for_url("**/testbed.html")


def test_help_lists_the_keys_and_can_turn_them_off(front: Page) -> None:
    front.keyboard.press("?")
    dialog = front.get_by_role("dialog", name="Keyboard")
    expect(dialog).to_be_visible()
    keys = set(dialog.locator("kbd").all_text_contents())
    assert {"j", "k", "/", "?", "z", "Enter", "Esc", "g", "t"} <= keys
    dialog.get_by_label("Use these keys").uncheck()
    front.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    front.keyboard.press("j")
    assert active(front, "tagName") == "BODY"
    front.reload()
    front.keyboard.press("?")
    assert front.get_by_role("dialog").count() == 0
    front.get_by_role("button", name="Keyboard help").click()
    front.get_by_role("dialog").get_by_label("Use these keys").check()
    front.get_by_role("button", name="Close").click()
    front.keyboard.press("j")
    assert active(front, "tagName") in {"LI", "TR"}


def test_search_finds_by_every_word_and_opens_what_was_chosen(front: Page) -> None:
    front.keyboard.press("/")
    field = front.get_by_role("combobox", name="Search")
    expect(field).to_be_focused()
    field.fill("p99 Steady wri")
    options = front.get_by_role("option")
    expect(options.first).to_be_visible()
    titles = options.locator(".title").all_text_contents()
    assert "p99 response time of write at steady load" in titles
    assert all("p99" in title and "write" in title for title in titles)
    assert field.get_attribute("aria-expanded") == "true"
    front.keyboard.press("ArrowDown")
    front.keyboard.press("ArrowDown")
    front.keyboard.press("ArrowUp")
    chosen = front.locator("[aria-selected=true]")
    assert field.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    path = chosen.get_attribute("data-path")
    front.keyboard.press("Enter")
    front.wait_for_url(f"**/{path}")


def test_search_closes_and_says_when_nothing_is_found(front: Page) -> None:
    field = front.get_by_role("combobox", name="Search")
    field.fill("5.0.3")
    expect(front.get_by_role("option").first).to_contain_text("cassandra 5.0.3")
    field.press("Escape")
    expect(front.locator("#found")).to_be_hidden()
    assert field.input_value() == "5.0.3"
    field.press("Escape")
    assert field.input_value() == ""
    field.fill("no such <b>thing</b>")
    expect(front.locator("#found-count")).to_have_text("Nothing found for “no such <b>thing</b>”.")
    assert front.locator("#found b").count() == 0


def test_search_leads_to_existing_pages_only(demo_site: Path) -> None:
    text = (demo_site / "data/search.js").read_text()
    groups = json.loads(text.removeprefix('knickpoint.receive("search",').removesuffix(");\n"))
    kinds = {kind: entries for kind, entries in groups if entries}
    assert {"System", "Experiment", "Workload", "Release", "Incident", "Night", "Series"} <= set(kinds)
    paths = {path.partition("#")[0] for entries in kinds.values() for _, _, path in entries}
    assert [path for path in sorted(paths) if not (demo_site / path).is_file()] == []


def test_search_has_response_before_service_time_and_answers_to_an_outcome(front: Page) -> None:
    front.locator("#search").focus()
    front.wait_for_function("knickpoint.search.find && document.activeElement.id === 'search'")
    titles = "knickpoint.load('search').then((groups) => knickpoint.search.find("
    titles += "knickpoint.search.index(groups), '{}').map((one) => one.kind + ': ' + one.title))"
    latency = front.evaluate(titles.format("latency"))
    assert latency
    assert all("response time" in one for one in latency)
    assert "response time" in front.evaluate(titles.format("p99 time"))[0]
    assert front.evaluate(titles.format("regressed series"))
    assert front.evaluate(titles.format("worse series"))
    assert all("throughput" in one for one in front.evaluate(titles.format("qps")))
    assert all("p99 " in one for one in front.evaluate(titles.format("tail latency")))
    for asked in ("1 mar #1", "2026-03-01-1"):
        assert "Night: 1 Mar 2026 #1" in front.evaluate(titles.format(asked))
    assert not [one for one in front.evaluate(titles.format("night")) if one.startswith("Night: night")]


def test_a_thousand_series_are_searched_within_a_frame_or_two(front: Page) -> None:
    measure = """() => {
      const words = ['p99 response time', 'throughput', 'p50 service time', 'mean GC pause'];
      const one = i => [`${words[i % 4]} of write at load ${i}`, `cassandra-${i % 40}, 5.0, x`, `${i}`];
      const { index, find } = knickpoint.search;
      const entries = index([['Series', Array.from({ length: 1000 }, (_, i) => one(i))]]);
      const times = ['r', 'response wr', 'e a 9', 'zz'].map(query => {
        const runs = [1, 2, 3].map(() => {
          const start = performance.now();
          find(entries, query);
          return performance.now() - start;
        });
        return Math.min(...runs);
      });
      return [Math.max(...times), find(entries, 'THROUGHPUT 9').length];
    }"""
    longest_ms, found = front.evaluate(measure)
    numbers = range(1, 1000, 4)  # every fourth is a throughput
    assert found == sum("9" in f"{number} {number % 40}" for number in numbers)
    assert longest_ms < 33


def test_the_theme_is_chosen_for_all_pages(front: Page, demo_site: Path) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    light = front.evaluate(paper)
    chooser = front.get_by_label("Theme")
    assert chooser.input_value() == ""
    chooser.select_option("dark")
    dark = front.evaluate(paper)
    assert dark != light
    front.goto((demo_site / "testbed.html").as_uri())
    assert front.evaluate(paper) == dark
    assert front.get_by_label("Theme").input_value() == "dark"
    front.get_by_label("Theme").select_option("")
    assert front.evaluate(paper) == light
    front.emulate_media(color_scheme="dark")
    assert front.evaluate(paper) == dark
    front.emulate_media(color_scheme="light")


def test_times_say_how_long_ago_they_were_and_stay_in_utc(front: Page) -> None:
    time = front.locator("section.verdict time").first
    assert time.inner_text().endswith("UTC")
    at = front.evaluate("Date.parse(document.querySelector('section.verdict time').dateTime)")
    front.clock.install(time=(at + 3 * 3600_000) / 1000)
    front.reload()
    ago = front.locator("section.verdict .ago").first
    assert ago.inner_text().strip() == "(3 hours ago)"
    assert time.get_attribute("title") == "3 hours ago"
    front.clock.fast_forward("24:00:30")
    expect(ago).to_have_text("(1 day ago)")


@pytest.mark.slow
def test_the_front_page_notices_its_own_age(browser: Browser, demo_site: Path) -> None:
    with watch(browser, width=360) as watched:
        watched.page.clock.set_fixed_time("2026-03-08T07:00:00Z")
        watched.open(demo_site / "index.html")
        age = watched.page.locator("#age")
        assert age.is_hidden()
        experiments = watched.page.locator("section:has(> #experiments)")
        fresh = experiments.locator("[data-until]:visible", has_text="Fresh").count()
        assert fresh > 0
        assert experiments.locator("[data-from]:visible").count() == 0
        watched.page.clock.set_fixed_time("2026-03-18T07:00:00Z")
        watched.page.reload()
        assert age.is_visible()
        assert "10 days old" in age.inner_text()
        assert experiments.locator("[data-until]:visible").count() == 0
        assert experiments.locator("[data-from]:visible", has_text="Stale").count() == fresh
        assert "old when this page was built." in experiments.inner_text()
        assert watched.complaints == []


def test_the_headers_of_a_table_stay_low(browser: Browser, demo_site: Path) -> None:
    with watch(browser, width=360) as watched:
        watched.open(demo_site / "releases.html")
        heights = watched.page.evaluate(
            "[...document.querySelectorAll('thead tr')].map(row => row.clientHeight)"
        )
    assert 0 < max(heights) < 120  # three lines and a note


def test_without_script_nothing_is_promised_that_needs_it(browser: Browser, demo_site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((demo_site / "index.html").as_uri())
    assert page.locator("nav.site a").count() == len(ENTRIES)
    for selector in ("#search", "#theme", "#help"):
        expect(page.locator(selector)).to_be_hidden()
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1280])
def test_a_button_that_copies_covers_no_command(browser: Browser, demo_site: Path, width: int) -> None:
    with watch(browser, width=width) as watched:
        incident, comparison = (
            next((demo_site / folder).glob("*.html")) for folder in ("incidents", "comparison")
        )
        for path in (demo_site / "index.html", incident, comparison):
            watched.open(path)
            blocks = watched.page.locator(".copyable")
            assert blocks.count()
            for block in blocks.all():
                text, button = (
                    block.locator("pre").bounding_box(),
                    block.locator("button").bounding_box(),
                )
                assert text
                assert button
                assert text["x"] + text["width"] <= button["x"]
                assert button["x"] + button["width"] <= width
                if width < 640:  # nothing of it is cut: it breaks into lines
                    assert block.locator("pre").evaluate("it => it.scrollWidth <= it.clientWidth")


@pytest.mark.slow
def test_the_chart_of_an_incident_is_that_of_its_series_or_a_still_picture(
    browser: Browser, demo_site: Path
) -> None:
    path = next((demo_site / "incidents").glob("*.html"))
    with watch(browser, width=1200) as watched:
        watched.open(path)
        page, figure = watched.page, watched.page.locator("figure[data-lead]")
        expect(figure).to_have_attribute("data-draws", "1", timeout=20_000)
        expect(figure.locator(".still").first).to_be_hidden()
        figure.scroll_into_view_if_needed()
        box = figure.locator(".plot svg .background").first.bounding_box()
        assert box
        assert box["width"] > 900
        height = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + box["width"] * 0.2, height)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.8, height, steps=3)
        page.mouse.up()
        expect(figure).to_have_attribute("data-draws", "2")
        assert ".." in page.evaluate("window.knickpoint.state.get('zoom')")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    expect(page.locator(".change .still svg")).to_be_visible()
    expect(page.locator(".change .plot")).to_be_hidden()
    context.close()
