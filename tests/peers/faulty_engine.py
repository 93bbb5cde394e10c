"""The load engine with faults: `faulty_engine.py FAULT[,FAULT…] SPEC.json`. Each breaks one thing."""

import itertools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TypeAlias, cast

from perf.load.engine import process as python_engine
from perf.load.engine import runner
from perf.load.engine.callbacks import OpenCalls
from perf.load.engine.loops import Lag, Loop, OperationStream
from perf.load.engine.schedule import Share, Starts, plan_starts
from perf.load.spec import LoadSpec, read_spec
from perf.local.hlog import HlogWriter
from perf.model.design import ClosedLoop, OpenLoop
from perf.model.results import Interval

_Times: TypeAlias = tuple[float, float, float]
"""The intended start, the send and the end of an operation."""


def _replace(owner: object, name: str, value: object) -> None:
    setattr(owner, name, value)


def _plan_too_slowly(load: OpenLoop, share: Share, duration_s: float) -> Starts:
    starts = plan_starts(load, share, duration_s)
    return starts * 1.1


def _plan_evenly(load: OpenLoop, share: Share, duration_s: float) -> Starts:
    return plan_starts(replace(load, arrivals=None), share, duration_s)


def slow_schedule() -> None:
    """Let every start be a tenth later than planned."""
    _replace(runner, "plan_starts", _plan_too_slowly)


def never_poisson() -> None:
    """Space arrivals evenly that are to be a Poisson process."""
    _replace(runner, "plan_starts", _plan_evenly)


def coordinated_omission() -> None:
    """Count response times from the send."""
    note = Loop.note

    def from_the_send(
        self: Loop, stream: OperationStream, prepared: object, times_s: _Times, reply: object
    ) -> str | None:
        _, sent_s, ended_s = times_s
        return note(self, stream, prepared, (sent_s, sent_s, ended_s), reply)

    _replace(Loop, "note", from_the_send)


def skipped_starts() -> None:
    """Forget whatever is overdue once a slot is free, as tools do that skip missed ticks."""
    run = OpenCalls.run

    def run_what_is_not_overdue(self: OpenCalls, starts: Sequence[float], drain_s: float) -> None:
        loop, slots = self._loop, self._slots

        def pending() -> Iterator[float]:
            for start_s in starts:
                if slots.empty():
                    freed_s = self._take_slot(drain_s)
                    if freed_s is None:
                        return
                    slots.put(freed_s)
                if loop.span.begin_s + start_s > loop.clock.now() - 0.005:
                    yield start_s

        run(self, cast(Sequence[float], pending()), drain_s)

    _replace(OpenCalls, "run", run_what_is_not_overdue)


def flattered_service() -> None:
    """Report each operation to have ended 40 ms sooner."""
    note = Loop.note

    def sooner(
        self: Loop, stream: OperationStream, prepared: object, times_s: _Times, reply: object
    ) -> str | None:
        intended_s, sent_s, ended_s = times_s
        return note(self, stream, prepared, (intended_s, sent_s, max(sent_s, ended_s - 0.04)), reply)

    _replace(Loop, "note", sooner)


def blameless_client() -> None:
    """Take every wait for a slot as the server's, even where the client's own pause used them up."""

    def find_ready(_: Lag, intended_s: float, freed_s: float, __: float) -> float:
        return max(intended_s, freed_s)

    _replace(Lag, "find_ready", find_ready)


def greedy_loop() -> None:
    """Keep two more operations in flight than a closed loop may."""

    def read_greedily(path: Path) -> LoadSpec:
        spec = read_spec(path)
        stages = tuple(
            replace(stage, load=replace(stage.load, in_flight=stage.load.in_flight + 2))
            if isinstance(stage.load, ClosedLoop)
            else stage
            for stage in spec.stages
        )
        return replace(spec, stages=stages)

    _replace(python_engine, "read_spec", read_greedily)


def same_numbers() -> None:
    """Take the operation numbers of the first engine, whichever this is."""
    _replace(runner, "itertools", SimpleNamespace(count=lambda _, step: itertools.count(0, step)))


def lost_intervals() -> None:
    """Drop what the second engine has measured."""
    append = HlogWriter.append

    def keep_those_of_the_first(self: HlogWriter, intervals: Sequence[Interval]) -> None:
        if "engine-1" not in sys.argv[-1]:
            append(self, intervals)

    _replace(HlogWriter, "append", keep_those_of_the_first)


def double_count() -> None:
    """Count each error twice."""
    note_error = Loop.note_error

    def twice(
        self: Loop, stream: OperationStream, prepared: object, times_s: _Times, error: Exception
    ) -> str:
        note_error(self, stream, prepared, times_s, error)
        return note_error(self, stream, prepared, times_s, error)

    _replace(Loop, "note_error", twice)


FAULTS: dict[str, Callable[[], None]] = {
    fault.__name__: fault
    for fault in (
        slow_schedule,
        never_poisson,
        coordinated_omission,
        skipped_starts,
        flattered_service,
        blameless_client,
        greedy_loop,
        same_numbers,
        lost_intervals,
        double_count,
    )
}

if __name__ == "__main__":
    for name in sys.argv[1].split(","):
        FAULTS[name]()
    os._exit(python_engine.main(sys.argv[2:]))
