"""What the page of a trial shows of ladders and searches: each offered load, and what came of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perf.model.metrics import HIGHEST_LOAD
from perf.model.results import LoadStep, Sample
from reports.wording.wording import (
    NOTHING,
    STEP_BADGES,
    Badge,
    heading,
    interval,
    number,
    quantity,
    sentence,
    share,
)

_BOUNDS = ("lower", "upper")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One offered load: text for the table and tooltips, plain numbers for the chart."""

    phase: str
    offered: str
    achieved: str
    response_time: str
    send_lateness: str
    client_cpu: str
    outcome: Badge
    text: str
    offered_load_ops_per_s: float
    response_time_p99_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTable:
    """A ladder, or a search with its answer; `answer` is empty for a ladder."""

    title: str
    answer: str
    rows: tuple[StepRow, ...]


def view_steps(steps: Sequence[LoadStep], samples: Sequence[Sample]) -> tuple[StepTable, ...]:
    """Give a table for each ladder and each search, in the order in which they were run."""
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
        rows=tuple(_view_row(step) for step in steps),
    )


def _answers(samples: Iterable[Sample], phase: str) -> dict[str, float]:
    return {
        sample.statistic: sample.value
        for sample in samples
        if (sample.phase, sample.metric, sample.iteration) == (phase, HIGHEST_LOAD.name, None)
    }


def _say_answer(found: dict[str, float]) -> str:
    """Say what a search found; without an estimate, what it can say all the same."""
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


def _view_row(step: LoadStep) -> StepRow:
    p99_ms = step.response_time_p99_ms
    return StepRow(
        phase=step.phase,
        offered=number(step.offered_load_ops_per_s),
        achieved=number(step.achieved_ops_per_s),
        response_time=NOTHING if p99_ms is None else number(p99_ms),
        send_lateness=number(step.send_lateness_p99_ms),
        client_cpu=share(step.client_cpu_share),
        outcome=STEP_BADGES[step.outcome],
        text=sentence(step.text),
        offered_load_ops_per_s=step.offered_load_ops_per_s,
        response_time_p99_ms=p99_ms,
    )
