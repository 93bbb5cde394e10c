"""The pages of releases: what moved there, against which variant, and what would make a page anew."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import pytest
from made_up_judgement import change_inside

from analysis.detection.verdict import Outcome
from analysis.judging.incidents import Cause
from analysis.judging.judgement import JudgedSeries
from perf.model.results import Named, TrialHead, TrialId
from reports.pages.releases import page as releases
from reports.pages.releases.heatmap import (
    ECHO_BADGE,
    HeatMap,
    HeatPair,
    HeatRow,
    leave_out_calm,
    view_heatmap,
)
from reports.pages.releases.medians import Medians, MedianStatus, Variant, compare, read_medians
from reports.site.context import SiteContext
from reports.site.writing import flatten
from reports.wording.links import data_path, release_page, variant_data
from reports.wording.wording import percent, series_words


def read(context: SiteContext) -> Medians:
    return read_medians(context.heads.values(), (*context.judgement.series, *context.judgement.watched))


def variant_of(medians: Medians, version: str) -> Variant:
    return next(one for one in medians.variants.values() if one.release.version == version)


def words_of(heat: HeatMap) -> dict[tuple[str, str, str], str]:
    """Return the word of each cell by workload, row and column."""
    return {
        (group.workload, row.title, column): cell.badge.word
        for group in heat.groups
        for row in group.rows
        for (column, _), cell in zip(heat.columns, row.cells, strict=True)
        if cell
    }


def compare_newest(context: SiteContext) -> HeatMap:
    medians = read(context)
    pair = HeatPair(
        before=medians.measured[variant_of(medians, "5.0.2").id],
        after=medians.measured[variant_of(medians, "5.0.3").id],
    )
    return view_heatmap([pair], context.catalog.detection)


def digests(context: SiteContext) -> dict[str, str]:
    found = [batch.versions.items() for batch in flatten(releases.batches(context))]
    return {path: version for items in found for path, version in items}


def make(context: SiteContext) -> dict[str, str]:
    return {
        file.path: file.content.decode()
        for batch in flatten(releases.batches(context))
        for file in batch.make(batch.versions)
    }


def test_a_heat_map_shows_what_was_planted(demo: Any) -> None:
    words = words_of(compare_newest(demo.context()))
    assert words["sensor-write", "Write at saturation", "Throughput"] == "Worse"
    assert words["sensor-read", "Read-latest at saturation", "Throughput"] == "Same"


def test_of_too_many_rows_those_where_nothing_moved_are_left_out(demo: Any) -> None:
    heat = compare_newest(demo.context())
    rows = [row for group in heat.groups for row in group.rows]
    assert leave_out_calm(heat, len(rows)) == (heat, 0)
    shown, left_out = leave_out_calm(heat, len(rows) - 1)
    kept = [row for group in shown.groups for row in group.rows]
    assert kept == [row for row in rows if row.has_moved]
    assert left_out == len(rows) - len(kept) > 0
    assert all(group.rows for group in shown.groups)


def test_another_content_of_a_workload_is_not_comparable(demo: Any) -> None:
    context = demo.context()
    medians = read(context)
    after = medians.measured[variant_of(medians, "5.0.3").id]
    changed = {
        replace(key, workload="sensor-write@ffffffffffff") if "write" in key.workload else key: value
        for key, value in after.items()
    }
    without = {key: value for key, value in after.items() if key.metric != "service_time"}
    settings = context.catalog.detection
    alien = view_heatmap([HeatPair(before=after, after=changed)], settings)
    missing = view_heatmap([HeatPair(before=after, after=without)], settings)
    at = ("sensor-write", "Write at steady load", "p99 service time")
    assert words_of(alien)[at] == "Not comparable"
    assert words_of(missing)[at] == "Not measured"
    assert "Not comparable" in {one.badge.word for one in alien.counts}


def test_what_changed_inside_of_a_release_is_never_the_same(demo: Any) -> None:
    context = demo.context()
    at = ("sensor-read", "Read-latest at saturation", "Throughput")
    assert words_of(compare_newest(context))[at] == "Same"
    changed = tuple(
        change_inside(one, "5.0.3")
        if (one.series.key.operation, one.series.key.metric) == ("read-latest", "throughput")
        else one
        for one in context.judgement.series
    )
    reported = replace(context, judgement=replace(context.judgement, series=changed))
    heat = compare_newest(reported)
    assert words_of(heat)[at] == "Changed inside"
    (cell,) = {
        id(cell): cell
        for group in heat.groups
        for row in group.rows
        for cell in row.cells
        if cell and cell.notes
    }.values()
    assert cell.notes == ("changed inside 5.0.3: −14.6\N{NO-BREAK SPACE}% since 2026-03-04",)
    assert cell.sides[1].condensed.values < cell.sides[0].condensed.values
    page = release_page("cassandra", "5.0.3")
    assert digests(reported)[page] != digests(context)[page]
    script = data_path(variant_data(variant_of(read(context), "5.0.3").id))
    assert digests(reported)[script] != digests(context)[script]


def test_what_is_worse_is_counted_with_the_largest_of_it(demo: Any) -> None:
    counts = {one.badge.word: one for one in compare_newest(demo.context()).counts}
    assert counts["Worse"].cells == 5
    assert counts["Worse"].largest.startswith("largest: ")
    assert counts["Same"].largest == ""


def test_what_repeats_another_figure_is_neither_coloured_nor_counted(demo: Any) -> None:
    context = demo.context()
    medians = read(context)
    before, after = (medians.measured[variant_of(medians, one).id] for one in ("5.0.2", "5.0.3"))
    (worse, *_) = (
        key
        for key in after
        if key in before
        and compare(before[key], after[key], context.catalog.detection).standing is MedianStatus.WORSE
    )
    sides = [{worse: replace(side[worse], is_echo=True)} for side in (before, after)]
    heat = view_heatmap([HeatPair(before=sides[0], after=sides[1])], context.catalog.detection)
    (cell,) = (cell for cell in heat.groups[0].rows[0].cells if cell)
    assert (cell.badge, cell.strength, heat.counts) == (ECHO_BADGE, 0, ())


def test_a_release_names_what_came_before_and_what_differed(demo: Any) -> None:
    context = demo.context()
    last = next(reversed(context.heads.values()))
    edited = Named(name=last.config.name, sha256="feedfeedfeed")
    heads: dict[TrialId, TrialHead] = {
        name: replace(head, config=edited) if head.release.version == "5.0.3" else head
        for name, head in context.heads.items()
    }
    for scene_of, text in (
        (context, "Against 5.0.2, the release before (15 completed trials)."),
        (replace(context, heads=heads), "whose config had another content"),
    ):
        files = make(scene_of)
        first, _, last_page = (files[release_page("cassandra", f"5.0.{patch}")] for patch in (1, 2, 3))
        assert text in last_page
        assert "Nothing to compare with" in first
        assert '<table class="heatmap">' not in first


def test_every_link_of_the_pages_leads_somewhere(demo: Any, demo_site: Path) -> None:
    pages = {path: text for path, text in make(demo.context()).items() if path.endswith(".html")}
    assert {"releases.html", "compare.html", release_page("cassandra", "5.0.3")} <= pages.keys()
    for path, text in pages.items():
        assert (demo_site / path).read_text() == text
        for href in re.findall(r'href="([^"#]+)', text.partition("<main")[2]):
            assert ((demo_site / path).parent / unquote(unescape(href))).is_file(), (path, href)


def test_the_page_shows_incidents_and_links_the_comparison(demo: Any) -> None:
    page = make(demo.context())[release_page("cassandra", "5.0.3")]
    assert 'href="../incidents/a1b2c3d4.html"' in page
    assert re.search(r'href="\.\./compare\.html#a=[0-9a-f]{12}&amp;b=[0-9a-f]{12}"', page)
    assert "a hint; a verdict comes from" in page
    assert "1 failed" in make(demo.context())[release_page("cassandra", "5.0.1")]


def test_a_release_whose_trials_are_all_old_lists_what_moved_and_few_trials(
    demo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reports.pages.releases.page._MOST_ROWS_OF_OLD", 1)
    monkeypatch.setattr("reports.pages.releases.page._MOST_TRIALS_OF_OLD", 3)
    context = demo.context()
    page = release_page("cassandra", "5.0.2")
    before = make(context)[page]
    own = {one.id: "night/a.html#b" for one in demo.trials if one.release.version == "5.0.2"}
    assert make(replace(context, old_trials=dict(list(own.items())[1:])))[page] == before
    aged = replace(context, old_trials=own)
    assert digests(aged)[page] != digests(context)[page]
    text = make(aged)[page]
    assert before.count('<tr>\n<th scope="row"><a href="../trials/') == len(own)
    assert text.count('<tr>\n<th scope="row"><a href="../trials/') == 3
    assert f"{len(own) - 3} older trials not listed here" in text
    assert "are left out here; the page Compare shows all" in text
    assert "are left out here" not in before
    assert '<table class="heatmap">' in before


def test_a_heat_map_without_rows_is_not_shown(demo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reports.pages.releases.page._MOST_ROWS_OF_OLD", 0)
    monkeypatch.setattr(HeatRow, "has_moved", property(lambda _: False))
    own = {one.id: "night/a.html#b" for one in demo.trials if one.release.version == "5.0.2"}
    text = make(replace(demo.context(), old_trials=own))[release_page("cassandra", "5.0.2")]
    assert "are left out here" in text
    assert '<table class="heatmap">' not in text


def test_a_page_is_made_anew_only_if_something_on_it_changed(demo: Any) -> None:
    context = demo.context()
    before = digests(context)
    assert digests(demo.context()) == before
    page = release_page("cassandra", "5.0.1")
    script = data_path(variant_data(variant_of(read(context), "5.0.1").id))
    assert before[page]
    assert before[script]

    louder = tuple(
        replace(one, noise=replace(one.noise, deviation=1.0)) if one.noise else one
        for one in context.judgement.series
    )
    noisy = digests(replace(context, judgement=replace(context.judgement, series=louder)))
    assert noisy[page] != before[page]
    assert noisy[script] == before[script]

    first = next(iter(context.heads))
    edited = digests(replace(context, digests={**context.digests, first: "another"}))
    assert edited[page] != before[page]
    assert edited[script] != before[script]


@pytest.mark.parametrize("version", ["<script>alert(1)</script>", "x" * 10_000, "\u202e5.0 😀 \u0627"])
def test_a_hostile_release_name_breaks_nothing(demo: Any, version: str) -> None:
    context = demo.context()
    heads = {
        name: replace(head, release=replace(head.release, version=version))
        if head.release.version == "5.0.3"
        else head
        for name, head in context.heads.items()
    }
    files = make(replace(context, heads=heads))
    page = files[release_page("cassandra", version)]
    pages = [text for path, text in files.items() if path.endswith(".html")]
    assert "<script>alert" not in "".join(pages)
    assert version.strip("\u202e") in unescape(page)
    assert all(len(PurePosixPath(path).name) < 120 for path in files)


def test_a_release_without_a_completed_trial_says_so(demo: Any) -> None:
    context = demo.context()
    failed = next(head for head in context.heads.values() if head.reasons)
    lonely = replace(failed, release=replace(failed.release, version="5.0.4", ordinal=4))
    page = make(replace(context, heads={**context.heads, lonely.id: lonely}))
    assert "No trial of it was completed" in page[release_page("cassandra", "5.0.4")]


def test_nothing_measured_is_said(demo: Any) -> None:
    context = demo.context()
    empty = replace(context.judgement, series=(), watched=(), incidents=())
    files = make(replace(context, heads={}, judgement=empty))
    assert "Nothing has been measured yet" in files["releases.html"]
    assert "nothing to compare" in files["compare.html"]
    assert json.loads(files["data/compare.js"].partition(",")[2].removesuffix(");\n"))["series"] == {}


def test_series_that_know_no_noise_are_not_judged_fine(demo: Any) -> None:
    context = demo.context()
    silent: tuple[JudgedSeries, ...] = tuple(
        replace(one, noise=None) for one in context.judgement.series
    )
    heat = compare_newest(replace(context, judgement=replace(context.judgement, series=silent)))
    assert set(words_of(heat).values()) <= {"Cannot tell", "Not measured"}


def test_a_config_change_is_not_laid_on_the_release(demo: Any) -> None:
    context = demo.context()
    judged = next(one for one in context.judgement.series if one.series.key.metric == "throughput")
    change = replace(change_inside(judged, "5.0.3").change_points[-1], outcome=Outcome.REGRESSED)
    incident = replace(context.judgement.incidents[0], lead=change, changes=(change,))
    page = release_page("cassandra", "5.0.3")
    for cause, text in (
        (Cause.CONFIGURATION, "A config change made 1 measure worse (not the release)"),
        (Cause.UNKNOWN, "1 measure, between two nights of it (not the release)"),
    ):
        incidents = (replace(incident, cause=cause),)
        files = make(replace(context, judgement=replace(context.judgement, incidents=incidents)))
        assert text in files["releases.html"]
        assert text in files[page]
        largest = f"{series_words(judged.series.key)} {percent(change.relative_change)}"
        assert largest in files["releases.html"]
        assert largest in files[page]
        assert (">Regressed</span>" in files["releases.html"]) is (cause is Cause.UNKNOWN)


def test_the_link_to_a_comparison_says_what_is_compared(demo: Any) -> None:
    context = demo.context()
    medians = read(context)
    before, newest = variant_of(medians, "5.0.2"), variant_of(medians, "5.0.3")
    edited = replace(newest, config=Named(name=newest.config.name, sha256="feedfeedfeed"))
    names = [releases.name_comparison(one, newest) for one in (None, before, edited)]
    assert names == ["with another release", "with 5.0.2", "5.0.3 with its config before"]
    assert "with 5.0.2" in make(context)["releases.html"]
