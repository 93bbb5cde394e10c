"""Noise: how much a series scatters by itself, and how small a change could be seen in it.

The noise floor is the standard deviation of one point about its level, as a share of that level. The
minimum detectable effect is the smallest relative step that a given number of nights would show.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from perf.model.rules import Detection

Values = NDArray[np.floating]

MANY_NIGHTS = 10
"""About as long as anybody waits for a small change to show."""
POWER = 0.8
"""How often a step of the minimum detectable effect is found."""
_TRIMMED_SHARE = 0.1
"""Of the differences: those that outliers and smaller steps may have made."""
_JUMP = 3 * 1.4826
_MOST_JUMPS = 0.25
_LEAST_DIFFERENCES = 3
_LEAST_POINTS = 6
"""Of which a scatter can be estimated."""
_HIGHEST_PERSISTENCE = 0.9
"""Beyond it, a slow process cannot be told from a wandering level within any usual number of nights."""
_PRIOR_POINTS = 4
"""So many points does the persistence that is assumed before any is seen weigh: none."""
_SHARE_OF_FREEDOM = 0.7
"""Differences without their tails know the deviation as well as so many residuals would."""
_MOST_FREEDOM = 200
"""Beyond it, what is assumed of the noise errs more than its estimate does."""
ROUNDING = 1e-12
"""Of the largest value: scatter below it is that of the arithmetic."""
_EFFICIENCY = 0.8
"""The rank test asks for larger steps than the test of the size alone: measured."""


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
        """Return the noise floor: the deviation as a share of the level; infinite at level zero."""
        return self.deviation / abs(self.level) if self.level else math.inf


def median(values: Values) -> float:
    """Return the median of at least one value, none of them NaN; of two in the middle, their mean.

    It is that of numpy, which takes twice as long of a thousand: a search asks for it dozens of times.
    """
    half, is_odd = divmod(len(values), 2)
    if is_odd:
        return float(np.partition(values, half)[half])
    ordered = np.partition(values, (half - 1, half))
    return float((ordered[half - 1] + ordered[half]) / 2)


def estimate_noise(values: Values) -> tuple[float, float]:
    """Estimate the standard deviation of one point and the correlation of neighbours.

    Both come from differences between points `lag` apart, because levels cancel in them. For an AR(1)
    process of variance σ² and correlation ρ about a level, half the variance of such a difference is

        h(lag) = σ² · (1 - ρ^lag),  so  h(2)/h(1) = 1 + ρ  and  h(3)/h(1) = 1 + ρ + ρ²

    (the robust lag differences of Romano, Rigaill, Runge, Fearnhead, JASA 117, 2022, 2147-2162). The
    mean of the two estimates of ρ is kept within 0 to 0.9, and drawn towards 0 in short series.
    Differences across a jump are left out, and so is the largest tenth of the others. Needs six values.
    """
    rounding = ROUNDING * float(np.abs(values).max())
    near, middle, far = (_half_variance(part) for part in _differences(values))
    if near == 0:
        # Most differences are equal, as with a coarse unit or an exact line: the others are all.
        steps = np.diff(values)
        deviation = math.sqrt(float(np.square(steps - median(steps)).mean()) / 2)
        return (max(deviation, rounding) if np.ptp(values) else 0.0), 0.0
    second = middle / near - 1
    third = (math.sqrt(max(0.0, 4 * far / near - 3)) - 1) / 2
    weight = len(values) / (len(values) + _PRIOR_POINTS)
    persistence = min(max(weight * (second + third) / 2, 0.0), _HIGHEST_PERSISTENCE)
    deviation = math.sqrt(near / (1 - persistence))
    return (deviation, persistence) if deviation > rounding else (rounding, 0.0)


def noise_of_level(noise: Noise, values: Sequence[float]) -> Noise:
    """Return the noise of one level: that of its series, or its own where that is larger.

    The noise of a series is that of most of its differences, so a newest level that scatters more
    would look as quiet as those before it. Its own deviation is that about its median, without the
    furthest tenth of the points and scaled to be right for normal ones; it has no say below six
    points. All else stays that of the series.
    """
    largest = max(map(abs, values), default=0.0)
    if len(values) < _LEAST_POINTS or not largest:
        return noise
    deviation = largest * math.sqrt(2 * _half_variance(np.array(values, dtype=float) / largest))
    return replace(noise, deviation=deviation) if deviation > noise.deviation else noise


def _differences(values: Values) -> list[Values]:
    """Return the differences at lags 1 to 3 that no jump lies in.

    A jump is a difference of neighbours of more than three normal standard deviations (by the median),
    but never more than the largest quarter: so large differences are how the series scatters, then.
    """
    steps = np.diff(values)
    distances = np.abs(steps - median(steps))
    limit = max(_JUMP * median(distances), float(np.quantile(distances, 1 - _MOST_JUMPS)))
    is_jump = distances > limit
    jumps = np.concatenate(([0], np.cumsum(is_jump)))
    kept = []
    for lag in (1, 2, 3):
        is_whole = jumps[lag:] == jumps[:-lag]
        apart = values[lag:] - values[:-lag]
        kept.append(apart[is_whole] if is_whole.sum() >= _LEAST_DIFFERENCES else apart)
    return kept


def _half_variance(differences: Values) -> float:
    """Return half the variance without the largest distances, scaled to be right for normal ones."""
    distances = np.sort(np.abs(differences - median(differences)))
    kept = max(1, len(distances) - math.ceil(_TRIMMED_SHARE * len(distances)))
    squares = float(np.square(distances[:kept]).mean())
    return squares / trimming_factor(kept / len(distances)) / 2


@cache
def trimming_factor(kept: float) -> float:
    """Return the second moment of the middle `kept` share of a standard normal variable."""
    if kept >= 1:
        return 1.0
    bound = float(ndtri((1 + kept) / 2))
    return 1 - 2 * bound * math.exp(-bound * bound / 2) / math.sqrt(2 * math.pi) / kept


@lru_cache(maxsize=4096)
def variance_of_mean(points: int, persistence: float) -> float:
    """Return the variance of a mean of neighbouring points, in variances of one point.

    For an AR(1) process of correlation ρ (Priestley, Spectral Analysis and Time Series, 1981, 5.3.2),
    the sum over all lags in closed form:

        1/n · ((1 + ρ)/(1 - ρ) - 2ρ(1 - ρⁿ)/(n (1 - ρ)²))
    """
    ratio = (1 + persistence) / (1 - persistence)
    ends = 2 * persistence * (1 - persistence**points) / (points * (1 - persistence) ** 2)
    return (ratio - ends) / points


def degrees_of_freedom(points: int) -> float:
    """Return the degrees of freedom of a deviation that `estimate_noise` took from so many points."""
    return max(2.0, _SHARE_OF_FREEDOM * min(points, _MOST_FREEDOM) - 1)


def minimum_detectable_effect(noise: Noise, nights: int, max_p_value: float) -> float:
    """Return the smallest relative step that `nights` points after it confirm, four times in five.

        (t(1 - α/2) + z(power)) · σ · √((v(nights) + v(points)) / e) / |level|

    with t the quantile of Student's t for the points that σ rests on, z that of the normal, α =
    `max_p_value`, σ the deviation, v the variance of a mean, and e = 0.8 the efficiency of both tests
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


def visible_effects(noise: Noise | None, settings: Detection) -> dict[int, float]:
    """Return the minimum detectable effect by nights: of 1, of the fewest that confirm, and of 10.

    Empty where it is not known: points that are all equal show no noise, which does not show that there
    is none. However large a step is, ranks of few points confirm it only with more points after it.
    """
    if noise is None or not noise.deviation or math.isinf(noise.floor):
        return {}
    points = min(noise.points, settings.window_points)
    fewest = next(
        (
            nights
            for nights in range(settings.confirming_points, settings.window_points)
            if can_confirm(points, nights, settings)
        ),
        None,
    )
    nights = {1, fewest, max(fewest, MANY_NIGHTS)} if fewest else {1}
    return {
        count: minimum_detectable_effect(noise, count, settings.max_p_value) for count in sorted(nights)
    }


def can_confirm(before: int, after: int, settings: Detection) -> bool:
    """Return whether so many points could confirm a step at all, however large it is."""
    if min(before, after) < settings.confirming_points:
        return False
    return least_rank_p_value(before, after) <= settings.max_rank_p_value


def least_rank_p_value(left: int, right: int) -> float:
    """Return the two-sided p-value of complete separation: the least that ranks of so few can reach."""
    return 2 / math.comb(left + right, right)
