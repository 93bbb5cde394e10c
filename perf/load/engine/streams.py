"""The streams of a load: an operation of its mix each, and what records each.

Which operation number n is depends on the seed and on n alone, so that engines in any number offer the
same sequence between them.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, TypeAlias

from perf.load.clock import Clock
from perf.load.engine.loops import OperationStream
from perf.load.engine.recorder import Log, OperationKind, Recorder
from perf.load.engine.tasks.task import OperationPart, Parts, Task
from perf.model.records import Operation, OperationName
from perf.workloads.splitmix import stream, unit

_MIX_STREAM = 3

MakeTasks: TypeAlias = Callable[[Parts], Mapping[OperationName, Task[Any, Any]]]


@dataclass(slots=True)
class _PartLog:
    """Times of a part of an operation; they have no intended start of their own."""

    _clock: Clock
    log: Log = field(default_factory=Log)

    def now(self) -> float:
        return self._clock.now()

    def note(self, begin_s: float, end_s: float) -> None:
        self.log.completed.extend((begin_s, begin_s, end_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationStreams:
    """What an engine offers: the stream of each operation number, and the recorder behind all of them.

    `answer_later` says whether every stream can be sent without waiting.
    """

    choose: Callable[[int], OperationStream]
    recorder: Recorder
    answer_later: bool


def lay_streams(
    make_tasks: MakeTasks,
    weights: Mapping[OperationName, float],
    seed: int,
    *,
    clock: Clock,
    start_at_s: float,
) -> OperationStreams:
    """Make a stream for each task; `weights` is of the operations that there are tasks for."""
    parts: dict[str, _PartLog] = {}

    def part_of(operation: Operation, name: str) -> OperationPart:
        return parts.setdefault(f"{operation.value}.{name}", _PartLog(clock))

    tasks = make_tasks(part_of)
    kinds = [
        *(
            OperationKind(operation=str(operation), rows=task.rows, weight=weights[operation])
            for operation, task in tasks.items()
        ),
        *(OperationKind(operation=name, is_part=True) for name in parts),
    ]
    recorder = Recorder(kinds, start_at_s)
    for name, part in parts.items():
        part.log = recorder.logs[name]
    streams = []
    for operation, task in tasks.items():
        log = recorder.logs[str(operation)]
        streams.append(
            OperationStream(task, log, task.soon) if task.soon else OperationStream(task, log)
        )
    return OperationStreams(
        choose=_chooser(streams, [weights[operation] for operation in tasks], seed),
        recorder=recorder,
        answer_later=all(task.soon for task in tasks.values()),
    )


def _chooser(
    streams: list[OperationStream], weights: list[float], seed: int
) -> Callable[[int], OperationStream]:
    (first, *others) = streams
    if not others:
        return lambda _: first
    edges = list(accumulate(weights))
    upper, choices = edges[-1], stream(seed, _MIX_STREAM)
    return lambda number: streams[bisect_right(edges, unit(choices, number) * upper)]
