from collections.abc import Callable
from typing import Any

import pytest

from analysis.detection.detection import Detector
from analysis.detection.verdict import Outcome
from analysis.judging.description import list_notes, say_basis
from analysis.judging.drift import WatchState
from analysis.judging.incidents import Cause, Incident
from analysis.judging.judgement import Judgement
from perf.model.results import Observation, Purpose

Planted = Callable[..., tuple[Observation, ...]]
JudgePlanted = Callable[..., Judgement]
DROP = [100.0] * 9 + [90.0] * 6
STILL = [100.0] * 15
RELEASES = range(1, 16)


def plain(text: str) -> str:
    """Return a text without the spaces that keep the name of a night together."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def canary(
    planted: Planted, values: list[float], metric: str = "canary_cpu"
) -> tuple[Observation, ...]:
    return planted(
        values, operation="canary", phase="canary-before", metric=metric, statistic="median", host="n1"
    )


def sentinel(
    planted: Planted,
    values: list[float],
    every: int = 1,
    **key: Any,  # noqa: ANN401  the fields of SeriesKey
) -> tuple[Observation, ...]:
    return planted(values, purpose=Purpose.SENTINEL, every=every, minute=30, **key)


def only(judgement: Judgement) -> Incident:
    (incident,) = judgement.incidents
    return incident


def test_a_canary_that_slowed_down_too_makes_a_regression_the_testbeds(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    slower = canary(planted, [10.0] * 9 + [11.0] * 6)
    judgement = judge_planted(planted(DROP), slower)
    assert judgement.outcome is Outcome.UNDECIDED
    assert only(judgement).cause is Cause.TESTBED
    assert only(judgement).is_news  # of the testbed
    reason = say_basis(judgement.series[0])
    assert (
        "is the testbed's, not the database's: canary_cpu on n1, before each trial moved too: a rise of"
        " 10 % between the nights 9 Nov 2026 #1 and 10 Nov 2026 #1 (p < 0.0001, confirmed)"
    ) in plain(reason)
    assert [watched.series.key.metric for watched in judgement.watched] == ["canary_cpu"]
    assert len(judgement.series) == 1


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ([10.0] * 9 + [9.0] * 6, WatchState.MOVED_AGAINST),
        ([10.0] * 9 + [10.3] * 6, WatchState.MOVED_LESS),
        ([10.0] * 4 + [11.0] * 11, WatchState.STILL),
    ],
)
def test_a_canary_that_does_not_match_accuses_nobody(
    planted: Planted, judge_planted: JudgePlanted, jumps: Callable[..., Detector], values: list[float],
    state: WatchState,
) -> None:  # fmt: skip
    detector = jumps(deviation=0.05)
    judgement = judge_planted(planted(DROP), canary(planted, values), detector=detector)
    assert judgement.outcome is Outcome.REGRESSED
    (evidence,) = only(judgement).evidence
    assert evidence.state is state
    # That a host's computing is as it was does not show that nothing of the testbed changed.
    assert only(judgement).cause is Cause.UNKNOWN


def test_canaries_of_other_trials_are_not_asked(planted: Planted, judge_planted: JudgePlanted) -> None:
    slower = planted(
        [10.0] * 9 + [11.0] * 6, phase="canary-before", metric="canary_cpu", testbed_class="other"
    )
    judgement = judge_planted(planted(DROP), slower)
    assert only(judgement).evidence == ()
    assert judgement.outcome is Outcome.REGRESSED


def test_a_sentinel_that_dropped_too_makes_it_the_testbeds(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    judgement = judge_planted(planted(DROP), watched=sentinel(planted, [70.0] * 9 + [63.0] * 6))
    assert judgement.outcome is Outcome.UNDECIDED
    assert only(judgement).cause is Cause.TESTBED
    assert "sentinel cassandra 5.0.1, sensor-write: throughput of write at saturation moved too" in (
        say_basis(judgement.series[0])
    )


def test_a_sentinel_that_stood_still_makes_it_the_databases_whatever_a_canary_says(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    judgement = judge_planted(
        planted(DROP, RELEASES),
        canary(planted, [10.0] * 9 + [11.0] * 6),
        watched=sentinel(planted, STILL),
    )
    assert judgement.outcome is Outcome.REGRESSED
    assert only(judgement).cause is Cause.DATABASE
    assert (
        "did not move (9 points before, 6 after, which show ≥"
        in list_notes(judgement.series[0].verdict)[-1]
    )
    assert [one.follows for one in only(judgement).evidence] == [False, True]


def test_a_sentinel_of_every_fifth_night_answers_once_it_was_measured_again(
    planted: Planted, judge_planted: JudgePlanted, jumps: Callable[..., Detector]
) -> None:
    quiet = jumps(deviation=0.1)
    nights = [100.0] * 37 + [90.0] * 30  # the drop comes in on the 38th night
    sparse = sentinel(planted, [50.0] * 14, every=5)  # nights 1, 6 … 36, 41 … 66
    waiting = judge_planted(planted(nights[:40]), watched=sparse[:8], detector=quiet)
    (evidence,) = only(waiting).evidence
    assert not evidence.is_decisive
    assert (evidence.state, evidence.last_night) == (WatchState.SILENT, "2026-12-06-1")
    assert only(waiting).cause is Cause.UNKNOWN
    assert "not measured since" in list_notes(waiting.series[0].verdict)[-1]
    short = judge_planted(planted(nights[:47]), watched=sparse[:10], detector=quiet)
    evidence = only(short).evidence[0]
    assert (evidence.state, evidence.before, evidence.after) == (WatchState.SHORT, 8, 2)
    answered = judge_planted(planted(nights, range(1, 68)), watched=sparse, detector=quiet)
    assert only(answered).evidence[0].is_decisive
    assert only(answered).cause is Cause.DATABASE


def test_a_sparse_sentinel_that_moved_somewhere_in_its_gap_counts(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    nights = [100.0] * 37 + [90.0] * 8
    sparse = sentinel(planted, [50.0] * 8 + [45.0], every=5)
    assert only(judge_planted(planted(nights), watched=sparse)).cause is Cause.TESTBED


def test_a_sentinel_too_noisy_for_the_change_cannot_tell(
    planted: Planted, judge_planted: JudgePlanted, jumps: Callable[..., Detector]
) -> None:
    noisy = judge_planted(
        planted(DROP), watched=sentinel(planted, STILL), detector=jumps(deviation=10.0)
    )
    assert not only(noisy).evidence[0].is_decisive
    assert only(noisy).evidence[0].state is WatchState.UNSEEN
    assert only(noisy).cause is Cause.UNKNOWN


def test_a_sentinel_with_hardly_a_point_cannot_tell(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    judgement = judge_planted(planted(DROP), watched=sentinel(planted, [100.0] * 4, every=4))
    evidence = only(judgement).evidence[0]
    assert (evidence.state, evidence.before, evidence.after) == (WatchState.SHORT, 3, 1)
    assert only(judgement).cause is Cause.UNKNOWN


def test_the_sentinel_of_the_same_work_is_asked_before_others(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    moved, still = [50.0] * 9 + [45.0] * 6, [80.0] * 15
    reading: dict[str, Any] = {"workload": "sensor-read@0123456789ab", "operation": "read"}
    watched = (*sentinel(planted, still), *sentinel(planted, moved, **reading))
    judgement = judge_planted(planted(DROP, RELEASES), watched=watched)
    assert only(judgement).cause is Cause.DATABASE
    assert len(only(judgement).evidence) == 1
    assert len(judgement.watched) == 2
    only_other = judge_planted(planted(DROP), watched=sentinel(planted, moved, **reading))
    assert only(only_other).cause is Cause.TESTBED


def test_two_old_releases_of_one_sentinel_are_two_series(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    old = planted([100.0] * 15, releases=[1] * 15, minute=30, purpose=Purpose.SENTINEL)
    older = planted([50.0] * 15, releases=[3] * 15, minute=40, purpose=Purpose.SENTINEL)
    judgement = judge_planted(planted([100.0] * 15), watched=(*old, *older))
    assert [one.series.key.line for one in judgement.watched] == ["5.0.1", "5.0.3"]
    assert all(not one.change_points for one in judgement.watched)


def test_releases_that_take_turns_rule_the_testbed_out(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    turns = planted([100.0, 90.0] * 8, releases=[1, 2] * 8)
    judgement = judge_planted(turns, canary(planted, [10.0] * 9 + [11.0] * 7))
    (evidence,) = only(judgement).evidence
    assert evidence.state is WatchState.ALTERNATED
    assert only(judgement).cause is Cause.DATABASE
    assert judgement.outcome is Outcome.REGRESSED


def test_a_real_regression_is_not_hidden_by_a_later_one_of_the_testbed(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    values = [100.0] * 6 + [80.0] * 6 + [72.0] * 6
    judgement = judge_planted(planted(values), canary(planted, [10.0] * 12 + [11.0] * 6))
    assert [incident.cause for incident in judgement.incidents].count(Cause.TESTBED) == 1
    assert judgement.outcome is Outcome.REGRESSED
    assert "a drop of 20 % between the nights 6 Nov 2026 #1" in plain(say_basis(judgement.series[0]))


def test_a_watched_series_is_shown_with_the_change_that_was_found_in_it(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    judgement = judge_planted(planted(DROP), watched=sentinel(planted, [70.0] * 9 + [63.0] * 6))
    (watched,) = judgement.watched
    assert [change.index for change in watched.change_points] == [9]
