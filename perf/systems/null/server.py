"""One null server: `python -m perf.systems.null.server CONFIG`, one thread with one event loop.

It answers each operation when its `Behaviour` says so, and stores nothing but two sums. SIGTERM ends
it; if it was told to keep a record, that is on disk then.
"""

import ctypes
import heapq
import json
import math
import select
import signal
import socket
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from perf.systems.null.behaviour import AnswerSchedule, Behaviour, read_behaviour
from perf.systems.null.record import Record
from perf.systems.null.wire import ANSWER, PORT, REQUEST, RequestKind, Status

_RECEIVE_BYTES = 1 << 16
_BACKLOG = 512
_PR_SET_TIMERSLACK = 29
_TIMER_SLACK_NS = 1000


@dataclass(slots=True)
class _Peer:
    """One client's connection; `rest` is the beginning of a request whose end has not come yet."""

    peer: socket.socket
    rest: bytes = b""

    def receive(self) -> bytes | None:
        """Return the whole requests that have come, or None once the client has gone."""
        try:
            data = self.peer.recv(_RECEIVE_BYTES)
        except OSError:
            return None
        if not data:
            return None
        data = self.rest + data
        whole = len(data) - len(data) % REQUEST.size
        self.rest = data[whole:]
        return data[:whole]


class _Due(NamedTuple):
    """An operation that is to be answered when it is due. Places differ, so none compares further."""

    due_s: float
    place: int
    arrived_s: float
    fileno: int
    request: tuple[int, int, int, int, int, int]
    is_refused: bool


class NullServer:
    """Serves until it is told to end, between two operations and never within one."""

    def __init__(self, address: str, port: int, behaviour: Behaviour) -> None:
        """Listen; raise OSError where that is not possible."""
        self.record = Record()
        self._behaviour = behaviour
        self._answer_schedule = AnswerSchedule(behaviour)
        self._waiting: list[_Due] = []
        self._connections: dict[int, _Peer] = {}
        self._rows = self._bytes = 0
        self._listener = socket.create_server((address, port), backlog=_BACKLOG)
        self._listener.settimeout(0)
        self._end, self.wake = socket.socketpair()
        self.wake.settimeout(0)
        self._events = select.epoll()
        self._events.register(self._end.fileno(), select.EPOLLIN)
        self._events.register(self._listener.fileno(), select.EPOLLIN)

    def serve(self) -> None:
        """Answer until a byte is written to `wake`."""
        while True:
            due_s = self._waiting[0].due_s if self._waiting else math.inf
            rest_s = None if math.isinf(due_s) else due_s - time.perf_counter()
            if rest_s is None or rest_s > 0:
                # epoll itself waits in whole milliseconds; select on it, in microseconds.
                select.select([self._events], (), (), rest_s)
            for fileno, _ in self._events.poll(0):
                if fileno == self._end.fileno():
                    self._note([*self._waiting], math.inf)
                    return
                if fileno == self._listener.fileno():
                    self._accept()
                else:
                    self._receive(fileno)
            self._answer_due()

    def _accept(self) -> None:
        peer, _ = self._listener.accept()
        peer.settimeout(0)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections[peer.fileno()] = _Peer(peer)
        self._events.register(peer.fileno(), select.EPOLLIN)

    def _drop(self, fileno: int) -> None:
        self._events.unregister(fileno)
        self._connections.pop(fileno).peer.close()
        # Its number may belong to the next client soon.
        self._note([one for one in self._waiting if one.fileno == fileno], math.inf)
        self._waiting = [one for one in self._waiting if one.fileno != fileno]
        heapq.heapify(self._waiting)

    def _receive(self, fileno: int) -> None:
        requests = self._connections[fileno].receive()
        if requests is None:
            self._drop(fileno)
            return
        arrived_s = time.perf_counter()
        for request in REQUEST.iter_unpack(requests):
            if request[1] == RequestKind.STORED:
                answer = ANSWER.pack(request[0], Status.DONE, self._rows, self._bytes)
                self._send(fileno, answer)
                continue
            plan = self._answer_schedule.decide(arrived_s)
            waiting = _Due(
                plan.due_s,
                self._answer_schedule.operations,
                arrived_s,
                fileno,
                request,
                plan.is_refused,
            )
            heapq.heappush(self._waiting, waiting)

    def _answer_due(self) -> None:
        now_s = time.perf_counter()
        due: defaultdict[int, list[_Due]] = defaultdict(list)
        while self._waiting and self._waiting[0].due_s <= now_s:
            one = heapq.heappop(self._waiting)
            due[one.fileno].append(one)
        for fileno, answered in due.items():
            self._send(fileno, b"".join(map(self._acknowledge, answered)))
            self._note(answered, time.perf_counter())

    def _acknowledge(self, one: _Due) -> bytes:
        number, kind, rows, size, _, _ = one.request
        if one.is_refused:
            return ANSWER.pack(number, Status.REFUSED, 0, 0)
        if kind == RequestKind.WRITE:
            self._rows += rows
            self._bytes += size
        return ANSWER.pack(number, Status.DONE, 0, 0)

    def _note(self, ended: list[_Due], answered_s: float) -> None:
        if self._behaviour.keep_record:
            for one in ended:
                device, ts_ms = one.request[4:]
                line = (one.arrived_s, one.due_s, answered_s, one.is_refused, device, ts_ms)
                self.record.append(line)

    def _send(self, fileno: int, data: bytes) -> None:
        try:
            sent = self._connections[fileno].peer.send(data)
        except OSError:
            sent = 0
        if sent < len(data):  # a client that does not read its answers
            self._drop(fileno)


def _main(path: Path) -> None:
    config = json.loads(path.read_text())
    behaviour = read_behaviour(config["settings"], str(path))
    # Linux lets a timer fire 50 µs late by default, to save power.
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, _TIMER_SLACK_NS, 0, 0, 0)
    server = NullServer(config["address"], PORT, behaviour)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.set_wakeup_fd(server.wake.fileno())
    sys.stderr.write(f"serving on {config['address']}:{PORT}\n")
    sys.stderr.flush()
    unix_minus_clock_s = time.time() - time.perf_counter()
    server.serve()
    if behaviour.keep_record:
        server.record.write(Path(config["record"]), unix_minus_clock_s)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
