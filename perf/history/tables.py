"""The tables of an open history as plain rows: read at once or one after the other, and added to."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from typing import Any

import duckdb
from numpy.typing import NDArray

from perf.history.rows import HistoryRow

_AT_ONCE = 10_000


class Tables:
    """All tables behind a connection; `explained` turns DuckDB's errors into those of a person."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        explained: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """Take over a connection to a checked history."""
        self._connection = connection
        self._explained = explained
        self._is_in_snapshot = False

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
        """Return all rows of the answer to a query."""
        return list(self.each_row(sql, values))

    def each_row(self, sql: str, values: Sequence[object] = ()) -> Iterator[dict[str, Any]]:
        """Yield one row after the other; nothing else may be asked before the last."""
        with self._explained():
            result = self._connection.execute(sql, list(values))
            columns = [column[0] for column in result.description or ()]
            while some := result.fetchmany(_AT_ONCE):
                for row in some:
                    yield dict(zip(columns, row, strict=True))

    def stream(self, sql: str, values: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield one row after the other, without the names of its columns."""
        with self._explained():
            result = self._connection.execute(sql, list(values))
            while some := result.fetchmany(_AT_ONCE):
                yield from some

    def trials(
        self, own: Sequence[str], common: Sequence[str], rest: str, values: Sequence[object] = ()
    ) -> tuple[Mapping[int, HistoryRow], Mapping[str, NDArray[Any]]]:
        """Return the rows that trials have in `common`, by number, and the columns of their `own`.

        The column `alike` has the number of each one's row. `rest` says which trials, and in which
        order. Only in a snapshot: what is in common is asked first. Raises ValueError where different
        rows have the same hash.
        """
        columns = ", ".join(common)
        alike = (
            f"SELECT DISTINCT hash({columns}) AS alike, {columns} FROM (SELECT * FROM trials {rest})"  # noqa: S608  our own names
        )
        rows = self.rows(alike, values)
        known = {row.pop("alike"): row for row in rows}
        if len(known) < len(rows):
            raise ValueError("two kinds of trials have the same hash")
        each = f"SELECT {', '.join(own)}, hash({columns}) AS alike FROM trials {rest}"  # noqa: S608  our own names
        return known, self.columns(each, values)

    def columns(self, sql: str, values: Sequence[object] = ()) -> dict[str, NDArray[Any]]:
        """Return the answer to a query by column, masked where NULL: of millions, in no time."""
        with self._explained():
            return dict(self._connection.execute(sql, list(values)).fetchnumpy())

    def execute(self, sql: str, values: Sequence[object]) -> None:
        """Change rows."""
        self._connection.execute(sql, list(values))

    def insert(self, table: str, rows: Sequence[HistoryRow]) -> None:
        """Insert all rows of a table at once, as JSON: the fastest way in without further packages."""
        if rows:
            self._connection.execute(
                f"INSERT INTO {table} BY NAME SELECT unnest(from_json_strict(?, ?), max_depth := 2)",
                [json.dumps(rows, default=str), self._structures[table]],
            )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep all that is inserted meanwhile, or nothing of it after an exception."""
        self._connection.execute("BEGIN")
        try:
            yield
        except BaseException:
            with suppress(duckdb.Error):  # what went wrong first is what must be reported
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Answer all that is asked meanwhile as of one moment; within another one, as of that one's."""
        if self._is_in_snapshot:
            yield
            return
        with self._explained():
            self._connection.execute("BEGIN")
        self._is_in_snapshot = True
        try:
            yield
        finally:
            self._is_in_snapshot = False
            with suppress(duckdb.Error):  # what went wrong first is what must be reported
                self._connection.execute("ROLLBACK")

    def digest(self) -> str:
        """Return a SHA-256 over all rows of all tables in order."""
        content = hashlib.sha256()
        names = self.rows(
            "SELECT table_name AS name FROM duckdb_tables() "
            "WHERE database_name = current_database() ORDER BY name"
        )
        for table in (row["name"] for row in names):
            content.update(f"{table}\n".encode())
            for row in self.stream(f'SELECT * FROM "{table}" ORDER BY ALL'):  # noqa: S608  from the catalog
                content.update(f"{row!r}\n".encode())
        return content.hexdigest()

    def fingerprint(self, database: str) -> dict[str, tuple[int, ...]]:
        """Return for each table how many rows it has, and two sums of their hashes: equal, same rows.

        It finds what went wrong by accident, as a lost, doubled or changed row. DuckDB makes it in no
        order: of thirty million rows in seconds, where `digest` takes minutes.
        """
        names = self.rows(
            "SELECT table_name AS name FROM duckdb_tables() WHERE database_name = ? ORDER BY ALL",
            [database],
        )
        found = {}
        for table in (row["name"] for row in names):
            # By their names: a column that an upgrade has added comes last.
            columns = self.rows(
                "SELECT column_name AS name FROM duckdb_columns() "
                "WHERE database_name = ? AND table_name = ? ORDER BY ALL",
                [database, table],
            )
            row = ", ".join(f'"{column["name"]}"' for column in columns)
            sql = f'SELECT count(*), sum(hash({row})), bit_xor(hash({row})) FROM {database}."{table}"'  # noqa: S608  from the catalog
            (found[table],) = self.stream(sql)
        return found

    @cached_property
    def _structures(self) -> dict[str, str]:
        """Return the form of each table's rows as DuckDB's JSON reader wants it."""
        rows = self.rows(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() "
            "WHERE database_name = current_database()"
        )
        tables: dict[str, dict[str, str]] = defaultdict(dict)
        for row in rows:
            tables[row["table_name"]][row["column_name"]] = row["data_type"]
        return {table: json.dumps([columns]) for table, columns in tables.items()}


def quoted(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"
