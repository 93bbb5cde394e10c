"""A whole history moved from a file into a lake, or back: a copy that is compared before it counts.

What is copied from stays as it is. What is copied into must be empty, so no two histories are mixed: a
further lab joins a lake by appending its bundles. What is equal already counts as copied: a command
that was killed just after the copy may be run again.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import duckdb

from perf.history.place import LakePlace
from perf.history.storage import file, lake
from perf.history.storage.writer_lock import WriterLock
from perf.history.tables import Tables, quoted
from perf.model.errors import HistoryError, UsageError

_FILE = "file"
_JOIN = (
    "nothing is mixed with it. A lab joins a history that others have begun by appending its bundles: "
    "knickpoint append"
)


def copy_to_lake(path: Path, place: LakePlace) -> int:
    """Copy a history file into an empty lake, in one transaction; give the number of trials.

    Raises:
        UsageError: the lake has other trials already.
        HistoryError: one of them cannot be used, or the copy is not equal; the lake is still empty.

    """
    # Opening upgrades an older file, and makes the tables of the lake.
    file.connect(path, read_only=True).close()
    storage = lake.LakeStorage(place, read_only=False)
    storage.close(is_fine=True)
    with (
        closing(WriterLock(place.address, place.history)) as lock,
        lock.waited_for(),
        # In Parquet files at once, and not in the catalog.
        _both(place, storage, path, "(READ_ONLY)", inlined_rows=0) as (connection, tables),
    ):
        if count := _count(tables, lake.NAME):
            if tables.fingerprint(_FILE) == tables.fingerprint(lake.NAME):
                return count
            raise UsageError(f"the history {place.history} has {count} trials already: {_JOIN}")
        with tables.transaction():
            _copy(connection, _FILE, lake.NAME)
            lake.sign(connection, place, f"migrate {path.name}")
            _compare(tables, _FILE, lake.NAME)
        return _count(tables, lake.NAME)


def copy_to_file(place: LakePlace, path: Path) -> int:
    """Copy a lake into a new history file, which appears when it is whole; give the number of trials.

    A file that is equal already is left as it is.

    Raises:
        UsageError: another file is there already.
        HistoryError: one of them cannot be used, or the copy is not equal; there is still no file.

    """
    storage = lake.LakeStorage(place, read_only=True)
    storage.close(is_fine=True)
    if path.exists():
        with suppress(HistoryError), _both(place, storage, path, "(READ_ONLY)") as (_, tables):
            if tables.fingerprint(_FILE) == tables.fingerprint(lake.NAME):
                return _count(tables, _FILE)
        raise UsageError(
            f"{path} is there already: nothing is mixed with it and it is not replaced; move it away"
        )
    with (
        file.replacement(path) as fresh,
        _both(place, storage, fresh) as (connection, tables),
    ):
        # One transaction reads one snapshot, whatever other labs append meanwhile.
        with tables.transaction():
            _copy(connection, lake.NAME, _FILE)
            _compare(tables, lake.NAME, _FILE)
        return _count(tables, _FILE)


@contextmanager
def _both(
    place: LakePlace,
    storage: lake.LakeStorage,
    path: Path,
    how: str = "",
    inlined_rows: int | None = None,
) -> Iterator[tuple[duckdb.DuckDBPyConnection, Tables]]:
    """Yield a connection to a lake, which is only read without `inlined_rows`, and to a file."""
    with closing(duckdb.connect(":memory:", config=lake.CONFIG)) as connection, storage.explained():
        lake.prepare(connection, place)
        lake.attach(connection, place, read_only=inlined_rows is None, inlined_rows=inlined_rows or 0)
        connection.execute(f"ATTACH {quoted(str(path))} AS {_FILE} {how}")
        yield connection, Tables(connection, storage.explained)


def _copy(connection: duckdb.DuckDBPyConnection, source: str, target: str) -> None:
    sql = "SELECT table_name FROM duckdb_tables() WHERE database_name = ? AND table_name <> 'meta'"
    for (table,) in connection.execute(sql, [target]).fetchall():
        connection.execute(
            f'INSERT INTO {target}."{table}" BY NAME SELECT * FROM {source}."{table}"'  # noqa: S608  from the catalog
        )


def _compare(tables: Tables, source: str, target: str) -> None:
    if tables.fingerprint(source) != tables.fingerprint(target):
        raise HistoryError(
            "the copy is not equal to the history that it was made from: nothing was kept of it. Run "
            "the command again; if it says so again, it is a defect of Knickpoint"
        )


def _count(tables: Tables, database: str) -> int:
    return int(tables.rows(f"SELECT count(*) AS trials FROM {database}.trials")[0]["trials"])  # noqa: S608  our own names
