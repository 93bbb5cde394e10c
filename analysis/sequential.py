"""When is one more block worth it? Looks at a growing comparison that keep its error rates. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.blocks import Block
from analysis.comparison import Effect
from analysis.paired import Estimate, estimate
from analysis.verdict import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one measure is decided.

    `relevant_change` is the share below which a change is not worth acting on (Δ); `false_share` how
    often two equal sides may come out as regressed, over all looks together (as often as improved);
    `most_blocks` how many blocks the budget allows: the last look.
    """

    higher_is_better: bool
    relevant_change: float
    false_share: float
    most_blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What is known after some blocks; the interval holds over all looks together.

    `outcome` is undecided while more may be told. `is_over` says that no further block is worth it:
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


def look(blocks: Sequence[Block], rule: Rule, seed: int) -> Look:
    """Look at a comparison after its blocks so far.

    Invalid where no ratio can be computed because values are not above zero.
    """
    used_up = len(blocks) >= rule.most_blocks
    if len(blocks) < min(2, rule.most_blocks):
        return Look(outcome=Outcome.UNDECIDED, is_over=used_up, reason="too few blocks yet")
    try:
        found = estimate(blocks, seed)
    except ValueError as error:
        return Look(outcome=Outcome.INVALID, is_over=True, reason=str(error))
    effect = found.interval(rule.false_share / rule.most_blocks)
    outcome = _outcome(effect, rule)
    return Look(
        outcome=outcome,
        is_over=used_up or outcome is not Outcome.UNDECIDED,
        reason="",
        estimate=found,
        effect=effect,
        detectable=effect.high - effect.relative_change,
    )


def _outcome(effect: Effect, rule: Rule) -> Outcome:
    if effect.lies_within(rule.relevant_change):
        return Outcome.UNCHANGED
    if effect.low <= 0 <= effect.high:
        return Outcome.UNDECIDED
    is_better = (effect.low > 0) == rule.higher_is_better
    return Outcome.IMPROVED if is_better else Outcome.REGRESSED
