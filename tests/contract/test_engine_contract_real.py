"""What every engine promises, asked on a real Cassandra: rates, silence, lost nodes, changed rows."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from needs import need_native
from served import ADDRESS, Served, deploy

from perf.hosts.remote import LocalHost, running_pid
from perf.load.engines import PYTHON_ENGINE, Edge, Engine, run_engines
from perf.load.histogram import merge
from perf.load.results.outcome import LoadOutcome
from perf.load.selftest.stand import plan_stage
from perf.load.spec import Counted, LoadSpec, Preload
from perf.model.design import OpenLoop, Steadiness, Testbed
from perf.model.metrics import RESPONSE_TIME, SERVICE_TIME
from perf.model.records import Answer, Operation, Sensor
from perf.model.results import ATTEMPTED, TIMEOUTS
from perf.systems.contract import Node
from perf.systems.cql.client import KEYSPACE, open_driver
from perf.workloads.sensor import choose_device, device_id, reading

pytestmark = [pytest.mark.real, pytest.mark.slow]

RECORDS = Sensor(kind="sensor", devices=20, payload_bytes=400, latest_count=5)
SEED, ROWS, READS = 7, 200, 300
RATE, MEASURED_S = 200.0, 5.0
STAGE = plan_stage(
    "steady",
    OpenLoop(kind="open", offered_load_ops_per_s=RATE, in_flight=64),
    warmup_s=2.0,
    measured_s=MEASURED_S,
)
FIRST, SECOND = (ADDRESS.replace("127.26", f"127.{36 + place}") for place in range(2))
EACH_ENGINE = pytest.mark.parametrize("engine", ["native", "python"])

Run = Callable[..., LoadOutcome]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return `run(engine, served, observe, **changes)`: one engine does what the changed spec says."""
    places = iter(range(100))

    def run(
        engine: str,
        served: Served,
        observe: Callable[[Edge], None] = lambda _: None,
        timeout_s: float = 10.0,
        **changes: object,
    ) -> LoadOutcome:
        spec = LoadSpec(
            target=replace(served.target, timeout_s=timeout_s),
            records=RECORDS,
            mix={Operation.WRITE: 1.0},
            seed=SEED,
            engine_index=0,
            engine_count=1,
            output_dir=str(tmp_path / str(next(places))),
        )
        command = PYTHON_ENGINE if engine == "python" else (str(need_native()),)
        spec = replace(spec, **changes)  # type: ignore[arg-type]
        return run_engines(
            [Engine(spec=spec, remote=LocalHost(), command=command)],
            connect_s=60,
            limit_s=60,
            steadiness=Steadiness(window_s=1, tolerance=1.0),
            watch=lambda: None,
            observe=observe,
        )

    return run


@pytest.fixture
def emptied(cassandra_server: Served) -> Iterator[Served]:
    """Yield a real server with an empty table of readings."""
    with cassandra_server.connect() as session:
        session.create_schema(RECORDS)
    table = f"{KEYSPACE}.sensor_readings"
    with open_driver(cassandra_server.target) as session:
        session.execute(f"TRUNCATE {table}", timeout=60)
        yield cassandra_server
        session.execute(f"DROP TABLE {table}", timeout=60)


@pytest.fixture(scope="module")
def ring(
    tmp_path_factory: pytest.TempPathFactory, make_testbed: Callable[..., Testbed]
) -> Iterator[Served]:
    """Yield two nodes that both hold every row."""
    testbed = make_testbed(jvm_options=("-XX:TieredStopAtLevel=1",))
    directory = tmp_path_factory.mktemp("ring")
    with deploy("cassandra", "5.0", directory, testbed, FIRST, beside=(SECOND,)) as served:
        target = replace(served.target, replication_factor=2, consistency="one")
        both = replace(served, target=target)
        with both.connect() as session:
            session.create_schema(RECORDS)
        yield both


def _count(outcome: LoadOutcome, name: str, iteration: int | None = None) -> int:
    return sum(
        one.value for one in outcome.counters if one.name == name and iteration in {None, one.iteration}
    )


def _signal(node: Node | None, what: signal.Signals) -> None:
    assert node is not None
    pid = running_pid(node.remote, node.pid_file)
    assert pid is not None
    os.kill(pid, what)


@EACH_ENGINE
def test_the_rate_that_was_planned_arrives_and_all_that_was_acknowledged_is_stored(
    run: Run, emptied: Served, engine: str
) -> None:
    outcome = run(engine, emptied, stages=(STAGE,))
    assert _count(outcome, ATTEMPTED, 1) == RATE * MEASURED_S
    assert _count(outcome, Answer.COMPLETED, 1) >= 0.99 * RATE * MEASURED_S
    with emptied.connect() as session:
        assert session.stored().rows == _count(outcome, Answer.COMPLETED)


@EACH_ENGINE
def test_a_server_that_stands_still_takes_no_operation_off_the_schedule(
    run: Run, emptied: Served, engine: str
) -> None:
    """It answers nothing for twice as long as a client waits: those are timeouts, the rest is late."""
    timeout_s = 1.0

    def stand_still(edge: Edge) -> None:
        if edge.is_start:
            _signal(emptied.node, signal.SIGSTOP)
            try:
                time.sleep(2 * timeout_s)
            finally:
                _signal(emptied.node, signal.SIGCONT)

    outcome = run(engine, emptied, stand_still, timeout_s=timeout_s, stages=(STAGE,))
    assert _count(outcome, ATTEMPTED, 1) == RATE * MEASURED_S
    assert _count(outcome, TIMEOUTS, 1) >= 64
    assert _count(outcome, Answer.COMPLETED, 1) >= RATE
    response, service = (
        merge(one for one in outcome.intervals if (one.kind, one.iteration) == (kind.name, 1))
        for kind in (RESPONSE_TIME, SERVICE_TIME)
    )
    # What was to start while no slot was free waited for one; no single request took so long.
    assert response.get_max_value() / 1e6 > timeout_s
    assert service.get_max_value() < response.get_max_value()


@EACH_ENGINE
def test_a_row_that_was_changed_behind_its_back_is_wrong_data(
    run: Run, emptied: Served, engine: str
) -> None:
    loaded = run(engine, emptied, preload=Preload(rows=ROWS, in_flight=8))
    assert _count(loaded, Answer.COMPLETED) == ROWS
    counted = Counted(phase="counted", operations=READS, in_flight=8)
    reads = {"mix": {Operation.READ_LATEST: 1.0}, "readable_rows": ROWS, "counted": counted}
    genuine = run(engine, emptied, **reads)
    assert _count(genuine, Answer.COMPLETED) == READS

    changed = reading(RECORDS, SEED, ROWS - 1)  # the newest one of its device
    with open_driver(emptied.target) as session:
        session.execute(
            f"UPDATE {KEYSPACE}.sensor_readings SET battery = 2.0 WHERE device_id = %s AND ts = %s",  # noqa: S608  constants
            (changed.device_id, changed.ts_ms),
        )
    asked = [device_id(choose_device(RECORDS, SEED, number)) for number in range(READS)]
    wrong = run(engine, emptied, **reads)
    assert _count(wrong, Answer.WRONG_DATA) == asked.count(changed.device_id) > 0
    assert _count(wrong, Answer.COMPLETED) == READS - _count(wrong, Answer.WRONG_DATA)


@pytest.mark.timeout(600)
def test_a_node_that_is_lost_costs_what_was_on_its_way_to_it_and_no_rate(
    run: Run, ring: Served
) -> None:
    """The Rust driver is asked: that the Python one goes on, trials on real rings show."""

    def lose(edge: Edge) -> None:
        if edge.is_start:
            _signal(ring.nodes[1], signal.SIGKILL)

    outcome = run("native", ring, lose, timeout_s=2.0, stages=(STAGE,))
    attempted, completed = (_count(outcome, name, 1) for name in (ATTEMPTED, Answer.COMPLETED))
    assert attempted == RATE * MEASURED_S
    assert completed >= 0.7 * attempted
    # By the end, all that starts is answered again.
    last_s = max(one.start_s for one in outcome.intervals if one.iteration == 1)
    last = merge(
        one
        for one in outcome.intervals
        if (one.kind, one.start_s, one.iteration) == (SERVICE_TIME.name, last_s, 1)
    )
    assert last.get_total_count() >= 0.9 * RATE
