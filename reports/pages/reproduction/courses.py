"""How response times went over the time that phases took: windows of merged histograms, as a chart."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from perf.history.distributions import Recording
from perf.model.histograms import decode_sparse
from perf.model.metrics import RESPONSE_TIME_DRIFT
from perf.model.references import PublishedCourse
from perf.model.results import Interval, Trial
from reports.site.svg import Scale

_US_PER_MS = 1000
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 720, 260, 56, 12, 28
_LEAST_MS = 0.01
_LEAST_GAP = 16
"""Between two numbers below the chart."""


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
class Drawn:
    """The windows of one course of a report; `problem` where they cannot be read.

    `drift` is that of the iteration as the trial recorded it, in per cent: estimate, lower and upper
    end of its interval.
    """

    course: PublishedCourse
    operation: str
    windows: tuple[CourseWindow, ...] = ()
    drift: tuple[float, float, float] | None = None
    problem: str = ""

    @property
    def title(self) -> str:
        """Return the title of the course, with its operation if it is of one."""
        return f"{self.course.title}: {self.operation}" if self.operation else self.course.title


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A phase in the chart: where its number stands, its name, its begin, and its two lines.

    `number_x` is None where the phase is too short for a number beside that of the one before.
    """

    number_x: float | None
    name: str
    begin: float
    p50: str
    p99: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseChart:
    """Phases from left to right; `levels` are heights of the logarithmic scale with their ms."""

    stretches: tuple[Stretch, ...]
    levels: tuple[tuple[float, float], ...]
    width: float = _WIDTH
    height: float = _HEIGHT
    left: float = _LEFT
    bottom: float = _HEIGHT - _BOTTOM


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
    size = math.ceil(len(intervals) / windows)
    for _, group in groupby(enumerate(intervals), key=lambda pair: pair[0] // size):
        own = [interval for _, interval in group]
        merged = decode_sparse([one.encoded for one in own]).merge()
        (total,) = merged.totals
        if not total:
            continue
        ((p50_us, p99_us),) = merged.values_us([50, 99])
        end_s = max(one.start_s + one.length_s for one in own)
        yield CourseWindow(
            phase=recording.phase,
            operation=recording.operation,
            at_s=own[0].start_s - begin_s,
            length_s=end_s - own[0].start_s,
            count=total,
            p50_ms=p50_us / _US_PER_MS,
            p99_ms=p99_us / _US_PER_MS,
        )


def find_recorded_drift(
    trial: Trial, course: PublishedCourse, operation: str
) -> tuple[float, float, float] | None:
    """Return the drift of an operation in a course of one phase, as a trial recorded it, or None."""
    found = {
        sample.statistic: sample.value
        for sample in trial.samples
        if sample.metric == RESPONSE_TIME_DRIFT.name
        and (sample.operation, (sample.phase,)) == (operation, course.phases)
        and sample.iteration is None
    }
    if not found.keys() >= {"estimate", "lower", "upper"}:
        return None
    return found["estimate"], found["lower"], found["upper"]


def draw_course(windows: Sequence[CourseWindow]) -> CourseChart:
    """Draw p50 and p99 of windows in order of time, of which there is one at least."""
    values = [max(value, _LEAST_MS) for one in windows for value in (one.p50_ms, one.p99_ms)]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    x = Scale(0, max(one.at_s + one.length_s for one in windows) or 1, _LEFT, _WIDTH - 4)
    y = Scale(low, high, _HEIGHT - _BOTTOM, _TOP)

    def trace(own: Sequence[CourseWindow], values_ms: Iterable[float]) -> str:
        heights = [y(math.log10(max(value, _LEAST_MS))) for value in values_ms]
        # A phase of one window is a line as long as it; of several, from middle to middle.
        if len(own) == 1:
            return f"M{x(own[0].at_s):g},{heights[0]:g}H{x(own[0].at_s + own[0].length_s):g}"
        middles = (x(one.at_s + one.length_s / 2) for one in own)
        return "M" + "L".join(f"{at:g},{height:g}" for at, height in zip(middles, heights, strict=True))

    stretches: list[Stretch] = []
    last_x: float = _LEFT - _LEAST_GAP
    for name, group in groupby(windows, key=lambda one: one.phase):
        own = tuple(group)
        begin = x(own[0].at_s)
        middle = round((begin + x(own[-1].at_s + own[-1].length_s)) / 2, 1)
        has_room = middle - last_x >= _LEAST_GAP
        last_x = middle if has_room else last_x
        stretches.append(
            Stretch(
                number_x=middle if has_room else None,
                name=name,
                begin=begin,
                p50=trace(own, (one.p50_ms for one in own)),
                p99=trace(own, (one.p99_ms for one in own)),
            )
        )
    return CourseChart(
        stretches=tuple(stretches),
        levels=tuple((y(power), 10.0**power) for power in range(low, high + 1)),
    )
