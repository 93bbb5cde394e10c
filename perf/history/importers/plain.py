"""Plain tables, one value per row, with columns as in `COLUMNS`. Rows of one run are put together.

CSV: comma, UTF-8, the first row names the columns. JSON: an object per row, in a list or one per line.
A run is all rows with the same time, system, release, line, ordinal, workload, testbed and config.
Columns that are not known are attributes of the run.
"""

import csv
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from io import StringIO
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
    File,
    ForeignRun,
    Naming,
    Unreadable,
    digest,
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
_OF_A_SAMPLE = ("phase", "operation", "metric", "statistic", "value", "iteration")
_OF_A_RUN = ("time", "system", "release", "line", "ordinal", "workload", "testbed", "config")


_NEEDED = ("time", "metric", "value")
_MOST_NAMED = 10
_BETWEEN = re.compile(r"[\s,\[\]]*")
"""Of rows in JSON: both of its forms are objects with something between them."""
_LONGEST_WHOLE = 400
"""Digits; a number of more is none that a computer counts with."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A row with what else stood in it, and its line."""

    line: int
    row: PlainRow
    attributes: Mapping[str, str]


def read_csv(file: File) -> tuple[ForeignRun, ...]:
    """Read all runs of a table."""
    reader = csv.DictReader(StringIO(file.text.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        names = [name.strip() for name in reader.fieldnames or ()]
        if missing := [name for name in _NEEDED if name not in names]:
            raise Unreadable(f"{file.name}, line 1: there is no column {', '.join(missing)}")
        if doubled := sorted(name for name, count in Counter(names).items() if count > 1):
            listed = ", ".join(map(printable, doubled[:_MOST_NAMED]))
            raise Unreadable(f"{file.name}, line 1: there are two columns {listed}")
        reader.fieldnames = names
        rows = list(_csv_rows(file, reader))
    except csv.Error as error:
        raise Unreadable(f"{file.name}, line {reader.line_num}: not CSV: {error}") from error
    return _read_rows(file, rows)


def _csv_rows(file: File, reader: "csv.DictReader[str]") -> Iterator[tuple[int, Mapping[str, str]]]:
    for row in reader:
        if None in row or None in row.values():  # DictReader's marks for too many and too few
            file.blame(reader.line_num, "it has not as many cells as the first line")
        else:
            yield reader.line_num, {name: cell.strip() for name, cell in row.items()}


def read_json(file: File) -> tuple[ForeignRun, ...]:
    """Read all runs of a list, or of one object after the other."""
    text = file.text.removeprefix("\ufeff")
    if text.lstrip()[:1] == "[":
        try:
            _decoder([]).decode(text)
        except RecursionError as error:
            raise Unreadable(f"{file.name}: nested too deeply to be a list of rows") from error
        except ValueError as error:
            raise Unreadable(f"{file.name}: not JSON: {error}") from error
    return _read_rows(file, list(_json_rows(file, text)))


def _json_rows(file: File, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Give each object with the line that it begins in, which the whole list at once would not tell."""
    doubled: list[str] = []
    decoder = _decoder(doubled)
    position, line, counted = 0, 1, 0
    while (position := _end_of_gap(text, position)) < len(text):
        line, counted = line + text.count("\n", counted, position), position
        try:
            value, position = decoder.raw_decode(text, position)
        except RecursionError as error:
            raise Unreadable(f"{file.name}, line {line}: nested too deeply to be a row") from error
        except ValueError as error:
            raise Unreadable(f"{file.name}, line {line}: not JSON: {error}") from error
        if not isinstance(value, dict):
            file.blame(line, f"a row must be an object, not {show(value)}")
            continue
        file.blame(line, *(f"the key {show(key)} is written twice" for key in doubled))
        doubled.clear()
        yield line, value


def _decoder(doubled: list[str]) -> json.JSONDecoder:
    """Return a reader of JSON that notes the keys that an object has twice."""

    def unite(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        item = dict(pairs)
        if len(item) < len(pairs):
            doubled.extend(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        return item

    return json.JSONDecoder(
        object_pairs_hook=unite,
        # Python refuses to read a number of thousands of digits, with advice for programmers.
        parse_int=lambda text: int(text) if len(text) <= _LONGEST_WHOLE else float(text),
    )


def _end_of_gap(text: str, position: int) -> int:
    match = _BETWEEN.match(text, position)
    return match.end() if match else position


def _read_rows(file: File, raw: Iterable[tuple[int, Mapping[str, Any]]]) -> tuple[ForeignRun, ...]:
    """Check rows, given with their line numbers, and put them together to runs, by time."""
    file.refuse_if_wrong()
    runs: defaultdict[tuple[Any, ...], list[_Placed]] = defaultdict(list)
    for line, values in raw:
        given = {key: value for key, value in values.items() if value not in (None, "")}
        try:
            row = _ROW.validate_python({key: given[key] for key in COLUMNS if key in given})
            row = _in_our_unit(row)
        except ValidationError as error:
            file.blame(line, *explain(error))
            continue
        except ValueError as error:
            file.blame(line, str(error))
            continue
        attributes = {key: str(value) for key, value in given.items() if key not in COLUMNS}
        if row.unit:
            attributes[f"unit of {row.metric} of {row.operation}"] = row.unit
        identity = tuple(getattr(row, column) for column in _OF_A_RUN)
        runs[identity].append(_Placed(line, row, attributes))
    if not runs:
        file.refuse_if_wrong("there are no rows")
    found = [(rows[0].row.time, _run(file, rows)) for rows in runs.values()]
    file.refuse_if_wrong()
    return tuple(run for _, run in sorted(found, key=lambda one: (one[0], one[1].identity)))


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


def _run(file: File, rows: Sequence[_Placed]) -> ForeignRun:
    first = rows[0]
    attributes: dict[str, str] = {}
    samples: dict[tuple[Any, ...], tuple[int, Sample]] = {}
    for placed in rows:
        for name, value in placed.attributes.items():
            if attributes.setdefault(name, value) != value:
                file.blame(
                    placed.line,
                    f"{printable(name)} is {show(value)}, but {show(attributes[name])} earlier in this "
                    "run; an attribute is of the whole run",
                )
        row = placed.row
        sample = Sample(**{name: getattr(row, name) for name in _OF_A_SAMPLE})
        identity = (row.phase, row.operation, row.metric, row.statistic, row.iteration)
        if identity in samples:
            file.blame(
                placed.line,
                f"{_describe(sample)} was there already: {file.name}, line {samples[identity][0]}; "
                "number repeated measurements in a column iteration, or give each run a time of its "
                "own",
            )
        samples.setdefault(identity, (placed.line, sample))
    kept = tuple(sample for _, sample in samples.values())
    overall = tuple(_overall(file, first.line, kept))
    return ForeignRun(
        place=f"{file.name}, line {first.line}",
        identity=digest(repr(sorted((repr(placed.row), repr(placed.attributes)) for placed in rows))),
        samples=(*overall, *kept),
        settings=facts(attributes.items()),
        stated=Naming(
            started_at=first.row.time,
            **{column: getattr(first.row, column) for column in _OF_A_RUN if column != "time"},
        ),
    )


def _describe(sample: Sample) -> str:
    return printable(f"{sample.metric} {sample.statistic} of {sample.operation}", _LONGEST_NAME)


def _overall(file: File, line: int, samples: Sequence[Sample]) -> Iterator[Sample]:
    """Yield the value over all iterations where only those of each are there: of means, their mean."""
    groups: defaultdict[tuple[str, str, str, str], list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[sample.phase, sample.operation, sample.metric, sample.statistic].append(sample)
    for (*_, statistic), group in groups.items():
        if any(sample.iteration is None for sample in group):
            continue
        if statistic != _MEAN:
            file.blame(
                line,
                f"{_describe(group[0])} has iterations, but no value over all of them, which those of "
                "each do not give; add it, without an iteration",
            )
            continue
        # Divided first: the sum of the largest numbers is none.
        value = fsum(sample.value / len(group) for sample in group)
        yield replace(group[0], value=value, iteration=None)
