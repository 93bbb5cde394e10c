"""Probes of a bisection: one release side by side with the known good end, and how it stands. Pure.

The full change is what the known bad end showed against the known good one. A probe is read by two
shares of it, one low and one high: below the high one it is not like the bad end, above the low one it
is not like the good end.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from analysis.blocks import Block, Measure, Measured
from analysis.comparison import Effect
from analysis.comparison_file import ComparisonResult
from analysis.paired import Estimate, estimate
from analysis.sequential import Look, Rule, look
from analysis.verdict import Outcome
from perf.model import Release, SideName, TrialStatus

LOW, HIGH = 0.35, 0.65
"""Shares of the full change. A probe must leave the good end's side of the low one, or the bad end's
side of the high one; apart enough that a full change that is a fifth off misleads nobody."""


class Standing(StrEnum):
    """How a release stands between the two ends of a bisection."""

    GOOD = "good"
    """Like the known good end."""
    BAD = "bad"
    """Like the known bad end."""
    BETWEEN = "between"
    """Unlike both, and between them: several changes, or a gradual one."""
    OPPOSITE = "opposite"
    """Changed in the other direction than the ends."""
    UNDECIDED = "undecided"
    """Its trials cannot tell."""
    SKIPPED = "skipped"
    """It could not be measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What a probe of a release came to, against the known good end.

    `effect` is the change with the interval that holds over all looks, `estimate` the same as a
    logarithm with its standard error; both are None for a release that could not be measured, and
    `reason` then says why, in a sentence. `trials` of both sides together.
    """

    release: Release
    trials: int = 0
    estimate: Estimate | None = None
    effect: Effect | None = None
    reason: str = ""


def classify(found: Estimate, effect: Effect, full: Estimate) -> Standing:
    """Say how a probe stands, given the full change; never SKIPPED."""
    sign, size = math.copysign(1.0, full.log_ratio), abs(full.log_ratio)
    low, high = sorted((sign * math.log1p(effect.low), sign * math.log1p(effect.high)))
    if high < -LOW * size:
        return Standing.OPPOSITE
    # Half the interval in standard errors holds for the difference of two estimates as well.
    width = (high - low) / 2
    scale = math.hypot(1.0, full.standard_error / found.standard_error) if found.standard_error else 1.0
    is_changed, is_short = low > 0, size - sign * found.log_ratio > width * scale
    if is_changed and is_short:
        return Standing.BETWEEN
    if high < HIGH * size and not is_changed:
        return Standing.GOOD
    if low > LOW * size and not is_short:
        return Standing.BAD
    return Standing.UNDECIDED


def probe_look(blocks: Sequence[Block], rule: Rule, seed: int, *, full_change: Estimate | None) -> Look:
    """Look at a probe; over as soon as the release is classified. A `looker` of `run_comparison`.

    Without a full change it is the probe of the bad end itself. The outcome is unchanged for a release
    like the good end, regressed or improved for one like the bad end, else undecided.
    """
    seen = look(blocks, rule, seed)
    if seen.estimate is None or seen.effect is None or full_change is None:
        return seen
    standing = classify(seen.estimate, seen.effect, full_change)
    is_over = standing is not Standing.UNDECIDED or len(blocks) >= rule.most_blocks
    outcome = Outcome.UNDECIDED
    if standing is Standing.GOOD:
        outcome = Outcome.UNCHANGED
    elif standing is Standing.BAD:
        is_better = (seen.effect.relative_change > 0) == rule.higher_is_better
        outcome = Outcome.IMPROVED if is_better else Outcome.REGRESSED
    return replace(seen, outcome=outcome, is_over=is_over, reason=f"{standing}")


def read_probe(release: Release, result: ComparisonResult, measure: Measure) -> Probed:
    """Read off a finished comparison with the known good end what the probe of a release came to."""
    found = next((one for one in result.measures if one.measure == measure), None)
    blocks = _blocks(result, found.baseline, found.candidate) if found else ()
    try:
        known = estimate(blocks, result.seed)
    except ValueError:
        known = None
    if found is None or found.effect is None or known is None:
        return Probed(release=release, trials=len(result.trials), reason=result.reason)
    return Probed(
        release=release, trials=len(result.trials), estimate=known, effect=found.effect, reason=""
    )


def _blocks(
    result: ComparisonResult, baseline: Sequence[Measured], candidate: Sequence[Measured]
) -> tuple[Block, ...]:
    # The values are those of the completed trials, in order; which block each is of, the trials know.
    of: dict[SideName, Sequence[Measured]] = {"baseline": baseline, "candidate": candidate}
    numbers = {
        side: [
            one.block
            for one in result.trials
            if one.side == side and one.status is TrialStatus.COMPLETED
        ]
        for side in of
    }
    if any(len(numbers[side]) != len(values) for side, values in of.items()):
        # A trial without this measure: which one is not known, so all count as one block.
        numbers = {side: [1] * len(values) for side, values in of.items()}

    def take(side: SideName, number: int) -> tuple[Measured, ...]:
        pairs = zip(of[side], numbers[side], strict=True)
        return tuple(value for value, block in pairs if block == number)

    every = sorted({number for side in of for number in numbers[side]})
    blocks = (Block(baseline=take("baseline", n), candidate=take("candidate", n)) for n in every)
    return tuple(block for block in blocks if block.baseline and block.candidate)
