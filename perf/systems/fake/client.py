"""The fake system's clients: JSON lines over pooled sockets, each device on one of the servers."""

import json
import queue
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from perf.model.records import Sensor, Stored
from perf.systems.contract import Target
from perf.systems.fake.devops import FakeDevopsSession
from perf.systems.fake.keys import FakeKeyValueSession
from perf.workloads.sensor import SensorReading


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
        """Return the newest readings of a device, newest first."""
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


@contextmanager
def connect(target: Target) -> Iterator[FakeSession]:
    """Connect a client of the sensor workload."""
    session = FakeSession(target)
    try:
        session.stored()
        yield session
    finally:
        session.close()


@contextmanager
def connect_key_value(target: Target) -> Iterator[FakeKeyValueSession]:
    """Connect a client of the workloads put/get and YCSB."""
    with connect(target) as session:
        yield FakeKeyValueSession(session.ask, len(target.addresses), session.classify)


@contextmanager
def connect_devops(target: Target) -> Iterator[FakeDevopsSession]:
    """Connect a client of the devops workload."""
    with connect(target) as session:
        yield FakeDevopsSession(session.ask, len(target.addresses), session.classify)
