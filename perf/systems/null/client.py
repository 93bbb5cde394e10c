"""The client of null servers: what a driver costs at the very least, and so the floor of the engine.

Blocking calls take a connection out of a pool and put it back, as pymongo does; calls that answer later
share one connection per node, whose answers a thread reads, as cassandra-driver does.
"""

import contextlib
import itertools
import queue
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias
from zlib import crc32

from perf.model.records import Sensor, Stored
from perf.systems.contract import Target
from perf.systems.null.wire import ANSWER, REQUEST, RequestKind, Status
from perf.systems.sessions import OnRead, OnWritten
from perf.workloads.sensor import SensorReading, payload_bytes

_RECEIVE_BYTES = 1 << 16
_WAKE_S = 0.05
"""How often a thread that waits for answers looks for operations whose time is up."""
_IDS = 1 << 32

_Done: TypeAlias = Callable[[Exception | None], None]


class Refused(Exception):  # noqa: N818  what the server did
    """The server answered with an error, as it was told to."""


class NullSession:
    """A client of null servers; each device belongs to one of them."""

    def __init__(self, target: Target) -> None:
        """Connect to each address; raise OSError where nobody listens."""
        self._target = target
        self._pools: tuple[queue.SimpleQueue[socket.socket], ...] = tuple(
            queue.SimpleQueue() for _ in target.addresses
        )
        self._lines = [_Line((address, target.port), target.timeout_s) for address in target.addresses]

    def create_schema(self, records: Sensor) -> None:
        """Do nothing: nothing is stored."""

    def write(self, readings: Sequence[SensorReading]) -> None:
        """Announce readings of one device to its node; return when that acknowledges them."""
        node, request = self._describe_write(readings)
        self._ask(node, 0, *request)

    def read_latest(self, device_id: str, count: int) -> Sequence[SensorReading]:
        """Ask a device's node for readings; there are none."""
        device = crc32(device_id.encode())
        self._ask(device % len(self._pools), 0, RequestKind.READ, count, 0, device, 0)
        return ()

    def write_soon(self, readings: Sequence[SensorReading], done: OnWritten) -> None:
        """Announce readings of one device to its node."""
        node, request = self._describe_write(readings)
        self._lines[node].ask(request, lambda failure: done(None, failure))

    def read_latest_soon(self, device_id: str, count: int, done: OnRead) -> None:
        """Ask a device's node for readings; there are none."""
        device = crc32(device_id.encode())
        request = (RequestKind.READ, count, 0, device, 0)
        self._lines[device % len(self._lines)].ask(
            request, lambda failure: done(None if failure else (), failure)
        )

    def stored(self) -> Stored:
        """Add up what the nodes have acknowledged; they keep sums and no rows."""
        answers = [
            self._ask(node, 0, RequestKind.STORED, 0, 0, 0, 0) for node in range(len(self._pools))
        ]
        return Stored(
            rows=sum(rows for rows, _ in answers), payload_bytes=sum(size for _, size in answers)
        )

    def classify(self, error: Exception) -> str:
        """Name the kind of an error."""
        return "timeouts" if isinstance(error, TimeoutError) else f"error:{type(error).__name__}"

    def close(self) -> None:
        """Close all connections."""
        for line in self._lines:
            line.close()
        for pool in self._pools:
            while not pool.empty():
                pool.get_nowait().close()

    def _describe_write(
        self, readings: Sequence[SensorReading]
    ) -> tuple[int, tuple[int, int, int, int, int]]:
        first = readings[0]
        device = crc32(first.device_id.encode())
        size = sum(map(payload_bytes, readings))
        return device % len(self._pools), (RequestKind.WRITE, len(readings), size, device, first.ts_ms)

    def _ask(self, node: int, *request: int) -> tuple[int, int]:
        try:
            connection = self._pools[node].get_nowait()
        except queue.Empty:
            address = (self._target.addresses[node], self._target.port)
            connection = _connect(address, self._target.timeout_s, self._target.timeout_s)
        try:
            connection.sendall(REQUEST.pack(*request))
            _, status, rows, size = ANSWER.unpack(_receive(connection))
        except BaseException:
            connection.close()  # a late answer must not meet the next question
            raise
        self._pools[node].put(connection)
        if status != Status.DONE:
            raise Refused("the null server refused, as it was told to")
        return rows, size


class _Line:
    """One connection for many operations at once; a thread takes the answers.

    An operation that is not answered in time fails with TimeoutError, up to `_WAKE_S` later.
    """

    def __init__(self, address: tuple[str, int], timeout_s: float) -> None:
        self._connection = _connect(address, timeout_s, _WAKE_S)
        self._timeout_s = timeout_s
        self._numbers = itertools.count()
        self._waiting: dict[int, _Done] = {}
        self._deadlines: deque[tuple[float, int]] = deque()
        self._sending = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="null-reader", daemon=True)
        self._reader.start()

    def ask(self, request: tuple[int, int, int, int, int], done: _Done) -> None:
        """Send a request and return; `done` is told later how it ended."""
        number = next(self._numbers) % _IDS
        self._waiting[number] = done
        self._deadlines.append((time.perf_counter() + self._timeout_s, number))
        try:
            with self._sending:
                self._connection.sendall(REQUEST.pack(number, *request))
        except OSError as error:
            self._end(number, error)

    def close(self) -> None:
        """Close the connection; what is still outstanding fails."""
        with contextlib.suppress(OSError):  # the server may have closed it before
            self._connection.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._connection.close()

    def _read(self) -> None:
        rest = b""
        failure: OSError = ConnectionResetError("the null server closed the connection")
        while True:
            try:
                data = self._connection.recv(_RECEIVE_BYTES)
            except BlockingIOError:
                self._expire()
                continue
            except OSError as error:
                failure = error
                break
            if not data:
                break
            data = rest + data
            whole = len(data) - len(data) % ANSWER.size
            rest = data[whole:]
            for number, status, _, _ in ANSWER.iter_unpack(data[:whole]):
                self._end(number, None if status == Status.DONE else Refused("as it was told to"))
            self._expire()
        for number in tuple(self._waiting):
            self._end(number, failure)

    def _end(self, number: int, failure: Exception | None) -> None:
        # Whoever takes it out tells: an answer and a time-out never both.
        done = self._waiting.pop(number, None)
        if done is not None:
            done(failure)

    def _expire(self) -> None:
        now_s = time.perf_counter()
        while self._deadlines:
            deadline_s, number = self._deadlines[0]
            if number in self._waiting:
                if deadline_s > now_s:
                    return
                self._end(number, TimeoutError(f"no answer within {self._timeout_s:g} s"))
            self._deadlines.popleft()


def _connect(address: tuple[str, int], timeout_s: float, receive_s: float) -> socket.socket:
    connection = socket.create_connection(address, timeout=timeout_s)
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # The kernel's own time limit: Python's would cost a second system call per operation.
    microseconds = max(1, round(receive_s * 1e6))
    limit = struct.pack("ll", *divmod(microseconds, 1_000_000))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    return connection


def _receive(connection: socket.socket) -> bytes:
    try:
        data = connection.recv(ANSWER.size, socket.MSG_WAITALL)
    except BlockingIOError as error:
        raise TimeoutError("no answer in time") from error
    if len(data) < ANSWER.size:
        raise ConnectionResetError("the null server closed the connection")
    return data
