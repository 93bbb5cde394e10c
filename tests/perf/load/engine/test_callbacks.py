"""The loops on calls that answer later, under a clock of their own, answered at once or never."""

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from perf.load.engine.callbacks import ClosedCalls, OpenCalls
from perf.load.engine.loops import Loop, OperationStream, SendSpan
from perf.load.engine.recorder import Log
from perf.load.engine.tasks.task import Task

Done = Callable[[None, Exception | None], None]


@dataclass
class Server:
    """Task, clock and driver at once: time moves when a loop sleeps, or when it answers."""

    time_s: float = -1.0
    waiting: list[Done] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    deepest: int = 0
    answers_at_once: bool = True
    error: Exception | None = None
    depth: int = 0

    def now(self) -> float:
        return self.time_s

    def sleep_until(self, time_s: float) -> None:
        self.time_s = max(self.time_s, time_s)

    def prepare(self, number: int) -> int:
        return number

    def send(self, prepared: int) -> None:
        """Is never called."""

    def describe(self, prepared: int) -> str:
        return f"operation {prepared}"

    def classify(self, error: Exception) -> str:
        return f"error:{type(error).__name__}"

    def call(self, prepared: int, done: Done) -> None:
        self.sent.append(prepared)
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        if self.answers_at_once:
            self.time_s += 0.001
            done(None, self.error)
        else:
            self.waiting.append(done)
        self.depth -= 1

    def answer(self, after_s: float = 0.0) -> None:
        self.time_s += after_s
        self.waiting.pop(0)(None, self.error)


def fail(defect: Exception) -> None:
    raise defect


def make_loop(server: Server, end_s: float, call: Callable[[int, Done], None] | None = None) -> Loop:
    task = Task(prepare=server.prepare, send=server.send, describe=server.describe)
    stream = OperationStream(task, Log(), call or server.call)
    return Loop(
        choose=lambda _: stream,
        classify=server.classify,
        numbers=itertools.count(),
        clock=server,
        span=SendSpan(0.0, end_s),
    )


def make_closed(server: Server, end_s: float) -> tuple[ClosedCalls, Log]:
    loop = make_loop(server, end_s)
    return ClosedCalls(loop, fail), log_of(loop)


def log_of(loop: Loop) -> Log:
    return loop.choose(0).log


def triples(flat: list[float]) -> list[tuple[float, float, float]]:
    times_s = iter(flat)
    return [
        (round(one, 6), round(two, 6), round(three, 6))
        for one, two, three in zip(times_s, times_s, times_s, strict=True)
    ]


def test_answers_from_within_the_call_do_not_grow_the_stack() -> None:
    server = Server(time_s=0.0)
    calls, log = make_closed(server, 5.0)
    calls.run()
    assert server.sent == list(range(5000))
    assert server.deepest == 1
    assert calls.is_idle
    assert len(log.begun) * 3 == len(log.completed) == 15_000


def test_each_answer_sends_the_next() -> None:
    server = Server(time_s=0.0, answers_at_once=False)
    calls, log = make_closed(server, 1.0)
    calls.run()
    assert server.sent == [0]
    for _ in range(4):
        server.answer(0.25)
        assert len(server.waiting) <= 1
    assert server.sent == [0, 1, 2, 3]
    assert calls.is_idle
    assert triples(log.completed)[2] == (0.5, 0.5, 0.75)


def test_an_answer_from_another_thread_before_the_call_returns_sends_once() -> None:
    server = Server(time_s=0.0)
    calls, log = make_closed(server, 1000.0)
    finished = threading.Event()

    def call(prepared: int, done: Done) -> None:
        server.sent.append(prepared)
        if prepared == 2000:
            finished.set()
            return
        thread = threading.Thread(target=done, args=(None, None))
        thread.start()
        if prepared % 2:  # else whichever comes first
            thread.join()

    calls = ClosedCalls(make_loop(server, 1000.0, call), fail)
    calls.run()
    assert finished.wait(60)
    assert server.sent == list(range(2001))
    assert log.examples == {}


def test_an_open_loop_knows_when_a_slot_became_free() -> None:
    server = Server(answers_at_once=False)

    def call(prepared: int, done: Done) -> None:
        server.call(prepared, done)
        if prepared == 1:
            server.answer(0.007)  # the first is answered at 0.017, when both slots were taken
            server.answer(0.008)  # and the second at 0.025, after the third was due

    loop = make_loop(server, 0.035, call)
    calls = OpenCalls(loop, 2, fail)
    calls.run([0.0, 0.01, 0.02, 0.03, 0.04], 1.0)
    # Intended, ready, sent. The third could go at 0.02 (a slot was free since 0.017) and went at
    # 0.025: it was late. The fourth was on time; the fifth lies behind the end.
    assert triples(log_of(loop).sent) == [
        (0.0, 0.0, 0.0),
        (0.01, 0.01, 0.01),
        (0.02, 0.02, 0.025),
        (0.03, 0.03, 0.03),
    ]
    assert triples(log_of(loop).completed) == [(0.0, 0.0, 0.017), (0.01, 0.01, 0.025)]
    assert not calls.is_idle
    while server.waiting:
        server.answer()
    assert calls.is_idle


def test_an_operation_that_waits_for_a_slot_is_held() -> None:
    server = Server(answers_at_once=False)

    def call(prepared: int, done: Done) -> None:
        server.call(prepared, done)
        server.answer(0.015)  # the only slot is taken for longer than the gap to the next

    loop = make_loop(server, 0.05, call)
    OpenCalls(loop, 1, fail).run([0.0, 0.01, 0.02], 1.0)
    assert triples(log_of(loop).sent) == [(0.0, 0.0, 0.0), (0.01, 0.015, 0.015), (0.02, 0.03, 0.03)]


def test_what_is_overdue_is_dropped_when_the_drain_is_over() -> None:
    class Late(Server):
        def now(self) -> float:
            return self.time_s + (1.0 if len(self.sent) == 2 else 0.0)

    server = Late(answers_at_once=False)
    OpenCalls(make_loop(server, 0.05), 2, fail).run([0.0, 0.01, 0.02], 0.5)
    assert server.sent == [0, 1]


@pytest.mark.parametrize("is_open", [False, True])
def test_errors_are_noted_with_an_example(*, is_open: bool) -> None:
    server = Server(time_s=0.0, error=OSError("gone"))
    loop = make_loop(server, 0.01)
    if is_open:
        OpenCalls(loop, 1, fail).run([0.0, 0.002, 0.004], 1.0)
    else:
        ClosedCalls(loop, fail).run()
    assert {kind for *_, kind in log_of(loop).failed} == {"error:OSError"}
    assert len(log_of(loop).failed) == len(server.sent) > 2
    assert log_of(loop).examples == {"error:OSError": "operation 0: OSError('gone')"}
    assert log_of(loop).completed == []
