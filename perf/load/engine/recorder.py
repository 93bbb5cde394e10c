"""What the threads of an engine measure, folded into histograms and counters about once a second.

A thread only appends floats to the lists of one `Log`; extending a list by a tuple and slicing a
list's front off are each one step under the interpreter's lock, so that no thread waits for the
folding or for another. Nothing is ever dropped: each attempted operation ends in exactly one counter.

Everything belongs to a window: one iteration of a phase, or one warm-up. An operation belongs to the
window of its intended start, whenever it ends.
"""

import math
from bisect import bisect_right
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from perf.load.histogram import encode_times
from perf.model.metrics import RESPONSE_TIME, SEND_LATENESS, SERVICE_TIME, Metric
from perf.model.records import Answer
from perf.model.results import (
    ATTEMPTED,
    CLAMPED,
    COMPLETED_IN_WINDOW,
    HELD,
    ROWS,
    SENT_IN_WINDOW,
    TIMEOUTS,
    Counter,
    Interval,
)
from perf.workloads.stages import Stage

_BESIDE = (ATTEMPTED, COMPLETED_IN_WINDOW, SENT_IN_WINDOW, HELD, ROWS, CLAMPED)
_ALWAYS_COUNTED = (ATTEMPTED, *Answer, TIMEOUTS, COMPLETED_IN_WINDOW, SENT_IN_WINDOW, HELD, ROWS)

_T = TypeVar("_T")
Columns = NDArray[np.floating[Any]]


@dataclass(slots=True)
class Log:
    """What all threads append to. All times are seconds from the start of the first stage.

    `begun`: send of each operation of a closed loop. `sent`: intended start, ready and send of each
    operation of an open loop, one after the other. `completed`: intended start, send and end, one
    after the other. `failed`: (intended start, end, counter name). `examples`: the first message of
    each kind.
    """

    begun: list[float] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    completed: list[float] = field(default_factory=list)
    failed: list[tuple[float, float, str]] = field(default_factory=list)
    examples: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationWindow:
    """One iteration of a phase, or one of its warm-ups (iteration 0), by when it lies."""

    phase: str
    iteration: int
    start_s: float
    end_s: float
    """Infinite for the warm-up under way, whose end is not known yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationKind:
    """An operation that a load consists of.

    `rows` is the rows per operation; `weight` its share of a mix, in any unit. A part of an operation
    has times only: it was neither offered nor attempted by itself.
    """

    operation: str
    rows: int = 1
    weight: float = 1.0
    is_part: bool = False


class Recorder:
    """Folds the logs of an engine's threads by operation, window, and time of the intended start."""

    def __init__(self, kinds: Sequence[OperationKind], start_at_s: float) -> None:
        """Let the first stage start at `start_at_s` (Unix time)."""
        self._recorders = {kind.operation: _OperationRecorder(kind) for kind in kinds}
        self.logs = {operation: recorder.log for operation, recorder in self._recorders.items()}
        """What threads append to, by operation."""
        self._start_at_s = start_at_s
        self._windows: list[IterationWindow] = []
        self._begins: list[float] = []
        self._planned: Tally[tuple[str, int]] = Tally()
        self._seconds: defaultdict[tuple[int, int], list[float]] = defaultdict(lambda: [0, 0.0])
        self._reported = 0
        self._width_s = 1
        self.last_end_s = 0.0
        """When the last operation that was folded ended, in seconds from the first stage's start."""

    @property
    def windows(self) -> tuple[IterationWindow, ...]:
        """Return all windows so far, in order."""
        return tuple(self._windows)

    def begin_stage(self, phase: str, begin_s: float) -> None:
        """Open the warm-up of a stage, whose end is not known yet."""
        self._begins.append(begin_s)
        self._reported = 0
        self._width_s = 1
        self._open(phase, 0, begin_s, math.inf)

    def begin_iterations(self, stage: Stage, at_s: float, starts: Columns | None) -> float:
        """End the warm-up at `at_s` and lay the iterations behind it; give the end of the last.

        `starts` are the intended starts that an open loop's schedule holds, in seconds from the first
        stage's start; those before the end count as attempted from now on.
        """
        warm_up = self._windows.pop()
        first = len(self._windows)
        self._width_s = stage.histogram_s
        self._open(warm_up.phase, 0, warm_up.start_s, at_s)
        for place, iteration in enumerate(stage.iterations):
            # Multiplied, not added up, so that all engines find the very same edges.
            start_s, end_s = (at_s + stage.iteration_s * count for count in (place, place + 1))
            self._open(stage.phase, iteration, start_s, end_s)
        if starts is not None:
            for window in self._windows[first:]:
                before = np.searchsorted(starts, (window.start_s, window.end_s))
                self._planned[window.phase, window.iteration] += int(before[1] - before[0])
        return self._windows[-1].end_s

    def begin_counted(self, phase: str) -> None:
        """Open a phase whose only iteration ends when all of its operations are done."""
        self._begins.append(0.0)
        self._open(phase, 1, 0.0, math.inf)

    def end_counted(self, end_s: float) -> None:
        """Say when that was."""
        self._windows[-1] = replace(self._windows[-1], end_s=end_s)

    def fold(self, horizon_s: float = math.inf) -> tuple[Interval, ...]:
        """Take what has happened before `horizon_s`; give its histograms.

        There is one per operation, kind and second, or as many seconds as the stage says. What has
        happened since stays for a later fold, so that a warm-up may still be told to end there. An
        operation that ends late adds a further interval of the time in which it was to start.
        """
        return tuple(
            interval
            for recorder in self._recorders.values()
            for interval in self._fold(recorder, horizon_s)
        )

    def report_seconds(self, until: int) -> str:
        """Return the lines of PROGRESS of the stage under way, up to its second `until`, each once."""
        stage = len(self._begins) - 1
        lines = []
        for second in range(self._reported, until):
            completed, service_s = self._seconds.pop((stage, second), (0, 0.0))
            lines.append(f"{stage},{second},{completed:.0f},{service_s:.6f}\n")
        self._reported = max(self._reported, until)
        return "".join(lines)

    def count(self) -> tuple[Counter, ...]:
        """Return all counters; what was attempted and not folded by now counts as timeouts.

        What an open loop never sent has not drawn its operation: it is shared out by weight.
        """
        unsent = {place: self._share_unsent(place) for place in self._planned}
        counters = []
        for operation, recorder in self._recorders.items():
            for (phase, iteration), tally in recorder.tallies.items():
                missing = unsent.get((phase, iteration), {}).get(operation, 0)
                counters += [
                    Counter(
                        phase=phase,
                        operation=operation,
                        iteration=iteration,
                        name=name,
                        value=value,
                    )
                    for name, value in recorder.total(tally, missing).items()
                ]
        return tuple(counters)

    def examples(self) -> tuple[str, ...]:
        """Return the first message of each kind of error."""
        return tuple(
            f"{kind}: {message}" for log in self.logs.values() for kind, message in log.examples.items()
        )

    def _share_unsent(self, place: tuple[str, int]) -> Mapping[str, int]:
        """Share out what was planned in a window and never sent: by weight, the largest rests first."""
        offered = {
            name: recorder for name, recorder in self._recorders.items() if not recorder.kind.is_part
        }
        sent = sum(recorder.tallies[place][ATTEMPTED] for recorder in offered.values())
        unsent, weights = self._planned[place] - sent, sum(b.kind.weight for b in offered.values())
        exact = {name: unsent * recorder.kind.weight / weights for name, recorder in offered.items()}
        shares = {name: math.floor(value) for name, value in exact.items()}
        rests = sorted(exact, key=lambda name: shares[name] - exact[name])
        for name in rests[: unsent - sum(shares.values())]:
            shares[name] += 1
        return shares

    def _fold(self, recorder: "_OperationRecorder", horizon_s: float) -> Iterator[Interval]:
        # What ended is taken before what began, so that nothing ends here before it has begun.
        completed, failed, sent, begun = recorder.waiting.take(recorder.log, horizon_s)
        if recorder.kind.is_part:
            # One may begin when the load is over, within an operation that began before.
            completed = completed[completed[:, 0] < self._windows[-1].end_s]
        for intended_s, _, name in failed:
            window = self._windows[bisect_right(self._starts(), intended_s) - 1]
            recorder.tallies[window.phase, window.iteration][name] += 1
        self._count(recorder, begun[:, 0], ATTEMPTED)
        self._count(recorder, begun[:, 0], SENT_IN_WINDOW)
        self._count(recorder, sent[:, 0], ATTEMPTED)
        self._count(recorder, sent[self._in_own_stage(sent), 2], SENT_IN_WINDOW)
        self._count(recorder, sent[sent[:, 1] > sent[:, 0], 0], HELD)
        in_own_stage = self._in_own_stage(completed)
        self._count(recorder, completed[in_own_stage, 2], COMPLETED_IN_WINDOW)
        intended_s, sent_s, ended_s = np.ascontiguousarray(completed.T)
        ends_s = (self.last_end_s, *(end_s for _, end_s, _ in failed), ended_s.max(initial=0.0))
        self.last_end_s = float(max(ends_s))
        service_s = ended_s - sent_s
        if not recorder.kind.is_part:
            self._count_seconds(ended_s[in_own_stage], service_s[in_own_stage])
        for window, place, chosen in self._by_time(intended_s):
            tally = recorder.tallies[window.phase, window.iteration]
            tally[Answer.COMPLETED] += int(intended_s[chosen].size)
            response_s = ended_s[chosen] - intended_s[chosen]
            yield self._interval(recorder, RESPONSE_TIME, window, place, response_s)
            yield self._interval(recorder, SERVICE_TIME, window, place, service_s[chosen])
        for window, place, chosen in self._by_time(sent[:, 0]):
            lateness_s = sent[chosen, 2] - sent[chosen, 1]
            yield self._interval(recorder, SEND_LATENESS, window, place, lateness_s)

    def _open(self, phase: str, iteration: int, start_s: float, end_s: float) -> None:
        window = IterationWindow(phase=phase, iteration=iteration, start_s=start_s, end_s=end_s)
        self._windows.append(window)
        for recorder in self._recorders.values():
            recorder.tallies[phase, iteration]  # what nothing happened in is counted as well

    def _starts(self) -> list[float]:
        return [window.start_s for window in self._windows]

    def _count(self, recorder: "_OperationRecorder", times_s: Columns, name: str) -> None:
        """Count each time into its window; what lies after the last one has none."""
        inside = times_s[times_s < self._windows[-1].end_s]
        places = np.searchsorted(self._starts(), inside, side="right") - 1
        for window, count in zip(self._windows, np.bincount(places), strict=False):
            recorder.tallies[window.phase, window.iteration][name] += int(count)

    def _in_own_stage(self, rows: Columns) -> NDArray[np.bool_]:
        """Choose rows whose last time lies in the stage in which the first did.

        What an overloaded stage left behind must not count as what the next one achieved.
        """
        stages = np.searchsorted(self._begins, rows[:, (0, -1)], side="right")
        own: NDArray[np.bool_] = stages[:, 0] == stages[:, 1]
        return own

    def _count_seconds(self, ended_s: Columns, service_s: Columns) -> None:
        for stage, second, chosen in _group(self._begins, ended_s, 1):
            found = self._seconds[stage, second]
            found[0] += int(np.count_nonzero(chosen))
            found[1] += float(service_s[chosen].sum())

    def _by_time(self, intended_s: Columns) -> Iterator[tuple[IterationWindow, int, NDArray[np.bool_]]]:
        for number, place, chosen in _group(self._starts(), intended_s, self._width_s):
            yield self._windows[number], place, chosen

    def _interval(
        self,
        recorder: "_OperationRecorder",
        kind: Metric,
        window: IterationWindow,
        place: int,
        times_s: Columns,
    ) -> Interval:
        encoded = encode_times(np.rint(times_s * 1e6).astype(np.int64))
        if encoded.clamped:
            recorder.tallies[window.phase, window.iteration][CLAMPED] += encoded.clamped
        start_s = window.start_s + place * self._width_s
        # Rounded as the interval log keeps it, so that equal intervals of two engines stay equal.
        return Interval(
            phase=window.phase,
            operation=recorder.kind.operation,
            kind=kind.name,
            iteration=window.iteration,
            start_s=round(self._start_at_s + start_s, 6),
            length_s=round(min(self._width_s, window.end_s - start_s), 6),
            max_us=encoded.max_us,
            encoded=encoded.text,
        )


class _OperationRecorder:
    """What is kept of one operation."""

    def __init__(self, kind: OperationKind) -> None:
        self.kind = kind
        self.log = Log()
        self.waiting = _Waiting()
        self.tallies: defaultdict[tuple[str, int], Tally[str]] = defaultdict(Tally)

    def total(self, tally: Tally[str], unsent: int) -> Tally[str]:
        """Add up a window's counters, of which `unsent` operations were never sent."""
        if self.kind.is_part:
            return Tally({Answer.COMPLETED.value: tally[Answer.COMPLETED]})
        totals = Tally(dict.fromkeys(_ALWAYS_COUNTED, 0))
        totals.update(tally)
        totals[ATTEMPTED] += unsent
        ended = sum(value for name, value in tally.items() if name not in _BESIDE)
        totals[TIMEOUTS] += totals[ATTEMPTED] - ended
        totals[ROWS] = self.kind.rows * tally[Answer.COMPLETED]
        return totals


class _Waiting:
    """What was taken from the log and has not been folded: it happened after the last horizon."""

    def __init__(self) -> None:
        self._completed: Columns = np.empty((0, 3))
        self._sent: Columns = np.empty((0, 3))
        self._begun: Columns = np.empty((0, 1))
        self._failed: list[tuple[float, float, str]] = []

    def take(
        self, log: Log, horizon_s: float
    ) -> tuple[Columns, list[tuple[float, float, str]], Columns, Columns]:
        """Return completed, failed, sent and begun of what happened before the horizon."""
        completed, self._completed = _split(self._completed, log.completed, 3, horizon_s)
        failed = [*self._failed, *_take(log.failed)]
        self._failed = [one for one in failed if one[1] >= horizon_s]
        sent, self._sent = _split(self._sent, log.sent, 3, horizon_s)
        begun, self._begun = _split(self._begun, log.begun, 1, horizon_s)
        return completed, [one for one in failed if one[1] < horizon_s], sent, begun


def _split(
    waiting: Columns, flat: list[float], width: int, horizon_s: float
) -> tuple[Columns, Columns]:
    fresh = np.array(_take(flat), dtype=np.float64).reshape(-1, width)
    rows = np.concatenate((waiting, fresh))
    # The last column is when it happened, never before the others.
    is_past = rows[:, -1] < horizon_s
    return rows[is_past], rows[~is_past]


def _group(
    starts: list[float], times_s: Columns, width_s: int
) -> Iterator[tuple[int, int, NDArray[np.bool_]]]:
    """Yield each place in `starts`, the slots of `width_s` since it that have times, and these."""
    places = np.searchsorted(starts, times_s, side="right") - 1
    # A time just before the next place may lie a whole slot after its own, by rounding.
    last = np.ceil(np.diff(starts, append=np.inf) / width_s) - 1
    slots = np.minimum((times_s - np.array(starts)[places]) // width_s, last[places])
    for place in np.unique(places):
        is_there = places == place
        for slot in np.unique(slots[is_there]):
            yield int(place), int(slot), is_there & (slots == slot)


def _take(items: list[_T]) -> list[_T]:
    count = len(items)
    taken = items[:count]
    del items[:count]
    return taken
