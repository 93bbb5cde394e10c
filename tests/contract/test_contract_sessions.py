"""What every client session must keep to, against servers that really answer.

A test that reads back what it wrote asks for the fixture `keeper`; systems that are declared to store
nothing are not asked. MongoDB itself is not here: its session is proven against an emulator of its
wire protocol.
"""

import queue
import re
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from perf.design import SystemConfig, Testbed, Topology
from perf.errors import NotReady
from perf.records import Sensor
from perf.releases import fetch
from perf.remote import LocalHost
from perf.sessions import AnswersLater, SensorSession
from perf.systems import registry
from perf.systems.contract import Cluster, Node, System, Target
from perf.workloads.sensor import Reading, payload_bytes

ADDRESS = "127.0.0.26"
RECORDS = Sensor(kind="sensor", devices=8, payload_bytes=1000, latest_count=3)
HEAP_MB = {"cassandra": 512}
STORES_NOTHING = {"null": "it acknowledges and counts what is written, and keeps no row, by design"}
TIMEOUT_S = 10.0
THREADS = 8
# Values that a detour through text, single precision or seconds would change.
VALUES = (0.1, 1 / 3, -0.0, 5e-324, 1.7976931348623157e308, -1e-9, 2.0**53 + 1, 1e22)
EARLY_MS = 1_700_000_000_123


@dataclass(frozen=True, slots=True)
class Served:
    """A system and a running server that its sessions can talk to."""

    system: System
    target: Target

    def connect(self) -> AbstractContextManager[SensorSession]:
        """Connect a client."""
        return self.system.connect(self.target)


@contextmanager
def _deploy(name: str, line: str, directory: Path, testbed: Testbed) -> Iterator[Served]:
    """Deploy one node of a line's newest release, through the system's own verbs."""
    system = registry.load(name)
    release = next(known for known in reversed(system.releases()) if known.line == line)
    host = LocalHost()
    node = Node(name="s1", index=0, address=ADDRESS, remote=host, work_dir=str(directory / "s1"))
    cluster = Cluster(
        release=release,
        artifact=fetch(system, release, tell=print),
        nodes=(node,),
        topology=Topology(name="test", description="test", servers=1),
        testbed=testbed,
        config=SystemConfig(
            system=name,
            name="test",
            description="test",
            heap_mb=HEAP_MB.get(name),
        ),
    )
    system.install(node, cluster)
    system.configure(node, cluster)
    system.start(node, cluster)
    try:
        _wait(lambda: system.check(cluster), cluster.testbed.limits.start_s)
        yield Served(system, system.target(cluster, consistency="quorum", timeout_s=TIMEOUT_S))
    finally:
        system.stop(node, force=True)
        _wait(lambda: _require_gone(system, node), cluster.testbed.limits.stop_s)
        system.wipe(node)


def _require_gone(system: System, node: Node) -> None:
    if system.is_running(node):
        raise NotReady("stop", node.name, "still runs")


def _wait(ask: Callable[[], None], limit_s: float) -> None:
    end_s = time.monotonic() + limit_s
    while True:
        try:
            return ask()
        except NotReady:
            if time.monotonic() > end_s:
                raise
        time.sleep(0.05)


@pytest.fixture(scope="module")
def fake_server(
    tmp_path_factory: pytest.TempPathFactory, make_testbed: Callable[..., Testbed]
) -> Iterator[Served]:
    testbed = make_testbed()
    with _deploy("fake", "1.1", tmp_path_factory.mktemp("fake"), testbed) as served:
        yield served


@pytest.fixture(scope="module")
def null_server(
    tmp_path_factory: pytest.TempPathFactory, make_testbed: Callable[..., Testbed]
) -> Iterator[Served]:
    testbed = make_testbed()
    with _deploy("null", "1.0", tmp_path_factory.mktemp("null"), testbed) as served:
        yield served


@pytest.fixture(scope="module")
def cassandra_server(
    tmp_path_factory: pytest.TempPathFactory, make_testbed: Callable[..., Testbed]
) -> Iterator[Served]:
    testbed = make_testbed(jvm_options=("-XX:TieredStopAtLevel=1",))
    with _deploy("cassandra", "5.0", tmp_path_factory.mktemp("cassandra"), testbed) as served:
        yield served


@pytest.fixture(scope="module")
def mongodb_server(mongo_peer: tuple[str, int]) -> Served:
    address, port = mongo_peer
    target = Target(
        system="mongodb",
        addresses=(address,),
        port=port,
        replication_factor=1,
        consistency="quorum",
        timeout_s=TIMEOUT_S,
    )
    return Served(registry.load("mongodb"), target)


# Fixtures with the name of a system and _server; real ones start a real program.
SERVERS = [
    pytest.param("fake"),
    pytest.param("null"),
    pytest.param("mongodb", marks=pytest.mark.real),
    pytest.param("cassandra", marks=pytest.mark.real),
]


@pytest.fixture(scope="module", params=SERVERS)
def served(request: pytest.FixtureRequest) -> Served:
    server: Served = request.getfixturevalue(f"{request.param}_server")
    with server.connect() as session:
        session.create_schema(RECORDS)
    return server


@pytest.fixture
def session(served: Served) -> Iterator[SensorSession]:
    with served.connect() as session:
        yield session


@pytest.fixture
def keeper(served: Served, session: SensorSession) -> SensorSession:
    """Give a session of a system that stores what it is given."""
    if served.system.name in STORES_NOTHING:
        pytest.skip(f"{served.system.name}: {STORES_NOTHING[served.system.name]}")
    return session


def _reading(device: str, place: int) -> Reading:
    values = VALUES[place % 8 :] + VALUES[: place % 8]
    metadata = bytes((byte + place) % 256 for byte in range(700))
    a, b, c, d, e, f, g, h = values
    return Reading(device, EARLY_MS + place, (a, b, c, d, e, f, g, h), metadata)


def _bits(reading: Reading) -> tuple[str, int, bytes, bytes]:
    return reading.device_id, reading.ts_ms, struct.pack("8d", *reading.values), reading.metadata


def test_every_system_has_a_server_here() -> None:
    served = {param.values[0] for param in SERVERS}
    assert served == set(registry.names()), "add the system's server to this file"
    assert STORES_NOTHING.keys() <= served


def test_schema_may_be_created_again(keeper: SensorSession) -> None:
    keeper.write((_reading("schema", 0),))
    keeper.create_schema(RECORDS)
    assert len(keeper.read_latest("schema", 3)) == 1


def test_latest_readings_come_newest_first(keeper: SensorSession) -> None:
    for place in (3, 0, 4, 1, 2):
        keeper.write((_reading("order", place),))
    found = keeper.read_latest("order", 3)
    assert [reading.ts_ms - EARLY_MS for reading in found] == [4, 3, 2]


def test_every_bit_of_a_reading_comes_back(keeper: SensorSession) -> None:
    written = [_reading("bits", place) for place in range(8)]
    for reading in written:
        keeper.write((reading,))
    found = keeper.read_latest("bits", 8)
    assert [_bits(reading) for reading in found] == [_bits(reading) for reading in reversed(written)]


def test_unknown_device_has_no_readings(session: SensorSession) -> None:
    assert not session.read_latest("nobody", 3)


def test_fewer_readings_than_asked_for_are_all_given(keeper: SensorSession) -> None:
    keeper.write((_reading("few", 0),))
    assert len(keeper.read_latest("few", 10)) == 1


def test_stored_counts_each_reading_and_its_bytes(session: SensorSession) -> None:
    before = session.stored()
    for place in range(7):
        session.write((_reading("stored", place),))
    after = session.stored()
    assert after.rows - before.rows == 7
    assert after.payload_bytes - before.payload_bytes == 7 * payload_bytes(_reading("stored", 0))


def test_a_batch_is_stored_like_single_readings(keeper: SensorSession) -> None:
    batch = tuple(_reading("batch", place) for place in range(5))
    before = keeper.stored()
    keeper.write(batch)
    assert keeper.stored().rows - before.rows == 5
    assert tuple(keeper.read_latest("batch", 5)) == batch[::-1]


def test_a_later_answer_is_the_same_answer(keeper: SensorSession) -> None:
    if not isinstance(keeper, AnswersLater):
        pytest.skip("this driver has no calls that answer later")
    batch = tuple(_reading("later", place) for place in range(3))
    written: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
    keeper.write_soon(batch, lambda _, failure: written.put(failure))
    assert written.get(timeout=TIMEOUT_S) is None
    read: queue.SimpleQueue[tuple[Sequence[Reading] | None, Exception | None]] = queue.SimpleQueue()
    keeper.read_latest_soon("later", 3, lambda answer, failure: read.put((answer, failure)))
    answer, failure = read.get(timeout=TIMEOUT_S)
    assert failure is None
    assert answer is not None
    assert tuple(answer) == batch[::-1]


def test_threads_share_a_session(keeper: SensorSession) -> None:
    def work(thread: int) -> bool:
        device = f"thread-{thread}"
        for place in range(20):
            keeper.write((_reading(device, place),))
        found = keeper.read_latest(device, 20)
        return list(found) == [_reading(device, place) for place in reversed(range(20))]

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(work, range(THREADS)))


def test_connecting_changes_no_data(served: Served, session: SensorSession) -> None:
    session.write((_reading("connect", 0),))
    before = session.stored()
    with served.connect() as other:
        assert other.stored() == before


def test_nobody_listening_is_an_error_with_a_name(served: Served, session: SensorSession) -> None:
    with socket.socket() as unused:
        unused.bind((ADDRESS, 0))
        port = unused.getsockname()[1]
        nobody = replace(served.target, addresses=(ADDRESS,), port=port, timeout_s=1.0)
        with pytest.raises(Exception) as failure, served.system.connect(nobody):  # noqa: PT011  any driver's
            pass
    assert re.fullmatch(r"timeouts|error:[\w-]+", session.classify(failure.value))


def test_an_unknown_error_keeps_its_name(session: SensorSession) -> None:
    assert session.classify(LookupError("?")) == "error:LookupError"
