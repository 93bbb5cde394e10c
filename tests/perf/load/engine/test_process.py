"""The engine in this process, on a session that is a dict; `test_engines` runs it as a process.

Each test of a whole load runs twice: on blocking calls, and on calls that answer later.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from perf.load.clock import MonotonicClock
from perf.load.engine.process import main
from perf.load.engine.runner import LoadEnvironment, plan_schedules, run_preload, run_stages
from perf.load.histogram import Histogram, merge
from perf.load.spec import EngineResult, LoadSpec, Preload
from perf.model.design import ClosedLoop, OpenLoop, SimpleLoad
from perf.model.errors import StepFailed
from perf.model.records import Operation, Sensor, Stored
from perf.model.results import Interval
from perf.systems.contract import Target
from perf.systems.sessions import OnRead, OnWritten
from perf.workloads.sensor import SensorReading, batch, reading
from perf.workloads.stages import Stage

RECORDS = Sensor(kind="sensor", devices=5, payload_bytes=200, latest_count=3)
CLOSED = ClosedLoop(kind="closed", in_flight=4)
ROWS = 5 * 4


class DictSession:
    """A session on a dict; `before_write` may raise or wait."""

    def __init__(self, before_write: Callable[[int], None] = lambda _: None) -> None:
        self.rows: dict[tuple[str, int], SensorReading] = {}
        self.before_write = before_write
        self._writes = itertools.count()

    def create_schema(self, records: Sensor) -> None:
        """Do nothing."""

    def write(self, readings: Sequence[SensorReading]) -> None:
        self.before_write(next(self._writes))
        time.sleep(0.001)
        for row in readings:
            assert (row.device_id, row.ts_ms) not in self.rows, "a row was written twice"
            self.rows[row.device_id, row.ts_ms] = row

    def read_latest(self, device_id: str, count: int) -> Sequence[SensorReading]:
        time.sleep(0.001)
        rows = [row for row in list(self.rows.values()) if row.device_id == device_id]
        return sorted(rows, key=lambda row: -row.ts_ms)[:count]

    def stored(self) -> Stored:
        return Stored(rows=len(self.rows), payload_bytes=0)

    def classify(self, error: Exception) -> str:
        return "timeouts" if isinstance(error, TimeoutError) else f"error:{type(error).__name__}"


class LaterSession(DictSession):
    """The same, answering from threads of its own; every third answer comes before the call returns."""

    def __init__(self, before_write: Callable[[int], None] = lambda _: None) -> None:
        super().__init__(before_write)
        self._threads = ThreadPoolExecutor(8)
        self._calls = itertools.count()

    def write_soon(self, readings: Sequence[SensorReading], done: OnWritten) -> None:
        self._do(lambda: self.write(readings), done)

    def read_latest_soon(self, device_id: str, count: int, done: OnRead) -> None:
        self._do(lambda: self.read_latest(device_id, count), done)

    def _do(self, work: Callable[[], Any], done: Callable[[Any, Exception | None], None]) -> None:
        def answer() -> None:
            try:
                reply = work()
            except Exception as error:  # noqa: BLE001  as a driver does
                done(None, error)
            else:
                done(reply, None)

        if next(self._calls) % 3:
            self._threads.submit(answer)
        else:
            answer()


@pytest.fixture(params=[DictSession, pytest.param(LaterSession, marks=pytest.mark.slow)])
def make_session(request: pytest.FixtureRequest) -> type[DictSession]:
    kind: type[DictSession] = request.param
    return kind


class Kept:
    """What an engine would have written to its files; `told` is what MEASURE says, by stage."""

    def __init__(self, reported: Callable[[int], float | None] = lambda _: None) -> None:
        self.intervals: list[Interval] = []
        self.progress = ""
        self.reported = reported

    def append(self, intervals: Sequence[Interval]) -> None:
        self.intervals += intervals

    def report(self, lines: str) -> None:
        self.progress += lines

    def measure_at(self, place: int) -> float | None:
        return self.reported(place)

    def timed(self, kind: str) -> Histogram:
        return merge([one for one in self.intervals if one.kind == kind])


def make_stage(load: SimpleLoad = CLOSED, *, cap_s: float = 0.2, phase: str = "p") -> Stage:
    return Stage(
        phase=phase,
        load=load,
        warmup_s=cap_s,
        warmup_cap_s=cap_s,
        iteration_s=0.2,
        iterations=(1, 2),
    )


def make_spec(
    operation: Operation = Operation.WRITE, load: SimpleLoad = CLOSED, batch_rows: int = 1
) -> LoadSpec:
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
        mix={operation: 1.0},
        seed=11,
        engine_index=1,
        engine_count=3,
        stages=(make_stage(load),),
        readable_rows=ROWS,
        first_row=1000,
        batch_rows=batch_rows,
        output_dir="",
    )


def offer(
    spec: LoadSpec, session: DictSession, kept: Kept | None = None
) -> tuple[dict[str, int], Kept, EngineResult]:
    start_at_s = time.time() + 0.05
    kept = kept or Kept()
    around = LoadEnvironment(start_at_s=start_at_s, clock=MonotonicClock(start_at_s), output=kept)
    if spec.preload:
        result = run_preload(spec, spec.preload, session, around)
    else:
        result = run_stages(spec, session, plan_schedules(spec), around)
    totals: dict[str, int] = {}
    for counter in result.counters:
        totals[counter.name] = totals.get(counter.name, 0) + counter.value
    beside = {"attempted", "completed_in_window", "sent_in_window", "held", "rows"}
    assert totals["attempted"] == sum(v for k, v in totals.items() if k not in beside)
    return totals, kept, result


def stored(make_session: type[DictSession]) -> DictSession:
    session = make_session()
    for row in range(ROWS):
        made = reading(RECORDS, 11, row)
        session.rows[made.device_id, made.ts_ms] = made
    return session


def test_every_completed_write_is_a_row_of_this_engine(make_session: type[DictSession]) -> None:
    session = make_session()
    totals, kept, result = offer(make_spec(), session)
    assert totals["completed"] == totals["attempted"] == totals["rows"] == len(session.rows) > 0
    # A number that a thread had taken when the time was up is left out.
    taken = range(len(session.rows) + CLOSED.in_flight)
    own = {reading(RECORDS, 11, 1000 + 1 + 3 * place) for place in taken}
    assert set(session.rows.values()) <= own
    recorded = kept.timed("response_time")
    assert recorded.get_total_count() == totals["completed"]
    assert recorded.get_min_value() >= 990  # each took 1 ms and more
    assert {counter.iteration for counter in result.counters} == {0, 1, 2}
    assert {one.kind for one in kept.intervals} == {"response_time", "service_time"}


def test_a_batch_is_one_operation_and_many_rows(make_session: type[DictSession]) -> None:
    session = make_session()
    totals, kept, _ = offer(make_spec(batch_rows=7), session)
    assert totals["rows"] == 7 * totals["completed"] == len(session.rows) > 0
    assert kept.timed("response_time").get_total_count() == totals["completed"]
    taken = range(totals["completed"] + CLOSED.in_flight)
    own = {row for place in taken for row in batch(RECORDS, 11, 1000, 7, 1 + 3 * place)}
    assert set(session.rows.values()) <= own


@pytest.mark.parametrize("arrivals", [None, "poisson"])
def test_an_open_loop_attempts_exactly_what_was_scheduled(
    make_session: type[DictSession], arrivals: Literal["poisson"] | None
) -> None:
    load = OpenLoop(kind="open", offered_load_ops_per_s=300.0, in_flight=4, arrivals=arrivals)
    spec = make_spec(load=load)
    totals, kept, result = offer(spec, make_session())
    (schedule,) = plan_schedules(spec)
    assert schedule is not None
    attempted = {one.iteration: one.value for one in result.counters if one.name == "attempted"}
    scheduled = [
        sum(place * 0.2 <= start < (place + 1) * 0.2 for start in schedule) for place in range(3)
    ]
    assert [attempted[iteration] for iteration in range(3)] == scheduled
    if arrivals is None:
        assert scheduled == [20, 20, 20]  # a third of 300/s over 0.2 s
    assert totals["attempted"] == totals["completed"]
    assert kept.timed("send_lateness").get_total_count() == totals["attempted"]


@pytest.mark.slow
def test_stages_follow_each_other_with_numbers_that_go_on(make_session: type[DictSession]) -> None:
    load = OpenLoop(kind="open", offered_load_ops_per_s=300.0, in_flight=4)
    stages = (make_stage(phase="p"), make_stage(load, phase="q"), make_stage(phase="p", cap_s=0.1))
    session = make_session()  # refuses a row that is written twice
    totals, kept, result = offer(replace(make_spec(), stages=stages), session)
    assert totals["completed"] == totals["attempted"] == len(session.rows)
    found = {(one.phase, one.iteration): one for one in result.usages}
    assert set(found) == {(phase, iteration) for phase in "pq" for iteration in (0, 1, 2)}
    assert found["p", 0].wall_s == pytest.approx(0.3, abs=0.1)
    assert found["q", 1].wall_s == pytest.approx(0.2, abs=0.1)
    assert sum(one.cpu_s for one in result.usages) > 0
    windows = [("p", 0, 0.0), ("p", 1, 0.2), ("p", 2, 0.4), ("q", 0, 0.6), ("q", 1, 0.8), ("q", 2, 1.0)]
    windows += [("p", 0, 1.2), ("p", 1, 1.3), ("p", 2, 1.5)]
    first_s = min(one.start_s for one in kept.intervals)
    begun = {(one.phase, one.iteration, round(one.start_s - first_s, 3)) for one in kept.intervals}
    assert begun <= set(windows)
    # A machine that stalls sends nothing meanwhile in a closed loop; an open one still counts it.
    assert begun >= {window for window in windows if window[0] == "q"}


@pytest.mark.slow
def test_a_warm_up_ends_when_it_is_told_to() -> None:
    began_s = time.time()
    at_s = began_s + 1.75
    kept = Kept(lambda _: at_s if time.time() > began_s + 1.0 else None)
    spec = replace(make_spec(), stages=(make_stage(cap_s=60.0),))
    totals, _, result = offer(spec, DictSession(), kept)
    assert time.time() - began_s < 10
    first = min(one.start_s for one in kept.intervals if one.iteration == 1)
    assert first == pytest.approx(at_s, abs=1e-5)
    assert totals["completed"] == totals["attempted"]
    assert {one.iteration for one in result.usages} == {0, 1, 2}


@pytest.mark.slow
def test_being_told_too_late_to_change_over_is_a_failure() -> None:
    began_s = time.time()
    kept = Kept(lambda _: began_s + 0.3 if time.time() > began_s + 1.0 else None)
    spec = replace(make_spec(), stages=(make_stage(cap_s=60.0),))
    with pytest.raises(StepFailed, match="stage 0 was to begin its iterations"):
        offer(spec, DictSession(), kept)


def test_being_reported_after_having_begun_at_the_cap_is_a_failure() -> None:
    began_s = time.time()
    kept = Kept(lambda _: began_s + 0.1 if time.time() > began_s + 0.4 else None)
    with pytest.raises(StepFailed, match="too late to change over"):
        offer(make_spec(), DictSession(), kept)


@pytest.mark.slow
def test_progress_shows_each_whole_second_once() -> None:
    stages = (make_stage(cap_s=1.8), make_stage(cap_s=0.7))
    totals, kept, _ = offer(replace(make_spec(), stages=stages), DictSession())
    rows = [line.split(",") for line in kept.progress.splitlines()]
    assert [row[:2] for row in rows] == [["0", "0"], ["0", "1"], ["1", "0"]]
    counts = [int(row[2]) for row in rows]
    assert all(count > 50 for count in counts)
    assert sum(counts) < totals["completed"]  # the last 0.3 s of each stage are no whole second
    for _, _, completed, service_s in rows:
        assert 0.001 <= float(service_s) / int(completed) < 1


def test_reads_of_what_was_stored_are_complete(make_session: type[DictSession]) -> None:
    totals, _, _ = offer(make_spec(Operation.READ_LATEST), stored(make_session))
    assert totals["completed"] == totals["attempted"] > 0
    assert totals["rows"] == 3 * totals["completed"]


def test_missing_and_wrong_rows_are_counted_and_not_timed(make_session: type[DictSession]) -> None:
    session = stored(make_session)
    lost, changed = reading(RECORDS, 11, ROWS - 1), reading(RECORDS, 11, ROWS - 2)
    del session.rows[lost.device_id, lost.ts_ms]
    session.rows[changed.device_id, changed.ts_ms] = replace(changed, metadata=b"")
    totals, kept, result = offer(make_spec(Operation.READ_LATEST), session)
    assert totals["not_found"] > 0
    assert totals["wrong_data"] > 0
    assert kept.timed("service_time").get_total_count() == totals["completed"]
    assert {text.split(":")[0] for text in result.examples} == {"not_found", "wrong_data"}


def test_errors_are_counted_by_kind_with_an_example(make_session: type[DictSession]) -> None:
    def fail(place: int) -> None:
        if place % 3 == 1:
            raise TimeoutError("no answer")
        if place % 3 == 2:
            raise ConnectionResetError("gone")

    totals, _, result = offer(make_spec(), make_session(fail))
    assert totals["timeouts"] > 0
    assert totals["error:ConnectionResetError"] > 0
    assert any("no answer" in text for text in result.examples)


class Hanging:
    """Lets writes hang from the tenth on, until the test is over."""

    def __init__(self) -> None:
        self.is_over = threading.Event()

    def __call__(self, place: int) -> None:
        if place >= 10:
            self.is_over.wait()


@pytest.fixture
def hang() -> Iterator[Hanging]:
    hanging = Hanging()
    yield hanging
    hanging.is_over.set()


def test_operations_without_an_answer_are_timeouts_and_do_not_hold_up_the_end(hang: Hanging) -> None:
    began_s = time.monotonic()
    totals, _, _ = offer(make_spec(), DictSession(hang))
    assert time.monotonic() - began_s < 10
    assert totals["completed"] == 10
    assert totals["timeouts"] == CLOSED.in_flight


class NeverAnswers(DictSession):
    """Takes writes and answers the first ten of them only."""

    def write_soon(self, readings: Sequence[SensorReading], done: OnWritten) -> None:
        if next(self._writes) < 10:
            done(None, None)

    def read_latest_soon(self, device_id: str, count: int, done: OnRead) -> None:
        """Is never called."""


def test_calls_without_an_answer_are_timeouts_and_do_not_hold_up_the_end() -> None:
    began_s = time.monotonic()
    totals, _, _ = offer(make_spec(), NeverAnswers())
    assert time.monotonic() - began_s < 10
    assert (totals["completed"], totals["timeouts"]) == (10, CLOSED.in_flight)


@pytest.mark.parametrize("is_later", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_scheduled_operations_behind_a_hang_are_timeouts_too(hang: Hanging, *, is_later: bool) -> None:
    load = OpenLoop(kind="open", offered_load_ops_per_s=300.0, in_flight=1)
    session = NeverAnswers() if is_later else DictSession(hang)
    totals, _, _ = offer(make_spec(load=load), session)
    assert totals["attempted"] == 60
    assert totals["timeouts"] == 50
    assert totals["sent_in_window"] == 11


def test_a_preload_writes_this_engines_share_despite_passing_errors() -> None:
    def fail_sometimes(place: int) -> None:
        if place % 5 == 0:
            raise ConnectionResetError

    session = DictSession(fail_sometimes)
    preload = Preload(rows=20, in_flight=4)
    totals, _, result = offer(replace(make_spec(), preload=preload, stages=()), session)
    assert set(session.rows.values()) == {reading(RECORDS, 11, row) for row in range(1, 20, 3)}
    assert totals["completed"] == 7
    assert totals["error:ConnectionResetError"] == totals["attempted"] - 7 > 0
    assert [(one.phase, one.iteration) for one in result.usages] == [("preload", 0)]


class Broken(DictSession):
    def classify(self, error: Exception) -> str:
        raise LookupError("a defect")


class BrokenLater(LaterSession):
    def classify(self, error: Exception) -> str:
        raise LookupError("a defect")


@pytest.mark.parametrize("kind", [Broken, BrokenLater])
def test_a_defect_in_a_thread_is_seen(kind: type[DictSession]) -> None:
    def fail(_: int) -> None:
        raise OSError

    with pytest.raises(LookupError, match="a defect"):
        offer(make_spec(), kind(fail))


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
    preload = Preload(rows=20, in_flight=4)
    with pytest.raises(StepFailed, match=r"did not succeed in 6 attempts.*gone"):
        offer(replace(make_spec(), preload=preload, stages=()), DictSession(fail))
