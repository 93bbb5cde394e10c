import math
import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from budget import tries
from catalogs import shipped
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.detection.detection import DetectorResult, levels
from analysis.detection.step_detector import StepDetector

SETTINGS = shipped().detection
DETECTOR = StepDetector(settings=SETTINGS)


def noise(seed: int, count: int, mean: float = 100.0, deviation: float = 1.0) -> list[float]:
    generator = random.Random(seed)  # noqa: S311  test data, not a secret
    return [generator.gauss(mean, deviation) for _ in range(count)]


def read(values: Sequence[float]) -> DetectorResult:
    return DETECTOR.read(values)


def places(values: Sequence[float]) -> list[int]:
    return [shift.index for shift in read(values).shifts]


@given(
    seed=st.integers(0, 10_000), at=st.integers(15, 45), size=st.sampled_from([-12.0, -6.0, 6.0, 12.0])
)
@settings(max_examples=tries(40), deadline=None)
def test_a_planted_step_is_found_where_it_is(seed: int, at: int, size: float) -> None:
    (shift,) = read(noise(seed, at) + noise(seed + 1, 60 - at, 100 + size)).shifts
    assert abs(shift.index - at) <= 1
    assert shift.earliest <= at <= shift.latest
    assert shift.is_confirmed


def test_several_steps_are_found_across_windows() -> None:
    values = noise(1, 70) + noise(2, 60, 110) + noise(3, 70, 95)
    assert [round(place, -1) for place in places(values)] == [70, 130]


def test_pure_noise_is_quiet() -> None:
    short = sum(bool(places(noise(seed, 30))) for seed in range(200))
    long = sum(bool(places(noise(seed, 200))) for seed in range(1000, 1020))
    assert short <= 4
    assert long <= 1


@pytest.mark.parametrize("size", [5.0, 20.0])
def test_a_level_that_went_and_came_back_is_found(size: float) -> None:
    found = 0
    for seed in range(40):
        values = noise(seed, 15) + noise(seed + 100, 15, 100 - size) + noise(seed + 200, 15)
        found += places(values) == [15, 30]
    assert found >= 30


def test_a_spike_at_the_end_is_at_most_provisional_and_leaves_hardly_a_trace() -> None:
    left = 0
    for seed in range(30):
        values = [*noise(seed, 60), 110.0]
        assert not any(shift.is_confirmed for shift in read(values).shifts)
        left += bool(places(values + noise(seed + 500, 12)))
    assert left <= 1


def test_two_outliers_in_a_row_are_never_confirmed() -> None:
    for seed in range(30):
        shifts = read([*noise(seed, 60), 108.0, 109.0]).shifts
        assert not any(shift.is_confirmed for shift in shifts)


def test_two_outliers_and_then_calm_nights_are_nothing() -> None:
    for seed in range(30):
        shifts = read([*noise(seed, 60), 115.0, 116.0, *noise(seed + 500, 2)]).shifts
        assert not any(shift.is_confirmed for shift in shifts)


def test_a_step_that_one_point_carries_is_not_confirmed() -> None:
    confirmed = 0
    for seed in range(30):
        shifts = read([*noise(seed, 60), 104.8, 101.8, 101.7]).shifts
        confirmed += any(shift.is_confirmed for shift in shifts)
    assert confirmed <= 3


@pytest.mark.parametrize("place", [40, 80])
def test_a_step_stays_confirmed_when_the_host_scatters_more_later(place: int) -> None:
    lasting = 0
    for seed in range(30):
        values = [value + 3 * (at >= place) for at, value in enumerate(noise(seed, 200))]
        values[120:] = [103 + 4 * (value - 103) for value in values[120:]]
        shifts = read(values).shifts
        lasting += any(abs(one.index - place) <= 3 and one.is_confirmed for one in shifts)
    assert lasting >= 27


def test_three_points_after_a_dozen_are_too_few_to_be_sure() -> None:
    confirmed = 0
    for seed in range(30):
        shifts = read([*noise(seed, 12), *noise(seed + 500, 3, 104)]).shifts
        confirmed += any(shift.is_confirmed for shift in shifts)
    assert confirmed <= 3


def test_the_place_lies_within_its_interval_nine_times_in_ten() -> None:
    within = 0
    for seed in range(40):
        shifts = read(noise(seed, 60) + noise(seed + 500, 60, 102)).shifts
        within += any(shift.earliest <= 60 <= shift.latest for shift in shifts)
    assert within >= 36


def test_many_steps_do_not_hide_each_other() -> None:
    values = [value for step in range(6) for value in noise(step, 10, 100 + 10 * step)]
    assert len(read(values).shifts) == 5


def test_an_outlier_in_a_segment_does_not_turn_a_step_round() -> None:
    values = noise(1, 60) + noise(2, 40, 103)
    values[80] = -900.0
    reading = read(values)
    (reported,) = levels(values, reading, ())
    assert reported[2] - reported[1] == pytest.approx(3, abs=1)


def test_a_large_step_shows_in_its_first_night_and_is_confirmed_in_its_third() -> None:
    first = sum(len(read([*noise(seed, 60), *noise(seed + 99, 1, 106)]).shifts) for seed in range(30))
    third = [read([*noise(seed, 60), *noise(seed + 99, 3, 106)]).shifts for seed in range(30)]
    assert first >= 25
    assert sum(any(shift.is_confirmed for shift in shifts) for shifts in third) >= 25


def test_a_slow_drift_is_no_step() -> None:
    reported = [
        read([value + 8 * place / 200 for place, value in enumerate(noise(seed, 200))])
        for seed in range(10)
    ]
    assert sum(len(reading.shifts) for reading in reported) <= 3
    for reading in reported:
        (drift,) = reading.drifts
        assert drift.last - drift.first > 80
        assert 4 < drift.after - drift.before < 10


def test_a_step_within_a_drift_is_found() -> None:
    values = [value + 8 * place / 200 + 8 * (place >= 120) for place, value in enumerate(noise(5, 200))]
    assert any(abs(place - 120) <= 2 for place in places(values))


def test_a_step_up_in_a_long_way_down_is_a_step_up() -> None:
    values = [
        value - 12 * place / 200 + 6 * (place >= 120) for place, value in enumerate(noise(9, 200))
    ]
    reading = read(values)
    jumps = [
        after - before for shift, before, after, _ in levels(values, reading, ()) if shift.index > 110
    ]
    assert len(reading.drifts) >= 1
    assert 3 < jumps[0] < 9


def test_an_exact_line_is_a_drift_and_nothing_else() -> None:
    reading = read([100 - 0.3 * place for place in range(80)])
    assert (reading.shifts, len(reading.drifts)) == ((), 1)


@pytest.mark.parametrize("unit", [1e-300, 1e300, -1.0])
def test_tiny_and_huge_values_are_values(unit: float) -> None:
    (shift,) = read([unit * value for value in noise(1, 40) + noise(2, 30, 108)]).shifts
    assert abs(shift.index - 40) <= 1


def test_a_change_of_the_scatter_is_reported_as_such() -> None:
    reading = read(noise(1, 100) + noise(2, 100, deviation=3.0))
    assert reading.shifts == ()
    (spread,) = reading.spreads
    assert abs(spread.index - 100) < 20
    assert spread.before == pytest.approx(1.0, rel=0.3)
    assert spread.after == pytest.approx(3.0, rel=0.3)


def test_neither_units_nor_offsets_nor_direction_move_a_step() -> None:
    values = noise(3, 40) + noise(4, 30, 104) + noise(5, 30, 101)
    original = read(values)
    assert len(original.shifts) == 2
    for scale, offset in ((1e-6, 0.0), (7.0, 50.0), (1e6, -3.0), (-1.0, 0.0)):
        moved = read([scale * value + offset for value in values])
        assert [s.index for s in moved.shifts] == [s.index for s in original.shifts]
        assert [s.p_value for s in moved.shifts] == pytest.approx(
            [s.p_value for s in original.shifts], rel=1e-3
        )


def test_lists_tuples_and_arrays_are_judged_alike_and_left_alone() -> None:
    values = noise(1, 60) + noise(2, 60, 110)
    array = np.array(values)
    assert read(values) == read(tuple(values)) == read(array)  # type: ignore[arg-type]  # on purpose
    assert list(array) == values


def test_plain_python_numbers_come_back() -> None:
    (shift,) = read(noise(1, 20) + noise(2, 20, 110)).shifts
    assert [type(part) for part in (shift.index, shift.earliest, shift.latest)] == [int] * 3
    assert type(shift.p_value) is float


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_refused_instead_of_silencing_the_series(bad: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        read([*noise(1, 20), bad, *noise(2, 20, 120)])


@pytest.mark.parametrize("length", range(8))
def test_short_series_are_safe(length: int) -> None:
    assert places([1.0, 2.0, 1.5, 1.7, 2.1, 1.9, 1.2][:length]) == []


def test_five_and_five_quiet_points_are_enough_for_a_step_that_nobody_would_doubt() -> None:
    values = [100.0, 100.1, 99.9, 100.05, 99.95, 80.0, 80.1, 79.9, 80.05, 79.95]
    (shift,) = read(values).shifts
    assert (shift.index, shift.is_confirmed) == (5, True)


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 12345.678])
@pytest.mark.parametrize("length", [1, 2, 7, 50, 120])
def test_a_constant_series_has_no_step(value: float, length: int) -> None:
    assert read([value] * length).shifts == ()


@pytest.mark.parametrize("at", [7, 25, 33])
@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3])
def test_two_constants_have_one_step_despite_rounding(at: int, value: float) -> None:
    assert places([value] * at + [value + 1.5] * (60 - at)) == [at]


@given(values=st.lists(st.sampled_from([0.0, 0.1, 0.2, 5.0]), max_size=70))
@settings(max_examples=tries(60), deadline=None)
def test_coarse_values_never_warn_and_steps_are_in_order_within_their_intervals(
    values: list[float],
) -> None:
    shifts = read(values).shifts
    assert all(a.index < b.index for a, b in pairwise(shifts))
    assert all(shift.earliest <= shift.index <= shift.latest for shift in shifts)
    assert all(0 <= shift.p_value <= 1 for shift in shifts)
