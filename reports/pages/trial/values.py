"""The figures on the page of one trial: its samples and counters, over all iterations and in each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, TypeVar

from perf.model.metrics import HIGHEST_LOAD, METRICS, ROW_THROUGHPUT, THROUGHPUT
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
)
from reports.pages.trial.diagnostics import is_diagnostic
from reports.wording.wording import (
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


_COUNTER_NAMES = tuple(_COUNTERS)
_Measured = TypeVar("_Measured", Sample, Counter)
_Name: TypeAlias = tuple[str, str, str]
"""Metric, statistic and host of a row."""


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
    found: dict[_Name, dict[int | None, str]] = {}
    for s in samples:
        found.setdefault((s.metric, s.statistic, s.host), {})[s.iteration] = number(s.value)
    columns = (None, *iterations)
    return PhaseTable(
        title=f"{operation} {phase_words(phase)}",
        columns=_name_columns(iterations),
        rows=tuple(
            ValueRow(name=title, note=note, cells=tuple([found[name].get(i, NOTHING) for i in columns]))
            for name, title, note in _put_in_order(tuple(found))
        ),
    )


@lru_cache(1 << 10)
def _put_in_order(names: tuple[_Name, ...]) -> tuple[tuple[_Name, str, str], ...]:
    """Give metric, statistic and host of each row with its title and its note, in reading order."""
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


def view_counters(counters: Sequence[Counter]) -> tuple[PhaseTable, ...]:
    """Put the counters into tables, by phase and operation."""
    return tuple(_tabulate_counters(*at, found) for at, found in _by_place(counters).items())


def _tabulate_counters(phase: str, operation: str, counters: Sequence[Counter]) -> PhaseTable:
    values: dict[str, dict[int, int]] = {}
    for c in counters:
        values.setdefault(c.name, {})[c.iteration] = c.value
    found = sorted({i for own in values.values() for i in own})
    # Iteration 0 is a warm-up, or all of a phase without iterations: never part of a measured sum.
    measured = [i for i in found if i > 0]
    iterations = tuple(found) if measured else ()
    summed = measured or found
    return PhaseTable(
        title=f"{operation} {phase_words(phase)}",
        columns=_name_columns(iterations),
        rows=tuple(
            ValueRow(
                name=name.replace("_", " "),
                note=_COUNTERS.get(name, ""),
                cells=(
                    f"{sum([values[name].get(i, 0) for i in summed]):,}",
                    *[f"{values[name][i]:,}" if i in values[name] else NOTHING for i in iterations],
                ),
            )
            for name in sorted(values, key=_counter_rank)
        ),
    )


def _counter_rank(name: str) -> tuple[int, str]:
    return rank(name, _COUNTER_NAMES), name


def _name_columns(iterations: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"Iteration {i}" if i else "Warm-up" for i in iterations)
