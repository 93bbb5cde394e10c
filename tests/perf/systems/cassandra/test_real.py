"""One real node of Cassandra through all verbs: what is written is read back, and nothing is left."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from cassandra import DriverException
from cassandra.cluster import NoHostAvailable
from shipped_conf import write_conf

from perf.hosts.remote import LocalHost, running_pid
from perf.model.design import SystemConfig, Testbed, Topology
from perf.model.errors import NotReady, StepFailed
from perf.model.records import Sensor, Stored
from perf.releases.artifacts import copy_variable, fetch, find_release
from perf.systems.cassandra.defaults import FORCED_OPTIONS
from perf.systems.cassandra.system import Cassandra
from perf.systems.contract import (
    COMPACTION_PENDING_TASKS,
    COMPACTION_REMAINING_BYTES,
    GC_PAUSE_S,
    Cluster,
    Node,
)
from perf.systems.cql.client import open_driver
from perf.systems.sessions import AnswersLater, SensorSession
from perf.trial.telemetry import open_snapshots
from perf.workloads.sensor import SensorReading

pytestmark = [pytest.mark.real, pytest.mark.slow]

SYSTEM = Cassandra()
ADDRESS = "127.0.0.46"
RECORDS = Sensor(kind="sensor", devices=10, payload_bytes=1000)
START_MS = 1_700_000_000_123


def poll(step: Callable[[], None], limit_s: float) -> None:
    """Repeat a step until it is ready."""
    end = time.monotonic() + limit_s
    while True:
        try:
            return step()
        except NotReady:
            if time.monotonic() > end:
                raise
        time.sleep(0.1)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((ADDRESS, port)) != 0


def stop(node: Node, *, force: bool) -> None:
    """Stop a node, and wait until it is gone and its ports are free."""
    SYSTEM.stop(node, force=force)
    end = time.monotonic() + 60
    while SYSTEM.is_running(node) or not all(map(is_free, SYSTEM.ports())):
        assert time.monotonic() < end, "still running after 60 s"
        time.sleep(0.1)


@contextmanager
def serving(ring: Cluster) -> Iterator[Cluster]:
    """Have the one node of a ring serve."""
    (node,) = ring.nodes
    SYSTEM.wipe(node)
    SYSTEM.install(node, ring)
    SYSTEM.configure(node, ring)
    SYSTEM.start(node, ring)
    try:
        poll(lambda: SYSTEM.check(ring), limit_s=180)
        yield ring
    finally:
        stop(node, force=True)


def make_ring(work_dir: Path, make_testbed: Callable[..., Testbed]) -> Cluster:
    """Describe a ring of one node."""
    release = find_release(SYSTEM, "5.0.9")
    node = Node(
        name="node-1", index=0, address=ADDRESS, remote=LocalHost(), work_dir=str(work_dir / "node-1")
    )
    return Cluster(
        release=release,
        artifact=fetch(SYSTEM, release, report=print),
        nodes=(node,),
        topology=Topology(name="one", description="one node", servers=1, replication_factor=1),
        testbed=make_testbed(jvm_options=("-XX:TieredStopAtLevel=1",)),
        config=SystemConfig(system="cassandra", name="default", description="as shipped", heap_mb=512),
    )


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, make_testbed: Callable[..., Testbed]
) -> Iterator[Cluster]:
    """Yield one serving node."""
    with serving(make_ring(tmp_path_factory.mktemp("run"), make_testbed)) as ring:
        yield ring


def test_a_server_runs_with_what_its_archive_ships(
    tmp_path: Path, make_testbed: Callable[..., Testbed], monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = make_ring(tmp_path, make_testbed)
    write_conf(tmp_path / "own", stack="300k", concurrent_writes=48)
    (tmp_path / "own" / "lib").symlink_to(Path(ring.artifact.location, "lib"))
    monkeypatch.setenv(copy_variable(ring.release), str(tmp_path / "own"))
    ring = replace(ring, artifact=fetch(SYSTEM, ring.release, report=print))
    (node,) = ring.nodes
    with serving(ring), open_driver(SYSTEM.target(ring, consistency="ONE", timeout_s=5)) as session:
        query = "SELECT value FROM system_views.settings WHERE name = 'concurrent_writes'"
        assert session.execute(query).one()[0] == "48"
        pid = running_pid(node.remote, f"{node.work_dir}/server.pid")
        command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        assert {"-ea", "-Xss300k", *FORCED_OPTIONS} <= set(command)
        told = {fact.name: fact.value for fact in SYSTEM.facts(ring)}
    assert told["defaults"] == "the release's own conf/"
    assert "forced:cluster_name" in told


def reading(index: int) -> SensorReading:
    x = float(index)
    values = (x, x / 2, x / 3, x / 5, x / 7, x / 11, x / 13, -x)
    device = f"device-{index % RECORDS.devices}"
    return SensorReading(device, START_MS + index, values, bytes([index % 256]) * 900)


def write_share(session: SensorSession, first: int) -> None:
    for index in range(first, 500, 4):
        session.write([reading(index)])


@pytest.mark.slow
def test_reads_what_many_threads_wrote(cluster: Cluster) -> None:
    target = SYSTEM.target(cluster, consistency="quorum", timeout_s=10.0)
    with SYSTEM.sessions.sensor(target) as session:
        for _ in range(2):
            session.create_schema(RECORDS)
        assert session.stored() == Stored(rows=0, payload_bytes=0)
        shares = [threading.Thread(target=write_share, args=(session, first)) for first in range(4)]
        for share in shares:
            share.start()
        for share in shares:
            share.join()
        assert session.stored() == Stored(rows=500, payload_bytes=500 * (88 + 900))
        for device in range(RECORDS.devices):
            newest = [reading(index) for index in range(490 + device, 440 + device, -10)]
            assert list(session.read_latest(f"device-{device}", 5)) == newest
        assert list(session.read_latest("no-such-device", 5)) == []
    poll(lambda: SYSTEM.settle(cluster), limit_s=60)


class Answers:
    """Collects what is reported later, until all of it has come."""

    def __init__(self, expected: int) -> None:
        self.reported: dict[object, list[object]] = {}
        self._left = expected
        self._all = threading.Event()

    def of(self, key: object) -> Callable[[object, Exception | None], None]:
        """Return what takes the answer of one operation."""

        def done(answer: object, error: Exception | None) -> None:
            self.reported.setdefault(key, []).append(answer if error is None else error)
            self._left -= 1  # one thread calls: that of the driver's event loop
            if not self._left:
                self._all.set()

        return done

    def wait(self) -> dict[object, list[object]]:
        """Return all that was reported."""
        assert self._all.wait(30), f"{self._left} operations were never answered"
        return self.reported


def test_answers_come_later_batches_are_whole_and_bytes_are_counted(cluster: Cluster) -> None:
    target = SYSTEM.target(cluster, consistency="quorum", timeout_s=10.0)
    with SYSTEM.sessions.sensor(target) as session:
        assert isinstance(session, AnswersLater)
        before = session.stored()
        written = Answers(300)
        batches = {
            f"batch-{number}": [
                replace(reading(place), device_id=f"batch-{number}")
                for place in range(4 * number, 4 * number + 4)
            ]
            for number in range(300)
        }
        for device, batch in batches.items():
            session.write_soon(batch, written.of(device))
        assert all(reported == [None] for reported in written.wait().values())
        found = Answers(300)
        for device in batches:
            session.read_latest_soon(device, 10, found.of(device))
        assert found.wait() == {device: [tuple(reversed(batch))] for device, batch in batches.items()}
        after = session.stored()
    assert after.rows - before.rows == 1200
    assert after.payload_bytes - before.payload_bytes == 1200 * (88 + 900)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "compaction"),
    [
        ({}, {"class": "LeveledCompactionStrategy"}),
        ({"compaction": "STCS"}, {"class": "SizeTieredCompactionStrategy"}),
        ({"compaction": "UCS"}, {"class": "UnifiedCompactionStrategy"}),
        (
            {"compaction": "TWCS", "window_minutes": 5},
            {
                "class": "TimeWindowCompactionStrategy",
                "compaction_window_unit": "MINUTES",
                "compaction_window_size": "5",
            },
        ),
    ],
    ids=["none", "STCS", "UCS", "TWCS"],
)
def test_a_layout_is_what_the_server_says_of_the_table(
    cluster: Cluster, layout: dict[str, str | int], compaction: dict[str, str]
) -> None:
    target = SYSTEM.target(cluster, consistency="one", timeout_s=10.0)
    with open_driver(target) as driver:
        driver.execute("DROP TABLE IF EXISTS knickpoint.sensor_readings", timeout=60)
        with SYSTEM.sessions.sensor(replace(target, layout=layout)) as session:
            session.create_schema(RECORDS)
            session.write([reading(3)])
        (said,) = driver.execute(
            "SELECT compaction FROM system_schema.tables "
            "WHERE keyspace_name = 'knickpoint' AND table_name = 'sensor_readings'"
        )
    reported = {key: value.rpartition(".")[2] for key, value in said[0].items()}
    assert {key: reported[key] for key in compaction} == compaction


def test_a_server_that_does_not_answer_is_a_timeout_for_each_operation(cluster: Cluster) -> None:
    (node,) = cluster.nodes
    pid = running_pid(node.remote, node.pid_file)
    assert pid is not None
    target = SYSTEM.target(cluster, consistency="quorum", timeout_s=0.5)
    with SYSTEM.sessions.sensor(target) as session:
        assert isinstance(session, AnswersLater)
        session.write([reading(3)])
        os.kill(pid, signal.SIGSTOP)
        try:
            late = Answers(50)
            for number in range(25):
                session.write_soon([reading(number)], late.of(("write", number)))
                session.read_latest_soon("device-1", 3, late.of(("read", number)))
            errors = [reported for all_told in late.wait().values() for reported in all_told]
            with pytest.raises(DriverException) as alone:
                session.write([reading(3)])
        finally:
            os.kill(pid, signal.SIGCONT)
        kinds = [session.classify(error) for error in errors if isinstance(error, Exception)]
        assert kinds == ["timeouts"] * 50
        assert session.classify(alone.value) == "timeouts"
    with SYSTEM.sessions.sensor(replace(target, timeout_s=30.0)) as session:
        session.write([reading(3)])


def test_says_which_release_runs(cluster: Cluster) -> None:
    assert SYSTEM.running_versions(cluster) == (("node-1", "5.0.9"),)


def test_says_what_it_did_for_its_writes(cluster: Cluster) -> None:
    (node,) = cluster.nodes
    target = SYSTEM.target(cluster, consistency="quorum", timeout_s=10.0)
    with open_snapshots(SYSTEM, cluster) as (look, _), SYSTEM.sessions.sensor(target) as session:
        session.create_schema(RECORDS)
        before = look()
        for _ in range(4):
            for first in range(4):
                write_share(session, first)
        after = look()
    (began,), (ended,) = before.processes, after.processes
    assert (ended.node, ended.host) == ("node-1", node.remote.name)
    busy_s = after.hosts[0].busy_s - before.hosts[0].busy_s
    assert 0 < ended.cpu_s - began.cpu_s <= busy_s + 0.1
    # The commit log alone holds all of it.
    assert ended.written_bytes - began.written_bytes >= 4 * 500 * (88 + 900)
    assert {level.node for level in after.levels} == {"node-1"}
    levels = {level.name: level.value for level in after.levels}
    assert set(levels) == {GC_PAUSE_S, COMPACTION_REMAINING_BYTES, COMPACTION_PENDING_TASKS}
    assert min(levels.values()) >= 0
    # A JVM collects while it starts, and none of its pauses is as long as it has lived.
    started = {level.name: level.value for level in before.levels}
    assert 0 < started[GC_PAUSE_S] <= levels[GC_PAUSE_S] < 60
    for path in SYSTEM.logs(node):
        assert Path(path).stat().st_size


@pytest.mark.slow
def test_a_killed_node_is_reported_comes_back_stops_cleanly_and_leaves_nothing(
    cluster: Cluster,
) -> None:
    (node,) = cluster.nodes
    target = SYSTEM.target(cluster, consistency="all", timeout_s=10.0)
    with SYSTEM.sessions.sensor(target) as session:
        session.create_schema(RECORDS)
        session.write([reading(3)])
        stop(node, force=True)
        with pytest.raises((DriverException, NoHostAvailable)) as lost:
            session.write([reading(13)])
        assert session.classify(lost.value) in {"timeouts", "error:no-host-available"}
    with pytest.raises(StepFailed, match="the server process ended") as caught:
        SYSTEM.check(cluster)
    assert not isinstance(caught.value, NotReady)
    SYSTEM.start(node, cluster)
    poll(lambda: SYSTEM.check(cluster), limit_s=180)
    with SYSTEM.sessions.sensor(target) as session:
        session.create_schema(RECORDS)  # which a kill may take, since changes of it are not flushed
        session.write([reading(3)])
        assert reading(3) in session.read_latest("device-3", 500)
    stop(node, force=False)
    SYSTEM.wipe(node)
    assert list(Path(node.work_dir).parent.iterdir()) == []
