"""How our CQL clients use a socket: a connection of the driver with fewer system calls and timers.

A client's own work is in every response time, so it has to be small. The driver takes the connection
class as an argument; this one changes a few things of the class that it is given by default. What each
saves was measured at 64 operations in flight, 1 KB rows, in CPU time per operation (docs/engine.md).
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

from cassandra.io import libevwrapper as libev
from cassandra.io.libevreactor import LibevConnection

_TICK_S = 0.05
_SEND_BYTES = 1 << 16
_SEND_MESSAGES = 16


class TimeLimit:
    """When to call back, unless it is cancelled before."""

    __slots__ = ("call", "due_s")

    def __init__(self, due_s: float, call: Callable[[], None]) -> None:
        """Wait for `due_s`."""
        self.due_s = due_s
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Never call back, and let go of what would have been called: an answer and its rows."""
        self.call = None


class RequestTimeouts:
    """All time limits of a process, looked at together a few times per second.

    A driver's timer per operation wakes the event loop twice, and stays on a heap with the whole
    answer until its time has come, long after the operation ended. A limit is kept up to a twentieth
    of a second late instead. `call_later` is the event loop's own timer.
    """

    def __init__(
        self,
        call_later: Callable[[float, Callable[[], None]], object],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Look at nothing until the first limit."""
        self._call_later = call_later
        self._now = now
        # One queue for each length of time, to a tenth of a second: its limits are due in order.
        self._queues: dict[float, deque[TimeLimit]] = {}
        self._ticks = False
        self._lock = threading.Lock()

    def add(self, timeout_s: float, call: Callable[[], None]) -> TimeLimit:
        """Call back in `timeout_s`; any thread may ask."""
        limit = TimeLimit(self._now() + timeout_s, call)
        length = round(timeout_s, 1)
        queue = self._queues.get(length)
        if queue is None:
            queue = self._queues.setdefault(length, deque())
        queue.append(limit)
        if not self._ticks:
            self._begin()
        return limit

    def _begin(self) -> None:
        with self._lock:
            if self._ticks:
                return
            self._ticks = True
        self._call_later(_TICK_S, self._tick)

    def _tick(self) -> None:
        # Once begun, this never ends: without any timer the event loop would repeat its last one, whose
        # rest may have been some microseconds, and take a fifth of a core for nothing.
        self._call_later(_TICK_S, self._tick)
        for queue in tuple(self._queues.values()):
            self._expire(queue)

    def _expire(self, queue: deque[TimeLimit]) -> None:
        now_s = self._now()
        while queue and (queue[0].call is None or queue[0].due_s <= now_s):
            call = queue.popleft().call
            if call is not None:
                call()


class DriverConnection(LibevConnection):  # type: ignore[misc]  # the driver is untyped
    """The driver's connection on libev, named here so that no other event loop is chosen silently."""

    # An answer of ten rows comes with one recv() instead of three: about 10 µs of such a read.
    in_buffer_size = _SEND_BYTES
    out_buffer_size = _SEND_BYTES

    time_limits: ClassVar[RequestTimeouts]

    # The driver refuses an operation while its socket takes no more, as with batches of half a MB.
    # How many may wait is the engine's decision, and waiting here is part of their service time.
    _socket_writable = property(lambda _: True, lambda _, __: None)

    @classmethod
    def create_timer(cls, timeout: float, callback: Callable[[], None]) -> TimeLimit:
        """Bound an operation; the driver calls this for each."""
        return cls.time_limits.add(timeout, callback)

    _reader: int | None = None

    def handle_read(self, watcher: Any, revents: int, errno: int | None = None) -> None:  # noqa: ANN401  the driver is untyped
        """Take what has come, and note meanwhile which thread does."""
        self._reader = threading.get_ident()
        try:
            super().handle_read(watcher, revents, errno)
        finally:
            self._reader = None

    def push(self, data: bytes) -> None:
        """Queue a message; send the queue at once where many answers that came together each sent one.

        Else the server would wait for work until the last of the answers had been looked at.
        """
        super().push(data)
        if len(self.deque) >= _SEND_MESSAGES and self._reader == threading.get_ident():
            self.handle_write(None, libev.EV_WRITE)

    def handle_write(self, watcher: Any, revents: int, errno: int | None = None) -> None:  # noqa: ANN401  the driver is untyped
        """Send what has queued up in one system call, where the driver takes one for each message."""
        with self._deque_lock:
            parts, size = [], 0
            while self.deque and size < _SEND_BYTES:
                parts.append(self.deque.popleft())
                size += len(parts[-1])
            if parts:
                self.deque.appendleft(b"".join(parts))
        super().handle_write(watcher, revents, errno)


DriverConnection.time_limits = RequestTimeouts(LibevConnection.create_timer)
