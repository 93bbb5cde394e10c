"""A database in a dict: the reference implementation of the contract, for order and failure tests.

Each node is a real process on a real port, so that a trial of it goes through the same processes,
sockets and files as any other. It is not a database, and none of its numbers say anything about one.
Its `settings` plant faults: see `perf.systems.fake.server`.
"""

import json
import socket
import sys
from typing import ClassVar

from perf.hosts.remote import code_here, make_directory, write_text
from perf.model.errors import NotReady
from perf.model.results import Release, Source
from perf.releases.origin import Origin
from perf.systems.contract import Cluster, Node, Sessions, System
from perf.systems.fake.client import connect, connect_devops, connect_key_value
from perf.systems.fake.server import PORT
from perf.systems.processes import ServerProcess

SERVER = "perf.systems.fake.server"
_LINES = (("1.0", 3), ("1.1", 2), ("2.0", 8))
"""Each line, and how many releases it has."""


class Fake(ServerProcess):
    """The fake system. All nodes are equal; there is nothing to install."""

    name: ClassVar[str] = "fake"
    sessions: ClassVar[Sessions] = Sessions(
        sensor=connect, key_value=connect_key_value, devops=connect_devops
    )
    loses_rows: ClassVar[str] = ""
    forgets: ClassVar[str] = "it is a dict, which ends with its process"

    def releases(self) -> tuple[Release, ...]:
        """Return a few invented releases in three lines."""
        return tuple(
            Release(system=self.name, version=f"{line}.{ordinal}", line=line, ordinal=ordinal)
            for line, count in _LINES
            for ordinal in range(count)
        )

    def origins(self, release: Release) -> tuple[Origin, ...]:
        """Return the one origin: it is part of Knickpoint."""
        return (Origin(source=Source.BUILTIN, location=SERVER),)

    def install(self, node: Node, cluster: Cluster) -> None:
        """Create the node's directory."""
        make_directory(node.remote, node.work_dir)

    def configure(self, node: Node, cluster: Cluster) -> None:
        """Write the settings as the server reads them."""
        settings = {
            "address": node.address,
            "index": node.index,
            "runs": cluster.release.version,
            **cluster.config.settings,
        }
        write_text(node.remote, f"{node.work_dir}/fake.json", json.dumps(settings, indent=1))

    def start(self, node: Node, cluster: Cluster) -> None:
        """Start the server process."""
        self.run(node, (sys.executable, "-m", SERVER, f"{node.work_dir}/fake.json"), code_here())

    def check(self, cluster: Cluster) -> None:
        """Ask each node whether it serves."""
        for node in cluster.nodes:
            self.require_running((node,))
            if _ask(node, b'{"ready": true}\n', "start") is not True:
                raise NotReady("start", node.name, "the server is still starting")

    def running_versions(self, cluster: Cluster) -> tuple[tuple[str, str], ...]:
        """Ask each node which release it runs."""
        return tuple(
            (node.name, str(_ask(node, b'{"version": true}\n', "ask"))) for node in cluster.nodes
        )

    def ports(self) -> tuple[int, ...]:
        """Return the one port."""
        return (PORT,)


def _ask(node: Node, question: bytes, step: str) -> object:
    try:
        with socket.create_connection((node.address, PORT), timeout=1) as connection:
            connection.sendall(question)
            return json.loads(connection.recv(64))
    except (OSError, ValueError) as error:
        raise NotReady(step, node.name, str(error)) from error


SYSTEM: System = Fake()
