import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

from analysis.detection.noise import (
    Noise,
    estimate_noise,
    minimum_detectable_effect,
    noise_of_level,
    variance_of_mean,
)


def autoregressive(seed: int, persistence: float, count: int = 400) -> np.ndarray:
    shocks = math.sqrt(1 - persistence**2) * np.random.default_rng(seed).standard_normal(count + 50)
    return np.asarray(lfilter([1.0], [1.0, -persistence], shocks))[50:]


@pytest.mark.parametrize("persistence", [0.0, 0.3, 0.6])
def test_deviation_and_persistence_are_found_despite_steps_drift_and_outliers(
    persistence: float,
) -> None:
    found = []
    for seed in range(20):
        values = autoregressive(seed, persistence)
        values[100:] += 6.0
        values[250:] -= 9.0
        values += np.linspace(0, 4, len(values))
        values[::60] += 8.0
        found.append(estimate_noise(values))
    deviation, estimated = np.median(found, axis=0)
    assert deviation == pytest.approx(1.0, rel=0.15)
    assert estimated == pytest.approx(persistence, abs=0.1)


def test_a_level_that_scatters_more_has_its_own_noise() -> None:
    quiet = Noise(deviation=0.1, persistence=0.2, level=4.5, points=8, all_points=18)
    wild = [3.55, 4.42, 4.04, 5.66, 5.45, 5.10, 4.02, 3.62]
    reported = noise_of_level(quiet, wild)
    assert reported.deviation == pytest.approx(np.std(wild, ddof=1), rel=0.4)
    assert replace(reported, deviation=0.1) == quiet
    huge = noise_of_level(quiet, [1e300 * value for value in wild])
    assert huge.deviation == pytest.approx(1e300 * reported.deviation)
    assert noise_of_level(quiet, wild[:5]) == quiet  # too few to know
    assert noise_of_level(quiet, [4.5 + value / 1000 for value in wild]) == quiet
    assert noise_of_level(quiet, [0.0] * 8) == quiet


def test_constants_have_no_noise() -> None:
    assert estimate_noise(np.full(20, 3.25)) == (0.0, 0.0)


@pytest.mark.parametrize(("points", "persistence"), [(1, 0.5), (3, 0.0), (10, 0.3), (40, 0.6)])
def test_the_variance_of_a_mean_is_that_of_simulated_means(points: int, persistence: float) -> None:
    means = [autoregressive(seed, persistence, points).mean() for seed in range(4000)]
    assert variance_of_mean(points, persistence) == pytest.approx(np.var(means), rel=0.1)


def test_more_nights_see_smaller_changes_and_noise_hides_them() -> None:
    quiet = Noise(deviation=1.0, persistence=0.0, level=100.0, points=50, all_points=60)
    sticky = Noise(deviation=1.0, persistence=0.5, level=100.0, points=50, all_points=60)
    effects = [minimum_detectable_effect(quiet, nights, 2e-4) for nights in (1, 3, 10)]
    assert effects == sorted(effects, reverse=True)
    assert minimum_detectable_effect(sticky, 3, 2e-4) > effects[1]
    # (4.08 + 0.84) · 1 % · √((1/3 + 1/50) / 0.8), 4.08 the quantile of t with 41 degrees of freedom
    assert effects[1] == pytest.approx(0.0327, rel=0.01)


def test_a_level_of_zero_has_no_relative_size() -> None:
    nothing = Noise(deviation=1.0, persistence=0.0, level=0.0, points=10, all_points=60)
    assert nothing.floor == math.inf
    assert minimum_detectable_effect(nothing, 3, 2e-4) == math.inf
