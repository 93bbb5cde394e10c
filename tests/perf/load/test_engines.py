"""Engine processes against a fake server process: the handshake, the merge, and how they end."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from perf.hosts.remote import LocalHost, code_here, running_pid, send_signal
from perf.load.engines import Edge, Engine, run_engines
from perf.load.histogram import merge
from perf.load.results.outcome import LoadOutcome, WarmedUp
from perf.load.spec import GO, INTERVALS, READY, RESULT, Counted, LoadSpec, Preload, dump_spec
from perf.local.hlog import read_hlog
from perf.model.design import ClosedLoop, OpenLoop, SimpleLoad, Steadiness
from perf.model.errors import StepFailed, TimedOut
from perf.model.records import Operation, Sensor
from perf.model.results import Counter, Interval
from perf.systems.contract import Target
from perf.systems.fake import system as fake
from perf.workloads.stages import PRELOAD, Stage

ADDRESS = "127.0.0.91"
RECORDS = Sensor(kind="sensor", devices=10, payload_bytes=200, latest_count=3)
CLOSED = ClosedLoop(kind="closed", in_flight=2)
LIMIT_S = 60.0


@pytest.fixture(scope="module")
def host() -> LocalHost:
    return LocalHost()


@pytest.fixture(scope="module", autouse=True)
def _server(host: LocalHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    path = tmp_path_factory.mktemp("fake")
    (path / "fake.json").write_text(json.dumps({"address": ADDRESS, "index": 0}))
    start(host, path, "server", ["-m", "perf.systems.fake.server", str(path / "fake.json")])
    wait_for(lambda: "serving" in (path / "server.log").read_text())
    yield
    send_signal(host, str(path / "server.pid"), signal.SIGKILL)
    wait_for(lambda: running_pid(host, str(path / "server.pid")) is None)


def start(host: LocalHost, path: Path, name: str, arguments: list[str]) -> None:
    files = {"pid_file": str(path / f"{name}.pid"), "log": str(path / f"{name}.log")}
    host.start([sys.executable, *arguments], **files, cwd=str(path), env=code_here())


def wait_for(is_true: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + LIMIT_S
    while not is_true():
        assert time.monotonic() < give_up_s
        time.sleep(0.02)


def make_stage(
    load: SimpleLoad = CLOSED,
    *,
    phase: str = "steady",
    warmup_s: float = 0.5,
    cap_s: float = 0.5,
    iteration_s: float = 0.5,
    iterations: tuple[int, ...] = (1,),
) -> Stage:
    return Stage(
        phase=phase,
        load=load,
        warmup_s=warmup_s,
        warmup_cap_s=cap_s,
        iteration_s=iteration_s,
        iterations=iterations,
    )


def make_engines(
    host: LocalHost,
    path: Path,
    *stages: Stage,
    operation: Operation = Operation.WRITE,
    address: str = ADDRESS,
    preload_rows: int = 0,
    count: int = 2,
    go_within_s: float = LIMIT_S,
) -> tuple[Engine, ...]:
    target = Target(
        system="fake",
        addresses=(address,),
        port=fake.PORT,
        replication_factor=1,
        consistency="one",
        timeout_s=2.0,
    )
    return tuple(
        Engine(
            spec=LoadSpec(
                target=target,
                records=RECORDS,
                mix={operation: 1.0},
                seed=5,
                engine_index=index,
                engine_count=count,
                preload=Preload(rows=preload_rows, in_flight=2) if preload_rows else None,
                stages=() if preload_rows else stages or (make_stage(),),
                readable_rows=100,
                first_row=10_000,
                output_dir=str(path / f"engine-{index}"),
                go_within_s=go_within_s,
            ),
            remote=host,
        )
        for index in range(count)
    )


def watch_nothing() -> None:
    pass


def total(outcome: LoadOutcome, name: str, iteration: int = 1) -> int:
    return sum(one.value for one in outcome.counters if (one.name, one.iteration) == (name, iteration))


def ignore(_: Edge) -> None:
    pass


def run(
    engines: tuple[Engine, ...],
    watch: Callable[[], None] = watch_nothing,
    *,
    observe: Callable[[Edge], None] = ignore,
    keep: Callable[[LoadOutcome], None] = lambda _: None,
    limit_s: float = LIMIT_S,
    tolerance: float = 1.0,
) -> LoadOutcome:
    return run_engines(
        engines,
        connect_s=LIMIT_S,
        limit_s=limit_s,
        steadiness=Steadiness(window_s=1, tolerance=tolerance),
        watch=watch,
        observe=observe,
        keep=keep,
    )


def assert_gone(engines: tuple[Engine, ...]) -> None:
    assert [running_pid(one.remote, one.path("engine.pid")) for one in engines] == [None] * len(engines)


@pytest.mark.slow
def test_two_engines_load_and_then_read_what_was_loaded(host: LocalHost, tmp_path: Path) -> None:
    loading = make_engines(host, tmp_path, preload_rows=100)
    load = run(loading)
    # Measured seconds are those of the clock on the wall; rows that are stored wait for none.
    assert not float(Path(loading[0].path(GO)).read_text()).is_integer()
    assert total(load, "completed", iteration=0) == total(load, "attempted", iteration=0) == 100
    assert {one.phase for one in load.counters} == {PRELOAD}
    assert load.warm_ups == ()

    offered = OpenLoop(kind="open", offered_load_ops_per_s=100.0, in_flight=4)
    watched = []
    engines = make_engines(host, tmp_path, make_stage(offered), operation=Operation.READ_LATEST)
    read = run(engines, lambda: watched.append(1))
    assert float(Path(engines[0].path(GO)).read_text()).is_integer()
    assert watched
    assert [result.engine_index for result in read.results] == [0, 1]
    assert read.engine_hosts == ("local", "local")
    assert total(read, "attempted") == total(read, "completed") == 50
    assert total(read, "rows") == 150
    for result in read.results:
        assert [(one.phase, one.iteration) for one in result.usages] == [("steady", 0), ("steady", 1)]
        assert all(0 < one.cpu_s < one.wall_s * 4 for one in result.usages)
    measured = [one for one in read.intervals if one.iteration == 1]
    assert [(one.kind, one.length_s) for one in measured] == [
        ("response_time", 0.5),
        ("send_lateness", 0.5),
        ("service_time", 0.5),
    ]
    assert merge(measured[:1]).get_total_count() == 50
    assert_gone(engines)


@pytest.mark.slow
def test_stages_end_their_warm_ups_together_and_are_observed(host: LocalHost, tmp_path: Path) -> None:
    offered = OpenLoop(kind="open", offered_load_ops_per_s=200.0, in_flight=4)
    stages = (
        make_stage(offered, phase="even", warmup_s=1.0, cap_s=40.0, iteration_s=1.0, iterations=(1, 2)),
        make_stage(phase="capped", warmup_s=0.5, cap_s=1.0, iteration_s=1.0, iterations=(7,)),
    )
    seen: list[tuple[Edge, float]] = []
    engines = make_engines(host, tmp_path, *stages)
    outcome = run(engines, observe=lambda edge: seen.append((edge, time.time())))
    even, capped = outcome.warm_ups
    assert even.is_steady
    assert 2 <= even.duration_s < 30
    assert capped == WarmedUp(phase="capped", duration_s=1.0, is_steady=False)
    assert [(edge.phase, edge.is_start) for edge, _ in seen] == [
        (stage.phase, is_start) for stage in stages for is_start in (True, False)
    ]
    begin_s = float(Path(engines[0].path(GO)).read_text())
    expected = [even.duration_s, even.duration_s + 2, even.duration_s + 3, even.duration_s + 4]
    late_s = [at_s - begin_s - due_s for (_, at_s), due_s in zip(seen, expected, strict=True)]
    assert all(0 <= one < 0.5 for one in late_s)
    # Both engines began their iterations at the same moment, to the microsecond.
    starts = {(one.phase, one.iteration): one.start_s for one in reversed(outcome.intervals)}
    assert starts["even", 1] == begin_s + even.duration_s
    assert starts["capped", 7] == begin_s + even.duration_s + 3
    assert total(outcome, "attempted") == 200
    assert total(outcome, "attempted", 2) == 200
    # One interval per second and kind: no engine cut a second that the other did not.
    keys = [(one.phase, one.kind, one.iteration, one.start_s) for one in outcome.intervals]
    assert len(keys) == len(set(keys))
    assert all(one.length_s == 1.0 for one in outcome.intervals)
    assert_gone(engines)


@pytest.mark.slow
def test_a_load_that_does_not_get_steady_runs_to_its_cap(host: LocalHost, tmp_path: Path) -> None:
    engines = make_engines(host, tmp_path, make_stage(warmup_s=1.0, cap_s=3.5), count=1)
    outcome = run(engines, tolerance=0.0)
    assert outcome.warm_ups == (WarmedUp(phase="steady", duration_s=3.5, is_steady=False),)


_BEGINS_LATE = """
import sys
from perf.load.engine import process as python_engine

true = python_engine._Files.measure_at
def late(self, place):
    told_s = true(self, place)
    return None if told_s is None else told_s + 0.25

python_engine._Files.measure_at = late
sys.exit(python_engine.main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_an_engine_that_begins_on_its_own_fails_the_load(host: LocalHost, tmp_path: Path) -> None:
    stage = make_stage(warmup_s=1.0, cap_s=40.0)
    engines = make_engines(host, tmp_path, stage)
    engines = (engines[0], replace(engines[1], command=(sys.executable, "-c", _BEGINS_LATE)))
    with pytest.raises(StepFailed, match="engine 1 did not begin iteration 1 of steady together"):
        run(engines)


@pytest.mark.slow
def test_an_engine_that_cannot_connect_shows_its_log(host: LocalHost, tmp_path: Path) -> None:
    engines = make_engines(host, tmp_path, address="127.0.0.92")
    with pytest.raises(StepFailed, match="ended without a result") as caught:
        run(engines)
    assert "ConnectionRefusedError" in caught.value.log_tail
    assert_gone(engines)


@pytest.mark.slow
def test_an_engine_that_crashes_while_measuring_fails_the_load(host: LocalHost, tmp_path: Path) -> None:
    engines = make_engines(host, tmp_path, make_stage(iteration_s=60.0))

    def kill_one() -> None:
        if Path(engines[1].path(GO)).exists():
            pid = running_pid(host, engines[1].path("engine.pid"))
            os.kill(pid, signal.SIGKILL) if pid else None

    said = r"load engine 1 ended without a result.* \((in the warm-up of|while) steady, iteration 1"
    with pytest.raises(StepFailed, match=said):
        run(engines, kill_one)
    assert_gone(engines)


@pytest.mark.slow
def test_an_engine_that_is_lost_is_missed_at_the_end_of_its_iteration_at_the_latest(
    host: LocalHost, tmp_path: Path
) -> None:
    # Too short for any look at an engine in between.
    stages = [make_stage(iteration_s=1.0, iterations=(number,)) for number in range(1, 9)]
    engines = make_engines(host, tmp_path, *stages)
    seen: list[Edge] = []

    def kill_one(edge: Edge) -> None:
        seen.append(edge)
        if len(seen) == 1:
            pid = running_pid(host, engines[1].path("engine.pid"))
            assert pid is not None
            os.kill(pid, signal.SIGKILL)

    with pytest.raises(StepFailed, match=r"engine 1 ended .* \(while steady, iteration 1 was measured"):
        run(engines, observe=kill_one)
    assert [edge.iterations for edge in seen] == [(1,), (1,)]
    assert_gone(engines)


@pytest.mark.slow
def test_an_engine_may_end_with_its_result_while_its_host_is_looked_at(
    host: LocalHost, tmp_path: Path
) -> None:
    """A look at hosts that answer slowly may take longer than what is left of the load."""
    (engine,) = make_engines(host, tmp_path, make_stage(iteration_s=3.5), count=1)

    def watch() -> None:
        if Path(engine.path(INTERVALS)).exists():
            wait_for(lambda: running_pid(host, engine.path("engine.pid")) is None)

    assert total(run([engine], watch), "attempted") > 0


@pytest.mark.slow
def test_what_was_measured_before_a_failure_is_kept(host: LocalHost, tmp_path: Path) -> None:
    engines = make_engines(host, tmp_path, make_stage(iteration_s=30.0))
    logs = [Path(engine.path(INTERVALS)) for engine in engines]
    kept: list[LoadOutcome] = []

    def watch() -> None:
        if all(log.exists() and log.read_text().count("Tag=steady") >= 2 for log in logs):
            with logs[0].open("a") as torn:
                torn.write("Tag=steady:write:resp")  # as a crash in the middle of a line leaves it
            raise StepFailed("measure", "node-1", "its server process ended")

    with pytest.raises(StepFailed, match="its server process ended"):
        run(engines, watch, keep=kept.append)
    [outcome] = kept
    assert {one.iteration for one in outcome.intervals} >= {0, 1}
    assert not outcome.counters
    assert_gone(engines)


@pytest.mark.slow
def test_what_the_watch_raises_ends_the_engines_and_passes_on(host: LocalHost, tmp_path: Path) -> None:
    engines = make_engines(host, tmp_path, make_stage(iteration_s=60.0))

    def find_dead_node() -> None:
        if Path(engines[0].path(GO)).exists():
            raise LookupError("a node died")

    with pytest.raises(LookupError, match="a node died"):
        run(engines, find_dead_node)
    assert_gone(engines)


@pytest.mark.slow
def test_a_load_that_passes_its_limit_is_ended(host: LocalHost, tmp_path: Path) -> None:
    engines = make_engines(host, tmp_path, make_stage(iteration_s=60.0), count=1)
    with pytest.raises(TimedOut, match=r"load engine 0 had not ended after 0\.1 s"):
        run(engines, limit_s=0.1)
    assert_gone(engines)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_an_engine_at_once_and_what_it_measured_stays(
    host: LocalHost, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    (engine,) = make_engines(host, tmp_path, make_stage(iteration_s=600.0), count=1)
    output = start_alone(host, engine)
    wait_for((output / READY).exists)
    (output / GO).write_text(f"{time.time() + 0.1}\n")
    wait_for(lambda: (output / INTERVALS).exists() and "Tag=" in (output / INTERVALS).read_text())
    child = host.child(engine.path("engine.pid"))
    assert child is not None
    child.send_signal(number)
    assert child.wait(timeout=5) == code
    assert read_hlog(output / INTERVALS)
    assert not (output / RESULT).exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("go", "message"),
    [("", "there was no"), (f"{time.time() - 60}", "are the clocks of the client hosts in step?")],
    ids=["never", "too late"],
)
def test_an_engine_without_a_good_start_gives_up(
    host: LocalHost, tmp_path: Path, go: str, message: str
) -> None:
    (engine,) = make_engines(host, tmp_path, count=1, go_within_s=0.2)
    Path(engine.spec.output_dir).mkdir()
    if go:
        Path(engine.path(GO)).write_text(go)
    output = start_alone(host, engine)
    child = host.child(engine.path("engine.pid"))
    assert child is not None
    assert child.wait(timeout=LIMIT_S) == 1
    assert message in (output / "engine.log").read_text()


_NEVER_CLOSES = """
import contextlib, sys, threading
from perf.load.engine.process import main
from perf.systems.contract import Sessions
from perf.systems.fake import system as fake
from perf.systems import registry

@contextlib.contextmanager
def connect(target):
    with fake.connect(target) as session:
        if "fails" in sys.argv:
            session.read_latest = session.classify = session.write = None
        try:
            yield session
        finally:
            threading.Event().wait()

class Fake(fake.Fake):
    sessions = Sessions(sensor=connect)

registry.load = lambda name: Fake()
sys.exit(main(sys.argv[-1:]))
"""


@pytest.mark.slow
def test_a_driver_that_cannot_be_closed_does_not_hold_up_the_end(
    host: LocalHost, tmp_path: Path
) -> None:
    (engine,) = make_engines(host, tmp_path, make_stage(iteration_s=0.1), count=1)
    output = start_alone(host, engine, ["-c", _NEVER_CLOSES])
    wait_for((output / READY).exists)
    (output / GO).write_text(f"{time.time() + 0.1}\n")
    child = host.child(engine.path("engine.pid"))
    assert child is not None
    assert child.wait(timeout=LIMIT_S) == 0
    assert (output / RESULT).exists()


@pytest.mark.slow
def test_a_driver_that_cannot_be_closed_does_not_hold_back_why_the_load_failed(
    host: LocalHost, tmp_path: Path
) -> None:
    (engine,) = make_engines(host, tmp_path, make_stage(iteration_s=30.0), count=1)
    output = start_alone(host, engine, ["-c", _NEVER_CLOSES, "fails"])
    wait_for((output / READY).exists)
    (output / GO).write_text(f"{time.time() + 0.1}\n")
    child = host.child(engine.path("engine.pid"))
    assert child is not None
    assert child.wait(timeout=LIMIT_S) == 1
    said = (output / "engine.log").read_text().splitlines()
    assert said[-1] == "TypeError: 'NoneType' object is not callable"


def start_alone(
    host: LocalHost, engine: Engine, how: Sequence[str] = ("-m", "perf.load.engine.process")
) -> Path:
    output = Path(engine.spec.output_dir)
    output.mkdir(exist_ok=True)
    (output / "spec.json").write_text(dump_spec(engine.spec))
    start(host, output, "engine", [*how, engine.path("spec.json")])
    return output


def test_outcomes_add_up_exactly(make_interval: Callable[..., Interval]) -> None:
    def make(value: int, *times_us: int) -> LoadOutcome:
        counter = Counter(phase="p", operation="write", iteration=1, name="attempted", value=value)
        return LoadOutcome(counters=(counter,), intervals=(make_interval(times_us),))

    both = LoadOutcome() + make(3, 100, 300) + make(4, 200)
    assert [counter.value for counter in both.counters] == [7]
    (interval,) = both.intervals
    assert merge([interval]).get_total_count() == 3
    assert merge([interval]).get_value_at_percentile(50) == 200


@pytest.mark.slow
def test_a_counted_phase_ends_when_every_operation_of_all_engines_is_done(
    host: LocalHost, tmp_path: Path
) -> None:
    seen: list[tuple[Edge, float]] = []
    counted = Counted(phase="writes", operations=101, in_flight=2)
    engines = tuple(
        replace(engine, spec=replace(engine.spec, stages=(), counted=counted))
        for engine in make_engines(host, tmp_path)
    )
    outcome = run(engines, observe=lambda edge: seen.append((edge, time.time())))
    assert total(outcome, "completed") == total(outcome, "attempted") == 101
    lengths_s = [one.counted_s for one in outcome.results]
    assert all(lengths_s)
    (begin, begin_s), (end, end_s) = seen
    assert (begin.phase, begin.is_start) == ("writes", True)
    assert (end.phase, end.iterations, end.is_start) == ("writes", (1,), False)
    # What is looked at around it is the phase, not the end of processes.
    assert end_s - begin_s < max(one for one in lengths_s if one) + 1.0
    starts = {one.start_s for one in outcome.intervals}
    assert all((start_s - min(starts)) % 1 == 0 for start_s in starts)
