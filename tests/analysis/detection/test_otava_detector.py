"""Our sums of energy distances against Otava's own, and windows that are searched against all."""

import numpy as np
import pytest
from data import make_generator
from otava.change_point_divisive.calculator import PairDistanceCalculator

from analysis.detection import otava_detector
from analysis.detection.criteria import PreparedSequence, prepare
from analysis.detection.noise import estimate_noise
from analysis.detection.otava_detector import find_by_divisive, promising_windows, split


@pytest.mark.parametrize("count", [2, 3, 7, 54, 100])
def test_a_stretch_is_split_where_otava_splits_it(count: int) -> None:
    for number in range(20):
        values = make_generator(1, "split", count, number).standard_normal(count)
        values[count // 2 :] += number / 10
        found = PairDistanceCalculator(np.array(values)).get_candidate_change_point(slice(0, None))
        at, distance = split(values)
        assert at == found.index
        assert distance == pytest.approx(found.qhat, abs=1e-9)


def _prepared(number: int, step: float = 0.0) -> PreparedSequence:
    """Return a sequence whose windows are calm, but for steps and one that is all equal."""
    values = make_generator(1, "windows", number).standard_normal(730)
    values[330:] += step
    values[600:] -= step
    values[400:500] = step
    return prepare(values, values, *estimate_noise(values), 100)


@pytest.mark.parametrize("step", [0.0, 0.7, 5.0])
def test_a_window_that_is_not_searched_would_not_have_been_split(
    monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    searched = []
    for number in range(30):
        evidence = _prepared(number, step)
        found = find_by_divisive(evidence, 100)
        with monkeypatch.context() as patched:
            patched.setattr(otava_detector, "promising_windows", lambda *_: range(0, 730, 100))
            assert find_by_divisive(evidence, 100) == found
        searched.append(len(promising_windows(evidence, 100)))
    assert max(searched) < 8
    assert min(searched) >= (step == 5.0)


def test_sizes_of_many_steps_are_those_of_each() -> None:
    evidence = _prepared(1, 2.0)
    places = np.arange(1, 730)
    starts, ends = np.maximum(places - 150, 0), np.minimum(places + 7, 730)
    each = [evidence.size(*map(int, step)) for step in zip(starts, places, ends, strict=True)]
    np.testing.assert_allclose(evidence.sizes(starts, places, ends), each, rtol=1e-12, atol=1e-12)
    still = prepare(np.repeat([1.0, 2.0], 50), np.repeat([1.0, 2.0], 50), 0.0, 0.0, 100)
    assert still.sizes(np.array([0, 0]), np.array([25, 50]), np.array([50, 100])).tolist() == [
        0.0,
        still.size(0, 50, 100),
    ]
