"""The servers of the contract suite: `<system>_server` is one that sessions of that system can talk to.

Each is started at most once per worker of pytest-xdist, by the first test that asks for it. Only the
peer of CrateDB, which costs nothing, is one per file: none meets the tables that another file left.
"""

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from crate_peer import CratePeer
from java_libraries import compile_peer, fetch_jars
from served import ADDRESS, TIMEOUT_S, Served, deploy, find_free_port

from perf.model.design import Testbed
from perf.releases.java import find_java
from perf.systems import registry
from perf.systems.contract import Target

_PEER_JARS = (
    "de.bwaldvogel:mongo-java-server:1.47.0",
    "de.bwaldvogel:mongo-java-server-h2-backend:1.47.0",
    "org.eclipse.jdt:ecj:3.33.0",
)


@pytest.fixture(scope="session")
def mongo_program() -> tuple[str, ...]:
    """Return the command of a server that speaks MongoDB's wire protocol, without its address and port.

    It is mongo-java-server, an emulator: it proves our use of the driver, and nothing about MongoDB.
    It enforces no write concern and ignores the time-series option.
    """
    java = find_java((17, 11), report=print).path
    program = Path(__file__).parents[1] / "peers" / "Run.java"
    classes = compile_peer(java, program, fetch_jars("mongo-java-server", _PEER_JARS))
    return (java, "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", classes, "Run")


@pytest.fixture(scope="session")
def mongo_peer(mongo_program: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Yield address and port of a server that speaks MongoDB's wire protocol."""
    port = find_free_port()
    command = [*mongo_program, ADDRESS, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        try:
            assert server.stdout.readline() == b"serving\n", "the emulator did not start"
            yield ADDRESS, port
        finally:
            server.kill()


@pytest.fixture(scope="session")
def fake_server(
    tmp_path_factory: pytest.TempPathFactory, make_testbed: Callable[..., Testbed]
) -> Iterator[Served]:
    """Yield a server of the fake system."""
    with deploy("fake", "1.1", tmp_path_factory.mktemp("fake"), make_testbed()) as served:
        yield served


@pytest.fixture(scope="session")
def null_server(
    tmp_path_factory: pytest.TempPathFactory, make_testbed: Callable[..., Testbed]
) -> Iterator[Served]:
    """Yield a null server."""
    with deploy("null", "1.0", tmp_path_factory.mktemp("null"), make_testbed()) as served:
        yield served


@pytest.fixture(scope="session")
def cassandra_server(
    tmp_path_factory: pytest.TempPathFactory, make_testbed: Callable[..., Testbed]
) -> Iterator[Served]:
    """Yield a real Cassandra."""
    testbed = make_testbed(jvm_options=("-XX:TieredStopAtLevel=1",))
    with deploy("cassandra", "5.0", tmp_path_factory.mktemp("cassandra"), testbed) as served:
        yield served


@pytest.fixture(scope="session")
def scylladb_server(cassandra_server: Served) -> Served:
    """Give a real Cassandra to ScyllaDB's sessions: both speak CQL, and ScyllaDB itself is not here."""
    system = registry.load("scylladb")
    layout = {"replication": "network-topology"}
    return Served(system, replace(cassandra_server.target, system=system.name, layout=layout))


@pytest.fixture(scope="session")
def mongodb_server(mongo_peer: tuple[str, int]) -> Served:
    """Return the emulator of MongoDB's wire protocol: MongoDB itself is not here."""
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


@pytest.fixture(scope="module")
def crate_peer() -> Iterator[CratePeer]:
    """Yield a server at CrateDB's HTTP endpoint that holds requests to the reference: no CrateDB.

    It shows rows to queries only after a REFRESH, and never by itself.
    """
    with CratePeer(ADDRESS) as peer:
        yield peer


@pytest.fixture(scope="module")
def cratedb_server(crate_peer: CratePeer) -> Served:
    """Return the peer at CrateDB's endpoint: CrateDB itself is not here."""
    target = Target(
        system="cratedb",
        addresses=(crate_peer.address,),
        port=crate_peer.port,
        replication_factor=1,
        consistency="quorum",
        timeout_s=TIMEOUT_S,
    )
    return Served(registry.load("cratedb"), target)
