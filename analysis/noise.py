"""Noise: how much a series scatters by itself, and how small a change could be seen in it.

The noise floor is the standard deviation of one point about its level, as a share of that level. The
minimum detectable effect is the smallest relative step that a given number of nights would show.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

Values = NDArray[np.floating]

POWER = 0.8
"""How often a step of the minimum detectable effect is found."""
_TRIMMED_SHARE = 0.1
"""Of the differences: those that steps and outliers may have made."""
_FORGIVEN_STEPS = 3
_HIGHEST_PERSISTENCE = 0.9
"""Beyond it, a slow process cannot be told from a wandering level within any usual number of nights."""
_PRIOR_POINTS = 4
"""So many points does the persistence that is assumed before any is seen weigh: none."""
_SHARE_OF_FREEDOM = 0.7
"""Differences without their tails know the deviation as well as so many residuals would."""
_MOST_FREEDOM = 200
ROUNDING = 1e-12
"""Of the largest value: scatter below it is that of the arithmetic."""
_EFFICIENCY = 0.8
"""The vote of the ranks asks for larger steps than the vote of the size alone: measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How a series scatters about its levels.

    `deviation` is the standard deviation of one point, in the unit of the series, and rests on
    `all_points`; `persistence` is the correlation of neighbouring points (0 where nights are
    independent); `level` is the newest confirmed level and `points` the number of points in it.
    """

    deviation: float
    persistence: float
    level: float
    points: int
    all_points: int

    @property
    def floor(self) -> float:
        """Give the noise floor: the deviation as a share of the level; infinite at level zero."""
        return self.deviation / abs(self.level) if self.level else math.inf


def estimate_noise(values: Values) -> tuple[float, float]:
    """Estimate the standard deviation of one point and the correlation of neighbours.

    Both come from differences between points `lag` apart, because levels cancel in them: a step touches
    only `lag` of them, and a slow drift moves all alike. For an AR(1) process of variance σ² and
    correlation ρ about a level, half the variance of such a difference is

        h(lag) = σ² · (1 - ρ^lag),  so  h(2)/h(1) = 1 + ρ  and  h(3)/h(1) = 1 + ρ + ρ²

    (the robust lag differences of Romano, Rigaill, Runge, Fearnhead, JASA 117, 2022, 2147-2162). The
    mean of the two estimates of ρ is kept within 0 to 0.9, and drawn towards 0 in short series.
    Variances leave out the largest differences: a tenth, or in short sequences what three steps may
    have made. Needs four values.
    """
    rounding = ROUNDING * float(np.abs(values).max())
    near, middle, far = (
        _half_variance(values[lag:] - values[:-lag], _FORGIVEN_STEPS * lag) for lag in (1, 2, 3)
    )
    if near == 0:
        # Most neighbours are equal, as with a coarse unit: the few differences are all there is.
        return math.sqrt(float(np.square(np.diff(values)).mean()) / 2), 0.0
    second = middle / near - 1
    third = (math.sqrt(max(0.0, 4 * far / near - 3)) - 1) / 2
    weight = len(values) / (len(values) + _PRIOR_POINTS)
    persistence = min(max(weight * (second + third) / 2, 0.0), _HIGHEST_PERSISTENCE)
    deviation = math.sqrt(near / (1 - persistence))
    return (deviation, persistence) if deviation > rounding else (rounding, 0.0)


def _half_variance(differences: Values, touched: int) -> float:
    """Give half the variance without what steps `touched`, scaled to be right for normal values."""
    distances = np.sort(np.abs(differences - np.median(differences)))
    dropped = max(math.ceil(_TRIMMED_SHARE * len(distances)), min(touched, len(distances) // 2))
    kept = max(1, len(distances) - dropped)
    squares = float(np.square(distances[:kept]).mean())
    return squares / _trimming_factor(kept / len(distances)) / 2


@cache
def _trimming_factor(kept: float) -> float:
    """Give the second moment of the middle `kept` share of a standard normal variable."""
    if kept >= 1:
        return 1.0
    bound = float(ndtri((1 + kept) / 2))
    return 1 - 2 * bound * math.exp(-bound * bound / 2) / math.sqrt(2 * math.pi) / kept


@cache
def variance_of_mean(points: int, persistence: float) -> float:
    """Give the variance of a mean of neighbouring points, in variances of one point.

    For an AR(1) process of correlation ρ (Priestley, Spectral Analysis and Time Series, 1981, 5.3.2):

        1/n · (1 + 2 · Σ (1 - k/n) · ρᵏ),  k = 1 … n-1
    """
    correlated = sum((1 - lag / points) * persistence**lag for lag in range(1, points))
    return (1 + 2 * correlated) / points


def degrees_of_freedom(points: int) -> float:
    """Give the degrees of freedom of a deviation that `estimate_noise` took from so many points."""
    return max(2.0, _SHARE_OF_FREEDOM * min(points, _MOST_FREEDOM) - 1)


def minimum_detectable_effect(noise: Noise, nights: int, max_p_value: float) -> float:
    """Give the smallest relative step that `nights` points after it confirm, four times in five.

        (t(1 - α/2) + z(power)) · σ · √((v(nights) + v(points)) / e) / |level|

    with t the quantile of Student's t for the points that σ rests on, z that of the normal, α =
    `max_p_value`, σ the deviation, v the variance of a mean, and e = 0.8 the efficiency of both votes
    together: the usual two-sample formula (Chow, Shao, Wang, Sample Size Calculations, 2008, 3.2) with
    dependent points and a second test. One night shows a step as provisional only. Infinite where the
    level is zero.
    """
    if not noise.level:
        return math.inf
    freedom = degrees_of_freedom(noise.all_points)
    quantiles = -float(stdtrit(freedom, max_p_value / 2)) + float(ndtri(POWER))
    spread = variance_of_mean(nights, noise.persistence)
    spread += variance_of_mean(max(noise.points, 1), noise.persistence)
    return quantiles * noise.deviation * math.sqrt(spread / _EFFICIENCY) / abs(noise.level)
