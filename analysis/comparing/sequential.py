"""When is one more block worth it? Looks at a growing comparison that keep its error rates. Pure.

After every block the interval of the difference is read at a level so strict that it holds over all
looks together (repeated confidence intervals: Jennison and Turnbull, JRSS B 51, 1989, 305-361). It
reaches to zero unless a stricter one excludes that: a false change is worse than a missed one. The
verdict is read off that very interval, so the two always agree. docs/statistics.md has the error rates.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtr, ndtri, stdtrit

from analysis.comparing.blocks import Block, TrialValue
from analysis.comparing.paired import WIDEST, Estimate, estimate
from analysis.detection import words
from analysis.detection.effects import Effect
from analysis.detection.noise import ROUNDING, Values
from analysis.detection.verdict import Outcome

Array = NDArray[np.float64]

POWER = 0.9
"""How often a change of the detectable size is reported."""
FIRST_LOOK = 2
"""Blocks. Two trials of each side lie apart by chance in one of six cases, however clearly."""
_LEAST_TRIALS = 4
"""Of each side, where there may be more than one block: fewer apart may be chance."""
_LEAST_ALIKE = 6
"""Of each side, where trials do not scatter at all: each of two values four times is not that rare."""
_SHAPE = 0.4
"""Between the boundaries of Pocock (.5), strict late, and of O'Brien and Fleming (0), strict early."""
_SPENT_ON_MISSES, _SPENT_ON_CHANGES = 0.85, 0.5
"""Of the missed and of the false share: the rest is for noise that is not normal, such as two modes. It
errs more often the stricter the level (measured)."""
_FUTILE = 0.05
"""A chance of a decision below it is not worth the trials."""
_LIKELY = 0.5
_LUCK = 0.9
"""The scatter may be smaller than it looks: how much smaller it seldom is."""
_NODES = 40
_FAR = 8.0
"""Standard deviations: beyond it, no path is."""
_NO_SCATTER = "so few trials agree to the last digit by chance: how they scatter is not known"
_MOST_BLOCKS = 1000
"""Beyond it, the answer is that nobody would wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """How one measure is decided.

    `relevant_change` is the share below which a change is not worth acting on (Δ). Over all looks
    together, `false_share` is how often two equal sides may come out as regressed (as often as
    improved), and `missed_share` how often the interval may miss the truth on each side, and so a
    relevant change come out as unchanged. `most_blocks` is how many blocks the budget allows: the last
    look.
    """

    higher_is_better: bool
    relevant_change: float
    false_share: float
    missed_share: float
    most_blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InterimAnalysis:
    """What is known after some blocks; the interval holds over all looks together.

    `outcome` is undecided while more may be reported. `is_over` says that no further block is worth it:
    decided, the budget is used up, or what is left of it would not decide. `detectable` is the
    smallest relative change that so many trials show nine times in ten; `reason` says in one sentence
    why it is so. `estimate` and `effect` are None where nothing could be computed.
    """

    outcome: Outcome
    is_over: bool
    reason: str
    estimate: Estimate | None = None
    effect: Effect | None = None
    detectable: float | None = None


def look(blocks: Sequence[Block], rule: StoppingRule, seed: int) -> InterimAnalysis:
    """Look at a comparison after its blocks so far.

    - unchanged: the whole interval lies within the relevant change;
    - regressed or improved: it does not, and it excludes zero (so that the estimate is nearer to the
      relevant change than to none: with less, the whole interval would be irrelevant);
    - undecided: neither, or there are too few trials while the budget allows more;
    - invalid: no ratio can be computed because values are not above zero.

    With `one_sided` the level at which this look excludes zero, t the quantiles of Student's t and s
    the standard error, `detectable` is exp((t(1 - one_sided) + t(0.9)) · s) - 1.
    """
    used_up = len(blocks) >= rule.most_blocks
    bad = [one.value for block in blocks for one in _trials(block) if not 0 < one.value < math.inf]
    if bad:
        reason = f"a ratio needs values above zero, and {words.value(bad[0])} was measured"
        return InterimAnalysis(outcome=Outcome.INVALID, is_over=True, reason=reason)
    if not _are_enough(blocks, rule):
        return InterimAnalysis(outcome=Outcome.UNDECIDED, is_over=used_up, reason=_too_few(blocks))
    found = estimate(blocks, seed)
    if found.standard_error <= ROUNDING and _fewest(blocks) < _LEAST_ALIKE:
        return InterimAnalysis(outcome=Outcome.UNDECIDED, is_over=used_up, reason=_NO_SCATTER)
    effect = _interval(found, len(blocks), rule)
    outcome = _outcome(effect, rule)
    blocks_needed = None
    if outcome is Outcome.UNDECIDED and not used_up:
        blocks_needed = _needed_beyond_budget(found, len(blocks), rule)
    return InterimAnalysis(
        outcome=outcome,
        is_over=used_up or outcome is not Outcome.UNDECIDED or blocks_needed is not None,
        reason=_reason(outcome, found, effect, rule) + _outlook(blocks_needed, rule),
        estimate=found,
        effect=effect,
        detectable=_detectable(found, _change_level(len(blocks), rule)),
    )


def _interval(found: Estimate, blocks: int, rule: StoppingRule) -> Effect:
    """Return the interval that holds over all looks; it holds zero unless a stricter one excludes it.

    Wherever the truth lies, it is missed no more often than on its own: what is stretched reaches to
    zero, and zero itself is missed only by the stricter one (for such intervals: Hsu, Hwang, Liu and
    Ruberg, Biometrika 81, 1994, 103-114).
    """
    plain = found.interval(_interval_level(blocks, rule))
    strict = found.interval(_change_level(blocks, rule))
    is_sure = not strict.low <= 0 <= strict.high
    return replace(
        plain,
        low=plain.low if is_sure else min(plain.low, 0.0),
        high=plain.high if is_sure else max(plain.high, 0.0),
        confidence=1 - 2 * rule.missed_share,
    )


def _detectable(found: Estimate, level: float) -> float:
    return math.expm1(min(found.half_width(level) + found.half_width(1 - POWER), WIDEST))


def _trials(block: Block) -> tuple[TrialValue, ...]:
    return (*block.baseline, *block.candidate)


def _are_enough(blocks: Sequence[Block], rule: StoppingRule) -> bool:
    """Return whether so few trials may say anything yet; a budget of one block has to do with it."""
    freedom = sum(len(_trials(block)) for block in blocks) - len(blocks) - 1
    if freedom < 1:
        return False
    is_last = len(blocks) >= rule.most_blocks
    return is_last or (len(blocks) >= FIRST_LOOK and _fewest(blocks) >= _LEAST_TRIALS)


def _fewest(blocks: Sequence[Block]) -> int:
    """Count the trials of the side that has fewer."""
    return min(
        sum(len(block.baseline) for block in blocks), sum(len(block.candidate) for block in blocks)
    )


def _outcome(effect: Effect, rule: StoppingRule) -> Outcome:
    if effect.lies_within(rule.relevant_change):
        return Outcome.UNCHANGED
    if effect.low <= 0 <= effect.high:
        return Outcome.UNDECIDED
    is_better = (effect.low > 0) == rule.higher_is_better
    return Outcome.IMPROVED if is_better else Outcome.REGRESSED


def _interval_level(blocks: int, rule: StoppingRule) -> float:
    """Return how often the interval of the look after so many blocks may miss, on each side."""
    return _level(blocks, rule.most_blocks, _SPENT_ON_MISSES * rule.missed_share)


def _change_level(blocks: int, rule: StoppingRule) -> float:
    """Return how often the look after so many blocks may exclude zero, on each side, where it holds."""
    return _level(blocks, rule.most_blocks, _SPENT_ON_CHANGES * rule.false_share)


def _level(blocks: int, most_blocks: int, share: float) -> float:
    return _levels(most_blocks, share)[min(blocks, most_blocks) - min(FIRST_LOOK, most_blocks)]


@cache
def _levels(most_blocks: int, share: float) -> tuple[float, ...]:
    """Return the levels of all looks, such that all together err on one side in that share of cases.

    The boundary for the estimate in standard errors is c · (k / most_blocks)^(shape - 1/2) after k
    blocks (Wang and Tsiatis, Biometrics 43, 1987, 193-199). c follows from the recursion of Armitage,
    McPherson and Rowe (JRSS A 132, 1969, 235-244). A look then uses the quantile of Student's t at the
    level that the normal has there (Jennison and Turnbull, Group Sequential Methods, 2000, 3.8).
    """
    times = np.arange(min(FIRST_LOOK, most_blocks), most_blocks + 1, dtype=np.float64)
    bounds = (times / most_blocks) ** (_SHAPE - 0.5)

    def excess(factor: float) -> float:
        return _crossing(factor * bounds, times) - share

    # Nearly all that this module takes to import, and most commands compare nothing.
    from scipy.optimize import brentq  # noqa: PLC0415

    factor = brentq(excess, 0.0, 2 - ndtri(share / len(times)), xtol=1e-6)
    return tuple(float(level) for level in ndtr(-factor * bounds))


def _crossing(bounds: Values, times: Values) -> float:
    """Return the chance that a standard Brownian motion is above bounds · √times at any of the times.

    The density of the path below all bounds so far is carried from time to time by Gauss-Legendre
    quadrature.
    """
    ends = bounds * np.sqrt(times)
    starts = -_FAR * np.sqrt(times)
    nodes, weights = np.polynomial.legendre.leggauss(
        _NODES + 2 * math.ceil(math.sqrt(times[-1]) * _FAR)
    )
    place, mass = np.zeros(1), np.ones(1)
    previous = 0.0
    for start, end, time in zip(starts, ends, times, strict=True):
        half = (end - start) / 2
        here = start + half * (nodes + 1)
        step = time - previous
        density = np.exp(-np.square(here[:, None] - place) / (2 * step)) @ mass
        place, mass = here, density * weights * half / math.sqrt(2 * math.pi * step)
        previous = time
    return 1 - float(mass.sum())


def _needed_beyond_budget(found: Estimate, blocks: int, rule: StoppingRule) -> int | None:
    """Give about how many blocks a decision takes, if what is left of the budget gives hardly a chance.

    None where it gives one. The scatter may be smaller than it looks: its lower 90 % bound counts.
    """
    freedom = found.degrees_of_freedom
    lucky = math.sqrt(freedom / float(chdtri(freedom, 1 - _LUCK)))
    left = np.arange(blocks + 1, rule.most_blocks + 1)
    if _chances(found, lucky, blocks, left, rule).max() >= _FUTILE:
        return None
    more = np.arange(rule.most_blocks + 1, _MOST_BLOCKS + 1)
    is_likely = _chances(found, 1.0, blocks, more, rule) >= _LIKELY
    return int(more[is_likely.argmax()]) if is_likely.any() else _MOST_BLOCKS


def _chances(
    found: Estimate, scale: float, blocks: int, later: NDArray[np.intp], rule: StoppingRule
) -> Array:
    """Return the chance of a decision at each later look, with `scale` times the standard error of now.

    What a later look estimates is normal about the estimate of now, with the variance that the standard
    error loses until then: the predictive distribution where nothing was known before the first trial.
    """
    error = scale * found.standard_error
    errors = error * np.sqrt(blocks / later)
    freedom = found.degrees_of_freedom + 3 * (later - blocks)

    def widths(level: Callable[[int, StoppingRule], float]) -> Array:
        levels = np.array([level(int(each), rule) for each in later])
        return np.asarray(-stdtrit(freedom, levels) * errors, dtype=np.float64)

    width, strict = widths(_interval_level), widths(_change_level)
    spread = np.sqrt(np.maximum(error**2 - errors**2, ROUNDING**2))
    low, high = math.log1p(-rule.relevant_change), math.log1p(rule.relevant_change)

    def chance_below(bound: NDArray[np.floating[Any]]) -> Array:
        return np.asarray(ndtr((bound - found.log_ratio) / spread), dtype=np.float64)

    unchanged = np.maximum(0.0, chance_below(high - width) - chance_below(low + width))
    changed = chance_below(-strict) + 1 - chance_below(strict)
    # Where both could be said they overlap: then a decision is certain.
    return np.asarray(np.minimum(1.0, unchanged + changed), dtype=np.float64)


def _too_few(blocks: Sequence[Block]) -> str:
    trials = sum(len(_trials(block)) for block in blocks)
    return (
        f"{words.counted(trials, 'trial', 'trials')} of both sides together are too few to say anything"
    )


def _reason(outcome: Outcome, found: Estimate, effect: Effect, rule: StoppingRule) -> str:
    interval = f"{words.signed_percent(effect.low)} to {words.signed_percent(effect.high)}"
    change = f"{words.signed_percent(effect.relative_change)} ({interval})"
    before, after = found.baseline_trials, found.candidate_trials
    trials = f"{before} trials of each side" if before == after else f"{before} and {after} trials"
    relevant = f"±{words.percent(rule.relevant_change)}"
    if outcome is Outcome.UNCHANGED:
        return (
            f"after {trials} the candidate is shown to lie within {relevant} of the baseline: {change}"
        )
    if outcome is Outcome.UNDECIDED:
        doubt = f"which could be nothing and could be more than {relevant}"
        return f"after {trials} the candidate differs by {change}, {doubt}"
    side = "better" if outcome is Outcome.IMPROVED else "worse"
    return f"after {trials} the candidate is {side} than the baseline: {change}"


def _outlook(blocks_needed: int | None, rule: StoppingRule) -> str:
    if blocks_needed is None:
        return ""
    number = f"about {blocks_needed}" if blocks_needed < _MOST_BLOCKS else f"more than {_MOST_BLOCKS}"
    return f"; {number} blocks would be needed, and the budget has {rule.most_blocks}"
