"""Noise: how much a series scatters by itself, and how small a change could be seen in it.

The noise floor is the standard deviation of one night about its level, as a share of that level. The
minimum detectable effect is the smallest relative step that a given number of nights would show.
"""

import math
from dataclasses import dataclass

from scipy.special import ndtri

POWER = 0.8
"""How often a step of the minimum detectable effect is found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How a series scatters about its levels.

    `deviation` is the standard deviation of one point, in the unit of the series; `persistence` is the
    correlation of neighbouring points (0 where nights are independent); `level` is the newest level and
    `points` the number of points it rests on.
    """

    deviation: float
    persistence: float
    level: float
    points: int

    @property
    def floor(self) -> float:
        """Give the noise floor: the deviation as a share of the level; infinite at level zero."""
        return self.deviation / abs(self.level) if self.level else math.inf


def variance_of_mean(points: int, persistence: float) -> float:
    """Give the variance of a mean of neighbouring points, in variances of one point.

    For an AR(1) process of correlation ρ (Priestley, Spectral Analysis and Time Series, 1981, 5.3.2):

        1/n · (1 + 2 · Σ (1 - k/n) · ρᵏ),  k = 1 … n-1
    """
    correlated = sum((1 - lag / points) * persistence**lag for lag in range(1, points))
    return (1 + 2 * correlated) / points


def minimum_detectable_effect(noise: Noise, nights: int, max_p_value: float) -> float:
    """Give the smallest relative step that `nights` points after it show, four times in five.

        (z(1 - α/2) + z(power)) · σ · √(v(nights) + v(points)) / |level|

    with z the normal quantile, α = `max_p_value` of one test, σ the deviation and v the variance of a
    mean: the usual two-sample formula (Chow, Shao, Wang, Sample Size Calculations, 2008, 3.2) with
    dependent points. Infinite where the level is zero.
    """
    if not noise.level:
        return math.inf
    quantiles = float(ndtri(1 - max_p_value / 2) + ndtri(POWER))
    spread = variance_of_mean(nights, noise.persistence)
    spread += variance_of_mean(max(noise.points, 1), noise.persistence)
    return quantiles * noise.deviation * math.sqrt(spread) / abs(noise.level)
