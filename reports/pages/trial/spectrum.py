"""Charts of two trials over each other, as Vega-Lite specifications; scripts fill in rows.

Rows carry `side`, A or B; a trial by itself is B. Neither is shown by colour alone: A is dashed, and
tooltips name both.
"""

import json
from collections.abc import Iterator, Mapping

from reports.wording.vega import SCHEMA, Spec

_HEIGHT, _LOW = 340, 190
_STYLES = {"A": ("kp-baseline", [7, 4]), "B": ("kp-candidate", [])}
_BEYOND = {
    "1": "0 %",
    "2": "50 %",
    "10": "90 %",
    "100": "99 %",
    "1000": "99.9 %",
    "10000": "99.99 %",
    "100000": "99.999 %",
    "1000000": "99.9999 %",
    "10000000": "99.99999 %",
}


def draw_spectrum() -> Spec:
    """Draw response times by percentile, both logarithmic; rows have beyond, percentile and ms.

    `beyond` is 1/(1 - p): each step of the axis halves or tenths the operations that are left, as the
    usual percentile spectra do (HdrHistogram's plotter), and the slowest one stands at their number.
    """
    axis = {
        "values": [int(value) for value in _BEYOND],
        "labelExpr": f"{json.dumps(_BEYOND)}[datum.value]",
        "labelOverlap": "greedy",
        "labelFlush": False,
    }
    x = {
        "field": "beyond",
        "type": "quantitative",
        "title": "of all operations, so many took no longer",
        "scale": {"type": "log", "nice": False, "padding": 12},
        "axis": axis,
    }
    tooltip = [("percentile", "Percentile (%)"), ("ms", "Response time (ms)")]
    return _overlay("Response time by percentile", _HEIGHT, {"x": x, "y": _times("ms")}, tooltip)


_SECONDS = {
    "field": "at",
    "type": "quantitative",
    "title": "seconds measured; a gap is between two iterations",
    "scale": {"nice": False, "padding": 12},
    "axis": {"tickCount": 8, "grid": False},
}


def draw_servers(field: str, title: str) -> Spec:
    """Draw what each server process did second by second, from zero on.

    Rows have at (seconds of measuring since the first), iteration, run (of one server without a gap),
    server, cores, written and read (MB/s) and memory (MB).
    """
    y = {"field": field, "type": "quantitative", "title": title, "axis": {"tickCount": 4}}
    tooltip = [
        *(("server", "Server"), ("iteration", "Iteration"), ("at", "Second"), ("cores", "Cores")),
        *(("written", "MB/s written"), ("read", "MB/s read"), ("memory", "MB of memory")),
    ]
    return _overlay(f"{title} of each second", _LOW, {"x": _SECONDS, "y": y}, tooltip)


def draw_course(field: str) -> Spec:
    """Draw one figure second by second: p99 (ms, logarithmic) or rate (ops/s).

    Rows have at (seconds of measuring since the first), iteration, run (without a gap), p50, p99, max
    and rate.
    """
    tooltip = [
        *(("iteration", "Iteration"), ("at", "Second"), ("rate", "Operations per second")),
        *(("p50", "p50 (ms)"), ("p99", "p99 (ms)"), ("max", "Slowest (ms)")),
    ]
    rate: Mapping[str, object] = {
        "field": "rate",
        "type": "quantitative",
        "title": "operations per second",
        "scale": {"zero": False, "padding": 10},
        "axis": {"tickCount": 4},
    }
    y = rate if field == "rate" else _times(field)
    return _overlay(f"{field} of each second", _LOW, {"x": _SECONDS, "y": y}, tooltip)


def _times(field: str) -> Mapping[str, object]:
    if field != "ms":  # a low chart has no room for more
        title: str | list[str] = f"{field} (ms), logarithmic"
    else:
        title = ["response time (ms), logarithmic", "lower is better"]
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"type": "log", "nice": False, "padding": 10},
        "axis": {"tickCount": 5, "format": "~g"},
    }


def _overlay(
    description: str, height: int, encoding: Mapping[str, object], tooltip: list[tuple[str, str]]
) -> Spec:
    tooltip = [("name", "Trial"), *tooltip]
    return {
        "$schema": SCHEMA,
        "description": description,
        "width": "container",
        "height": height,
        "autosize": {"type": "fit", "contains": "padding"},
        "data": {"values": []},
        "encoding": encoding,
        "layer": [layer for side in _STYLES for layer in _layers(side, tooltip)],
    }


def _layers(side: str, tooltip: list[tuple[str, str]]) -> Iterator[Spec]:
    style, dash = _STYLES[side]
    mine = [{"filter": {"field": "side", "equal": side}}]
    yield {
        "transform": mine,
        "mark": {"type": "line", "style": style, "strokeDash": dash, "clip": True},
        # What has a gap between is not joined: there nothing was measured, or nothing answered.
        "encoding": {"detail": {"field": "run", "type": "nominal"}},
    }
    yield {
        "transform": mine,
        "mark": {"type": "point", "style": style, "filled": True, "size": 10, "clip": True},
        "encoding": {
            "tooltip": [{"field": field, "title": title, "type": "nominal"} for field, title in tooltip]
        },
    }
