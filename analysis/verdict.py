"""Verdicts: one of five outcomes, with a merge order in which "cannot tell" never looks like "fine"."""

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What a judgement came to."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    UNDECIDED = "undecided"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """An outcome with its reason in one sentence.

    `relative_change` is (after - before) / before, signed as measured, not by direction.
    """

    outcome: Outcome
    reason: str
    relative_change: float | None = None
    p_value: float | None = None
