import math
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.detection.series import build_series
from perf.model.results import Observation, TrialId, TrialStatus

Make = Callable[..., tuple[Observation, ...]]


@given(seed=st.integers(0, 1000))
def test_the_order_of_arrival_does_not_matter(make_observations: Make, seed: int) -> None:
    generator = random.Random(seed)  # noqa: S311  test data, not a secret
    values = [generator.gauss(100, 1) for _ in range(12)]
    observations = [
        *make_observations(values, per_release=3),
        *make_observations(values[:5], metric="response_time"),
    ]
    shuffled = generator.sample(observations, len(observations))
    assert build_series(shuffled) == build_series(observations)


def test_points_follow_the_release_and_then_the_night(make_observations: Make) -> None:
    first, second = make_observations([1.0, 2.0])  # 5.0.1, then 5.0.2 one day later
    again = replace(
        first, trial=TrialId("again"), started_at=first.started_at + timedelta(days=9), value=3.0
    )
    (series,) = build_series([again, second, first])
    assert [point.value for point in series.points] == [1.0, 3.0, 2.0]


def test_lines_and_releases_are_ordered_by_number_not_by_text(make_observations: Make) -> None:
    (one,) = make_observations([0.0], line="all")
    versions = [("4.1", 9), ("4.1", 10), ("5.0", 1), ("10.0", 0)]
    observations = [
        replace(
            one,
            trial=TrialId(f"{line}.{ordinal}"),
            release=replace(one.release, version=f"{line}.{ordinal}", line=line, ordinal=ordinal),
        )
        for line, ordinal in versions
    ]
    (series,) = build_series(reversed(observations))
    assert [point.release.version for point in series.points] == ["4.1.9", "4.1.10", "5.0.1", "10.0.0"]


@pytest.mark.parametrize("status", [TrialStatus.INVALID, TrialStatus.FAILED])
def test_only_completed_trials_enter_and_gaps_stay_gaps(
    make_observations: Make, status: TrialStatus
) -> None:
    first, second, third = make_observations([1.0, math.nan, 3.0])
    (series,) = build_series([first, replace(second, status=status), third])
    assert [point.value for point in series.points] == [1.0, 3.0]


def test_a_key_without_a_completed_trial_is_not_silently_lost(make_observations: Make) -> None:
    (one,) = make_observations([1.0])
    (series,) = build_series([replace(one, status=TrialStatus.FAILED)])
    assert series.key == one.key
    assert series.points == ()


@pytest.mark.parametrize("field", ["value", "iterations"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_completed_trial_with_a_value_that_is_not_finite_is_refused_by_name(
    make_observations: Make, field: str, bad: float
) -> None:
    (one,) = make_observations([1.0])
    broken = replace(one, value=bad) if field == "value" else replace(one, iterations=(1.0, bad))
    with pytest.raises(ValueError, match=r"trial-0000.*not a finite number"):
        build_series([broken])


def test_two_values_of_one_trial_in_one_series_are_refused(make_observations: Make) -> None:
    (one,) = make_observations([1.0])
    with pytest.raises(ValueError, match=r"trial-0000.*two values"):
        build_series([one, replace(one, value=2.0)])


def test_nights_are_in_the_order_of_time_whatever_the_order_of_the_points(
    make_observations: Make,
) -> None:
    nights = ["2026-03-02-1", "2026-03-01-10", "2026-03-01-9", "2026-03-02-1"]
    observations = [
        replace(observation, night=night)
        for observation, night in zip(make_observations([1.0] * 4), nights, strict=True)
    ]
    (series,) = build_series(observations)
    assert [point.night for point in series.points] == nights
    assert series.points.nights_in_order == ("2026-03-01-9", "2026-03-01-10", "2026-03-02-1")


def test_points_tell_their_trials_and_the_places_of_a_night(make_observations: Make) -> None:
    nights = ["2026-03-02-1", "2026-03-01-1", "2026-03-02-1"]
    observations = [
        replace(observation, night=night)
        for observation, night in zip(make_observations([1.0] * 3), nights, strict=True)
    ]
    others = [replace(one, key=replace(one.key, statistic="p99")) for one in observations]
    points, other = (one.points for one in build_series([*observations, *others]))
    assert points.trials == tuple(one.trial for one in observations)
    assert points.trials is other.trials
    assert points[1:].trials == points.trials[1:]
    assert points.places_of("2026-03-02-1") == [0, 2]
    assert points.places_of("2026-03-03-1") == []


def test_a_moving_target_is_a_series_by_night(make_observations: Make) -> None:
    observations = make_observations([1.0, 2.0, 3.0], per_release=3)
    (series,) = build_series(reversed(observations))
    assert len({point.release for point in series.points}) == 1
    assert [point.value for point in series.points] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "which",
    [slice(None), slice(3), slice(2, 5), slice(5, None), slice(-3, None), slice(4, 4), slice(6, 2)],
)
def test_neighbouring_points_are_taken_as_of_a_tuple(make_observations: Make, which: slice) -> None:
    observations = [
        replace(one, iterations=(float(number),) * (number % 3))
        for number, one in enumerate(make_observations([5.0, 1.0, 4.0, 2.0, 8.0, 7.0, 3.0]))
    ]
    (series,) = build_series(observations)
    taken, expected = series.points[which], tuple(series.points)[which]
    assert taken == expected
    assert [one.iterations for one in taken] == [one.iterations for one in expected]
    assert taken[1:] == expected[1:]  # and so on, of what was taken
    assert list(taken.values) == [one.value for one in expected]


def test_only_neighbouring_points_can_be_taken(make_observations: Make) -> None:
    (series,) = build_series(make_observations([1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match="only neighbouring points"):
        series.points[::2]


def test_what_is_asked_of_all_occasions_is_a_function_that_is_asked_once(
    make_observations: Make,
) -> None:
    (series,) = build_series(make_observations([1.0, 2.0]))
    with pytest.raises(TypeError, match="is no function of a module"):
        series.points.has(lambda _: True)
