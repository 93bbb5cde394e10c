"""Tables as HTML: what a template's loops do cell by cell, at a fifth of their time.

A site has tens of thousands of trial pages, each with hundreds of cells. What is in a column or a kind
of table alike is said once: a class of the table, not of each cell.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape
from typing import Protocol

from markupsafe import Markup

from reports.pages.trial.phases import PhaseRow
from reports.pages.trial.validity import RuleRow
from reports.pages.trial.view import SeriesLink
from reports.wording.wording import Badge

# The same names, units and rules stand on all pages.
_quote = lru_cache(1 << 13)(escape)


class Headed(Protocol):
    """A row with a name and a note under it; the note may be empty."""

    @property
    def name(self) -> str:
        """What the row is called."""
        ...

    @property
    def note(self) -> str:
        """What explains the name."""
        ...

    @property
    def cells(self) -> Sequence[str]:
        """What stands in its columns."""
        ...


class Tabled(Protocol):
    """A table of numbers; without columns it has values of the whole phase alone."""

    @property
    def title(self) -> str:
        """What it is about."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """What its columns after the first of numbers are called."""
        ...

    @property
    def rows(self) -> Sequence[Headed]:
        """Its rows."""
        ...


def tables_of_numbers(tables: Iterable[Tabled], kind: str) -> Markup:
    """Give a table for each, under its title; `kind` says what a row is; all escaped."""
    return Markup("".join(_table_of_numbers(table, kind) for table in tables))  # noqa: S704  each text is escaped


def _table_of_numbers(table: Tabled, kind: str) -> str:
    rows = "\n".join(map(_row_of_numbers, table.rows))
    return f"{_head_of_numbers(kind, table.title, table.columns)}{rows}\n</tbody>\n</table>\n</div>\n"


@lru_cache(1 << 10)
def _head_of_numbers(kind: str, title: str, columns: tuple[str, ...]) -> str:
    kind, title = escape(kind), escape(title)
    # One class says for the whole table that its cells are numbers.
    names = "".join(
        f'<th scope="col">{escape(name)}</th>'
        for name in ("All iterations" if columns else "Whole phase", *columns)
    )
    return (
        f'<div class="scroll numbers values" role="group" tabindex="0" aria-label="{kind}: {title}">\n'
        f"<table>\n<caption>{title}</caption>\n"
        f'<thead><tr><th scope="col">{kind}</th>{names}</tr></thead>\n<tbody>\n'
    )


def rows_of_numbers(rows: Iterable[Headed]) -> Markup:
    """Give a row of a table for each: its name as header, then its cells; all escaped."""
    return Markup("\n".join(map(_row_of_numbers, rows)))  # noqa: S704  each text is escaped below


def _row_of_numbers(row: Headed) -> str:
    # A number has nothing to escape but what somebody put there in its place, so all are asked at once.
    cells = escape("\x1f".join(row.cells)).replace("\x1f", "</td><td>")
    return f"<tr>{_header(row.name, row.note)}<td>{cells}</td></tr>"


@lru_cache(1 << 13)
def _header(name: str, note: str) -> str:
    explained = f' <span class="note">{escape(note)}</span>' if note else ""
    return f'<th scope="row">{escape(name)}{explained}</th>'


def rows_of_text(rows: Iterable[tuple[str, ...]]) -> Markup:
    """Give a row of a table for each: its first text as header, then the others; all escaped."""
    return Markup("\n".join(map(_row_of_text, rows)))  # noqa: S704  each text is escaped below


@lru_cache(1 << 13)
def _row_of_text(row: tuple[str, ...]) -> str:
    # Facts of hosts hardly change from one trial to the next.
    first, *others = map(escape, row)
    return f'<tr><th scope="row">{first}</th>{"".join(f"<td>{one}</td>" for one in others)}</tr>'


def rows_of_phases(rows: Iterable[PhaseRow]) -> Markup:
    """Give a row of a table for each phase; all escaped."""
    return Markup("\n".join(map(_row_of_phase, rows)))  # noqa: S704  each text is escaped below


def _row_of_phase(row: PhaseRow) -> str:
    return (
        f'<tr>{_header(row.phase, row.operation)}<td class="nowrap">{_quote(row.load)}</td>'
        f'<td class="num">{_quote(row.attempted)}</td><td class="num">{_quote(row.measured)}</td>'
        f'<td class="num">{_quote(row.warm_up)}</td><td class="told">{_quote(row.warm)}</td></tr>'
    )


def rows_of_rules(rows: Iterable[RuleRow]) -> Markup:
    """Give a row of a table for each rule of validity; all escaped."""
    return Markup("\n".join(map(_row_of_rule, rows)))  # noqa: S704  each text is escaped below


def _row_of_rule(row: RuleRow) -> str:
    return (
        f"<tr>{_header(row.title, '')}<td>{_badge(row.held)}</td>"
        f'<td class="num">{_quote(row.limit)}</td><td class="num">{_quote(row.measured)}</td>'
        f'<td class="why">{escape(row.where)}</td></tr>'
    )


@lru_cache(1 << 6)
def _badge(badge: Badge) -> str:
    return (
        f'<span class="badge {escape(badge.kind)}"><span class="symbol" aria-hidden="true">'
        f"{escape(badge.symbol)}</span>{escape(badge.word)}</span>"
    )


def items_of_series(links: Iterable[SeriesLink]) -> Markup:
    """Give an item of a list for each series, with its link from a trial page; all escaped."""
    return Markup("\n".join(map(_item_of_series, links)))  # noqa: S704  each text is escaped below


@lru_cache(1 << 13)
def _item_of_series(link: SeriesLink) -> str:
    return f'<li><a href="../{escape(link.page)}">{escape(link.title)}</a></li>'
