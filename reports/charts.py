"""The chart of a series, as a Vega-Lite specification, drawn from what its view already says.

No colour is named here. Each mark carries a style name (kp-…), to which static/site.js gives the
colours of the page's light or dark theme.
"""

import json
from collections.abc import Mapping, Sequence

from reports.view.changes import ChangeRow
from reports.view.series import SeriesView

Spec = Mapping[str, object]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_HEIGHT = 320
_DOT, _SMALL_DOT, _FEW_POINTS = 55, 30, 60
_LABEL_LINE = 16
_LABEL_LINES = 3


def draw_series(view: SeriesView, root: str) -> Spec:
    """Draw the points of a series by release. `root` leads from the page to the site's root.

    x is the number of the point, so nights of one release stand side by side and zooming works; the
    axis names each release, or each night where there is one release only, in the middle of its band.
    """
    return {
        "$schema": SCHEMA,
        "description": f"{view.title}: {view.summary}",
        "width": "container",
        "height": _HEIGHT,
        "autosize": {"type": "fit", "contains": "padding"},
        "layer": [
            _bands(view),
            *_noise(view),
            *_levels(view),
            *_slopes(view),
            *_places(view),
            *_changes(view),
            *_scatter(view),
            _iterations(view),
            _points(view, root),
        ],
    }


def _x(view: SeriesView, field: str) -> dict[str, object]:
    centres = {str((b.first + b.last) / 2).removesuffix(".0"): b.name for b in view.bands}
    return {
        "field": field,
        "type": "quantitative",
        "title": f"night, all of {view.points[0].release}" if view.is_by_night else None,
        "scale": {"domain": [0.5, len(view.points) + 0.5], "nice": False, "zero": False},
        "axis": {
            "values": [float(centre) for centre in centres],
            "labelExpr": f"{json.dumps(centres)}[datum.value]",
            "labelOverlap": "greedy",
            "labelSeparation": 12,
            "labelLimit": 120,
            "grid": False,
            "ticks": False,
        },
    }


def _y(view: SeriesView, field: str) -> dict[str, object]:
    unit = f" ({view.unit})" if view.unit else ""
    labels = len(view.changes) + len(view.scatter)
    return {
        "field": field,
        "type": "quantitative",
        "title": [f"{view.metric}{unit}", view.direction],
        "scale": {"zero": False, "padding": 8 + _LABEL_LINE * min(_LABEL_LINES, labels)},
        "axis": {"tickCount": 6},
    }


def _bands(view: SeriesView) -> Spec:
    rows = [
        {"from": band.first - 0.5, "to": band.last + 0.5}
        # Every other release, so that neighbours tell apart; nights would be mere stripes.
        for band in ([] if view.is_by_night else view.bands[1::2])
    ]
    return {
        "data": {"values": rows},
        "mark": {"type": "rect", "style": "kp-band", "clip": True},
        "encoding": {"x": _x(view, "from"), "x2": {"field": "to"}},
    }


def _noise(view: SeriesView) -> tuple[Spec, ...]:
    """Draw the noise floor about each level; no layer without rows, which Vega would complain about."""
    return tuple(
        {
            "data": {
                "values": [
                    {"from": row.first - 0.5, "to": row.last + 0.5, "low": row.low, "high": row.high}
                ]
            },
            "mark": {"type": "rect", "style": "kp-noise", "clip": True},
            "encoding": {
                "x": _x(view, "from"),
                "x2": {"field": "to"},
                "y": _y(view, "low"),
                "y2": {"field": "high"},
            },
        }
        for row in view.segments
        if row.low < row.high
    )


def _levels(view: SeriesView) -> tuple[Spec, ...]:
    return tuple(
        {
            "data": {
                "values": [
                    {"from": segment.first - 0.5, "to": segment.last + 0.5, "mean": segment.mean}
                ]
            },
            "mark": {"type": "rule", "style": "kp-level", "clip": True},
            "encoding": {"x": _x(view, "from"), "x2": {"field": "to"}, "y": _y(view, "mean")},
        }
        for segment in view.segments
    )


def _slopes(view: SeriesView) -> tuple[Spec, ...]:
    return tuple(
        {
            "data": {
                "values": [
                    {"from": slope.first, "to": slope.last, "low": slope.low, "high": slope.high}
                ]
            },
            "mark": {
                "type": "rule",
                "style": "kp-drift",
                "clip": True,
                "tooltip": f"{slope.badge.word}: {slope.change}",
            },
            "encoding": {
                "x": _x(view, "from"),
                "x2": {"field": "to"},
                "y": _y(view, "low"),
                "y2": {"field": "high"},
            },
        }
        for slope in view.slopes
    )


def _places(view: SeriesView) -> tuple[Spec, ...]:
    """Shade where else each change may lie; a change without a doubt about its place has no shade."""
    return tuple(
        {
            "data": {"values": [{"from": change.earliest - 0.5, "to": change.latest - 0.5}]},
            "mark": {"type": "rect", "style": f"kp-place-{change.outcome.kind}", "clip": True},
            "encoding": {"x": _x(view, "from"), "x2": {"field": "to"}},
        }
        for change in view.changes
        if change.earliest < change.latest
    )


def _changes(view: SeriesView) -> tuple[Spec, ...]:
    return tuple(
        part
        for place, change in enumerate(view.changes)
        for part in _marked(
            view,
            at=change.index,
            label=change.label,
            tooltip=_tell(change),
            kind=change.outcome.kind,
            place=place,
            dash=(5, 4),
        )
    )


def _tell(change: ChangeRow) -> str:
    words = f"{change.outcome.word} {change.change}, {change.state.word.lower()}; {change.located}"
    return f"{words}; cause: {change.cause.word.lower()}" if change.cause else words


def _scatter(view: SeriesView) -> tuple[Spec, ...]:
    return tuple(
        part
        for place, change in enumerate(view.scatter, start=len(view.changes))
        for part in _marked(
            view,
            at=change.index,
            label=f"{change.badge.symbol} {change.label}",
            tooltip=f"{change.badge.word}: {change.text}",
            kind=change.badge.kind,
            place=place,
            dash=(1, 3),
        )
    )


def _marked(
    view: SeriesView,
    *,
    at: int,
    label: str,
    tooltip: str,
    kind: str,
    place: int,
    dash: Sequence[int],
) -> tuple[Spec, Spec]:
    """Give a dashed line before point number `at`, and its label on one of a few lines on top."""
    data = {"values": [{"at": at - 0.5, "label": label}]}
    is_left = at <= len(view.points) / 2
    shared = {"tooltip": tooltip, "clip": True}
    return (
        {
            "data": data,
            "mark": {
                **shared,
                "type": "rule",
                "style": f"kp-change-{kind}",
                "strokeDash": list(dash),
            },
            "encoding": {"x": _x(view, "at")},
        },
        {
            "data": data,
            "mark": {
                **shared,
                "type": "text",
                "style": f"kp-label-{kind}",
                "y": 2 + _LABEL_LINE * (place % _LABEL_LINES),
                "dx": 6 if is_left else -6,
                "align": "left" if is_left else "right",
                "baseline": "top",
            },
            "encoding": {"x": _x(view, "at"), "text": {"field": "label"}},
        },
    )


def _iterations(view: SeriesView) -> Spec:
    rows = [{"index": row.index, "low": row.low, "high": row.high} for row in view.points]
    return {
        "data": {"values": rows},
        "mark": {"type": "rule", "style": "kp-spread", "clip": True},
        "encoding": {
            "x": _x(view, "index"),
            "y": _y(view, "low"),
            "y2": {"field": "high"},
        },
    }


def _points(view: SeriesView, root: str) -> Spec:
    rows = [
        {
            "index": row.index,
            "value": row.value,
            "release": row.release,
            "night": row.night,
            "started": row.started.text,
            "text": row.text,
            "spread": row.spread,
            "trial": row.trial,
            "page": f"{root}{row.page}",
            "origin": row.origin,
        }
        for row in view.points
    ]
    names = ("release", "night", "started", "text", "spread", "trial", "origin")
    titles = ("Release", "Night", "Started", "Value", "Iterations", "Trial", "Origin")
    return {
        "data": {"values": rows},
        "params": [
            {
                "name": "view",
                "select": {
                    "type": "interval",
                    "encodings": ["x"],
                    # Plain wheel must keep scrolling the page.
                    "zoom": "wheel![event.ctrlKey || event.metaKey]",
                },
                "bind": "scales",
            }
        ],
        "mark": {
            "type": "point",
            "style": "kp-point",
            "filled": True,
            "size": _DOT if len(rows) <= _FEW_POINTS else _SMALL_DOT,
            "clip": True,
        },
        "encoding": {
            "x": _x(view, "index"),
            "y": _y(view, "value"),
            "href": {"field": "page"},
            "shape": {
                "field": "origin",
                "type": "nominal",
                "scale": {"domain": ["measured", "imported"], "range": ["circle", "diamond"]},
                "legend": None,
            },
            "tooltip": [
                {"field": name, "title": title, "type": "nominal"}
                for name, title in zip(names, titles, strict=True)
            ],
        },
    }
