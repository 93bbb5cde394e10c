"""Charts: Vega-Lite specifications and sparklines, drawn from what the views already say.

No colour is named here. Each mark carries a style name (kp-…), to which static/site.js gives the
colours of the page's light or dark theme.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.view.series import SeriesView
from reports.view.steps import StepTable
from reports.view.wording import STEP_BADGES

Spec = Mapping[str, object]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_HEIGHT = 320
_STEPS_HEIGHT = 260
_WIDE_RATIO = 20
"""From here on a linear axis would press the smallest values together."""
_DOT, _SMALL_DOT, _FEW_POINTS = 55, 30, 60
_LABEL_LINE = 16
_LABEL_LINES = 3
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


def draw_series(view: SeriesView, root: str) -> Spec:
    """Draw the points of a series by release. `root` leads from the page to the site's root.

    x is the number of the point, so nights of one release stand side by side and zooming works; the
    axis names each release in the middle of its band.
    """
    return {
        "$schema": _SCHEMA,
        "description": f"{view.title}: {view.summary}",
        "width": "container",
        "height": _HEIGHT,
        "autosize": {"type": "fit", "contains": "padding"},
        "layer": [
            _bands(view),
            _levels(view),
            *_changes(view),
            _iterations(view),
            _points(view, root),
        ],
    }


def draw_steps(tables: Sequence[StepTable]) -> Spec:
    """Draw offered load against p99 of response time; the symbol of each step is its outcome."""
    rows = [
        {
            "offered": row.offered_load_ops_per_s,
            "p99": row.response_time_p99_ms,
            "outcome": row.outcome.word,
            "phase": row.phase,
            "text": row.text,
        }
        for table in tables
        for row in table.rows
        if row.response_time_p99_ms is not None
    ]
    names = ("phase", "offered", "p99", "outcome", "text")
    titles = ("Phase", "Offered (ops/s)", "p99 (ms)", "Outcome", "What came of it")
    return {
        "$schema": _SCHEMA,
        "description": "p99 response time at each offered load of the trial's ladders and searches",
        "width": "container",
        "height": _STEPS_HEIGHT,
        "autosize": {"type": "fit", "contains": "padding"},
        "data": {"values": rows},
        "encoding": {
            "x": _axis(rows, "offered", "offered load (ops/s)"),
            "y": _axis(rows, "p99", "p99 response time (ms)", "lower is better"),
            "tooltip": [
                {"field": name, "title": title, "type": "nominal"}
                for name, title in zip(names, titles, strict=True)
            ],
        },
        "layer": [
            {
                "transform": [{"filter": {"field": "outcome", "equal": badge.word}}],
                "mark": {"type": "text", "text": badge.symbol, "style": f"kp-step-{badge.kind}"},
            }
            for badge in STEP_BADGES.values()
        ],
    }


def _axis(rows: Sequence[Mapping[str, object]], field: str, *title: str) -> dict[str, object]:
    """Give an axis for positive values; it is logarithmic where they are of very different size."""
    values = [value for row in rows if isinstance(value := row[field], float) and value > 0]
    is_wide = bool(values) and max(values) > _WIDE_RATIO * min(values)
    first, *rest = title
    return {
        "field": field,
        "type": "quantitative",
        "title": [f"{first}, logarithmic" if is_wide else first, *rest],
        "scale": {"padding": 14, **({"type": "log"} if is_wide else {"zero": False})},
        "axis": {"tickCount": 6, "grid": not is_wide},
    }


def to_script(spec: Spec) -> str:
    """Wrap a specification as a script, since a page opened from a file cannot fetch JSON."""
    return f"window.knickpointChart = {json.dumps(spec, ensure_ascii=True, indent=1)};\n"


def _x(view: SeriesView, field: str) -> dict[str, object]:
    centres = {str((b.first + b.last) / 2).removesuffix(".0"): b.release for b in view.bands}
    return {
        "field": field,
        "type": "quantitative",
        "title": None,
        "scale": {"domain": [0.5, len(view.points) + 0.5], "nice": False, "zero": False},
        "axis": {
            "values": [float(centre) for centre in centres],
            "labelExpr": f"{json.dumps(centres)}[datum.value]",
            "labelOverlap": "greedy",
            "labelLimit": 120,
            "grid": False,
            "ticks": False,
        },
    }


def _y(view: SeriesView, field: str) -> dict[str, object]:
    unit = f" ({view.unit})" if view.unit else ""
    return {
        "field": field,
        "type": "quantitative",
        "title": [f"{view.metric}{unit}", view.direction],
        "scale": {"zero": False, "padding": 8 + _LABEL_LINE * min(_LABEL_LINES, len(view.changes))},
        "axis": {"tickCount": 6},
    }


def _bands(view: SeriesView) -> Spec:
    rows = [
        {"from": band.first - 0.5, "to": band.last + 0.5}
        for band in view.bands[1::2]  # every other release, so that neighbours tell apart
    ]
    return {
        "data": {"values": rows},
        "mark": {"type": "rect", "style": "kp-band", "clip": True},
        "encoding": {"x": _x(view, "from"), "x2": {"field": "to"}},
    }


def _levels(view: SeriesView) -> Spec:
    rows = [
        {"from": segment.first - 0.5, "to": segment.last + 0.5, "mean": segment.mean}
        for segment in view.segments
    ]
    return {
        "data": {"values": rows},
        "mark": {"type": "rule", "style": "kp-level", "clip": True},
        "encoding": {"x": _x(view, "from"), "x2": {"field": "to"}, "y": _y(view, "mean")},
    }


def _changes(view: SeriesView) -> tuple[Spec, ...]:
    return tuple(
        {
            "data": {"values": [{"at": change.index - 0.5, "label": change.label}]},
            "mark": {
                **mark,
                "tooltip": tooltip,
                "style": f"kp-{part}-{change.outcome.kind}",
                "clip": True,
            },
            "encoding": {"x": _x(view, "at"), **extra},
        }
        for place, change in enumerate(view.changes)
        for tooltip in [f"{change.outcome.word} {change.change}, {change.state.word.lower()}"]
        for part, mark, extra in (
            ("change", {"type": "rule", "strokeDash": [5, 4]}, {}),
            (
                "label",
                {
                    "type": "text",
                    "y": 2 + _LABEL_LINE * (place % _LABEL_LINES),
                    "dx": 6 if change.index <= len(view.points) / 2 else -6,
                    "align": "left" if change.index <= len(view.points) / 2 else "right",
                    "baseline": "top",
                },
                {"text": {"field": "label"}},
            ),
        )
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
        }
        for row in view.points
    ]
    names = ("release", "night", "started", "text", "spread", "trial")
    titles = ("Release", "Night", "Started", "Value", "Iterations", "Trial")
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
            "tooltip": [
                {"field": name, "title": title, "type": "nominal"}
                for name, title in zip(names, titles, strict=True)
            ],
        },
    }
