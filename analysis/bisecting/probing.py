"""Probes of a bisection: one release side by side with the known good end, and how it stands. Pure.

The full change is what the known bad end showed against the known good one. A probe is read by two
shares of it, one low and one high: below the high one it is not like the bad end, above the low one it
is not like the good end.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from analysis.bisecting.words import say_standing
from analysis.comparing.blocks import Block, Measure
from analysis.comparing.paired import Estimate, estimate
from analysis.comparing.results import ComparisonResult, MeasureResult
from analysis.comparing.sequential import InterimAnalysis, StoppingRule, look
from analysis.detection.effects import Effect
from analysis.detection.verdict import Outcome
from perf.model.results import Release

LOW, HIGH = 0.35, 0.65
"""Shares of the full change. A probe must leave the good end's side of the low one, or the bad end's
side of the high one; apart enough that a full change that is a fifth off misleads nobody."""
END_SHARE, PROBE_SHARE, FIRM_SHARE = 0.0075, 0.05, 0.005
"""How often the interval of a probe may miss on one side, over all looks. At the bad end, a miss starts
the search for a change that is not there; elsewhere, it must miss by a third of the change to harm. The
last is for a release that is probed again, because it does not fit the others."""
EXACT = 0.5
"""Half the interval of the full change as a share of it: all probes are held against it."""


class ReleaseStatus(StrEnum):
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
    `reason` then says why, in a sentence. `trials` of both sides together. `relevant_change` is the
    share below which a change is not worth acting on.
    """

    release: Release
    trials: int = 0
    estimate: Estimate | None = None
    effect: Effect | None = None
    relevant_change: float = 0.0
    reason: str = ""

    @property
    def is_same(self) -> bool:
        """Return whether it is shown to differ by less than what is worth acting on, if at all."""
        return self.effect is not None and self.effect.lies_within(self.relevant_change)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseLevel:
    """How far a release is from the known good end: a log ratio, its standard error, and their freedom.

    `half_width` is half the interval that holds over all looks. The good end is its own zero, without
    an error.
    """

    log_ratio: float = 0.0
    standard_error: float = 0.0
    half_width: float = 0.0
    degrees_of_freedom: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSpan:
    """The change that a bisection looks for: from the level of a good release to that of a bad one.

    `is_firm` asks for more certainty, of a release that is probed again.
    """

    lower: ReleaseLevel
    upper: ReleaseLevel
    is_firm: bool = False

    @property
    def size(self) -> float:
        """Return the change as a log ratio."""
        return self.upper.log_ratio - self.lower.log_ratio


def level(probed: Probed) -> ReleaseLevel | None:
    """Return the level of a probed release; None where it could not be measured."""
    known, effect = probed.estimate, probed.effect
    if known is None or effect is None:
        return None
    return ReleaseLevel(
        log_ratio=known.log_ratio,
        standard_error=known.standard_error,
        half_width=_half_width(effect),
        degrees_of_freedom=known.degrees_of_freedom,
    )


def stand(probed: Probed, span: LevelSpan) -> ReleaseStatus:
    """Describe how a probed release stands between the two levels of a span."""
    if probed.estimate is None or probed.effect is None:
        return ReleaseStatus.SKIPPED
    return classify(probed.estimate, probed.effect, span)


def classify(found: Estimate, effect: Effect, span: LevelSpan) -> ReleaseStatus:
    """Describe how a measured release stands; never SKIPPED.

    With S the change looked for and x the estimate above the lower level, in the direction of S,
    and the interval of `effect` joined (by root of squares) with that of the level it is held against:

    - between: it excludes both levels, on the inside;
    - good: its upper end is below 0.65 S, and it does not exclude the lower level;
    - bad: its lower end is above 0.35 S, and it does not exclude the upper level;
    - opposite: its upper end is below -0.35 S.
    """
    sign, size = math.copysign(1.0, span.size), abs(span.size)
    x = sign * (found.log_ratio - span.lower.log_ratio)
    below = math.hypot(_half_width(effect), span.lower.half_width)
    above = math.hypot(_half_width(effect), span.upper.half_width)
    is_changed, is_short = x - below > 0, x + above < size
    if x + below < -LOW * size:
        return ReleaseStatus.OPPOSITE
    if is_changed and is_short:
        return ReleaseStatus.BETWEEN
    if x + below < HIGH * size and not is_changed:
        return ReleaseStatus.GOOD
    if x - below > LOW * size and not is_short:
        return ReleaseStatus.BAD
    return ReleaseStatus.UNDECIDED


def probe_look(
    blocks: Sequence[Block], rule: StoppingRule, seed: int, *, full_change: LevelSpan | None
) -> InterimAnalysis:
    """Look at a probe; over as soon as the release is classified. A `looker` of `run_comparison`.

    Give the rule the one measure that is bisected. Without a full change it is the probe of the bad
    end itself: over once the change shows and is known to half its size, or is shown not to be there.
    The outcome is unchanged for a release like the good end, regressed or improved for one like the
    bad end (or, at the bad end, for a change that is worth acting on), else undecided.
    """
    strict = rule_of_probe(rule, full_change)
    return read_look(look(blocks, strict, seed), len(blocks), strict, full_change)


def rule_of_probe(rule: StoppingRule, full_change: LevelSpan | None) -> StoppingRule:
    """Return the rule of a probe: the error that it may make is that of a bisection.

    Only the interval is read, against more than zero: so nothing stricter is asked of zero.
    """
    share = FIRM_SHARE if full_change and full_change.is_firm else PROBE_SHARE
    return replace(rule, missed_share=share if full_change else END_SHARE, false_share=0.5)


def read_look(
    seen: InterimAnalysis, blocks: int, rule: StoppingRule, full_change: LevelSpan | None
) -> InterimAnalysis:
    """Read a look at so many blocks as one at a probe."""
    is_over = blocks >= rule.most_blocks
    if seen.estimate is None or seen.effect is None:
        return replace(seen, is_over=is_over or seen.outcome is Outcome.INVALID)
    effect = seen.effect
    if full_change is None:
        standing = ReleaseStatus.UNDECIDED
        if effect.lies_within(rule.relevant_change):
            standing, is_over = ReleaseStatus.GOOD, True
        elif effect.low > 0 or effect.high < 0:
            standing = ReleaseStatus.BAD
            is_over = is_over or _half_width(effect) < EXACT * abs(seen.estimate.log_ratio)
    else:
        standing = classify(seen.estimate, effect, full_change)
        is_over = is_over or standing is not ReleaseStatus.UNDECIDED
    outcome = Outcome.UNDECIDED
    if standing is ReleaseStatus.GOOD:
        outcome = Outcome.UNCHANGED
    elif standing is ReleaseStatus.BAD:
        is_better = (effect.relative_change > 0) == rule.higher_is_better
        outcome = Outcome.IMPROVED if is_better else Outcome.REGRESSED
    return replace(seen, outcome=outcome, is_over=is_over, reason=say_standing(standing))


def read_probe(release: Release, result: ComparisonResult, measure: Measure) -> Probed:
    """Read off a finished comparison with the known good end what the probe of a release came to."""
    found = next((one for one in result.measures if one.measure == measure), None)
    known = _estimate(found, result.seed) if found else None
    if found is None or found.effect is None or known is None:
        return Probed(release=release, trials=len(result.trials), reason=result.reason)
    return Probed(
        release=release,
        trials=len(result.trials),
        estimate=known,
        effect=found.effect,
        relevant_change=found.relevant_change,
    )


def _estimate(found: MeasureResult, seed: int) -> Estimate | None:
    values = (*found.baseline, *found.candidate)
    blocks = tuple(
        Block(
            baseline=tuple(one for one in found.baseline if one.block == number),
            candidate=tuple(one for one in found.candidate if one.block == number),
        )
        for number in sorted({one.block for one in values})
    )
    try:
        return estimate(blocks, seed)
    except ValueError:
        return None


def _half_width(effect: Effect) -> float:
    # An interval of next to no trials may reach down to nothing at all, whose logarithm is no number.
    low = math.log1p(effect.low) if effect.low > -1 else -math.inf
    return (math.log1p(effect.high) - low) / 2
