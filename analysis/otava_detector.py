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

from otava.change_point_divisive.base import (
    BaseStats,
    CandidateChangePoint,
    ChangePoint,
    SignificanceTester,
)
from otava.change_point_divisive.calculator import PairDistanceCalculator
from otava.change_point_divisive.detector import ChangePointDetector

from analysis.noise import Values
from analysis.votes import Evidence

_LAX_P_VALUE = 0.01
"""Of a candidate. Splits stop at the first one that misses it."""


class _Guard(SignificanceTester):  # type: ignore[misc]  # otava has no types
    """Tests a split by our own first vote."""

    def __init__(self, evidence: Evidence, offset: int, length: int) -> None:
        super().__init__(_LAX_P_VALUE)
        self._evidence, self._offset, self._length = evidence, offset, length

    def change_point(
        self, candidate: CandidateChangePoint, series: object, intervals: Sequence[slice]
    ) -> ChangePoint:
        """Give the candidate with its p-value between its neighbours."""
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
    """Searches each stretch once; after each split Otava would search all of them again."""

    def __init__(self, series: Values) -> None:
        super().__init__(series)
        self._found: dict[tuple[int | None, int | None], CandidateChangePoint] = {}

    def get_candidate_change_point(self, interval: slice) -> CandidateChangePoint:
        """Give the best place to split a stretch."""
        bounds = (interval.start, interval.stop)
        if bounds not in self._found:
            self._found[bounds] = super().get_candidate_change_point(interval)
        return self._found[bounds]


def find_by_divisive(evidence: Evidence, window_points: int) -> set[int]:
    """Give the places where Otava's e-divisive would split, window by window.

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
