"""Ramps: slow movements that a search for steps would report as a staircase."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from analysis.detection.criteria import PreparedSequence
from analysis.detection.detection import Drift
from analysis.detection.noise import Values

_LEAST_POINTS = 8
"""What gets from one level to the next in fewer points is a step."""
SLOW_POINTS = 12
"""A movement of fewer points is as good as a step."""
_REACH = 45
_GRID = 20
"""Places tried for the beginning and for the end of a ramp."""
_MOST_AT_ONCE = 2_000_000
"""Numbers that ramps are tried with at a time: those of a long series would take gigabytes."""
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
    moments, products = np.empty(len(lows)), np.empty(len(lows))
    at_once = max(1, _MOST_AT_ONCE // count)
    for first in range(0, len(lows), at_once):
        some = slice(first, first + at_once)
        shapes = _shapes(count, lows[some], highs[some], cuts)
        moments[some] = np.maximum(np.square(shapes).sum(axis=1), _NO_MOMENT)
        products[some] = (shapes * centred).sum(axis=1)
    best = int(np.argmax(products**2 / moments))
    height = float(products[best] / moments[best])
    (shape,) = _shapes(count, lows[best : best + 1], highs[best : best + 1], cuts)
    cost = _cost(centred - height * shape, variance, _RAMP_COSTS + _STEP_COSTS * len(cuts))
    return cost, int(lows[best]), int(highs[best]), height


def _shapes(count: int, lows: Values, highs: Values, cuts: Sequence[int]) -> Values:
    """Return ramps of height 1, a row each, without their means between cuts."""
    ramps = (np.arange(count) - lows[:, None]) / (highs - lows)[:, None]
    return _centre(np.clip(ramps, 0.0, 1.0), cuts)


def _cost(residues: Values, variance: float, fitted: int) -> float:
    return float(np.square(residues).sum() / variance + fitted * np.log(len(residues)))


def _centre(rows: Values, cuts: Sequence[int]) -> Values:
    """Subtract from each row its mean between cuts."""
    parts = np.split(rows, list(cuts), axis=-1)
    return np.concatenate([part - part.mean(axis=-1, keepdims=True) for part in parts], axis=-1)


def _shape(count: int, first: int, last: int) -> Values:
    return np.clip((np.arange(count) - first) / (last - first), 0.0, 1.0)
