"""Percentiles over the time that phases took, on a logarithmic scale."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from reports.pages.reproduction.courses import CourseWindow

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 720.0, 260.0, 56.0, 12.0, 28.0
_LEAST_MS = 0.01
_LEAST_GAP = 16.0
"""Between two numbers below the chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A phase in the chart: its number and where that stands, its name, and its two lines.

    `number_x` is None where the phase is too short for a number beside that of the one before.
    """

    number: int
    number_x: float | None
    name: str
    begin: float
    p50: str
    p99: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseChart:
    """Phases from left to right; `levels` are heights of the scale with their text in ms."""

    width: float
    height: float
    left: float
    bottom: float
    stretches: tuple[Stretch, ...]
    levels: tuple[tuple[float, str], ...]


def draw_course(windows: Sequence[CourseWindow]) -> CourseChart | None:
    """Draw p50 and p99 of windows in order of time; None where there is nothing to draw."""
    if not windows:
        return None
    end_s = max(one.at_s + one.length_s for one in windows) or 1.0
    values = [max(value, _LEAST_MS) for one in windows for value in (one.p50_ms, one.p99_ms)]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)

    def across(at_s: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - 4) * at_s / end_s, 1)

    def height(value_ms: float) -> float:
        share = (math.log10(max(value_ms, _LEAST_MS)) - low) / (high - low)
        return round(_HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * share, 1)

    def trace(places: Sequence[tuple[CourseWindow, float]]) -> str:
        # A phase of one window is a line as long as it; of several, from middle to middle.
        if len(places) == 1:
            one, value = places[0]
            return f"M{across(one.at_s):g},{height(value):g}H{across(one.at_s + one.length_s):g}"
        points = [f"{across(one.at_s + one.length_s / 2):g},{height(value):g}" for one, value in places]
        return "M" + "L".join(points)

    stretches: list[Stretch] = []
    last_x = _LEFT - _LEAST_GAP
    for number, (name, group) in enumerate(groupby(windows, key=lambda one: one.phase), start=1):
        own = tuple(group)
        middle = round((across(own[0].at_s) + across(own[-1].at_s + own[-1].length_s)) / 2, 1)
        has_room = middle - last_x >= _LEAST_GAP
        last_x = middle if has_room else last_x
        stretches.append(
            Stretch(
                number=number,
                number_x=middle if has_room else None,
                name=name,
                begin=across(own[0].at_s),
                p50=trace([(one, one.p50_ms) for one in own]),
                p99=trace([(one, one.p99_ms) for one in own]),
            )
        )
    return CourseChart(
        width=_WIDTH,
        height=_HEIGHT,
        left=_LEFT,
        bottom=_HEIGHT - _BOTTOM,
        stretches=tuple(stretches),
        levels=tuple((height(10.0**power), f"{10.0**power:,g}") for power in range(low, high + 1)),
    )
