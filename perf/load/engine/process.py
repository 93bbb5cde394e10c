"""One engine process: `python -m perf.load.engine.process SPEC.json`, on the Python drivers.

A driver that answers later is driven by one thread and its own callbacks, any other by as many
threads as operations may be in flight. The main thread folds what they note once a second and appends
it to the interval log, so that a crash costs about one second.

Exit codes: 0 measured, 1 failed (the reason is the last line on standard error), 2 not a spec,
143 and 130 ended by SIGTERM and SIGINT.
"""

import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from pydantic import ValidationError

from perf.load.clock import MonotonicClock
from perf.load.engine.runner import (
    LoadEnvironment,
    plan_schedules,
    run_counted,
    run_preload,
    run_stages,
)
from perf.load.engine.tasks.making import foresee
from perf.load.spec import (
    GO,
    INTERVALS,
    MEASURE,
    PASSWORD,
    PROGRESS,
    READY,
    RESULT,
    LoadSpec,
    read_spec,
    write_result,
)
from perf.local.hlog import HlogWriter
from perf.model.errors import KnickpointError, StepFailed
from perf.model.results import Interval
from perf.systems import registry
from perf.systems.contract import open_session

_GO_POLL_S = 0.02
_LATEST_START_S = 1.0
# A driver whose operations are stuck may not let itself be closed.
_CLOSE_S = 3.0
# How long a driver's thread may keep the interpreter while a send is due. Beside a thread that computes
# 0.2 ms per answer, at 2000 operations per second, send lateness (p50; p90) in three rounds was 0.5 to
# 2.6 ms; 3.9 to 6.4 ms at Python's own 5 ms, and 0.1 to 0.3 ms; 0.7 to 1.4 ms at this, for 6 to 13 %
# more CPU time. Half of this was better in one round of the three only.
_SWITCH_INTERVAL_S = 0.0001


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    """Where a load's results go, each at once on its way to the disk."""

    directory: Path
    writer: HlogWriter
    progress: TextIO

    def append(self, intervals: Sequence[Interval]) -> None:
        """Append to the interval log."""
        self.writer.append(intervals)

    def report(self, lines: str) -> None:
        """Append lines of PROGRESS."""
        self.progress.write(lines)
        self.progress.flush()

    def measure_at(self, place: int) -> float | None:
        """Read MEASURE of a stage."""
        try:
            return float((self.directory / MEASURE.format(stage=place)).read_text())
        except FileNotFoundError:
            return None


def main(arguments: Sequence[str]) -> int:
    """Run the engine that the spec file describes; give the exit code."""
    for one in (signal.SIGTERM, signal.SIGINT):
        # The log is flushed each second; nothing else is worth a delay.
        signal.signal(one, lambda number, _: os._exit(128 + number))
    try:
        spec = read_spec(Path(*arguments))
    except (OSError, ValidationError) as error:
        sys.stderr.write(f"usage: python -m perf.load.engine.process SPEC.json\n{error}\n")
        return 2
    try:
        return _measure(spec)
    except _ReportedError:
        return 1
    except Exception as error:  # noqa: BLE001  a driver may raise anything; the log tail goes to the harness
        _describe_failure(error)
        return 1


class _ReportedError(Exception):
    """A failure of which the log says already why."""


def _describe_failure(error: Exception) -> None:
    if isinstance(error, KnickpointError):
        sys.stderr.write(f"{error}\n")
    else:
        traceback.print_exception(error)
    sys.stderr.flush()


def _measure(spec: LoadSpec) -> int:
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    if spec.cores:
        os.sched_setaffinity(0, spec.cores)
    output = Path(spec.output_dir)
    schedules = plan_schedules(spec)
    with _connected(spec, output) as session:
        foresee(spec)
        # What exists by now stays: the collector need never look at it again in a measured phase.
        gc.collect()
        gc.freeze()
        (output / READY).touch()
        start_at_s = _await_go(output / GO, spec.go_within_s)
        try:
            with (output / INTERVALS).open("w") as log, (output / PROGRESS).open("w") as progress:
                writer = HlogWriter(log, start_at_s)
                around = LoadEnvironment(
                    start_at_s=start_at_s,
                    clock=MonotonicClock(start_at_s),
                    output=_Files(directory=output, writer=writer, progress=progress),
                )
                if spec.preload:
                    result = run_preload(spec, spec.preload, session, around)
                elif spec.counted:
                    result = run_counted(spec, spec.counted, session, around)
                else:
                    result = run_stages(spec, session, schedules, around)
            write_result(output / RESULT, result)
        except Exception as error:
            # Now: a driver that cannot be closed leaves no time for it.
            _describe_failure(error)
            raise _ReportedError from error
        finally:
            _end_within(_CLOSE_S, output / RESULT)
    return 0


@contextmanager
def _connected(spec: LoadSpec, output: Path) -> Iterator[Any]:
    with ExitStack() as opened:
        try:
            system = registry.load(spec.target.system)
            session = opened.enter_context(open_session(system, spec.target, spec.records))
        finally:
            (output / PASSWORD).unlink(missing_ok=True)
        yield session


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


if __name__ == "__main__":
    code = main(sys.argv[1:])
    # Threads may still wait for answers that never come; nothing may hold up the end.
    os._exit(code)
