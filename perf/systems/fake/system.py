"""A database in a dict: the reference implementation of the contract, for order and failure tests.

Each node is a real process on a real port (`python -m perf.systems.fake.system CONFIG`), so that a
trial of it goes through the same processes, sockets and files as any other. It is not a database, and
none of its numbers say anything about one. Its `settings` plant faults:

    service_time_ms: 2        every answer is held back for so long
    never_ready: true         runs, but its port answers "starting" to every check
    ready_after_s: 3          does so for so long
    crash_on_start: true      the process ends at once with a message in its log
    runs: 9.9.9               tells this version, whichever release was deployed
    die_after_writes: 500     node 1 dies after so many writes
    lose_every: 100           every 100th write is acknowledged and not stored
    corrupt_every: 100        every 100th write is stored with changed values
    refuse_every: 100         every 100th write is answered with an error
    refuse_after: 500         every write after so many is, as by a full disk or a revoked account
    refuse_with: no space     what such an answer says
    ignore_stop: true         SIGTERM does nothing; only a kill ends the process
"""

import asyncio
import json
import math
import os
import queue
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar

from perf.hosts.remote import (
    code_here,
    make_directory,
    read_tail,
    remove_tree,
    running_pid,
    send_signal,
    write_text,
)
from perf.model.errors import NotReady, StepFailed
from perf.model.records import Sensor, Stored
from perf.model.results import Release, Source
from perf.releases.origin import Origin
from perf.systems.contract import Cluster, Node, System, Target
from perf.systems.fake.devops import DevopsRows, FakeDevopsSession
from perf.systems.fake.keys import FakeKeyValueSession, KeptRecords
from perf.systems.sessions import DevopsSession, KeyValueSession, SensorSession
from perf.workloads.sensor import SensorReading

PORT = 17_999
_FIXED_BYTES = 16 + 8 + 8 * 8  # device id, timestamp, values: as the workload counts them
_LINES = (("1.0", 3), ("1.1", 2), ("2.0", 8))
"""Each line, and how many releases it has."""


class FakeSession:
    """A client of the fake servers; each device lives on one of them."""

    def __init__(self, target: Target) -> None:
        """Keep one pool of connections per address; connect when first asked."""
        self._target = target
        self._pools: tuple[queue.SimpleQueue[socket.socket], ...] = tuple(
            queue.SimpleQueue() for _ in target.addresses
        )

    def ask(self, node: int, question: dict[str, Any]) -> Any:  # noqa: ANN401  JSON
        """Ask a node a question; raise RuntimeError if it answers with an error."""
        address = (self._target.addresses[node], self._target.port)
        try:
            connection = self._pools[node].get_nowait()
        except queue.Empty:
            connection = socket.create_connection(address, timeout=self._target.timeout_s)
        connection.sendall(json.dumps(question).encode() + b"\n")
        with connection.makefile("rb") as stream:
            line = stream.readline()
        if not line:
            connection.close()
            raise ConnectionResetError(f"{address[0]}:{address[1]} closed the connection")
        self._pools[node].put(connection)
        answer = json.loads(line)
        if isinstance(answer, dict) and "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def _node_of(self, device_id: str) -> int:
        return sum(device_id.encode()) % len(self._target.addresses)

    def create_schema(self, records: Sensor) -> None:
        """Do nothing: a dict has no schema."""

    def write(self, readings: Sequence[SensorReading]) -> None:
        """Store readings of one device on its node, in one request."""
        rows = [
            [reading.device_id, reading.ts_ms, list(reading.values), reading.metadata.hex()]
            for reading in readings
        ]
        self.ask(self._node_of(readings[0].device_id), {"write": rows})

    def read_latest(self, device_id: str, count: int) -> Sequence[SensorReading]:
        """Give the newest readings of a device, newest first."""
        rows = self.ask(self._node_of(device_id), {"latest": device_id, "count": count})
        return tuple(
            SensorReading(device_id, ts_ms, tuple(values), bytes.fromhex(metadata))
            for ts_ms, values, metadata in rows
        )

    def stored(self) -> Stored:
        """Add up what each node says that it holds."""
        answers = [self.ask(node, {"stored": True}) for node in range(len(self._pools))]
        return Stored(
            rows=sum(rows for rows, _ in answers), payload_bytes=sum(size for _, size in answers)
        )

    def classify(self, error: Exception) -> str:
        """Name the kind of an error."""
        return "timeouts" if isinstance(error, TimeoutError) else f"error:{type(error).__name__}"

    def close(self) -> None:
        """Close all pooled connections."""
        for pool in self._pools:
            while not pool.empty():
                pool.get_nowait().close()


class Fake:
    """The fake system. All nodes are equal; there is nothing to install."""

    name: ClassVar[str] = "fake"

    def releases(self) -> tuple[Release, ...]:
        """Give a few invented releases in three lines."""
        return tuple(
            Release(system=self.name, version=f"{line}.{ordinal}", line=line, ordinal=ordinal)
            for line, count in _LINES
            for ordinal in range(count)
        )

    def origins(self, release: Release) -> tuple[Origin, ...]:
        """Give the one origin: it is part of Knickpoint."""
        return (Origin(source=Source.BUILTIN, location="perf.systems.fake.system"),)

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
        if self.is_running(node):
            return
        node.remote.start(
            node.pinned(
                (sys.executable, "-m", "perf.systems.fake.system", f"{node.work_dir}/fake.json")
            ),
            pid_file=node.pid_file,
            log=self.logs(node)[0],
            cwd=node.work_dir,
            env=code_here(),
        )

    def check(self, cluster: Cluster) -> None:
        """Ask each node whether it serves."""
        for node in cluster.nodes:
            if not self.is_running(node):
                tail = read_tail(node.remote, self.logs(node)[0])
                raise StepFailed("start", node.name, "the server process ended", tail)
            try:
                with socket.create_connection((node.address, PORT), timeout=1) as connection:
                    connection.sendall(b'{"ready": true}\n')
                    answer = connection.recv(64).strip()
            except OSError as error:
                raise NotReady("start", node.name, str(error)) from error
            if answer != b"true":
                raise NotReady("start", node.name, "the server is still starting")

    def running_versions(self, cluster: Cluster) -> tuple[tuple[str, str], ...]:
        """Ask each node which release it runs."""
        told = []
        for node in cluster.nodes:
            try:
                with socket.create_connection((node.address, PORT), timeout=1) as connection:
                    connection.sendall(b'{"version": true}\n')
                    told.append((node.name, str(json.loads(connection.recv(64)))))
            except (OSError, ValueError) as error:
                raise NotReady("ask", node.name, str(error)) from error
        return tuple(told)

    def is_running(self, node: Node) -> bool:
        """Say whether the node's server process lives."""
        return running_pid(node.remote, node.pid_file) is not None

    def stop(self, node: Node, *, force: bool) -> None:
        """End the server process."""
        send_signal(node.remote, node.pid_file, signal.SIGKILL if force else signal.SIGTERM)

    def wipe(self, node: Node) -> None:
        """Remove the node's directory."""
        remove_tree(node.remote, node.work_dir)

    def ports(self) -> tuple[int, ...]:
        """Give the one port."""
        return (PORT,)

    def logs(self, node: Node) -> tuple[str, ...]:
        """Give the one log."""
        return (f"{node.work_dir}/server.log",)

    def target(self, cluster: Cluster, *, consistency: str, timeout_s: float) -> Target:
        """Give all nodes' addresses."""
        return Target.of(cluster, port=PORT, consistency=consistency, timeout_s=timeout_s)

    def connect(self, target: Target) -> AbstractContextManager[SensorSession]:
        """Connect a client."""
        return _session(target)

    @contextmanager
    def connect_key_value(self, target: Target) -> Iterator[KeyValueSession]:
        """Connect a client of the workloads put/get and YCSB."""
        with _session(target) as session:
            yield FakeKeyValueSession(session.ask, len(target.addresses), session.classify)

    @contextmanager
    def connect_devops(self, target: Target) -> Iterator[DevopsSession]:
        """Connect a client of the devops workload."""
        with _session(target) as session:
            yield FakeDevopsSession(session.ask, len(target.addresses), session.classify)


@contextmanager
def _session(target: Target) -> Iterator[FakeSession]:
    session = FakeSession(target)
    try:
        session.stored()
        yield session
    finally:
        session.close()


class FakeServer:
    """One node: a dict of device → {timestamp: row}, records, and the faults it was told to have."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """Hold nothing yet; `settings` are those of the module's docstring, with `index`."""
        self.settings = settings
        self.devices: dict[str, dict[int, list[Any]]] = {}
        self.records = KeptRecords()
        self.devops = DevopsRows()
        self.writes = 0
        self.is_up = not settings.get("ready_after_s")

    def finish_start(self) -> None:
        """Serve from now on: a start that was told to be slow is over."""
        self.is_up = True

    def _is_hit(self, fault: str) -> bool:
        every = self.settings.get(fault)
        return every is not None and self.writes % int(every) == 0

    def answer(self, question: dict[str, Any]) -> Any:  # noqa: ANN401  JSON
        """Answer one question of a client."""
        if "ready" in question:
            return self.is_up and not self.settings.get("never_ready", False)
        if "version" in question:
            return self.settings.get("runs", "")
        keep = self._find_write(question)
        return self._read(question) if keep is None else self._write(keep)

    def _find_write(self, question: dict[str, Any]) -> Callable[[], None] | None:
        if "write" in question:
            return lambda: self._keep(question["write"])
        if question.get("devops") == "write":
            return lambda: self._keep_devops(question["rows"])
        if question.get("records") in {"put", "update"}:
            return lambda: self._keep_record(question)
        return None

    def _read(self, question: dict[str, Any]) -> Any:  # noqa: ANN401  JSON
        if "devops" in question:
            return self.devops.answer(question)
        if "records" in question:
            return self.records.answer(question)
        if "latest" in question:
            rows = self.devices.get(question["latest"], {})
            newest = sorted(rows, reverse=True)[: question["count"]]
            return [[ts_ms, *rows[ts_ms]] for ts_ms in newest]
        stored = [row for rows in self.devices.values() for row in rows.values()]
        return len(stored), sum(_FIXED_BYTES + len(metadata) // 2 for _, metadata in stored)

    def _write(self, keep: Callable[[], None]) -> Any:  # noqa: ANN401
        self.writes += 1
        if self.settings["index"] == 0 and self.writes == self.settings.get("die_after_writes"):
            sys.stderr.write("planted fault: die_after_writes reached\n")
            sys.stderr.flush()
            os._exit(1)
        if self._is_hit("refuse_every") or self.writes > self.settings.get("refuse_after", math.inf):
            return {"error": f"planted fault: {self.settings.get('refuse_with', 'refused')}"}
        keep()
        return True

    def _keep(self, rows: list[Any]) -> None:
        for device, ts_ms, values, metadata in rows:
            kept = [values[0] + 1.0, *values[1:]] if self._is_hit("corrupt_every") else values
            if not self._is_hit("lose_every"):
                self.devices.setdefault(device, {})[ts_ms] = [kept, metadata]

    def _keep_devops(self, rows: list[Any]) -> None:
        faults = {"is_corrupt": self._is_hit("corrupt_every"), "is_lost": self._is_hit("lose_every")}
        self.devops.write(rows, **faults)

    def _keep_record(self, question: dict[str, Any]) -> None:
        if not self._is_hit("lose_every"):
            self.records.write(question, is_corrupt=self._is_hit("corrupt_every"))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the questions of one connection until it ends."""
        while line := await reader.readline():
            answer = self.answer(json.loads(line))
            if hold := self.settings.get("service_time_ms"):
                await asyncio.sleep(hold / 1000)
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()


async def _run(settings: dict[str, Any]) -> None:
    node = FakeServer(settings)
    limit = 2**24  # of one line: a batch of large readings
    asyncio.get_running_loop().call_later(settings.get("ready_after_s", 0), node.finish_start)
    server = await asyncio.start_server(node.serve, settings["address"], PORT, limit=limit)
    sys.stderr.write(f"serving on {settings['address']}:{PORT}\n")
    sys.stderr.flush()
    async with server:
        await server.serve_forever()


def _main(path: str) -> None:
    settings = json.loads(Path(path).read_text())
    if settings.get("crash_on_start"):
        sys.exit("planted fault: crash_on_start")
    signal.signal(
        signal.SIGTERM, signal.SIG_IGN if settings.get("ignore_stop") else lambda *_: os._exit(0)
    )
    asyncio.run(_run(settings))


SYSTEM: System = Fake()

if __name__ == "__main__":
    _main(sys.argv[1])
