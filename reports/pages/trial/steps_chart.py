"""The chart of a trial's load steps, as a Vega-Lite specification: load against response time."""

from collections.abc import Mapping, Sequence

from reports.pages.trial.steps import StepTable
from reports.wording.vega import SCHEMA, Spec
from reports.wording.wording import STEP_BADGES

_HEIGHT = 260
_WIDE_RATIO = 20
"""From here on a linear axis would press the smallest values together."""


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
        "$schema": SCHEMA,
        "description": "p99 response time at each offered load of the trial's ladders and searches",
        "width": "container",
        "height": _HEIGHT,
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
