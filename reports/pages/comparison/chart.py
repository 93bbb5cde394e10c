"""Turns: each trial's value of one measure as a mark, in the order in which the trials ran."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median

from perf.model.results import SideName

_WIDTH, _HEIGHT, _MARGIN = 640.0, 190.0, 12.0
_LEAST_SPAN = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A trial that ran: its place in the order, from 0 on, its block, and its value, if it has one.

    `iterations` are the values of its parts, `text` what is told of it.
    """

    place: int
    block: int
    side: SideName
    value: float
    iterations: tuple[float, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A mark at `x`, `y`, and the line from the least to the greatest iteration, `low` to `high`."""

    side: SideName
    x: float
    y: float
    low: float
    high: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnChart:
    """Marks in a box; `middles` are the heights of the medians, `borders` lie between blocks.

    `top` and `bottom` are the values at the upper and the lower edge.
    """

    width: float
    height: float
    marks: tuple[Mark, ...]
    middles: tuple[tuple[SideName, float], ...]
    borders: tuple[float, ...]
    top: float
    bottom: float


def draw_turns(turns: Sequence[Turn], places: int) -> TurnChart | None:
    """Draw turns among `places` of all trials; None where there is nothing to draw.

    The scale spans at least a tenth of the values, so that noise stays small.
    """
    drawn = [one for one in turns if isfinite(one.value)]
    if not drawn:
        return None
    values = [value for one in drawn for value in (one.value, *filter(isfinite, one.iterations))]
    middle = (min(values) + max(values)) / 2
    half = max((max(values) - min(values)) / 2, _LEAST_SPAN / 2 * abs(middle)) or 1.0

    def height(value: float) -> float:
        return round(_MARGIN + (_HEIGHT - 2 * _MARGIN) * (1 - (value - middle) / half) / 2, 1)

    def across(place: float) -> float:
        return round(_WIDTH * (place + 0.5) / max(1, places), 1)

    firsts = {one.block: one.place for one in sorted(drawn, key=lambda one: -one.place)}
    sides = sorted({one.side for one in drawn})
    return TurnChart(
        width=_WIDTH,
        height=_HEIGHT,
        marks=tuple(
            Mark(
                side=one.side,
                x=across(one.place),
                y=height(one.value),
                low=height(min((one.value, *filter(isfinite, one.iterations)))),
                high=height(max((one.value, *filter(isfinite, one.iterations)))),
                text=one.text,
            )
            for one in drawn
        ),
        middles=tuple(
            (side, height(median(one.value for one in drawn if one.side == side))) for side in sides
        ),
        borders=tuple(across(place - 0.5) for place in sorted(firsts.values())[1:]),
        top=middle + half,
        bottom=middle - half,
    )
