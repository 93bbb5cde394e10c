"""Servers that sessions talk to in the contract suite, and how one is deployed."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perf.hosts.remote import LocalHost
from perf.model.access import Access
from perf.model.design import SystemConfig, Testbed, Topology
from perf.model.errors import NotReady
from perf.releases.artifacts import fetch
from perf.systems import registry
from perf.systems.contract import Cluster, Node, System, Target
from perf.systems.sessions import SensorSession

TIMEOUT_S = 10.0
# Each worker of pytest-xdist has servers of its own, which all listen on the same ports.
ADDRESS = f"127.26.0.{1 + int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0').removeprefix('gw'))}"
REAL = {"cassandra", "mongodb", "scylladb"}
"""Systems whose fixture, with their name and _server, starts a real program."""
HEAP_MB = {"cassandra": 512}


@dataclass(frozen=True, slots=True)
class Served:
    """A system and a running server that its sessions can talk to."""

    system: System
    target: Target
    nodes: tuple[Node, ...] = ()
    """The nodes that serve it, where they are processes of their own."""

    @property
    def node(self) -> Node | None:
        """The first of the nodes."""
        return self.nodes[0] if self.nodes else None

    def connect(self) -> AbstractContextManager[SensorSession]:
        """Connect a client of the sensor workload."""
        return self.system.sessions.sensor(self.target)


def find_free_port() -> int:
    """Return a port of `ADDRESS` that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return int(probe.getsockname()[1])


@contextmanager
def deploy(
    name: str,
    line: str,
    directory: Path,
    testbed: Testbed,
    address: str = ADDRESS,
    access: Access | None = None,
    beside: tuple[str, ...] = (),
) -> Iterator[Served]:
    """Deploy a line's newest release, through the system's own verbs: one node, and those `beside`."""
    system = registry.load(name)
    release = next(known for known in reversed(system.releases()) if known.line == line)
    nodes = tuple(
        Node(
            name=f"s{index + 1}",
            index=index,
            address=one,
            remote=LocalHost(),
            work_dir=str(directory / f"s{index + 1}"),
        )
        for index, one in enumerate((address, *beside))
    )
    cluster = Cluster(
        release=release,
        artifact=fetch(system, release, report=print),
        nodes=nodes,
        topology=Topology(name="test", description="test", servers=len(nodes)),
        testbed=testbed,
        config=SystemConfig(
            system=name,
            name="test",
            description="test",
            heap_mb=HEAP_MB.get(name),
            access=access,
        ),
    )
    try:
        for node in nodes:
            system.install(node, cluster)
            system.configure(node, cluster)
            system.start(node, cluster)
        _wait(lambda: system.check(cluster), cluster.testbed.limits.start_s)
        yield Served(system, system.target(cluster, consistency="quorum", timeout_s=TIMEOUT_S), nodes)
    finally:
        for node in nodes:
            system.stop(node, force=True)
        for node in nodes:
            _wait(partial(_require_gone, system, node), cluster.testbed.limits.stop_s)
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
