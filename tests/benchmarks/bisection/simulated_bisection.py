"""A bisection of releases whose levels are known, trial by trial, as the command would run it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from analysis.bisecting.bisection import Culprit, Inconclusive, Probe, next_step
from analysis.bisecting.probing import LevelSpan, Probed, probe_look, read_look, rule_of_probe
from analysis.comparing.blocks import Block, TrialValue
from analysis.comparing.paired import Estimate
from analysis.comparing.sequential import InterimAnalysis, StoppingRule, look
from analysis.detection.effects import Effect
from analysis.detection.verdict import Outcome
from perf.model.results import Release

Values = NDArray[np.float64]
Noise = Callable[[Generator, int], Values]
SIGMA = 0.03
"""The noise floor: the standard deviation of one trial, as a logarithm."""
HALF = 2
"""Trials of each side in a block."""


def gauss(rng: Generator, count: int) -> Values:
    return rng.standard_normal(count)


def heavy(rng: Generator, count: int) -> Values:
    """Student's t with three degrees of freedom, at a standard deviation of one."""
    return rng.standard_t(3, count) / math.sqrt(3)


def bimodal(rng: Generator, count: int) -> Values:
    """Two modes: one trial in five is three narrow deviations slower; a standard deviation of one."""
    values = rng.standard_normal(count) + 3.0 * (rng.random(count) < 0.2)
    return (values - 0.6) / math.sqrt(1 + 9 * 0.16)


def outliers(rng: Generator, count: int) -> Values:
    """One trial in twenty is six deviations to one side; the deviation of the others is one."""
    return rng.standard_normal(count) + 6.0 * (rng.random(count) < 0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Releases with their true levels, in noise floors above the first; `broken` do not start."""

    levels: tuple[float, ...]
    broken: frozenset[int] = frozenset()
    noise: Noise = gauss

    @property
    def releases(self) -> tuple[Release, ...]:
        return releases(len(self.levels))


@cache
def releases(count: int) -> tuple[Release, ...]:
    return tuple(
        Release(system="fake", version=f"5.0.{one}", line="5.0", ordinal=one) for one in range(count)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a bisection may take, and how it is looked at."""

    trials_per_probe: int = 40
    trials: int | None = None
    is_exact: bool = False
    """Looks by the real, slow estimate."""


def bisect(line: Line, means: Means, rng: Generator) -> Culprit | Inconclusive:
    """Bisect a line to its end."""
    verdicts: list[Probed] = []
    blocks: dict[int, list[Block]] = {}
    while True:
        used = sum(2 * HALF * len(of_one) for of_one in blocks.values())
        left = None if means.trials is None else means.trials - used
        step = next_step(
            line.releases,
            verdicts,
            higher_is_better=True,
            trials_per_probe=means.trials_per_probe,
            trials_left=left,
        )
        if not isinstance(step, Probe):
            return step
        verdicts.append(_probe(step, line, means, left, blocks, rng))


def _probe(
    step: Probe,
    line: Line,
    means: Means,
    left: int | None,
    known: dict[int, list[Block]],
    rng: Generator,
) -> Probed:
    place = step.release.ordinal
    if place in line.broken:
        return Probed(release=step.release, trials=1, reason="it does not start")
    blocks = known.setdefault(place, [])
    most = means.trials_per_probe if left is None else min(means.trials_per_probe, left)
    rule = StoppingRule(
        higher_is_better=True,
        relevant_change=0.02,
        false_share=0.01,
        missed_share=0.02,
        most_blocks=most // (2 * HALF) + len(blocks),
    )
    rule = rule_of_probe(rule, step.full_change)
    see = partial(probe_look if means.is_exact else _fast_look, full_change=step.full_change)
    while True:
        values = np.exp(
            SIGMA * (line.noise(rng, 2 * HALF) + np.repeat([0.0, line.levels[place]], HALF))
        )
        measured = tuple(TrialValue(value=float(value)) for value in values)
        blocks.append(Block(baseline=measured[:HALF], candidate=measured[HALF:]))
        seen = see(blocks, rule, 1)
        if seen.is_over:
            trials = 2 * HALF * len(blocks)
            return Probed(
                release=step.release,
                trials=trials,
                estimate=seen.estimate,
                effect=seen.effect,
                relevant_change=rule.relevant_change,
            )


def _fast_look(
    blocks: Sequence[Block], rule: StoppingRule, _: int, *, full_change: LevelSpan | None
) -> InterimAnalysis:
    """Look by means and a pooled deviation, with the levels of the real looks."""
    count = len(blocks)
    if count < 2:
        return InterimAnalysis(outcome=Outcome.UNDECIDED, is_over=False, reason="too few")
    logs = np.log([[one.value for one in (*b.baseline, *b.candidate)] for b in blocks])
    before, after = logs[:, :HALF], logs[:, HALF:]
    middles = logs.mean(axis=1, keepdims=True)
    freedom = logs.size - count - 1
    rest = sum(float(np.square(s - middles - (s - middles).mean()).sum()) for s in (before, after))
    found = Estimate(
        log_ratio=float(after.mean() - before.mean()),
        standard_error=math.sqrt(rest / freedom * 2 / (HALF * count)),
        degrees_of_freedom=freedom,
        baseline_trials=HALF * count,
        candidate_trials=HALF * count,
    )
    width = _half_width(count, rule) * found.standard_error
    effect = Effect(
        relative_change=math.expm1(found.log_ratio),
        low=math.expm1(found.log_ratio - width),
        high=math.expm1(found.log_ratio + width),
        confidence=1 - 2 * rule.missed_share,
    )
    seen = InterimAnalysis(
        outcome=Outcome.UNDECIDED, is_over=False, reason="", estimate=found, effect=effect
    )
    return read_look(seen, count, rule, full_change)


@cache
def _half_width(blocks: int, rule: StoppingRule) -> float:
    """Return half the interval of a real look after so many blocks, in standard errors."""
    values = [TrialValue(value=1 + 0.01 * each) for each in range(3)]
    block = Block(baseline=(values[0], values[1]), candidate=(values[0], values[2]))
    seen = look([block] * blocks, rule, 1)
    if seen.effect is None or seen.estimate is None:
        raise ValueError(f"no interval after {blocks} blocks")
    width = math.log1p(seen.effect.high) - math.log1p(seen.effect.low)
    return width / 2 / seen.estimate.standard_error
