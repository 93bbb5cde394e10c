"""How response times went over the time that phases took, in windows of merged histograms. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil

from perf.history.distributions import Recording
from perf.model.histograms import decode, make_room
from perf.model.results import Interval

_US_PER_MS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseWindow:
    """The operations of one stretch of a phase. `at_s` counts from the begin of the first phase."""

    phase: str
    operation: str
    at_s: float
    length_s: float
    count: int
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseDrift:
    """How the p99 of windows moved, in ms: the first and the last, and the lowest and the highest."""

    first_ms: float
    last_ms: float
    lowest_ms: float
    highest_ms: float

    @property
    def ratio(self) -> float:
        """Give the last over the first."""
        return self.last_ms / self.first_ms if self.first_ms else float("inf")


def cut(recordings: Iterable[Recording], windows: int) -> tuple[CourseWindow, ...]:
    """Cut each recording into up to `windows` windows of equal numbers of histograms, in order of time.

    Percentiles are those of a window's merged histogram; empty histograms count for nothing.

    Raises:
        ValueError: a histogram cannot be decoded.

    """
    measured = [
        (one, sorted((it for it in one.intervals if it.iteration), key=lambda it: it.start_s))
        for one in recordings
    ]
    measured = sorted(
        ((one, intervals) for one, intervals in measured if intervals),
        key=lambda pair: pair[1][0].start_s,
    )
    if not measured:
        return ()
    begin_s = measured[0][1][0].start_s
    return tuple(
        window for one, intervals in measured for window in _cut_one(one, intervals, windows, begin_s)
    )


def _cut_one(
    recording: Recording, intervals: Sequence[Interval], windows: int, begin_s: float
) -> Iterator[CourseWindow]:
    size = ceil(len(intervals) / windows)
    for _, group in groupby(enumerate(intervals), key=lambda pair: pair[0] // size):
        own = [interval for _, interval in group]
        histograms = [found for one in own if (found := decode(one.encoded)).total_count]
        if not histograms:
            continue
        merged = make_room(histograms)
        for histogram in histograms:
            merged.add(histogram)
        end_s = max(one.start_s + one.length_s for one in own)
        yield CourseWindow(
            phase=recording.phase,
            operation=recording.operation,
            at_s=own[0].start_s - begin_s,
            length_s=end_s - own[0].start_s,
            count=int(merged.total_count),
            p50_ms=merged.get_value_at_percentile(50) / _US_PER_MS,
            p99_ms=merged.get_value_at_percentile(99) / _US_PER_MS,
        )


def find_drift(windows: Sequence[CourseWindow]) -> CourseDrift | None:
    """Tell how the p99 of windows, in order of time, moved; of one window nothing can be told."""
    if len(windows) < 2:  # noqa: PLR2004
        return None
    values = [one.p99_ms for one in windows]
    return CourseDrift(
        first_ms=values[0], last_ms=values[-1], lowest_ms=min(values), highest_ms=max(values)
    )
