"""The chart of one change: the points around it, the level on both sides, where else it may lie.

A still picture, so that the page of an incident shows its evidence where no script runs, and in print;
the page of the series has the chart that can be zoomed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

from analysis.detection.detection import ChangePoint

_WIDTH, _HEIGHT, _MARGIN = 720.0, 240.0, 14.0
_AROUND = 40
"""Points on each side of the change: more would be dust, and the series page has them all."""
_LEAST_SPAN = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A point at `x`, `y`; `is_after` if it has the change; `text` is what is told of it."""

    x: float
    y: float
    is_after: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelLine:
    """The mean between two neighbouring changes, from `x1` to `x2` at height `y`."""

    x1: float
    x2: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeChart:
    """Marks in a box; `at` is where the change is, `place_x` and `place_width` where it may lie.

    `top` and `bottom` are the values at the upper and the lower edge, `first` and `last` the numbers
    of the first and the last point that is shown, from 0 on, `points` how many there are.
    """

    width: float
    height: float
    dots: tuple[Dot, ...]
    levels: tuple[LevelLine, ...]
    at: float
    place_x: float
    place_width: float
    top: float
    bottom: float
    first: int
    last: int


def draw_change(
    change: ChangePoint, changes: Sequence[ChangePoint], texts: Sequence[str]
) -> ChangeChart | None:
    """Draw the points around a change of a series; None where there is nothing to draw.

    `changes` are all changes of the series, `texts` what is told of each of its points. The scale spans
    at least a tenth of the values, so that noise stays small.
    """
    points = change.series.points
    first, last = max(0, change.index - _AROUND), min(len(points), change.index + _AROUND)
    drawn = [number for number in range(first, last) if isfinite(points[number].value)]
    if not drawn:
        return None
    edges = sorted({first, last, *(one.index for one in changes if first < one.index < last)})
    levels = [
        (one, other, _level_from(one, changes))
        for one, other in pairwise(edges)
        if any(one <= number < other for number in drawn)
    ]
    values = [*(points[number].value for number in drawn), *(level for *_, level in levels)]
    middle = (min(values) + max(values)) / 2
    half = max((max(values) - min(values)) / 2, _LEAST_SPAN / 2 * abs(middle)) or 1.0

    def height(value: float) -> float:
        return round(_MARGIN + (_HEIGHT - 2 * _MARGIN) * (1 - (value - middle) / half) / 2, 1)

    def across(place: float) -> float:
        return round(_WIDTH * (place - first + 0.5) / (last - first), 1)

    left = across(max(first, change.earliest) - 0.5)
    return ChangeChart(
        width=_WIDTH,
        height=_HEIGHT,
        dots=tuple(
            Dot(
                x=across(number),
                y=height(points[number].value),
                is_after=number >= change.index,
                text=texts[number],
            )
            for number in drawn
        ),
        levels=tuple(
            LevelLine(x1=across(one - 0.5), x2=across(other - 0.5), y=height(level))
            for one, other, level in levels
        ),
        at=across(change.index - 0.5),
        place_x=left,
        place_width=round(across(min(last - 1, change.latest) - 0.5) - left, 1),
        top=middle + half,
        bottom=middle - half,
        first=first,
        last=last - 1,
    )


def _level_from(start: int, changes: Sequence[ChangePoint]) -> float:
    """Give the level from a point on as the changes beside it tell it: with outliers pulled in."""
    ordered = sorted(changes, key=lambda one: one.index)
    before = [one for one in ordered if one.index <= start]
    return before[-1].after if before else ordered[0].before
