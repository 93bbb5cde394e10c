"""Tables of a report with what was measured here beside them, and their shape in ratios."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

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
from reports.wording.wording import NOTHING, count, number, sentence, unit_words

_COUNTED = (ERRORS, MISSES)
_PRICED = (USD_PER_MILLION, OPERATIONS_PER_DOLLAR.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellView:
    """A measured value as text, with the spread of its runs as a note; `–` where there is none."""

    text: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineView:
    """A row: the published texts and the measured ones, by column; `release` is what was measured."""

    title: str
    published: tuple[str, ...]
    here: tuple[CellView, ...]
    release: str = ""

    @property
    def says_something(self) -> bool:
        """Whether any of its cells has a value on either side."""
        return {NOTHING} != {*self.published, *(cell.text for cell in self.here)}


@dataclass(frozen=True, slots=True, kw_only=True)
class GridView:
    """Lines under columns with their units; `is_measured` where any cell was."""

    title: str
    columns: tuple[tuple[str, str], ...]
    lines: tuple[LineView, ...]

    @property
    def is_measured(self) -> bool:
        """Whether any of its cells was measured here."""
        return any(cell.text != NOTHING for line in self.lines for cell in line.here)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """A table of the report, its shapes, and why which cells were not measured."""

    anchor: str
    grid: GridView
    note: str
    shapes: tuple[GridView, ...]
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
        """Give what stands for a subject in any table, each setting once."""
        found = [one for (_, name), one in self.chosen.items() if name == subject and one]
        return tuple({one.setting: one for one in found}.values())

    def choose(self, table: PublishedTable, spot: Spot) -> MeasuredSetting | None:
        """Give what stands for the subject of a cell."""
        return self.chosen.get((table.name, spot.subject or ""))

    def find(self, table: PublishedTable, spot: Spot) -> Value | None:
        """Give what was measured at the address of a cell."""
        of = self.choose(table, spot)
        return of.values.get(cell_of(spot)) if of else None


@dataclass(frozen=True, slots=True)
class _Side:
    """One cell of a table."""

    table: PublishedTable
    row: PublishedRow
    column: PublishedColumn

    @property
    def spot(self) -> Spot:
        return spot_of(self.table, self.row, self.column)

    @property
    def value(self) -> float | None:
        names = [one.name for one in self.table.columns]
        return self.row.values[names.index(self.column.name)]


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


def view_table(table: PublishedTable, matched: Matched) -> TableView:
    """Put a published table and what was measured beside it into words."""
    missing = _Missing(table, matched)
    lines = tuple(_view_row(table, row, matched, missing) for row in table.rows)
    columns = tuple((column.title, _unit_of(table, column)) for column in table.columns)
    return TableView(
        anchor=f"table-{table.name}",
        grid=GridView(title=table.title, columns=columns, lines=lines),
        note=table.note or "",
        shapes=tuple(
            replace(shape, lines=lines)
            for shape in _view_shapes(table, matched, missing)
            if (lines := tuple(line for line in shape.lines if line.says_something))
        ),
        missing=missing.tell(),
    )


def exact(value: float) -> str:
    """Write a published number with all the digits that it was published with."""
    return f"{value:,.10g}" if value == int(value) else f"{value:,}"


def ratio_text(of: float, over: float) -> str:
    """Write a ratio as a factor; from zero there is none."""
    return f"×{number(of / over)}" if over else NOTHING


class _Missing:
    """Collects why cells were not measured, each reason with the cells that it is true of."""

    def __init__(self, table: PublishedTable, matched: Matched) -> None:
        self._table = table
        self._matched = matched
        self._sides: dict[str, list[tuple[PublishedRow, PublishedColumn]]] = {}
        self._words: dict[str, list[str]] = {}

    def note(self, reason: str, where: str) -> None:
        places = self._words.setdefault(reason, [])
        if where not in places:
            places.append(where)

    def explain(self, side: _Side) -> None:
        self._sides.setdefault(self._find_reason(side), []).append((side.row, side.column))

    def _find_reason(self, side: _Side) -> str:
        matched, cell = self._matched, cell_of(side.spot)
        subject = matched.report.subject(side.spot.subject or "")
        there = [one for one in matched.measured if stands_for(one.setting, subject)]
        if any(known.workload == cell.workload for one in there for known in one.values):
            if cell.metric in _PRICED:
                return "the testbed states no price, or the load was not a closed loop"
            what = f"{cell.statistic} {cell.metric} of {cell.operation} in {cell.phase}"
            return f"{what} was not recorded, or not in the setting of this table"
        tried = [
            head
            for head in matched.heads
            if stands_for(setting_of(head), subject)
            and unscaled_name(head.workload.name) == cell.workload
        ]
        if tried:
            return f"{count(len(tried), 'trial')} of {cell.workload} failed or gave no valid result"
        what = "; ".join(
            f"{name} {' or '.join(names)}"
            for name, names in (
                ("config", subject.configs),
                ("topology", subject.topologies),
                ("testbed class", subject.testbed_classes),
            )
            if names
        )
        named = f"{subject.system} ({what})" if what else subject.system
        if there:
            return f"{named} was not measured with the workload {cell.workload} at this scale"
        return f"no completed trial of {named} is in this history at this scale"

    def tell(self) -> tuple[str, ...]:
        told = {reason: self._name(cells) for reason, cells in self._sides.items()} | self._words
        return tuple(sentence(f"{reason}: {'; '.join(places)}") for reason, places in told.items())

    def _name(self, missing: Sequence[tuple[PublishedRow, PublishedColumn]]) -> list[str]:
        """Name cells by their whole columns, by their whole rows, and the rest one by one."""
        own = [one for one in self._table.columns if not one.quotient and not one.not_here]
        rows = self._table.rows
        if len(missing) == len(own) * len(rows):
            return ["the whole table"]
        columns = [one.name for one in own if sum(one is column for _, column in missing) == len(rows)]
        rest = [pair for pair in missing if pair[1].name not in columns]
        whole = [
            row.name
            for row in rows
            if sum(row is other for other, _ in rest) == len(own) - len(columns) > 0
        ]
        return [
            *(one.title for one in own if one.name in columns),
            *(row.title for row in rows if row.name in whole),
            *(f"{row.title} · {one.title}" for row, one in rest if row.name not in whole),
        ]


def _unit_of(table: PublishedTable, column: PublishedColumn) -> str:
    """Give the unit that all cells of a column share; none where they differ or have none."""
    if column.quotient or column.not_here:
        return ""
    metrics = {spot_of(table, row, column).metric or "" for row in table.rows}
    if len(metrics) > 1:
        return ""
    (metric,) = metrics
    return TABLE_MEASURES.get(metric, unit_words(metric))


def _published(
    row: PublishedRow, table: PublishedTable
) -> Iterator[tuple[PublishedColumn, str, float | None]]:
    for column, value in zip(table.columns, row.values, strict=True):
        words = row.words.get(column.name)
        yield column, words or (NOTHING if value is None else exact(value)), value


def _view_row(
    table: PublishedTable, row: PublishedRow, matched: Matched, missing: _Missing
) -> LineView:
    published = tuple(text for _, text, _ in _published(row, table))
    here = tuple(_view_cell(table, row, column, matched, missing) for column in table.columns)
    sides = (matched.choose(table, spot_of(table, row, column)) for column in table.columns)
    settings = {one.setting for one in sides if one}
    several = len({one.system for one in settings}) > 1
    named = {f"{one.system} {one.version}" if several else one.version for one in settings}
    return LineView(title=row.title, published=published, here=here, release=", ".join(sorted(named)))


def _view_cell(
    table: PublishedTable,
    row: PublishedRow,
    column: PublishedColumn,
    matched: Matched,
    missing: _Missing,
) -> CellView:
    if column.not_here:
        missing.note(column.not_here, column.title)
        return CellView(text=NOTHING)
    if column.quotient:
        by_name = {one.name: one for one in table.columns}
        of, over = (
            _Side(table, row, by_name[name]) for name in (column.quotient.of, column.quotient.over)
        )
        return CellView(text=_ratio_here(of, over, matched, missing, column.title))
    side = _Side(table, row, column)
    value = matched.find(table, side.spot)
    if value is None:
        missing.explain(side)
        return CellView(text=NOTHING)
    # How often something happened is a whole number; of several trials, their median may be none.
    is_count = side.spot.metric in _COUNTED and value.value.is_integer()
    text = f"{value.value:,.0f}" if is_count else number(value.value)
    return CellView(text=text, note=_spread(value.runs))


def _spread(runs: Sequence[float]) -> str:
    if len(runs) < 2:  # noqa: PLR2004  one run has no spread
        return ""
    return f"{number(min(runs))} to {number(max(runs))} in {len(runs)} runs"


def _ratio_here(of: _Side, over: _Side, matched: Matched, missing: _Missing, where: str) -> str:
    one, other = (matched.find(side.table, side.spot) for side in (of, over))
    if one is None or other is None:
        return NOTHING
    if why := _refuse(of, over, matched):
        missing.note(why, where)
        return NOTHING
    return ratio_text(one.value, other.value)


def _refuse(of: _Side, over: _Side, matched: Matched) -> str:
    """Say why two cells have no ratio here; empty where both may be compared."""
    one, other = (matched.choose(side.table, side.spot) for side in (of, over))
    if one is None or other is None:
        return ""
    subjects = [matched.report.subject(side.spot.subject or "") for side in (of, over)]
    across = all(subject.testbed_classes for subject in subjects)
    return refuse_ratio(one.setting, other.setting, across_testbeds=across)


def _view_shapes(table: PublishedTable, matched: Matched, missing: _Missing) -> Iterator[GridView]:
    """Give ratios between rows, between columns, and to another table."""
    plain = [one for one in table.columns if not one.quotient and not one.not_here]
    plain = [one for one in plain if (one.at.metric or table.at.metric) not in _COUNTED]
    rows = {row.name: row for row in table.rows}
    yield GridView(
        title="Ratios between rows",
        columns=tuple((column.title, "") for column in plain),
        lines=tuple(
            _view_ratios(
                f"{row.name} / {base}",
                [(_Side(table, row, one), _Side(table, rows[base], one)) for one in plain],
                matched,
                missing,
            )
            for row in table.rows
            for base in row.ratios_to
        ),
    )
    columns = {column.name: column for column in table.columns}
    against = [(column, columns[column.ratio_to]) for column in plain if column.ratio_to]
    if against:
        yield GridView(
            title="Ratios between columns",
            columns=tuple((f"{column.title} / {base.title}", "") for column, base in against),
            lines=tuple(
                _view_ratios(
                    row.title,
                    [(_Side(table, row, one), _Side(table, row, base)) for one, base in against],
                    matched,
                    missing,
                )
                for row in table.rows
            ),
        )
    other = next((one for one in matched.report.tables if one.name == table.ratio_to), None)
    if other is not None:
        yield _view_against(table, other, plain, matched, missing)


def _view_against(
    table: PublishedTable,
    other: PublishedTable,
    plain: Sequence[PublishedColumn],
    matched: Matched,
    missing: _Missing,
) -> GridView:
    """Give the ratios of equal rows and columns of two tables."""
    rows = {row.name: row for row in other.rows}
    columns = {column.name: column for column in other.columns}
    shared = [one for one in plain if one.name in columns]
    return GridView(
        title=f"Ratios to the table “{other.title}”",
        columns=tuple((column.title, "") for column in shared),
        lines=tuple(
            _view_ratios(
                row.title,
                [
                    (_Side(table, row, one), _Side(other, rows[row.name], columns[one.name]))
                    for one in shared
                ],
                matched,
                missing,
            )
            for row in table.rows
            if row.name in rows
        ),
    )


def _view_ratios(
    title: str, pairs: Iterable[tuple[_Side, _Side]], matched: Matched, missing: _Missing
) -> LineView:
    published, here = [], []
    for one, other in pairs:
        both = one.value is not None and other.value is not None
        published.append(ratio_text(one.value or 0.0, other.value or 0.0) if both else NOTHING)
        text = _ratio_here(one, other, matched, missing, f"the ratio {title}")
        here.append(CellView(text=text))
    return LineView(title=title, published=tuple(published), here=tuple(here))
