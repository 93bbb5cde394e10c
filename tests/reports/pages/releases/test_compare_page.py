"""The page Compare in a browser: any two variants, the same answers as Python gives, all in the URL."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import chromium
import pytest
from made_up_judgement import change_inside
from made_up_times import SECONDS, SPIKE_US, record
from playwright.sync_api import Browser, Page, expect

from perf.model.results import TrialId
from reports.pages.releases import compare
from reports.pages.releases.compare import describe_cells
from reports.pages.releases.heatmap import HeatCell, HeatPair, view_heatmap
from reports.pages.releases.medians import Medians, Variant, read_medians
from reports.pages.trial.times import describe_curves
from reports.pages.whole_site import all_batches
from reports.site.context import SiteContext
from reports.site.writing import write_site
from reports.wording.links import release_page
from reports.wording.measures import change_words, ends_words

STEPS_OF_LINES = """
    () => [...document.querySelectorAll('[data-chart="spectrum"] path')]
        .map((path) => [...(path.getAttribute("d") ?? "").matchAll(/[ML]([\\d.]+)/g)])
        .filter((steps) => steps.length > 20)
        .map((steps) => steps.map(([, x]) => Number(x)))
"""
"""The x of each step of each long line of the spectrum: to the right, and never back."""


def test_the_data_of_a_trial_hold_its_spectrum_course_and_diagnostics(demo: Any) -> None:
    enriched = next(trial for trial in demo.trials if trial.steps)
    reported = describe_curves(enriched, [record(enriched.id)])
    (time,) = reported["times"]
    assert (time["title"], time["problem"], time["count"]) == (
        "Write at saturation",
        "",
        100 * SECONDS + 1,
    )
    levels = dict(time["levels"])
    assert levels[50.0] == pytest.approx(2.98, rel=0.02)
    assert levels[100.0] == pytest.approx(SPIKE_US / 1000, rel=0.001)
    course = [second[:3] for second in time["course"]]
    assert course == [[1, second, 101 if second == 1 else 100] for second in range(SECONDS)]
    rows = [tuple(row) for row in reported["diagnostics"]]
    assert ("Write at saturation", "server CPU", "µs/op", "412") in rows
    assert ("Canary on localhost before the trial", "CPU canary", "ms", "12.3") in rows
    assert not [row for row in rows if "node-" in row[0]]
    assert ["localhost", "kernel", "6.1.0-18"] in reported["facts"]


def test_a_histogram_that_cannot_be_decoded_is_reported(demo: Any) -> None:
    broken = record(TrialId("x"))
    bad = replace(broken, intervals=(replace(broken.intervals[0], encoded="HISTFAAA"),))
    (time,) = describe_curves(demo.trials[0], [bad])["times"]
    assert "cannot be decoded" in time["problem"]


@pytest.fixture(scope="module")
def context(demo: Any) -> SiteContext:
    """Return all that the site is made of."""
    context: SiteContext = demo.context()
    return context


@pytest.fixture
def watched(browser: Browser) -> Iterator[chromium.Watched]:
    """Yield a page that must not complain about anything."""
    with chromium.watch(browser) as page:
        yield page
        assert page.complaints == []


def read(context: SiteContext) -> Medians:
    return read_medians(context.heads.values(), (*context.judgement.series, *context.judgement.watched))


def variants(context: SiteContext) -> dict[str, Variant]:
    medians = read(context)
    return {one.release.version: one for one in medians.variants.values()}


def read_cells(page: Page) -> list[str]:
    return page.locator("#heat td.heat:not(.empty):visible").all_inner_texts()


def report(cell: HeatCell) -> str:
    """Return the text of a cell as its page has it."""
    found = cell.difference
    if not found:
        return f"{cell.badge.symbol} {cell.badge.word}"
    ends = ends_words(found.effect.low, found.effect.high) if found.effect else ""
    return f"{cell.badge.symbol} {change_words(found.change)}, {cell.badge.word} {ends}"


def normal(text: str) -> str:
    return " ".join(text.split())


def test_the_script_gives_the_same_answers_as_python(
    context: SiteContext, demo_site: Path, watched: chromium.Watched
) -> None:
    found = variants(context)
    medians = read(context)
    before, after = found["5.0.1"], found["5.0.3"]
    pair = HeatPair(before=medians.measured[before.id], after=medians.measured[after.id])
    expected = [
        normal(report(cell))
        for group in view_heatmap([pair], context.catalog.detection).groups
        for row in group.rows
        for cell in row.cells
        if cell
    ]
    watched.open(demo_site / "compare.html", f"a={before.id}&b={after.id}")
    watched.page.locator("#heat caption", has_text="5.0.1").wait_for(state="attached")
    texts = watched.page.locator("#heat td.heat:not(.empty)").all_text_contents()
    joined = [normal(text) for text in texts]
    assert [text.replace(" ", "") for text in joined] == [text.replace(" ", "") for text in expected]
    heat = view_heatmap([pair], context.catalog.detection)
    reported = watched.page.locator("#counts li").all_inner_texts()
    assert [normal(text) for text in reported] == [
        *(
            normal(f"{one.badge.symbol} {one.cells} {one.badge.word.lower()} {one.largest}")
            for one in heat.counts
        ),
        *filter(None, [heat.echoes]),
    ]
    zooms = {
        parse_qs(urlsplit(href).fragment)["zoom"][0]
        for href in watched.page.locator("#heat td.heat a").evaluate_all(
            "all => all.map(one => one.href)"
        )
    }
    cells = cells_of(context, before, after)
    assert zooms == {cell.zoom for cell in cells}


def cells_of(context: SiteContext, before: Variant, after: Variant) -> list[HeatCell]:
    medians = read(context)
    pair = HeatPair(before=medians.measured[before.id], after=medians.measured[after.id])
    heat = view_heatmap([pair], context.catalog.detection)
    return [cell for group in heat.groups for row in group.rows for cell in row.cells if cell]


@pytest.mark.slow
def test_the_script_knows_what_changed_inside_of_a_release(
    context: SiteContext, demo_site: Path, watched: chromium.Watched
) -> None:
    changed = tuple(change_inside(one, "5.0.3") for one in context.judgement.series)
    reported = replace(context, judgement=replace(context.judgement, series=changed))
    medians, found = read(reported), variants(reported)
    sides = [found["5.0.2"], found["5.0.3"]]
    data = [describe_cells(one, medians, [], context.catalog.detection) for one in sides]
    watched.open(demo_site / "compare.html")
    seen = watched.page.evaluate(
        """async ([a, b]) => {
          const { heatmap, load } = window.knickpoint;
          const index = await load("compare");
          const word = ({ standing }) => index.badges[standing].word;
          return heatmap.compareAll(index, a, b).map((one) => [word(one), ...one.notes]);
        }""",
        data,
    )
    expected = [[cell.badge.word, *cell.notes] for cell in cells_of(reported, *sides)]
    assert sorted(seen) == sorted(expected)
    assert "Changed inside" in {word for word, *_ in seen}


def test_the_page_opens_with_the_newest_against_the_one_before(
    context: SiteContext, demo_site: Path, watched: chromium.Watched
) -> None:
    found = variants(context)
    page = watched.page
    watched.open(demo_site / "compare.html")
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Compare cassandra 5.0.2 → 5.0.3")
    assert page.title().startswith("Compare cassandra 5.0.2 → 5.0.3")
    assert "#" not in page.url
    sizes = [
        abs(float(text.replace("−", "-").replace("\N{NO-BREAK SPACE}%", "")))
        for text in page.locator('#moved tbody tr [data-label="Change"]').all_inner_texts()
    ]
    assert len(sizes) == 5
    # Sorted by how many times the change that matters: 5 % of throughput, 10 % of a time.
    assert page.locator("#moved tbody th a").first.get_attribute("href")
    page.get_by_label("A, from").select_option(found["5.0.1"].id)
    expect(heading).to_have_text("Compare cassandra 5.0.1 → 5.0.3")
    assert f"a={found['5.0.1'].id}" in page.url


@pytest.mark.slow
def test_unknown_names_and_equal_sides_are_said(
    context: SiteContext, demo_site: Path, watched: chromium.Watched
) -> None:
    found = variants(context)
    page = watched.page
    watched.open(demo_site / "compare.html", "a=nonsense&b=other")
    expect(page.locator("#compared")).to_contain_text("nonsense, other.")
    expect(page.get_by_label("B, to")).to_have_value(found["5.0.3"].id)
    expect(page.locator("#heat table")).to_be_visible()
    assert "cassandra 5.0.3" in page.locator("select[name=b] option:checked").inner_text()
    one = found["5.0.3"].id
    page.evaluate("id => { location.hash = `a=${id}&b=${id}`; }", one)
    expect(page.locator("#compared")).to_contain_text("are the same")
    for part in ("#heat table", "#sides", "#times", "#nothing"):
        expect(page.locator(part)).to_be_hidden()


@pytest.mark.slow
def test_two_that_share_no_measure_say_what_each_measured(
    context: SiteContext, demo_site: Path, watched: chromium.Watched
) -> None:
    found = variants(context)
    page = watched.page
    watched.open(demo_site / "compare.html", f"a={found['5.0.1'].id}&b={found['5.0.2'].id}")
    expect(page.locator("#heat table")).to_be_visible()
    page.evaluate(
        """async (id) => {
          const side = await window.knickpoint.load(`variant-${id}`);
          const index = await window.knickpoint.load("compare");
          const measureOf = (series) => index.measures[index.series[series][0]];
          const isWrite = ([series]) => measureOf(series).workload.endsWith("write");
          side.cells = side.cells.filter(isWrite);
          const other = await window.knickpoint.load(`variant-${index.variants[id].before}`);
          other.cells = other.cells.filter((cell) => !isWrite(cell));
        }""",
        found["5.0.3"].id,
    )
    page.evaluate("id => { location.hash = `b=${id}`; }", found["5.0.3"].id)
    expect(page.locator("#compared")).to_contain_text("share no measure")
    expect(page.locator("#compared")).to_contain_text("B measured sensor-write@")
    expect(page.locator("#all")).to_be_hidden()


@pytest.mark.slow
def test_a_heat_map_is_copied_with_one_value_in_a_cell(
    context: SiteContext, demo_site: Path, watched: chromium.Watched
) -> None:
    page = watched.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    watched.open(demo_site / "compare.html")
    page.locator("#heat").get_by_role("button", name=re.compile("as JSON")).click()
    expect(page.get_by_role("status").filter(has_text="as JSON")).to_have_count(1)
    rows = json.loads(str(page.evaluate("navigator.clipboard.readText()")))
    cells = cells_of(context, variants(context)["5.0.2"], variants(context)["5.0.3"])
    assert len(rows) == len(cells)
    worse = next(row for row in rows if row["verdict"] == "Worse" and row["measure"] == "Throughput")
    assert (worse["workload"], worse["operation"]) == ("sensor-write", "Write at saturation")
    assert worse["low_pct"] < worse["change_pct"] < worse["high_pct"] < 0
    assert worse["after"] < worse["before"]


@pytest.mark.slow
def test_filters_and_sides_stay_in_the_url(
    context: SiteContext, demo_site: Path, watched: chromium.Watched
) -> None:
    found = variants(context)
    watched.open(demo_site / "compare.html", f"a={found['5.0.2'].id}&b={found['5.0.3'].id}")
    page = watched.page
    page.get_by_label("only what moved").check()
    page.wait_for_function("location.hash.includes('moved=1')")
    rows = page.locator("#heat tbody tr[data-row]:visible")
    assert rows.all_inner_texts()[0].startswith("Write at saturation")
    assert rows.count() == 2
    moved = "#heat tbody tr[data-row]:visible td:is(.good, .bad)"
    columns = {cell.get_attribute("data-column") for cell in page.locator(moved).all()}
    heads = page.locator("#heat thead th[data-column]")
    assert page.locator("#heat thead th[data-column]:visible").count() == len(columns) < heads.count()
    page.get_by_label("only what moved").uncheck()
    assert page.locator("#heat thead th[data-column]:visible").count() == heads.count()
    page.get_by_label("Metric").select_option("Throughput")
    assert page.locator("#heat thead th:visible").count() == 2
    page.get_by_role("button", name="Swap A and B").click()
    page.locator(
        "#heat caption", has_text="5.0.3, config default@333333333333 → cassandra 5.0.2"
    ).wait_for(state="attached")
    page.reload()
    page.locator("#heat caption", has_text="→ cassandra 5.0.2").wait_for(state="attached")
    assert page.get_by_label("Metric").input_value() == "Throughput"
    assert page.get_by_label("B, to").input_value() == found["5.0.2"].id
    assert page.locator("#heat thead th:visible").count() == 2


@pytest.mark.slow
def test_the_command_for_a_verdict_can_be_copied_as_it_is(
    context: SiteContext, demo_site: Path, watched: chromium.Watched
) -> None:
    found = variants(context)
    watched.open(demo_site / "compare.html", f"a={found['5.0.2'].id}&b={found['5.0.3'].id}")
    command = watched.page.locator("#command")
    command.wait_for()
    assert (
        "knickpoint compare --suite quickstart --experiment cassandra-sensor-write "
        "--baseline 5.0.2/default --candidate 5.0.3/default"
    ) in command.inner_text().splitlines()


@pytest.mark.slow
def test_what_only_one_side_measures_has_no_command(
    context: SiteContext, demo_site: Path, watched: chromium.Watched
) -> None:
    found = variants(context)
    page = watched.page
    watched.open(demo_site / "compare.html", f"a={found['5.0.1'].id}&b={found['5.0.2'].id}")
    page.evaluate(
        """async (id) => {
          const side = await window.knickpoint.load(`variant-${id}`);
          side.trials = side.trials.filter((one) => one.experiment.endsWith("read"));
        }""",
        found["5.0.2"].id,
    )
    page.evaluate(
        "([a, b]) => window.knickpoint.state.set({ a, b })", [found["5.0.2"].id, found["5.0.3"].id]
    )
    page.locator("#command", has_text="--candidate 5.0.3").wait_for()
    (command,) = page.locator("#command").inner_text().splitlines()
    assert "--experiment cassandra-sensor-read" in command


@pytest.mark.slow
def test_response_times_of_both_sides_are_drawn(
    context: SiteContext, demo_site: Path, watched: chromium.Watched
) -> None:
    found = variants(context)
    watched.open(demo_site / "compare.html", f"a={found['5.0.2'].id}&b={found['5.0.3'].id}")
    page = watched.page
    page.get_by_label("Experiment").select_option("cassandra-sensor-write")
    page.locator('[data-chart="spectrum"] svg').wait_for()
    page.locator('[data-chart="rate"] svg').wait_for()
    table = page.locator('[data-table="levels"] table')
    slowest = [
        cell.inner_text() for cell in table.locator("tr", has_text="Slowest").locator("td").all()
    ]
    assert slowest[:2] == ["400", "400"]
    median = [cell.inner_text() for cell in table.locator("tr", has_text="p50").locator("td").all()]
    assert median[2].startswith("+100.")
    assert page.locator('[data-table="diagnostics"] table').count() == 1
    assert "experiment=cassandra-sensor-write" in page.url
    ends = page.evaluate(STEPS_OF_LINES)
    assert len(ends) == 2
    assert all(steps == sorted(steps) for steps in ends)


@pytest.mark.slow
def test_the_page_of_a_release_draws_its_response_times_also_for_paper(
    demo_site: Path, browser: Browser
) -> None:
    with chromium.watch(browser, height=60) as watched:  # far below what is seen
        watched.open(demo_site / release_page("cassandra", "5.0.3"))
        page = watched.page
        page.locator('[data-chart="spectrum"] svg').wait_for(state="attached")
        assert page.get_by_label("Operation").first.input_value()
        page.emulate_media(media="print")
        assert page.get_by_label("Operation").first.is_visible()
        assert watched.complaints == []


@pytest.mark.slow
def test_the_page_of_an_older_release_offers_no_operation_of_which_it_has_nothing(
    context: SiteContext, tmp_path: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "_WITH_TIMES", 1)
    write_site(tmp_path / "site", all_batches(context))
    with chromium.watch(browser) as watched:
        watched.open(tmp_path / "site" / release_page("cassandra", "5.0.2"))
        watched.page.get_by_text("The response times of older releases").first.wait_for()
        assert watched.page.get_by_label("Experiment").first.is_visible()
        assert not watched.page.locator("[data-operation]").first.is_visible()
        assert watched.complaints == []


@pytest.mark.slow
def test_each_side_looks_the_same_in_the_legend_and_in_every_chart(
    demo_site: Path, watched: chromium.Watched
) -> None:
    page = watched.page
    watched.open(demo_site / "compare.html")
    styles = """all => all.map(one => getComputedStyle(one))
        .map(({ stroke, strokeDasharray }) => [stroke, strokeDasharray.replaceAll("px", "")])"""
    legend = page.locator(".sides path").evaluate_all(styles)
    for chart in ("spectrum", "p99", "rate"):
        lines = page.locator(f'[data-chart="{chart}"] .mark-line path')
        lines.first.wait_for()
        drawn = lines.evaluate_all(styles)
        assert {tuple(one) for one in drawn} == {tuple(one) for one in legend}, chart


def test_two_that_took_turns_have_a_verdict_elsewhere(context: SiteContext, demo_site: Path) -> None:
    index = json.loads(
        (demo_site / "data/compare.js").read_text().partition(",")[2].removesuffix(");\n")
    )
    assert all(one["page"].startswith("comparison/") for one in index["comparisons"])
    assert len(index["comparisons"]) == len(context.comparisons)
