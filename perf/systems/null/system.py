"""A server that answers at planted times and stores nothing: what an engine is tested against.

It is no database, and none of its numbers say anything about one. It acknowledges writes and counts
their rows and bytes, and every read is answered as if nothing were stored. What it does is in its
`settings`: see `perf/systems/null/behaviour.py`.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar

from pydantic import JsonValue

from perf.hosts.remote import code_here, make_directory, write_text
from perf.model.errors import ConfigError
from perf.model.results import Release, Source
from perf.releases.origin import Origin
from perf.systems.contract import Cluster, Node, Sessions, Target
from perf.systems.null.behaviour import read_behaviour
from perf.systems.null.client import NullSession
from perf.systems.null.dialects import Wire
from perf.systems.null.wire import PORT
from perf.systems.processes import ServerProcess, require_port

RECORD = "record.bin"
"""In a node's directory, once the server has ended: what it did, if it was told to keep a record."""
OWN_SERVER = (sys.executable, "-m", "perf.systems.null.server")
"""The server of our own protocol."""


def configure_node(
    node: Node, settings: Mapping[str, JsonValue], where: str, wire: Wire = "own"
) -> None:
    """Check settings and write them as the server reads them; a ConfigError names `where`."""
    behaviour = read_behaviour(settings, where)
    if wire == "own" and behaviour.holds is not None:
        raise ConfigError([f"{where}: holds is set, and no answer of this server has rows; remove it"])
    asked = {
        "wire": wire,
        "address": node.address,
        "port": PORT,
        "record": f"{node.work_dir}/{RECORD}",
        "settings": dict(settings),
    }
    write_text(node.remote, f"{node.work_dir}/null.json", json.dumps(asked, indent=1))


def start_node(node: Node, server: tuple[str, ...] = OWN_SERVER) -> None:
    """Start the server process of a configured node, by its command, unless it runs."""
    SYSTEM.run(node, (*server, f"{node.work_dir}/null.json"), code_here())


def check_node(node: Node) -> None:
    """Return if the node lets a client connect; raise NotReady, or StepFailed if its process ended."""
    SYSTEM.require_running((node,))
    require_port(node, PORT)


@contextmanager
def _session(target: Target) -> Iterator[NullSession]:
    session = NullSession(target)
    try:
        yield session
    finally:
        session.close()


class Null(ServerProcess):
    """The null system. All nodes are equal; there is nothing to install."""

    name: ClassVar[str] = "null"
    sessions: ClassVar[Sessions] = Sessions(sensor=_session)
    loses_rows: ClassVar[str] = (
        "it acknowledges and counts what is written, and keeps no row, by design"
    )
    forgets: ClassVar[str] = loses_rows

    def releases(self) -> tuple[Release, ...]:
        """Return the one release there is."""
        return (Release(system=self.name, version="1.0.0", line="1.0", ordinal=0),)

    def origins(self, release: Release) -> tuple[Origin, ...]:
        """Return the one origin: it is part of Knickpoint."""
        return (Origin(source=Source.BUILTIN, location="perf.systems.null.server"),)

    def install(self, node: Node, cluster: Cluster) -> None:
        """Create the node's directory."""
        make_directory(node.remote, node.work_dir)

    def configure(self, node: Node, cluster: Cluster) -> None:
        """Check the settings and write them as the server reads them."""
        where = f"configs/systems/null/{cluster.config.name}.yaml"
        configure_node(node, cluster.config.settings, where)

    def start(self, node: Node, cluster: Cluster) -> None:
        """Start the server process."""
        start_node(node)

    def check(self, cluster: Cluster) -> None:
        """See that each node lets a client connect."""
        for node in cluster.nodes:
            check_node(node)

    def ports(self) -> tuple[int, ...]:
        """Return the one port."""
        return (PORT,)


SYSTEM = Null()
