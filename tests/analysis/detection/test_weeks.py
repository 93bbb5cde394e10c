"""Weekly patterns: found where they are, by the days and not by the places; never taken from noise."""

import math
from collections.abc import Sequence

import data
import numpy as np
import pytest

from analysis.detection.weeks import find_week, without_week

NIGHTS = 200
WAVE = (0.0, 1.2, 1.5, 0.7, -0.7, -1.5, -1.2)


def swinging(days: Sequence[int], word: str = "a", swing: float = 1.0) -> list[float]:
    noise = data.make_generator(1, "weeks", word).standard_normal(len(days))
    return [100 + float(off) + swing * WAVE[day % 7] for off, day in zip(noise, days, strict=True)]


def test_a_weekly_pattern_is_taken_out_and_nothing_else() -> None:
    days = range(NIGHTS)
    found = find_week(swinging(days), days)
    assert found == pytest.approx(np.array(WAVE), abs=0.5)
    assert sum(found) == pytest.approx(0)
    left = without_week(swinging(days), days, found)
    assert np.std(left) == pytest.approx(1, abs=0.1)
    assert find_week(left, days) == ()


def test_a_pattern_goes_by_days_where_nights_are_missing() -> None:
    days = [day for day in range(300) if day % 11 not in (3, 4)]
    found = find_week(swinging(days), days)
    assert found == pytest.approx(np.array(WAVE), abs=0.5)
    assert find_week(swinging(days), range(len(days))) == ()  # counted by places, there is none


def test_a_step_stays_whole() -> None:
    days = range(NIGHTS)
    values = [one + 3 * (day >= 100) for one, day in zip(swinging(days), days, strict=True)]
    left = without_week(values, days, find_week(values, days))
    assert np.mean(left[100:]) - np.mean(left[:100]) == pytest.approx(3, abs=0.3)


@pytest.mark.parametrize(
    ("values", "days"),
    [
        (swinging(range(27)), range(27)),  # less than four weeks
        (
            swinging(range(200)),
            [day // 7 * 7 for day in range(200)],
        ),  # one day a week
        (swinging(range(100), swing=0) + swinging(range(100)), range(200)),  # only lately
        ([100.0] * 200, range(200)),
        ([0.0] * 200, range(200)),
        ([math.inf, *swinging(range(199))], range(200)),
        ([], []),
    ],
)
def test_where_no_pattern_is_sure_the_very_values_come_back(
    values: list[float], days: Sequence[int]
) -> None:
    assert find_week(values, days) == ()
    assert without_week(values, days, ()).tolist() == values


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_the_unit_does_not_matter(unit: float) -> None:
    days = range(NIGHTS)
    found = find_week([one * unit for one in swinging(days)], days)
    assert np.divide(found, unit) == pytest.approx(find_week(swinging(days), days))


@pytest.mark.parametrize("kind", [*data.NOISES, *data.SHAPES])
def test_no_pattern_is_found_in_what_has_none(kind: str) -> None:
    for number in range(10):
        generator = data.make_generator(2, "weeks", kind, number)
        values = data.SHAPES[kind](generator) if kind in data.SHAPES else data.pure(kind, generator)
        assert (find_week(values, range(len(values))) == ()) is (kind != "weekly wave of 1σ")
