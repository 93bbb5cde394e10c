"""Sparklines: the trend of a series in a small box, as points of an SVG polyline."""

from collections.abc import Sequence
from dataclasses import dataclass

_SPARK_WIDTH, _SPARK_HEIGHT, _SPARK_MARGIN = 96, 24, 3
_SPARK_LEAST_SPAN = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparkline:
    """A line in a box of `width` × `height`; `path` holds its points, `x` and `y` its last one."""

    width: int
    height: int
    path: str
    x: str
    y: str
    label: str


def draw_sparkline(values: Sequence[float], label: str) -> Sparkline:
    """Fit values into a small box that spans at least a tenth of them, so that noise stays small."""
    middle = (min(values) + max(values)) / 2
    half = max((max(values) - min(values)) / 2, _SPARK_LEAST_SPAN / 2 * abs(middle)) or 1.0
    wide, tall = _SPARK_WIDTH - 2 * _SPARK_MARGIN, _SPARK_HEIGHT - 2 * _SPARK_MARGIN
    step = wide / max(1, len(values) - 1)
    places = [
        (
            f"{_SPARK_MARGIN + (i * step if len(values) > 1 else wide / 2):.1f}",
            f"{_SPARK_MARGIN + tall * (1 - (v - middle) / half) / 2:.1f}",
        )
        for i, v in enumerate(values)
    ]
    x, y = places[-1]
    return Sparkline(
        width=_SPARK_WIDTH,
        height=_SPARK_HEIGHT,
        path=" ".join(f"{x},{y}" for x, y in places),
        x=x,
        y=y,
        label=label,
    )
