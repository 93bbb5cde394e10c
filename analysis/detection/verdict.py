"""Verdicts: one of five outcomes, with a merge order in which "cannot tell" never looks like "fine".

Worst first: regressed, invalid, undecided, improved, unchanged. A regression in one series is news
whatever the others say. Then comes what could not be judged, above every good outcome, since a part
that nobody could judge may hide a regression.
"""

from collections.abc import Iterable
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


def merge(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the worst outcome; undecided where there is none, since nothing judged is not fine."""
    return min(outcomes, key=WORST_FIRST.index, default=Outcome.UNDECIDED)
