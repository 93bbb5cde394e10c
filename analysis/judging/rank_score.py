"""Rank score: how sure and how large a change is, in one number by which changes are ordered. Pure.

By percent alone, the noisiest series come first: they show the largest changes because they scatter
most. By sureness alone, tiny changes of very quiet series come first. The product asks for both:

    weight = factor · |Δ|,     factor = |Δ| / smallest visible |Δ|

with Δ the relative change, and the smallest visible one the minimum detectable effect of its series
(see `noise`): what the fewest nights that can confirm anything would show, four times in five. A change
of 10 % in a series that shows 2 % weighs 0.5, one of 30 % in a series that shows 25 % weighs 0.36.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import stdev

from scipy.special import fdtrc, stdtrit

from analysis.detection.detection import ChangePoint
from analysis.detection.effects import Effect, error_of_middle
from analysis.detection.noise import Noise, degrees_of_freedom
from analysis.judging.verdicts import Detectable, find_reported

CONFIDENCE = 0.99
"""Of the interval of a change; as that by which a series is shown unchanged."""
_MOST_BY_CHANCE = 0.05
"""How often a side that scatters as the series does is taken for one that scatters more."""
_LEAST_FREEDOM = 2.0
"""As of the noise: with one degree, no interval of two points would say anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankScore:
    """How much a change weighs. `factor` and `visible` are None where the noise is not known."""

    visible: float | None
    factor: float | None
    weight: float

    @property
    def rank(self) -> tuple[bool, float]:
        """Return the sort key, the heaviest first; what cannot be weighed comes last."""
        return self.factor is None, -self.weight


def weigh(relative_change: float, detectable: Sequence[Detectable]) -> RankScore:
    """Weigh a relative change in a series in which so much could be seen.

    Where that is not known, the weight is the size alone: it orders such changes among themselves only.
    """
    size = abs(relative_change)
    reported = find_reported(detectable)
    if reported is None or not reported.relative_change:
        return RankScore(visible=None, factor=None, weight=size)
    factor = size / reported.relative_change
    return RankScore(visible=reported.relative_change, factor=factor, weight=factor * size)


def find_interval(change: ChangePoint, points_before: int, noise: Noise | None) -> Effect | None:
    """Return the interval of a change; None where the noise of its series is not known.

        Δ ± t · √(e₁² + e₂²) / |before|

    with e the errors of both levels, of n₁ = `points_before` and n₂ points, each by its own scatter
    where that is larger than the noise of the series (`error_of_middle`: a level is a mean with its
    outliers pulled in, so at worst as unsure as a median). t is the 99.5 % quantile of Student's t with
    the degrees of freedom of the noise, or the n - 1 of a side that scatters more than the noise and
    chance explain (F test at 5 %): that scatter is known from those points alone. Never narrower than
    what is said of the medians of the same points. It takes the place of the change for known. Since
    the place was chosen where the difference is large, Δ is on the large side where it could barely be
    seen.
    """
    if noise is None or not noise.deviation or not change.before or points_before < 1:
        return None
    values = change.series.points.values
    sides = (
        values[change.index - points_before : change.index],
        values[change.index : change.index + change.points_after],
    )
    freedom, errors = degrees_of_freedom(noise.all_points), []
    for side in sides:
        scatter = stdev(side) if len(side) > 1 else 0.0
        errors.append(error_of_middle(scatter, len(side), noise))
        if _is_louder(scatter, len(side), noise):
            freedom = min(freedom, max(_LEAST_FREEDOM, len(side) - 1))
    quantile = float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
    half_width = quantile * math.hypot(*errors) / abs(change.before)
    return Effect(
        relative_change=change.relative_change,
        low=change.relative_change - half_width,
        high=change.relative_change + half_width,
        confidence=CONFIDENCE,
    )


def _is_louder(scatter: float, points: int, noise: Noise) -> bool:
    """Return whether points scatter more than the noise of their series and chance explain."""
    if scatter <= noise.deviation:
        return False
    ratio = (scatter / noise.deviation) ** 2
    return float(fdtrc(points - 1, degrees_of_freedom(noise.all_points), ratio)) < _MOST_BY_CHANCE
