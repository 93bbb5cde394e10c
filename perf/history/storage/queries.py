"""Which queries stay inside of a lake. Pure but for DuckDB's parser.

DuckDB is told to reach no other file and to change nothing. What that leaves open are functions that
give tables: those of the extension that speaks to PostgreSQL (any table of any server), those that run
a text as SQL, and writing beside the lake's own Parquet files. So on a lake a query is a SELECT, and
reads tables, and the few functions that make rows out of what they are given or tell of the tables.
"""

import json
from collections.abc import Iterator
from typing import Any

import duckdb

from perf.model.errors import UsageError

_METADATA = "__ducklake_metadata_"
# A list of what is refused would have a gap with each new function of DuckDB.
TABLE_FUNCTIONS = frozenset(
    {
        *("generate_series", "json_each", "json_tree", "range", "unnest"),
        *("duckdb_columns", "duckdb_tables", "duckdb_views"),
    }
)
# As functions that give a value there are none of these today.
_REFUSED = ("postgres_", "read_postgres_", "pg_clear_cache", "query", "ducklake_")


def refuse_reaching(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Refuse what is no SELECT, and what may reach elsewhere.

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
        for name in _reaching(tree):
            raise UsageError(
                f"the query failed: {name} may reach beyond the history: refused. Beside tables, "
                f"a query may read {', '.join(sorted(TABLE_FUNCTIONS))}"
            )


def _reaching(part: Any) -> Iterator[str]:  # noqa: ANN401  a tree of JSON
    """Yield the names of all functions and databases in a parsed query that may reach elsewhere."""
    if isinstance(part, dict):
        if part.get("type") == "TABLE_FUNCTION":
            name = _lowered(part["function"], "function_name")
            if name not in TABLE_FUNCTIONS:
                yield name
        if (name := _lowered(part, "function_name")).startswith(_REFUSED):
            yield name
        # With two parts in a name, the parser takes the first for a schema.
        for place in ("catalog_name", "schema_name"):
            if (name := _lowered(part, place)).startswith(_METADATA):
                yield name
        for value in part.values():
            yield from _reaching(value)
    elif isinstance(part, list):
        for value in part:
            yield from _reaching(value)


def _lowered(part: dict[str, Any], key: str) -> str:
    return str(part.get(key, "")).lower()
