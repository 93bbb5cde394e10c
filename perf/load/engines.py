"""Run engine processes on client hosts and merge what they measured. The harness's side of a load.

All engines of a load begin together: each says READY once it is connected; when all have, each is
given GO with the same Unix time. What they recorded is merged exactly: histograms by addition,
counters by sum. An engine that fails fails the load, with the tail of its log.
"""

import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from perf.errors import StepFailed, TimedOut
from perf.load.histogram import merge_equal_intervals
from perf.load.hlog import read_hlog
from perf.load.spec import (
    GO,
    INTERVALS,
    READY,
    RESULT,
    EngineResult,
    LoadSpec,
    Stage,
    dump_spec,
    read_result,
)
from perf.model import Counter, Interval
from perf.remote import (
    LocalHost,
    Remote,
    make_directory,
    read_tail,
    remove_tree,
    running_pid,
    send_signal,
    write_text,
)

POLL_S = 0.5
# From GO to the first operation: time to tell one engine after the other, maybe over SSH.
_LEAD_S = 0.5
_LEAD_EACH_S = 0.5
_STOP_S = 3.0
_LOG_LINES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine process to be: what it does, on which host, by which Python there.

    `spec.output_dir` is a directory on that host which belongs to this engine alone; it is emptied.
    """

    spec: LoadSpec
    remote: Remote
    python: str = sys.executable

    def path(self, name: str) -> str:
        """Give the path of one of the engine's files on its host."""
        return f"{self.spec.output_dir}/{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """The iterations of a stage begin now, or have just ended."""

    place: int
    stage: Stage
    is_start: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmedUp:
    """How a warm-up went: it was steady after so long, or it was not and ran to its cap."""

    phase: str
    duration_s: float
    is_steady: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOutcome:
    """What all engines of one or more loads measured together.

    `engine_hosts` names the host of each engine, by engine index.
    """

    intervals: tuple[Interval, ...] = ()
    counters: tuple[Counter, ...] = ()
    results: tuple[EngineResult, ...] = ()
    warm_ups: tuple[WarmedUp, ...] = ()
    engine_hosts: tuple[str, ...] = ()

    @property
    def examples(self) -> tuple[str, ...]:
        """The first message of each kind of error, each message once."""
        return tuple(dict.fromkeys(text for result in self.results for text in result.examples))

    def __add__(self, other: Self) -> "LoadOutcome":
        """Put two loads of one trial together."""
        return LoadOutcome(
            intervals=merge_equal_intervals((*self.intervals, *other.intervals)),
            counters=_add_counters((*self.counters, *other.counters)),
            results=(*self.results, *other.results),
            warm_ups=(*self.warm_ups, *other.warm_ups),
            engine_hosts=self.engine_hosts or other.engine_hosts,
        )


def run_engines(
    engines: Sequence[Engine],
    *,
    connect_s: float,
    limit_s: float,
    watch: Callable[[], None],
) -> LoadOutcome:
    """Start the engines, let them begin together, wait for their end and merge what they wrote.

    `watch` is called about every half second; whatever it raises ends the engines and is passed on.
    `connect_s` bounds the time to READY, `limit_s` the time from GO to the end of the last engine.
    Call from the main thread. No engine is left running, however this ends.

    Raises:
        TimedOut: an engine passed a limit.
        StepFailed: an engine ended without a result; carries the tail of its log.

    """
    with _running(engines):
        _wait(engines, _is_ready, connect_s, watch, "was not ready")
        start_at_s = time.time() + _LEAD_S + _LEAD_EACH_S * len(engines)
        for engine in engines:
            write_text(engine.remote, engine.path(GO), f"{start_at_s:.6f}\n")
        _wait(engines, _has_ended, limit_s, watch, "had not ended")
        return _collect(engines)


@contextmanager
def _running(engines: Sequence[Engine]) -> Iterator[None]:
    try:
        for engine in engines:
            _start(engine)
        yield
    finally:
        _end(engines)


def _start(engine: Engine) -> None:
    remove_tree(engine.remote, engine.spec.output_dir)
    make_directory(engine.remote, engine.spec.output_dir)
    write_text(engine.remote, engine.path("spec.json"), dump_spec(engine.spec))
    # On this machine an engine runs the very code that runs here; elsewhere, what is installed.
    is_local = isinstance(engine.remote, LocalHost)
    here = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    engine.remote.start(
        [engine.python, "-m", "perf.load.python_engine", engine.path("spec.json")],
        pid_file=engine.path("engine.pid"),
        log=engine.path("engine.log"),
        cwd=".",  # so that a relative output_dir means the same in each step
        env=here if is_local else None,
    )


def _end(engines: Iterable[Engine]) -> None:
    running = [engine for engine in engines if _is_running(engine)]
    for end in (signal.SIGTERM, signal.SIGKILL):
        for engine in running:
            send_signal(engine.remote, engine.path("engine.pid"), end)
        give_up_s = time.monotonic() + _STOP_S
        while running and time.monotonic() < give_up_s:
            running = [engine for engine in running if _is_running(engine)]
            time.sleep(0.05 if running else 0)


def _wait(
    engines: Sequence[Engine],
    is_done: Callable[[Engine], bool],
    limit_s: float,
    watch: Callable[[], None],
    what: str,
) -> None:
    give_up_s = time.monotonic() + limit_s
    waiting = list(engines)
    while waiting := [engine for engine in waiting if not is_done(engine)]:
        watch()
        if time.monotonic() > give_up_s:
            late = waiting[0]
            why = f"{_name(late)} {what} after {limit_s:g} s"
            raise TimedOut("engine", late.remote.name, why, _tail(late))
        time.sleep(POLL_S)


def _is_ready(engine: Engine) -> bool:
    if _exists(engine, READY):
        return True
    if not _is_running(engine):
        raise _failed(engine)
    return False


def _has_ended(engine: Engine) -> bool:
    if _is_running(engine):
        return False
    if not _exists(engine, RESULT):
        raise _failed(engine)
    return True


def _failed(engine: Engine) -> StepFailed:
    why = f"{_name(engine)} ended without a result"
    return StepFailed("engine", engine.remote.name, why, _tail(engine))


def _collect(engines: Sequence[Engine]) -> LoadOutcome:
    outcome = LoadOutcome()
    with tempfile.TemporaryDirectory(prefix="knickpoint-") as directory:
        for engine in engines:
            intervals, result = Path(directory, INTERVALS), Path(directory, RESULT)
            engine.remote.get(engine.path(INTERVALS), intervals)
            engine.remote.get(engine.path(RESULT), result)
            found = read_result(result)
            outcome += LoadOutcome(
                intervals=read_hlog(intervals), counters=found.counters, results=(found,)
            )
    return outcome


def _add_counters(counters: Iterable[Counter]) -> tuple[Counter, ...]:
    totals: defaultdict[tuple[str, str, int, str], int] = defaultdict(int)
    for counter in counters:
        totals[counter.phase, counter.operation, counter.iteration, counter.name] += counter.value
    return tuple(
        Counter(phase=phase, operation=operation, iteration=iteration, name=name, value=value)
        for (phase, operation, iteration, name), value in totals.items()
    )


def _is_running(engine: Engine) -> bool:
    return running_pid(engine.remote, engine.path("engine.pid")) is not None


def _exists(engine: Engine, name: str) -> bool:
    return engine.remote.run(["test", "-f", engine.path(name)], check=False).returncode == 0


def _tail(engine: Engine) -> str:
    return read_tail(engine.remote, engine.path("engine.log"), _LOG_LINES)


def _name(engine: Engine) -> str:
    return f"load engine {engine.spec.engine_index}"
