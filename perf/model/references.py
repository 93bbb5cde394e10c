"""Published figures: what public reports say, to be read beside what is measured.

No measurement and no verdict depends on them: hardware, client and much else differ, and each report's
file says what does. A report's tables keep their layout; each cell has an address, which its table,
column and row give together: what was measured there (a subject), and workload, phase, operation,
metric and statistic as they are called here.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, TypeAlias

from annotated_types import Ge, MinLen
from pydantic import StringConstraints

from perf.model.metrics import METRICS
from perf.model.results import SeriesKey
from perf.model.scalars import STRICT, Name, Positive, PositiveFloat, Price, Statistic, Text, Version
from perf.model.scaling import unscaled_name

Address: TypeAlias = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+(/\S*)?$")]
NotNegative: TypeAlias = Annotated[float, Ge(0)]

ERRORS = "errors"
"""Operations that were never answered or answered with an error, in the tables of reports."""
MISSES = "misses"
"""Operations whose answer was not what is stored: nothing was found, or other data."""
USD_PER_MILLION = "usd_per_million"
"""US dollars for a million operations: what `operations_per_dollar` is, turned round."""
TABLE_MEASURES: Mapping[str, str] = {ERRORS: "", MISSES: "", USD_PER_MILLION: "$ per 1 M ops"}
"""What tables tell beside the metrics, with its unit; computed from what a trial recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One published figure: `value` in the unit of its metric, from `source` at `url`.

    `note` says what differs from a measurement here. A figure without a `line` is about every line of
    its system; `version` is the release that was measured there.
    """

    system: str
    line: str | None = None
    version: str | None = None
    workload: str
    phase: str
    operation: str
    metric: str
    statistic: str
    value: float
    source: str
    url: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a report measured: a system in a setup, and what may stand for it here.

    `version` is the release there; `line` the release line here beside whose series its figures stand,
    all lines without it. Empty `configs`, `topologies` and `testbed_classes` let any stand for it.
    `nodes` and `price_per_month_usd` are its capacity, as published.
    """

    __pydantic_config__ = STRICT
    name: Name
    """Unique in the report."""
    title: Text
    """As pages name it."""
    system: Name
    """Database."""
    line: Text | None = None
    """Release line beside whose series its figures stand; absent: all."""
    version: Version | None = None
    """Release that the report measured."""
    setup: Text
    """How it was set up there."""
    configs: tuple[Name, ...] = ()
    """Configs that may stand for it; absent: any."""
    topologies: tuple[Name, ...] = ()
    """Topologies that may stand for it; absent: any."""
    testbed_classes: tuple[Name, ...] = ()
    """Testbeds that may stand for it; absent: any."""
    nodes: Positive | None = None
    """Number of nodes, as published."""
    price_per_month_usd: Price | None = None
    """Price, as published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A part of the address of cells; what is absent is given by the table, the column or the row."""

    __pydantic_config__ = STRICT
    subject: Name | None = None
    """Subject of the report."""
    workload: Name | None = None
    """Workload."""
    phase: Text | None = None
    """Phase."""
    operation: Text | None = None
    """Operation."""
    metric: Text | None = None
    """Metric, or a quantity of the report."""
    statistic: Statistic | None = None
    """Statistic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotient:
    """A column that is another column of its table (`of`) over a third one (`over`)."""

    __pydantic_config__ = STRICT
    of: Name
    over: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedColumn:
    """A column: part of an address, or a quotient of others, or what has no counterpart here and why.

    `ratio_to` names the column that its shape is compared with.
    """

    __pydantic_config__ = STRICT
    name: Name
    """Unique in the table."""
    title: Text
    """Its heading."""
    at: Spot = field(default_factory=Spot)
    """Address of its cells."""
    quotient: Quotient | None = None
    """Computed from two other columns."""
    ratio_to: Name | None = None
    not_here: Text | None = None
    """Why it has no counterpart here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """A row: part of an address, and the published values by column, null where there is none.

    `words` are what stands there in place of a number, by column; `cells` says by column what is
    special about the address of a cell; `ratios_to` names the rows that its shape is compared with.
    """

    __pydantic_config__ = STRICT
    name: Name
    """Unique in the table."""
    title: Text
    """Its heading."""
    at: Spot = field(default_factory=Spot)
    """Address of its cells."""
    values: tuple[NotNegative | None, ...]
    """Published values, by column; null where there is none."""
    words: Mapping[Name, Text] = field(default_factory=dict)
    cells: Mapping[Name, Spot] = field(default_factory=dict)
    ratios_to: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """A table of a report in its own layout; `ratio_to` names the one that it is compared with."""

    __pydantic_config__ = STRICT
    name: Name
    """Unique in the report."""
    title: Text
    """Its heading."""
    note: Text | None = None
    """Shown below it."""
    at: Spot = field(default_factory=Spot)
    """Address of all its cells."""
    columns: Annotated[tuple[PublishedColumn, ...], MinLen(1)]
    """Its columns."""
    rows: Annotated[tuple[PublishedRow, ...], MinLen(1)]
    """Its rows."""
    ratio_to: Name | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """How throughput grew from a small subject to a large one, and by how much it could have."""

    __pydantic_config__ = STRICT
    title: Text
    """As pages name it."""
    small: Name
    """The small subject."""
    large: Name
    """The large subject."""
    small_workload: Name
    """Workload of the small one."""
    large_workload: Name
    """Workload of the large one."""
    phase: Text
    """Phase."""
    operation: Text
    """Operation."""
    published_percent: PositiveFloat | None = None
    """Growth, as published."""
    theoretical_percent: PositiveFloat | None = None
    """Growth that was possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCourse:
    """Phases of a workload, all without `phases`, whose times are drawn over the time that they took.

    `operations` are drawn each in a chart of its own; without them, that of each phase in one.
    """

    __pydantic_config__ = STRICT
    title: Text
    """As pages name it."""
    workload: Name
    """Workload."""
    phases: tuple[Text, ...] = ()
    """Phases that are drawn; absent: all."""
    operations: tuple[Text, ...] = ()
    note: Text
    """Shown below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A public report: configs/reference/<name>.yaml. `published` and `retrieved` are as far as known.

    `suite` names its pages, `suites` are those that reproduce it. `link` says what is at `url` if that
    is not the report itself. `left_open` is what it does not say or contradicts, `left_out` what it
    shows and this file lacks.
    """

    __pydantic_config__ = STRICT
    name: Name
    """As the file is called."""
    title: Text
    """Title of the report."""
    authors: Annotated[tuple[Text, ...], MinLen(1)]
    """Who wrote it."""
    publisher: Text
    """Who published it."""
    url: Address
    """Where it is."""
    link: Text | None = None
    published: Text
    """When it was published."""
    retrieved: Text
    """When it was read."""
    suite: Name
    suites: Annotated[tuple[Name, ...], MinLen(1)]
    hardware: Text
    """Hardware of the report."""
    client: Text
    """Client of the report."""
    left_open: tuple[Text, ...] = ()
    not_compared: Annotated[tuple[Text, ...], MinLen(1)]
    """What must not be compared, and why."""
    left_out: tuple[Text, ...] = ()
    also_beside: Mapping[Name, Name] = field(default_factory=dict)
    """Workloads beside whose series the figures of another one stand as well, by name."""
    subjects: Annotated[tuple[Subject, ...], MinLen(1)]
    """What it measured."""
    tables: Annotated[tuple[PublishedTable, ...], MinLen(1)]
    """Its tables."""
    scalings: tuple[Scaling, ...] = ()
    """How throughput grew with the cluster."""
    courses: tuple[PublishedCourse, ...] = ()
    """Phases drawn over time."""

    def subject(self, name: str) -> Subject:
        """Return a subject; a report that was checked has each that it names."""
        return next(one for one in self.subjects if one.name == name)

    def workloads(self) -> frozenset[str]:
        """Return the names of all workloads that it has figures of."""
        spots = (spot for table in self.tables for _, _, spot in cells(table))
        return frozenset(
            (
                *(spot.workload for spot in spots if spot.workload),
                *(one.small_workload for one in self.scalings),
                *(one.large_workload for one in self.scalings),
                *(one.workload for one in self.courses),
            )
        )


def spot_of(table: PublishedTable, row: PublishedRow, column: PublishedColumn) -> Spot:
    """Return the address of a cell; the row has the word over the column, and the cell over both."""
    parts = (table.at, column.at, row.at, row.cells.get(column.name, Spot()))
    given = {
        part.name: value
        for spot in parts
        for part in fields(Spot)
        if (value := getattr(spot, part.name)) is not None
    }
    return Spot(**given)


def cells(table: PublishedTable) -> Iterator[tuple[PublishedRow, PublishedColumn, Spot]]:
    """Yield the cells of a table, each with its address, row by row."""
    for row in table.rows:
        for column in table.columns:
            yield row, column, spot_of(table, row, column)


def figures_of(report: Report) -> Iterator[Reference]:
    """Yield the figures of a report whose metric may have a series, each with its source."""
    authors = ", ".join(report.authors)
    for table in report.tables:
        for row, column, spot in cells(table):
            value = dict(zip((one.name for one in table.columns), row.values, strict=True))[column.name]
            if value is None or column.quotient or column.not_here:
                continue
            if spot.metric not in METRICS or not spot.subject:
                continue
            subject = report.subject(spot.subject)
            beside = [name for name, other in report.also_beside.items() if other == spot.workload]
            for workload in (spot.workload, *beside):
                yield Reference(
                    system=subject.system,
                    line=subject.line,
                    version=subject.version,
                    workload=workload or "",
                    phase=spot.phase or "",
                    operation=spot.operation or "",
                    metric=spot.metric,
                    statistic=spot.statistic or "",
                    value=value,
                    source=f'"{report.title}", {authors}, {report.publisher}',
                    url=report.url,
                    note=f"{subject.setup} {report.client}",
                )


def references_for(key: SeriesKey, references: Iterable[Reference]) -> tuple[Reference, ...]:
    """Return the published figures that belong beside a series, in their order.

    Whatever its testbed, topology, config and engine are: the notes say what differs. A workload is
    known by its name, with any content hash and at any scale. What is of one host alone has none.
    """
    workload = unscaled_name(key.workload_name)
    return tuple(
        one
        for one in references
        if not key.host
        and one.line in (None, key.line)
        and (one.system, one.workload, one.phase) == (key.system, workload, key.phase)
        and (one.operation, one.metric, one.statistic) == (key.operation, key.metric, key.statistic)
    )
