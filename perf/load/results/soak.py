"""Does the response time drift while one load is kept up for long? Pure.

The p99 of each of some tens of windows of an iteration makes a row of values. A straight line through
it by Theil and Sen (the median of the slopes of all pairs) gives the drift: by how much of the row's
median p99 changed from the first to the last moment of the iteration. Spikes do not move the line, be
they in up to 29 % of the windows.

Its interval is that of P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau",
JASA 1968, at 95 %. Windows resemble their neighbours, since compaction and collectors make waves. So
the variance of Kendall's S is widened by the effective number of windows, after S. Yue and C. Y. Wang,
"The Mann-Kendall test modified by effective sample size", Water Resources Management 2004, from the
likeness of neighbours (lag one). An interval that holds 0 means that one cannot tell.

How often it shows a drift, over 500 simulated iterations of 60 windows that scatter by 10 % each:

    windows                                  no drift    of 10 %    of 20 %    of 50 %
    independent                                  3 %       55 %       97 %      100 %
    a tenth of them spikes, five times           3 %       38 %       90 %      100 %
    waves of 4 to 12 windows, by a half          0 %       10 %       65 %      100 %
    alike by 0.3                                 7 %       33 %       86 %      100 %
    alike by 0.5                                 7 %       27 %       68 %      100 %
    alike by 0.8                                 8 %       16 %       38 %       84 %
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perf.load.histogram import merge, read_p99
from perf.model.metrics import RESPONSE_TIME
from perf.model.results import Interval

SHORTEST_S = 60.0
"""Shorter iterations have no drift that anybody would ask for."""
MOST_WINDOWS, FEWEST_WINDOWS = 60, 30
LEAST_OPERATIONS = 300
"""In a window: three of them lie above its p99."""

_Z = 1.959964
"""Of a normal distribution, 2.5 % lie above."""
_MOST_ALIKE = 0.95
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class P99Drift:
    """By which share the p99 of response time changed over an iteration, with its 95 % interval."""

    estimate: float
    lower: float
    upper: float


def find_drift(intervals: Sequence[Interval], operations: int, iteration_s: float) -> P99Drift | None:
    """Find the drift in the histograms of one operation in one iteration, of `operations` completed.

    None: it is too short, or too few operations completed in it.
    """
    own = [one for one in intervals if one.kind == RESPONSE_TIME.name]
    windows = min(MOST_WINDOWS, operations // LEAST_OPERATIONS)
    if iteration_s < SHORTEST_S or windows < FEWEST_WINDOWS or not own:
        return None
    # Whole intervals only: none is of two windows.
    length_s = max(one.length_s for one in own)
    width_s = ceil(iteration_s / windows / length_s) * length_s
    first_s = min(one.start_s for one in own)
    parts: defaultdict[int, list[Interval]] = defaultdict(list)
    for one in own:
        parts[int((one.start_s - first_s) / width_s + _ROUNDING)].append(one)
    if len(parts) < FEWEST_WINDOWS:
        return None
    values = {place: read_p99(merge(part)) for place, part in sorted(parts.items())}
    return fit_drift(list(values), list(values.values()), iteration_s / width_s)


def fit_drift(places: ArrayLike, values: ArrayLike, length: float) -> P99Drift:
    """Lay a line through values at increasing places; the drift is over a stretch of `length`."""
    at, row = np.asarray(places, dtype=np.float64), np.asarray(values, dtype=np.float64)
    later, earlier = np.tril_indices(row.size, -1)
    slopes = np.sort((row[later] - row[earlier]) / (at[later] - at[earlier]))
    slope = float(np.median(slopes))
    reach = _Z * sqrt(_variance_of_s(row - slope * at))
    low = max(round((slopes.size - reach) / 2) - 1, 0)
    high = min(round((slopes.size + reach) / 2), slopes.size - 1)
    scale = length / float(np.median(row))
    return P99Drift(
        estimate=slope * scale,
        lower=float(slopes[low]) * scale,
        upper=float(slopes[high]) * scale,
    )


def _variance_of_s(residuals: NDArray[np.float64]) -> float:
    """Return the variance of Kendall's S of a row without a trend, wider where neighbours are alike."""
    n = residuals.size
    variance = n * (n - 1) * (2 * n + 5) / 18
    ranks = np.argsort(np.argsort(residuals)) - (n - 1) / 2
    alike = float(ranks[1:] @ ranks[:-1]) / float(ranks @ ranks)
    # A short row, and more so one whose line was fitted to it, shows less of it than there is.
    alike = min(max(alike + (1 + 4 * alike) / n, 0.0), _MOST_ALIKE)
    return variance * (1 + alike) / (1 - alike)
