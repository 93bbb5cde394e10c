"""The hot loops under a clock that moves only when a loop sleeps or the system takes its time."""

import itertools
import time
from dataclasses import dataclass, field

import pytest

from perf.load.clock import MonotonicClock
from perf.load.engine.loops import PRELOAD_ATTEMPTS, Loop, OperationStream, SendSpan
from perf.load.engine.recorder import Log
from perf.load.engine.tasks.task import Task
from perf.model.errors import StepFailed
from perf.model.records import Answer


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

    Operation numbers are all that is sent.
    """

    clock: VirtualClock
    takes_s: dict[int, float] = field(default_factory=dict)
    fails: dict[int, int] = field(default_factory=dict)
    answers: dict[int, Answer] = field(default_factory=dict)
    sent: list[int] = field(default_factory=list)
    slow_to_prepare: dict[int, float] = field(default_factory=dict)

    def prepare(self, number: int) -> int:
        self.clock.time_s += self.slow_to_prepare.get(number, 0.0)
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


def make_loop(script: Script, count: int | None = None, end_s: float = 1.0) -> Loop:
    stream = OperationStream(
        Task(prepare=script.prepare, send=script.send, judge=script.judge, describe=script.describe),
        Log(),
    )
    return Loop(
        choose=lambda _: stream,
        classify=script.classify,
        numbers=itertools.count() if count is None else iter(range(count)),
        clock=script.clock,
        span=SendSpan(0.0, end_s),
    )


def completed(loop: Loop) -> list[tuple[float, float, float]]:
    times_s = iter(loop.choose(0).log.completed)
    return list(zip(times_s, times_s, times_s, strict=True))


def sent(loop: Loop) -> list[tuple[float, float, float]]:
    times_s = iter(loop.choose(0).log.sent)
    return list(zip(times_s, times_s, times_s, strict=True))


def times_ms(loop: Loop) -> tuple[list[int], list[int]]:
    response = [round((end - intended) * 1000) for intended, _, end in completed(loop)]
    service = [round((end - sent) * 1000) for _, sent, end in completed(loop)]
    return response, service


def run_open(loop: Loop, drain_s: float = 2.0) -> None:
    loop.run_open(iter(range(len(STARTS))), STARTS, drain_s)


STARTS = [number / 100 for number in range(300)]


def test_a_stall_shows_in_the_response_times_of_all_who_waited_behind_it() -> None:
    loop = make_loop(Script(VirtualClock(), takes_s={50: 0.3}))
    run_open(loop)
    response, service = times_ms(loop)
    assert len(response) == 100
    assert [place for place, one in enumerate(service) if one > 1] == [50]
    assert response[49:54] == [1, 300, 291, 282, 273]
    assert sum(one > 1 for one in response) == 34  # 0.3 s at 100/s, and while catching up
    assert service[50] == response[50] == 300
    # It was the system, not the client, that was late: whoever waited could not be sent before.
    assert all(sent_s == ready_s for _, ready_s, sent_s in sent(loop))
    assert sum(ready_s > intended_s for intended_s, ready_s, _ in sent(loop)) == 33


def test_what_the_client_itself_loses_is_lateness() -> None:
    script = Script(VirtualClock())
    script.slow_to_prepare[50] = 0.0255
    loop = make_loop(script)
    run_open(loop)
    late_ms = [round((sent_s - ready_s) * 1000, 1) for _, ready_s, sent_s in sent(loop)]
    # The next one found the only slot taken, by one that was late: that is the client's doing too.
    assert late_ms[49:54] == [0.0, 16.5, 7.5, 0.0, 0.0]
    assert not [place for place, one in enumerate(sent(loop)) if one[1] > one[0]]


def test_all_that_a_pause_of_the_client_delays_is_late_and_not_held() -> None:
    script = Script(VirtualClock(), takes_s=dict.fromkeys(range(50, 90), 0.009))
    script.slow_to_prepare[50] = 0.21
    loop = make_loop(script)
    run_open(loop)
    late_s = [sent_s - ready_s for _, ready_s, sent_s in sent(loop)]
    # It catches up by 1 ms per operation only, through its one slot; none of that is the system's.
    assert late_s[50:88] == pytest.approx([0.201 - place / 1000 for place in range(38)])
    assert not [place for place, one in enumerate(sent(loop)) if one[1] > one[0] + 1e-9]


def test_an_end_that_comes_nearer_ends_the_loop_even_before_a_late_start() -> None:
    class TellingClock(VirtualClock):
        def sleep_until(self, time_s: float) -> None:
            super().sleep_until(time_s)
            if self.time_s > 0.4:
                loop.span.end_s = 0.5

    script = Script(TellingClock())
    loop = make_loop(script, end_s=1000.0)
    loop.run_open(iter(range(2)), [0.0, 900.0], 2.0)
    assert script.sent == [0]
    assert script.clock.now() < 1.0


def test_a_closed_loop_hides_the_same_stall() -> None:
    loop = make_loop(Script(VirtualClock(), takes_s={50: 0.3}))
    loop.run_closed()
    response, service = times_ms(loop)
    assert response == service
    assert sum(one > 1 for one in response) == 1


def test_an_open_loop_starts_operations_when_they_are_due() -> None:
    loop = make_loop(Script(VirtualClock()), end_s=0.1)
    run_open(loop)
    assert [intended for intended, _, _ in completed(loop)] == STARTS[:10]
    assert sent(loop) == [(start_s, start_s, start_s) for start_s in STARTS[:10]]


def test_overdue_operations_are_still_sent_until_the_drain_ends() -> None:
    script = Script(VirtualClock(), takes_s=dict.fromkeys(range(100), 0.1))
    loop = make_loop(script, end_s=0.5)
    run_open(loop, drain_s=1.5)
    assert script.sent == list(range(20))  # of 50 that were due
    assert all(intended < 0.5 for intended, _, _ in completed(loop))


def test_a_closed_loop_begins_at_zero_and_sends_nothing_at_the_end() -> None:
    loop = make_loop(Script(VirtualClock()), end_s=0.1)
    loop.run_closed()
    assert loop.choose(0).log.begun[0] == 0.0
    assert max(loop.choose(0).log.begun) < 0.1
    assert len(loop.choose(0).log.begun) == len(completed(loop)) == 100


def test_failures_and_misses_are_counted_apart_from_times() -> None:
    script = Script(
        VirtualClock(),
        fails={3: 1, 4: 1},
        answers={5: Answer.NOT_FOUND, 6: Answer.WRONG_DATA},
    )
    loop = make_loop(script, end_s=0.02)
    loop.run_closed()
    kinds = [kind for _, _, kind in loop.choose(0).log.failed]
    assert kinds == ["error:ValueError", "error:ValueError", "not_found", "wrong_data"]
    assert len(completed(loop)) + len(loop.choose(0).log.failed) == len(loop.choose(0).log.begun)
    assert loop.choose(0).log.examples["error:ValueError"] == "operation 3: ValueError(3)"


def test_a_preload_repeats_what_failed_with_growing_pauses() -> None:
    script = Script(VirtualClock(), fails={1: 2})
    loop = make_loop(script, count=3)
    loop.run_to_completion()
    assert script.sent == [0, 1, 1, 1, 2]
    assert script.clock.time_s == pytest.approx(5 * 0.001 + 0.1 + 0.2)
    assert len(completed(loop)) == 3


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
