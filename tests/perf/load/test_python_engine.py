"""The engine in this process, on a session that is a dict; `test_engines` runs it as a process."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from perf.design import ClosedLoop, Load, OpenLoop, Operation, Sensor
from perf.errors import StepFailed
from perf.load.histogram import merge
from perf.load.loops import MonotonicClock
from perf.load.python_engine import main, run
from perf.load.spec import EngineResult, LoadSpec, TimedPhase
from perf.model import Interval
from perf.systems.contract import Target
from perf.workloads.sensor import Reading, reading

RECORDS = Sensor(kind="sensor", devices=5, payload_bytes=200, latest_count=3)
CLOSED = ClosedLoop(kind="closed", in_flight=4)
ROWS = 5 * 4


class DictSession:
    """A session on a dict; `before_write` may raise or wait."""

    def __init__(self, before_write: Callable[[int], None] = lambda _: None) -> None:
        self.rows: dict[tuple[str, int], Reading] = {}
        self.before_write = before_write
        self._writes = iter(range(10**9))

    def create_schema(self, records: Sensor) -> None:
        """Do nothing."""

    def write(self, reading: Reading) -> None:
        self.before_write(next(self._writes))
        time.sleep(0.001)
        self.rows[reading.device_id, reading.ts_ms] = reading

    def read_latest(self, device_id: str, count: int) -> Sequence[Reading]:
        time.sleep(0.001)
        rows = [row for row in self.rows.values() if row.device_id == device_id]
        return sorted(rows, key=lambda row: -row.ts_ms)[:count]

    def count(self) -> int:
        return len(self.rows)

    def classify(self, error: Exception) -> str:
        return "timeouts" if isinstance(error, TimeoutError) else f"error:{type(error).__name__}"


def make_spec(operation: Operation = Operation.WRITE, load: Load = CLOSED) -> LoadSpec:
    return LoadSpec(
        target=Target(
            system="fake",
            addresses=("127.0.0.1",),
            port=1,
            replication_factor=1,
            consistency="one",
            timeout_s=0.3,
        ),
        records=RECORDS,
        operation=operation,
        load=load,
        seed=11,
        engine_index=1,
        engine_count=3,
        readable_rows=ROWS,
        first_row=1000,
        phases=tuple(TimedPhase(name="p", iteration=n, duration_s=0.2) for n in (0, 1, 2)),
        output_dir="",
    )


def offer(
    spec: LoadSpec, session: DictSession
) -> tuple[dict[str, int], tuple[Interval, ...], EngineResult]:
    start_at_s = time.time() + 0.05
    intervals: list[Interval] = []
    result = run(spec, session, start_at_s, MonotonicClock(start_at_s), intervals.extend)
    totals: dict[str, int] = {}
    for counter in result.counters:
        totals[counter.name] = totals.get(counter.name, 0) + counter.value
    ends = {k: v for k, v in totals.items() if k not in {"attempted", "completed_in_window"}}
    assert totals["attempted"] == sum(ends.values())
    return totals, tuple(intervals), result


def stored() -> DictSession:
    session = DictSession()
    for row in range(ROWS):
        made = reading(RECORDS, 11, row)
        session.rows[made.device_id, made.ts_ms] = made
    return session


def test_every_completed_write_is_a_row_of_this_engine() -> None:
    session = DictSession()
    totals, intervals, result = offer(make_spec(), session)
    assert totals["completed"] == totals["attempted"] == len(session.rows) > 0
    # A number that a thread had taken when the time was up is left out.
    taken = range(len(session.rows) + CLOSED.in_flight)
    own = {reading(RECORDS, 11, 1000 + 1 + 3 * place) for place in taken}
    assert set(session.rows.values()) <= own
    recorded = merge([one for one in intervals if one.kind == "response_time"])
    assert recorded.get_total_count() == totals["completed"]
    assert recorded.get_min_value() >= 990  # each took 1 ms and more
    assert {counter.iteration for counter in result.counters} == {0, 1, 2}
    assert result.cpu_s > 0
    assert result.wall_s >= 0.6


def test_an_open_loop_attempts_exactly_what_was_scheduled() -> None:
    load = OpenLoop(kind="open", offered_load_ops_per_s=300.0, in_flight=4)
    totals, _, result = offer(make_spec(load=load), DictSession())
    assert totals["attempted"] == 60  # a third of 300/s over 0.6 s
    attempted = [one.value for one in result.counters if one.name == "attempted"]
    assert attempted == [20, 20, 20]


def test_reads_of_what_was_stored_are_complete() -> None:
    totals, _, _ = offer(make_spec(Operation.READ_LATEST), stored())
    assert totals["completed"] == totals["attempted"] > 0


def test_missing_and_wrong_rows_are_counted_and_not_timed() -> None:
    session = stored()
    lost, changed = reading(RECORDS, 11, ROWS - 1), reading(RECORDS, 11, ROWS - 2)
    del session.rows[lost.device_id, lost.ts_ms]
    session.rows[changed.device_id, changed.ts_ms] = replace(changed, metadata=b"")
    totals, intervals, result = offer(make_spec(Operation.READ_LATEST), session)
    assert totals["not_found"] > 0
    assert totals["wrong_data"] > 0
    timed = merge([one for one in intervals if one.kind == "service_time"])
    assert timed.get_total_count() == totals["completed"]
    assert {text.split(":")[0] for text in result.examples} == {"not_found", "wrong_data"}


def test_errors_are_counted_by_kind_with_an_example() -> None:
    def fail(place: int) -> None:
        if place % 3 == 1:
            raise TimeoutError("no answer")
        if place % 3 == 2:
            raise ConnectionResetError("gone")

    totals, _, result = offer(make_spec(), DictSession(fail))
    assert totals["timeouts"] > 0
    assert totals["error:ConnectionResetError"] > 0
    assert any("no answer" in text for text in result.examples)


def test_operations_without_an_answer_are_timeouts_and_do_not_hold_up_the_end() -> None:
    answered = threading.Event()

    def hang(place: int) -> None:
        if place >= 10:
            answered.wait()

    try:
        began_s = time.monotonic()
        totals, _, _ = offer(make_spec(), DictSession(hang))
        assert time.monotonic() - began_s < 10
        assert totals["completed"] == 10
        assert totals["timeouts"] == CLOSED.in_flight
    finally:
        answered.set()


def test_scheduled_operations_behind_a_hang_are_timeouts_too() -> None:
    answered = threading.Event()
    load = OpenLoop(kind="open", offered_load_ops_per_s=300.0, in_flight=1)

    def hang(_: int) -> None:
        answered.wait()

    try:
        totals, _, _ = offer(make_spec(load=load), DictSession(hang))
        assert totals["timeouts"] == totals["attempted"] == 60
    finally:
        answered.set()


def test_a_preload_writes_this_engines_share_despite_passing_errors() -> None:
    def fail_sometimes(place: int) -> None:
        if place % 5 == 0:
            raise ConnectionResetError

    session = DictSession(fail_sometimes)
    totals, _, _ = offer(replace(make_spec(), preload_rows=20, phases=()), session)
    assert set(session.rows.values()) == {reading(RECORDS, 11, row) for row in range(1, 20, 3)}
    assert totals["completed"] == 7
    assert totals["error:ConnectionResetError"] == totals["attempted"] - 7 > 0


def test_a_defect_in_a_thread_is_seen() -> None:
    class Broken(DictSession):
        def classify(self, error: Exception) -> str:
            raise LookupError("a defect")

    def fail(_: int) -> None:
        raise OSError

    with pytest.raises(LookupError, match="a defect"):
        offer(make_spec(), Broken(fail))


def test_a_file_that_is_no_spec_is_wrong_usage(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "spec.json").write_text("{}")
    assert main([str(tmp_path / "spec.json")]) == 2
    assert main([str(tmp_path / "absent.json")]) == 2
    assert "usage" in capfd.readouterr().err


def test_preload_failure_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise ConnectionResetError("gone")

    monkeypatch.setattr(MonotonicClock, "sleep_until", lambda *_: None)
    with pytest.raises(StepFailed, match=r"did not succeed in 6 attempts.*gone"):
        offer(replace(make_spec(), preload_rows=20, phases=()), DictSession(fail))
