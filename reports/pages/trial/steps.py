"""What the page of a trial shows of ladders and searches: each offered load, and what came of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perf.model.metrics import HIGHEST_LOAD
from perf.model.results import LoadStep, Sample
from reports.wording.vega import SCHEMA, Spec
from reports.wording.wording import STEP_BADGES, heading, interval, quantity, sentence

_BOUNDS = ("lower", "upper")
_HEIGHT = 260
_WIDE_RATIO = 20
"""From here on a linear axis would press the smallest values together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTable:
    """A ladder, or a search with its answer; `answer` is empty for a ladder."""

    title: str
    answer: str
    steps: tuple[LoadStep, ...]


def view_steps(steps: Sequence[LoadStep], samples: Sequence[Sample]) -> tuple[StepTable, ...]:
    """Return a table for each ladder and each search, in the order in which they were run."""
    names = dict.fromkeys(_name(step) for step in steps)
    return tuple(
        _view_table(name, [step for step in steps if _name(step) == name], samples) for name in names
    )


def _name(step: LoadStep) -> str:
    return step.phase.rpartition("-")[0] or step.phase


def _view_table(name: str, steps: Sequence[LoadStep], samples: Sequence[Sample]) -> StepTable:
    # The phases of a ladder are named by their loads, those of a search are counted.
    is_ladder = all(step.phase == f"{name}-{step.offered_load_ops_per_s:g}" for step in steps)
    kind = "Ladder" if is_ladder else "Search"
    return StepTable(
        title=kind if name == kind.lower() else f"{kind} {name}",
        answer="" if is_ladder else _say_answer(_answers(samples, name)),
        steps=tuple(steps),
    )


def _answers(samples: Iterable[Sample], phase: str) -> dict[str, float]:
    return {
        sample.statistic: sample.value
        for sample in samples
        if (sample.phase, sample.metric, sample.iteration) == (phase, HIGHEST_LOAD.name, None)
    }


def _say_answer(found: dict[str, float]) -> str:
    """Describe what a search found; without an estimate, what it can say all the same."""
    known = {statistic: quantity(value, HIGHEST_LOAD.name) for statistic, value in found.items()}
    what = heading(HIGHEST_LOAD.description)
    if "estimate" in known and found.keys() >= set(_BOUNDS):
        between = interval(found["lower"], found["upper"])
        return f"{what}: {known['estimate']}; it lies between {between} {HIGHEST_LOAD.unit}."
    if "lower" in known:
        return f"{what}: at least {known['lower']}; how much more is not known."
    if "upper" in known:
        return f"{what}: less than {known['upper']}; how much less is not known."
    return f"{what}: not known; the steps below say why."


def draw_steps(tables: Iterable[StepTable]) -> Spec:
    """Draw offered load against p99 of response time; the symbol of each step is its outcome."""
    rows = [
        {
            "offered": step.offered_load_ops_per_s,
            "p99": step.response_time_p99_ms,
            "outcome": STEP_BADGES[step.outcome].word,
            "phase": step.phase,
            "text": sentence(step.text),
        }
        for table in tables
        for step in table.steps
        if step.response_time_p99_ms is not None
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
    """Return an axis for positive values; it is logarithmic where they are of very different size."""
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
