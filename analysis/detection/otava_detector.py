"""Otava behind our own contract: the one file that imports it, and where its defects stop.

What is taken of Otava 0.8 is its search: e-divisive means, which splits a window where the energy
distance of two stretches is largest (Matteson and James, JASA 109, 2014, 334-345; Fleming et al., ICPE
2023). What is kept out, as measured:

- a numpy array with bounds shifts its indexes: each window is handed over as an array of its own;
- a NaN silences the whole series: values that are not finite never come here;
- its t-test takes the population for the sample deviation, knows neither dependence nor outliers, and
  is asked where the difference is largest: a tester of ours takes its place;
- a single outlier at the last point is reported as a change: `step_detector` asks for more;
- the incremental way gives other results than a full one: it is not used.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from otava.change_point_divisive.base import (
    BaseStats,
    Calculator,
    CandidateChangePoint,
    ChangePoint,
    SignificanceTester,
)
from otava.change_point_divisive.detector import ChangePointDetector

from analysis.detection.criteria import PreparedSequence
from analysis.detection.noise import Values

_LAX_P_VALUE = 0.01
"""Of a candidate. Splits stop at the first one that misses it."""
_ROUNDING = 1e-6


class _Guard(SignificanceTester):  # type: ignore[misc]  # otava has no types
    """Tests a split by our own first test."""

    def __init__(self, evidence: PreparedSequence, offset: int, length: int) -> None:
        super().__init__(_LAX_P_VALUE)
        self._evidence, self._offset, self._length = evidence, offset, length

    def change_point(
        self, candidate: CandidateChangePoint, series: object, intervals: Sequence[slice]
    ) -> ChangePoint:
        """Return the candidate with its p-value between its neighbours."""
        at = candidate.index
        start = max(one.start for one in intervals if one.start < at)
        end = min(
            self._length if one.stop is None else one.stop
            for one in intervals
            if one.stop is None or one.stop > at
        )
        size = self._evidence.size(*(self._offset + place for place in (start, at, end)))
        stats = BaseStats(pvalue=self._evidence.probability(size))
        return ChangePoint.from_candidate(candidate, stats)


class _Remembering(Calculator):  # type: ignore[misc]  # otava has no types
    """Searches each stretch once; after each split Otava would search all of them again."""

    def __init__(self, series: Values) -> None:
        super().__init__(series)
        self._found: dict[tuple[int | None, int | None], CandidateChangePoint] = {}

    def get_candidate_change_point(self, interval: slice) -> CandidateChangePoint:
        """Return the best place to split a stretch."""
        bounds = (interval.start, interval.stop)
        if bounds not in self._found:
            at, distance = split(self.series[interval])
            self._found[bounds] = CandidateChangePoint(index=at + (interval.start or 0), qhat=distance)
        return self._found[bounds]


def split(values: Values) -> tuple[int, float]:
    """Return where the energy distance of two stretches from the first value on is largest, and that.

    With T(k) the sum of the distances of all pairs among the first k values and R(t, k) that among
    those from t to before k, the distance of the stretches before t and from t to before k is

        a (T(k) - T(t) - R(t, k)) - b T(t) - c R(t, k),  with a, b, c as in `_weights`.

    Otava's own calculator has the same sums in other orders, at two to four times the time; where two
    places are equally good to the last digits, it may name the other one.
    """
    count = len(values) - 1
    of_all, of_left, of_right, later = _weights(count)
    pairs = np.subtract.outer(values[:-1], values[1:])
    np.abs(pairs, out=pairs)
    pairs *= later
    within = np.add.accumulate(np.add.accumulate(pairs, axis=1)[::-1], axis=0)[::-1]
    first = within[0]
    distances = np.multiply(of_all, first, out=pairs)
    distances -= of_left * np.concatenate(([0.0], first[:-1]))[:, None]
    distances[:-1] -= of_right[:-1] * within[1:]
    best = int(distances.argmax())
    return best // count + 1, float(distances.flat[best])


@lru_cache(maxsize=256)
def _weights(size: int) -> tuple[Values, Values, Values, Values]:
    """Return by split (rows) and end (columns) the weights of T(k), T(t) and R(t, k), and 1 for k > t.

    With n points on the left and m on the right (energy statistics, as Matteson and James have them)
    pairs across weigh a = 2/(m + n), pairs on the left b = 2m/((m + n)(n - 1)) and on the right
    c = 2n/((m + n)(m - 1)); 0 where no pair is. The weights are a, a + b and a + c.
    """
    left = np.arange(1, size + 1)[:, None]
    both = np.arange(2, size + 2)[None, :]
    right = both - left
    of_left, of_right = np.zeros((size, size)), np.zeros((size, size))
    np.divide(2 * right, both * (left - 1), out=of_left, where=(right > 0) & (left > 1))
    np.divide(2 * left, both * (right - 1), out=of_right, where=right > 1)
    later = np.triu(np.ones((size, size)))
    across = 2 / both * later
    return across, across + of_left, across + of_right, later


def find_by_divisive(evidence: PreparedSequence, window_points: int) -> set[int]:
    """Return the places where Otava's e-divisive would split, window by window.

    Windows do not overlap, which halves the cost: the moving sums look across their borders. Nor is a
    window searched where no place would pass the test of its first split, as in most calm ones.
    """
    found: set[int] = set()
    values = evidence.clipped
    for start in promising_windows(evidence, window_points):
        window = values[start : start + window_points].copy()
        guard = _Guard(evidence, start, len(window))
        detector = ChangePointDetector(guard, _Remembering)
        found.update(start + int(point.index) for point in detector.get_change_points(window))
    return found


def promising_windows(evidence: PreparedSequence, window_points: int) -> list[int]:
    """Return where the windows begin in which a split could pass `_Guard`."""
    places = np.arange(len(evidence.clipped))
    starts = places - places % window_points
    ends = np.minimum(starts + window_points, len(places))
    inner = places[places > starts]
    sizes = evidence.sizes(starts[inner], inner, ends[inner])
    # A little less than asked: the test takes the same sums in another order.
    asked = evidence.quantile(_LAX_P_VALUE) * (1 - _ROUNDING)
    return [*map(int, np.unique(starts[inner[np.abs(sizes) >= asked]]))]
