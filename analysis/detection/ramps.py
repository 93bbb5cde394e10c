"""Ramps: slow movements that a search for steps would report as a staircase."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from analysis.detection.criteria import PreparedSequence
from analysis.detection.detection import Drift
from analysis.detection.noise import Values

Places: TypeAlias = NDArray[np.integer]

_LEAST_POINTS = 8
"""What gets from one level to the next in fewer points is a step."""
SLOW_POINTS = 12
"""A movement of fewer points is as good as a step."""
_REACH = 45
_GRID = 20
"""Places tried for the beginning and for the end of a ramp."""
_STRONG = 6.0
_STEP_COSTS, _RAMP_COSTS = 2, 3
"""Numbers that are fitted beside the first level: a place and a height; two places and a height."""
_NO_MOMENT = 1e-12
"""A shape that is flat between the cuts explains nothing."""


def find_drifts(evidence: PreparedSequence, places: list[int]) -> tuple[Drift, ...]:
    """Find the steps, all or runs in one direction, that are better told as one slow movement.

    The slow movement may have one step in it, the largest of them. The stories are fitted by least
    squares to the points from the level before the run to the level after it, and compared by the
    Bayesian information criterion (Schwarz, Annals of Statistics 6, 1978, 461-464):

        RSS / σ² + numbers fitted · ln n,   σ² the variance, as large as dependence makes it for means

    Steps are what releases and configurations make, so these are reported unless a slow one is better
    by 6: "strong" evidence (Kass and Raftery, JASA 90, 1995, 773-795).
    """
    bounds = [0, *places, len(evidence.values)]
    if len(places) > 1 and (drift := _fit(evidence, bounds)) is not None:
        return (drift,)
    means = [float(evidence.clipped[start:end].mean()) for start, end in pairwise(bounds)]
    ups = [after > before for before, after in pairwise(means)]
    drifts = []
    first = 0
    for last in range(len(places)):
        if last + 1 < len(places) and ups[last + 1] is ups[first]:
            continue
        drift = _fit(evidence, bounds[first : last + 3])
        if drift is not None:
            drifts.append(drift)
        first = last + 1
    return tuple(drifts)


def lead_over_ramp(
    evidence: PreparedSequence, start: int, at: int, end: int, slow: int = SLOW_POINTS
) -> float:
    """Return by how much a step fits better than the best slow movement, in −2 log likelihoods.

    Both are fitted to at most 45 points on each side; a movement of `slow` points and more is slow.
    """
    low, high = max(start, at - _REACH), min(end, at + _REACH)
    values = evidence.clipped[low:high]
    variance = evidence.deviation**2 * (1 + evidence.persistence) / (1 - evidence.persistence)
    if len(values) <= slow or variance == 0:
        return math.inf
    cost, *_ = _fit_ramp(values, (), variance, slow)
    return cost - _cost(_centre(values, [at - low]), variance, _RAMP_COSTS)


def subtract(values: Values, drifts: tuple[Drift, ...]) -> Values:
    """Return the values without their slow movements, at the level before the first."""
    flat = values.copy()
    for drift in drifts:
        flat -= (drift.after - drift.before) * _shape(len(values), drift.first, drift.last)
    return flat


def _fit(evidence: PreparedSequence, bounds: list[int]) -> Drift | None:
    """Fit a ramp to a run of steps, alone or with its largest one; None if the steps fit better."""
    start, end = bounds[0], bounds[-1]
    values = evidence.clipped[start:end]
    count = len(values)
    variance = evidence.deviation**2 * (1 + evidence.persistence) / (1 - evidence.persistence)
    if count <= _LEAST_POINTS or variance == 0:
        return None
    cuts = [bound - start for bound in bounds[1:-1]]
    ramps = [_fit_ramp(values, (), variance)]
    if len(cuts) > 1:
        levels = [float(part.mean()) for part in np.split(values, cuts)]
        largest = int(np.argmax(np.abs(np.diff(levels))))
        ramps.append(_fit_ramp(values, cuts[largest : largest + 1], variance))
    cost, low, high, slope = min(ramps)
    if cost + _STRONG >= _cost(_centre(values, cuts), variance, _STEP_COSTS * len(cuts)):
        return None
    # The points themselves give the level, not the centred ones that the search works on.
    flat = evidence.values[start:end] - slope * _shape(count, low, high)
    before = float(np.median(flat[: cuts[0]]))
    return Drift(first=start + low, last=start + high, before=before, after=before + slope)


def _fit_ramp(
    values: Values, cuts: Sequence[int], variance: float, least: int = _LEAST_POINTS
) -> tuple[float, int, int, float]:
    """Return the cost of the best ramp over a few levels, its first and last point, and its height."""
    count = len(values)
    ends = np.unique(np.linspace(0, count - 1, min(count, _GRID)).round().astype(int))
    lows, highs = np.nonzero(ends[None, :] - ends[:, None] >= least)
    lows, highs = ends[lows], ends[highs]
    centred = _centre(values, cuts)
    products = _products(centred, lows, highs)
    moments = sum(_moments(start, end, lows, highs) for start, end in pairwise((0, *cuts, count)))
    best = int(np.argmax(products**2 / np.maximum(moments, _NO_MOMENT)))
    low, high = int(lows[best]), int(highs[best])
    shape = _centre(_shape(count, low, high), cuts)
    height = float((shape * centred).sum() / max(np.square(shape).sum(), _NO_MOMENT))
    cost = _cost(centred - height * shape, variance, _RAMP_COSTS + _STEP_COSTS * len(cuts))
    return cost, low, high, height


def _products(values: Values, lows: Places, highs: Places) -> Values:
    """Return for each ramp of height 1 the sum of its products with the values."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    firsts = np.concatenate(([0.0], np.cumsum(np.arange(len(values)) * values)))
    rising = firsts[highs] - firsts[lows] - lows * (sums[highs] - sums[lows])
    products: Values = rising / (highs - lows) + sums[-1] - sums[highs]
    return products


def _moments(start: int, end: int, lows: Places, highs: Places) -> Values:
    """Return for each ramp of height 1 the sum of the squares about its mean from `start` to `end`."""
    length = highs - lows
    # Of the points on the slope, the first and the last, counted from where it begins.
    first, last = (np.clip(place, lows, highs) - lows for place in (start, end))
    above = np.maximum(end - np.maximum(start, highs), 0)
    sums = (_sum(last) - _sum(first)) / length + above
    squares = (_sum_of_squares(last) - _sum_of_squares(first)) / length**2 + above
    moments: Values = squares - sums**2 / (end - start)
    return moments


def _sum(count: Values) -> Values:
    """Return 0 + 1 + … up to before each count."""
    return count * (count - 1.0) / 2


def _sum_of_squares(count: Values) -> Values:
    return (count - 1.0) * count * (2.0 * count - 1.0) / 6


def _cost(residues: Values, variance: float, fitted: int) -> float:
    return float(np.square(residues).sum() / variance + fitted * np.log(len(residues)))


def _centre(values: Values, cuts: Sequence[int]) -> Values:
    """Subtract the mean between cuts."""
    return np.concatenate([part - part.mean() for part in np.split(values, list(cuts))])


def _shape(count: int, first: int, last: int) -> Values:
    return np.clip((np.arange(count) - first) / (last - first), 0.0, 1.0)
