"""One engine process: `python -m perf.load.python_engine SPEC.json`, on the drivers' blocking calls.

As many threads as operations may be in flight; the threads measure, the main thread folds what they
measured once a second and appends it to the interval log, so that a crash costs one second.

Exit codes: 0 measured, 1 failed (the reason is the last line on standard error), 2 not a spec,
143 and 130 ended by SIGTERM and SIGINT.
"""

import gc
import itertools
import math
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from perf.design import OpenLoop, Operation
from perf.errors import KnickpointError, StepFailed
from perf.load.hlog import HlogWriter
from perf.load.loops import Clock, Loop, MonotonicClock
from perf.load.recorder import Recorder, phase_edges
from perf.load.schedule import UniformArrivals
from perf.load.spec import (
    GO,
    INTERVALS,
    PRELOAD,
    READY,
    RESULT,
    EngineResult,
    LoadSpec,
    TimedPhase,
    read_spec,
    write_result,
)
from perf.load.tasks import WriteTask, make_task
from perf.model import Interval
from perf.systems import registry
from perf.systems.contract import SensorSession

_FOLD_S = 1.0
_GO_POLL_S = 0.02
_LATEST_START_S = 1.0
# Beyond the operation timeout, so that a driver's own timeout is seen as what it is.
_GRACE_S = 0.5
# A driver whose operations are stuck may not let itself be closed.
_CLOSE_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What the threads of this engine run, and until when they are waited for."""

    recorder: Recorder
    bodies: tuple[Callable[[], None], ...]
    give_up_s: float


def main(arguments: Sequence[str]) -> int:
    """Run the engine that the spec file describes; give the exit code."""
    for one in (signal.SIGTERM, signal.SIGINT):
        # The log is flushed each second; nothing else is worth a delay.
        signal.signal(one, lambda number, _: os._exit(128 + number))
    try:
        spec = read_spec(Path(*arguments))
    except (OSError, ValidationError) as error:
        sys.stderr.write(f"usage: python -m perf.load.python_engine SPEC.json\n{error}\n")
        return 2
    try:
        return _measure(spec)
    except KnickpointError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except Exception:  # noqa: BLE001  a driver may raise anything; the log tail goes to the harness
        traceback.print_exc()
        return 1
    finally:
        sys.stderr.flush()


def run(
    spec: LoadSpec,
    session: SensorSession,
    start_at_s: float,
    clock: Clock,
    emit: Callable[[Sequence[Interval]], None],
) -> EngineResult:
    """Offer the load of `spec` to `session` and give what was counted; `emit` takes the histograms.

    Returns at the latest one operation timeout after the last phase, even if operations are still
    unanswered; these count as timeouts.

    Raises:
        StepFailed: a row of a preload could not be written.

    """
    plan = (_plan_preload if spec.preload_rows else _plan_phases)(spec, session, start_at_s, clock)
    cpu_before_s = _cpu_s()
    failures: list[Exception] = []

    def guard(body: Callable[[], None]) -> None:
        try:
            body()
        except Exception as error:  # noqa: BLE001  handed to the main thread, which raises it
            failures.append(error)

    threads = [threading.Thread(target=guard, args=(body,), daemon=True) for body in plan.bodies]
    for thread in threads:
        thread.start()
    while threads and clock.now() < plan.give_up_s:
        next_s = min(max(clock.now(), 0.0) + _FOLD_S, plan.give_up_s)
        for thread in threads:
            thread.join(max(0.0, next_s - clock.now()))
        threads = [thread for thread in threads if thread.is_alive()]
        emit(plan.recorder.fold())
        if failures:
            raise failures[0]
    return EngineResult(
        engine_index=spec.engine_index,
        counters=plan.recorder.count(),
        cpu_s=_cpu_s() - cpu_before_s,
        wall_s=clock.now(),
        ended_s=plan.recorder.ended_s(),
        examples=plan.recorder.examples(),
    )


def _plan_phases(spec: LoadSpec, session: SensorSession, start_at_s: float, clock: Clock) -> _Plan:
    recorder = Recorder(spec.phases, spec.operation.value, start_at_s)
    edges = phase_edges(spec.phases)
    end_s, timeout_s = edges[-1], spec.target.timeout_s
    task = make_task(spec, session)
    numbers = itertools.count(spec.engine_index, spec.engine_count)
    loops = [
        Loop(task=task, session=session, numbers=numbers, clock=clock, log=recorder.open_log())
        for _ in range(spec.load.in_flight)
    ]
    if isinstance(spec.load, OpenLoop):
        schedule = UniformArrivals(
            offered_load_ops_per_s=spec.load.offered_load_ops_per_s,
            engine_index=spec.engine_index,
            engine_count=spec.engine_count,
        )
        before = [schedule.count_before(edge_s) for edge_s in edges]
        recorder.expect([end - start for start, end in itertools.pairwise(before)])
        bodies = [partial(loop.run_open, schedule, end_s, end_s + timeout_s) for loop in loops]
    else:
        bodies = [partial(loop.run_closed, end_s) for loop in loops]
    return _Plan(recorder=recorder, bodies=tuple(bodies), give_up_s=end_s + timeout_s + _GRACE_S)


def _plan_preload(spec: LoadSpec, session: SensorSession, start_at_s: float, clock: Clock) -> _Plan:
    endless = TimedPhase(name=PRELOAD, iteration=0, duration_s=math.inf)
    recorder = Recorder((endless,), Operation.WRITE.value, start_at_s)
    task = WriteTask(spec, session, first_row=0)
    numbers = iter(range(spec.engine_index, spec.preload_rows, spec.engine_count))
    loops = [
        Loop(task=task, session=session, numbers=numbers, clock=clock, log=recorder.open_log())
        for _ in range(spec.load.in_flight)
    ]
    bodies = tuple(loop.run_to_completion for loop in loops)
    return _Plan(recorder=recorder, bodies=bodies, give_up_s=math.inf)


def _measure(spec: LoadSpec) -> int:
    if spec.cores:
        os.sched_setaffinity(0, spec.cores)
    output = Path(spec.output_dir)
    with registry.load(spec.target.system).connect(spec.target) as session:
        # What exists by now stays: the collector need never look at it again in a measured phase.
        gc.collect()
        gc.freeze()
        (output / READY).touch()
        start_at_s = _await_go(output / GO, spec.go_within_s)
        try:
            with (output / INTERVALS).open("w", encoding="utf-8") as log:
                writer = HlogWriter(log, start_at_s)
                result = run(spec, session, start_at_s, MonotonicClock(start_at_s), writer.append)
            write_result(output / RESULT, result)
        finally:
            _end_within(_CLOSE_S, output / RESULT)
    return 0


def _await_go(path: Path, within_s: float) -> float:
    give_up_s = time.monotonic() + within_s
    while not path.exists():
        if time.monotonic() > give_up_s:
            raise StepFailed("start", "the load engine", f"there was no {path} within {within_s:g} s")
        time.sleep(_GO_POLL_S)
    start_at_s = float(path.read_text())
    late_s = time.time() - start_at_s
    if late_s > _LATEST_START_S:
        why = f"the load began {late_s:.1f} s ago; are the clocks of the client hosts in step?"
        raise StepFailed("start", "the load engine", why)
    return start_at_s


def _end_within(limit_s: float, result: Path) -> None:
    timer = threading.Timer(limit_s, lambda: os._exit(0 if result.exists() else 1))
    timer.daemon = True
    timer.start()


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    code = main(sys.argv[1:])
    # Threads may still wait for answers that never come; nothing may hold up the end.
    os._exit(code)
