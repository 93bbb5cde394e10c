"""How response times went over the time that phases took, in words and as a chart."""

from collections.abc import Sequence
from dataclasses import dataclass

from perf.metrics import RESPONSE_TIME
from perf.references import Course
from reports.charts.course import CourseChart, draw_course
from reports.data.courses import Drift, Window, find_drift
from reports.data.reproductions import Setting
from reports.view.wording import count, number, percent, quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The windows of one course of a report in one setting; `problem` where they cannot be read."""

    course: Course
    operation: str
    setting: Setting | None
    windows: tuple[Window, ...] = ()
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


def _label(windows: Sequence[Window]) -> str:
    phases = list(dict.fromkeys(one.phase for one in windows))
    lowest, highest = min(one.p99_ms for one in windows), max(one.p99_ms for one in windows)
    return (
        f"p50 and p99 response time over {count(len(phases), 'phase')}, in ms on a logarithmic scale; "
        f"p99 from {number(lowest)} to {number(highest)} ms. The same as a table follows."
    )


def _tell_drift(drift: Drift | None, drawn: Drawn) -> str:
    if drift is None:
        return "Of fewer than two windows no drift can be told."
    windows = count(len(drawn.windows), "window")
    return (
        f"p99 over {windows}: {quantity(drift.first_ms, RESPONSE_TIME.name)} in the first, "
        f"{quantity(drift.last_ms, RESPONSE_TIME.name)} in the last ({percent(drift.ratio - 1)}); from "
        f"{number(drift.lowest_ms)} to {quantity(drift.highest_ms, RESPONSE_TIME.name)}. "
        "Windows are merged histograms, never averaged percentiles."
    )
