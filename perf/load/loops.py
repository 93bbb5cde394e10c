"""The hot loops: one call is one thread's share of a closed loop, an open loop or a preload.

Time is an argument, so that tests run them in no time and to the microsecond. What an operation is
stands in `tasks`; histograms and counters belong to `recorder`.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Protocol

from perf.errors import StepFailed
from perf.load.recorder import ThreadLog
from perf.load.schedule import UniformArrivals
from perf.load.tasks import Prepared, Reply, Task
from perf.systems.contract import SensorSession
from perf.workloads.sensor import Answer

PRELOAD_ATTEMPTS = 6
_FIRST_PAUSE_S = 0.1


class Clock(Protocol):
    """Seconds from the start of the first phase; negative before it."""

    def now(self) -> float:
        """Give the time."""
        ...

    def sleep_until(self, time_s: float) -> None:
        """Return at `time_s` or just after it; at once if that has passed."""
        ...


class MonotonicClock:
    """The real clock; a step of the host's time while it runs does not move it."""

    def __init__(self, start_at_s: float) -> None:
        """Count from `start_at_s` (Unix time)."""
        self._origin = time.perf_counter() + start_at_s - time.time()

    def now(self) -> float:
        """Give the time."""
        return time.perf_counter() - self._origin

    def sleep_until(self, time_s: float) -> None:
        """Sleep; this wakes about 0.1 ms late where a core is free."""
        while (rest_s := time_s - self.now()) > 0:
            time.sleep(rest_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop(Generic[Prepared, Reply]):
    """What one thread needs. `numbers` is shared by all threads of the engine."""

    task: Task[Prepared, Reply]
    session: SensorSession
    numbers: Iterator[int]
    clock: Clock
    log: ThreadLog

    def run_closed(self, end_s: float) -> None:
        """Send one operation after the other until `end_s`; each is intended when it is sent."""
        self.clock.sleep_until(0.0)
        for number in self.numbers:
            prepared = self.task.prepare(number)
            sent_s = self.clock.now()
            if sent_s >= end_s:
                return
            self.log.begun.append(sent_s)
            self._perform(prepared, sent_s, sent_s)

    def run_open(self, schedule: UniformArrivals, end_s: float, drain_s: float) -> None:
        """Send operations at their intended starts, or as soon after as this thread is free.

        What is overdue at `end_s` is still sent until `drain_s`; what is left then counts as never
        answered, which the recorder knows from the schedule.
        """
        for number in self.numbers:
            intended_s = schedule.intended_start_s(number)
            if intended_s >= end_s:
                return
            prepared = self.task.prepare(number)
            self.clock.sleep_until(intended_s)
            sent_s = self.clock.now()
            if sent_s >= drain_s:
                return
            self._perform(prepared, intended_s, sent_s)

    def run_to_completion(self) -> None:
        """Perform every operation, each in a bounded number of attempts with growing pauses.

        Raises:
            StepFailed: one could not be completed; what failed it is in the message.

        """
        self.clock.sleep_until(0.0)
        for number in self.numbers:
            prepared = self.task.prepare(number)
            failure: str | None = None
            for attempt in range(PRELOAD_ATTEMPTS):
                if attempt:
                    self.clock.sleep_until(self.clock.now() + _FIRST_PAUSE_S * 2 ** (attempt - 1))
                sent_s = self.clock.now()
                self.log.begun.append(sent_s)
                failure = self._perform(prepared, sent_s, sent_s)
                if failure is None:
                    break
            else:
                what = self.task.describe(prepared)
                why = f"{what} did not succeed in {PRELOAD_ATTEMPTS} attempts; the last: {failure}"
                raise StepFailed("load", "the load engine", why)

    def _perform(self, prepared: Prepared, intended_s: float, sent_s: float) -> str | None:
        """Do one operation and note how it ended; give the message of its failure, if it failed."""
        try:
            reply = self.task.send(prepared)
        except Exception as error:  # noqa: BLE001  a driver may raise anything; the session names it
            return self._note(intended_s, self.session.classify(error), prepared, repr(error))
        ended_s = self.clock.now()
        worth = self.task.judge(prepared, reply)
        if worth is Answer.COMPLETED:
            self.log.completed.append((intended_s, sent_s, ended_s))
            return None
        return self._note(intended_s, worth.value, prepared, repr(reply)[:200])

    def _note(self, intended_s: float, kind: str, prepared: Prepared, found: str) -> str:
        self.log.failed.append((intended_s, kind))
        message = f"{self.task.describe(prepared)}: {found}"
        self.log.examples.setdefault(kind, message)
        return message
