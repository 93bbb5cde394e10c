"""One timer for all time limits, and all that is queued sent at once."""

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from io import BytesIO
from types import SimpleNamespace

import pytest
from cassandra.io import libevwrapper as libev
from cassandra.io.libevreactor import LibevConnection

from perf.systems.cql.wire import DriverConnection, RequestTimeouts


class Later:
    """Stands in for the event loop: its timers fire when time is moved on."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.waiting: list[tuple[float, Callable[[], None]]] = []
        self.fired = 0

    def call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        self.waiting.append((self.now_s + delay_s, call))

    def move_to(self, now_s: float) -> None:
        while self.waiting and self.waiting[0][0] <= now_s:
            self.now_s, call = self.waiting.pop(0)
            self.fired += 1
            call()
        self.now_s = now_s


def begin() -> tuple[Later, RequestTimeouts, list[str]]:
    later = Later()
    return later, RequestTimeouts(later.call_later, lambda: later.now_s), []


def test_limits_are_kept_in_order_and_at_most_a_twentieth_of_a_second_late() -> None:
    later, limits, _ = begin()
    kept: list[tuple[float, float]] = []
    for timeout_s in (10.0, 0.5, 0.52, 0.01):
        limits.add(timeout_s, partial(lambda due_s: kept.append((due_s, later.now_s)), 100 + timeout_s))
    later.move_to(111.0)
    assert [due_s - 100.0 for due_s, _ in kept] == pytest.approx([0.01, 0.5, 0.52, 10.0])
    assert all(due_s <= now_s <= due_s + 0.051 for due_s, now_s in kept)


def test_a_cancelled_limit_is_never_called_and_holds_nothing() -> None:
    later, limits, called = begin()
    limit = limits.add(0.5, lambda: called.append("late"))
    limit.cancel()
    assert limit.call is None
    later.move_to(101.0)
    assert called == []


def test_the_event_loop_always_has_a_timer_once_there_was_a_limit() -> None:
    later, limits, called = begin()
    assert later.waiting == []
    limits.add(0.1, lambda: called.append("first"))
    for now_s in range(101, 110):
        later.move_to(float(now_s))
        assert [due_s - later.now_s <= 0.051 for due_s, _ in later.waiting] == [True]
    limits.add(0.1, lambda: called.append("second"))
    later.move_to(111.0)
    assert called == ["first", "second"]


def test_a_failing_callback_stops_no_other() -> None:
    later, limits, called = begin()

    def fail() -> None:
        raise LookupError("planted")

    limits.add(0.1, fail)
    limits.add(0.1, lambda: called.append("next"))
    try:
        later.move_to(101.0)
    except LookupError:
        later.move_to(101.0)
    assert called == ["next"]


class Socket:
    """Takes at most `room` bytes per call."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.sent: list[bytes] = []

    def recv(self, size: int) -> bytes:
        return b"answers"

    def send(self, data: bytes) -> int:
        self.sent.append(data[: self.room])
        return len(self.sent[-1])


class Wired(DriverConnection):
    """A connection that is open, with messages queued."""

    def __init__(self, socket: Socket, *queued: bytes) -> None:
        self.deque, self._deque_lock = deque(queued), threading.Lock()
        self._socket, self._socket_writable = socket, True
        self._io_buffer = SimpleNamespace(io_buffer=BytesIO())
        self.to_push: list[bytes] = []
        LibevConnection.initialize_reactor()

    def process_io_buffer(self) -> None:
        """Answer as operations do whose ends begin others."""
        for message in self.to_push:
            self.push(message)


def test_what_is_queued_is_sent_in_one_call() -> None:
    socket = Socket(room=1 << 20)
    Wired(socket, b"one", b"two", b"three").handle_write(None, libev.EV_WRITE)
    assert socket.sent == [b"onetwothree"]


def test_no_byte_is_lost_or_moved_where_the_socket_takes_a_part() -> None:
    socket = Socket(room=70_000)
    messages = [bytes([number]) * 50_000 for number in range(6)]
    Wired(socket, *messages).handle_write(None, libev.EV_WRITE)
    assert b"".join(socket.sent) == b"".join(messages)


def test_answers_that_came_together_send_before_the_last_of_them_is_looked_at() -> None:
    socket = Socket(room=1 << 20)
    wired = Wired(socket)
    wired.to_push = [b"%d," % number for number in range(40)]
    wired.handle_read(None, libev.EV_READ)
    assert [sent.count(b",") for sent in socket.sent] == [16, 16]
    wired.handle_write(None, libev.EV_WRITE)
    assert b"".join(socket.sent) == b"".join(wired.to_push)


def test_other_threads_only_queue() -> None:
    socket = Socket(room=1 << 20)
    wired = Wired(socket)
    for _ in range(40):
        wired.push(b"message")
    assert socket.sent == []


def test_an_operation_waits_where_the_socket_is_full_and_is_not_refused() -> None:
    connection = DriverConnection.__new__(DriverConnection)
    connection.__dict__.update(
        is_defunct=False, is_closed=False, _requests={}, protocol_version=4, compressor=None
    )
    connection.__dict__.update(allow_beta_protocol_version=False, _is_checksumming_enabled=False)
    pushed: list[bytes] = []
    connection.push = pushed.append
    connection._socket_writable = False  # noqa: SLF001  as the driver does when a send would block
    connection.send_msg(None, 1, print, encoder=lambda *_, **__: b"batch")
    assert pushed == [b"batch"]
