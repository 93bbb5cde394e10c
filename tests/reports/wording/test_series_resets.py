"""A changed workload begins a new series: its page, that of the old one and Tonight say so."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from made_up_series import KEY, SLOWER, make_scene

from analysis.detection.series import Points, Series
from analysis.judging.judgement import JudgedSeries
from perf.model.results import SeriesKey, Trial
from reports.pages.front import page as front
from reports.pages.series import page as series
from reports.site.context import SiteContext
from reports.site.writing import Batch, flatten
from reports.wording.links import series_page
from reports.wording.series_resets import describe_reset, find_chain

CHANGED = "sensor-write@ffffffffffff"


def cut(judged: JudgedSeries, first: int) -> tuple[JudgedSeries, JudgedSeries]:
    """Cut a series where its workload was changed."""
    key, points = judged.series.key, judged.series.points
    bare = replace(judged, change_points=())
    later = Series(key=replace(key, workload=CHANGED), points=Points.of(points[first:]))
    return (
        replace(bare, series=Series(key=key, points=Points.of(points[:first]))),
        replace(bare, series=later),
    )


def make_changed(make_trial: Callable[..., Trial], target: Path, newest: int) -> SiteContext:
    """Return a history in which the workload was changed before the `newest` trials of line 5.0."""
    context = make_scene(make_trial, 30, target)
    old_line, *new_line = context.judgement.series
    parts = (part for one in new_line for part in cut(one, len(one.series.points) - newest))
    return replace(context, judgement=replace(context.judgement, series=(old_line, *parts)))


def pages(*batches: Batch) -> dict[str, str]:
    """Make the pages of some batches, by path."""
    files = (file for batch in batches for file in batch.make(batch.versions))
    return {file.path: file.content.decode() for file in files if file.path.endswith(".html")}


def after(key: SeriesKey) -> SeriesKey:
    return replace(key, workload=CHANGED)


def test_series_that_differ_in_the_content_alone_follow_each_other_in_time(
    make_trial: Callable[..., Trial], tmp_path: Path
) -> None:
    context = make_changed(make_trial, tmp_path, 3)
    chain = find_chain(one.series for one in reversed(context.judgement.series))
    assert chain.before == {after(KEY): KEY, after(SLOWER): SLOWER}
    assert chain.after == {KEY: after(KEY), SLOWER: after(SLOWER)}


def test_another_name_or_no_point_begins_nothing() -> None:
    empty = [Series(key=key, points=Points.of(())) for key in (KEY, after(KEY))]
    assert find_chain(empty).before == {}


def test_both_pages_say_what_was_changed_and_lead_to_each_other(
    make_trial: Callable[..., Trial], tmp_path: Path
) -> None:
    found = pages(*flatten(series.batches(make_changed(make_trial, tmp_path, 3))))
    change = "workload sensor-write was changed (hash 0123456789ab → ffffffffffff), so values do not"
    begins, ends = found[series_page(after(KEY))], found[series_page(KEY)]
    assert "Begins here, 2025-01-" in begins
    assert change in begins
    assert f'<a href="../{series_page(KEY)}">{KEY.workload}</a>' in begins
    assert f"Ends here: {change}" in ends
    assert f'<a href="../{series_page(after(KEY))}">{CHANGED}</a>' in ends
    assert "Begins here" not in ends
    assert "Ends here" not in found[series_page(replace(KEY, line="4.1"))]


def test_tonight_says_it_once_for_all_series_of_the_workload(
    make_trial: Callable[..., Trial], tmp_path: Path
) -> None:
    tonight = pages(*front.batches(make_changed(make_trial, tmp_path, 1)))["index.html"]
    assert tonight.count("(hash 0123456789ab → ffffffffffff)") == 1
    assert "2 series begin anew" in tonight
    later = pages(*front.batches(make_changed(make_trial, tmp_path, 3)))["index.html"]
    assert "begin anew" not in later


def test_a_canary_does_not_run_the_workload_so_its_values_compare() -> None:
    canary = replace(KEY, phase="canary-before", metric="canary_cpu", host="db-1")
    assert describe_reset(KEY, after(KEY)).endswith("so values do not compare.")
    assert describe_reset(canary, after(canary)).endswith(
        "which a canary does not run: its values compare."
    )
