from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from perf.load.histogram import merge
from perf.load.recorder import Recorder
from perf.load.spec import TimedPhase
from perf.model import Interval
from perf.workloads.sensor import Answer

PHASES = (
    TimedPhase(name="steady", iteration=0, duration_s=1.5),
    TimedPhase(name="steady", iteration=1, duration_s=2.0),
    TimedPhase(name="steady", iteration=2, duration_s=2.0),
)
START_S = 1_700_000_000.25
END_S = 5.5


def counted(recorder: Recorder, iteration: int) -> dict[str, int]:
    return {one.name: one.value for one in recorder.count() if one.iteration == iteration}


def total(intervals: Iterable[Interval], kind: str) -> int:
    chosen = [one for one in intervals if one.kind == kind]
    return int(merge(chosen).get_total_count())


def test_an_operation_belongs_to_the_phase_and_second_of_its_intended_start() -> None:
    recorder = Recorder(PHASES, "write", START_S)
    log = recorder.open_log()
    log.completed.append((1.4, 1.6, 1.75))
    intervals = recorder.fold()
    assert [(one.kind, one.iteration, one.start_s, one.length_s) for one in intervals] == [
        ("response_time", 0, START_S + 1.0, 0.5),
        ("service_time", 0, START_S + 1.0, 0.5),
    ]
    response, service = (merge([one]).get_max_value() / 1000 for one in intervals)
    assert 350 <= response <= 350.4
    assert 150 <= service <= 150.2


def test_a_late_end_counts_into_the_window_in_which_it_came() -> None:
    recorder = Recorder(PHASES, "write", START_S)
    log = recorder.open_log()
    log.begun += [1.4, 5.4]
    log.completed += [(1.4, 1.4, 1.75), (5.4, 5.4, 5.6)]
    recorder.fold()
    windows = [counted(recorder, iteration)["completed_in_window"] for iteration in (0, 1, 2)]
    completed = [counted(recorder, iteration)["completed"] for iteration in (0, 1, 2)]
    assert (completed, windows) == ([1, 0, 1], [0, 1, 0])
    assert [round(end_s, 3) for end_s in recorder.ended_s()] == [1.75, 0.0, 2.1]


def test_intervals_lie_within_their_phase() -> None:
    recorder = Recorder(PHASES, "write", START_S)
    log = recorder.open_log()
    log.completed += [(tenth / 10, tenth / 10, tenth / 10) for tenth in range(55)]
    found = {(one.iteration, one.start_s, one.length_s) for one in recorder.fold()}
    assert sorted(found) == [
        (0, START_S, 1.0),
        (0, START_S + 1.0, 0.5),
        (1, START_S + 1.5, 1.0),
        (1, START_S + 2.5, 1.0),
        (2, START_S + 3.5, 1.0),
        (2, START_S + 4.5, 1.0),
    ]


def test_what_never_ended_counts_as_a_timeout() -> None:
    recorder = Recorder(PHASES, "write", START_S)
    log = recorder.open_log()
    log.begun += [2.0, 2.1, 2.2, 2.3]
    log.completed.append((2.0, 2.0, 2.05))
    log.failed.append((2.1, "error:Unavailable"))
    recorder.fold()
    found = counted(recorder, 1)
    assert (found["attempted"], found["completed"]) == (4, 1)
    assert (found["error:Unavailable"], found["timeouts"]) == (1, 2)


def test_what_was_scheduled_and_never_sent_counts_as_a_timeout() -> None:
    recorder = Recorder(PHASES, "write", START_S)
    recorder.expect((10, 20, 30))
    recorder.fold()
    assert [counted(recorder, iteration)["timeouts"] for iteration in (0, 1, 2)] == [10, 20, 30]


def test_a_time_out_of_range_is_counted_and_kept() -> None:
    recorder = Recorder((TimedPhase(name="soak", iteration=1, duration_s=1e6),), "write", START_S)
    log = recorder.open_log()
    log.begun.append(0.0)
    log.completed.append((0.0, 9000.0, 9001.0))  # a response time of two and a half hours
    assert total(recorder.fold(), "response_time") == 1
    assert counted(recorder, 1)["clamped"] == 1


def test_the_first_message_of_each_kind_is_kept() -> None:
    recorder = Recorder(PHASES, "write", START_S)
    recorder.open_log().examples["timeouts"] = "first"
    recorder.open_log().examples.update({"timeouts": "second", "error:X": "third"})
    assert recorder.examples() == ("timeouts: first", "error:X: third")


ENDS = st.sampled_from(["completed", *(answer.value for answer in Answer), "timeouts", "error:X", ""])


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, END_S, exclude_max=True), st.floats(0, 9), ENDS), max_size=40))
def test_each_operation_ends_in_exactly_one_counter(
    operations: list[tuple[float, float, str]],
) -> None:
    recorder = Recorder(PHASES, "write", START_S)
    logs = recorder.open_log(), recorder.open_log()
    intervals: list[Interval] = []
    for place, (intended_s, wait_s, end) in enumerate(operations):
        log = logs[place % 2]
        log.begun.append(intended_s)
        if end == "completed":
            log.completed.append((intended_s, intended_s + wait_s / 2, intended_s + wait_s))
        elif end:
            log.failed.append((intended_s, end))
        if place % 7 == 0:
            intervals += recorder.fold()
    intervals += recorder.fold()
    attempted = 0
    for iteration in (0, 1, 2):
        found = counted(recorder, iteration)
        found.pop("completed_in_window")
        assert found.pop("attempted") == sum(found.values())
        attempted += sum(found.values())
    assert attempted == len(operations)
    completed = sum(counted(recorder, iteration)["completed"] for iteration in (0, 1, 2))
    assert completed == sum(end == "completed" for *_, end in operations)
    assert total(intervals, "response_time") == total(intervals, "service_time") == completed
