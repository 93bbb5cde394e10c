"""Detection: what a detector is, what a change point is, and when one may be believed."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from analysis.series import Point, Series
from analysis.verdict import Outcome


class State(StrEnum):
    """Whether enough points follow a change to believe it."""

    PROVISIONAL = "provisional"
    CONFIRMED = "confirmed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """What a detector reports: the index of the first point after a change, and its p-value."""

    index: int
    p_value: float


class Detector(Protocol):
    """Finds shifts in a sequence of finite numbers, in order. Pure."""

    name: str

    def find_shifts(self, values: Sequence[float]) -> tuple[Shift, ...]:
        """Give the shifts, ascending by index."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """Where a series changed: between two neighbouring points.

    `before` and `after` are means of the segments on both sides; `relative_change` is
    (after - before) / before; `outcome` is regressed or improved by the metric's direction.
    """

    series: Series
    last_before: Point
    first_after: Point
    index: int
    before: float
    after: float
    relative_change: float
    p_value: float
    points_after: int
    detector: str
    state: State
    outcome: Outcome
