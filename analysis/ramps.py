"""Ramps: slow movements that a search for steps would report as a staircase."""

from itertools import pairwise

import numpy as np

from analysis.detection import Drift
from analysis.noise import Values
from analysis.votes import Evidence

_LEAST_POINTS = 8
"""What gets from one level to the next in fewer points is a step."""
_GRID = 24
"""Places tried for the beginning and for the end of a ramp."""
_VERY_STRONG = 10.0
_STEP_COSTS, _RAMP_COSTS = 2, 4
"""Numbers that are fitted: a place and a level for each step; two places and two levels for a ramp."""


def find_drifts(evidence: Evidence, places: list[int]) -> tuple[Drift, ...]:
    """Find the runs of steps in one direction that are better told as one slow movement.

    Both stories are fitted by least squares to the points from the level before the run to the level
    after it, and compared by the Bayesian information criterion (Schwarz, Annals of Statistics 6, 1978,
    461-464):

        RSS / σ² + numbers fitted · ln n,   σ² the variance, as large as dependence makes it for means

    Steps are what releases and configurations make, so they are told unless the slow movement is better
    by 10: "very strong" evidence (Kass and Raftery, JASA 90, 1995, 773-795).
    """
    bounds = [0, *places, len(evidence.values)]
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


def subtract(values: Values, drifts: tuple[Drift, ...]) -> Values:
    """Give the values without their slow movements, at the level before the first."""
    flat = values.copy()
    for drift in drifts:
        flat -= (drift.after - drift.before) * _shape(len(values), drift.first, drift.last)
    return flat


def _fit(evidence: Evidence, bounds: list[int]) -> Drift | None:
    """Fit a ramp to a run of steps; None if the steps tell it better."""
    start, end = bounds[0], bounds[-1]
    values = evidence.clipped[start:end]
    count = len(values)
    variance = evidence.deviation**2 * (1 + evidence.persistence) / (1 - evidence.persistence)
    if count <= _LEAST_POINTS or variance == 0:
        return None
    residues = sum(
        float(np.square(part - part.mean()).sum())
        for part in np.split(values, [bound - start for bound in bounds[1:-1]])
    )
    steps = len(bounds) - 2
    cost = residues / variance + (_STEP_COSTS * steps + 1) * np.log(count)
    ends = np.unique(np.linspace(0, count - 1, min(count, _GRID)).round().astype(int))
    pairs = [(a, b) for a in ends for b in ends if b - a >= _LEAST_POINTS]
    lows, highs = (np.array(side)[:, None] for side in zip(*pairs, strict=True))
    shapes = np.clip((np.arange(count) - lows) / (highs - lows), 0.0, 1.0)
    centred = values - values.mean()
    about = shapes - shapes.mean(axis=1, keepdims=True)
    moments = np.square(about).sum(axis=1)
    products = about @ centred
    gains = products**2 / moments
    best = int(np.argmax(gains))
    left_over = float(np.square(centred).sum()) - float(gains[best])
    if left_over / variance + _RAMP_COSTS * np.log(count) + _VERY_STRONG >= cost:
        return None
    low, high = pairs[best]
    slope = float(products[best] / moments[best])
    # The points themselves give the level, not the centred ones that the search works on.
    own = evidence.values[start:end]
    before = float(np.median(own - slope * shapes[best]))
    return Drift(first=start + int(low), last=start + int(high), before=before, after=before + slope)


def _shape(count: int, first: int, last: int) -> Values:
    return np.clip((np.arange(count) - first) / (last - first), 0.0, 1.0)
