"""Weight: how sure and how large a change is, in one number by which changes are ordered. Pure.

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

from scipy.special import stdtrit

from analysis.comparison import Effect
from analysis.detection import ChangePoint
from analysis.noise import Noise, degrees_of_freedom, variance_of_mean
from analysis.standing import Detectable, find_told

CONFIDENCE = 0.99
"""Of the interval of a change; as that by which a series is shown unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """How much a change weighs. `factor` and `visible` are None where the noise is not known."""

    visible: float | None
    factor: float | None
    weight: float

    @property
    def rank(self) -> tuple[bool, float]:
        """Give the sort key, the heaviest first; what cannot be weighed comes last."""
        return self.factor is None, -self.weight


def weigh(relative_change: float, detectable: Sequence[Detectable]) -> Weight:
    """Weigh a relative change in a series in which so much could be seen.

    Where that is not known, the weight is the size alone: it orders such changes among themselves only.
    """
    size = abs(relative_change)
    told = find_told(detectable)
    if told is None or not told.relative_change:
        return Weight(visible=None, factor=None, weight=size)
    factor = size / told.relative_change
    return Weight(visible=told.relative_change, factor=factor, weight=factor * size)


def find_interval(change: ChangePoint, points_before: int, noise: Noise | None) -> Effect | None:
    """Give the interval of a change, from the noise of its whole series; None where that is not known.

        Δ ± t · σ · √(v(n₁) + v(n₂)) / |before|

    with σ the deviation of the noise, v the variance of a mean of dependent points, n₁ =
    `points_before` and n₂ the points of both segments, and t the 99.5 % quantile of Student's t with
    the degrees of freedom that σ rests on: the interval of `compare_levels`, about the levels that the
    change itself tells, outliers pulled in. It takes the place of the change for known. Since the place
    was chosen where the difference is large, Δ is on the large side where it could barely be seen.
    """
    if noise is None or not noise.deviation or not change.before or points_before < 1:
        return None
    sizes = (points_before, change.points_after)
    spread = sum(variance_of_mean(size, noise.persistence) for size in sizes)
    quantile = float(stdtrit(degrees_of_freedom(noise.all_points), (1 + CONFIDENCE) / 2))
    half_width = quantile * noise.deviation * math.sqrt(spread) / abs(change.before)
    return Effect(
        relative_change=change.relative_change,
        low=change.relative_change - half_width,
        high=change.relative_change + half_width,
        confidence=CONFIDENCE,
    )
