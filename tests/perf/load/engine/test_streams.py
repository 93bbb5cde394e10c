"""Mixes: which operation a number is, and the books that are kept of each."""

from collections import Counter as Tally

import numpy as np
import pytest

from perf.load.engine.recorder import OperationKind, Recorder
from perf.load.engine.streams import OperationStreams, lay_streams
from perf.load.engine.tasks.task import OperationPart, Parts, Task
from perf.model.design import OpenLoop
from perf.model.records import Operation
from perf.model.results import ATTEMPTED, COMPLETED_IN_WINDOW, TIMEOUTS
from perf.workloads.stages import Stage

WEIGHTS = {Operation.READ: 95.0, Operation.UPDATE: 5.0}
STAGE = Stage(
    phase="steady",
    load=OpenLoop(kind="open", offered_load_ops_per_s=10.0, in_flight=1),
    warmup_s=1.0,
    warmup_cap_s=1.0,
    iteration_s=2.0,
    iterations=(1,),
)


class Still:
    """A clock that stands."""

    def now(self) -> float:
        return 1.5

    def sleep_until(self, time_s: float) -> None:
        """Return at once."""


NOTHING: Task[int, None] = Task(prepare=int, send=lambda _: None, describe=str)


def make_lanes(seed: int = 7, *, noted: list[OperationPart] | None = None) -> OperationStreams:
    noted = [] if noted is None else noted

    def make(parts: Parts) -> dict[Operation, Task[int, None]]:
        noted.append(parts(Operation.UPDATE, "read"))
        return dict.fromkeys(WEIGHTS, NOTHING)

    return lay_streams(make, WEIGHTS, seed, clock=Still(), start_at_s=0.0)


def name(streams: OperationStreams, number: int) -> str:
    log = streams.choose(number).log
    return next(name for name, one in streams.recorder.logs.items() if one is log)


def test_a_mix_is_offered_in_its_shares_and_the_same_by_every_engine() -> None:
    drawn = [name(make_lanes(), number) for number in range(4000)]
    counts = Tally(drawn)
    # 200 expected; six standard deviations of a binomial are 83.
    assert abs(counts["update"] - 200) < 83
    assert counts["read"] + counts["update"] == 4000
    again = make_lanes()
    assert [name(again, number) for number in range(100)] == drawn[:100]
    other = make_lanes(seed=8)
    assert [name(other, number) for number in range(4000)] != drawn


def make_recorder() -> Recorder:
    kinds = (
        OperationKind(operation="read", weight=95.0),
        OperationKind(operation="update", weight=5.0),
        OperationKind(operation="update.read", is_part=True),
    )
    recorder = Recorder(kinds, 0.0)
    recorder.begin_stage("steady", 0.0)
    # 0.5 s apart: two in the warm-up, four in the iteration, one after it.
    recorder.begin_iterations(STAGE, 1.0, np.arange(0.0, 3.5, 0.5))
    return recorder


def totals(recorder: Recorder, operation: str) -> dict[str, int]:
    return {
        one.name: one.value
        for one in recorder.count()
        if one.operation == operation and one.iteration == 1
    }


def test_what_was_never_sent_is_shared_out_by_weight() -> None:
    recorder = make_recorder()
    recorder.logs["update"].sent.extend((1.0, 1.0, 1.0))
    recorder.logs["update"].completed.extend((1.0, 1.0, 1.1))
    recorder.fold()
    read, update = totals(recorder, "read"), totals(recorder, "update")
    assert read[ATTEMPTED] + update[ATTEMPTED] == 4
    assert (read[ATTEMPTED], read[TIMEOUTS]) == (3, 3)
    assert (update[ATTEMPTED], update[TIMEOUTS], update["completed"]) == (1, 0, 1)


def test_a_part_has_times_and_nothing_else() -> None:
    recorder = make_recorder()
    recorder.logs["update"].sent.extend((1.0, 1.0, 1.0))
    recorder.logs["update"].completed.extend((1.0, 1.0, 1.4))
    recorder.logs["update.read"].completed.extend((1.0, 1.0, 1.3))
    intervals = recorder.fold()
    assert totals(recorder, "update.read") == {"completed": 1}
    assert totals(recorder, "update")[COMPLETED_IN_WINDOW] == 1
    assert {one.operation for one in intervals} == {"update", "update.read"}
    # Who decides when a warm-up ends counts whole operations only.
    reported = [line.split(",")[2] for line in recorder.report_seconds(3).splitlines()]
    assert sum(map(int, reported)) == 1


def test_parts_are_noted_by_the_clock_of_the_load() -> None:
    noted: list[OperationPart] = []
    recorder = make_lanes(noted=noted).recorder
    recorder.begin_stage("p", 0.0)
    (part,) = noted
    part.note(1.25, part.now())
    (response, service) = recorder.fold()
    assert {response.operation, service.operation} == {"update.read"}
    assert service.max_us == pytest.approx(250_000, rel=0.001)


def test_a_counted_phase_is_one_iteration_that_ends_with_its_last_operation() -> None:
    recorder = Recorder((OperationKind(operation="put", rows=1),), 0.0)
    recorder.begin_counted("put-1")
    recorder.logs["put"].begun.extend((0.0, 0.5))
    recorder.logs["put"].completed.extend((0.0, 0.0, 0.5, 0.5, 0.5, 2.25))
    recorder.fold()
    recorder.end_counted(recorder.last_end_s)
    (cell,) = recorder.windows
    assert (cell.iteration, cell.end_s) == (1, 2.25)
    assert {one.name: one.value for one in recorder.count()}[COMPLETED_IN_WINDOW] == 2


def test_wide_histograms_hold_what_narrow_ones_would() -> None:
    wide = make_recorder()
    wide.begin_stage("soak", 10.0)
    stage = Stage(
        phase="soak",
        load=STAGE.load,
        warmup_s=1.0,
        warmup_cap_s=1.0,
        iteration_s=25.0,
        iterations=(1,),
        histogram_s=10,
    )
    wide.begin_iterations(stage, 11.0, None)
    for second in range(25):
        wide.logs["read"].completed.extend((11.0 + second, 11.0 + second, 11.5 + second))
    kept = [one for one in wide.fold() if one.kind == "response_time"]
    assert [(one.start_s, one.length_s) for one in kept] == [(11.0, 10), (21.0, 10), (31.0, 5)]
