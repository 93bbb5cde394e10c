"""What the page of a trial says of its phases: load, length, how their warm-ups ended."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perf.model.design import ClosedLoop, Measurement, OpenLoop, Workload
from perf.model.metrics import SEND_LATENESS, THROUGHPUT, WARM_UP
from perf.model.results import ATTEMPTED, COMPLETED_IN_WINDOW, Named, Reason, Sample, Trial
from reports.wording.wording import NOTHING, number

CAPPED = "warm-up-capped"
"""The kind of the remark that a warm-up ran to its cap."""
_OF_TIMES = frozenset({SEND_LATENESS.name, THROUGHPUT.name, WARM_UP.name})
_EVEN_S = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRow:
    """One measured phase of one operation; times in words, `warm` says how its warm-ups ended."""

    phase: str
    operation: str
    load: str
    attempted: str
    iterations: str
    measured: str
    warm_up: str
    warm: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasesView:
    """All measured phases, and what of the time is not known."""

    rows: tuple[PhaseRow, ...]
    rest: str


@dataclass(slots=True)
class _Phase:
    """What a trial keeps of one phase and operation: counts and seconds by iteration."""

    attempted: int = 0
    seconds: list[float] = field(default_factory=list)
    is_open: bool = False
    warm_up_s: float | None = None


def view_phases(trial: Trial, workloads: Mapping[Named, Workload]) -> PhasesView:
    """Put the phases of a trial into words.

    `workloads` are those of the configuration by name and content; that of the trial may be another.
    """
    workload = workloads.get(trial.workload)
    plans = {one.name: one for one in workload.measurements} if workload else {}
    found = _collect(trial)
    measured_s: dict[str, float] = {}
    for (phase, _), one in found.items():
        measured_s[phase] = max(measured_s.get(phase, 0.0), math.fsum(one.seconds))
    whole_s = (trial.finished_at - trial.started_at).total_seconds()
    return PhasesView(
        rows=tuple(
            _view_phase(phase, operation, one, _plan_of(phase, plans), trial.remarks)
            for (phase, operation), one in found.items()
        ),
        rest=(
            f"The trial took {number(whole_s)} s, of which {number(math.fsum(measured_s.values()))} s"
            " were measured. What installing, starting, loading, settling, warming up, canaries and"
            " cleaning up took each is not recorded beyond the warm-ups above."
            if found
            else ""
        ),
    )


def _collect(trial: Trial) -> dict[tuple[str, str], _Phase]:
    """Put together, in the order of the phases, what was counted and timed in each."""
    completed: dict[tuple[str, str, int], int] = {}
    found: dict[tuple[str, str], _Phase] = {}
    for counter in trial.counters:
        at = counter.phase, counter.operation
        if counter.iteration and counter.name == COMPLETED_IN_WINDOW:
            completed[(*at, counter.iteration)] = counter.value
        elif counter.iteration and counter.name == ATTEMPTED:
            found.setdefault(at, _Phase()).attempted += counter.value
    for sample in trial.samples:
        if sample.metric not in _OF_TIMES:
            continue
        one = found.get((sample.phase, sample.operation))
        if one is not None:
            done = completed.get((sample.phase, sample.operation, sample.iteration or 0), 0)
            _take(one, sample, done)
    return found


def _take(one: _Phase, sample: Sample, completed: int) -> None:
    """Take from a sample what it says about times; a rate is a count over a time, so it gives both."""
    if sample.metric == SEND_LATENESS.name:
        one.is_open = True
    elif sample.metric == WARM_UP.name and sample.iteration is None:
        one.warm_up_s = sample.value
    elif sample.metric == THROUGHPUT.name and sample.iteration is not None and sample.value:
        one.seconds.append(completed / sample.value)


def _plan_of(phase: str, plans: Mapping[str, Measurement]) -> Measurement | None:
    """Give the plan of a phase; a step of a ladder or a search has that of the whole."""
    return plans.get(phase) or plans.get(phase.rpartition("-")[0])


def _view_phase(
    phase: str,
    operation: str,
    one: _Phase,
    plan: Measurement | None,
    remarks: Sequence[Reason],
) -> PhaseRow:
    seconds = [value for value in one.seconds if value > 0]
    # What is further apart needs no rounding, which takes its time.
    even = (
        bool(seconds)
        and max(seconds) - min(seconds) < _EVEN_S
        and len({round(value, 3) for value in seconds}) == 1
    )
    return PhaseRow(
        phase=phase,
        operation=operation,
        load=_say_load(plan, is_open=one.is_open),
        attempted=f"{one.attempted:,}",
        iterations=f"{len(seconds) or NOTHING}",
        measured=f"{f'{len(seconds)} × {number(seconds[0])}' if even else number(sum(seconds))} s"
        if seconds
        else NOTHING,
        warm_up=NOTHING if one.warm_up_s is None else f"{number(one.warm_up_s)} s on average",
        warm=_say_warm(phase, plan, remarks, is_known=one.warm_up_s is not None),
    )


def _say_load(plan: Measurement | None, *, is_open: bool) -> str:
    match plan.load if plan else None:
        case ClosedLoop() as load:
            return f"closed loop, {load.in_flight} in flight"
        case OpenLoop() as load:
            return f"open loop, {load.offered_load_ops_per_s:g} ops/s offered"
        case None:
            return "open loop" if is_open else "closed loop"
        case _:
            return "a step of a ladder or a search"


def _say_warm(
    phase: str, plan: Measurement | None, remarks: Sequence[Reason], *, is_known: bool
) -> str:
    for remark in remarks:
        if remark.kind == CAPPED and remark.text.startswith(f"{phase}:"):
            return "not steady by the rule when the cap came; see the remarks"
    if not is_known:
        return NOTHING
    if plan is None:
        return "no remark that the cap came first"
    if plan.warmup_s >= plan.warmup_cap_s:
        return f"of fixed length: {plan.warmup_s:g} s, so steadiness was not asked for"
    return "steady by the rule"
