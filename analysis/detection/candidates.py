"""Candidates: places where a step may be, found generously; other modules decide.

Two searches with different blind spots: moving sums of several widths, and Otava's e-divisive.
"""

import math

import numpy as np
from scipy.ndimage import median_filter

from analysis.detection.noise import Values, variance_of_mean

_CLIP = 3.0
"""Standard deviations about the running median; further out a point counts as an outlier."""
_END_CLIP = 6.0
"""At the very end, where an outlier and the first points after a step look alike."""
_SPIKE = 5.0
_MEDIAN_POINTS = 7
END_POINTS = 3
_WIDTHS = (3, 5, 8, 13, 21, 34, 55, 89)
_LEAST_SCORE = 2.5


def clip_outliers(values: Values, deviation: float) -> Values:
    """Pull points that lie far from the running median back to three standard deviations from it.

    So that a single outlier cannot look like a step; the last points, of which nobody can know yet, are
    left more room. One or two points more than five away, with calm ones on both sides, are spikes and
    count as nothing at all. A level that lasts four points or more moves the median, and is left.
    """
    if len(values) < _MEDIAN_POINTS:
        return values
    middle = median_filter(values, _MEDIAN_POINTS, mode="nearest")
    # Near the ends the window does not shrink: it is the first or the last full one.
    half = _MEDIAN_POINTS // 2
    middle[:half], middle[-half:] = middle[half], middle[-half - 1]
    room = np.full(len(values), _CLIP * deviation)
    room[-END_POINTS:] = _END_CLIP * deviation
    clipped = np.clip(values, middle - room, middle + room)
    distances = np.abs(values - middle)
    is_calm, is_far = distances <= _CLIP * deviation, distances > _SPIKE * deviation
    for length in (1, 2):
        starts = np.arange(1, len(values) - length)
        is_spike = is_calm[starts - 1] & is_calm[starts + length]
        for offset in range(length):
            is_spike &= is_far[starts + offset]
        for offset in range(length):
            clipped[starts[is_spike] + offset] = middle[starts[is_spike] + offset]
    return clipped


def find_by_moving_sums(values: Values, deviation: float, persistence: float) -> set[int]:
    """Find where neighbouring stretches differ most, for several widths of stretches.

    A place is taken if the means of `width` points on both sides differ by 2.5 standard errors and by
    more than at any place within half a width (moving sums at several bandwidths: Eichinger and Kirch,
    Bernoulli 24, 2018, 526-564; Messer et al., Annals of Applied Statistics 8, 2014, 2027-2067).
    """
    sums = np.concatenate(([0.0], np.cumsum(values)))
    found: set[int] = set()
    for width in _WIDTHS:
        places = np.arange(width, len(values) - width + 1)
        if not len(places):
            break
        jump = (sums[places + width] - 2 * sums[places] + sums[places - width]) / width
        error = deviation * math.sqrt(2 * variance_of_mean(width, persistence))
        scores = np.abs(jump) / error
        high = np.flatnonzero(scores >= _LEAST_SCORE)
        # Only what is high can be higher than another, and few are.
        first = np.searchsorted(high, high - width // 2)
        behind = np.searchsorted(high, high + width // 2, side="right")
        bounds = np.column_stack((first, behind)).ravel()
        highest = np.maximum.reduceat(np.append(scores[high], -np.inf), bounds)[::2]
        found.update(map(int, places[high[scores[high] >= highest]]))
    return found
