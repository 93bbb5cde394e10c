"""The figures on the page of one trial: its samples and counters, over all iterations and in each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from perf.metrics import HIGHEST_LOAD, METRICS, ROW_THROUGHPUT, THROUGHPUT
from perf.model import (
    ATTEMPTED,
    CLAMPED,
    COMPLETED_IN_WINDOW,
    HELD,
    ROWS,
    SENT_IN_WINDOW,
    TIMEOUTS,
    Counter,
    Sample,
)
from perf.workloads.sensor import Answer
from reports.view.diagnostics import is_diagnostic
from reports.view.wording import (
    NOTHING,
    STATISTICS,
    direction_words,
    metric_words,
    number,
    phase_words,
    rank,
    unit_words,
)

_METRICS = (THROUGHPUT.name, ROW_THROUGHPUT.name, *METRICS)
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


_Measured = TypeVar("_Measured", Sample, Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRow:
    """One metric and statistic, or one counter; `cells` are over all iterations, then in each."""

    name: str
    note: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTable:
    """The values of one operation in one phase."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[ValueRow, ...]


def view_samples(samples: Sequence[Sample]) -> tuple[PhaseTable, ...]:
    """Put the samples that are results into tables, by phase and operation."""
    # The answer of a search stands with its steps, what explains results among the diagnostics.
    shown = [s for s in samples if s.metric != HIGHEST_LOAD.name and not is_diagnostic(s)]
    return tuple(_tabulate_samples(*at, found) for at, found in _by_place(shown).items())


def _by_place(values: Iterable[_Measured]) -> dict[tuple[str, str], list[_Measured]]:
    """Gather what was measured by phase and operation, in the order of their first values."""
    found: dict[tuple[str, str], list[_Measured]] = {}
    for value in values:
        found.setdefault((value.phase, value.operation), []).append(value)
    return found


def _tabulate_samples(phase: str, operation: str, samples: Sequence[Sample]) -> PhaseTable:
    iterations = tuple(sorted({s.iteration for s in samples if s.iteration is not None}))
    cells = {(s.metric, s.statistic, s.host, s.iteration): number(s.value) for s in samples}
    ordered = sorted(
        {(s.metric, s.statistic, s.host) for s in samples},
        key=lambda name: (rank(name[0], _METRICS), name[0], rank(name[1], STATISTICS), *name[1:]),
    )
    return PhaseTable(
        title=f"{operation} {phase_words(phase)}",
        columns=_name_columns(iterations),
        rows=tuple(
            ValueRow(
                name=metric_words(metric, statistic) + (f", {host}" if host else ""),
                note=f"{unit_words(metric)}, {direction_words(metric)}",
                cells=tuple(
                    cells.get((metric, statistic, host, i), NOTHING) for i in (None, *iterations)
                ),
            )
            for metric, statistic, host in ordered
        ),
    )


def view_counters(counters: Sequence[Counter]) -> tuple[PhaseTable, ...]:
    """Put the counters into tables, by phase and operation."""
    return tuple(_tabulate_counters(*at, found) for at, found in _by_place(counters).items())


def _tabulate_counters(phase: str, operation: str, counters: Sequence[Counter]) -> PhaseTable:
    found = sorted({c.iteration for c in counters})
    # Iteration 0 is a warm-up, or all of a phase without iterations: never part of a measured sum.
    measured = [i for i in found if i > 0]
    iterations = tuple(found) if measured else ()
    names = sorted({c.name for c in counters}, key=lambda name: (rank(name, tuple(_COUNTERS)), name))
    values = {(c.name, c.iteration): c.value for c in counters}
    return PhaseTable(
        title=f"{operation} {phase_words(phase)}",
        columns=_name_columns(iterations),
        rows=tuple(
            ValueRow(
                name=name.replace("_", " "),
                note=_COUNTERS.get(name, ""),
                cells=(
                    f"{sum(values.get((name, i), 0) for i in measured or found):,}",
                    *(f"{values[name, i]:,}" if (name, i) in values else NOTHING for i in iterations),
                ),
            )
            for name in names
        ),
    )


def _name_columns(iterations: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"Iteration {i}" if i else "Warm-up" for i in iterations)
