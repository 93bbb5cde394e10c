"""Detection: what a detector is, what it can see in a series, and when a change may be believed."""

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Protocol

import numpy as np

from analysis.detection.effects import relative_change
from analysis.detection.noise import Noise, Values, median
from analysis.detection.series import Point, Series
from analysis.detection.verdict import Outcome
from analysis.detection.weeks import Days, without_week
from perf.model.metrics import DIAGNOSTICS, METRICS, Better

_OUTLIER = 3.0
"""Standard deviations from the middle of a level; further out a point is pulled in."""


class ChangeState(StrEnum):
    """Whether there is enough evidence to believe a change.

    One point cannot tell a spike from a step, neither as the newest point nor between two changes.
    """

    PROVISIONAL = "provisional"
    CONFIRMED = "confirmed"

    @property
    def word(self) -> str:
        """Return what people call it; the value is what files hold."""
        return "suspected" if self is ChangeState.PROVISIONAL else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A lasting step of the level.

    `index` is that of the first point after it; it lies from `earliest` to `latest` at the detector's
    confidence. `p_value` already allows for the many places where the detector looked.
    """

    index: int
    earliest: int
    latest: int
    p_value: float
    is_confirmed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A slow movement, no step: from the point `first` to the point `last`, from level to level."""

    first: int
    last: int
    before: float
    after: float

    def moved(self, place: int) -> float:
        """Return how far the level has moved at a point."""
        share = (place - self.first) / (self.last - self.first)
        return (self.after - self.before) * min(max(share, 0.0), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadChange:
    """A change of the scatter, not of the level: standard deviations before and from `index` on."""

    index: int
    before: float
    after: float
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorResult:
    """What a detector sees in one sequence, each kind ascending; `noise` is None if it is unknown.

    `week` is by how much each day of the week is off the level, where a pattern is sure: all else is
    seen in the values without it.
    """

    shifts: tuple[Shift, ...] = ()
    drifts: tuple[Drift, ...] = ()
    spreads: tuple[SpreadChange, ...] = ()
    noise: Noise | None = None
    week: tuple[float, ...] = ()


class Detector(Protocol):
    """Reads a sequence of finite numbers, in order, with the days they were measured on. Pure."""

    @property
    def name(self) -> str:
        """Name the method, as change points carry it."""
        ...

    def read(self, values: Sequence[float] | Values, days: Days = ()) -> DetectorResult:
        """Describe what is to be seen; of days that are not known, no weekly pattern.

        Raises ValueError on values that are not finite.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """Where a series changed: between two neighbouring points.

    A segment reaches from one change to the next, or to an end of the series. `before` and `after`
    are the means of the segments on both sides, `points_after` is the size of the second one;
    `relative_change` is (after - before) / |before|, infinite where `before` is zero; `index` is that
    of `first_after` and lies from `earliest` to `latest`; `outcome` is regressed or improved by the
    metric's direction.
    """

    series: Series
    last_before: Point
    first_after: Point
    index: int
    earliest: int
    latest: int
    before: float
    after: float
    relative_change: float
    p_value: float
    points_after: int
    detector: str
    state: ChangeState
    outcome: Outcome


def find_changes(series: Series, reading: DetectorResult, detector: str) -> tuple[ChangePoint, ...]:
    """Put the shifts of a reading into the terms of the series, ascending by index.

    Raises KeyError where nothing is known of the series' metric, so not its direction either.
    """
    better = (METRICS | DIAGNOSTICS)[series.key.metric].better
    changes = []
    points = series.points
    for shift, before, after, points_after in levels(points.values, reading, points.days):
        changes.append(
            ChangePoint(
                series=series,
                last_before=points[shift.index - 1],
                first_after=points[shift.index],
                index=shift.index,
                earliest=shift.earliest,
                latest=shift.latest,
                before=before,
                after=after,
                relative_change=relative_change(before, after),
                p_value=shift.p_value,
                points_after=points_after,
                detector=detector,
                state=ChangeState.CONFIRMED if shift.is_confirmed else ChangeState.PROVISIONAL,
                outcome=outcome_of(better, before, after),
            )
        )
    return tuple(changes)


def levels(
    values: Sequence[float] | Values, reading: DetectorResult, days: Days
) -> Iterator[tuple[Shift, float, float, int]]:
    """Yield each shift with the levels on both sides and the number of points after it.

    A level is the mean of a segment, its outliers pulled in by the noise of the reading: else one of
    them could turn a step up into one down. `days` are those of the values: the week is left out.
    Where the series drifts, it is that without the drift, at the height of the drift at the shift: else
    a step up in a long way down would look like one down.
    """
    if not reading.shifts:
        return
    moved = np.zeros(len(values))
    if reading.drifts:
        moved[:] = [
            math.fsum(drift.moved(place) for drift in reading.drifts) for place in range(len(values))
        ]
    flat = without_week(values, days, reading.week) - moved
    bounds = (0, *(shift.index for shift in reading.shifts), len(values))
    segments = [_level(flat[start:end], reading.noise) for start, end in pairwise(bounds)]
    sizes = [end - start for start, end in pairwise(bounds)]
    for number, shift in enumerate(reading.shifts):
        height = float(moved[shift.index])
        before, after = segments[number], segments[number + 1]
        yield shift, before + height, after + height, sizes[number + 1]


def _level(values: Values, noise: Noise | None) -> float:
    middle = median(values)
    room = _OUTLIER * noise.deviation if noise else math.inf
    return math.fsum(array("d", np.clip(values, middle - room, middle + room).tobytes())) / len(values)


def outcome_of(better: Better, before: float, after: float) -> Outcome:
    """Return whether a movement is good news: regressed or improved."""
    rose = after > before
    return Outcome.IMPROVED if rose is (better is Better.HIGHER) else Outcome.REGRESSED
