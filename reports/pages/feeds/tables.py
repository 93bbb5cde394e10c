"""The tables of the export: dataclasses whose fields are columns, with meaning and unit beside.

The JSON file, its schema, the Parquet files and docs/notifications.md all come from here. Where a
name, a type or a meaning changes, `FORMAT` must grow; a further column or table needs no new one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_type_hints

from pydantic import Field
from pydantic.fields import FieldInfo

from perf.model.scalars import STRICT

FORMAT = 1


def _column(about: str, unit: str = "") -> Any:  # noqa: ANN401  a FieldInfo; mypy wants to see through it
    """Describe what a column means, and in which unit."""
    return Field(description=about, json_schema_extra={"unit": unit} if unit else None)


_SERIES = _column("the series, as named in the table series")
_OWN_UNIT = "that of the metric: column unit of the table series"
_SHARE = "share: 0.1 is 10 %"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRow:
    """A judged series: what must be equal for two values to be comparable."""

    __pydantic_config__ = STRICT
    series: Annotated[str, _column("name of the series; stays the same from export to export")]
    system: Annotated[str, _column("the database product")]
    line: Annotated[str, _column("the line of releases, such as 5.0")]
    topology: Annotated[str, _column("shape of the cluster")]
    testbed_class: Annotated[str, _column("class of the hosts")]
    config: Annotated[str, _column("settings variant of the system")]
    workload: Annotated[str, _column("name@hash of the workload")]
    engine: Annotated[str, _column("the program that offered the load")]
    phase: Annotated[str, _column("the measured phase")]
    operation: Annotated[str, _column("one kind of read or write")]
    metric: Annotated[str, _column("the quantity; docs/glossary.md explains each")]
    statistic: Annotated[str, _column("what was taken of it: mean, p99 …")]
    host: Annotated[str, _column("node or host of the value; empty where it is of all together")]
    unit: Annotated[str, _column("unit of the values")]
    better: Annotated[Literal["higher", "lower", ""], _column("which direction is good news")]
    experiment: Annotated[str, _column("the experiment that measures it")]
    points: Annotated[int, _column("how many points it has")]
    page: Annotated[str, _column("its page, relative to the root of the site")]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """The verdict about a series as of this export."""

    __pydantic_config__ = STRICT
    series: Annotated[str, _SERIES]
    outcome: Annotated[
        Literal["regressed", "improved", "unchanged", "undecided", "invalid"],
        _column("what the judgement came to; undecided and invalid are not fine"),
    ]
    reason: Annotated[str, _column("why, in a sentence")]
    relative_change: Annotated[
        float | None, _column("(after - before) / before; none where there is no change", _SHARE)
    ]
    p_value: Annotated[float | None, _column("how easily chance alone does that")]
    is_significant: Annotated[bool | None, _column("larger than its own noise explains")]
    is_relevant: Annotated[bool | None, _column("large enough to act on")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRow:
    """A point: one completed trial's value in one series."""

    __pydantic_config__ = STRICT
    series: Annotated[str, _SERIES]
    position: Annotated[int, _column("place in the series, from 0: by release, then by time")]
    trial: Annotated[str, _column("the trial that measured it")]
    night: Annotated[str, _column("the night of the trial; empty where none measured it")]
    purpose: Annotated[str, _column("why the trial was run")]
    release: Annotated[str, _column("version that was measured")]
    release_line: Annotated[str, _column("line of that release")]
    release_ordinal: Annotated[int, _column("place of the release in its line; order by this")]
    started_at: Annotated[datetime, _column("when the trial began", "UTC")]
    value: Annotated[float, _column("the value over all iterations", _OWN_UNIT)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePointRow:
    """Where a series changed."""

    __pydantic_config__ = STRICT
    series: Annotated[str, _SERIES]
    position: Annotated[int, _column("position of the first point after it")]
    earliest: Annotated[int, _column("the first place where that point may lie")]
    latest: Annotated[int, _column("the last place where that point may lie")]
    state: Annotated[Literal["provisional", "confirmed"], _column("whether it may be believed")]
    outcome: Annotated[Literal["regressed", "improved"], _column("good or bad news")]
    before: Annotated[float, _column("level before it", _OWN_UNIT)]
    after: Annotated[float, _column("level after it", _OWN_UNIT)]
    relative_change: Annotated[
        float | None, _column("(after - before) / |before|; none from zero", _SHARE)
    ]
    p_value: Annotated[float, _column("how easily chance alone does that")]
    points_after: Annotated[int, _column("points from here to the next change")]
    detector: Annotated[str, _column("the method that found it")]
    last_before: Annotated[str, _column("trial of the last point before it")]
    first_after: Annotated[str, _column("trial of the first point after it")]
    incident: Annotated[str, _column("the incident of which it is a part; empty if of none")]
    is_lead: Annotated[bool, _column("whether it leads its incident")]
    is_mending: Annotated[bool, _column("whether it undid a change of its incident")]


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentRow:
    """Change points of one cause."""

    __pydantic_config__ = STRICT
    incident: Annotated[str, _column("name of the incident")]
    standing: Annotated[
        Literal["provisional", "confirmed", "mended", "decided", "cleared", "withdrawn"],
        _column("how it stands; only the first two want somebody to look"),
    ]
    outcome: Annotated[Literal["regressed", "improved"], _column("good or bad news: that of its lead")]
    cause: Annotated[
        Literal["database", "configuration", "testbed", "unknown"], _column("what it is attributed to")
    ]
    is_news: Annotated[bool, _column("whether somebody should look at it")]
    series: Annotated[str, _column("the series of its lead")]
    position: Annotated[int, _column("position of the lead's first point after")]
    changes: Annotated[int, _column("how many change points it joins")]
    triage: Annotated[str, _column("state that somebody wrote into triage.yaml; empty if none")]
    owner: Annotated[str, _column("whose it is by triage.yaml; empty if it has no owner")]
    page: Annotated[str, _column("its page, relative to the root of the site")]


Row: TypeAlias = SeriesRow | VerdictRow | PointRow | ChangePointRow | IncidentRow
TABLES: dict[str, type[Row]] = {
    "series": SeriesRow,
    "verdicts": VerdictRow,
    "change_points": ChangePointRow,
    "incidents": IncidentRow,
    "points": PointRow,
}
"""By name of the Parquet file; points are a folder of files, one for each experiment."""
_SQL = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN", datetime: "TIMESTAMP"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetColumn:
    """A column of a Parquet file: its type as DuckDB names it, meaning and unit."""

    name: str
    sql_type: str
    about: str
    unit: str


def list_columns(table: type[Row]) -> Iterator[ParquetColumn]:
    """Yield the columns of a table, in order."""
    for name, hint in get_type_hints(table, include_extras=True).items():
        if name.startswith("_"):
            continue
        kind, field = get_args(hint)
        if not isinstance(field, FieldInfo):
            raise TypeError(f"{table.__name__}.{name} has no meaning")
        extra = field.json_schema_extra
        yield ParquetColumn(
            name=name,
            sql_type=_find_type(kind),
            about=field.description or "",
            unit=str(extra["unit"]) if isinstance(extra, dict) else "",
        )


def _find_type(kind: Any) -> str:  # noqa: ANN401  a type or a special form
    inner = [one for one in get_args(kind) if one is not type(None)]
    if kind in _SQL:
        return _SQL[kind]
    if not inner:
        raise TypeError(f"no type of DuckDB is known for {kind}")
    return _SQL[str] if isinstance(inner[0], str) else _SQL[inner[0]]  # of texts: a literal
