"""The figures on the page of one trial: samples, counters, diagnostics, canaries.

A table has a row for each quantity and numbers in its cells; None is what was not measured, and several
numbers are those of iterations, of which the range is shown.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import nlargest
from operator import attrgetter
from typing import TypeAlias, TypeVar

from markupsafe import Markup

from perf.model.metrics import (
    CANARY_PHASES,
    DIAGNOSTICS,
    HIGHEST_LOAD,
    METHOD_CPU,
    METRICS,
    PACKAGE_CPU,
    RESPONSE_TIME,
    ROW_THROUGHPUT,
    SEND_LATENESS,
    SERVICE_TIME,
    THROUGHPUT,
)
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
    Sample,
    Trial,
)
from perf.trial.spent import TRIAL
from reports.wording.wording import (
    NOTHING,
    STATISTICS,
    direction_words,
    metric_words,
    number,
    phase_words,
    quantity,
    rank,
    spread,
    unit_words,
)

_METRICS = (THROUGHPUT.name, ROW_THROUGHPUT.name, *METRICS)
_DIAGNOSTICS = tuple(DIAGNOSTICS)
_MAIN = ((THROUGHPUT.name, "mean"), (RESPONSE_TIME.name, "p50"), (RESPONSE_TIME.name, "p99"))
_COUNTERS = {
    ATTEMPTED: "",
    Answer.COMPLETED: "",
    Answer.NOT_FOUND: "the answer lacked a row",
    Answer.WRONG_DATA: "the answer held a wrong row",
    TIMEOUTS: "",
    COMPLETED_IN_WINDOW: "ended in the measured time, whenever they were to start",
    SENT_IN_WINDOW: "sent in the measured time",
    HELD: (
        "waited for one of the client's slots: the server was slower than the load, or in_flight is "
        "too small"
    ),
    ROWS: "in completed operations",
    CLAMPED: "times outside of a histogram's range",
}
_COUNTER_NAMES = tuple(_COUNTERS)
_CODE = (METHOD_CPU.name, PACKAGE_CPU.name)
_MOST_METHODS = 15
"""Of a trial with a profiler: it has hundreds."""
_Measured = TypeVar("_Measured", Sample, Counter)
_Name: TypeAlias = tuple[str, str, str]
"""Metric, statistic and host of a row."""
Echoes: TypeAlias = frozenset[tuple[str, str, str]]
"""Phase, operation and metric of what only repeats another figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One metric and statistic, or one counter: over the whole phase, then by column."""

    name: str
    note: str
    cells: Sequence[float | Sequence[float] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The values of one operation in one phase; that of the whole phase is not in `columns`."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def body(self) -> Markup:
        """The rows as HTML; by a template, they took half the time of a trial's page."""
        return Markup("\n").join(
            Markup(f"<tr>{_head_row(row.name, row.note)}{''.join(map(_write_cell, row.cells))}</tr>")  # noqa: S704  names are escaped, the rest are numbers
            for row in self.rows
        )


@lru_cache(1 << 12)
def _head_row(name: str, note: str) -> Markup:
    return Markup('<th scope="row">{}{}</th>').format(
        name, Markup(' <span class="note">{}</span>').format(note) if note else ""
    )


def _write_cell(value: float | Sequence[float] | None) -> str:
    """Write a number, or the values of a trial's iterations; neither needs to be escaped."""
    match value:
        case None:
            return f"<td>{NOTHING}</td>"
        case int():
            return f"<td>{value:,}</td>"
        case float():
            return f"<td>{number(value)}</td>"
        case _:
            return f"<td>{spread(value)}</td>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """Fixed work on one host before and after the trial, by statistic; empty if it was not done."""

    host: str
    metric: str
    before: Mapping[str, float]
    after: Mapping[str, float]

    @property
    def has_moved(self) -> bool:
        """Whether all repetitions on one side lay beyond all of the other."""
        if not {"min", "max"} <= self.before.keys() & self.after.keys():
            return False
        return self.before["max"] < self.after["min"] or self.after["max"] < self.before["min"]


def is_diagnostic(sample: Sample) -> bool:
    """Return whether a sample explains a result rather than being one.

    Rows per second are throughput in another unit, so they stand beside it.
    """
    return sample.metric in DIAGNOSTICS and sample.metric != ROW_THROUGHPUT.name


def list_samples(samples: Sequence[Sample], echoes: Echoes = frozenset()) -> list[Table]:
    """Return the samples that are results, by phase and operation; no service time that is an echo."""
    times = {echo for echo in echoes if echo[-1] == SERVICE_TIME.name}
    shown = [
        s
        for s in samples
        # The answer of a search stands with its steps, what explains results among the diagnostics.
        if s.metric != HIGHEST_LOAD.name
        and not is_diagnostic(s)
        and (s.phase, s.operation, s.metric) not in times
    ]
    return [_tabulate_samples(*at, found) for at, found in _by_place(shown).items()]


def list_figures(trial: Trial, echoes: Echoes) -> list[tuple[str, str]]:
    """Return the main figures of each operation at one load: where, and what in a few words."""
    return [
        (f"{operation} {phase_words(phase)}", text)
        for phase, own in group_figures(trial, echoes).items()
        for operation, text in own
    ]


def group_figures(trial: Trial, echoes: Echoes) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return by phase the main figures of each operation at one load: which, and what in a few words.

    Steps of a ladder or a search stand in a table of their own.
    """
    stepped = {step.phase for step in trial.steps}
    whole = [one for one in trial.samples if one.iteration is None and not one.host]
    said: dict[tuple[str, str], list[str]] = {}
    for metric, statistic in _MAIN:
        for one in whole:
            at = one.phase, one.operation
            if (one.metric, one.statistic) != (metric, statistic) or one.phase in stepped:
                continue
            if (*at, metric) not in echoes:
                name = "" if statistic == "mean" else f"{statistic} "
                said.setdefault(at, []).append(f"{name}{quantity(one.value, metric)}")
    found: dict[str, list[tuple[str, str]]] = {}
    for (phase, operation), own in said.items():
        found.setdefault(phase, []).append((operation, ", ".join(own)))
    return found


def find_echoes(samples: Iterable[Sample]) -> Echoes:
    """Return phase, operation and metric of what only repeats another figure.

    In a closed loop an operation is sent when it is meant to start, so its service time is its response
    time; on a schedule, the throughput is the load that was offered.
    """
    found: dict[tuple[str, str, str], dict[tuple[object, ...], float]] = {}
    for one in samples:
        of_metric = found.setdefault((one.phase, one.operation, one.metric), {})
        of_metric[one.statistic, one.iteration, one.host] = one.value
    return frozenset(
        (phase, operation, metric)
        for (phase, operation, metric), values in found.items()
        if (metric == SERVICE_TIME.name and values == found.get((phase, operation, RESPONSE_TIME.name)))
        or (metric == THROUGHPUT.name and (phase, operation, SEND_LATENESS.name) in found)
    )


def list_counters(counters: Sequence[Counter]) -> list[Table]:
    """Return the counters, by phase and operation."""
    return [_tabulate_counters(*at, found) for at, found in _by_place(counters).items()]


def list_diagnostics(samples: Iterable[Sample]) -> list[Table]:
    """Return what hosts and clients did, phase by phase, and the code that cost most.

    No verdict rests on it.
    """
    apart = {*CANARY_PHASES, TRIAL}
    found = [one for one in samples if is_diagnostic(one) and one.phase not in apart]
    methods = (one for one in found if one.metric == METHOD_CPU.name)
    dearest = {*nlargest(_MOST_METHODS, methods, key=attrgetter("value"))}
    found = [one for one in found if one.metric not in _CODE or one in dearest]
    return [_tabulate_diagnostics(*at, own) for at, own in _by_place(found).items()]


def list_canaries(samples: Iterable[Sample]) -> list[Canary]:
    """Return what the canaries of a trial took, by host and kind."""
    runs: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for sample in samples:
        if sample.iteration is None and sample.phase in CANARY_PHASES and is_diagnostic(sample):
            of_place = runs.setdefault((sample.host, sample.metric), {})
            of_place.setdefault(sample.phase, {})[sample.statistic] = sample.value
    first, second = CANARY_PHASES
    ordered = sorted(runs, key=lambda at: (at[0], _DIAGNOSTICS.index(at[1])))
    return [
        Canary(host=at[0], metric=at[1], before=runs[at].get(first, {}), after=runs[at].get(second, {}))
        for at in ordered
    ]


def _by_place(values: Iterable[_Measured]) -> dict[tuple[str, str], list[_Measured]]:
    """Gather what was measured by phase and operation, in the order of their first values."""
    found: dict[tuple[str, str], list[_Measured]] = {}
    for value in values:
        found.setdefault((value.phase, value.operation), []).append(value)
    return found


def _tabulate_samples(phase: str, operation: str, samples: Sequence[Sample]) -> Table:
    iterations = tuple(sorted({s.iteration for s in samples if s.iteration is not None}))
    found: dict[_Name, dict[int | None, float]] = {}
    for s in samples:
        found.setdefault((s.metric, s.statistic, s.host), {})[s.iteration] = s.value
    columns = (None, *iterations)
    return Table(
        title=f"{operation} {phase_words(phase)}",
        columns=_name_columns(iterations),
        rows=tuple(
            Row(name=title, note=note, cells=[found[name].get(i) for i in columns])
            for name, title, note in _put_in_order(tuple(found))
        ),
    )


@lru_cache(1 << 10)
def _put_in_order(names: tuple[_Name, ...]) -> tuple[tuple[_Name, str, str], ...]:
    """Return metric, statistic and host of each row with its title and its note, in reading order."""
    # All trials of an experiment have the same names.
    return tuple(
        (
            (metric, statistic, host),
            metric_words(metric, statistic) + (f", {host}" if host else ""),
            f"{unit_words(metric)}, {direction_words(metric)}",
        )
        for metric, statistic, host in sorted(
            names,
            key=lambda name: (rank(name[0], _METRICS), name[0], rank(name[1], STATISTICS), *name[1:]),
        )
    )


def _tabulate_counters(phase: str, operation: str, counters: Sequence[Counter]) -> Table:
    values: dict[str, dict[int, int]] = {}
    for c in counters:
        values.setdefault(c.name, {})[c.iteration] = c.value
    found = sorted({i for own in values.values() for i in own})
    # Iteration 0 is a warm-up, or all of a phase without iterations: never part of a measured sum.
    measured = [i for i in found if i > 0]
    iterations = tuple(found) if measured else ()
    summed = measured or found
    return Table(
        title=f"{operation} {phase_words(phase)}",
        columns=_name_columns(iterations),
        rows=tuple(
            Row(
                name=name.replace("_", " "),
                note=_COUNTERS.get(name, ""),
                cells=[sum([own.get(i, 0) for i in summed]), *map(own.get, iterations)],
            )
            for name, own in sorted(
                values.items(), key=lambda one: (rank(one[0], _COUNTER_NAMES), one[0])
            )
        ),
    )


def _name_columns(iterations: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"Iteration {i}" if i else "Warm-up" for i in iterations)


def _tabulate_diagnostics(phase: str, operation: str, samples: Sequence[Sample]) -> Table:
    hosts = tuple(sorted({s.host for s in samples if s.host}))
    whole = {(s.metric, s.statistic, s.host): s.value for s in samples if s.iteration is None}
    wanted = sorted({(s.metric, s.statistic) for s in samples}, key=_reading_order)
    repeated: dict[tuple[str, str], list[float]] = {at: [] for at in wanted}
    for one in samples:
        if one.iteration is not None and not one.host:
            repeated[one.metric, one.statistic].append(one.value)
    has_iterations = any(repeated.values())
    return Table(
        title=f"{operation} {phase_words(phase)}".strip(),
        columns=(*hosts, *(("By iteration",) if has_iterations else ())),
        rows=tuple(
            Row(
                name=metric_words(*at),
                note=unit_words(at[0]),
                cells=[
                    *(whole.get((*at, host)) for host in ("", *hosts)),
                    *((repeated[at],) if has_iterations else ()),
                ],
            )
            for at in wanted
        ),
    )


def _reading_order(at: tuple[str, str]) -> tuple[int, int, str]:
    metric, statistic = at
    return _DIAGNOSTICS.index(metric), rank(statistic, STATISTICS), statistic
