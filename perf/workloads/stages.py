"""From a workload to the stages that engines run; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import assert_never

from perf.model.design import (
    ClosedLoop,
    CountedPhase,
    Measurement,
    OpenLoop,
    SearchLoad,
    SimpleLoad,
    SteppedLoad,
    Workload,
)
from perf.model.records import ALL, Devops, Operation, OperationName, PutGet, Sensor, Ycsb
from perf.model.rules import LoadKind
from perf.model.scalars import STRICT, Positive, PositiveFloat
from perf.model.statements import Statements
from perf.workloads.devops.tables import devops_rows

PRELOAD = "preload"

WARM_UP = "warm-up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One load kept up without a break: a warm-up, then one or more iterations of a measured phase.

    The warm-up lasts `warmup_cap_s`, unless the file MEASURE of this stage says in time that the
    iterations begin earlier. `iterations` are their numbers, from 1; the warm-up is iteration 0.
    """

    __pydantic_config__ = STRICT
    phase: str
    load: SimpleLoad
    warmup_s: PositiveFloat
    warmup_cap_s: PositiveFloat
    iteration_s: PositiveFloat
    iterations: tuple[int, ...]
    histogram_s: Positive = 1
    """Seconds per histogram in the interval log."""

    @property
    def measured_s(self) -> float:
        """How long its iterations last together."""
        return self.iteration_s * len(self.iterations)

    @property
    def longest_s(self) -> float:
        """How long it lasts if the warm-up runs to its cap."""
        return self.warmup_cap_s + self.measured_s


# A search of a factor of ten to within a few per cent, with two confirmations, takes about so many
# steps, and each of them new engines.
_SEARCH_STEPS = 12
_STEP_START_S = 4.0


def plan_stages(workload: Workload) -> tuple[Stage, ...]:
    """Return the stages of all that is known beforehand, in the order in which they run."""
    return tuple(stage for _, stages in plan_loads(workload) for stage in stages)


def plan_loads(
    workload: Workload,
) -> tuple[tuple[Mapping[OperationName, float], tuple[Stage, ...]], ...]:
    """Return the stages of all that is known beforehand, for each mix that is offered, in order.

    That is closed and open loops, and ladders; the loads of a search depend on what it finds. The
    iterations of the phases of one mix are interleaved, so that a drift of the host or of the data
    meets all of them alike.
    """
    phases: dict[frozenset[tuple[OperationName, float]], list[Measurement]] = {}
    for phase in workload.measurements:
        phases.setdefault(frozenset(workload.mix_of(phase).items()), []).append(phase)
    planned = ((workload.mix_of(own[0]), _interleave(own)) for own in phases.values())
    return tuple((mix, stages) for mix, stages in planned if stages)


def _interleave(phases: Sequence[Measurement]) -> tuple[Stage, ...]:
    return tuple(
        stage
        for iteration in range(1, max(phase.iterations for phase in phases) + 1)
        for phase in phases
        if iteration <= phase.iterations
        for stage in _stages(phase, iteration)
    )


def searches(workload: Workload) -> tuple[tuple[Measurement, SearchLoad], ...]:
    """Return the measured phases that look for the highest load, each with its search."""
    return tuple(
        (phase, phase.load) for phase in workload.measurements if isinstance(phase.load, SearchLoad)
    )


def search_stage(phase: Measurement, search: SearchLoad, step: int, offered_load: float) -> Stage:
    """Return step number `step` (from 1) of a search, at `offered_load` operations per second."""
    load = _open_loop(search, offered_load)
    iterations = tuple(range(1, phase.iterations + 1))
    return _stage(phase, f"{phase.name}-{step:02d}", load, iterations)


def counted_stage(phase: CountedPhase, length_s: float) -> Stage:
    """Give a counted phase as the stage that it was: one iteration of `length_s`, after no warm-up."""
    return Stage(
        phase=phase.name,
        load=ClosedLoop(kind="closed", in_flight=phase.in_flight),
        warmup_s=0.0,
        warmup_cap_s=0.0,
        iteration_s=length_s,
        iterations=(1,),
    )


def operations_of(workload: Workload, phase: CountedPhase) -> int:
    """Count the operations of a counted phase: as many as it says, or one for each record."""
    if phase.operations is not None:
        return phase.operations
    match workload.records:
        case Sensor(devices=devices):
            return devices
        case PutGet(keys=keys):
            return keys
        case Ycsb(record_count=count) | Statements(rows=count):
            return count
        case Devops() as records if phase.operation is Operation.LOAD:
            return ceil(devops_rows(records) / (workload.batch_rows or 1))
        case Devops(queries=queries):
            return queries
        case _:
            assert_never(workload.records)


def list_phases(workload: Workload) -> tuple[tuple[str, str, LoadKind], ...]:
    """Name all phases in order: each with its operation, `all` for a mix, and the kind of its load.

    A search is one phase here, by the name of its measurement.
    """
    counted: list[tuple[str, str, LoadKind]] = [
        (one.name, str(one.operation), "counted") for one in workload.sequence
    ]
    return (
        *counted,
        *(
            (name, name_offered(workload.mix_of(part)), part.load.kind)
            for part in workload.measurements
            for name in phases_of(part)
        ),
    )


def name_offered(mix: Mapping[OperationName, float]) -> str:
    """Name what a phase offers: its operation, or `all` for a mix of several."""
    return str(next(iter(mix))) if len(mix) == 1 else ALL


def ladder_phases(workload: Workload) -> tuple[str, ...]:
    """Name the phases of all ladders, each from its lowest load up."""
    return tuple(
        phase
        for part in workload.measurements
        if isinstance(part.load, SteppedLoad)
        for phase in phases_of(part)
    )


def phases_of(part: Measurement) -> tuple[str, ...]:
    """Name the phases of a measurement: of a ladder each load, from the lowest up; else one."""
    if isinstance(part.load, SteppedLoad):
        return tuple(ladder_phase(part, one) for one in part.load.offered_loads_ops_per_s)
    return (part.name,)


def ladder_phase(phase: Measurement, offered_load: float) -> str:
    """Name the phase of one step of a ladder."""
    return f"{phase.name}-{offered_load:g}"


def expected_s(workload: Workload) -> float:
    """Guess how long all measured phases take, in seconds, if each warm-up ends at its earliest."""
    planned_s = sum(stage.warmup_s + stage.iteration_s for stage in plan_stages(workload))
    return planned_s + sum(
        _SEARCH_STEPS * (_STEP_START_S + phase.warmup_s + phase.iterations * phase.iteration_s)
        for phase, _ in searches(workload)
    )


def _stages(phase: Measurement, iteration: int) -> tuple[Stage, ...]:
    match phase.load:
        case ClosedLoop() | OpenLoop():
            return (_stage(phase, phase.name, phase.load, (iteration,)),)
        case SteppedLoad():
            return tuple(
                _stage(
                    phase,
                    ladder_phase(phase, offered_load),
                    _open_loop(phase.load, offered_load),
                    (iteration,),
                )
                for offered_load in phase.load.offered_loads_ops_per_s
            )
        case SearchLoad():
            return ()


def _stage(
    phase: Measurement, name: str, load: ClosedLoop | OpenLoop, iterations: tuple[int, ...]
) -> Stage:
    return Stage(
        phase=name,
        load=load,
        warmup_s=phase.warmup_s,
        warmup_cap_s=phase.warmup_cap_s,
        iteration_s=phase.iteration_s,
        iterations=iterations,
        histogram_s=phase.histogram_s or 1,
    )


def _open_loop(load: SteppedLoad | SearchLoad, offered_load: float) -> OpenLoop:
    return OpenLoop(
        kind="open",
        offered_load_ops_per_s=offered_load,
        in_flight=load.in_flight,
        arrivals=load.arrivals,
    )


def steady_phases(workload: Workload) -> Mapping[str, tuple[OperationName, ...]]:
    """Return the phases that are alike in each trial, with what they ask; those of a search are not."""
    counted = {phase.name: (phase.operation,) for phase in workload.sequence}
    return counted | {
        phase: tuple(workload.mix_of(part))
        for part in workload.measurements
        for phase in phases_of(part)
        if not isinstance(part.load, SearchLoad)
    }
