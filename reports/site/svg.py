"""Still pictures: scales that place values in a box, and the trend of a series in a line of a list.

Templates draw with scales: `{{ y(value) }}` is where a value stands. So a picture shows its evidence
where no script runs, and in print.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from markupsafe import Markup

from analysis.detection.detection import ChangePoint
from analysis.detection.series import Series
from reports.wording.wording import count

_LEAST_SPAN = 0.1
_TREND_POINTS, _TREND_WIDTH, _TREND_HEIGHT, _TREND_MARGIN = 60, 96, 24, 3
_BEFORE_CHANGE = 15
"""So many points before a change show the level that it left; a fifth of the picture at least."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Places values from `low` to `high` between the places `start` and `end` of a box."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the place of a value, to a tenth of a unit; what lies outside stands at the edge."""
        inside = min(max(value, self.low), self.high)
        share = (inside - self.low) / (self.high - self.low)
        return round(self.start + (self.end - self.start) * share, 1)


def fit(values: Iterable[float], start: float, end: float, *, least: float = _LEAST_SPAN) -> Scale:
    """Return a scale over values that spans at least a tenth of them, so that noise stays small."""
    found = tuple(values)
    middle = (min(found) + max(found)) / 2
    half = max((max(found) - min(found)) / 2, least / 2 * abs(middle)) or 1.0
    return Scale(middle - half, middle + half, start, end)


def trend(series: Series, kind: str, change: ChangePoint | None = None) -> Markup:
    """Return the newest points of a series, of which there is one at least, as a line of that kind.

    With a change, they begin before it, however old it is; of more than 60, neighbours are averaged.
    """
    points = series.points
    begin = max(0, len(points.values) - _TREND_POINTS)
    if change:
        after = len(points.values) - change.index
        begin = min(begin, max(0, change.index - max(_BEFORE_CHANGE, after // 4)))
    shown = points.values[begin:]
    size = math.ceil(len(shown) / _TREND_POINTS)
    values = [fmean(shown[at : at + size]) for at in range(0, len(shown), size)]
    y = fit(values, _TREND_HEIGHT - _TREND_MARGIN, _TREND_MARGIN)
    x = Scale(0, max(1, len(values) - 1), _TREND_MARGIN, _TREND_WIDTH - _TREND_MARGIN)
    at = range(len(values)) if len(values) > 1 else (0.5,)
    places = [(x(place), y(value)) for place, value in zip(at, values, strict=True)]
    return Markup(
        '<svg class="spark {kind}" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ' role="img" aria-label="the newest {points} in order of {order}"><polyline points="{line}"/>'
        '<circle cx="{end[0]}" cy="{end[1]}" r="2.5"/></svg>'
    ).format(
        kind=kind,
        width=_TREND_WIDTH,
        height=_TREND_HEIGHT,
        points=count(len(shown), "point"),
        order="nights" if len(points.versions) == 1 else "releases",
        line=" ".join(f"{across},{height}" for across, height in places),
        end=places[-1],
    )
