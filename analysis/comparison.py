"""Comparison: by how much two groups of values differ, with an interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, variance

from scipy.special import stdtrit  # type: ignore[import-untyped]  # SciPy ships no types


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The relative change from one group to another, and the interval it lies in at `confidence`."""

    relative_change: float
    low: float
    high: float
    confidence: float

    def lies_within(self, relevant_change: float) -> bool:
        """Tell whether the whole interval is smaller than a change worth acting on."""
        return -relevant_change < self.low and self.high < relevant_change


def relative_change(before: float, after: float) -> float:
    """Give (after - before) / |before|; infinite with the sign of the change from a zero `before`."""
    change = after - before
    if change == 0:
        return 0.0
    return change / abs(before) if before else math.copysign(math.inf, change)


def compare_means(before: Sequence[float], after: Sequence[float], confidence: float) -> Effect:
    """Compare two means by Welch's t interval; the groups may differ in size and in scatter.

    With m, s², n the mean, sample variance and size of each group and v = s²/n:

        (m₂ - m₁) ± t · √(v₁ + v₂),   t the (1 + confidence)/2 quantile of Student's t with
        (v₁ + v₂)² / (v₁²/(n₁ - 1) + v₂²/(n₂ - 1)) degrees of freedom

    divided by |m₁|. B. L. Welch, "The generalization of 'Student's' problem when several different
    population variances are involved", Biometrika 34 (1947) 28-35. Two things it leaves out: the
    points are taken as independent, and the uncertainty of m₁ as a divisor is neglected (second
    order while the scatter is small against the mean). The interval is unbounded where m₁ is zero.
    Raises ValueError below two values a group.
    """
    if min(len(before), len(after)) < 2:  # noqa: PLR2004  a variance needs two values
        raise ValueError("an interval of a difference needs at least two values on each side")
    # Exact means: those of equal values are equal, whatever their number.
    base, other = mean(before), mean(after)
    half_width = _half_width(before, after, confidence)
    relative = relative_change(base, other)
    if base == 0:
        return Effect(relative_change=relative, low=-math.inf, high=math.inf, confidence=confidence)
    return Effect(
        relative_change=relative,
        low=relative - half_width / abs(base),
        high=relative + half_width / abs(base),
        confidence=confidence,
    )


def _half_width(before: Sequence[float], after: Sequence[float], confidence: float) -> float:
    terms = [(variance(group) / len(group), len(group) - 1) for group in (before, after)]
    total = sum(term for term, _ in terms)
    if total == 0:
        return 0.0
    # Shares of the total, not the terms themselves: their squares could vanish.
    freedom = 1 / sum((term / total) ** 2 / degrees for term, degrees in terms)
    return float(stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(total)
