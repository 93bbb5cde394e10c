"""Detection: what a detector is, what a change point is, and when one may be believed."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Protocol

from analysis.comparison import relative_change
from analysis.series import Point, Series
from analysis.verdict import Outcome
from perf.design import Detection
from perf.metrics import METRICS, Better


class State(StrEnum):
    """Whether enough points lie on both sides of a change to believe it.

    One point cannot tell a spike from a step, neither as the newest point nor between two changes.
    """

    PROVISIONAL = "provisional"
    CONFIRMED = "confirmed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """What a detector reports: the index of the first point after a change, and its p-value."""

    index: int
    p_value: float


class Detector(Protocol):
    """Finds shifts in a sequence of finite numbers, in order. Pure."""

    @property
    def name(self) -> str:
        """Name the method, as change points carry it."""
        ...

    def find_shifts(self, values: Sequence[float]) -> tuple[Shift, ...]:
        """Give the shifts, ascending by index."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """Where a series changed: between two neighbouring points.

    A segment reaches from one change to the next, or to an end of the series. `before` and `after`
    are the means of the segments on both sides, `points_after` is the size of the second one;
    `relative_change` is (after - before) / |before|, infinite where `before` is zero; `index` is that
    of `first_after`; `outcome` is regressed or improved by the metric's direction.
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


def find_changes(series: Series, detector: Detector, settings: Detection) -> tuple[ChangePoint, ...]:
    """Find where a series changed, ascending by index.

    A change is provisional while either of its segments has fewer than `confirming_points` points.
    Raises KeyError where the series' metric is not in `METRICS`: its direction is unknown.
    """
    better = METRICS[series.key.metric].better
    shifts = detector.find_shifts([point.value for point in series.points])
    bounds = (0, *(shift.index for shift in shifts), len(series.points))
    changes = []
    for shift, start, end in zip(shifts, bounds, bounds[2:], strict=False):
        left, right = series.points[start : shift.index], series.points[shift.index : end]
        before, after = (fmean(point.value for point in side) for side in (left, right))
        enough = min(len(left), len(right)) >= settings.confirming_points
        changes.append(
            ChangePoint(
                series=series,
                last_before=left[-1],
                first_after=right[0],
                index=shift.index,
                before=before,
                after=after,
                relative_change=relative_change(before, after),
                p_value=shift.p_value,
                points_after=len(right),
                detector=detector.name,
                state=State.CONFIRMED if enough else State.PROVISIONAL,
                outcome=_outcome(better, before, after),
            )
        )
    return tuple(changes)


def _outcome(better: Better, before: float, after: float) -> Outcome:
    rose = after > before
    return Outcome.IMPROVED if rose is (better is Better.HIGHER) else Outcome.REGRESSED
