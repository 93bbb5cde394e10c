"""Weekly patterns: estimated where they are sure, and taken out before steps are searched. Pure.

A host that others use on working days, or that is backed up on Mondays, swings by the week. Among such
swings a step of the same size is not seen, since they count as noise.

1. Take the level away: a running median of 15 points, two weeks of nights.
2. Pull outliers in, and compare the days of the week by the F test of an analysis of variance.
3. Ask whether the second half of the series has the pattern of the first.

Only a pattern that passes 2 and 3 is taken out: the mean of each day about the mean of all, shrunk by
1 − 1/F (as Stein's estimator shrinks means, James and Stein 1961), so that little of the noise goes
with it.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter
from scipy.special import fdtrc

from analysis.detection.noise import median

Days: TypeAlias = Sequence[int] | NDArray[np.integer]

DAYS = 7
_LEAST_POINTS = 4 * DAYS
_ABOUT = 2 * DAYS + 1
"""Points of the running median: as many of each day, but for one."""
_MOST_P_VALUE = 1e-5
"""Asked anew each night, of hundreds of series."""
_LEAST_LIKENESS = 0.5
"""The correlation of the patterns of both halves."""
_OUTLIER = 3 / 1.645
"""Times the distance that nine in ten do not reach: three standard deviations of normal noise. The
median distance may be none at all, where values are coarse."""


def without_week(
    values: Sequence[float] | NDArray[np.floating], days: Days, week: Sequence[float]
) -> NDArray[np.floating]:
    """Return values without the week that `find_week` found in them."""
    found = np.asarray(values, dtype=float)
    return found - np.asarray(week)[np.asarray(days) % DAYS] if len(week) else found


def find_week(values: Sequence[float] | NDArray[np.floating], days: Days) -> tuple[float, ...]:
    """Return by how much each day of the week is off the level; nothing where no pattern is sure.

    `days` are the numbers of the days on which the values were measured, in whatever order.
    """
    array, day = np.asarray(values, dtype=float), np.asarray(days) % DAYS
    unit = float(np.abs(array).max()) if len(array) >= _LEAST_POINTS else 0.0
    if not unit or not np.isfinite(unit):
        return ()
    array = array / unit
    half = len(array) // 2
    if not all(np.bincount(part, minlength=DAYS).all() for part in (day[:half], day[half:])):
        return ()
    off = _pull_in(array - median_filter(array, _ABOUT, mode="nearest"), day)
    parts = [_means(off[part], day[part]) for part in (slice(None), slice(half), slice(half, None))]
    (means, counts), (older, _), (newer, _) = parts
    within = float(np.square(off - means[day]).sum()) / (len(off) - DAYS)
    between = float((counts * np.square(means - off.mean())).sum()) / (DAYS - 1)
    if not within or fdtrc(DAYS - 1, len(off) - DAYS, between / within) > _MOST_P_VALUE:
        return ()
    if np.corrcoef(older, newer)[0, 1] < _LEAST_LIKENESS:
        return ()
    return tuple(((means - means.mean()) * (1 - within / between) * unit).tolist())


def _pull_in(off: NDArray[np.floating], day: NDArray[np.integer]) -> NDArray[np.floating]:
    """Pull outliers in, to three deviations from the median of their day of the week."""
    middle = np.array([median(off[day == one]) for one in range(DAYS)])[day]
    room = _OUTLIER * float(np.quantile(np.abs(off - middle), 0.9))
    return np.clip(off, middle - room, middle + room)


def _means(
    off: NDArray[np.floating], day: NDArray[np.integer]
) -> tuple[NDArray[np.floating], NDArray[np.integer]]:
    """Return the mean of each day of the week, and of how many points it is."""
    counts = np.bincount(day, minlength=DAYS)
    sums = np.bincount(day, off, minlength=DAYS)
    return sums / counts, counts
