"""How response times went over the time that phases took, in words and as a chart."""

from collections.abc import Sequence
from dataclasses import dataclass

from perf.model.metrics import RESPONSE_TIME, RESPONSE_TIME_DRIFT
from perf.model.references import PublishedCourse
from perf.model.results import Trial
from reports.pages.reproduction.chart import CourseChart, draw_course
from reports.pages.reproduction.courses import CourseDrift, CourseWindow, find_drift
from reports.wording.wording import count, number, percent, quantity


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseView:
    """Percentiles over time; `drift` says how p99 moved, `problem` why nothing is drawn."""

    anchor: str
    title: str
    note: str
    chart: CourseChart | None
    label: str
    drift: str
    windows: tuple[tuple[str, ...], ...]
    problem: str


def find_recorded_drift(
    trial: Trial, course: PublishedCourse, operation: str
) -> tuple[float, float, float] | None:
    """Give the drift of an operation in a course of one phase, as a trial recorded it; None if not."""
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


def view_course(place: int, drawn: Drawn) -> CourseView:
    """Put the windows of a course into words; `place` is its number on the page."""
    chart = draw_course(drawn.windows)
    drift = find_drift(drawn.windows)
    problem = drawn.problem
    if not problem and chart is None:
        problem = f"Not measured here: no completed trial of {drawn.course.workload} has histograms."
    title = f"{drawn.course.title}: {drawn.operation}" if drawn.operation else drawn.course.title
    return CourseView(
        anchor=f"course-{place}",
        title=title,
        note=drawn.course.note,
        chart=chart,
        label=_label(drawn.windows) if chart else "",
        drift=_tell_drift(drift, drawn) if drawn.operation else "",
        windows=tuple(
            (
                one.phase,
                one.operation,
                f"{number(one.at_s)}\N{NO-BREAK SPACE}s",
                f"{one.count:,}",
                quantity(one.p50_ms, RESPONSE_TIME.name),
                quantity(one.p99_ms, RESPONSE_TIME.name),
            )
            for one in drawn.windows
        ),
        problem=problem,
    )


def _label(windows: Sequence[CourseWindow]) -> str:
    phases = list(dict.fromkeys(one.phase for one in windows))
    lowest, highest = min(one.p99_ms for one in windows), max(one.p99_ms for one in windows)
    return (
        f"p50 and p99 response time over {count(len(phases), 'phase')}, in ms on a logarithmic scale; "
        f"p99 from {number(lowest)} to {number(highest)} ms. The same as a table follows."
    )


def _tell_drift(drift: CourseDrift | None, drawn: Drawn) -> str:
    if drift is None:
        return "Of fewer than two windows no drift can be told."
    windows = count(len(drawn.windows), "window")
    first, last = (quantity(one, RESPONSE_TIME.name) for one in (drift.first_ms, drift.last_ms))
    return (
        f"p99 over {windows}: {first} in the first, {last} in the last ({percent(drift.ratio - 1)}); "
        f"from {number(drift.lowest_ms)} to {quantity(drift.highest_ms, RESPONSE_TIME.name)}. "
        f"{_tell_recorded(drawn.drift)}"
    )


def _tell_recorded(drift: tuple[float, float, float] | None) -> str:
    """Tell the drift that the trial recorded, over many more windows than are drawn."""
    if drift is None:
        return "The trial recorded no drift: it takes an iteration of a minute at least."
    estimate, lower, upper = (percent(one / 100) for one in drift)
    sure = "" if drift[1] > 0 or drift[2] < 0 else ", which holds 0: one cannot tell"
    reach = f"95\N{NO-BREAK SPACE}%: {lower} to {upper}{sure}"
    return f"Recorded drift of p99 over the iteration: {estimate} ({reach})."
