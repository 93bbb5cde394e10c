"""Tables of a report with what was measured here beside them, and their shape in ratios."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from perf.model.metrics import OPERATIONS_PER_DOLLAR
from perf.model.references import (
    ERRORS,
    MISSES,
    TABLE_MEASURES,
    USD_PER_MILLION,
    PublishedColumn,
    PublishedRow,
    PublishedTable,
    Report,
    Spot,
    cells,
    spot_of,
)
from perf.model.results import TrialHead
from perf.model.scaling import unscaled_name
from reports.pages.reproduction.ratios import (
    MeasuredSetting,
    Value,
    ValueAddress,
    cell_of,
    choose_setting,
    refuse_ratio,
    setting_of,
    stands_for,
)
from reports.wording.wording import count, sentence, unit_words

_COUNTED = (ERRORS, MISSES)
_PRICED = (USD_PER_MILLION, OPERATIONS_PER_DOLLAR.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A published figure and the measured one, in the same unit; None where there is none.

    `words` stand in place of the published figure. Of a measured value `runs` are those of its trials;
    without any it is a ratio. `is_count` where it tells how often something happened.
    """

    there: float | None
    here: float | None = None
    words: str = ""
    runs: tuple[float, ...] = ()
    is_count: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row; `release` is what was measured here."""

    title: str
    cells: tuple[Cell, ...]
    release: str = ""

    @property
    def says_something(self) -> bool:
        """Whether any of its cells has a value on either side."""
        return any(one.words or (one.there, one.here) != (None, None) for one in self.cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Lines under columns with their units; those of a shape are ratios on both sides."""

    title: str
    columns: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]
    is_shape: bool = False

    @property
    def is_measured(self) -> bool:
        """Whether any of its cells was measured here."""
        return any(cell.here is not None for line in self.lines for cell in line.cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableBeside:
    """A table of the report, its shapes, and why which cells were not measured."""

    table: PublishedTable
    grid: Grid
    shapes: tuple[Grid, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """A report with what stands for its subjects here, by table and subject; None where nothing does.

    A table has one setting for each subject, so that its ratios are inside of one.
    """

    report: Report
    chosen: Mapping[tuple[str, str], MeasuredSetting | None]
    measured: Sequence[MeasuredSetting] = ()
    heads: Sequence[TrialHead] = ()

    def standing_for(self, subject: str) -> tuple[MeasuredSetting, ...]:
        """Return what stands for a subject in any table, each setting once."""
        found = [one for (_, name), one in self.chosen.items() if name == subject and one]
        return tuple({one.setting: one for one in found}.values())


@dataclass(frozen=True, slots=True)
class _Figure:
    """One cell of a table that has an address."""

    table: PublishedTable
    row: PublishedRow
    column: PublishedColumn

    @property
    def spot(self) -> Spot:
        return spot_of(self.table, self.row, self.column)

    @property
    def value(self) -> float | None:
        return self.row.values[self.table.columns.index(self.column)]


_Rows: TypeAlias = list[tuple[str, list[tuple[_Figure, _Figure]]]]
"""Titles of rows, each with its ratios: a figure over another."""


def match(report: Report, measured: Sequence[MeasuredSetting], heads: Sequence[TrialHead]) -> Matched:
    """Choose for each subject of each table of a report what stands for it."""
    chosen = {}
    for table in report.tables:
        wanted: dict[str, set[ValueAddress]] = {}
        for _, column, spot in cells(table):
            if spot.subject and not column.quotient and not column.not_here:
                wanted.setdefault(spot.subject, set()).add(cell_of(spot))
        for subject, of_subject in wanted.items():
            one = choose_setting(report.subject(subject), of_subject, measured)
            chosen[table.name, subject] = one
    return Matched(report=report, chosen=chosen, measured=measured, heads=heads)


def view_table(table: PublishedTable, matched: Matched) -> TableBeside:
    """Put what was measured beside a published table."""
    beside = _Beside(table, matched)
    return TableBeside(
        table=table,
        grid=Grid(
            title=table.title,
            columns=tuple((column.title, _unit_of(table, column)) for column in table.columns),
            lines=tuple(map(beside.fill, table.rows)),
        ),
        shapes=tuple(
            Grid(title=title, columns=tuple((one, "") for one in columns), lines=lines, is_shape=True)
            for title, columns, rows in _list_shapes(table, matched.report)
            if (lines := beside.compare(rows))
        ),
        missing=beside.describe_missing(),
    )


class _Beside:
    """Fills the rows of a table, and collects why cells have no value here."""

    def __init__(self, table: PublishedTable, matched: Matched) -> None:
        self._table, self._matched = table, matched
        self._not_measured: dict[str, list[_Figure]] = {}
        self._refused: dict[str, dict[str, None]] = {}
        """Why there is no ratio, or no counterpart, and of what."""

    def fill(self, row: PublishedRow) -> Line:
        """Put measured values into a row."""
        sides = [self._choose(_Figure(self._table, row, column)) for column in self._table.columns]
        settings = {one.setting for one in sides if one}
        several = len({one.system for one in settings}) > 1
        named = {f"{one.system} {one.version}" if several else one.version for one in settings}
        here = tuple(
            self._fill_cell(_Figure(self._table, row, column)) for column in self._table.columns
        )
        return Line(title=row.title, cells=here, release=", ".join(sorted(named)))

    def compare(self, rows: _Rows) -> tuple[Line, ...]:
        """Compute rows of ratios; those without any are left out."""
        lines = (
            Line(
                title=title,
                cells=tuple(
                    Cell(
                        there=None if of.value is None or not over.value else of.value / over.value,
                        here=self._compare(of, over, f"the ratio {title}"),
                    )
                    for of, over in pairs
                ),
            )
            for title, pairs in rows
        )
        return tuple(line for line in lines if line.says_something)

    def describe_missing(self) -> tuple[str, ...]:
        """Return each reason for which cells have no value, with the cells that it is true of."""
        places = {reason: self._name(them) for reason, them in self._not_measured.items()}
        reported = places | {reason: [*them] for reason, them in self._refused.items()}
        return tuple(sentence(f"{reason}: {'; '.join(them)}") for reason, them in reported.items())

    def _choose(self, figure: _Figure) -> MeasuredSetting | None:
        return self._matched.chosen.get((figure.table.name, figure.spot.subject or ""))

    def _find(self, figure: _Figure) -> Value | None:
        of = self._choose(figure)
        return of.values.get(cell_of(figure.spot)) if of else None

    def _fill_cell(self, figure: _Figure) -> Cell:
        column = figure.column
        here: float | None = None
        runs: tuple[float, ...] = ()
        if column.not_here:
            self._refused.setdefault(column.not_here, {})[column.title] = None
        elif column.quotient:
            by_name = {one.name: one for one in self._table.columns}
            of = replace(figure, column=by_name[column.quotient.of])
            over = replace(figure, column=by_name[column.quotient.over])
            here = self._compare(of, over, column.title)
        elif value := self._find(figure):
            here, runs = value.value, value.runs
        else:
            self._not_measured.setdefault(self._explain(figure), []).append(figure)
        return Cell(
            there=figure.value,
            words=figure.row.words.get(column.name, ""),
            here=here,
            runs=runs,
            is_count=figure.spot.metric in _COUNTED,
        )

    def _compare(self, of: _Figure, over: _Figure, where: str) -> float | None:
        """Return the ratio of two cells here; None where they have none, or may not be compared."""
        one, other = self._choose(of), self._choose(over)
        value, base = self._find(of), self._find(over)
        if not (one and other and value and base):
            return None
        subjects = [self._matched.report.subject(side.spot.subject or "") for side in (of, over)]
        across = all(subject.testbed_classes for subject in subjects)
        if why := refuse_ratio(one.setting, other.setting, across_testbeds=across):
            self._refused.setdefault(why, {})[where] = None
            return None
        return value.value / base.value if base.value else None

    def _explain(self, figure: _Figure) -> str:
        """Describe why a cell was not measured."""
        matched, cell = self._matched, cell_of(figure.spot)
        subject = matched.report.subject(figure.spot.subject or "")
        there = [one for one in matched.measured if stands_for(one.setting, subject)]
        if any(known.workload == cell.workload for one in there for known in one.values):
            if cell.metric in _PRICED:
                return "the testbed states no price, or the load was not a closed loop"
            what = f"{cell.statistic} {cell.metric} of {cell.operation} in {cell.phase}"
            return f"{what} was not recorded, or not in the setting of this table"
        tried = sum(
            stands_for(setting_of(head), subject) and unscaled_name(head.workload.name) == cell.workload
            for head in matched.heads
        )
        if tried:
            return f"{count(tried, 'trial')} of {cell.workload} failed or gave no valid result"
        allowed = (
            ("config", subject.configs),
            ("topology", subject.topologies),
            ("testbed class", subject.testbed_classes),
        )
        what = "; ".join(f"{name} {' or '.join(names)}" for name, names in allowed if names)
        named = f"{subject.system} ({what})" if what else subject.system
        if there:
            return f"{named} was not measured with the workload {cell.workload} at this scale"
        return f"no completed trial of {named} is in this history at this scale"

    def _name(self, missing: Sequence[_Figure]) -> list[str]:
        """Name cells by their whole columns, by their whole rows, and the rest one by one."""
        own = [one for one in self._table.columns if not one.quotient and not one.not_here]
        rows = self._table.rows
        if len(missing) == len(own) * len(rows):
            return ["the whole table"]
        columns = [one for one in own if sum(it.column is one for it in missing) == len(rows)]
        rest = [one for one in missing if one.column not in columns]
        width = len(own) - len(columns)
        whole = [row for row in rows if sum(one.row is row for one in rest) == width > 0]
        return [
            *(one.title for one in columns),
            *(one.title for one in whole),
            *(f"{one.row.title} · {one.column.title}" for one in rest if one.row not in whole),
        ]


def _unit_of(table: PublishedTable, column: PublishedColumn) -> str:
    """Return the unit that all cells of a column share; none where they differ or have none."""
    if column.quotient or column.not_here:
        return ""
    metrics = {spot_of(table, row, column).metric or "" for row in table.rows}
    if len(metrics) > 1:
        return ""
    (metric,) = metrics
    return TABLE_MEASURES.get(metric, unit_words(metric))


def _list_shapes(table: PublishedTable, report: Report) -> Iterator[tuple[str, list[str], _Rows]]:
    """Yield title, columns and rows of ratios between rows, between columns, and to another table."""
    plain = [one for one in table.columns if not one.quotient and not one.not_here]
    plain = [one for one in plain if (one.at.metric or table.at.metric) not in _COUNTED]
    rows = {row.name: row for row in table.rows}
    between_rows = [
        (
            f"{row.name} / {base}",
            [(_Figure(table, row, one), _Figure(table, rows[base], one)) for one in plain],
        )
        for row in table.rows
        for base in row.ratios_to
    ]
    yield "Ratios between rows", [one.title for one in plain], between_rows
    columns = {column.name: column for column in table.columns}
    against = [(column, columns[column.ratio_to]) for column in plain if column.ratio_to]
    between_columns = [
        (row.title, [(_Figure(table, row, one), _Figure(table, row, base)) for one, base in against])
        for row in table.rows
    ]
    titles = [f"{column.title} / {base.title}" for column, base in against]
    yield "Ratios between columns", titles, between_columns
    for other in report.tables:
        if other.name == table.ratio_to:
            there = {row.name: row for row in other.rows}
            named = {column.name: column for column in other.columns}
            shared = [one for one in plain if one.name in named]
            to_other = [
                (
                    row.title,
                    [
                        (_Figure(table, row, one), _Figure(other, there[row.name], named[one.name]))
                        for one in shared
                    ],
                )
                for row in table.rows
                if row.name in there
            ]
            yield f"Ratios to the table “{other.title}”", [one.title for one in shared], to_other
