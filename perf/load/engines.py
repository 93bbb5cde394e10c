"""Run engine processes on client hosts and merge what they measured. The harness's side of a load.

All engines of a load begin together: each says READY once it is connected; when all have, each is
given GO with the same Unix time. When a warm-up ends is decided here for all of them: by what they
report together, MEASURE tells each the same Unix time. What they recorded is merged exactly:
histograms by addition, counters by sum. An engine that fails fails the load, with the tail of its log.
"""

import itertools
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

from perf.hosts.pinning import pin
from perf.hosts.remote import (
    LocalHost,
    Remote,
    make_directory,
    read_tail,
    remove_tree,
    run_repeatable,
    running_pid,
    send_signal,
    write_text,
)
from perf.load import steadiness
from perf.load.clock import MonotonicClock
from perf.load.handover import engine_environment, hand_over, take_back
from perf.load.histogram import merge_equal_intervals
from perf.load.read_back import read_back, read_cut
from perf.load.results.outcome import LoadOutcome, WarmedUp
from perf.load.spec import GO, INTERVALS, MEASURE, PROGRESS, READY, RESULT, Counted, LoadSpec, dump_spec
from perf.model.design import Steadiness
from perf.model.errors import BundleError, StepFailed, TimedOut, Unreachable
from perf.model.results import Interval
from perf.workloads.stages import Stage

# While nothing is measured: until engines are ready, and from the end of the last stage on.
_IDLE_POLL_S, _LOCAL_IDLE_POLL_S = 0.25, 0.1
# While a load runs: each look at an engine is a connection over SSH, paid by hosts that measure.
POLL_S = 1.0
_LOCAL_COUNTED_POLL_S = 0.25
# From saying when to its coming: time to tell one engine after the other, maybe over SSH.
_LEAD_S = 0.5
_LEAD_EACH_S = 0.5
# The same for GO on this machine, which engines look for all the time and may see a little late.
_LOCAL_LEAD_S = 0.1
_STOP_S = 3.0
PYTHON_ENGINE = (sys.executable, "-m", "perf.load.engine.process")
"""The Python engine as it is here; `perf.load.programs` knows the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine process to be: what it does, on which host, and by which command there.

    `spec.output_dir` is a directory on that host which belongs to this engine alone; it is emptied.
    The command's last argument is the spec file; what it must do is written in `spec`.
    """

    spec: LoadSpec
    remote: Remote
    command: tuple[str, ...] = PYTHON_ENGINE
    numa_node: int | None = None

    def path(self, name: str) -> str:
        """Return the path of one of the engine's files on its host."""
        return f"{self.spec.output_dir}/{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """These iterations of a phase begin now, or have just ended."""

    phase: str
    iterations: tuple[int, ...]
    is_start: bool


def run_engines(
    engines: Sequence[Engine],
    *,
    connect_s: float,
    limit_s: float,
    steadiness: Steadiness,
    watch: Callable[[], None],
    observe: Callable[[Edge], None],
    keep: Callable[[LoadOutcome], None] = lambda _: None,
) -> LoadOutcome:
    """Start the engines, let them run their stages together, and merge what they wrote.

    `watch` is called about every second; whatever it raises ends the engines and is passed on.
    `observe` is called as the iterations of each stage begin and end, `keep` with the histograms of a
    load that failed, up to where it ended. `connect_s` bounds the time to READY, `limit_s` the time
    from GO to the end of the last engine. Call from the main thread. No engine is left running,
    however this ends.

    Raises:
        TimedOut: an engine passed a limit.
        StepFailed: an engine ended without a result; carries the tail of its log.

    """
    try:
        with _running(engines):
            limit = _Limit(time.monotonic(), connect_s, "was not ready")
            idle_poll_s = _LOCAL_IDLE_POLL_S if _are_local(engines) else _IDLE_POLL_S
            _await_all(engines, _is_ready, limit, idle_poll_s, watch)
            lead_s = _go_lead_s(engines)
            # From the latest begin that the next lines come to.
            limit = _Limit(time.monotonic() + lead_s + 1.0, limit_s, "had not ended")
            load = _Load(engines, steadiness, watch, observe, limit)
            begin_s = load.unix_s() + lead_s
            if not engines[0].spec.preload:
                # A whole second: seconds of stages and of logs are those of the clock on the wall.
                begin_s = float(ceil(begin_s))
            _report(engines, GO, begin_s)
            with load.saying_when():
                if engines[0].spec.counted:
                    load.follow_counted(engines[0].spec.counted, begin_s)
                load.follow_stages(begin_s)
            _await_all(engines, _has_ended, limit, idle_poll_s, watch)
            return replace(_collect(engines, load.starts), warm_ups=tuple(load.warm_ups))
    except StepFailed:
        keep(_salvage(engines))
        raise


@dataclass(frozen=True, slots=True)
class _Limit:
    """Within which time something must have come about, from when on, and what to say if not."""

    began_s: float
    limit_s: float
    what: str

    def check(self, engine: Engine) -> None:
        if time.monotonic() > self.began_s + self.limit_s:
            why = f"{_name(engine)} {self.what} after {self.limit_s:g} s"
            raise TimedOut("engine", engine.remote.name, why, _tail(engine))


class _Load:
    """A load under way, followed through its stages."""

    def __init__(
        self,
        engines: Sequence[Engine],
        rule: Steadiness,
        watch: Callable[[], None],
        observe: Callable[[Edge], None],
        limit: _Limit,
    ) -> None:
        self._engines, self._rule = engines, rule
        # As engines keep time: a step of this host's clock moves no edge of a load.
        self.unix_s = MonotonicClock(0.0).now
        self._watch, self._observe, self._limit = watch, observe, limit
        # Each look at one engine, in turn: to look at all of them each second would cost too much.
        self._turns = itertools.cycle(engines)
        self.warm_ups: list[WarmedUp] = []
        self.starts: dict[tuple[str, int], float] = {}
        """Unix time of the start of each iteration of each phase, so far."""
        self._under_way = ""

    @contextmanager
    def saying_when(self) -> Iterator[None]:
        """Add to the error of what fails meanwhile what was under way."""
        try:
            yield
        except StepFailed as failure:
            failure.add_when(self._under_way)
            raise

    def follow_stages(self, begin_s: float) -> None:
        """Follow the stages from `begin_s` (Unix time) to the end of the last one."""
        # All engines of a load have the same stages.
        for place, stage in enumerate(self._engines[0].spec.stages):
            which = f"{stage.phase}, iteration {', '.join(map(str, stage.iterations))}"
            self._under_way = f"in the warm-up of {which}"
            warm_up = self._warm_up(place, stage, begin_s)
            self.warm_ups.append(warm_up)
            measure_s = begin_s + warm_up.duration_s
            for number, iteration in enumerate(stage.iterations):
                self.starts[stage.phase, iteration] = measure_s + stage.iteration_s * number
            begin_s = measure_s + stage.measured_s
            for edge_s, is_start in ((measure_s, True), (begin_s, False)):
                self._follow(edge_s)
                self._observe(Edge(phase=stage.phase, iterations=stage.iterations, is_start=is_start))
                self._under_way = f"while {which} was measured"
            # Hosts are looked at one by one, and in short iterations of slow ones not at all.
            for engine in self._engines:
                _has_ended(engine)

    def follow_counted(self, counted: Counted, begin_s: float) -> None:
        """Follow the engines from `begin_s` (Unix time) until all have done their operations."""
        self._under_way = f"while {counted.phase} was measured"
        self.starts[counted.phase, 1] = begin_s
        self._follow(begin_s)
        self._observe(Edge(phase=counted.phase, iterations=(1,), is_start=True))
        # The window ends with the last result, not with the last process: closing is not measured.
        poll_s = _LOCAL_COUNTED_POLL_S if _are_local(self._engines) else POLL_S
        _await_all(self._engines, _has_result, self._limit, poll_s, self._watch)
        self._observe(Edge(phase=counted.phase, iterations=(1,), is_start=False))

    def _warm_up(self, place: int, stage: Stage, begin_s: float) -> WarmedUp:
        """Wait until the load is steady and say so to all engines, or until its cap is too near."""
        cap_s = stage.warmup_cap_s
        self._follow(begin_s + min(stage.warmup_s, cap_s))
        while self.unix_s() + _lead_s(self._engines) < begin_s + cap_s:
            texts = [_read_progress(engine, cap_s) for engine in self._engines]
            try:
                seconds = steadiness.merge_progress(texts, place)
            except ValueError as error:
                raise _broken(self._engines[0], error) from error
            if steadiness.is_steady(seconds, self._rule, stage.warmup_s):
                # Whole seconds of the stage, so that no interval of a log is cut.
                duration_s = float(ceil(self.unix_s() + _lead_s(self._engines) - begin_s))
                if duration_s < cap_s:
                    _report(self._engines, MEASURE.format(stage=place), begin_s + duration_s)
                duration_s = min(duration_s, cap_s)
                return WarmedUp(phase=stage.phase, duration_s=duration_s, is_steady=True)
            self._follow(self.unix_s() + POLL_S)
        return WarmedUp(phase=stage.phase, duration_s=cap_s, is_steady=False)

    def _follow(self, until_s: float) -> None:
        """Watch until a moment (Unix time), and be there when it comes.

        Raises:
            StepFailed: an engine ended without a result.
            TimedOut: the limit passed.

        """
        while (rest_s := until_s - self.unix_s()) > 0:
            time.sleep(min(rest_s, POLL_S))
            if until_s - self.unix_s() >= POLL_S:
                self._watch()
                engine = next(self._turns)
                # Watching may have taken until the load was over, and with a result it may end.
                if not _has_ended(engine):
                    self._limit.check(engine)


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
    spec = hand_over(engine.remote, engine.spec)
    write_text(engine.remote, engine.path("spec.json"), dump_spec(spec))
    engine.remote.start(
        pin((*engine.command, engine.path("spec.json")), engine.spec.cores, engine.numa_node),
        pid_file=engine.path("engine.pid"),
        log=engine.path("engine.log"),
        cwd=".",  # so that a relative output_dir means the same in each step
        # On this machine an engine runs the very code that runs here; elsewhere, what is installed.
        env=engine_environment(engine.remote, engine.spec.target.access),
    )


def _end(engines: Sequence[Engine]) -> None:
    running = [engine for engine in engines if _may_be_ended(engine)]
    for end in (signal.SIGTERM, signal.SIGKILL):
        for engine in running:
            with suppress(Unreachable):
                send_signal(engine.remote, engine.path("engine.pid"), end)
        give_up_s = time.monotonic() + _STOP_S
        while running and time.monotonic() < give_up_s:
            running = [engine for engine in running if _may_be_ended(engine)]
            time.sleep(0.05 if running else 0)
    for engine in engines:
        # Out of reach: the engine itself has removed it, or the next trial does.
        with suppress(StepFailed):
            take_back(engine.remote, engine.spec)


def _may_be_ended(engine: Engine) -> bool:
    # One out of reach ends by itself after its stages, or with the next trial on its host; the others
    # are ended all the same.
    try:
        return _is_running(engine)
    except Unreachable:
        return False


def _await_all(
    engines: Sequence[Engine],
    is_done: Callable[[Engine], bool],
    limit: _Limit,
    poll_s: float,
    watch: Callable[[], None],
) -> None:
    waiting = list(engines)
    while waiting := [engine for engine in waiting if not is_done(engine)]:
        watch()
        limit.check(waiting[0])
        time.sleep(poll_s)


def _report(engines: Sequence[Engine], name: str, unix_s: float) -> None:
    for engine in engines:
        write_text(engine.remote, engine.path(name), f"{unix_s:.6f}\n")


def _lead_s(engines: Sequence[Engine]) -> float:
    return _LEAD_S + _LEAD_EACH_S * len(engines)


def _go_lead_s(engines: Sequence[Engine]) -> float:
    if _are_local(engines):
        return _LOCAL_LEAD_S * (1 + len(engines))
    # On a busy host a command takes seconds: a look at all of them says how many.
    began_s = time.monotonic()
    for engine in engines:
        _is_ready(engine)
    return _lead_s(engines) + 2 * (time.monotonic() - began_s)


def _are_local(engines: Sequence[Engine]) -> bool:
    return all(isinstance(engine.remote, LocalHost) for engine in engines)


def _read_progress(engine: Engine, seconds: float) -> str:
    # The stage under way is at the end, with a line for each of its seconds.
    return read_tail(engine.remote, engine.path(PROGRESS), ceil(seconds) + 1)


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


def _has_result(engine: Engine) -> bool:
    return _exists(engine, RESULT) or _has_ended(engine)


def _failed(engine: Engine) -> StepFailed:
    tail = _tail(engine)
    said = tail.strip().rpartition("\n")[2] or "it said nothing: killed, or no memory or disk left?"
    why = f"{_name(engine)} ended without a result: {said}"
    return StepFailed("engine", engine.remote.name, why, tail)


def _broken(engine: Engine, why: Exception) -> StepFailed:
    return StepFailed("engine", engine.remote.name, f"{_name(engine)} {why}", _tail(engine))


def _collect(engines: Sequence[Engine], starts: Mapping[tuple[str, int], float]) -> LoadOutcome:
    outcome = LoadOutcome()
    with tempfile.TemporaryDirectory(prefix="knickpoint-") as directory:
        for engine in engines:
            for name in (INTERVALS, RESULT):
                engine.remote.get(engine.path(name), Path(directory, name))
            try:
                found, kept = read_back(Path(directory), engine.spec, starts)
            except ValueError as why:
                raise _broken(engine, why) from why
            outcome += LoadOutcome(intervals=kept, counters=found.counters, results=(found,))
    return replace(outcome, engine_hosts=tuple(engine.remote.name for engine in engines))


def _salvage(engines: Sequence[Engine]) -> LoadOutcome:
    """Collect the histograms of engines that were ended early; they have no counters yet."""
    found: list[Interval] = []
    with tempfile.TemporaryDirectory(prefix="knickpoint-") as directory:
        for engine in engines:
            path = Path(directory, INTERVALS)
            # What is out of reach, or was never begun, is not worth hiding the failure.
            with suppress(StepFailed, OSError, BundleError):
                engine.remote.get(engine.path(INTERVALS), path)
                found += read_cut(path)
    return LoadOutcome(intervals=merge_equal_intervals(found))


def _is_running(engine: Engine) -> bool:
    return running_pid(engine.remote, engine.path("engine.pid")) is not None


def _exists(engine: Engine, name: str) -> bool:
    test = ["test", "-f", engine.path(name)]
    return run_repeatable(engine.remote, test, check=False).returncode == 0


def _tail(engine: Engine) -> str:
    return read_tail(engine.remote, engine.path("engine.log"))


def _name(engine: Engine) -> str:
    return f"load engine {engine.spec.engine_index}"
