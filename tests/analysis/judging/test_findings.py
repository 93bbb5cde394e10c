from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
from data import make_generator

from analysis.detection.detection import ChangeState, Detector, DetectorResult
from analysis.judging.findings import REPLAYED_NIGHTS, may_be_older
from analysis.judging.judgement import Judgement
from perf.model.results import Observation

Planted = Callable[..., tuple[Observation, ...]]
JudgePlanted = Callable[..., Judgement]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetful:
    """Sees the steps of another detector only while they lie at one of the two newest points."""

    inner: Detector
    name: str = "forgetful"

    def read(self, values: Sequence[float], days: Sequence[int] = ()) -> DetectorResult:
        reading = self.inner.read(values, days)
        newest = tuple(shift for shift in reading.shifts[-1:] if shift.index >= len(values) - 2)
        return DetectorResult(shifts=newest, noise=reading.noise)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """Notes how many values it was given, each time."""

    inner: Detector
    name: str = "counting"
    lengths: list[int] = field(default_factory=list)

    def read(self, values: Sequence[float], days: Sequence[int] = ()) -> DetectorResult:
        self.lengths.append(len(values))
        return self.inner.read(values, days)


def test_a_change_that_came_and_went_is_shown_as_withdrawn(
    planted: Planted, judge_planted: JudgePlanted, jumps: Callable[..., Detector]
) -> None:
    values = [100.0] * 9 + [90.0] + [100.0] * 5
    (judged,) = judge_planted(planted(values), detector=Forgetful(inner=jumps())).series
    assert judged.change_points == ()
    assert [
        (alert.index, alert.rises, alert.state, alert.reported_at, alert.withdrawn_at)
        for alert in judged.alerts
    ] == [(9, False, ChangeState.PROVISIONAL, 9, 10), (10, True, ChangeState.PROVISIONAL, 10, 12)]


def test_a_change_that_stands_is_followed_from_provisional_to_confirmed(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    (judged,) = judge_planted(planted([100.0] * 9 + [90.0] * 6)).series
    (alert,) = judged.alerts
    assert (alert.provisional_at, alert.confirmed_at, alert.withdrawn_at) == (9, 11, None)


def test_what_the_first_night_replayed_saw_may_be_older(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    (judged,) = judge_planted(planted([100.0] * 6 + [90.0] * 9 + [80.0] * 6)).series
    first = 21 - REPLAYED_NIGHTS
    assert [alert.confirmed_at for alert in judged.alerts] == [first, 17]
    assert [may_be_older(judged.series, night) for night in (first, first + 1, 17)] == [
        True, False, False,
    ]  # fmt: skip
    (young,) = judge_planted(planted([100.0] * REPLAYED_NIGHTS)).series
    assert not may_be_older(young.series, 0)


def test_only_what_may_have_shown_a_change_is_replayed(
    planted: Planted, judge_planted: JudgePlanted, jumps: Callable[..., Detector]
) -> None:
    calm = Counting(inner=jumps())
    judge_planted(planted([100.0] * 60), detector=calm)
    assert calm.lengths == [60]
    settled = Counting(inner=jumps())
    (judged,) = judge_planted(planted([100.0] * 30 + [90.0] * 30), detector=settled).series
    assert settled.lengths == [60, 59, 60]  # whether it is new tonight, and no more
    assert judged.alerts == ()
    outlier = Counting(inner=jumps())
    judge_planted(planted([100.0] * 55 + [101.5] + [100.0] * 4), detector=outlier)
    assert outlier.lengths == [60, *range(61 - REPLAYED_NIGHTS, 61)]


def test_a_step_is_found_among_weekly_swings_and_its_size_is_without_them(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    noise = make_generator(1, "findings").standard_normal(80)
    values = [
        100.0 + float(off) / 5 + 8 * (night % 7 in (5, 6)) - 20 * (night >= 75)
        for night, off in enumerate(noise)
    ]
    (judged,) = judge_planted(planted(values)).series  # the detector takes each difference beyond 5
    (change,) = judged.change_points
    assert change.index == 75
    assert change.after - change.before == pytest.approx(
        -20, abs=0.5
    )  # three of five nights are weekend
    (alert,) = judged.alerts
    assert (alert.confirmed_at, alert.withdrawn_at) == (77, None)
