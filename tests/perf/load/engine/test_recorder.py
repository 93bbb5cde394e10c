"""The recorder against a second one that keeps everything and counts one by one."""

import bisect
import math
from collections import Counter as Tally
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.load.engine.recorder import OperationKind, Recorder
from perf.load.engine.schedule import Starts
from perf.load.histogram import (
    HIGHEST_US,
    Histogram,
    encode,
    make_histogram,
    merge,
    merge_equal_intervals,
)
from perf.model.design import ClosedLoop
from perf.model.records import Answer
from perf.model.results import Interval
from perf.workloads.stages import Stage

START_S = 1_700_000_000.25
END_S = 5.5
# A warm-up of 1.5 s, two iterations of 2 s, and the warm-up of the next stage.
EDGES = (0.0, 1.5, 3.5, 5.5)
STAGE = Stage(
    phase="steady",
    load=ClosedLoop(kind="closed", in_flight=1),
    warmup_s=1.0,
    warmup_cap_s=1.5,
    iteration_s=2.0,
    iterations=(1, 2),
)


def make_recorder(rows: int = 1, starts: Starts | None = None) -> Recorder:
    recorder = Recorder((OperationKind(operation="write", rows=rows),), START_S)
    recorder.begin_stage("steady", 0.0)
    assert recorder.begin_iterations(STAGE, 1.5, starts) == END_S
    recorder.begin_stage("next", END_S)
    return recorder


def counted(recorder: Recorder, iteration: int, phase: str = "steady") -> dict[str, int]:
    return {
        one.name: one.value
        for one in recorder.count()
        if (one.phase, one.iteration) == (phase, iteration)
    }


def total(intervals: Iterable[Interval], kind: str) -> int:
    chosen = [one for one in intervals if one.kind == kind]
    return int(merge(chosen).get_total_count())


def test_an_operation_belongs_to_the_cell_and_second_of_its_intended_start() -> None:
    recorder = make_recorder()
    recorder.logs["write"].sent += (1.4, 1.5, 1.6)
    recorder.logs["write"].completed += (1.4, 1.6, 1.75)
    intervals = recorder.fold()
    assert [(one.kind, one.iteration, one.start_s, one.length_s) for one in intervals] == [
        ("response_time", 0, START_S + 1.0, 0.5),
        ("service_time", 0, START_S + 1.0, 0.5),
        ("send_lateness", 0, START_S + 1.0, 0.5),
    ]
    found_ms = [merge([one]).get_max_value() / 1000 for one in intervals]
    assert found_ms == pytest.approx([350, 150, 100], rel=1e-3)


def test_what_happens_late_counts_into_the_window_in_which_it_happened_if_of_the_same_stage() -> None:
    recorder = make_recorder()
    recorder.logs["write"].sent += (1.4, 1.4, 1.6, 5.4, 5.4, 5.6)
    recorder.logs["write"].completed += (1.4, 1.6, 1.75, 5.4, 5.6, 5.7)
    recorder.fold()
    cells = [counted(recorder, iteration) for iteration in (0, 1, 2)]
    cells.append(counted(recorder, 0, "next"))
    for name, expected in {
        "completed": [1, 0, 1, 0],
        "completed_in_window": [0, 1, 0, 0],
        "sent_in_window": [0, 1, 0, 0],
    }.items():
        assert [cell[name] for cell in cells] == expected


def test_intervals_lie_within_their_cell() -> None:
    recorder = make_recorder()
    for tenth in range(55):
        recorder.logs["write"].completed += (tenth / 10, tenth / 10, tenth / 10)
    found = {(one.iteration, one.start_s, one.length_s) for one in recorder.fold()}
    assert sorted(found) == [
        (0, START_S, 1.0),
        (0, START_S + 1.0, 0.5),
        (1, START_S + 1.5, 1.0),
        (1, START_S + 2.5, 1.0),
        (2, START_S + 3.5, 1.0),
        (2, START_S + 4.5, 1.0),
    ]


def test_a_time_just_before_the_end_of_a_cell_is_in_its_last_second() -> None:
    begin_s = 1.991317
    recorder = Recorder((OperationKind(operation="write"),), START_S)
    recorder.begin_stage("steady", 0.0)
    end_s = recorder.begin_iterations(replace(STAGE, iteration_s=5.0, iterations=(1,)), begin_s, None)
    last_s = math.nextafter(end_s, 0.0)
    assert last_s - begin_s == 5.0  # by rounding
    recorder.begin_stage("next", end_s)
    recorder.logs["write"].completed += (last_s, last_s, last_s + 0.1)
    found = {(one.iteration, one.start_s, one.length_s) for one in recorder.fold()}
    assert found == {(1, round(START_S + begin_s + 4, 6), 1.0)}


def test_what_happened_after_the_horizon_waits_until_it_is_known_where_it_belongs() -> None:
    recorder = Recorder((OperationKind(operation="write"),), START_S)
    recorder.begin_stage("steady", 0.0)
    for tenth in range(35):
        recorder.logs["write"].begun.append(tenth / 10)
        recorder.logs["write"].completed += (tenth / 10, tenth / 10, tenth / 10 + 0.05)
    early = recorder.fold(horizon_s=2.0)
    assert [(one.iteration, one.start_s, one.length_s) for one in early[::2]] == [
        (0, START_S, 1.0),
        (0, START_S + 1.0, 1.0),
    ]
    recorder.begin_iterations(STAGE, 2.5, None)
    late = recorder.fold(horizon_s=3.0)
    assert [(one.iteration, one.start_s, one.length_s) for one in late[::2]] == [
        (0, START_S + 2.0, 0.5),
        (1, START_S + 2.5, 1.0),
    ]
    recorder.fold()
    assert [counted(recorder, iteration)["completed"] for iteration in (0, 1)] == [25, 10]
    assert [counted(recorder, iteration)["attempted"] for iteration in (0, 1)] == [25, 10]


def test_what_never_ended_counts_as_a_timeout() -> None:
    recorder = make_recorder()
    recorder.logs["write"].begun += [2.0, 2.1, 2.2, 2.3]
    recorder.logs["write"].completed += (2.0, 2.0, 2.05)
    recorder.logs["write"].failed.append((2.1, 2.2, "error:Unavailable"))
    recorder.fold()
    found = counted(recorder, 1)
    assert (found["attempted"], found["completed"], found["sent_in_window"]) == (4, 1, 4)
    assert (found["error:Unavailable"], found["timeouts"]) == (1, 2)


def test_what_was_scheduled_and_never_sent_counts_as_a_timeout() -> None:
    recorder = Recorder((OperationKind(operation="write"),), START_S)
    recorder.begin_stage("steady", 0.0)
    recorder.begin_iterations(STAGE, 1.5, np.arange(70) / 10)
    recorder.fold()
    cells = [counted(recorder, iteration) for iteration in (0, 1, 2)]
    assert [cell["timeouts"] for cell in cells] == [15, 20, 20]
    assert [cell["sent_in_window"] for cell in cells] == [0, 0, 0]


def test_an_operation_that_waited_for_a_slot_was_held_and_not_late() -> None:
    recorder = make_recorder()
    recorder.logs["write"].sent += (2.0, 2.0, 2.25, 2.1, 2.3, 2.301)
    intervals = recorder.fold()
    found = counted(recorder, 1)
    assert (found["held"], found["sent_in_window"]) == (1, 2)
    (lateness,) = intervals
    assert lateness.kind == "send_lateness"
    assert merge([lateness]).get_max_value() == pytest.approx(250_000, rel=1e-3)
    assert merge([lateness]).get_min_value() == pytest.approx(1000, rel=1e-3)


def test_rows_are_those_of_completed_operations() -> None:
    recorder = make_recorder(rows=7)
    recorder.logs["write"].completed += (2.0, 2.0, 2.1, 2.0, 2.0, 2.1)
    recorder.logs["write"].failed.append((2.0, 2.1, Answer.NOT_FOUND.value))
    recorder.fold()
    assert counted(recorder, 1)["rows"] == 14


def test_a_time_out_of_range_is_counted_and_kept() -> None:
    recorder = Recorder((OperationKind(operation="write"),), START_S)
    recorder.begin_stage("soak", 0.0)
    recorder.logs["write"].begun.append(0.0)
    recorder.logs["write"].completed += (0.0, 9000.0, 9001.0)  # a response time of two and a half hours
    assert total(recorder.fold(), "response_time") == 1
    assert counted(recorder, 0, "soak")["clamped"] == 1


def test_warm_ups_of_a_phase_are_one_iteration() -> None:
    recorder = make_recorder()
    recorder.begin_iterations(STAGE, 6.0, None)
    recorder.begin_stage("steady", 10.0)
    for start_s in (0.5, 10.5):
        recorder.logs["write"].begun.append(start_s)
    recorder.fold()
    assert counted(recorder, 0)["attempted"] == 2


def test_seconds_are_reported_by_when_operations_ended_each_once() -> None:
    recorder = make_recorder()
    recorder.logs["write"].completed += (5.0, 5.0, 5.5, 5.6, 5.7, 5.75, 7.0, 7.0, 7.875)
    recorder.fold(horizon_s=7.5)
    assert recorder.report_seconds(2) == "1,0,1,0.050000\n1,1,0,0.000000\n"
    assert recorder.report_seconds(2) == ""
    recorder.fold(horizon_s=8.5)
    assert recorder.report_seconds(3) == "1,2,1,0.875000\n"


def test_the_first_message_of_each_kind_is_kept() -> None:
    recorder = make_recorder()
    recorder.logs["write"].examples.update({"timeouts": "first", "error:X": "second"})
    assert recorder.examples() == ("timeouts: first", "error:X: second")


@dataclass(frozen=True)
class Done:
    """One operation as the loops see it; it waited, was late and took this long."""

    intended_s: float
    held_s: float
    late_s: float
    took_s: float
    end: str

    @property
    def ready_s(self) -> float:
        return self.intended_s + self.held_s

    @property
    def sent_s(self) -> float:
        return self.ready_s + self.late_s

    @property
    def ended_s(self) -> float:
        return self.sent_s + self.took_s


ENDS = ["completed", *(answer.value for answer in Answer), "timeouts", "error:X", ""]
WAITS = st.one_of(st.just(0.0), st.floats(0, 0.1), st.floats(0, 9), st.floats(0, 9000))
DONE = st.builds(
    Done, st.floats(0, END_S, exclude_max=True), WAITS, WAITS, WAITS, st.sampled_from(ENDS)
)


def note(recorder: Recorder, done: Done) -> None:
    recorder.logs["write"].sent += (done.intended_s, done.ready_s, done.sent_s)
    if done.end == "completed":
        recorder.logs["write"].completed += (done.intended_s, done.sent_s, done.ended_s)
    elif done.end:
        recorder.logs["write"].failed.append((done.intended_s, done.ended_s, done.end))


def cell_of(time_s: float) -> int:
    return bisect.bisect_right(EDGES, time_s) - 1


def one_by_one(operations: Iterable[Done]) -> dict[tuple[int, int, str], Histogram]:
    """Record by HdrHistogram's own call, per cell, second and kind."""
    found: dict[tuple[int, int, str], Histogram] = {}
    for done in operations:
        times_s = {"send_lateness": done.sent_s - done.ready_s}
        if done.end == "completed":
            times_s["response_time"] = done.ended_s - done.intended_s
            times_s["service_time"] = done.ended_s - done.sent_s
        cell = cell_of(done.intended_s)
        for kind, time_s in times_s.items():
            key = cell, int(done.intended_s - EDGES[cell]), kind
            found[key] = found.get(key) or make_histogram()
            found[key].record_value(min(max(round(time_s * 1e6), 0), HIGHEST_US))
    return found


def fold_all(
    operations: list[Done], splits: list[tuple[int, float]]
) -> tuple[Recorder, list[Interval]]:
    """Note operations in order, and fold after some of them, up to some horizon."""
    recorder = make_recorder(starts=np.sort([done.intended_s for done in operations]))
    intervals: list[Interval] = []
    for place, done in enumerate(operations):
        note(recorder, done)
        for after, horizon_s in splits:
            if after == place:
                intervals += recorder.fold(horizon_s)
    return recorder, [*intervals, *recorder.fold()]


SPLITS = st.lists(st.tuples(st.integers(0, 40), st.floats(0, 8)), max_size=4)


@settings(deadline=None)
@given(st.lists(DONE, max_size=40), SPLITS, st.integers(1, 3))
def test_folds_of_engines_equal_recording_one_by_one(
    operations: list[Done], splits: list[tuple[int, float]], engines: int
) -> None:
    intervals: list[Interval] = []
    for engine in range(engines):
        _, folded = fold_all(operations[engine::engines], splits)
        intervals += folded
    expected = one_by_one(operations)
    merged = merge_equal_intervals(intervals)
    assert len(merged) == len(expected)
    for one in merged:
        cell = one.iteration
        key = cell, round(one.start_s - START_S - EDGES[cell]), one.kind
        assert encode(merge([one])) == encode(expected[key])
        assert one.max_us == expected[key].get_max_value()


@settings(deadline=None)
@given(st.lists(DONE, max_size=40), SPLITS)
def test_each_operation_is_counted_exactly_as_one_by_one(
    operations: list[Done], splits: list[tuple[int, float]]
) -> None:
    recorder, _ = fold_all(operations, splits)
    expected: list[Tally[str]] = [Tally() for _ in range(5)]
    for done in operations:
        cell = expected[cell_of(done.intended_s)]
        cell["attempted"] += 1
        cell[done.end or "timeouts"] += 1
        cell["held"] += int(done.ready_s > done.intended_s)
        cell["rows"] += int(done.end == "completed")
        for name, time_s in (("sent_in_window", done.sent_s), ("completed_in_window", done.ended_s)):
            is_in_own_stage = (cell_of(time_s) >= 3) is (cell_of(done.intended_s) >= 3)
            if is_in_own_stage and (name == "sent_in_window" or done.end == "completed"):
                expected[cell_of(time_s)][name] += 1
    for place, (phase, iteration) in enumerate(
        (("steady", 0), ("steady", 1), ("steady", 2), ("next", 0))
    ):
        found = counted(recorder, iteration, phase)
        clamped = found.pop("clamped", 0)
        assert clamped <= 3 * len(operations)
        assert {name: value for name, value in found.items() if value} == {
            name: value for name, value in expected[place].items() if value
        }
        ends = set(Answer) | {"timeouts", "error:X"}
        assert found["attempted"] == sum(found.get(end, 0) for end in ends)


def test_a_part_that_begins_when_the_load_is_over_is_in_no_interval() -> None:
    kinds = (OperationKind(operation="rmw"), OperationKind(operation="rmw.update", is_part=True))
    recorder = Recorder(kinds, START_S)
    recorder.begin_stage("steady", 0.0)
    recorder.begin_iterations(STAGE, 1.5, None)
    recorder.logs["rmw"].completed += (END_S - 0.1, END_S - 0.1, END_S + 0.2)
    recorder.logs["rmw.update"].completed += (END_S - 0.1, END_S - 0.1, END_S)
    recorder.logs["rmw.update"].completed += (END_S, END_S, END_S + 0.2)
    intervals = recorder.fold()
    assert all(one.length_s > 0 for one in intervals)
    times = [one for one in intervals if one.kind == "service_time"]
    assert sorted(one.operation for one in times) == ["rmw", "rmw.update"]
    counters = {(one.operation, one.name): one.value for one in recorder.count() if one.iteration == 2}
    assert counters["rmw.update", "completed"] == 1
