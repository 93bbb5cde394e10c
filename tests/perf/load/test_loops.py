"""The hot loops under a clock that moves only when a loop sleeps or the system takes its time."""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from perf.design import Sensor
from perf.errors import StepFailed
from perf.load.loops import PRELOAD_ATTEMPTS, Loop, MonotonicClock
from perf.load.recorder import ThreadLog
from perf.load.schedule import UniformArrivals
from perf.workloads.sensor import Answer, Reading


@dataclass
class VirtualClock:
    """Time that passes without waiting."""

    time_s: float = -1.0

    def now(self) -> float:
        return self.time_s

    def sleep_until(self, time_s: float) -> None:
        self.time_s = max(self.time_s, time_s)


@dataclass
class Script:
    """A system that takes 1 ms for each operation, but longer or fails where it is told to.

    It is task and session at once: operation numbers are all that is sent.
    """

    clock: VirtualClock
    takes_s: dict[int, float] = field(default_factory=dict)
    fails: dict[int, int] = field(default_factory=dict)
    answers: dict[int, Answer] = field(default_factory=dict)
    sent: list[int] = field(default_factory=list)

    def prepare(self, number: int) -> int:
        return number

    def send(self, prepared: int) -> None:
        self.sent.append(prepared)
        self.clock.time_s += self.takes_s.get(prepared, 0.001)
        if self.fails.get(prepared, 0):
            self.fails[prepared] -= 1
            raise ValueError(prepared)

    def judge(self, prepared: int, reply: None) -> Answer:
        return self.answers.get(prepared, Answer.COMPLETED)

    def describe(self, prepared: int) -> str:
        return f"operation {prepared}"

    def classify(self, error: Exception) -> str:
        return f"error:{type(error).__name__}"

    def create_schema(self, records: Sensor) -> None:
        """Is never called."""

    def write(self, reading: Reading) -> None:
        """Is never called."""

    def read_latest(self, device_id: str, count: int) -> Sequence[Reading]:
        return ()

    def count(self) -> int:
        return 0


def make_loop(script: Script, count: int | None = None) -> Loop[int, None]:
    numbers = itertools.count() if count is None else iter(range(count))
    return Loop(task=script, session=script, numbers=numbers, clock=script.clock, log=ThreadLog())


def times_ms(loop: Loop[int, None]) -> tuple[list[int], list[int]]:
    response = [round((end - intended) * 1000) for intended, _, end in loop.log.completed]
    service = [round((end - sent) * 1000) for _, sent, end in loop.log.completed]
    return response, service


SCHEDULE = UniformArrivals(offered_load_ops_per_s=100.0, engine_index=0, engine_count=1)


def test_a_stall_shows_in_the_response_times_of_all_who_waited_behind_it() -> None:
    loop = make_loop(Script(VirtualClock(), takes_s={50: 0.3}))
    loop.run_open(SCHEDULE, 1.0, 3.0)
    response, service = times_ms(loop)
    assert len(response) == 100
    assert [place for place, one in enumerate(service) if one > 1] == [50]
    assert response[49:54] == [1, 300, 291, 282, 273]
    assert sum(one > 1 for one in response) == 34  # 0.3 s at 100/s, and while catching up
    assert service[50] == response[50] == 300


def test_a_closed_loop_hides_the_same_stall() -> None:
    loop = make_loop(Script(VirtualClock(), takes_s={50: 0.3}))
    loop.run_closed(1.0)
    response, service = times_ms(loop)
    assert response == service
    assert sum(one > 1 for one in response) == 1


def test_an_open_loop_starts_operations_when_they_are_due() -> None:
    loop = make_loop(Script(VirtualClock()))
    loop.run_open(SCHEDULE, 0.1, 1.0)
    assert [intended for intended, _, _ in loop.log.completed] == [n / 100 for n in range(10)]
    assert [sent for _, sent, _ in loop.log.completed] == [n / 100 for n in range(10)]


def test_overdue_operations_are_still_sent_until_the_drain_ends() -> None:
    script = Script(VirtualClock(), takes_s=dict.fromkeys(range(100), 0.1))
    loop = make_loop(script)
    loop.run_open(SCHEDULE, 0.5, 2.0)
    assert script.sent == list(range(20))  # of 50 that were due
    assert all(intended < 0.5 for intended, _, _ in loop.log.completed)


def test_a_closed_loop_begins_at_zero_and_sends_nothing_at_the_end() -> None:
    loop = make_loop(Script(VirtualClock()))
    loop.run_closed(0.1)
    assert loop.log.begun[0] == 0.0
    assert max(loop.log.begun) < 0.1
    assert len(loop.log.begun) == len(loop.log.completed) == 100


def test_failures_and_misses_are_counted_apart_from_times() -> None:
    script = Script(
        VirtualClock(),
        fails={3: 1, 4: 1},
        answers={5: Answer.NOT_FOUND, 6: Answer.WRONG_DATA},
    )
    loop = make_loop(script)
    loop.run_closed(0.02)
    kinds = [kind for _, kind in loop.log.failed]
    assert kinds == ["error:ValueError", "error:ValueError", "not_found", "wrong_data"]
    assert len(loop.log.completed) + len(loop.log.failed) == len(loop.log.begun)
    assert loop.log.examples["error:ValueError"] == "operation 3: ValueError(3)"


def test_a_preload_repeats_what_failed_with_growing_pauses() -> None:
    script = Script(VirtualClock(), fails={1: 2})
    loop = make_loop(script, count=3)
    loop.run_to_completion()
    assert script.sent == [0, 1, 1, 1, 2]
    assert script.clock.time_s == pytest.approx(5 * 0.001 + 0.1 + 0.2)
    assert len(loop.log.completed) == 3


def test_a_preload_that_cannot_be_complete_fails_loudly() -> None:
    script = Script(VirtualClock(), fails={1: 1000})
    loop = make_loop(script, count=3)
    with pytest.raises(StepFailed, match=r"operation 1 did not succeed in 6 attempts.*ValueError"):
        loop.run_to_completion()
    assert script.sent == [0, *[1] * PRELOAD_ATTEMPTS]


def test_the_real_clock_wakes_on_time_and_never_early() -> None:
    clock = MonotonicClock(time.time() - 10.0)
    assert clock.now() == pytest.approx(10.0, abs=1.0)
    due_s = clock.now() + 0.02
    clock.sleep_until(due_s)
    assert clock.now() >= due_s
    clock.sleep_until(0.0)
