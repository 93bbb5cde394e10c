"""Trials as rows of the history's tables, and back. Pure; the tables are defined in schema.sql."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import repeat
from typing import Any, TypeAlias, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from perf.model.results import (
    Counter,
    Fact,
    Interval,
    LoadStep,
    Reason,
    Sample,
    Trial,
    TrialHead,
)
from perf.model.shown import printable

HistoryRow: TypeAlias = Mapping[str, Any]

_NAMED = ("topology", "testbed", "workload", "config")
_OF_HEAD = ("night", "purpose", "experiment", "testbed_class", "engine", "seed", "status")
_PLAIN = (*_OF_HEAD, "log_tail", "harness_version")
_RELEASE = ("system", "version", "line", "ordinal", "released_at")
_HEAD_OWN = ("trial_id", "night", "started_at", "finished_at")
HEADS = (
    _HEAD_OWN,
    (
        *(name for name in _OF_HEAD if name != "night"),
        *(*_RELEASE, "artifact_source", "artifact_sha256"),
        *(column for name in _NAMED for column in (name, f"{name}_sha256")),
    ),
    "ORDER BY started_at, trial_id",
)
"""Of all heads: their own columns, those that are the same for many trials, and their order."""
_OWN = {"id", "night", "started_at", "finished_at", "reasons"}
_ALIKE = tuple(field.name for field in fields(TrialHead) if field.name not in _OWN)
"""What is made of them."""
_FIRST_TIME, _AFTER_LAST = np.datetime64("0001-01-01"), np.datetime64("10000-01-01")
_TRIAL = TypeAdapter(Trial)
_HEAD = TypeAdapter(TrialHead)


@dataclass(frozen=True, kw_only=True)
class TrialPart:
    """A tuple that belongs to a trial and has a table, whose columns are the fields of its type.

    `fixed` are columns with one value for the whole tuple. `of_brief` is the condition of the rows that
    a trial in brief has, None where it has none.
    """

    attribute: str
    table: str
    kind: type
    fixed: tuple[tuple[str, str], ...] = ()
    of_brief: str | None = "true"

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(field.name for field in fields(self.kind))

    @cached_property
    def types(self) -> tuple[frozenset[type], ...]:
        """Return the types that the values of each column may have."""
        hints = get_type_hints(self.kind)
        return tuple(frozenset(get_args(hints[name]) or (hints[name],)) for name in self.columns)

    def select(self, chosen: str) -> str:
        """Return the query for its rows, each with its trial first; `chosen` is a further condition.

        Trial by trial: what is small and still in the cache is made in half of the time.
        """
        where = " AND ".join(f"{column} = '{value}'" for column, value in self.fixed) or "true"
        columns = ", ".join(("trial_id", *self.columns))
        return (
            f"SELECT {columns} FROM {self.table} WHERE {where} {chosen} "  # noqa: S608  our own names
            "ORDER BY trial_id, position"
        )


PARTS = (
    TrialPart(attribute="reasons", table="reasons", kind=Reason),
    TrialPart(attribute="remarks", table="remarks", kind=Reason),
    TrialPart(attribute="steps", table="load_steps", kind=LoadStep),
    TrialPart(
        attribute="environment_before",
        table="facts",
        kind=Fact,
        fixed=(("moment", "before"),),
    ),
    TrialPart(
        attribute="environment_after",
        table="facts",
        kind=Fact,
        fixed=(("moment", "after"),),
        of_brief=None,
    ),
    TrialPart(attribute="samples", table="samples", kind=Sample, of_brief="iteration IS NULL"),
    TrialPart(attribute="counters", table="counters", kind=Counter, of_brief=None),
)
HISTOGRAMS = TrialPart(attribute="", table="histograms", kind=Interval)


def rows_of_trial(
    trial: Trial, intervals: Sequence[Interval], bundle_sha256: str
) -> tuple[tuple[str, tuple[HistoryRow, ...]], ...]:
    """Return (table, rows) for all that a bundle holds."""
    parts = [(part.table, _rows_of_part(trial, part, getattr(trial, part.attribute))) for part in PARTS]
    histograms = _rows_of_part(trial, HISTOGRAMS, intervals)
    return ("trials", (_trial_row(trial, bundle_sha256),)), *parts, (HISTOGRAMS.table, histograms)


def values_of_rows(part: TrialPart, rows: Sequence[tuple[Any, ...]]) -> tuple[object, ...]:
    """Return what a trial has of a part, from rows of the part's columns, in order.

    Rows that are not plainly of its type come as dictionaries, which `trial_of_rows` validates. What
    validating each row would take is most of the time in which a whole trial is read; so values are
    made column by column, as a frozen dataclass makes itself: by its slots.
    """
    columns = tuple(zip(*rows, strict=True))
    typed = zip(part.types, columns, strict=True)
    if not all(types.issuperset(map(type, column)) for types, column in typed):
        return tuple(dict(zip(part.columns, row, strict=True)) for row in rows)
    made: tuple[object, ...] = tuple(map(object.__new__, repeat(part.kind, len(rows))))
    for name, column in zip(part.columns, columns, strict=True):
        deque(map(getattr(part.kind, name).__set__, made, column), maxlen=0)
    return made


def trial_of_rows(row: HistoryRow, parts: Mapping[str, Sequence[object]]) -> Trial:
    """Return the trial of a row of `trials`; `parts` holds its tuples by attribute, made or as rows.

    Raises:
        pydantic.ValidationError: the rows were not written by this schema.

    """
    return _TRIAL.validate_python({**_head(row), **{name: row[name] for name in _PLAIN}, **parts})


def heads_of_columns(
    common: Mapping[int, HistoryRow],
    columns: Mapping[str, NDArray[Any]],
    reasons: Mapping[str, Sequence[HistoryRow]],
) -> tuple[TrialHead, ...]:
    """Return the heads of trials, as `Tables.trials` answers `HEADS`.

    What they have in common is validated once, and one object; they are made column by column, as in
    `values_of_rows`.

    Raises:
        pydantic.ValidationError: the rows were not written by this schema.
        ValueError: a time lies outside of the years 1 to 9999.

    """
    own: dict[str, list[Any]] = {name: columns[name].tolist() for name in _HEAD_OWN}
    own |= {name: list_as_utc(columns[name]) for name in ("started_at", "finished_at")}
    numbers = [*map(int, columns["alike"])]

    def make(place: int) -> TrialHead:
        row = {**common[numbers[place]], **{name: column[place] for name, column in own.items()}}
        return head_of_row(row, reasons.get(row["trial_id"], ()))

    for name in ("trial_id", "night"):
        for place, value in enumerate(own[name]):
            if type(value) is not str:
                make(place)  # says what is wrong with it
    firsts = dict(zip(reversed(numbers), reversed(range(len(numbers))), strict=True))
    kinds = {number: make(place) for number, place in firsts.items()}
    made = tuple(map(object.__new__, repeat(TrialHead, len(numbers))))
    values: dict[str, Iterable[object]] = {
        name: map({number: getattr(one, name) for number, one in kinds.items()}.__getitem__, numbers)
        for name in _ALIKE
    }
    values |= {**own, "id": own["trial_id"], "reasons": repeat((), len(made))}
    del values["trial_id"]
    for name, column in values.items():
        deque(map(getattr(TrialHead, name).__set__, made, column), maxlen=0)
    return tuple(
        replace(one, reasons=make(place).reasons) if one.id in reasons else one
        for place, one in enumerate(made)
    )


def head_of_row(row: HistoryRow, reasons: Sequence[HistoryRow]) -> TrialHead:
    """Return the head of the trial of a row of `trials`.

    Raises:
        pydantic.ValidationError: the rows were not written by this schema.

    """
    values = {name: row[name] for name in _OF_HEAD}
    return _HEAD.validate_python({**_head(row), **values, "reasons": reasons})


def _head(row: HistoryRow) -> HistoryRow:
    artifact = None
    if row["artifact_source"] is not None:
        artifact = {"source": row["artifact_source"], "sha256": row["artifact_sha256"]}
    return {
        "id": row["trial_id"],
        "release": {name: row[name] for name in _RELEASE},
        "artifact": artifact,
        "started_at": as_utc(row["started_at"]),
        "finished_at": as_utc(row["finished_at"]),
        **{name: {"name": row[name], "sha256": row[f"{name}_sha256"]} for name in _NAMED},
    }


def list_as_utc(stored: NDArray[Any]) -> list[datetime]:
    """Return a column of stored times as `as_utc` does."""
    refuse_odd_times(stored)
    found: list[Any] = stored.tolist()
    return [one.replace(tzinfo=UTC) for one in found]


def refuse_odd_times(stored: NDArray[Any]) -> None:
    """Raise ValueError where one of a column of stored times lies outside of the years 1 to 9999."""
    times = np.asarray(stored, dtype="datetime64[us]")
    for one in times[~((times >= _FIRST_TIME) & (times < _AFTER_LAST))]:
        as_utc(str(one))


def as_utc(stored: datetime | str) -> datetime:
    """Return a stored time, which has no zone because all stored times are UTC, its zone.

    Raises:
        ValueError: it lies outside of the years 1 to 9999; DuckDB gives such a one as text.

    """
    if not isinstance(stored, datetime):
        what = f"the time {printable(str(stored))} lies outside of the years 1 to 9999"
        raise ValueError(what)  # noqa: TRY004  it is the value that is wrong
    return stored.replace(tzinfo=UTC)


def _trial_row(trial: Trial, bundle_sha256: str) -> HistoryRow:
    row = {
        "trial_id": trial.id,
        "bundle_sha256": bundle_sha256,
        "artifact_source": trial.artifact.source.value if trial.artifact else None,
        "artifact_sha256": trial.artifact.sha256 if trial.artifact else None,
        "started_at": trial.started_at.astimezone(UTC).replace(tzinfo=None),
        "finished_at": trial.finished_at.astimezone(UTC).replace(tzinfo=None),
    }
    row |= {name: getattr(trial.release, name) for name in _RELEASE}
    row |= {name: getattr(trial, name).name for name in _NAMED}
    row |= {f"{name}_sha256": getattr(trial, name).sha256 for name in _NAMED}
    return row | {name: getattr(trial, name) for name in _PLAIN}


def _rows_of_part(trial: Trial, part: TrialPart, values: Sequence[object]) -> tuple[HistoryRow, ...]:
    return tuple(
        {
            "trial_id": trial.id,
            "position": position,
            **dict(part.fixed),
            **{column: getattr(value, column) for column in part.columns},
        }
        for position, value in enumerate(values)
    )
