"""Which queries stay inside of a lake. Pure but for DuckDB's parser.

DuckDB is told to reach no other file and to change nothing. What that leaves open are the functions of
the extension that speaks to PostgreSQL (any table of any server), and writing beside the lake's own
Parquet files: so on a lake a query is a SELECT, and calls none of these functions.
"""

import json
from collections.abc import Iterator
from typing import Any

import duckdb

from perf.errors import UsageError

_METADATA = "__ducklake_metadata_"
# `query` runs a text as SQL, which would hide what it calls.
_REFUSED = ("postgres_", "read_postgres_", "pg_clear_cache", "query", "ducklake_", _METADATA)


def refuse_reaching(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Refuse what is no SELECT, and what calls a function that reaches elsewhere.

    Raises:
        UsageError: the query is refused, or DuckDB cannot read it.

    """
    statements = duckdb.extract_statements(sql)
    for statement in statements:
        if statement.type != duckdb.StatementType.SELECT:
            raise UsageError(
                "the query failed: a history of several labs answers SELECT only, and "
                f"{statement.query!r} is something else"
            )
        row = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [statement.query]).fetchone()
        tree = json.loads(row[0]) if row else {"error": True}
        if tree["error"]:
            raise UsageError(f"the query failed: it cannot be checked: {tree.get('error_message')}")
        for name in _names(tree):
            if name.startswith(_REFUSED):
                raise UsageError(f"the query failed: {name} reaches beyond the history: refused")


def _names(part: Any) -> Iterator[str]:  # noqa: ANN401  a tree of JSON
    """Give the names of all functions, and of all other databases, in a parsed query."""
    if isinstance(part, dict):
        if name := part.get("function_name"):
            yield str(name).lower()
        # With two parts in a name, the parser takes the first for a schema.
        for place in ("catalog_name", "schema_name"):
            if str(part.get(place, "")).lower().startswith(_METADATA):
                yield str(part[place]).lower()
        for value in part.values():
            yield from _names(value)
    elif isinstance(part, list):
        for value in part:
            yield from _names(value)
