"""The hot loops on calls that answer later: one thread sends, the driver's own threads note the ends.

They do what `loops` does, without a waiting thread per operation. An operation in flight occupies one
of the engine's slots, and the moment at which a slot was free again is known exactly.
"""

import itertools
import math
import queue
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from perf.load.engine.loops import NAP_S, Loop, OperationStream


class OpenCalls:
    """An open loop: `run` is the sender's thread, which waits for intended starts and free slots."""

    def __init__(
        self,
        loop: Loop,
        in_flight: int,
        fail: Callable[[Exception], None],
    ) -> None:
        """Free all slots. `fail` takes what is wrong with ourselves, seen in a driver's thread."""
        self._loop, self._in_flight, self._fail = loop, in_flight, fail
        # When each free slot became free, oldest first.
        self._slots: queue.SimpleQueue[float] = queue.SimpleQueue()
        for _ in range(in_flight):
            self._slots.put(-math.inf)

    @property
    def is_idle(self) -> bool:
        """Return whether every operation that was sent has ended."""
        return self._slots.qsize() == self._in_flight

    def run(self, starts: Sequence[float], drain_s: float) -> None:
        """Send operations at their intended starts, or as soon after as a slot is free.

        What is overdue at the end of the span is still sent within `drain_s`.
        """
        loop, span = self._loop, self._loop.span
        for start_s in starts:
            intended_s = span.begin_s + start_s
            number = next(loop.numbers)
            stream = loop.choose(number)
            prepared = stream.task.prepare(number)
            loop.await_start(intended_s)
            if intended_s >= span.end_s:
                return
            freed_s = self._take_slot(drain_s)
            if freed_s is None:
                return
            sent_s = loop.clock.now()
            ready_s = loop.lag.find_ready(intended_s, freed_s, sent_s)
            stream.log.sent.extend((intended_s, ready_s, sent_s))
            stream.soon(prepared, partial(self._end, stream, prepared, (intended_s, sent_s)))

    def _take_slot(self, drain_s: float) -> float | None:
        while (rest_s := self._loop.span.end_s + drain_s - self._loop.clock.now()) > 0:
            try:
                return self._slots.get(timeout=min(rest_s, NAP_S))
            except queue.Empty:
                continue
        return None

    def _end(
        self,
        stream: OperationStream,
        prepared: Any,  # noqa: ANN401  what the stream's task made ready
        begun_s: tuple[float, float],
        reply: Any,  # noqa: ANN401  a reply, if there is no error
        error: Exception | None,
    ) -> None:
        ended_s = self._loop.clock.now()
        times_s = (*begun_s, ended_s)
        _note(self._loop, self._fail, stream, prepared, times_s, reply=reply, error=error)
        self._slots.put(ended_s)


class ClosedCalls:
    """One slot of a closed loop: the end of each operation sends the next."""

    def __init__(
        self,
        loop: Loop,
        fail: Callable[[Exception], None],
    ) -> None:
        """Be ready. `fail` takes what is wrong with ourselves, seen in a driver's thread."""
        self._loop, self._fail = loop, fail
        # Each operation takes two turns: one when the call that sends it has returned, one when it is
        # answered; whichever comes second goes on. An answer from within the call therefore never
        # sends from there, and the stack does not grow. A count's step is one under the interpreter's
        # lock, so exactly one of the two is second.
        self._turns = itertools.count()
        self.is_idle = False

    def run(self) -> None:
        """Send operations until one is not answered at once, or the span ends."""
        try:
            while self._send() and next(self._turns) % 2:
                pass
        except Exception as defect:  # noqa: BLE001  handed to the main thread, which raises it
            self._fail(defect)

    def _send(self) -> bool:
        loop = self._loop
        number = next(loop.numbers, None)
        if number is None:
            self.is_idle = True
            return False
        stream = loop.choose(number)
        prepared = stream.task.prepare(number)
        sent_s = loop.clock.now()
        if sent_s >= loop.span.end_s:
            self.is_idle = True
            return False
        stream.log.begun.append(sent_s)
        stream.soon(prepared, partial(self._end, stream, prepared, sent_s))
        return True

    def _end(
        self,
        stream: OperationStream,
        prepared: Any,  # noqa: ANN401  what the stream's task made ready
        sent_s: float,
        reply: Any,  # noqa: ANN401  a reply, if there is no error
        error: Exception | None,
    ) -> None:
        ended_s = self._loop.clock.now()
        _note(
            self._loop,
            self._fail,
            stream,
            prepared,
            (sent_s, sent_s, ended_s),
            reply=reply,
            error=error,
        )
        if next(self._turns) % 2:
            self.run()


def _note(
    loop: Loop,
    fail: Callable[[Exception], None],
    stream: OperationStream,
    prepared: Any,  # noqa: ANN401  what the stream's task made ready
    times_s: tuple[float, float, float],
    *,
    reply: Any,  # noqa: ANN401  a reply, if there is no error
    error: Exception | None,
) -> None:
    """Note how an operation ended; `times_s` are its intended start, send and end."""
    try:
        if error is None:
            loop.note(stream, prepared, times_s, reply)
        else:
            loop.note_error(stream, prepared, times_s, error)
    except Exception as defect:  # noqa: BLE001  handed to the main thread, which raises it
        fail(defect)
