from dataclasses import replace
from pathlib import Path

from perf.config.catalog import load_catalog
from perf.model.design import ClosedLoop, Measurement, OpenLoop, SearchLoad, SteppedLoad, Workload
from perf.model.records import Operation
from perf.workloads.stages import (
    Stage,
    ladder_phases,
    list_phases,
    plan_loads,
    plan_stages,
    search_stage,
    searches,
)

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
CLOSED = ClosedLoop(kind="closed", in_flight=4)
OPEN = OpenLoop(kind="open", offered_load_ops_per_s=100.0, in_flight=8)
LADDER = SteppedLoad(
    kind="stepped", offered_loads_ops_per_s=(100.0, 250.5), in_flight=8, arrivals="poisson"
)
SEARCH = SearchLoad(
    kind="search",
    lowest_ops_per_s=100.0,
    highest_ops_per_s=800.0,
    response_time_p99_objective_ms=20.0,
    resolution=0.05,
    confirmations=2,
    in_flight=32,
    arrivals=None,
)


def measured(
    name: str, load: ClosedLoop | OpenLoop | SteppedLoad | SearchLoad, times: int
) -> Measurement:
    return Measurement(
        name=name, load=load, warmup_s=1.0, warmup_cap_s=3.0, iteration_s=2.0, iterations=times
    )


def workload(*measurements: Measurement) -> Workload:
    return replace(load_catalog(CONFIGS).workloads["tiny-write"], measurements=measurements)


def order(stages: tuple[Stage, ...]) -> list[tuple[str, tuple[int, ...]]]:
    return [(stage.phase, stage.iterations) for stage in stages]


def test_iterations_of_phases_take_turns() -> None:
    stages = plan_stages(workload(measured("full", CLOSED, 3), measured("calm", OPEN, 2)))
    assert order(stages) == [
        *(("full", (1,)), ("calm", (1,))),
        *(("full", (2,)), ("calm", (2,))),
        ("full", (3,)),
    ]
    assert {stage.load for stage in stages} == {CLOSED, OPEN}
    assert {(stage.warmup_s, stage.warmup_cap_s, stage.iteration_s) for stage in stages} == {(1, 3, 2)}


def test_phases_of_one_mix_run_together_in_the_order_of_the_mixes() -> None:
    reads, writes = {Operation.READ_LATEST: 1.0}, {Operation.WRITE: 1.0}
    plan = workload(
        replace(measured("read", CLOSED, 1), mix=reads),
        measured("own", CLOSED, 2),
        replace(measured("read-calm", OPEN, 1), mix=reads),
    )
    loads = plan_loads(plan)
    assert [(mix, order(stages)) for mix, stages in loads] == [
        (reads, [("read", (1,)), ("read-calm", (1,))]),
        (writes, [("own", (1,)), ("own", (2,))]),
    ]
    assert plan_stages(plan) == (*loads[0][1], *loads[1][1])
    assert {phase: operation for phase, operation, _ in list_phases(plan)} == {
        "read": "read-latest",
        "own": "write",
        "read-calm": "read-latest",
    }
    assert plan.offered == (Operation.READ_LATEST, Operation.WRITE)


def test_each_load_of_a_ladder_is_a_phase_from_the_lowest_up() -> None:
    plan = workload(measured("ladder", LADDER, 2))
    stages = plan_stages(plan)
    assert ladder_phases(plan) == ("ladder-100", "ladder-250.5")
    assert order(stages) == [(name, (turn,)) for turn in (1, 2) for name in ladder_phases(plan)]
    assert stages[1].load == OpenLoop(
        kind="open", offered_load_ops_per_s=250.5, in_flight=8, arrivals="poisson"
    )


def test_a_search_is_not_planned_but_made_step_by_step() -> None:
    plan = workload(measured("full", CLOSED, 1), measured("best", SEARCH, 2))
    assert order(plan_stages(plan)) == [("full", (1,))]
    assert ladder_phases(plan) == ()
    [(phase, search)] = searches(plan)
    stage = search_stage(phase, search, 3, 123.4)
    assert (stage.phase, stage.iterations) == ("best-03", (1, 2))
    assert stage.load == OpenLoop(kind="open", offered_load_ops_per_s=123.4, in_flight=32)
