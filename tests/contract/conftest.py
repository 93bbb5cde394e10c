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
    "org.eclipse.jdt:ecj:3.33.0",  # compiles where Java is a runtime without a compiler
)


@pytest.fixture(scope="session")
def mongo_peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
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
    classes, libraries = tmp_path_factory.mktemp("peer"), f"{jars}/lib/*"
    compiler = "org.eclipse.jdt.internal.compiler.batch.Main"
    jar_paths = ":".join(map(str, Path(jars, "lib").glob("*.jar")))
    compile_it = [java, "-cp", libraries, compiler, "-11", "-proc:none", "-cp", jar_paths]
    subprocess.run([*compile_it, "-d", str(classes), str(program)], check=True)
    options = ["-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", f"{classes}:{libraries}"]
    command = [java, *options, "Run", _PEER_ADDRESS, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        try:
            assert server.stdout.readline() == b"serving\n", "the emulator did not start"
            yield _PEER_ADDRESS, port
        finally:
            server.kill()
