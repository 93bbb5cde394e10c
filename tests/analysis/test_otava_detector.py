import math
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from otava.analysis import compute_change_points
from scipy.stats import ttest_ind

from analysis.otava_detector import OtavaDetector

OTAVA = OtavaDetector(max_p_value=1e-5, window_points=100)


def noise(seed: int, count: int, mean: float = 100.0, deviation: float = 1.0) -> list[float]:
    generator = random.Random(seed)  # noqa: S311  test data, not a secret
    return [generator.gauss(mean, deviation) for _ in range(count)]


def places(values: list[float]) -> list[int]:
    return [shift.index for shift in OTAVA.read(values).shifts]


@given(
    seed=st.integers(0, 10_000), at=st.integers(10, 50), size=st.sampled_from([-12.0, -6.0, 6.0, 12.0])
)
@settings(max_examples=40, deadline=None)
def test_a_planted_step_is_found_where_it_is(seed: int, at: int, size: float) -> None:
    found = places(noise(seed, at) + noise(seed + 1, 60 - at, 100 + size))
    assert len(found) == 1
    assert abs(found[0] - at) <= 1


def test_several_steps_are_found_across_windows() -> None:
    values = noise(1, 70) + noise(2, 60, 110) + noise(3, 70, 95)
    assert [round(place, -1) for place in places(values)] == [70, 130]


def test_pure_noise_is_quiet() -> None:
    """Measured with these seeds: 0 of 200 series of 30 points show a shift; 0 of 20 of 200 points."""
    short = sum(bool(places(noise(seed, 30))) for seed in range(200))
    long = sum(bool(places(noise(seed, 200))) for seed in range(1000, 1020))
    assert short <= 2
    assert long <= 1


def test_the_p_value_is_that_of_students_test_with_sample_deviations() -> None:
    values = noise(1, 20) + noise(2, 8, 110)
    (shift,) = OTAVA.read(values).shifts
    expected = ttest_ind(values[: shift.index], values[shift.index :]).pvalue
    assert shift.p_value == pytest.approx(expected, rel=1e-6)


def test_what_only_a_population_deviation_would_call_significant_is_dropped() -> None:
    """Otava alone reports this step: p is 8.8e-5 by the population deviation, honestly 2.0e-4."""
    values = [99.0, 100.0, 101.0, 109.7, 110.7, 111.7]
    found, _ = compute_change_points(list(values), max_pvalue=1e-4)
    assert [change.index for change in found] == [3]
    assert OtavaDetector(max_p_value=1e-4, window_points=100).read(values).shifts == ()
    assert len(OtavaDetector(max_p_value=3e-4, window_points=100).read(values).shifts) == 1


@pytest.mark.parametrize("size", [5.0, 20.0])
def test_a_level_that_went_and_came_back_is_found(size: float) -> None:
    """Measured: 35 and 40 of 40. At its own search level Otava finds 1 and 0."""
    found = 0
    for seed in range(40):
        values = noise(seed, 15) + noise(seed + 100, 15, 100 - size) + noise(seed + 200, 15)
        found += places(values) == [15, 30]
    assert found >= 30


@given(
    seed=st.integers(0, 1000), scale=st.sampled_from([1e-6, 0.3, 7.0, 1e6]), shift=st.floats(-50, 1e4)
)
@settings(max_examples=40, deadline=None)
def test_units_and_offsets_do_not_move_shifts(seed: int, scale: float, shift: float) -> None:
    values = noise(seed, 20) + noise(seed + 1, 15, 112)
    moved = OTAVA.read([scale * (value + shift) for value in values]).shifts
    original = OTAVA.read(values).shifts
    assert [s.index for s in moved] == [s.index for s in original]
    assert [s.p_value for s in moved] == pytest.approx([s.p_value for s in original], rel=1e-3)


def test_the_same_values_give_the_same_shifts_and_are_left_alone() -> None:
    values = noise(1, 40) + noise(2, 40, 105)
    copy = list(values)
    assert OTAVA.read(values).shifts == OTAVA.read(tuple(values)).shifts
    assert values == copy


def test_a_numpy_array_is_judged_like_a_list() -> None:
    values = noise(1, 60) + noise(2, 60, 110)
    assert OTAVA.read(np.array(values)).shifts == OTAVA.read(values).shifts  # type: ignore[arg-type]  # on purpose


def test_plain_python_numbers_come_back() -> None:
    (shift,) = OTAVA.read(noise(1, 20) + noise(2, 20, 110)).shifts
    assert type(shift.index) is int
    assert type(shift.p_value) is float


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_refused_instead_of_silencing_the_series(bad: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        OTAVA.read([*noise(1, 20), bad, *noise(2, 20, 120)]).shifts


@pytest.mark.parametrize("length", range(8))
def test_short_series_are_safe(length: int) -> None:
    assert OTAVA.read([1.0, 2.0, 1.5, 1.7, 2.1, 1.9, 1.2][:length]).shifts == ()


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 12345.678])
@pytest.mark.parametrize("length", [1, 2, 7, 50, 120])
def test_a_constant_series_has_no_shift(value: float, length: int) -> None:
    assert OTAVA.read([value] * length).shifts == ()


@pytest.mark.parametrize("at", [3, 7, 25, 33])
@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3])
def test_two_constants_have_one_shift_despite_rounding(at: int, value: float) -> None:
    assert places([value] * at + [value + 1.5] * (60 - at)) == [at]


@given(values=st.lists(st.sampled_from([0.0, 0.1, 0.2, 5.0]), max_size=70))
@settings(max_examples=60, deadline=None)
def test_coarse_values_never_warn_and_every_shift_is_significant(values: list[float]) -> None:
    shifts = OTAVA.read(values).shifts
    assert all(shift.p_value < OTAVA.max_p_value for shift in shifts)
    assert all(a.index < b.index for a, b in pairwise(shifts))


def test_a_single_outlier_inside_a_series_is_no_shift() -> None:
    """Measured: 0 of 50. At the last point it is reported (50 of 50): see the confirming points."""
    inside = sum(bool(places([*noise(seed, 20), 110.0, *noise(seed + 1, 19)])) for seed in range(50))
    last = sum(bool(places([*noise(seed, 39), 110.0])) for seed in range(50))
    assert inside <= 1
    assert last >= 40
