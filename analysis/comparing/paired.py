"""By how much two sides that took turns differ: the Hodges-Lehmann ratio, with an interval. Pure.

Both sides of a block ran under the same conditions, so the block is what is compared: each value, as a
logarithm, loses the middle of its block (alignment: Hodges and Lehmann, Annals of Mathematical
Statistics 33, 1962, 482-497). What is left of a drift of the hosts from block to block is nothing.
docs/statistics.md has the measured coverage.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import stdtrit

from analysis.comparing.blocks import Block, TrialValue
from analysis.detection.effects import Effect
from analysis.detection.noise import ROUNDING

Array = NDArray[np.float64]

RESAMPLES = 400
"""A standard error of so many resamples errs by 3.5 % itself, far less than so few trials do."""
_MOST_PAIRS = 2_000_000
"""Differences held in memory at a time."""
WIDEST = 30.0
"""Half an interval, as a logarithm: a wider one says no more, and numbers have no room for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The logarithm of candidate / baseline, how sure it is, and the trials of each side behind it."""

    log_ratio: float
    standard_error: float
    degrees_of_freedom: int
    baseline_trials: int
    candidate_trials: int

    def interval(self, one_sided: float) -> Effect:
        """Return the relative change with the interval that misses the truth so often on each side.

        exp(estimate ± t · standard error), t the quantile of Student's t: percentiles of resamples of
        so few trials cover far too rarely (Hesterberg, The American Statistician 69, 2015, 371-386).
        """
        width = min(self.half_width(one_sided), WIDEST)
        return Effect(
            relative_change=math.expm1(self.log_ratio),
            low=math.expm1(self.log_ratio - width),
            high=math.expm1(self.log_ratio + width),
            confidence=1 - 2 * one_sided,
        )

    def half_width(self, one_sided: float) -> float:
        """Return how far that interval reaches to each side, as a logarithm."""
        return -float(stdtrit(self.degrees_of_freedom, one_sided)) * self.standard_error


def estimate(blocks: Sequence[Block], seed: int) -> Estimate:
    """Estimate the ratio of candidate to baseline from all blocks together.

    The estimate is the median of all differences candidate - baseline of aligned logarithms (Hodges and
    Lehmann, Annals of Mathematical Statistics 34, 1963, 598-611); with one trial of each side in a
    block, the median of the means of all pairs of differences. Its standard error is that of the same
    estimate from resampled trials of resampled iterations (`_resample`), and never below rounding.
    The same seed gives the same answer.

    Raises:
        ValueError: a value is not above zero and finite, or there are too few trials for a scatter.

    """
    trials = [trial for block in blocks for trial in (*block.baseline, *block.candidate)]
    logs = _logs(trials)
    freedom = len(trials) - len(blocks) - 1
    if freedom < 1:
        raise ValueError("a scatter needs at least two trials of one side in a block, or two blocks")
    is_candidate = np.array(
        [
            side
            for block in blocks
            for side in [False] * len(block.baseline) + [True] * len(block.candidate)
        ]
    )
    aligning = _aligning(blocks)
    aligned = np.asarray(logs @ aligning, dtype=np.float64)
    residuals = aligned.copy()
    for side in (is_candidate, ~is_candidate):
        residuals[side] -= residuals[side].mean()
    residuals *= math.sqrt(len(trials) / freedom)
    generator = np.random.default_rng(seed)
    noise = _resample(residuals, trials, _draw(is_candidate, generator), generator)
    resampled = np.asarray(noise @ aligning, dtype=np.float64)
    shifts = _shifts(resampled[:, ~is_candidate], resampled[:, is_candidate])
    return Estimate(
        log_ratio=float(_shifts(aligned[None, ~is_candidate], aligned[None, is_candidate])[0]),
        standard_error=max(float(shifts.std(ddof=1)), ROUNDING),
        degrees_of_freedom=freedom,
        baseline_trials=int((~is_candidate).sum()),
        candidate_trials=int(is_candidate.sum()),
    )


def _logs(trials: Sequence[TrialValue]) -> Array:
    for trial in trials:
        if not (0 < trial.value < math.inf):
            raise ValueError(f"a ratio needs values above zero, not {trial.value:g}")
    return np.log([trial.value for trial in trials])


def _aligning(blocks: Sequence[Block]) -> Array:
    """Give the matrix that takes from each value of a row the middle of the two sides of its block."""
    sizes = [len(block.baseline) + len(block.candidate) for block in blocks]
    matrix = np.eye(sum(sizes))
    start = 0
    for block, size in zip(blocks, sizes, strict=True):
        weights = [1 / len(side) / 2 for side in (block.baseline, block.candidate) for _ in side]
        matrix[start : start + size, start : start + size] -= np.array(weights)[:, None]
        start += size
    return matrix


def _shifts(before: Array, after: Array) -> Array:
    """Return for each row the median of all differences `after` - `before`."""
    pairs = before.shape[1] * after.shape[1]
    step, middle = max(1, _MOST_PAIRS // pairs), pairs // 2
    found = []
    for start in range(0, len(before), step):
        rows = slice(start, start + step)
        apart = (after[rows, :, None] - before[rows, None, :]).reshape(-1, pairs)
        apart.partition(middle, axis=1)
        upper = apart[:, middle]
        # Far faster than to ask for both middle values, or for a median.
        found.append(upper if pairs % 2 else (upper + apart[:, :middle].max(axis=1)) / 2)
    return np.concatenate(found)


def _draw(is_candidate: NDArray[np.bool_], generator: Generator) -> NDArray[np.intp]:
    """Draw for each place of each resample the trial that takes it, from those of the same side.

    So a side that scatters more does so in the resamples; a lone trial shows no scatter of its side.
    """
    places = len(is_candidate)
    drawn = generator.integers(places, size=(RESAMPLES, places))
    sides = [np.flatnonzero(is_candidate), np.flatnonzero(~is_candidate)]
    if min(map(len, sides)) > 1:
        for side in sides:
            drawn[:, side] = side[generator.integers(len(side), size=(RESAMPLES, len(side)))]
    return drawn


def _resample(
    residuals: Array, trials: Sequence[TrialValue], drawn: NDArray[np.intp], generator: Generator
) -> Array:
    """Draw rows of noise like that of the trials: whole trials first, then iterations inside of them.

    A trial's residual holds the scatter of its own iterations already. So that this does not count
    twice, residuals shrink to the variance that is left without it (Davison and Hinkley, Bootstrap
    Methods and their Application, 1997, 3.8), which is none where trials happen to agree better than
    their iterations allow. `residuals` have the variance of one trial.
    """
    deviations, counts = _deviations(trials)
    has_iterations = counts > 0
    if not has_iterations.any():
        return residuals[drawn]
    squares = np.square(deviations[has_iterations]).sum(axis=1) / counts[has_iterations]
    inner = float((squares / counts[has_iterations]).mean())
    outer = float(np.square(residuals).mean())
    left = math.sqrt(max(0.0, 1 - inner / outer)) if outer else 0.0
    shrunk = np.where(has_iterations, left, 1.0) * residuals
    picked = np.zeros(drawn.shape)
    most = deviations.shape[1]
    for number in range(most):
        which = (generator.random(drawn.shape) * counts[drawn]).astype(np.intp)
        picked += np.where(number < counts[drawn], deviations[drawn, which], 0.0)
    return np.asarray(shrunk[drawn] + picked / np.maximum(counts[drawn], 1), dtype=np.float64)


def _deviations(trials: Sequence[TrialValue]) -> tuple[Array, NDArray[np.intp]]:
    """Return by trial how its iterations lie about their mean, as logarithms, and how many they are.

    Scaled to the variance of one iteration and padded with zeros; none (0) where a trial has fewer
    than two or a logarithm is missing. What all trials have in common, such as a slow first iteration,
    is no scatter: it is taken away where all have equally many.
    """
    usable = [
        trial.iterations if len(trial.iterations) > 1 and _are_positive(trial.iterations) else ()
        for trial in trials
    ]
    counts = np.array([len(iterations) for iterations in usable], dtype=np.intp)
    deviations = np.zeros((len(trials), max(1, int(counts.max()))))
    for row, iterations in zip(deviations, usable, strict=True):
        if iterations:
            logs = np.log(iterations)
            row[: len(logs)] = (logs - logs.mean()) * math.sqrt(len(logs) / (len(logs) - 1))
    if counts.min() == counts.max() > 0:
        deviations -= deviations.mean(axis=0)
        deviations *= math.sqrt(len(trials) / (len(trials) - 1))
    return deviations, counts


def _are_positive(values: Sequence[float]) -> bool:
    return all(0 < value < math.inf for value in values)
