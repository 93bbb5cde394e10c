"""What the threads of an engine measure, folded into histograms and counters about once a second.

A thread only appends to its own `ThreadLog`; list.append and a slice taken from a list's front are
each one step under the interpreter's lock, so that no thread waits for the folding. Nothing is ever
dropped: each attempted operation ends in exactly one counter.
"""

from bisect import bisect_right
from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from perf.load.histogram import encode, record
from perf.load.spec import TimedPhase
from perf.metrics import RESPONSE_TIME, SERVICE_TIME
from perf.model import Counter, Interval
from perf.workloads.sensor import Answer

_T = TypeVar("_T")

TIMEOUTS = "timeouts"
COMPLETED_IN_WINDOW = "completed_in_window"
_ATTEMPTED = "attempted"
_CLAMPED = "clamped"
_ALWAYS_COUNTED = (_ATTEMPTED, *Answer, TIMEOUTS, COMPLETED_IN_WINDOW)


@dataclass(slots=True)
class ThreadLog:
    """What one thread appends to. All times are seconds from the start of the first phase.

    `begun`: intended start of each operation, before it is sent. `completed`: (intended start, send,
    end). `failed`: (intended start, counter name). `examples`: the first message of each kind.
    """

    begun: list[float] = field(default_factory=list)
    completed: list[tuple[float, float, float]] = field(default_factory=list)
    failed: list[tuple[float, str]] = field(default_factory=list)
    examples: dict[str, str] = field(default_factory=dict)


class Recorder:
    """Folds the logs of all threads of an engine, by phase and second of the intended start."""

    def __init__(self, phases: Sequence[TimedPhase], operation: str, start_at_s: float) -> None:
        """Lay the phases back to back from `start_at_s` (Unix time) on."""
        self._phases = phases
        self._operation = operation
        self._start_at_s = start_at_s
        self._edges = phase_edges(phases)
        self._logs: list[ThreadLog] = []
        self._tallies: list[Tally[str]] = [Tally() for _ in phases]
        self._ended_s = [0.0 for _ in phases]

    def open_log(self) -> ThreadLog:
        """Give a thread the log that it alone appends to."""
        log = ThreadLog()
        self._logs.append(log)
        return log

    def expect(self, scheduled: Sequence[int]) -> None:
        """Count operations as attempted, per phase, because a schedule says when they start."""
        for tally, count in zip(self._tallies, scheduled, strict=True):
            tally[_ATTEMPTED] += count

    def fold(self) -> tuple[Interval, ...]:
        """Take what the threads have appended since; give its histograms, one per second and kind.

        An operation that ends late adds a further interval of the second in which it was to start.
        """
        # What ended is taken before what began, so that nothing ends here before it has begun.
        completed = [row for log in self._logs for row in _take(log.completed)]
        failed = [row for log in self._logs for row in _take(log.failed)]
        begun = [intended_s for log in self._logs for intended_s in _take(log.begun)]
        for intended_s in begun:
            self._tallies[self._phase_of(intended_s)][_ATTEMPTED] += 1
        for intended_s, name in failed:
            self._tallies[self._phase_of(intended_s)][name] += 1
        return self._fold_completed(np.array(completed, dtype=np.float64).reshape(-1, 3))

    def count(self) -> tuple[Counter, ...]:
        """Give all counters; what was attempted and not folded by now counts as timeouts."""
        counters = []
        for phase, tally in zip(self._phases, self._tallies, strict=True):
            totals = Tally(dict.fromkeys(_ALWAYS_COUNTED, 0))
            totals.update(tally)
            beside = (_ATTEMPTED, COMPLETED_IN_WINDOW, _CLAMPED)
            ended = sum(value for name, value in tally.items() if name not in beside)
            totals[TIMEOUTS] += tally[_ATTEMPTED] - ended
            counters += [
                Counter(
                    phase=phase.name,
                    operation=self._operation,
                    iteration=phase.iteration,
                    name=name,
                    value=value,
                )
                for name, value in totals.items()
            ]
        return tuple(counters)

    def ended_s(self) -> tuple[float, ...]:
        """Give, per phase, the seconds from its start to the end of its last completed operation."""
        return tuple(self._ended_s)

    def examples(self) -> tuple[str, ...]:
        """Give the first message of each kind of error."""
        found: dict[str, str] = {}
        for log in self._logs:
            found = {**dict(log.examples), **found}
        return tuple(f"{kind}: {message}" for kind, message in found.items())

    def _phase_of(self, intended_s: float) -> int:
        return bisect_right(self._edges, intended_s) - 1

    def _fold_completed(self, rows: NDArray[np.float64]) -> tuple[Interval, ...]:
        intended_s, sent_s, ended_s = rows.T
        edges = np.array(self._edges)
        windows = np.searchsorted(edges, ended_s, side="right") - 1
        for window, count in zip(*np.unique(windows, return_counts=True), strict=True):
            if window < len(self._phases):
                self._tallies[window][COMPLETED_IN_WINDOW] += int(count)
        phases = np.searchsorted(edges, intended_s, side="right") - 1
        seconds = np.floor(intended_s - edges[phases]).astype(np.int64)
        intervals: list[Interval] = []
        for phase, second in np.unique(np.column_stack((phases, seconds)), axis=0):
            chosen = (phases == phase) & (seconds == second)
            self._tallies[phase][Answer.COMPLETED] += int(np.count_nonzero(chosen))
            last_s = float(ended_s[chosen].max()) - self._edges[phase]
            self._ended_s[phase] = max(self._ended_s[phase], last_s)
            for kind, since_s in ((RESPONSE_TIME, intended_s), (SERVICE_TIME, sent_s)):
                times_s = ended_s[chosen] - since_s[chosen]
                intervals.append(self._interval(int(phase), int(second), kind.name, times_s))
        return tuple(intervals)

    def _interval(self, phase: int, second: int, kind: str, times_s: NDArray[np.float64]) -> Interval:
        histogram, clamped = record(np.rint(times_s * 1e6).astype(np.int64))
        if clamped:
            self._tallies[phase][_CLAMPED] += clamped
        start_s = self._edges[phase] + second
        # Rounded as the interval log keeps it, so that equal intervals of two engines stay equal.
        return Interval(
            phase=self._phases[phase].name,
            operation=self._operation,
            kind=kind,
            iteration=self._phases[phase].iteration,
            start_s=round(self._start_at_s + start_s, 6),
            length_s=round(min(1.0, self._edges[phase + 1] - start_s), 6),
            max_us=histogram.get_max_value(),
            encoded=encode(histogram),
        )


def phase_edges(phases: Sequence[TimedPhase]) -> tuple[float, ...]:
    """Give the start of each phase and the end of the last, in seconds from the first one's start."""
    edges = [0.0]
    for phase in phases:
        edges.append(edges[-1] + phase.duration_s)
    return tuple(edges)


def _take(items: list[_T]) -> list[_T]:
    count = len(items)
    taken = items[:count]
    del items[:count]
    return taken
