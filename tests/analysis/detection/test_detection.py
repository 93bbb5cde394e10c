from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.detection.detection import ChangePoint, ChangeState, DetectorResult, Shift, find_changes
from analysis.detection.series import build_series
from analysis.detection.verdict import Outcome
from perf.model.results import Observation
from perf.model.rules import Detection

Make = Callable[..., tuple[Observation, ...]]

SETTINGS = Detection(
    max_p_value=2e-4,
    max_rank_p_value=0.001,
    provisional_p_value=0.001,
    provisional_rank_p_value=0.01,
    window_points=100,
    minimum_points=6,
    confirming_points=3,
    false_alarms_per_1000_series_nights=1.0,
    judged={"throughput": ("mean",), "response_time": ("p50", "p99"), "service_time": ("p99",)},
    relevant_change={"throughput": 0.05, "response_time": 0.1},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A detector that finds shifts where it is told to."""

    indexes: tuple[int, ...]
    name: str = "planted"

    def read(self, values: Sequence[float], days: Sequence[int] = ()) -> DetectorResult:
        """Return the planted shifts."""
        bounds = (0, *self.indexes, len(values))
        return DetectorResult(
            shifts=tuple(
                Shift(
                    index=index,
                    earliest=index,
                    latest=index,
                    p_value=1e-6,
                    is_confirmed=min(index - start, end - index) >= 3,
                )
                for start, index, end in zip(bounds, bounds[1:], bounds[2:], strict=False)
            )
        )


def changes(observations: Sequence[Observation], *indexes: int) -> tuple[ChangePoint, ...]:
    (series,) = build_series(observations)
    reading = Planted(indexes=indexes).read([point.value for point in series.points])
    return find_changes(series, reading, "planted")


@pytest.mark.parametrize(
    ("metric", "after", "outcome"),
    [
        ("throughput", 80.0, Outcome.REGRESSED),
        ("throughput", 120.0, Outcome.IMPROVED),
        ("response_time", 80.0, Outcome.IMPROVED),
        ("response_time", 120.0, Outcome.REGRESSED),
        ("service_time", 120.0, Outcome.REGRESSED),
    ],
)
def test_the_outcome_follows_the_direction_of_the_metric(
    make_observations: Make, metric: str, after: float, outcome: Outcome
) -> None:
    (change,) = changes(make_observations([100.0] * 5 + [after] * 5, metric=metric), 5)
    assert change.outcome is outcome


@given(levels=st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)).filter(lambda pair: pair[0] != pair[1]))
def test_a_series_read_backwards_swaps_the_outcome(
    make_observations: Make, levels: tuple[float, float]
) -> None:
    first, second = levels
    (forth,) = changes(make_observations([first] * 4 + [second] * 4), 4)
    (back,) = changes(make_observations([second] * 4 + [first] * 4), 4)
    assert {forth.outcome, back.outcome} == {Outcome.REGRESSED, Outcome.IMPROVED}
    assert (forth.before, forth.after) == (back.after, back.before)


def test_means_and_counts_are_those_of_the_neighbouring_segments(make_observations: Make) -> None:
    values = [100.0, 102.0, 98.0, 80.0, 82.0, 78.0, 80.0, 50.0, 50.0, 50.0]
    first, second = changes(make_observations(values), 3, 7)
    assert (first.before, first.after, first.points_after) == (100.0, 80.0, 4)
    assert (second.before, second.after, second.points_after) == (80.0, 50.0, 3)
    assert first.relative_change == pytest.approx(-0.2)
    assert (first.last_before.value, first.first_after.value, first.index) == (98.0, 80.0, 3)
    assert (first.p_value, first.detector) == (1e-6, "planted")


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        (10, 1, ChangeState.PROVISIONAL),
        (10, 2, ChangeState.PROVISIONAL),
        (10, 3, ChangeState.CONFIRMED),
        (3, 10, ChangeState.CONFIRMED),
        (2, 10, ChangeState.PROVISIONAL),
    ],
)
def test_a_change_is_confirmed_by_enough_points_on_both_sides(
    make_observations: Make, before: int, after: int, state: ChangeState
) -> None:
    (change,) = changes(make_observations([100.0] * before + [80.0] * after), before)
    assert change.state is state


def test_neither_a_spike_nor_the_return_from_it_is_confirmed(make_observations: Make) -> None:
    values = [100.0] * 8 + [50.0] + [100.0] * 8
    there, back = changes(make_observations(values), 8, 9)
    assert there.state is back.state is ChangeState.PROVISIONAL


@pytest.mark.parametrize(("after", "sign"), [(5.0, 1), (-5.0, -1)])
def test_a_change_from_zero_is_infinite(make_observations: Make, after: float, sign: int) -> None:
    (change,) = changes(make_observations([0.0] * 5 + [after] * 5), 5)
    assert change.relative_change == sign * float("inf")


def test_no_shift_is_no_change(make_observations: Make) -> None:
    assert changes(make_observations([100.0] * 5)) == ()
