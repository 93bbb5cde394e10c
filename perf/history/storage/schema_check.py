"""Is it a file, and are all columns there that queries ask for? What a history must be to be opened."""

from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

import duckdb

from perf.model.errors import HistoryError

_Column: TypeAlias = tuple[str, str, str]
_COLUMNS = "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal"


def refuse_special(path: Path) -> None:
    """Refuse a pipe, which would keep whoever opens it, and a device or a socket.

    Raises:
        HistoryError: it is one.

    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise HistoryError(
            f"the history file {path} is a pipe, a device or a socket: move it away, then run the "
            "command again"
        )


def schema() -> str:
    """Give the SQL that makes an empty history."""
    return files("perf.history").joinpath("schema.sql").read_text(encoding="utf-8")


def find_lacking(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Name the columns that a history of today's schema has, and this one not, or of another type."""
    found = set(connection.execute(_COLUMNS).fetchall())
    return [f"{table}.{column} ({kind})" for table, column, kind in sorted(_expected() - found)]


@lru_cache(maxsize=1)
def _expected() -> frozenset[_Column]:
    with duckdb.connect(":memory:") as empty:
        empty.execute(schema())
        return frozenset(empty.execute(_COLUMNS).fetchall())
