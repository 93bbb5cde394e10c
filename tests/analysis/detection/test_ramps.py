"""Slow movements that a search for steps reports as a staircase."""

import numpy as np
import pytest

from analysis.detection.criteria import prepare
from analysis.detection.ramps import find_drifts


@pytest.mark.parametrize("places", [[20, 30], [30, 40]])
def test_of_two_steps_one_may_stand_in_a_slow_movement(places: list[int]) -> None:
    # A rise of 6 from point 10 to point 50, and one of 6 at once in the middle of it.
    slow = np.clip((np.arange(60) - 10) / 40, 0, 1)
    noise = np.random.default_rng(5).normal(0, 0.5, 60)
    values = 100 + noise + 6 * slow + 6 * (np.arange(60) >= 30)
    (drift,) = find_drifts(prepare(values, values, 0.5, 0.0, 60), places)
    assert drift.after - drift.before == pytest.approx(6, abs=1)
    assert drift.first < 20
    assert drift.last > 45
