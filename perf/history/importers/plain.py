"""Rows of a plain table, from CSV or JSON: one value each. Rows of one run are put together here.

A run is all rows with the same time, system, release, line, workload, testbed and config. Columns that
are not known are attributes of the run.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from math import fsum
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from perf.history.importers.run import (
    EVERYTHING,
    PER_MS,
    PHASE,
    ForeignRun,
    Unreadable,
    digest,
    end_if_many,
    explain,
    facts,
    show,
)
from perf.model.metrics import METRICS
from perf.model.results import Sample
from perf.model.shown import printable

_Word = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_MEAN = "mean"
_LONGEST_NAME = 120
_SECONDS_OR_DATE = re.compile(r"[0-9]{8}|[0-9]{12}|[0-9]{14}")
_LAST_ITERATION, _LAST_ORDINAL = 2**31 - 1, 2**63 - 1
"""What the history holds."""


def _refuse_odd(value: object) -> object:
    """Refuse what Python would read as a number, but nobody writes so."""
    if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
        raise ValueError("it must be a number")
    return value


def _refuse_ambiguous(value: object) -> object:
    """Refuse a date without hyphens: it would be seconds since 1970, and decades off."""
    if isinstance(value, bool) or _SECONDS_OR_DATE.fullmatch(str(value).strip()):
        raise ValueError("it may be a date or seconds since 1970; write a date as 2026-02-13")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRow:
    """One value of a table; the fields are the columns. A time without a zone is UTC."""

    __pydantic_config__ = ConfigDict(extra="forbid", coerce_numbers_to_str=True)
    time: Annotated[datetime, BeforeValidator(_refuse_ambiguous)]
    metric: _Word
    value: Annotated[float, Field(allow_inf_nan=False), BeforeValidator(_refuse_odd)]
    statistic: _Word = _MEAN
    operation: _Word = EVERYTHING
    phase: _Word = PHASE
    iteration: Annotated[int, Field(ge=1, le=_LAST_ITERATION), BeforeValidator(_refuse_odd)] | None = (
        None
    )
    unit: _Word | None = None
    release: _Word | None = None
    line: _Word | None = None
    ordinal: (
        Annotated[int, Field(ge=-_LAST_ORDINAL, le=_LAST_ORDINAL), BeforeValidator(_refuse_odd)] | None
    ) = None
    system: _Word | None = None
    workload: _Word | None = None
    testbed: _Word | None = None
    config: _Word | None = None


_ROW = TypeAdapter(PlainRow)
COLUMNS = tuple(field.name for field in fields(PlainRow))
_OF_A_RUN = ("time", "system", "release", "line", "ordinal", "workload", "testbed", "config")


@dataclass(frozen=True, slots=True)
class _Placed:
    """A row with what else stood in it, and where."""

    where: str
    row: PlainRow
    attributes: Mapping[str, str]


def read_rows(name: str, raw: Iterable[tuple[int, Mapping[str, Any]]]) -> tuple[ForeignRun, ...]:
    """Check rows, given with their line numbers, and put them together to runs, by time.

    Raises:
        Unreadable: rows are bad; each is said, with its line.

    """
    problems: list[str] = []
    runs: defaultdict[tuple[Any, ...], list[_Placed]] = defaultdict(list)
    for number, values in raw:
        end_if_many(problems, name)
        where = f"{name}, line {number}"
        given = {key: value for key, value in values.items() if value not in (None, "")}
        try:
            row = _ROW.validate_python({key: given[key] for key in COLUMNS if key in given})
            row = _in_our_unit(row)
        except ValidationError as error:
            problems += explain(where, error)
            continue
        except ValueError as error:
            problems.append(f"{where}: {error}")
            continue
        attributes = {key: str(value) for key, value in given.items() if key not in COLUMNS}
        if row.unit:
            attributes[f"unit of {row.metric} of {row.operation}"] = row.unit
        identity = tuple(getattr(row, column) for column in _OF_A_RUN)
        runs[identity].append(_Placed(where, row, attributes))
    if not runs and not problems:
        problems.append(f"{name}: there are no rows")
    found = tuple(_run(rows, problems) for rows in runs.values())
    if problems:
        raise Unreadable(*problems)
    return tuple(
        sorted(
            found, key=lambda run: (run.started_at or datetime.min.replace(tzinfo=UTC), run.identity)
        )
    )


def _in_our_unit(row: PlainRow) -> PlainRow:
    """Convert a time to milliseconds; ValueError says what does not fit."""
    metric = METRICS.get(row.metric)
    if metric is None:
        raise ValueError(
            f"metric {show(row.metric)} is not one of {', '.join(METRICS)}; a quantity of your own is "
            "a score (more is better) or a cost (less is better), with its name as operation"
        )
    if row.time.utcoffset() is None:
        row = replace(row, time=row.time.replace(tzinfo=UTC))
    if row.unit is None or not metric.unit or row.unit == metric.unit:
        return row if metric.unit == "" else replace(row, unit=None)
    if metric.unit == "ms" and row.unit in PER_MS:
        return replace(row, value=row.value / PER_MS[row.unit], unit=None)
    known = ", ".join(PER_MS) if metric.unit == "ms" else metric.unit
    raise ValueError(f"unit {show(row.unit)} does not fit {row.metric}: it must be {known}")


def _run(rows: Sequence[_Placed], problems: list[str]) -> ForeignRun:
    first = rows[0].row
    attributes: dict[str, str] = {}
    samples: dict[tuple[Any, ...], tuple[str, Sample]] = {}
    for placed in rows:
        end_if_many(problems, placed.where)
        for name, value in placed.attributes.items():
            if attributes.setdefault(name, value) != value:
                problems.append(
                    f"{placed.where}: {printable(name)} is {show(value)}, but "
                    f"{show(attributes[name])} earlier in this run; an attribute is of the whole run"
                )
        row = placed.row
        sample = Sample(
            phase=row.phase,
            operation=row.operation,
            metric=row.metric,
            statistic=row.statistic,
            value=row.value,
            iteration=row.iteration,
        )
        identity = (row.phase, row.operation, row.metric, row.statistic, row.iteration)
        if identity in samples:
            problems.append(
                f"{placed.where}: {_describe(sample)} was there already: "
                f"{samples[identity][0]}; number repeated measurements in a column iteration, or give "
                "each run a time of its own"
            )
        samples.setdefault(identity, (placed.where, sample))
    kept = tuple(sample for _, sample in samples.values())
    overall = tuple(_overall(kept, rows[0].where, problems))
    return ForeignRun(
        place=rows[0].where,
        identity=digest(repr(sorted((repr(placed.row), repr(placed.attributes)) for placed in rows))),
        samples=(*overall, *kept),
        settings=facts(attributes.items()),
        started_at=first.time,
        **{column: getattr(first, column) for column in _OF_A_RUN if column != "time"},
    )


def _describe(sample: Sample) -> str:
    return printable(f"{sample.metric} {sample.statistic} of {sample.operation}", _LONGEST_NAME)


def _overall(samples: Sequence[Sample], where: str, problems: list[str]) -> Iterable[Sample]:
    """Give the value over all iterations where only those of each are there: of means, their mean."""
    groups: defaultdict[tuple[str, str, str, str], list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[sample.phase, sample.operation, sample.metric, sample.statistic].append(sample)
    for (*_, statistic), group in groups.items():
        if any(sample.iteration is None for sample in group):
            continue
        if statistic != _MEAN:
            problems.append(
                f"{where}: {_describe(group[0])} has iterations, but no value over all "
                f"of them, which those of each do not give; add it, without an iteration"
            )
            continue
        # Divided first: the sum of the largest numbers is none.
        value = fsum(sample.value / len(group) for sample in group)
        yield replace(group[0], value=value, iteration=None)
