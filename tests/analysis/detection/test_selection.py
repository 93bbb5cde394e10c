"""What is computed of many places at once is what each of them would give alone."""

import math

import numpy as np
import pytest
from catalogs import shipped

from analysis.detection.candidates import find_by_moving_sums
from analysis.detection.criteria import prepare
from analysis.detection.noise import Values, estimate_noise, median, variance_of_mean
from analysis.detection.selection import Selection


def make_values(count: int, seed: int) -> Values:
    generator = np.random.default_rng(seed)
    values: Values = generator.normal(100, 5, count)
    values[count // 3 :] += 12
    return values


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_the_shares_of_all_steps_are_those_of_each(seed: int, is_open: bool) -> None:  # noqa: FBT001
    values = make_values(200, seed)
    evidence = prepare(values, values, *estimate_noise(values), 30)
    generator = np.random.default_rng(seed)
    # Of so many places most are too close to another, and some to the ends.
    places = np.sort(generator.choice(np.arange(1, 200), 60, replace=False)).tolist()
    selection = Selection(evidence, shipped().detection, 3, is_open, places)
    bounds = [0, *places, 200]
    each = [selection._size_share(bounds, at) for at in range(1, len(bounds) - 1)]  # noqa: SLF001
    assert selection._size_shares(bounds) == pytest.approx(each, rel=1e-9)  # noqa: SLF001
    assert sum(share < -1 for share in each) > 10


@pytest.mark.parametrize("seed", range(5))
def test_moving_sums_find_what_is_highest_within_half_a_width(seed: int) -> None:
    values = make_values(120, seed)
    deviation, persistence = estimate_noise(values)
    expected = set()
    for width in (3, 5, 8, 13, 21, 34, 55):
        error = deviation * math.sqrt(2 * variance_of_mean(width, persistence))
        scores = {
            at: abs(values[at : at + width].mean() - values[at - width : at].mean()) / error
            for at in range(width, len(values) - width + 1)
        }
        for at, score in scores.items():
            near = range(at - width // 2, at + width // 2 + 1)
            if score >= 2.5 and score >= max(scores.get(one, 0.0) for one in near) - 1e-9:
                expected.add(at)
    assert find_by_moving_sums(values, deviation, persistence) == expected


@pytest.mark.parametrize("count", [1, 2, 3, 8, 9, 1000])
def test_a_median_is_that_of_numpy(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count).round(1)
    assert median(values) == np.median(values)
