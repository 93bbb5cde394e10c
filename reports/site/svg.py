"""Still pictures: scales that place values in a box, and small pictures of a series.

Templates draw with scales: `{{ y(value) }}` is where a value stands. So a picture shows its evidence
where no script runs, and in print.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from markupsafe import Markup

from analysis.detection.detection import ChangePoint, ChangeState
from analysis.detection.series import Series
from analysis.detection.verdict import Outcome
from reports.wording.wording import count

_LEAST_SPAN = 0.1
_TREND_POINTS, _TREND_WIDTH, _TREND_HEIGHT, _TREND_MARGIN = 60, 96, 24, 3
_COURSE_POINTS, _COURSE_WIDTH, _COURSE_HEIGHT, _COURSE_MARGIN = 80, 260, 64, 5
_MOST_CHANGES = 6
_MOST_BORDERS = 24
"""Of releases; more of them would be a hatching."""
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

    With a change, they begin before it, however old it is, and a tick stands where it lies.
    """
    points = series.points
    begin = max(0, len(points.values) - _TREND_POINTS)
    if change:
        after = len(points.values) - change.index
        begin = min(begin, max(0, change.index - max(_BEFORE_CHANGE, after // 4)))
    box = _Box(_TREND_WIDTH, _TREND_HEIGHT, _TREND_MARGIN, _TREND_POINTS)
    line = _Line(points.values[begin:], box)
    return _draw(
        line,
        kind,
        f"the newest {count(len(line.shown), 'point')} in order of "
        f"{'nights' if len(points.versions) == 1 else 'releases'}",
        [(change.index - begin, "")] if change else [],
    )


def course(series: Series, changes: Sequence[ChangePoint]) -> Markup:
    """Return all points of a series with its newest changes, and where its releases begin."""
    points = series.points
    releases = points.releases
    borders = [at for at in range(1, len(releases)) if releases[at] != releases[at - 1]]
    newest = changes[-_MOST_CHANGES:]
    said = f"{count(len(releases), 'point')} in order of {'releases' if borders else 'nights'}"
    if newest:
        said += f"; changes at point {', '.join(f'{one.index + 1:,}' for one in newest)}"
    return _draw(
        _Line(points.values, _Box(_COURSE_WIDTH, _COURSE_HEIGHT, _COURSE_MARGIN, _COURSE_POINTS)),
        "calm",
        said,
        [(one.index, _mark(one)) for one in newest],
        borders if len(borders) <= _MOST_BORDERS else (),
    )


def _mark(change: ChangePoint) -> str:
    """Return the class of a change: its kind, and whether it is only suspected."""
    kind = "bad" if change.outcome is Outcome.REGRESSED else "good"
    return kind if change.state is ChangeState.CONFIRMED else f"{kind} doubt"


@dataclass(frozen=True, slots=True)
class _Box:
    """The size of a picture, and how many points it has room for."""

    width: int
    height: int
    margin: int
    points: int


class _Line:
    """Values as a line in a box; neighbours are averaged where there are more than it has room for."""

    def __init__(self, shown: Sequence[float], box: _Box) -> None:
        self.shown, self.box = shown, box
        self.size = math.ceil(len(shown) / box.points)
        values = [fmean(shown[at : at + self.size]) for at in range(0, len(shown), self.size)]
        y = fit(values, box.height - box.margin, box.margin)
        self.x = Scale(0, max(1, len(values) - 1), box.margin, box.width - box.margin)
        at = range(len(values)) if len(values) > 1 else (0.5,)
        self.places = [(self.x(place), y(value)) for place, value in zip(at, values, strict=True)]

    def between(self, index: int) -> float:
        """Return the place between a point and the one before it."""
        return self.x(index / self.size - 0.5)


def _draw(
    line: _Line,
    kind: str,
    said: str,
    marks: Iterable[tuple[int, str]],
    borders: Iterable[int] = (),
) -> Markup:
    box = line.box
    rules = Markup("").join(
        Markup('<line class="{named}" x1="{at}" x2="{at}" y1="0" y2="{height}"/>').format(
            named=named, at=line.between(index), height=box.height
        )
        for index, named in (
            *((index, "border") for index in borders),
            *((index, f"at {mark}".rstrip()) for index, mark in marks),
        )
    )
    return Markup(
        '<svg class="spark {kind}" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ' role="img" aria-label="{said}">{rules}<polyline points="{points}"/>'
        '<circle cx="{end[0]}" cy="{end[1]}" r="2.5"/></svg>'
    ).format(
        kind=kind,
        width=box.width,
        height=box.height,
        said=said,
        rules=rules,
        points=" ".join(f"{across},{height}" for across, height in line.places),
        end=line.places[-1],
    )
