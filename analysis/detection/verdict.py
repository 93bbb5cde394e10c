"""Verdicts: one of five outcomes, with a merge order in which "cannot tell" never looks like "fine".

Worst first: regressed, invalid, undecided, improved, unchanged. A regression in one series is news
whatever the others say. Then comes what could not be judged, above every good outcome, since a part
that nobody could judge may hide a regression.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What a judgement came to."""

    REGRESSED = "regressed"
    """Worse than before: significant, confirmed and relevant."""
    IMPROVED = "improved"
    """Better than before: significant, confirmed and relevant."""
    UNCHANGED = "unchanged"
    """Shown equivalent to what came before, within the relevant change."""
    UNDECIDED = "undecided"
    """Too few points, or too much scatter, to say any of the above."""
    INVALID = "invalid"
    """There is nothing that could be judged: no valid trial, or no rule to judge it by."""


WORST_FIRST = (
    Outcome.REGRESSED,
    Outcome.INVALID,
    Outcome.UNDECIDED,
    Outcome.IMPROVED,
    Outcome.UNCHANGED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """An outcome with its reason.

    `reason` is what it rests on, in words, `notes` what else is known of that, one thing each. `change`
    is the index of the change that it is about, in its series; None where it is about no change.
    `relative_change` is (after - before) / before, signed as measured, not by direction. Whether the
    change is significant (more than this series' own scatter) and whether it is relevant (large enough
    to act on) are two questions; None where one cannot be answered.
    """

    outcome: Outcome
    reason: str
    notes: tuple[str, ...] = ()
    change: int | None = None
    relative_change: float | None = None
    p_value: float | None = None
    is_significant: bool | None = None
    is_relevant: bool | None = None


def merge(outcomes: Iterable[Outcome]) -> Outcome:
    """Give the worst outcome; undecided where there is none, since nothing judged is not fine."""
    return min(outcomes, key=WORST_FIRST.index, default=Outcome.UNDECIDED)
