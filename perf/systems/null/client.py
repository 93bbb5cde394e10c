"""The client of null servers: what a driver costs at the very least, and so the floor of the engine.

All calls share one connection per node, whose answers a thread reads, as cassandra-driver does.
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
from functools import partial
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
_SPARE_S = 1.0
"""How long a blocking call waits beyond its time limit for that thread to say so."""
_IDS = 1 << 32

_Done: TypeAlias = Callable[[tuple[int, int], Exception | None], None]
"""Takes the rows and bytes that a server says, which are 0 but for STORED, or what went wrong."""


class Refused(Exception):  # noqa: N818  what the server did
    """The server answered with an error, as it was told to."""


class NullSession:
    """A client of null servers; each device belongs to one of them."""

    def __init__(self, target: Target) -> None:
        """Connect to each address; raise OSError where nobody listens."""
        self._limit_s = target.timeout_s + _SPARE_S
        self._lines = [_Line((address, target.port), target.timeout_s) for address in target.addresses]

    def create_schema(self, records: Sensor) -> None:
        """Do nothing: nothing is stored."""

    def write(self, readings: Sequence[SensorReading]) -> None:
        """Announce readings of one device to its node; return when that acknowledges them."""
        self._await(lambda done: self.write_soon(readings, lambda _, failure: done((0, 0), failure)))

    def read_latest(self, device_id: str, count: int) -> Sequence[SensorReading]:
        """Ask a device's node for readings; there are none."""
        self._await(
            lambda done: self.read_latest_soon(
                device_id, count, lambda _, failure: done((0, 0), failure)
            )
        )
        return ()

    def write_soon(self, readings: Sequence[SensorReading], done: OnWritten) -> None:
        """Announce readings of one device to its node."""
        first = readings[0]
        device = crc32(first.device_id.encode())
        size = sum(map(payload_bytes, readings))
        self._lines[device % len(self._lines)].ask(
            (RequestKind.WRITE, len(readings), size, device, first.ts_ms),
            lambda _, failure: done(None, failure),
        )

    def read_latest_soon(self, device_id: str, count: int, done: OnRead) -> None:
        """Ask a device's node for readings; there are none."""
        device = crc32(device_id.encode())
        self._lines[device % len(self._lines)].ask(
            (RequestKind.READ, count, 0, device, 0),
            lambda _, failure: done(None if failure else (), failure),
        )

    def stored(self) -> Stored:
        """Add up what the nodes have acknowledged; they keep sums and no rows."""
        rows = size = 0
        for line in self._lines:
            in_node = self._await(partial(line.ask, (RequestKind.STORED, 0, 0, 0, 0)))
            rows, size = rows + in_node[0], size + in_node[1]
        return Stored(rows=rows, payload_bytes=size)

    def classify(self, error: Exception) -> str:
        """Name the kind of an error."""
        return "timeouts" if isinstance(error, TimeoutError) else f"error:{type(error).__name__}"

    def close(self) -> None:
        """Close all connections."""
        for line in self._lines:
            line.close()

    def _await(self, ask: Callable[[_Done], None]) -> tuple[int, int]:
        """Return the answer to what `ask` begins; raise its failure."""
        answers: queue.SimpleQueue[tuple[tuple[int, int], Exception | None]] = queue.SimpleQueue()
        ask(lambda sums, failure: answers.put((sums, failure)))
        try:
            sums, failure = answers.get(timeout=self._limit_s)
        except queue.Empty:
            raise TimeoutError(f"nothing within {self._limit_s:g} s") from None
        if failure is not None:
            raise failure
        return sums


class _Line:
    """One connection for many operations at once; a thread takes the answers.

    An operation that is not answered in time fails with TimeoutError, up to `_WAKE_S` later. Once the
    connection has ended, each fails at once with what ended it.
    """

    def __init__(self, address: tuple[str, int], timeout_s: float) -> None:
        self._connection = _connect(address, timeout_s)
        self._timeout_s = timeout_s
        self._numbers = itertools.count()
        self._waiting: dict[int, _Done] = {}
        self._deadlines: deque[tuple[float, int]] = deque()
        self._ended: OSError | None = None
        self._sending = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="null-reader", daemon=True)
        self._reader.start()

    def ask(self, request: tuple[int, int, int, int, int], done: _Done) -> None:
        """Send a request and return; `done` is called later with how it ended."""
        number = next(self._numbers) % _IDS
        self._waiting[number] = done
        if self._ended is not None:  # in this order: whoever comes too late for the reader sees it
            self._end(number, self._ended)
            return
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
            for number, status, rows, size in ANSWER.iter_unpack(data[:whole]):
                is_done = status == Status.DONE
                self._end(number, None if is_done else Refused("as its behaviour says"), (rows, size))
            self._expire()
        self._ended = failure
        for number in tuple(self._waiting):
            self._end(number, failure)

    def _end(self, number: int, failure: Exception | None, sums: tuple[int, int] = (0, 0)) -> None:
        # Whoever takes it out tells: an answer and a time-out never both.
        done = self._waiting.pop(number, None)
        if done is not None:
            done(sums, failure)

    def _expire(self) -> None:
        now_s = time.perf_counter()
        while self._deadlines:
            deadline_s, number = self._deadlines[0]
            if number in self._waiting:
                if deadline_s > now_s:
                    return
                self._end(number, TimeoutError(f"no answer within {self._timeout_s:g} s"))
            self._deadlines.popleft()


def _connect(address: tuple[str, int], timeout_s: float) -> socket.socket:
    connection = socket.create_connection(address, timeout=timeout_s)
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # The kernel's own time limit: Python's would cost a second system call per operation.
    limit = struct.pack("ll", 0, round(_WAKE_S * 1e6))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    return connection
