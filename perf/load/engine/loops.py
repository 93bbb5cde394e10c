"""The hot loops on blocking calls: one call is one thread's share of a stage or a preload.

Time is an argument, so that tests run them in no time and to the microsecond. What an operation is
stands in `tasks`; histograms and counters belong to `recorder`. Drivers that call back instead of
blocking have loops of their own, in `callbacks`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from perf.load.clock import Clock
from perf.load.engine.recorder import Log
from perf.load.engine.tasks.task import Soon, Task
from perf.model.errors import StepFailed
from perf.model.records import Answer

PRELOAD_ATTEMPTS = 6
NAP_S = 0.25
"""The longest sleep: how soon an idle loop notices that its stage ends earlier than it could have."""
_FIRST_PAUSE_S = 0.1


@dataclass(slots=True)
class SendSpan:
    """From when to when a stage starts operations. Its end may come nearer, never move away."""

    begin_s: float
    end_s: float


@dataclass(slots=True)
class Lag:
    """How far a sender was behind its schedule, by its own doing, when it last had a free slot."""

    _last_s: float = field(init=False, default=0.0)

    def find_ready(self, intended_s: float, freed_s: float, sent_s: float) -> float:
        """Return the moment from which the lateness of a send counts.

        That is the intended start, or the moment when a slot was free, if that is later. But a client
        that paused catches up in a burst, which takes all slots: what then waits for one waits for the
        client, not for the system. Had the client not been late, each slot would have been taken, and
        so been free again, earlier by its lag.
        """
        if freed_s <= intended_s:
            self._last_s = sent_s - intended_s
            return intended_s
        return max(intended_s, freed_s - self._last_s)


def _cannot(_: object, __: object) -> None:
    raise AssertionError("only a load whose every operation answers later is driven by callbacks")


@dataclass(frozen=True, slots=True)
class OperationStream:
    """One of the operations that a load consists of: how it is done, and the log of it alone."""

    task: Task[Any, Any]
    log: Log
    soon: Soon[Any, Any] = _cannot
    """How it is sent without waiting, where every operation of the load can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """What one thread needs. `numbers` is shared by all threads of the engine, and by all stages.

    `choose` gives the stream of an operation number.
    """

    choose: Callable[[int], OperationStream]
    classify: Callable[[Exception], str]
    numbers: Iterator[int]
    clock: Clock
    span: SendSpan
    lag: Lag = field(default_factory=Lag)

    def run_closed(self) -> None:
        """Send one operation after the other until the span ends; each is intended when it is sent."""
        self.clock.sleep_until(self.span.begin_s)
        for number in self.numbers:
            stream = self.choose(number)
            prepared = stream.task.prepare(number)
            sent_s = self.clock.now()
            if sent_s >= self.span.end_s:
                return
            stream.log.begun.append(sent_s)
            self._perform(stream, prepared, sent_s, sent_s)

    def run_open(self, places: Iterator[int], starts: Sequence[float], drain_s: float) -> None:
        """Send operations at their intended starts, or as soon after as this thread is free.

        `starts` is the engine's schedule, in seconds from the span's begin, and `places` the places in
        it that no thread has taken yet. What is overdue at the end of the span is still sent within
        `drain_s`; what is left then counts as never answered, which the recorder knows from the
        schedule.
        """
        freed_s = -math.inf
        for place in places:
            intended_s = self.span.begin_s + starts[place]
            number = next(self.numbers)
            stream = self.choose(number)
            prepared = stream.task.prepare(number)
            sent_s = self.await_start(intended_s)
            if intended_s >= self.span.end_s or sent_s >= self.span.end_s + drain_s:
                return
            ready_s = self.lag.find_ready(intended_s, freed_s, sent_s)
            stream.log.sent.extend((intended_s, ready_s, sent_s))
            freed_s, _ = self._perform(stream, prepared, intended_s, sent_s)

    def run_to_completion(self) -> None:
        """Perform every operation, each in a bounded number of attempts with growing pauses.

        Raises:
            StepFailed: one could not be completed; what failed it is in the message.

        """
        self.clock.sleep_until(self.span.begin_s)
        for number in self.numbers:
            stream = self.choose(number)
            prepared = stream.task.prepare(number)
            failure: str | None = None
            for attempt in range(PRELOAD_ATTEMPTS):
                if attempt:
                    self.clock.sleep_until(self.clock.now() + _FIRST_PAUSE_S * 2 ** (attempt - 1))
                sent_s = self.clock.now()
                stream.log.begun.append(sent_s)
                _, failure = self._perform(stream, prepared, sent_s, sent_s)
                if failure is None:
                    break
            else:
                what = stream.task.describe(prepared)
                why = f"{what} did not succeed in {PRELOAD_ATTEMPTS} attempts; the last: {failure}"
                raise StepFailed("load", "the load engine", why)

    def await_start(self, intended_s: float) -> float:
        """Sleep until an intended start, or until the span ends before it; give the time then."""
        now_s = self.clock.now()
        while now_s < intended_s < self.span.end_s:
            self.clock.sleep_until(min(intended_s, now_s + NAP_S))
            now_s = self.clock.now()
        return now_s

    def note(
        self,
        stream: OperationStream,
        prepared: Any,  # noqa: ANN401  what the stream's task made ready
        times_s: tuple[float, float, float],
        reply: Any,  # noqa: ANN401  what its driver answered
    ) -> str | None:
        """Judge an answer and note how the operation ended; give the message of a failure.

        `times_s` are its intended start, send and end.
        """
        outcome = stream.task.judge(prepared, reply)
        if outcome is Answer.COMPLETED:
            stream.log.completed.extend(times_s)
            return None
        return _note_failure(stream, prepared, times_s, outcome.value, repr(reply)[:200])

    def note_error(
        self,
        stream: OperationStream,
        prepared: Any,  # noqa: ANN401  what the stream's task made ready
        times_s: tuple[float, float, float],
        error: Exception,
    ) -> str:
        """Note an operation that ended with an error; give the message."""
        return _note_failure(stream, prepared, times_s, self.classify(error), repr(error))

    def _perform(
        self,
        stream: OperationStream,
        prepared: Any,  # noqa: ANN401  what the stream's task made ready
        intended_s: float,
        sent_s: float,
    ) -> tuple[float, str | None]:
        """Do one operation; give when it ended, and the message of its failure, if it failed."""
        try:
            reply = stream.task.send(prepared)
        except Exception as error:  # noqa: BLE001  a driver may raise anything; the session names it
            ended_s = self.clock.now()
            return ended_s, self.note_error(stream, prepared, (intended_s, sent_s, ended_s), error)
        ended_s = self.clock.now()
        return ended_s, self.note(stream, prepared, (intended_s, sent_s, ended_s), reply)


def _note_failure(
    stream: OperationStream,
    prepared: Any,  # noqa: ANN401  what the stream's task made ready
    times_s: tuple[float, float, float],
    kind: str,
    found: str,
) -> str:
    intended_s, _, ended_s = times_s
    stream.log.failed.append((intended_s, ended_s, kind))
    message = f"{stream.task.describe(prepared)}: {found}"
    stream.log.examples.setdefault(kind, message)
    return message
