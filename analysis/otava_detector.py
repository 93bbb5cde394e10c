"""Otava behind our own contract: the one file that imports it, and where its defects stop.

What is kept out here, as measured on 0.8.0:

- a numpy array instead of a list breaks its windows: it gets a fresh list of Python floats each time;
- a NaN silences the whole series: values that are not finite are refused;
- its t-test takes the population for the sample deviation, so its p-values are too small, most of
  all in short segments: shifts are tested again here;
- its search stops at the first split that is not significant by itself, and no single split of a
  level that went and came back is: it searches at a laxer level than the one that decides;
- the mean of equal floats may differ in the last digit with their number, and two constant segments
  then look infinitely apart: the means of the test here are exact.

What is not: a single outlier at the last point is reported as a shift, since one point cannot tell a
spike from a step. `detection` keeps such a change provisional until more points follow.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from otava.analysis import compute_change_points
from scipy.stats import ttest_ind_from_stats

from analysis.detection import Reading, Shift

_SEARCH_FACTOR = 100
"""How much laxer the search for candidates is than the decision.

At a level of 1e-5, steps of five standard deviations for 15 points between 15 and 15 others were
found in 1 of 40 series with factor 1, in 35 with 100; the false shifts in 40 pure-noise series of 200
points went from 0 to 0 (normal), 4 to 10 (log-normal), 3 to 3 (autocorrelation 0.3) and 8 to 20 (2 %
outliers of eight standard deviations).
"""
_LAXEST_SEARCH = 0.04
"""Below 0.05 Otava's first pass is ten times laxer still; above, it changes its own rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtavaDetector:
    """Sliding-window e-divisive means with t-tests. Deterministic.

    `window_points` is the length of the window that searches for candidates. Each shift reported has
    a p-value below `max_p_value` against its neighbouring segments. Since the place of a shift is
    chosen where the segments differ most, this p-value ranks shifts but is no false-alarm rate.
    """

    max_p_value: float
    window_points: int
    confirming_points: int = 3

    @property
    def name(self) -> str:
        """Name the method."""
        return "otava"

    def read(self, values: Sequence[float]) -> Reading:
        """Give the shifts, ascending by index. Raises ValueError on values that are not finite."""
        floats = [float(value) for value in values]
        if not all(math.isfinite(value) for value in floats):
            raise ValueError("shifts cannot be found among values that are not finite numbers")
        found, _ = compute_change_points(
            list(floats),
            window_len=self.window_points,
            max_pvalue=min(_SEARCH_FACTOR * self.max_p_value, _LAXEST_SEARCH),
        )
        return Reading(shifts=self._keep_significant(floats, [int(change.index) for change in found]))

    def _keep_significant(self, values: list[float], indexes: list[int]) -> tuple[Shift, ...]:
        """Drop the weakest shift and test its neighbours again, until all are significant."""
        while True:
            bounds = [0, *indexes, len(values)]
            shifts = [
                Shift(
                    index=at,
                    earliest=at,
                    latest=at,
                    p_value=_p_value(values[start:at], values[at:end]),
                    is_confirmed=min(at - start, end - at) >= self.confirming_points,
                )
                for start, at, end in zip(bounds, bounds[1:], bounds[2:], strict=False)
            ]
            weakest = max(shifts, key=lambda shift: shift.p_value, default=None)
            if weakest is None or weakest.p_value < self.max_p_value:
                return tuple(shifts)
            indexes.remove(weakest.index)


def _p_value(left: list[float], right: list[float]) -> float:
    """Give the p-value of Student's two-sided t-test with pooled sample variance."""
    if len(left) + len(right) <= 2:  # noqa: PLR2004  no degree of freedom is left
        return 1.0
    result = ttest_ind_from_stats(
        mean(left), _deviation(left), len(left), mean(right), _deviation(right), len(right)
    )
    # Two equal constants divide zero by zero: they do not differ.
    return 1.0 if math.isnan(result.pvalue) else float(result.pvalue)


def _deviation(values: list[float]) -> float:
    """Give the sample standard deviation; a single value adds none to the pooled variance."""
    return stdev(values) if len(values) > 1 else 0.0
