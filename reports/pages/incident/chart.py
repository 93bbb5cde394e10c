"""The chart of one change: the points around it, the level on both sides, where else it may lie.

A still picture, so that the page of an incident shows its evidence where no script runs, and in print;
the page of the series has the chart that can be zoomed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

from analysis.detection.detection import ChangePoint
from analysis.detection.series import Point
from reports.site.svg import Scale, fit

_WIDTH, _HEIGHT, _MARGIN = 720.0, 240.0, 14.0
_AROUND = 40
"""Points on each side of the change: more would be dust, and the series page has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeChart:
    """What is drawn of the points `first` to `last`, by their numbers from 0 on, and where.

    `levels` are the means between neighbouring changes, each from one number to another.
    """

    x: Scale
    y: Scale
    width: float
    height: float
    first: int
    last: int
    points: tuple[tuple[int, Point], ...]
    levels: tuple[tuple[int, int, float], ...]


def draw_change(change: ChangePoint, changes: Sequence[ChangePoint]) -> ChangeChart | None:
    """Draw the points around one of the changes of a series; None where there is nothing to draw."""
    points = change.series.points
    first, last = max(0, change.index - _AROUND), min(len(points), change.index + _AROUND)
    drawn = [(at, points[at]) for at in range(first, last) if isfinite(points[at].value)]
    if not drawn:
        return None
    edges = sorted({first, last, *(one.index for one in changes if first < one.index < last)})
    levels = [
        (one, other, _level_from(one, changes))
        for one, other in pairwise(edges)
        if any(one <= at < other for at, _ in drawn)
    ]
    values = (*(point.value for _, point in drawn), *(level for *_, level in levels))
    return ChangeChart(
        x=Scale(first - 0.5, last - 0.5, 0.0, _WIDTH),
        y=fit(values, _HEIGHT - _MARGIN, _MARGIN),
        width=_WIDTH,
        height=_HEIGHT,
        first=first,
        last=last - 1,
        points=tuple(drawn),
        levels=tuple(levels),
    )


def _level_from(start: int, changes: Sequence[ChangePoint]) -> float:
    """Give the level from a point on as the changes beside it tell it: with outliers pulled in."""
    ordered = sorted(changes, key=lambda one: one.index)
    before = [one for one in ordered if one.index <= start]
    return before[-1].after if before else ordered[0].before
