"""Operations per dollar of a reproduced report: of its own prices, and of those recorded here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perf.model.metrics import OPERATIONS_PER_DOLLAR, THROUGHPUT
from perf.model.references import PublishedTable, Report, Spot, cells
from reports.pages.reproduction.ratios import (
    MeasuredSetting,
    ValueAddress,
    cell_of,
    choose_setting,
    operations_per_dollar,
)
from reports.wording.wording import NOTHING, number, quantity

_PHASE = "saturation"


@dataclass(frozen=True, slots=True, kw_only=True)
class DollarRow:
    """One throughput at saturation, with its price there, and operations per dollar of both sides."""

    title: str
    table: str
    throughput: str
    price: str
    published: str
    here: str


def view_dollars(report: Report, measured: Sequence[MeasuredSetting]) -> tuple[DollarRow, ...]:
    """Compute operations per dollar wherever a report has a throughput and the price of its subject."""
    return tuple(row for table in report.tables for row in _view_table(table, report, measured))


def _view_table(
    table: PublishedTable, report: Report, measured: Sequence[MeasuredSetting]
) -> Iterator[DollarRow]:
    for row, column, spot in cells(table):
        value = row.values[table.columns.index(column)]
        if not value or not _is_throughput(spot) or column.quotient or column.not_here:
            continue
        subject = report.subject(spot.subject or "")
        if not subject.price_per_month_usd:
            continue
        cell = cell_of(spot)
        wanted = ValueAddress(
            cell.workload, cell.phase, cell.operation, OPERATIONS_PER_DOLLAR.name, "mean"
        )
        side = choose_setting(subject, [wanted], measured)
        there = operations_per_dollar(value, subject.price_per_month_usd)
        yield DollarRow(
            title=subject.title,
            table=table.title,
            throughput=quantity(value, THROUGHPUT.name),
            price=f"${subject.price_per_month_usd:,.10g}",
            published=number(there),
            here=number(side.values[wanted].value) if side else NOTHING,
        )


def _is_throughput(spot: Spot) -> bool:
    return bool(spot.subject) and (spot.metric, spot.phase) == (THROUGHPUT.name, _PHASE)
