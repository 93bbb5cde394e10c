"""The test stand: null servers and engines, all real processes on loopback, and what both sides say.

Truth comes from the servers' own record and from what the engines were asked; nothing here trusts an
engine.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from perf.hosts.remote import LocalHost, make_directory, running_pid
from perf.load.engines import PYTHON_ENGINE, Engine, run_engines
from perf.load.native_binary import NULL_SERVER, find_native
from perf.load.results.outcome import LoadOutcome
from perf.load.spec import GO, INTERVALS, LoadSpec
from perf.model.design import OpenLoop, SimpleLoad, Steadiness
from perf.model.errors import NotReady, TimedOut
from perf.model.records import Operation, OperationName, Sensor
from perf.systems.contract import Node, Target
from perf.systems.null.behaviour import Behaviour, write_settings
from perf.systems.null.dialects import OWN, Dialect
from perf.systems.null.record import Deeds, read_record
from perf.systems.null.system import OWN_SERVER, RECORD, SYSTEM, check_node, configure_node, start_node
from perf.systems.null.wire import PORT
from perf.workloads.stages import Stage

RECORDS = Sensor(kind="sensor", devices=97, payload_bytes=1000)
SEED = 20_260_301
_WRITES: Mapping[OperationName, float] = {Operation.WRITE: 1.0}
_START_S = 30.0
_STOP_S = 10.0
_POLL_S = 0.02
_TICK_S = 0.005
# Beyond the last stage: answers that are still out, the last fold, the end of the process.
_AFTER_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimes:
    """When a stage began, when its iterations began and ended: as the engines were asked, Unix time."""

    begin_s: float
    measured_s: float
    ended_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """How late this machine woke a thread that only sleeps, while the engines ran, in milliseconds."""

    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadEvidence:
    """Both sides of a load: what the engines reported, and what the servers know."""

    stages: tuple[Stage, ...]
    spans: tuple[StageTimes, ...]
    outcome: LoadOutcome
    logs: tuple[Path, ...]
    """The interval log of each engine, as it wrote it."""
    deeds: tuple[Deeds, ...]
    """What each server did."""
    delays: Delays
    dialect: Dialect = OWN

    def offered_ops_per_s(self, place: int) -> float:
        """Return the offered load of a stage; raise TypeError if it is no open loop."""
        load = self.stages[place].load
        if not isinstance(load, OpenLoop):
            raise TypeError(f"stage {place} is no open loop")
        return load.offered_load_ops_per_s

    def count(self, name: str, phase: str | None = None, iteration: int | None = None) -> int:
        """Add up a counter, of one phase or iteration or of all."""
        return sum(
            counter.value
            for counter in self.outcome.counters
            if counter.name == name
            and phase in {None, counter.phase}
            and iteration in {None, counter.iteration}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """The engines are stopped for so long, so long after the iteration of each stage has begun."""

    after_s: float
    length_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """Where the self-test runs, which engine it tests, by its command, and what the servers speak."""

    directory: Path
    engine: tuple[str, ...] = PYTHON_ENGINE
    dialect: Dialect = OWN

    def observe(
        self,
        name: str,
        *,
        servers: Sequence[Behaviour],
        stages: Sequence[Stage],
        engines: Sequence[int] = (0,),
        timeout_s: float = 5.0,
        pause: Pause | None = None,
        mix: Mapping[OperationName, float] = _WRITES,
    ) -> LoadEvidence:
        """Let engines offer the stages to null servers that behave so, and collect all traces.

        `engines` holds, for each engine, the place of the server that it speaks to; `pause` stops them
        for a while in each stage. Reads verify against what the first server holds.

        Raises:
            MeasureError: a server or an engine did not start, failed or did not end.
            UsageError: the servers of this dialect are not built.

        """
        with self.serve(name, servers) as nodes:
            holds = servers[0].holds
            specs = [
                LoadSpec(
                    target=self.target(nodes[server], timeout_s),
                    records=RECORDS,
                    mix=mix,
                    seed=SEED,
                    engine_index=place,
                    engine_count=len(engines),
                    stages=tuple(stages),
                    readable_rows=holds.rows if holds else 0,
                    output_dir=str(self.directory / name / f"engine-{place}"),
                )
                for place, server in enumerate(engines)
            ]
            limit_s = sum(stage.longest_s for stage in stages) + timeout_s + _AFTER_S
            tested = [Engine(spec=spec, remote=LocalHost(), command=self.engine) for spec in specs]
            with _heartbeat() as beats:
                outcome = run_engines(
                    tested,
                    connect_s=_START_S,
                    limit_s=limit_s,
                    steadiness=Steadiness(window_s=1, tolerance=1.0),
                    watch=lambda: None,
                    observe=lambda edge: _pause(tested, pause) if pause and edge.is_start else None,
                )
        directories = [Path(spec.output_dir) for spec in specs]
        spans = _spans(float((directories[0] / GO).read_text()), stages)
        return LoadEvidence(
            stages=tuple(stages),
            spans=spans,
            outcome=outcome,
            logs=tuple(directory / INTERVALS for directory in directories),
            deeds=read_deeds(nodes),
            delays=beats.delays(spans[0].begin_s, spans[-1].ended_s),
            dialect=self.dialect,
        )

    @contextmanager
    def serve(self, name: str, servers: Sequence[Behaviour]) -> Iterator[tuple[Node, ...]]:
        """Run null servers; when this ends they have ended, and have left their records.

        Raises:
            MeasureError: one did not start or did not end.
            UsageError: those of this dialect are not built.

        """
        wire = self.dialect.wire
        command = OWN_SERVER if wire == "own" else (str(find_native(NULL_SERVER)),)
        nodes = tuple(_node(self.directory / name, place) for place in range(len(servers)))
        with ExitStack() as stack:
            for node, asked in zip(nodes, servers, strict=True):
                make_directory(node.remote, node.work_dir)
                configure_node(node, {**write_settings(asked), "keep_record": True}, "self-test", wire)
                stack.callback(_stop, node)
                start_node(node, command)
            for node in nodes:
                _await_ready(node)
            yield nodes

    def target(self, node: Node, timeout_s: float) -> Target:
        """Describe where and how a client connects to one of the servers."""
        return Target(
            system=self.dialect.system,
            addresses=(node.address,),
            port=PORT,
            replication_factor=1,
            consistency="one",
            timeout_s=timeout_s,
        )


def read_deeds(nodes: Sequence[Node]) -> tuple[Deeds, ...]:
    """Read what each server did; it has ended."""
    return tuple(read_record(Path(node.work_dir, RECORD)) for node in nodes)


def plan_stage(phase: str, load: SimpleLoad, *, warmup_s: float, measured_s: float) -> Stage:
    """Return a stage with a warm-up of fixed length, then one iteration."""
    return Stage(
        phase=phase,
        load=load,
        warmup_s=warmup_s,
        warmup_cap_s=warmup_s,
        iteration_s=measured_s,
        iterations=(1,),
    )


def _pause(engines: Sequence[Engine], pause: Pause) -> None:
    found = (running_pid(engine.remote, engine.path("engine.pid")) for engine in engines)
    pids = [pid for pid in found if pid is not None]
    time.sleep(pause.after_s)
    try:
        _signal(pids, signal.SIGSTOP)
        time.sleep(pause.length_s)
    finally:
        _signal(pids, signal.SIGCONT)


def _signal(pids: Sequence[int], what: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # an engine that has failed is reported by who waits for it
            os.kill(pid, what)


def _node(directory: Path, place: int) -> Node:
    # Loopback has sixteen million addresses: two runs at a time take different ones.
    pid = os.getpid()
    return Node(
        name=f"null-{place + 1}",
        index=place,
        address=f"127.{80 + place}.{pid >> 8 & 255}.{pid & 255 or 1}",
        remote=LocalHost(),
        work_dir=str(directory / f"null-{place + 1}"),
    )


def _await_ready(node: Node) -> None:
    end_s = time.monotonic() + _START_S
    while True:
        try:
            return check_node(node)
        except NotReady:
            if time.monotonic() > end_s:
                raise
        time.sleep(_POLL_S)


def _stop(node: Node) -> None:
    end_s = time.monotonic() + _STOP_S
    SYSTEM.stop(node, force=False)
    while SYSTEM.is_running(node):
        if time.monotonic() > end_s:
            SYSTEM.stop(node, force=True)
            raise TimedOut("stop", node.name, f"the null server had not ended after {_STOP_S:g} s")
        time.sleep(_POLL_S)


def _spans(begin_s: float, stages: Sequence[Stage]) -> tuple[StageTimes, ...]:
    """Describe when everything was to happen; warm-ups here are as short as they are long."""
    spans = []
    for stage in stages:
        measured_s, ended_s = begin_s + stage.warmup_cap_s, begin_s + stage.longest_s
        spans.append(StageTimes(begin_s=begin_s, measured_s=measured_s, ended_s=ended_s))
        begin_s = ended_s
    return tuple(spans)


@dataclass(slots=True)
class _Beats:
    """A thread that only sleeps, and how late it woke each time."""

    ended: threading.Event = field(default_factory=threading.Event)
    woken_s: list[float] = field(default_factory=list)
    late_s: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Sleep until told to end."""
        while not self.ended.is_set():
            due_s = time.time() + _TICK_S
            time.sleep(_TICK_S)
            now_s = time.time()
            self.woken_s.append(now_s)
            self.late_s.append(now_s - due_s)

    def delays(self, begin_s: float, end_s: float) -> Delays:
        """Summarize what happened between two times."""
        woken: NDArray[np.float64] = np.array(self.woken_s)
        late = np.array(self.late_s)[(woken >= begin_s) & (woken < end_s)] * 1000
        p50_ms, p99_ms, max_ms = np.percentile(late, (50, 99, 100)) if late.size else (0.0, 0.0, 0.0)
        return Delays(p50_ms=float(p50_ms), p99_ms=float(p99_ms), max_ms=float(max_ms))


@contextmanager
def _heartbeat() -> Iterator[_Beats]:
    beats = _Beats()
    thread = threading.Thread(target=beats.run, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield beats
    finally:
        beats.ended.set()
        thread.join()
