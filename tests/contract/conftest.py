"""Servers for the contract suite that are no system of their own."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from perf.java import find_java
from perf.releases import fetch_maven

_PEER_ADDRESS = "127.0.0.27"
_PEER_JARS = (
    "de.bwaldvogel:mongo-java-server:1.47.0",
    "de.bwaldvogel:mongo-java-server-h2-backend:1.47.0",
)


@pytest.fixture(scope="session")
def mongo_peer() -> Iterator[tuple[str, int]]:
    """Give address and port of a server that speaks MongoDB's wire protocol.

    It is mongo-java-server, an emulator: it proves our use of the driver, and nothing about MongoDB.
    It enforces no write concern and ignores the time-series option.
    """
    java = find_java((17, 11), tell=print).path
    jars = fetch_maven("mongo-java-server", _PEER_JARS, tell=print).location
    with socket.socket() as probe:
        probe.bind((_PEER_ADDRESS, 0))
        port = probe.getsockname()[1]
    program = Path(__file__).parents[1] / "peers" / "Run.java"
    options = ["-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", f"{jars}/lib/*"]
    command = [java, *options, str(program), _PEER_ADDRESS, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        try:
            assert server.stdout.readline() == b"serving\n", "the emulator did not start"
            yield _PEER_ADDRESS, port
        finally:
            server.kill()
