"""What a history is kept in, as `store` sees it: a file of its own, or a lake of several labs."""

from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Protocol, TypeVar

import duckdb

from perf.history.storage import checkpoint, file
from perf.history.tables import Tables
from perf.local import durable
from perf.model.errors import HistoryError

T = TypeVar("T")


class Storage(Protocol):
    """Tables that can be read by SQL, and written whole transactions at a time."""

    tables: Tables
    connection: duckdb.DuckDBPyConnection
    name: str
    """What people call it in messages; never with a secret."""
    advice: str
    """What to do about a trial that is there with another content."""

    def explained(self) -> AbstractContextManager[None]:
        """Turn what DuckDB says of troubles into a HistoryError that says what to do."""
        ...

    def damage(self, error: Exception) -> HistoryError:
        """Give the error for rows that do not fit the schema."""
        ...

    def transact(self, work: Callable[[], T], message: str) -> T:
        """Do all of the work or nothing of it, while no one else writes.

        The work may be done again from the start: it must ask first what is there already.
        """
        ...

    def check_query(self, sql: str) -> None:
        """Refuse a query that could reach beyond the history; raises UsageError."""
        ...

    def close(self, *, is_fine: bool) -> None:
        """End; `is_fine` unless an exception is on its way."""
        ...


class FileStorage:
    """A DuckDB file. Its lock keeps others out, its configuration keeps queries in."""

    advice = "restore it, or accept what is there now with: knickpoint history rebuild"

    def __init__(self, path: Path, *, read_only: bool) -> None:
        """Open an existing history file.

        Raises:
            HistoryError: another process holds it, or it is corrupt, foreign or too new.

        """
        self.connection = file.connect(path, read_only=read_only)
        self.name = str(path)
        self._path, self._is_read_only = path, read_only
        self.tables = Tables(self.connection, self.explained)

    def explained(self) -> AbstractContextManager[None]:
        """Turn what DuckDB says of troubles into a HistoryError that says what to do."""
        return file.explained(self._path)

    def damage(self, error: Exception) -> HistoryError:
        """Give the error for rows that do not fit the schema."""
        return file.damage(self._path, error)

    def transact(self, work: Callable[[], T], message: str) -> T:
        """Do all of the work or nothing of it."""
        with self.tables.transaction():
            done = work()
        # DuckDB syncs what it writes into its log, and not the name of a log that it made for it.
        durable.sync(self._path.parent)
        file.fold_log(self.connection, self._path, beyond_bytes=checkpoint.LOG_BYTES)
        return done

    def check_query(self, sql: str) -> None:
        """Refuse nothing: the file is opened so that a query reaches nothing else."""

    def close(self, *, is_fine: bool) -> None:
        """Close the file; all that was committed is on the disk already, in its log."""
        with closing(self.connection):
            if is_fine and not self._is_read_only:
                file.fold_log(self.connection, self._path)
