"""By how much two sides that took turns differ: the Hodges-Lehmann ratio, with an interval. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from scipy.special import stdtrit

from analysis.blocks import Block, Measured
from analysis.comparison import Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The logarithm of candidate / baseline, how sure it is, and the trials of each side behind it."""

    log_ratio: float
    standard_error: float
    degrees_of_freedom: int
    baseline_trials: int
    candidate_trials: int

    def interval(self, one_sided: float) -> Effect:
        """Give the relative change with the interval that misses the truth so often on each side."""
        width = float(stdtrit(self.degrees_of_freedom, 1 - one_sided)) * self.standard_error
        return Effect(
            relative_change=math.expm1(self.log_ratio),
            low=math.expm1(self.log_ratio - width),
            high=math.expm1(self.log_ratio + width),
            confidence=1 - 2 * one_sided,
        )


def estimate(blocks: Sequence[Block], seed: int) -> Estimate:
    """Estimate the ratio of candidate to baseline from all blocks together.

    Raises:
        ValueError: a value is not above zero and finite, or there are too few trials for a scatter.

    """
    before, after, freedom = [], [], -1
    for block in blocks:
        base, other = _logs(block.baseline), _logs(block.candidate)
        middle = (fmean(base) + fmean(other)) / 2
        before += [value - middle for value in base]
        after += [value - middle for value in other]
        freedom += len(base) + len(other) - 1
    if freedom < 1:
        raise ValueError("a scatter needs at least two trials of one side in a block, or two blocks")
    ratio = median(other - base for base in before for other in after)
    rest = sum((v - fmean(before)) ** 2 for v in before) + sum((v - fmean(after)) ** 2 for v in after)
    error = math.sqrt(rest / freedom * (1 / len(before) + 1 / len(after)))
    return Estimate(
        log_ratio=ratio,
        standard_error=error,
        degrees_of_freedom=freedom,
        baseline_trials=len(before),
        candidate_trials=len(after),
    )


def _logs(trials: Sequence[Measured]) -> list[float]:
    for trial in trials:
        if not (0 < trial.value < math.inf):
            raise ValueError(f"a ratio needs values above zero, not {trial.value:g}")
    return [math.log(trial.value) for trial in trials]
