"""Strip charts: values over time in a small still box, one beside the other; and days as bars."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from math import isfinite
from statistics import median

_WIDTH, _HEIGHT, _MARGIN = 320.0, 96.0, 8.0
_LEAST_SPAN = 0.1
_MOST = 400
"""Values that are drawn, the newest: more would be a smear in so small a box."""
_LONG_GAP, _LEAST_GAP = 6.0, 24.0
"""A gap this many times as wide as most, and so many units of the box, breaks a line."""
_BAR, _BAR_GAP, _BAR_HEIGHT = 14.0, 6.0, 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StripChart:
    """Lines in a box; `lines` are paths that are broken where nothing was measured, `ends` their ends.

    `top` and `bottom` are the values at the upper and the lower edge, `first` and `last` the times at
    the left and the right one.
    """

    width: float
    height: float
    lines: tuple[str, ...]
    ends: tuple[tuple[float, float], ...]
    top: float
    bottom: float
    first: datetime
    last: datetime


def draw_strip(lines: Sequence[Sequence[tuple[datetime, float]]]) -> StripChart | None:
    """Draw lines of values over time into one box; None where there is nothing to draw.

    The scale spans at least a tenth of the values, so that noise stays small.
    """
    drawn = [[(at, value) for at, value in line if isfinite(value)][-_MOST:] for line in lines]
    found = [one for line in drawn for one in line]
    if not found:
        return None
    times = [at for at, _ in found]
    values = [value for _, value in found]
    first, last = min(times), max(times)
    length_s = (last - first).total_seconds()
    middle = (min(values) + max(values)) / 2
    half = max((max(values) - min(values)) / 2, _LEAST_SPAN / 2 * abs(middle)) or 1.0

    def place(at: datetime, value: float) -> tuple[float, float]:
        share = (at - first).total_seconds() / length_s if length_s else 0.5
        x = _MARGIN + (_WIDTH - 2 * _MARGIN) * share
        y = _MARGIN + (_HEIGHT - 2 * _MARGIN) * (1 - (value - middle) / half) / 2
        return round(x, 1), round(y, 1)

    placed = [[place(*one) for one in line] for line in drawn if line]
    return StripChart(
        width=_WIDTH,
        height=_HEIGHT,
        lines=tuple(_trace(line) for line in placed),
        ends=tuple(line[-1] for line in placed),
        top=middle + half,
        bottom=middle - half,
        first=first,
        last=last,
    )


def _trace(line: Sequence[tuple[float, float]]) -> str:
    """Give the path of a line, broken at gaps: what lies between was not measured."""
    gaps = [after[0] - before[0] for before, after in pairwise(line)]
    longest = max(_LONG_GAP * median(gaps), _LEAST_GAP) if gaps else 0.0
    # A point alone is a line of no length, which round ends make a dot.
    parts = [f"M{line[0][0]:g},{line[0][1]:g}h0"] if line else []
    for gap, (x, y) in zip(gaps, line[1:], strict=True):
        parts.append(f"L{x:g},{y:g}" if gap <= longest else f"M{x:g},{y:g}h0")
    return "".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar at `x`; its lower part, `height` high from `y`, and on top of it another, from `top_y`."""

    x: float
    y: float
    height: float
    top_y: float
    top_height: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BarChart:
    """Bars of one width in a box."""

    width: float
    height: float
    bar_width: float
    bars: tuple[Bar, ...]


def draw_bars(values: Sequence[tuple[float, float, str]], most: float) -> BarChart:
    """Draw a bar for each pair of values, one on top of the other, `most` at the height of the box."""

    def high(value: float) -> float:
        return round(_BAR_HEIGHT * min(1.0, value / most), 1)

    return BarChart(
        width=round(len(values) * (_BAR + _BAR_GAP) + _BAR_GAP, 1),
        height=_BAR_HEIGHT,
        bar_width=_BAR,
        bars=tuple(
            Bar(
                x=round(_BAR_GAP + place * (_BAR + _BAR_GAP), 1),
                y=round(_BAR_HEIGHT - high(low), 1),
                height=high(low),
                top_y=round(_BAR_HEIGHT - high(low + top), 1),
                top_height=round(high(low + top) - high(low), 1),
                text=text,
            )
            for place, (low, top, text) in enumerate(values)
        ),
    )
