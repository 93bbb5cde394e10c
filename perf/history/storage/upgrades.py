"""Histories of older schemas: copied, row by row, into an empty one of today's. Pure but for DuckDB.

A history of any schema that was ever released can be read. What a column or a table of today holds for
trials that were kept before there was one stands here; `file` decides when, and puts the copy in place.
"""

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
