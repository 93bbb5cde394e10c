"""Histories of older schemas: copied, row by row, into an empty one of today's. Pure but for DuckDB.

A lake is not copied: what its tables lack is added to them, and no row is touched.

A history of any schema that was ever released can be read. What a column or a table of today holds for
trials that were kept before there was one stands here; `file` decides when, and puts the copy in place.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

OLDEST = 1
# version → table → column → SQL of what it holds for rows that were written by that version
_NEWER: Mapping[int, Mapping[str, Mapping[str, str]]] = {
    1: {"samples": {"host": "''"}},  # of all hosts together; there were no others
    2: {},
}
_META, _PER_SECOND = "meta", "histograms"
OLD = "old"
"""What the history that is copied is attached as."""


def copy_rows(
    connection: duckdb.DuckDBPyConnection,
    fresh: Path,
    version: int,
    seconds_left_out: Sequence[str] = (),
) -> None:
    """Copy all rows of a history of a schema version into an empty, closed one of today's schema.

    The old one is attached to the connection as OLD. Tables that it lacks stay empty. The histograms of
    some trials may be left out.

    Raises:
        duckdb.Error: the old one has not the schema that it says, or the new one cannot be written.

    """
    newer = _NEWER.get(version, {})
    quoted = str(fresh).replace("'", "''")
    connection.execute(f"ATTACH '{quoted}' AS fresh")
    known = "SELECT table_name FROM duckdb_tables() WHERE database_name = ? ORDER BY 1"
    ours = {name for (name,) in connection.execute(known, ["fresh"]).fetchall()} - {_META}
    for (table,) in connection.execute(known, [OLD]).fetchall():
        if table in ours:
            added = "".join(f", {sql} AS {name}" for name, sql in newer.get(table, {}).items())
            copy = f"INSERT INTO fresh.{table} BY NAME SELECT *{added} FROM {OLD}.{table}"  # noqa: S608  our own names
            if table == _PER_SECOND and seconds_left_out:
                chosen = " WHERE trial_id NOT IN (SELECT unnest(?::VARCHAR[]))"
                connection.execute(copy + chosen, [list(seconds_left_out)])
            else:
                connection.execute(copy)
    connection.execute("CHECKPOINT fresh")
    connection.execute("DETACH fresh")


def add_what_lacks(connection: duckdb.DuckDBPyConnection, version: int, schema: str) -> None:
    """Bring the tables of the current database from a schema version to today's, without its keys.

    What a new column holds for rows that are there is a default, which is not written to any of them.
    It stays: a lab that was open meanwhile may still append rows of the older version.

    Raises:
        ValueError: the history has not the schema that it says.
        duckdb.Error: it cannot be written.

    """
    columns = (
        "SELECT table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE database_name = current_database() AND NOT internal ORDER BY table_name, column_index"
    )
    with duckdb.connect(":memory:") as empty:
        empty.execute(schema)
        wanted = empty.execute(columns).fetchall()
    found = {(table, column) for table, column, _ in connection.execute(columns).fetchall()}
    tables = {table for table, _ in found}
    new = {f"{table}.{column}" for table, column, _ in wanted if (table, column) not in found}
    for table, column, kind in wanted:
        if table in tables and f"{table}.{column}" in new:
            default = _NEWER.get(version, {}).get(table, {}).get(column)
            if default is None:
                raise ValueError(f"it lacks the column {table}.{column}, which version {version} has")
            # Not NOT NULL: DuckLake says no to that for a column that was added just now.
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind} DEFAULT {default}")
    made = {table for table, _, _ in wanted} - tables
    for statement in duckdb.extract_statements(schema):
        is_about = re.match(
            r"\W*(?:--.*\n|\s)*(?:CREATE TABLE|COMMENT ON \w+) ([\w.]+)", statement.query
        )
        name = is_about[1] if is_about else ""
        if name in new or name.split(".")[0] in made:
            connection.execute(statement.query)
