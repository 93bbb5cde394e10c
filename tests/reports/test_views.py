"""What the pages say: about a history with every trouble, and about an empty one."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from analysis.judgement import Judgement
from analysis.verdict import Outcome, Verdict
from perf.model import Counter, Fact, SeriesKey, Trial, TrialId, TrialStatus
from reports.view.index import STALE_AFTER, IndexView, LeftOut, view_index
from reports.view.links import series_page, trial_page
from reports.view.series import view_series
from reports.view.trial import TrialView, view_trial

NBSP = "\N{NO-BREAK SPACE}"
NOTHING = Judgement(series=(), verdict=Verdict(outcome=Outcome.UNDECIDED, reason="nothing to judge"))


@pytest.fixture(scope="module")
def index(demo: Any) -> IndexView:
    """Give the front page of the made-up history."""
    return view_index(
        demo.trials, demo.judgement, nights=demo.nights, caveats=demo.caveats, now=demo.now
    )


def view_plainly(trial: Trial) -> TrialView:
    return view_trial(trial, series=(), files=(), reproduce="knickpoint measure", caveats={})


def test_the_verdict_stands_in_words_beside_what_is_missing(index: IndexView) -> None:
    assert index.verdict.word == "Regressed"
    assert index.alarm == (
        "2 of the 5 newest trials gave no result (1 failed, 1 invalid); "
        "1 planned trial did not take place."
    )
    assert index.left_out == ""
    assert index.freshness == "4 hours before this page was built"
    assert not index.is_stale


def test_attention_begins_with_what_could_not_be_measured(index: IndexView) -> None:
    words = [item.badge.word for item in index.attention]
    assert words[:4] == ["Failed", "Invalid", "Missing", "Regressed"]
    assert set(words[3:]) == {"Regressed"}
    failed, invalid, missing = index.attention[:3]
    assert failed.subject == "cassandra-sensor-read at 5.0.1"
    assert failed.page == "trials/2026-03-08-1.04.cassandra-sensor-read.5.0.1.html"
    assert invalid.text == "client fell behind: 3.1 % started late."
    assert missing.page == ""
    assert "Planned for night 2026-03-08-1" in missing.text


def test_the_newest_night_is_a_table_of_headline_figures(index: IndexView) -> None:
    assert index.night_title == "Night 2026-03-08-1"
    assert index.night_summary == (
        "5 of 6 planned trials of suite quickstart ended: 1 failed, 1 invalid, 3 completed."
    )
    first, *_, failed, invalid = index.night_rows
    assert first.release == "cassandra 5.0.1"
    assert first.throughput.endswith(f"{NBSP}ops/s")
    assert first.response_time.endswith(f"{NBSP}ms")
    assert (failed.throughput, invalid.reason != "") == ("–", True)


def test_series_are_grouped_by_experiment(index: IndexView, demo: Any) -> None:
    assert [group.name for group in index.groups] == [
        "cassandra-sensor-read",
        "cassandra-sensor-write",
    ]
    assert sum(len(group.rows) for group in index.groups) == len(demo.judgement.series)
    throughput = index.groups[1].rows[0]
    assert throughput.title == "throughput of write at saturation"
    assert throughput.direction == "higher is better"
    assert throughput.verdict.word == "Regressed"
    assert throughput.change.startswith("−1")


def test_troubles_and_caveats_of_the_whole_history_are_listed(index: IndexView, demo: Any) -> None:
    assert [row.status.word for row in index.troubles] == ["Invalid", "Failed"]
    assert index.caveats == (f"local: {demo.caveats['local']}",)


def test_an_old_history_is_called_stale(demo: Any) -> None:
    later = demo.now + STALE_AFTER
    index = view_index(demo.trials, demo.judgement, nights=(), caveats={}, now=later)
    assert index.is_stale
    stale = [item for item in index.attention if item.badge.word == "Stale"]
    assert [item.subject for item in stale] == ["cassandra-sensor-read", "cassandra-sensor-write"]
    assert stale[1].text == ("The newest completed trial is 40 hours old (2026-03-08 02:15 UTC).")


def test_a_history_without_a_completed_trial_never_looks_fine(
    make_trial: Callable[..., Trial],
) -> None:
    failed = make_trial(status=TrialStatus.FAILED, reasons=(), samples=())
    index = view_index(
        [failed], NOTHING, nights=(), caveats={}, now=failed.finished_at + timedelta(hours=1)
    )
    assert index.alarm == "No trial has been completed yet: 1 failed."
    assert index.verdict.word == "Undecided"
    assert [item.badge.word for item in index.attention] == ["Failed", "Stale"]
    assert index.attention[0].text == "no reason was recorded"


def test_an_empty_history_has_no_verdict(demo: Any) -> None:
    index = view_index((), NOTHING, nights=(), caveats={}, now=demo.now)
    assert index.is_empty
    assert index.verdict.word == "Nothing measured yet"


def test_bundles_outside_of_the_history_come_first(demo: Any) -> None:
    missing = [f"  {name} is missing" for name in ("trial.json", "a", "b", "c")]
    fault = "\n".join(("torn cannot be used:", *missing, "  move torn away"))
    index = view_index(
        demo.trials,
        demo.judgement,
        nights=demo.nights,
        left_out=(LeftOut(name="torn", fault=fault), LeftOut(name="fresh", fault="")),
        caveats={},
        now=demo.now,
    )
    assert index.left_out == "2 bundles on disk are not in the history, so not judged either."
    torn, fresh = index.attention[:2]
    assert (torn.badge.word, torn.subject, torn.page) == ("Left out", "torn", "")
    assert torn.text == ("torn cannot be used: trial.json is missing; 3 more problems; move torn away.")
    assert (fresh.subject, fresh.text) == (
        "fresh",
        "Sound, but not appended yet: run `knickpoint append`, then `knickpoint report`.",
    )


def test_a_series_page_shows_the_change_with_its_evidence(demo: Any) -> None:
    judged = next(
        judged
        for judged in demo.judgement.series
        if (judged.series.key.operation, judged.series.key.metric) == ("write", "throughput")
    )
    view = view_series(judged, {trial.id: trial for trial in demo.trials}, demo.caveats)
    assert view.title == "Throughput of write at saturation"
    assert view.summary == "24 points over 3 releases"
    assert [(band.release, band.first, band.last) for band in view.bands] == [
        ("5.0.1", 1, 8),
        ("5.0.2", 9, 16),
        ("5.0.3", 17, 24),
    ]
    (change,) = view.changes
    assert change.index == 17
    assert change.between == "5.0.2 → 5.0.3"
    assert (change.outcome.word, change.state.word) == ("Regressed", "Confirmed")
    assert change.points_after == "8 points after it"
    assert [(segment.first, segment.last) for segment in view.segments] == [(1, 16), (17, 24)]
    assert view.segments[0].text == change.before
    assert view.caveat == demo.caveats["local"]


def test_a_trial_page_marks_what_the_hosts_changed(make_trial: Callable[..., Trial]) -> None:
    before = (Fact(host="a", name="kernel", value="6.1"), Fact(host="a", name="governor", value="x"))
    after = (Fact(host="a", name="kernel", value="6.1"), Fact(host="a", name="governor", value="y"))
    view = view_plainly(make_trial(environment_before=before, environment_after=after))
    assert [(fact.name, fact.differs) for fact in view.facts] == [("governor", True), ("kernel", False)]
    assert view.facts_summary == "2 facts, 1 of them different after the trial."
    unknown = view_plainly(make_trial(environment_before=before, environment_after=()))
    assert not any(fact.differs for fact in unknown.facts)


def test_a_trial_page_orders_samples_and_counters_for_reading(make_trial: Callable[..., Trial]) -> None:
    view = view_plainly(make_trial())
    (table,) = view.samples
    assert table.title == "write at saturation"
    assert [row.name for row in table.rows] == [
        "throughput",
        "p50 response time",
        "p99 response time",
        "p99 service time",
    ]
    assert (table.rows[0].overall, table.rows[0].iterations) == ("1,000", ("990", "1,010"))
    (counters,) = view.counters
    assert [(row.name, row.overall) for row in counters.rows] == [
        ("attempted", "5,000"),
        ("completed", "4,990"),
        ("timeouts", "10"),
    ]


def test_a_warm_up_is_shown_but_never_counted(make_trial: Callable[..., Trial]) -> None:
    def count(phase: str, iteration: int, value: int) -> Counter:
        return Counter(
            phase=phase, operation="write", iteration=iteration, name="completed", value=value
        )

    counters = (count("preload", 0, 7), *(count("steady", i, 10**i) for i in (0, 1, 2)))
    preload, steady = view_plainly(make_trial(counters=counters)).counters
    assert (preload.columns, preload.rows[0].overall) == ((), "7")
    assert steady.columns == ("Warm-up", "Iteration 1", "Iteration 2")
    assert (steady.rows[0].overall, steady.rows[0].iterations) == ("110", ("1", "10", "100"))


def test_page_names_are_safe_and_distinct(demo: Any) -> None:
    key: SeriesKey = demo.judgement.series[0].series.key
    hostile = replace(key, config="../../etc/passwd", line="<b>")
    assert series_page(hostile) != series_page(key)
    assert series_page(hostile).count("/") == 1
    assert trial_page(TrialId("../x")).count("/") == 1
    assert trial_page(TrialId("../x")) != trial_page(TrialId("./x"))
