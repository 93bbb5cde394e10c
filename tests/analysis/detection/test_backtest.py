from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from data import make_generator

from analysis.detection.backtest import Backtest, Judge
from analysis.detection.detection import ChangeState, DetectorResult, Drift, Shift, SpreadChange
from analysis.detection.noise import Noise, minimum_detectable_effect
from analysis.detection.series_file import ForeignSeries
from analysis.detection.verdict import Outcome
from analysis.detection.weeks import find_week, without_week
from perf.model.metrics import Better
from perf.model.rules import Detection


@dataclass(frozen=True, slots=True)
class Jumps:
    """Sees a shift wherever neighbours differ by more than five; drift and spread around it."""

    name: str = "jumps"
    seen: list[list[float]] = field(default_factory=list)

    def read(self, values: Sequence[float], days: Sequence[int] = ()) -> DetectorResult:
        self.seen.append(list(values))
        week = find_week(values, days)
        values = without_week(values, days, week).tolist()
        places = [index for index, (a, b) in enumerate(pairwise(values), start=1) if abs(b - a) > 5]
        return DetectorResult(
            shifts=tuple(
                Shift(
                    index=place,
                    earliest=place,
                    latest=place,
                    p_value=1e-6,
                    is_confirmed=len(values) - place >= 3,
                )
                for place in places
            ),
            drifts=tuple(Drift(first=place - 1, last=place, before=1, after=2) for place in places),
            spreads=tuple(SpreadChange(index=place, before=1, after=2, p_value=0) for place in places),
            noise=Noise(deviation=2.0, persistence=0.0, level=100.0, points=4, all_points=60),
            week=week,
        )


SETTINGS = Detection(
    max_p_value=2e-4,
    max_rank_p_value=0.001,
    provisional_p_value=0.001,
    provisional_rank_p_value=0.01,
    window_points=50,
    minimum_points=4,
    confirming_points=3,
    false_alarms_per_1000_series_nights=1.0,
    judged={},
    relevant_change={},
)


def series(*values: float | None, better: Better = Better.HIGHER) -> ForeignSeries:
    return ForeignSeries(name="a", better=better, values=values)


GAPS = (None, 100.0, 100.0, None, 100.0, None, 80.0, 80.0, None, 80.0, None)
"""Known are 1, 2, 4, 6, 7 and 9; the step is in front of 6."""


def test_missing_trials_are_left_out_and_indexes_count_them_all_the_same() -> None:
    detector = Jumps()
    found = Judge(settings=SETTINGS, detector=detector)(series(*GAPS))
    assert detector.seen == [[100.0, 100.0, 100.0, 80.0, 80.0, 80.0]]
    (change,) = found.changes
    # The planted drift rises by 1 up to the step, so the level before the step is 1 higher there.
    assert (change.index, change.before, change.after) == (6, 101.0, 80.0)
    assert (change.state, change.relative_change) == (ChangeState.CONFIRMED, pytest.approx(-21 / 101))
    assert [(drift.first, drift.last) for drift in found.drifts] == [(4, 6)]
    assert [spread.index for spread in found.spreads] == [6]


def test_a_long_series_is_read_in_stretches_as_one_of_the_history_is() -> None:
    detector = Jumps()
    values = [100.0] * 300 + [80.0] * 650 + [None] * 50 + [90.0] * 150
    found = Judge(settings=SETTINGS, detector=detector)(series(*values))
    assert [len(seen) for seen in detector.seen] == [768, 588]
    assert [change.index for change in found.changes] == [300, 1000]


def test_the_outcome_is_by_what_is_better() -> None:
    judge = Judge(settings=SETTINGS, detector=Jumps())
    outcomes = [judge(series(*GAPS, better=better)).changes[0].outcome for better in Better]
    assert outcomes == [Outcome.REGRESSED, Outcome.IMPROVED]


def test_the_noise_is_reported_as_shares_of_the_level_for_the_fewest_nights_that_confirm() -> None:
    found = Judge(settings=SETTINGS, detector=Jumps())(series(*GAPS))
    noise = Noise(deviation=2.0, persistence=0.0, level=100.0, points=4, all_points=60)
    assert found.noise_floor == 0.02
    # Ranks of 4 against 12 reach 2 / 1820, of 4 against 13 at last 2 / 2380.
    expected = minimum_detectable_effect(noise, 13, SETTINGS.max_p_value)
    assert found.minimum_detectable_effect == expected


def test_too_few_points_give_no_changes_and_nulls() -> None:
    found = Judge(settings=SETTINGS, detector=Jumps())(series(1.0, None, 100.0, 1.0))
    assert (found.changes, found.noise_floor, found.minimum_detectable_effect) == ((), None, None)


def test_each_night_knows_the_points_up_to_it_and_is_called_by_the_last_of_them() -> None:
    detector = Jumps()
    (alert,) = Backtest(settings=SETTINGS, detector=detector, first=1)(series(*GAPS)).alerts
    assert [len(values) for values in detector.seen] == [4, 5, 6]
    assert (alert.index, alert.provisional_at, alert.confirmed_at) == (6, 6, 9)


def test_the_first_night_judged_knows_as_many_points_as_asked_for() -> None:
    detector = Jumps()
    (alert,) = Backtest(settings=SETTINGS, detector=detector, first=6)(series(*GAPS)).alerts
    assert [len(values) for values in detector.seen] == [6]
    assert (alert.provisional_at, alert.confirmed_at) == (None, 9)
    assert Backtest(settings=SETTINGS, detector=detector, first=7)(series(*GAPS)).alerts == ()


def test_the_cost_counts_the_values_searched() -> None:
    whole = series(*[1.0] * 10)
    assert Judge(settings=SETTINGS, detector=Jumps()).cost(whole) == 10
    assert Backtest(settings=SETTINGS, detector=Jumps(), first=8).cost(whole) == 8 + 9 + 10
    assert Backtest(settings=SETTINGS, detector=Jumps(), first=11).cost(whole) == 0


def test_a_weekly_swing_is_taken_out_by_the_place_also_where_trials_are_missing() -> None:
    noise = make_generator(1, "backtest").standard_normal(120)
    values = [100 + float(off) / 5 + 8 * (place % 7 in (5, 6)) for place, off in enumerate(noise)]
    with_gaps = [None if place % 13 == 4 else value for place, value in enumerate(values)]
    detector = Jumps()
    assert Judge(settings=SETTINGS, detector=detector)(series(*with_gaps)).changes == ()
    found = Backtest(settings=SETTINGS, detector=detector, first=60)(series(*with_gaps))
    assert found.alerts == ()
