"""What the page of a trial says of its phases: load, length, how their warm-ups ended."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from perf.model.design import ClosedLoop, Measurement, OpenLoop, Workload
from perf.model.metrics import SEND_LATENESS, THROUGHPUT, WARM_UP
from perf.model.results import ATTEMPTED, COMPLETED_IN_WINDOW, Named, Reason, Sample, Trial
from reports.wording.wording import NOTHING

CAPPED = "warm-up-capped"
"""The kind of the remark that a warm-up ran to its cap."""
_OF_TIMES = frozenset({SEND_LATENESS.name, THROUGHPUT.name, WARM_UP.name})
_EVEN_S = 0.001


@dataclass(slots=True, kw_only=True)
class MeasuredPhase:
    """What a trial keeps of one measured phase of one operation.

    `seconds` are those of its iterations, `warm_up_s` is the mean of its warm-ups, None where that is
    not known; `load` and `warm` say under what load it was and how its warm-ups ended.
    """

    phase: str
    operation: str
    attempted: int = 0
    seconds: list[float] = field(default_factory=list)
    is_open: bool = False
    warm_up_s: float | None = None
    load: str = ""
    warm: str = ""

    @property
    def is_even(self) -> bool:
        """Whether all iterations took as long, to a thousandth of a second."""
        # What is further apart needs no rounding, which takes its time.
        return (
            max(self.seconds) - min(self.seconds) < _EVEN_S
            and len({round(value, 3) for value in self.seconds}) == 1
        )


def find_phases(trial: Trial, workloads: Mapping[Named, Workload]) -> list[MeasuredPhase]:
    """Put together, in the order of the phases, what was counted and timed in each.

    `workloads` are those of the configuration by name and content; that of the trial may be another.
    """
    completed: dict[tuple[str, str, int], int] = {}
    found: dict[tuple[str, str], MeasuredPhase] = {}
    for counter in trial.counters:
        at = counter.phase, counter.operation
        if counter.iteration and counter.name == COMPLETED_IN_WINDOW:
            completed[(*at, counter.iteration)] = counter.value
        elif counter.iteration and counter.name == ATTEMPTED:
            one = found.setdefault(at, MeasuredPhase(phase=at[0], operation=at[1]))
            one.attempted += counter.value
    for sample in trial.samples:
        if sample.metric in _OF_TIMES and (own := found.get((sample.phase, sample.operation))):
            done = completed.get((sample.phase, sample.operation, sample.iteration or 0), 0)
            _take(own, sample, done)
    workload = workloads.get(trial.workload)
    plans = {one.name: one for one in workload.measurements} if workload else {}
    for one in found.values():
        # A step of a ladder or a search has the plan of the whole.
        plan = plans.get(one.phase) or plans.get(one.phase.rpartition("-")[0])
        one.load = _say_load(plan, is_open=one.is_open)
        one.warm = _say_warm(one, plan, trial.remarks)
    return list(found.values())


def sum_measured(phases: Iterable[MeasuredPhase]) -> float:
    """Return for how many seconds was measured: operations of one phase ran beside each other."""
    longest: dict[str, float] = {}
    for one in phases:
        longest[one.phase] = max(longest.get(one.phase, 0.0), math.fsum(one.seconds))
    return math.fsum(longest.values())


def _take(one: MeasuredPhase, sample: Sample, completed: int) -> None:
    """Take from a sample what it says about times; a rate is a count over a time, so it gives both."""
    if sample.metric == SEND_LATENESS.name:
        one.is_open = True
    elif sample.metric == WARM_UP.name and sample.iteration is None:
        one.warm_up_s = sample.value
    elif (
        sample.metric == THROUGHPUT.name and sample.iteration is not None and completed and sample.value
    ):
        one.seconds.append(completed / sample.value)


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


def _say_warm(one: MeasuredPhase, plan: Measurement | None, remarks: Sequence[Reason]) -> str:
    if any(it.kind == CAPPED and it.text.startswith(f"{one.phase}:") for it in remarks):
        return "not steady by the rule when the cap came; see the remarks"
    if one.warm_up_s is None:
        return NOTHING
    if plan is None:
        return "no remark that the cap came first"
    if plan.warmup_s >= plan.warmup_cap_s:
        return f"of fixed length: {plan.warmup_s:g} s, so steadiness was not asked for"
    return "steady by the rule"
