"""One engine's load: threads that send, and the caller's own, which folds what they note.

The stages run back to back. The caller's thread looks for MEASURE, folds once a second, and opens one
stage after the other. Each stage has threads of its own, so that the stragglers of a stage may still
end while the next one warms up.
"""

import itertools
import math
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from perf.load.clock import Clock
from perf.load.engine.callbacks import ClosedCalls, OpenCalls
from perf.load.engine.loops import Loop, SendSpan
from perf.load.engine.own_usage import OwnUsage, Used, use_between
from perf.load.engine.schedule import Share, Starts, plan_starts
from perf.load.engine.streams import MakeTasks, lay_streams
from perf.load.engine.tasks.making import make_preload_task, make_tasks
from perf.load.spec import Counted, EngineResult, LoadSpec, Preload
from perf.model.design import ClosedLoop, OpenLoop
from perf.model.errors import StepFailed
from perf.model.records import Operation
from perf.model.results import Interval
from perf.systems.sessions import Session
from perf.workloads.stages import PRELOAD

# A second is folded this long after its end, when those who ended in it have surely noted it.
_FOLD_LAG_S = 0.1
_POLL_S = 0.2
_IDLE_POLL_S = 0.02
# What was noted by now as warm-up can no longer become part of an iteration.
_LATEST_MEASURE_S = 0.05
# A warm-up that has not been told its end so long before its cap runs to its cap.
_DECIDE_S = 0.3
# Of a warm-up, for what is overdue from the stage before.
_DRAIN_SHARE = 0.25
# Beyond the operation timeout, so that a driver's own timeout is seen as what it is.
_GRACE_S = 0.5


class Output(Protocol):
    """The files of an engine, as far as a load needs them."""

    def append(self, intervals: Sequence[Interval]) -> None:
        """Keep histograms."""
        ...

    def report(self, lines: str) -> None:
        """Keep lines of PROGRESS."""
        ...

    def measure_at(self, place: int) -> float | None:
        """Return the Unix time that MEASURE holds for a stage, once it is there."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadEnvironment:
    """When a load starts (Unix time), by which clock it runs, and where its results go."""

    start_at_s: float
    clock: Clock
    output: Output


def plan_schedules(spec: LoadSpec) -> tuple[Starts | None, ...]:
    """Return the schedule of each stage, up to the longest that it may last; none for closed loops."""
    schedules: list[Starts | None] = []
    for place, stage in enumerate(spec.stages):
        share = Share(
            seed=spec.seed,
            run=spec.run,
            stage_place=place,
            engine_index=spec.engine_index,
            engine_count=spec.engine_count,
        )
        match stage.load:
            case OpenLoop():
                schedules.append(plan_starts(stage.load, share, stage.longest_s))
            case ClosedLoop():
                schedules.append(None)
    return tuple(schedules)


def run_stages(
    spec: LoadSpec,
    session: Session,
    schedules: Sequence[Starts | None],
    surroundings: LoadEnvironment,
) -> EngineResult:
    """Offer the stages of `spec` back to back, and give what was counted.

    Returns at the latest one operation timeout after the last stage, even if operations are still
    unanswered; these count as timeouts.

    Raises:
        StepFailed: MEASURE came too late to change over together with the other engines.

    """
    run = _EngineRun(spec, session, partial(make_tasks, spec, session), surroundings)
    begin_s = 0.0
    span = run.start_stage(0, schedules[0], begin_s)
    run.look_at(begin_s)
    for place, stage in enumerate(spec.stages):
        run.recorder.begin_stage(stage.phase, begin_s)
        run.second = 0
        at_s = run.warm_up(place, begin_s)
        schedule = schedules[place]
        starts = None if schedule is None else begin_s + schedule
        span.end_s = end_s = run.recorder.begin_iterations(stage, at_s, starts)
        if place + 1 < len(spec.stages):
            span = run.start_stage(place + 1, schedules[place + 1], end_s)
        run.measure(place, begin_s)
        begin_s = end_s
    run.await_idle(begin_s + spec.target.timeout_s + _GRACE_S)
    run.fold()
    return run.result()


def run_preload(
    spec: LoadSpec, preload: Preload, session: Session, surroundings: LoadEnvironment
) -> EngineResult:
    """Write this engine's share of the rows, for as long as that takes.

    Raises:
        StepFailed: a row could not be written.

    """
    task = make_preload_task(spec, session)
    run = _EngineRun(spec, session, lambda _: {Operation.WRITE: task}, surroundings)
    run.recorder.begin_stage(PRELOAD, 0.0)
    run.numbers = iter(range(spec.engine_index, preload.rows, spec.engine_count))
    loop = run.loop(SendSpan(0.0, math.inf))
    run.start([loop.run_to_completion] * preload.in_flight)
    run.look_at(0.0)
    run.fold_until_idle()
    run.look_at(0.0)
    return run.result()


def run_counted(
    spec: LoadSpec, counted: Counted, session: Session, surroundings: LoadEnvironment
) -> EngineResult:
    """Do this engine's share of so many operations in a closed loop, for as long as that takes."""
    run = _EngineRun(spec, session, partial(make_tasks, spec, session), surroundings)
    run.recorder.begin_counted(counted.phase)
    run.numbers = iter(range(spec.engine_index, counted.operations, spec.engine_count))
    run.look_at(0.0)
    run.start_closed(SendSpan(0.0, math.inf), counted.in_flight)
    run.fold_until_idle()
    run.recorder.end_counted(run.recorder.last_end_s)
    run.look_at(0.0)
    return replace(run.result(), counted_s=run.recorder.last_end_s)


class _EngineRun:
    """The threads of a load, the log that all of them append to, and looks at this process."""

    def __init__(
        self,
        spec: LoadSpec,
        session: Session,
        make_tasks: MakeTasks,
        surroundings: LoadEnvironment,
    ) -> None:
        self._spec, self._classify = spec, session.classify
        self._start_at_s = surroundings.start_at_s
        self._clock, self._output = surroundings.clock, surroundings.output
        self._lanes = lay_streams(
            make_tasks,
            spec.mix or {Operation.WRITE: 1.0},
            spec.seed,
            clock=surroundings.clock,
            start_at_s=surroundings.start_at_s,
        )
        self.recorder = self._lanes.recorder
        self.numbers: Iterator[int] = itertools.count(spec.engine_index, spec.engine_count)
        self.second = 0
        """Seconds of the stage under way that are folded."""
        self._pace_s = 1
        self._threads: list[threading.Thread] = []
        self._calls: list[ClosedCalls | OpenCalls] = []
        self._failures: list[Exception] = []
        self._own = OwnUsage()
        self._looks: list[Used] = []

    def loop(self, span: SendSpan) -> Loop:
        """Return what a thread needs that works within a span."""
        return Loop(
            choose=self._lanes.choose,
            classify=self._classify,
            numbers=self.numbers,
            clock=self._clock,
            span=span,
        )

    def start(self, bodies: Sequence[Callable[[], None]]) -> None:
        """Start a thread for each body."""
        for body in bodies:
            thread = threading.Thread(target=self._guard, args=(body,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def start_stage(self, place: int, schedule: Starts | None, begin_s: float) -> SendSpan:
        """Start the threads of a stage; they wait until it begins. Its span ends at the latest end."""
        stage = self._spec.stages[place]
        span = SendSpan(begin_s, begin_s + stage.longest_s)
        if schedule is None:
            self.start_closed(span, stage.load.in_flight)
            return span
        loop, in_flight, drain_s = self.loop(span), stage.load.in_flight, self._drain_s(place)
        # A plain array is the fastest to take single floats from.
        starts = array("d", schedule.tobytes())
        if not self._lanes.answer_later:
            places = iter(range(len(starts)))
            self.start([partial(loop.run_open, places, starts, drain_s)] * in_flight)
        else:
            calls = OpenCalls(loop, in_flight, self._failures.append)
            self._calls.append(calls)
            self.start([partial(calls.run, starts, drain_s)])
        return span

    def start_closed(self, span: SendSpan, in_flight: int) -> None:
        """Start a closed loop: in the driver's own threads where it has any, else in ours."""
        loop = self.loop(span)
        if not self._lanes.answer_later:
            self.start([loop.run_closed] * in_flight)
            return
        closed = [ClosedCalls(loop, self._failures.append) for _ in range(in_flight)]
        self._calls += closed
        self.start([partial(_begin_all, closed, self._clock, span.begin_s)])

    def _drain_s(self, place: int) -> float:
        """Describe how long after a stage its overdue operations are still sent.

        For a part of the next warm-up only, so that its rest is of the next load alone. A stall at the
        end of a stage is caught up with in a moment; what an overload leaves behind never would be.
        """
        timeout_s, later = self._spec.target.timeout_s, self._spec.stages[place + 1 :]
        return min([timeout_s, *(stage.warmup_s * _DRAIN_SHARE for stage in later[:1])])

    def warm_up(self, place: int, begin_s: float) -> float:
        """Fold until it is known when the iterations begin, and give that time.

        Raises:
            StepFailed: what MEASURE says has passed.

        """
        self._pace_s = 1
        cap_s = begin_s + self._spec.stages[place].warmup_cap_s
        while (at_s := self._ordered(place, cap_s)) is None:
            now_s = self._clock.now()
            if now_s >= cap_s - _DECIDE_S:
                return cap_s
            self._tend(begin_s, min(cap_s - _DECIDE_S, now_s + _POLL_S))
        late_s = self._clock.now() - at_s
        if late_s > _LATEST_MEASURE_S or at_s < begin_s + self.second:
            raise StepFailed("measure", "the load engine", _say_late(place, late_s))
        return at_s

    def measure(self, place: int, begin_s: float) -> None:
        """Fold until the stage's last iteration has ended; look at this process at each edge.

        Raises:
            StepFailed: MEASURE appeared after this engine had begun by itself.

        """
        windows = self.recorder.windows[-len(self._spec.stages[place].iterations) :]
        self._pace_s = self._spec.stages[place].histogram_s
        for edge_s in (*(window.start_s for window in windows), windows[-1].end_s):
            self._tend(begin_s, edge_s)
            self.look_at(edge_s)
        end_s = windows[-1].end_s
        self._tend(begin_s, end_s + _FOLD_LAG_S)
        self.fold(end_s)
        self._output.report(self.recorder.report_seconds(math.floor(end_s - begin_s + 1e-6)))
        cap_s = begin_s + self._spec.stages[place].warmup_cap_s
        ordered_s = self._ordered(place, cap_s)
        if ordered_s is not None and ordered_s != windows[0].start_s:
            raise StepFailed("measure", "the load engine", _say_late(place, cap_s - ordered_s))

    def look_at(self, time_s: float) -> None:
        """Look at what this process has used, at a time or as soon after as possible."""
        self._clock.sleep_until(time_s)
        self._looks.append(self._own.look(self._clock.now()))

    def fold(self, horizon_s: float = math.inf) -> None:
        """Fold and keep what has happened before the horizon; raise what went wrong in a thread."""
        if self._failures:
            raise self._failures[0]
        self._output.append(self.recorder.fold(horizon_s))

    def fold_until_idle(self) -> None:
        """Fold once a second until all threads have ended, however long that takes."""
        second = 1.0
        while not self.await_idle(second):
            self.fold()
            second += 1.0
        self.fold()

    def await_idle(self, until_s: float) -> bool:
        """Wait until all threads have ended and all calls were answered; say whether it came so far."""
        while True:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            if not self._threads and all(calls.is_idle for calls in self._calls):
                return True
            now_s = self._clock.now()
            if self._failures or now_s >= until_s:
                return False
            self._clock.sleep_until(min(until_s, max(now_s, 0.0) + _IDLE_POLL_S))

    def result(self) -> EngineResult:
        """Return what was counted and used."""
        return EngineResult(
            engine_index=self._spec.engine_index,
            counters=self.recorder.count(),
            usages=use_between(self.recorder.windows, self._looks),
            examples=self.recorder.examples(),
        )

    def _tend(self, begin_s: float, until_s: float) -> None:
        """Fold each whole second or histogram of the stage before `until_s`, a little after it."""
        while (due_s := begin_s + self.second + self._pace_s + _FOLD_LAG_S) <= until_s:
            self._clock.sleep_until(due_s)
            self.second = max(
                self.second + self._pace_s, math.floor(self._clock.now() - begin_s - _FOLD_LAG_S)
            )
            self.fold(begin_s + self.second)
            self._output.report(self.recorder.report_seconds(self.second))
            self.look_at(due_s)
        self._clock.sleep_until(until_s)

    def _ordered(self, place: int, cap_s: float) -> float | None:
        unix_s = self._output.measure_at(place)
        # As exact as Unix time is written: a difference of such large numbers has a tail of its own.
        return None if unix_s is None else min(round(unix_s - self._start_at_s, 6), cap_s)

    def _guard(self, body: Callable[[], None]) -> None:
        try:
            body()
        except Exception as error:  # noqa: BLE001  handed to the main thread, which raises it
            self._failures.append(error)


def _begin_all(closed: Sequence[ClosedCalls], clock: Clock, begin_s: float) -> None:
    clock.sleep_until(begin_s)
    for calls in closed:
        calls.run()


def _say_late(place: int, late_s: float) -> str:
    return (
        f"stage {place} was to begin its iterations {late_s:.3f} s ago, too late to change over "
        "together with the other engines; is this host too busy, or its clock out of step?"
    )
