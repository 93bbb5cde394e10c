"""Criteria: what is asked of a possible step before it may be called one.

Each test is blind to something, so a step needs both. The first one knows how large a step is, and
allows for nights that depend on each other; heavy tails would fool it. The second one knows only which
points are higher, so no tail can fool it; dependence would.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr, stdtrit

from analysis.detection.noise import (
    Values,
    degrees_of_freedom,
    median,
    trimming_factor,
    variance_of_mean,
)

_NEWEST = 20
"""Differences that say how the newest level scatters."""
_SCATTERS = 1.7
"""Times the variance: of 20 differences, less is chance."""
_STRETCH = 12
_CALM_SHARE = 0.8
_WANDERS = 1.8
"""Times the variance of a difference of means."""
_EXACT_BELOW = 9
"""From so many points on the normal approximation of the rank test is close enough."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparedSequence:
    """A sequence prepared for many tests: `clipped` without outliers, its sums, its noise."""

    values: Values
    clipped: Values
    deviation: float
    persistence: float
    reach: int
    sums: Values
    squares: Values
    running: tuple[list[float], list[float]]
    """Sums and sums of squares up to each point. Lists: `size` takes single numbers, hundreds of
    thousands of times, and those of an array cost three times as much."""
    variances: list[float]
    """Of a mean of 0, 1, … `reach` points, in variances of one; of none there is none."""
    freedom: float
    """Degrees of freedom of the deviation."""

    def size(self, start: int, at: int, end: int) -> float:
        """Return the step at `at` in standard errors, judged by the points from `start` to `end`.

        At most `reach` points on each side count:

            (m₂ - m₁) / (s · √(v(n₁) + v(n₂)))

        with m the means, v the variance of a mean of dependent points (`noise.variance_of_mean`), and s
        the larger of two deviations: that of the whole sequence by differences, and the pooled one of
        these very points about their means. So neither a noisy stretch nor a slope passes for a step.
        """
        # Without `min` and `max`: a search asks this hundreds of times.
        reach, deviation, variances = self.reach, self.deviation, self.variances
        low = start if at - start <= reach else at - reach
        high = end if end - at <= reach else at + reach
        left, right = at - low, high - at
        sums, squares = self.running
        mean_left = (sums[at] - sums[low]) / left
        mean_right = (sums[high] - sums[at]) / right
        if left + right > 2:  # noqa: PLR2004  each mean takes a degree of freedom
            about = squares[high] - squares[low]
            about -= left * mean_left * mean_left + right * mean_right * mean_right
            pooled = math.sqrt(about / (left + right - 2)) if about > 0 else 0.0
            deviation = pooled if pooled > deviation else deviation  # noqa: FURB136  see above
        error = deviation * math.sqrt(variances[left] + variances[right])
        step = mean_right - mean_left
        if error == 0:
            return math.copysign(math.inf, step) if step else 0.0
        return step / error

    def sizes(
        self, starts: NDArray[np.intp], places: NDArray[np.intp], ends: NDArray[np.intp]
    ) -> Values:
        """Return the `size` of many steps at once, but for what numpy rounds in another way."""
        low, high = np.maximum(starts, places - self.reach), np.minimum(ends, places + self.reach)
        left, right = places - low, high - places
        mean_left = (self.sums[places] - self.sums[low]) / left
        mean_right = (self.sums[high] - self.sums[places]) / right
        about = self.squares[high] - self.squares[low] - left * mean_left**2 - right * mean_right**2
        pooled = np.sqrt(np.maximum(about, 0.0) / np.maximum(left + right - 2, 1))
        variances = np.array(self.variances)
        errors = np.maximum(self.deviation, pooled) * np.sqrt(variances[left] + variances[right])
        steps = mean_right - mean_left
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(steps == 0, 0.0, steps / errors)

    def size_without_furthest(self, start: int, at: int, end: int) -> float:
        """Return the size of a step, positive, without the furthest point of its shorter side.

        In standard errors, like `size`; a side of one point has no other.
        """
        low, high = max(start, at - self.reach), min(end, at + self.reach)
        few, many = sorted((self.clipped[low:at], self.clipped[at:high]), key=len)
        if len(few) < 2:  # noqa: PLR2004  nothing is left without it
            return 0.0
        steps = few - many.mean()
        if steps.sum() < 0:
            steps = -steps
        rest = float(steps.sum() - steps.max()) / (len(few) - 1)
        variance = variance_of_mean(len(few) - 1, self.persistence)
        error = self.deviation * math.sqrt(variance + variance_of_mean(len(many), self.persistence))
        return rest / error if error else math.inf

    def outdoes_newest_scatter(self, start: int, at: int, end: int, p_value: float) -> bool:
        """Return whether a step is large even for how the newest points up to `end` scatter.

        Their scatter is that of differences of neighbours, without the one across `at`. A level that
        scatters more than those before it has little weight in the deviation of the series for long.
        """
        end = min(end, at + _NEWEST)
        first = max(0, end - _NEWEST - 2)
        is_within = np.arange(first + 1, end) != at
        steps = np.diff(self.clipped[first:end])[is_within][-_NEWEST:]
        if len(steps) < 2 or not self.deviation:  # noqa: PLR2004  of one nothing is known
            return True
        ratio = float(np.square(steps).mean()) / 2 / (self.deviation**2 * (1 - self.persistence))
        if ratio < _SCATTERS:
            return True
        asked = _quantile(degrees_of_freedom(len(steps)), p_value)
        return abs(self.size(start, at, end)) / math.sqrt(ratio) >= asked

    def wanders(self, steps: Sequence[int]) -> bool:
        """Return whether the level moves elsewhere than at `steps`, more than noise makes means move.

        Compared are the means of neighbouring stretches of twelve points with none of the steps in
        them; the largest fifth of their differences is left out.
        """
        first = np.arange(len(self.values) - 2 * _STRETCH + 1)
        is_calm = np.ones(len(first), dtype=bool)
        for at in steps:
            is_calm[max(0, at - 2 * _STRETCH + 1) : at] = False
        first = first[is_calm]
        if len(first) < 2 * _STRETCH or not self.deviation:
            return False
        sums = self.sums
        moved = sums[first + 2 * _STRETCH] - 2 * sums[first + _STRETCH] + sums[first]
        expected = 2 * self.deviation**2 * variance_of_mean(_STRETCH, self.persistence)
        ratios = np.square(moved / _STRETCH) / (expected * self._scatters(first))
        kept = np.sort(ratios)[: int(_CALM_SHARE * len(first))]
        return bool(kept.mean() > _WANDERS * trimming_factor(_CALM_SHARE))

    def _scatters(self, first: NDArray[np.intp]) -> Values:
        """Return how many times the variance of all the two stretches from each place on scatter by.

        By differences of neighbours; 1 where it is no more than chance.
        """
        squares = np.concatenate(([0.0], np.cumsum(np.square(np.diff(self.clipped)))))
        own = (squares[first + 2 * _STRETCH - 1] - squares[first]) / (2 * _STRETCH - 1) / 2
        ratio = own / (self.deviation**2 * (1 - self.persistence))
        return np.where(ratio < _SCATTERS, 1.0, ratio)

    def probability(self, size: float) -> float:
        """Return the two-sided p-value of a size, by Student's t."""
        return 2 * float(stdtr(self.freedom, -abs(size)))

    def quantile(self, p_value: float) -> float:
        """Return the size that has a two-sided p-value."""
        return _quantile(self.freedom, p_value)

    def rank(self, start: int, at: int, end: int) -> float:
        """Return the two-sided p-value of the rank test between two stretches, as `rank_p_value`."""
        left = self.values[max(start, at - self.reach) : at]
        right = self.values[at : min(end, at + self.reach)]
        return rank_p_value(left, right)


@lru_cache(maxsize=4096)
def _quantile(freedom: float, p_value: float) -> float:
    return -float(stdtrit(freedom, p_value / 2))


def rank_p_value(left: Values, right: Values) -> float:
    """Return the two-sided p-value of the rank test of Mann and Whitney.

    U counts the pairs in which the right value is larger, ties half (Annals of Mathematical Statistics
    18, 1947, 50-60). With fewer than 9 points on a side its distribution is counted out, otherwise it
    is taken as normal, with the variance corrected for ties and for U being whole numbers. Ties among
    few points make it cautious.
    """
    few, many = sorted((len(left), len(right)))
    ordered = np.sort(left)
    below = np.searchsorted(ordered, right, side="left").sum()
    wins = float(below + np.searchsorted(ordered, right, side="right").sum()) / 2
    furthest = min(wins, few * many - wins)
    if few < _EXACT_BELOW:
        return min(1.0, 2 * float(_tail(few, many)[math.ceil(furthest)]))
    _, ties = np.unique(np.concatenate((left, right)), return_counts=True)
    count = few + many
    tied = float((ties.astype(np.float64) ** 3 - ties).sum()) / (count * (count - 1))
    variance = few * many / 12 * (count + 1 - tied)
    if variance <= 0:
        return 1.0
    distance = max(0.0, few * many / 2 - furthest - 0.5)
    return 2 * float(ndtr(-distance / math.sqrt(variance)))


@lru_cache(maxsize=4096)
def _tail(few: int, many: int) -> Values:
    """Give P(U ≤ u) for u = 0, 1, …: the coefficients of Π (1 - xᵐ⁺ⁱ)/(1 - xⁱ), i = 1 … few, summed."""
    ways = np.zeros(few * many + 1)
    ways[0] = 1
    for step in range(1, few + 1):
        if many + step < len(ways):
            ways[many + step :] -= ways[: -(many + step)].copy()
        for start in range(step):
            ways[start::step] = np.cumsum(ways[start::step])
    chances: Values = np.cumsum(ways) / math.comb(few + many, few)
    return chances


def prepare(
    values: Values, clipped: Values, deviation: float, persistence: float, reach: int
) -> PreparedSequence:
    """Prepare a sequence for many tests."""
    centred = clipped - median(clipped)  # sums of squares lose their digits far from zero
    sums = np.concatenate(([0.0], np.cumsum(centred)))
    squares = np.concatenate(([0.0], np.cumsum(centred * centred)))
    return PreparedSequence(
        values=values,
        clipped=centred,
        deviation=deviation,
        persistence=persistence,
        reach=reach,
        sums=sums,
        squares=squares,
        running=(_list(sums), _list(squares)),
        variances=[0.0, *(variance_of_mean(points, persistence) for points in range(1, reach + 1))],
        freedom=degrees_of_freedom(len(values)),
    )


def _list(numbers: Values) -> list[float]:
    return cast("list[float]", numbers.tolist())
