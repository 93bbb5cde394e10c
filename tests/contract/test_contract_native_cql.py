"""The native engine's clients of CQL beside the Python engine's, on a server that really answers."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from certificates import issue, make_authority
from needs import need_native
from served import ADDRESS, Served, deploy

from perf.hosts.remote import LocalHost, running_pid
from perf.load.engines import PYTHON_ENGINE, Edge, Engine, run_engines
from perf.load.results.outcome import LoadOutcome
from perf.load.spec import Counted, LoadSpec, Preload
from perf.model.access import Access, Tls
from perf.model.design import ClosedLoop, Steadiness, Testbed
from perf.model.errors import StepFailed
from perf.model.records import Operation, PutGet, Records, Sensor, Ycsb
from perf.systems.contract import Target
from perf.systems.cql.client import KEYSPACE, open_driver
from perf.workloads.stages import Stage

pytestmark = pytest.mark.real

SENSOR = Sensor(kind="sensor", devices=20, payload_bytes=400, latest_count=5)
PUT_GET = PutGet(kind="put-get", keys=200)
YCSB = Ycsb(
    kind="ycsb",
    record_count=200,
    request_distribution="uniform",
    field_count=3,
    field_length=20,
    max_scan_length=10,
)
ROWS, BATCHES, BATCH_ROWS = 200, 40, 5
IN_FLIGHT = 8
WRONG = ("not_found", "wrong_data", "timeouts")
BESIDE = ADDRESS.replace("127.26", "127.31")
NOBODY = ADDRESS.replace("127.26", "127.32")
SECRET = "pl4nted secret"  # noqa: S105  of this test alone
BOTH_WAYS = pytest.mark.parametrize(
    ("writer", "reader"),
    [("python", "native"), pytest.param("native", "python", marks=pytest.mark.slow)],
)

Table = frozenset[tuple[Any, ...]]


def run(
    name: str,
    spec: LoadSpec,
    observe: Callable[[Edge], None] = lambda _: None,
    watch: Callable[[], None] = lambda: None,
) -> Counter[str]:
    """Let one engine do what a spec says; give the sums of its counters."""
    command = PYTHON_ENGINE if name == "python" else (str(need_native()),)
    outcome: LoadOutcome = run_engines(
        [Engine(spec=spec, remote=LocalHost(), command=command)],
        connect_s=60,
        limit_s=60,
        steadiness=Steadiness(window_s=1, tolerance=1.0),
        watch=watch,
        observe=observe,
    )
    total: Counter[str] = Counter()
    for counter in outcome.counters:
        total[counter.name] += counter.value
    return total


def counted(operations: int) -> Counted:
    return Counted(phase="counted", operations=operations, in_flight=IN_FLIGHT)


@pytest.fixture
def make_spec(tmp_path: Path) -> Callable[..., LoadSpec]:
    """Return `make_spec(target, records, *operations, **changes)`."""
    places = iter(range(100))

    def make(target: Target, records: Records, *mix: Operation, **changes: object) -> LoadSpec:
        spec = LoadSpec(
            target=target,
            records=records,
            mix=dict.fromkeys(mix, 1.0),
            seed=7,
            engine_index=0,
            engine_count=1,
            output_dir=str(tmp_path / str(next(places))),
        )
        return replace(spec, **changes)  # type: ignore[arg-type]

    return make


@contextmanager
def emptied(target: Target, table: str) -> Iterator[Callable[[], Table]]:
    """Empty a table, and drop it afterwards: give what reads all of it."""
    with open_driver(target) as session:
        name = f"{KEYSPACE}.{table}"
        session.execute(f"TRUNCATE {name}", timeout=60)
        try:
            yield lambda: frozenset(session.execute(f"SELECT * FROM {name}", timeout=60))  # noqa: S608  constants
        finally:
            session.execute(f"DROP TABLE {name}", timeout=60)


@pytest.fixture
def readings(cassandra_server: Served) -> Iterator[Callable[[], Table]]:
    with cassandra_server.connect() as session:
        session.create_schema(SENSOR)
    with emptied(cassandra_server.target, "sensor_readings") as read:
        yield read


@contextmanager
def records_of(served: Served, records: PutGet | Ycsb) -> Iterator[Callable[[], Table]]:
    assert served.system.sessions.key_value
    with open_driver(served.target) as driver:
        # Other files leave theirs on this server, with other columns.
        driver.execute(f"DROP TABLE IF EXISTS {KEYSPACE}.records", timeout=60)
    with served.system.sessions.key_value(served.target) as session:
        session.create_schema(records)
    with emptied(served.target, "records") as read:
        yield read


@pytest.mark.slow
@BOTH_WAYS
def test_either_engine_reads_the_readings_that_the_other_wrote(
    cassandra_server: Served,
    make_spec: Callable[..., LoadSpec],
    readings: Callable[[], Table],
    writer: str,
    reader: str,
) -> None:
    target = cassandra_server.target
    one_by_one = make_spec(
        target, SENSOR, Operation.WRITE, preload=Preload(rows=ROWS, in_flight=IN_FLIGHT)
    )
    assert run(writer, one_by_one)["completed"] == ROWS
    first = readings()
    batches = make_spec(
        target,
        SENSOR,
        Operation.WRITE,
        first_row=ROWS,
        batch_rows=BATCH_ROWS,
        counted=counted(BATCHES),
    )
    assert run(writer, batches)["completed"] == BATCHES
    stored = readings()
    assert (len(first), len(stored)) == (ROWS, ROWS + BATCHES * BATCH_ROWS)

    reading = make_spec(
        target, SENSOR, Operation.READ_LATEST, readable_rows=len(stored), counted=counted(BATCHES)
    )
    read = run(reader, reading)
    assert (read["attempted"], read["completed"]) == (BATCHES, BATCHES), read
    # Bit for bit: what the reader writes in their place is the same.
    for same in (one_by_one, batches):
        run(reader, replace(same, output_dir=same.output_dir + "again"))
    assert readings() == stored


@pytest.mark.slow
@BOTH_WAYS
def test_either_engine_gets_the_values_that_the_other_put(
    cassandra_server: Served, make_spec: Callable[..., LoadSpec], writer: str, reader: str
) -> None:
    target = cassandra_server.target
    with records_of(cassandra_server, PUT_GET) as read:
        puts = make_spec(target, PUT_GET, Operation.PUT, value_seed=9, counted=counted(PUT_GET.keys))
        assert run(writer, puts)["completed"] == PUT_GET.keys
        stored = read()
        assert len(stored) == PUT_GET.keys
        gets = make_spec(target, PUT_GET, Operation.GET, value_seed=9, counted=counted(PUT_GET.keys))
        got = run(reader, gets)
        assert (got["attempted"], got["completed"]) == (PUT_GET.keys, PUT_GET.keys), got
        wrong = replace(gets, value_seed=10, output_dir=gets.output_dir + "wrong")
        assert run(reader, wrong)["wrong_data"] == PUT_GET.keys
        run(reader, replace(puts, output_dir=puts.output_dir + "again"))
        assert read() == stored


@pytest.mark.slow
@BOTH_WAYS
def test_either_engine_works_on_the_records_that_the_other_loaded(
    cassandra_server: Served, make_spec: Callable[..., LoadSpec], writer: str, reader: str
) -> None:
    target, count = cassandra_server.target, YCSB.record_count
    preload = Preload(rows=count, in_flight=IN_FLIGHT)
    mix = (
        *(Operation.READ, Operation.UPDATE, Operation.INSERT),
        *(Operation.SCAN, Operation.READ_MODIFY_WRITE),
    )
    with records_of(cassandra_server, YCSB) as read:
        loaded = make_spec(target, YCSB, Operation.WRITE, preload=preload)
        assert run(writer, loaded)["completed"] == count
        # One by one: which of two updates of a record is the last is the same in each engine.
        one_by_one = Counted(phase="counted", operations=count, in_flight=1)
        working = make_spec(
            target, YCSB, *mix, readable_rows=count, first_row=count, counted=one_by_one
        )
        worked = run(reader, working)
        # Parts of an operation are counted beside it.
        assert worked["attempted"] == count < worked["completed"], worked
        assert not any(worked[name] for name in worked if name in WRONG or "error" in name), worked
        stored = read()
        assert count < len(stored) < 2 * count
        whole = replace(YCSB, write_all_fields=True)
        updating = make_spec(
            target, whole, Operation.UPDATE, readable_rows=count, counted=counted(count)
        )
        updated = run(reader, updating)
        assert updated["completed"] == count, updated

    # The same from the beginning, by one engine: every byte is as the two of them left it.
    with records_of(cassandra_server, YCSB) as read:
        for same in (loaded, working):
            run(writer, replace(same, output_dir=same.output_dir + "again"))
        assert read() == stored


@pytest.mark.slow
def test_a_server_that_stands_still_is_timeouts_and_nothing_else(
    cassandra_server: Served, make_spec: Callable[..., LoadSpec], readings: Callable[[], Table]
) -> None:
    node = cassandra_server.node
    assert node is not None
    pid = running_pid(node.remote, node.pid_file)
    assert pid is not None
    target = replace(cassandra_server.target, timeout_s=0.5)
    stage = Stage(
        phase="saturation",
        load=ClosedLoop(kind="closed", in_flight=4),
        warmup_s=1.0,
        warmup_cap_s=1.0,
        iteration_s=5.0,
        iterations=(1,),
    )
    seen: list[str] = []

    def stop(edge: Edge) -> None:
        if edge.is_start:
            os.kill(pid, signal.SIGSTOP)

    def go_on() -> None:
        seen.append("watched")
        if len(seen) > 1:  # a second or two later
            os.kill(pid, signal.SIGCONT)

    try:
        total = run("native", make_spec(target, SENSOR, Operation.WRITE, stages=(stage,)), stop, go_on)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert total["timeouts"] >= 4, total
    assert total["completed"] > 0, total
    assert total["attempted"] == total["completed"] + total["timeouts"], total
    assert readings()


@pytest.mark.slow
def test_a_node_that_is_not_there_is_left_out(
    cassandra_server: Served, make_spec: Callable[..., LoadSpec], readings: Callable[[], Table]
) -> None:
    target = replace(cassandra_server.target, addresses=(NOBODY, ADDRESS))
    spec = make_spec(target, SENSOR, Operation.WRITE, preload=Preload(rows=ROWS, in_flight=IN_FLIGHT))
    assert run("native", spec)["completed"] == ROWS
    assert len(readings()) == ROWS


@pytest.mark.slow
def test_a_guarded_server_lets_in_who_it_knows_and_says_so_to_others(
    tmp_path: Path,
    make_testbed: Callable[..., Testbed],
    make_spec: Callable[..., LoadSpec],
) -> None:
    authority = make_authority(tmp_path / "access", "authority")
    issue(authority, "server", BESIDE).as_pkcs12(tmp_path / "access" / "server.p12", "cassandra")
    password = tmp_path / "password"
    password.write_text("cassandra\n")  # of the account that a fresh server has
    password.chmod(0o600)
    tls = Tls(ca_file=str(authority.certificate))
    access = Access(username="cassandra", password_file=str(password), tls=tls)
    testbed = make_testbed(jvm_options=("-XX:TieredStopAtLevel=1",))
    with deploy("cassandra", "5.0", tmp_path / "nodes", testbed, BESIDE, access) as served:
        with served.connect() as session:
            session.create_schema(SENSOR)
        preload = Preload(rows=ROWS, in_flight=IN_FLIGHT)

        def engine_of(access: Access | None) -> LoadSpec:
            target = replace(served.target, access=access)
            return make_spec(target, SENSOR, Operation.WRITE, preload=preload)

        assert run("native", engine_of(access))["completed"] == ROWS
        with served.connect() as session:
            assert session.stored().rows == ROWS

        def refused(name: str, access: Access | None) -> str:
            with pytest.raises(StepFailed) as caught:
                run(name, engine_of(access))
            assert SECRET not in str(caught.value)
            return str(caught.value).splitlines()[-1].strip()

        password.write_text(SECRET)
        for wrong in (access, Access(tls=tls)):
            said = refused("native", wrong)
            assert said.startswith(f"access failed on {BESIDE}:9042: the server "), said
            assert said == refused("python", wrong)
        stranger = make_authority(tmp_path / "stranger", "stranger")
        reported = refused("native", Access(tls=Tls(ca_file=str(stranger.certificate))))
        assert f"not signed by tls.ca_file {stranger.certificate}" in reported
        assert "cannot connect" in refused("native", None)


@pytest.mark.slow
def test_a_node_that_is_lost_fails_operations_by_the_same_names_in_both_engines(
    tmp_path: Path,
    make_testbed: Callable[..., Testbed],
    make_spec: Callable[..., LoadSpec],
) -> None:
    testbed = make_testbed(jvm_options=("-XX:TieredStopAtLevel=1",))
    stage = Stage(
        phase="saturation",
        load=ClosedLoop(kind="closed", in_flight=4),
        warmup_s=2.0,
        warmup_cap_s=2.0,
        iteration_s=4.0,
        iterations=(1,),
    )
    with deploy("cassandra", "5.0", tmp_path / "nodes", testbed, BESIDE) as served:
        with served.connect() as session:
            session.create_schema(SENSOR)
        node = served.node
        assert node is not None
        spec = make_spec(served.target, SENSOR, Operation.WRITE, stages=(stage,), engine_count=2)
        other = replace(spec, engine_index=1, output_dir=spec.output_dir + "native")

        def lose(edge: Edge) -> None:
            if edge.is_start:
                served.system.stop(node, force=True)

        outcome = run_engines(
            [
                Engine(spec=spec, remote=LocalHost()),
                Engine(spec=other, remote=LocalHost(), command=(str(need_native()),)),
            ],
            connect_s=60,
            limit_s=60,
            steadiness=Steadiness(window_s=1, tolerance=1.0),
            watch=lambda: None,
            observe=lose,
        )
    found = [
        {
            one.name
            for one in result.counters
            if one.value and one.name.startswith(("error", "timeouts"))
        }
        for result in outcome.results
    ]
    assert found == [{"error:ConnectionShutdown", "error:no-host-available"}] * 2


@pytest.mark.slow
def test_a_table_of_other_records_is_refused_and_not_filled_in_part(cassandra_server: Served) -> None:
    system, target = cassandra_server.system, cassandra_server.target
    assert system.sessions.key_value
    with (
        records_of(cassandra_server, YCSB),
        system.sessions.key_value(target) as session,
        pytest.raises(StepFailed, match="has 3 fields, and these records have 1"),
    ):
        session.create_schema(PUT_GET)
