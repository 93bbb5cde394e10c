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
    CandidateChangePoint,
    ChangePoint,
    SignificanceTester,
)
from otava.change_point_divisive.calculator import PairDistanceCalculator
from otava.change_point_divisive.detector import ChangePointDetector

from analysis.detection.criteria import PreparedSequence
from analysis.detection.noise import Values

_LAX_P_VALUE = 0.01
"""Of a candidate. Splits stop at the first one that misses it."""


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


class _Remembering(PairDistanceCalculator):  # type: ignore[misc]  # otava has no types
    """Searches each stretch once; after each split Otava would search all of them again.

    What the energy distances are weighed by depends on the length of a stretch alone, so it is made
    once for each length: to the last digit the same, in a third of the time.
    """

    def __init__(self, series: Values) -> None:
        super().__init__(series)
        self._found: dict[tuple[int | None, int | None], CandidateChangePoint] = {}

    def get_candidate_change_point(self, interval: slice) -> CandidateChangePoint:
        """Return the best place to split a stretch."""
        bounds = (interval.start, interval.stop)
        if bounds not in self._found:
            self._found[bounds] = super().get_candidate_change_point(interval)
        return self._found[bounds]

    def _get_Q_vals(self, start: int, end: int) -> Values:  # noqa: N802  Otava's name
        """Return the energy distance of each split (rows) of each beginning (columns) of a stretch."""
        if self.V is None:
            self._calculate_pairwise_differences()
        of_both, of_left, of_right = _weights(end - start - 1)
        down = np.cumsum(self.V[start : end - 1] - self.distances[:start, start + 1 : end].sum(axis=0))
        across = self.H[start : end - 1, start : end - 1]
        before = np.concatenate(([0.0], down[:-1]))[:, None]
        distances: Values = of_both * np.triu(np.cumsum(across, axis=0) - before) - of_left * before
        behind = np.cumsum(across[:0:-1, 1:], axis=0)[::-1]
        distances[:-1, 1:] -= of_right[:-1, 1:] * behind
        return distances


@lru_cache(maxsize=256)
def _weights(size: int) -> tuple[Values, Values, Values]:
    """Return the weights of distances between both sides of a split, and within the left and the right.

    With n points on the left and m on the right (energy statistics, as Matteson and James have them):
    2/(m + n), 2m/((m + n)(n - 1)) and 2n/((m + n)(m - 1)); 0 where no pair is.
    """
    left = np.arange(1, size + 1)[:, None]
    both = np.arange(2, size + 2)[None, :]
    right = both - left
    of_left, of_right = np.zeros((size, size)), np.zeros((size, size))
    np.divide(2 * right, both * (left - 1), out=of_left, where=(right > 0) & (left > 1))
    np.divide(2 * left, both * (right - 1), out=of_right, where=right > 1)
    return 2 / both, of_left, of_right


def find_by_divisive(evidence: PreparedSequence, window_points: int) -> set[int]:
    """Return the places where Otava's e-divisive would split, window by window.

    Windows do not overlap, which halves the cost: the moving sums look across their borders.
    """
    found: set[int] = set()
    values = evidence.clipped
    for start in range(0, len(values), window_points):
        window = values[start : start + window_points].copy()
        guard = _Guard(evidence, start, len(window))
        detector = ChangePointDetector(guard, _Remembering)
        found.update(start + int(point.index) for point in detector.get_change_points(window))
    return found
