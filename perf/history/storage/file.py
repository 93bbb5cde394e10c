"""The history as a file: made and replaced in one step, locked by its one writer, checked on opening.

DuckDB's exceptions end here: `explained` turns them into a HistoryError that says what to do.
"""

import filecmp
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from functools import cache
from importlib.resources import files
from itertools import chain, count
from pathlib import Path, PurePath
from typing import TypeVar

import duckdb
from filelock import FileLock, Timeout
from pydantic import ValidationError

from perf.history.storage import checkpoint, upgrades
from perf.history.tables import Tables
from perf.local import disk, durable, standing
from perf.local.paths import DataPaths
from perf.local.progress import note
from perf.model.errors import DamagedHistory, HistoryError
from perf.model.shown import escape_control_characters, list_faults, list_some

SCHEMA_VERSION = 3
T = TypeVar("T")

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    # A history never loads or fetches code, and a query never touches another file.
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "enable_external_access": False,
    "lock_configuration": True,
    **checkpoint.PLAIN,
}
_OF_LOG = "while replaying WAL file"
_COPYING: dict[str, str | bool | int | float | list[str]] = {
    name: _CONFIG[name] for name in ("autoinstall_known_extensions", "autoload_known_extensions")
}
_WAIT_S = 60.0
"""So long a history is waited for that somebody else has open: a night must not end in an error because
somebody looks at its history."""
_POLL_S = 0.1
_TABLES = "SELECT table_name, sql FROM duckdb_tables()"
_COLUMNS = "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal"
_LATER = "Wait until that has ended, then try again"
_LOCK_HOLDER = re.compile(r"lock is held in (?P<program>.+?) \(PID (?P<pid>\d+)\)")


class _InUseError(HistoryError):
    """Another process has the history open; `said` says which one."""

    def __init__(self, said: str) -> None:
        self.said = said
        super().__init__(f"{said}. {_LATER}")


class FileStorage:
    """A DuckDB file. Its lock keeps others out, its configuration keeps queries in."""

    advice = "restore it, or accept what is there now with: knickpoint history rebuild"
    together = 20
    """Trials that are appended in one transaction."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        """Open an existing history file.

        Raises:
            HistoryError: another process holds it, or it is corrupt, foreign or too new.

        """
        self.connection = connect(path, read_only=read_only)
        self.name = str(path)
        self._path, self._is_read_only = path, read_only
        found = path.stat()
        self.origin = f"{found.st_dev} {found.st_ino}"
        self.tables = Tables(self.connection, self.explained)

    def explained(self) -> AbstractContextManager[None]:
        """Turn what DuckDB says of troubles into a HistoryError that says what to do."""
        return explained(self._path)

    def damage(self, error: Exception) -> HistoryError:
        """Return the error for rows that do not fit the schema."""
        return damage(self._path, error)

    def transact(self, work: Callable[[], T], message: str) -> T:
        """Do all of the work or nothing of it."""
        with self.tables.transaction():
            done = work()
        # DuckDB syncs what it writes into its log, and not the name of a log that it made for it.
        durable.sync(self._path.parent)
        _fold(self.connection, self._path, beyond_bytes=checkpoint.LOG_BYTES)
        return done

    def check_query(self, sql: str) -> None:
        """Refuse nothing: the file is opened so that a query reaches nothing else."""

    def close(self, *, is_fine: bool) -> None:
        """Close the file; all that was committed is on the disk already, in its log."""
        with closing(self.connection):
            if is_fine and not self._is_read_only:
                _fold(self.connection, self._path)


def connect(path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    """Open an existing history file and check that it is one; one of an older schema is upgraded.

    To be written, it is opened even if its log is damaged, which is then put aside.

    What another process has open is waited for, a minute long.

    Raises:
        HistoryError: another process holds it, or it is corrupt, foreign or of another version.

    """
    _refuse_special(path)
    if not path.stat().st_size:  # DuckDB would take it for a new one
        raise damage(path, ValueError("it is empty"))
    checkpoint.repair(path)
    if not read_only:
        _back_up_damaged_log(path)
    with explained(path), ExitStack() as undo:
        connection = _wait_for(lambda: _open(path, read_only=read_only))
        undo.callback(connection.close)
        version = check_schema(connection, path)
        if version == SCHEMA_VERSION:
            undo.pop_all()
            return connection
    _upgrade(path, version)
    return connect(path, read_only=read_only)


def _open(path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    with explained(path):
        connection = duckdb.connect(path, read_only=read_only, config=_CONFIG)
        checkpoint.prevent(connection)
        return connection


def _fold(connection: duckdb.DuckDBPyConnection, path: Path, *, beyond_bytes: int = 0) -> None:
    """Bring the log of an open history into its file, if it is longer than so many bytes.

    Raises:
        HistoryError: it cannot be done; what was appended is in the log.

    """
    log = _log_of(path)
    with explained(path):
        if log.exists() and log.stat().st_size > beyond_bytes:
            checkpoint.run(connection, path)


def _wait_for(attempt: Callable[[], T]) -> T:
    """Try until no other process has the history open; raise what is said when it was long enough."""
    give_up_s = time.monotonic() + _WAIT_S
    is_reported = False
    while True:
        try:
            return attempt()
        except _InUseError as busy:
            if time.monotonic() >= give_up_s:
                raise
            if not is_reported:
                note(f"{busy.said}; waiting up to {_WAIT_S:g} s")
            is_reported = True
            time.sleep(_POLL_S)


def create(path: Path) -> None:
    """Make an empty history, in one step, unless there is one.

    Raises:
        HistoryError: the file cannot be written.

    """
    with _locked(path, wait_s=10.0), explained(path):
        if not path.exists():
            _put(_make(path), path)


@contextmanager
def replacement(path: Path) -> Iterator[Path]:
    """Yield an empty history beside the old one, which it replaces in one step at the end.

    After an exception the old one stays. Until the end no other process may write to the old one,
    so nothing that it appends is lost by the replacement; the old one may be corrupt or absent.

    Raises:
        HistoryError: another process uses the history, or the new file cannot be written.

    """
    with replacing(path, is_read=False) as (fresh, _):
        yield fresh


@contextmanager
def rebuilding(path: Path, *, keeps_old: bool) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """Do as `replacement`, and give the trials of the old one with the digests of their bundles.

    As far as it can be read.

    One that cannot be read is kept beside the new one, unless it is empty, and so is any other if it is
    to be.
    """
    with replacing(path, is_read=False) as (fresh, old):
        known: Mapping[str, str] = {}
        if path.exists():
            try:
                asked = f"SELECT trial_id, bundle_sha256 FROM {upgrades.OLD}.trials"  # noqa: S608  our own name
                known = dict(old.execute(asked).fetchall())
            except duckdb.Error:
                keeps_old = True
        yield fresh, known
        if keeps_old and path.exists() and path.stat().st_size:
            with explained(path):
                kept = _keep(path, "damaged")
            note(f"the old one is kept as {kept}, to be removed when you like")


@contextmanager
def replacing(path: Path, *, is_read: bool = True) -> Iterator[tuple[Path, duckdb.DuckDBPyConnection]]:
    """Do as `replacement`, and give a connection to which the old one is attached, which is read.

    Raises:
        HistoryError: another process uses the history, or the new file cannot be written; or the old
            one cannot be opened, though it is read.

    """
    with _locked(path, wait_s=0.0):
        _refuse_special(path)
        _fold_left_log(path)
        with _held_against_writers(path, is_read=is_read) as old:
            with explained(path):
                fresh = _make(path)
            try:
                yield fresh, old
                with explained(path):
                    _put(fresh, path)
            finally:
                _remove(fresh)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what DuckDB or the operating system says about a history file into a HistoryError."""
    try:
        yield
    except duckdb.Error as error:
        raise (_in_use(path, error) or _refused(path, error) or damage(path, error)) from error
    except OSError as error:
        raise HistoryError(
            f"the history file {path} cannot be written: {disk.explain(error)}"
        ) from error


def damage(path: Path, error: Exception) -> HistoryError:
    """Return the error for a file that cannot be used as it is."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return HistoryError(
            f"the history file {path} cannot be used: {error}\n"
            "Close other programs, or move the data directory to a machine with more memory"
        )
    if _OF_LOG in str(error):
        return HistoryError(
            f"the history file {path} lacks what was last appended: {error}\n"
            "The power may have failed then. The trials are safe in their bundles; append them again: "
            "knickpoint append"
        )
    return DamagedHistory(
        f"the history file {path} cannot be used: {_say(error)}\n{_say_rebuild(path)}"
    )


def _say_rebuild(path: Path) -> str:
    """Say how a history is made new, and from how much."""
    with suppress(OSError):
        if found := sum(
            not one.name.startswith(".") for one in DataPaths(path.parent).trials.iterdir()
        ):
            bundles = "the trial bundle" if found == 1 else f"the {found:,} trial bundles"
            return f"Make it new from {bundles} beside it: knickpoint history rebuild"
    return (
        "There are no trial bundles beside it: restore the data directory from a backup, then make it "
        "new from them: knickpoint history rebuild"
    )


def _say(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(list_some(list_faults(error)))
    return escape_control_characters(str(error))


def _refuse_special(path: Path) -> None:
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
    """Return the SQL that makes an empty history."""
    return files("perf.history").joinpath("schema.sql").read_text(encoding="utf-8")


def check_schema(connection: duckdb.DuckDBPyConnection, path: Path) -> int:
    """Return the version of an open history's schema, which this Knickpoint can read.

    Raises:
        HistoryError: it is no history, or one of a newer Knickpoint.

    """
    tables = dict(connection.execute(_TABLES).fetchall())
    if not {"meta", "trials"} <= tables.keys():
        raise HistoryError(
            f"{path} is a DuckDB file, but not a Knickpoint history: refused. Move it away, then make "
            "a history from the trial bundles: knickpoint history rebuild"
        )
    found = connection.execute("SELECT schema_version FROM meta").fetchall()
    version = found[0][0] if len(found) == 1 else None
    if version is not None and version > SCHEMA_VERSION:
        raise HistoryError(
            f"{path} has schema version {version}, written by a newer Knickpoint; this one knows "
            f"{SCHEMA_VERSION}: update it"
        )
    if version is None or version < upgrades.OLDEST:
        raise HistoryError(
            f"{path} has schema version {version}, which no Knickpoint wrote. The trials themselves "
            "are safe in their bundles: make the history from them with: knickpoint history rebuild"
        )
    # To list all columns takes nearly as long as to open the file.
    is_as_new = _expected()[0].items() <= tables.items()
    if version == SCHEMA_VERSION and not is_as_new and (lacking := _find_lacking(connection)):
        raise damage(path, ValueError(f"it lacks the columns {', '.join(lacking)}"))
    return int(version)


def _find_lacking(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Name the columns that a history of today's schema has, and this one not, or of another type."""
    found = set(connection.execute(_COLUMNS).fetchall())
    return [f"{table}.{column} ({kind})" for table, column, kind in sorted(_expected()[1] - found)]


@cache
def _expected() -> tuple[Mapping[str, str], frozenset[tuple[str, str, str]]]:
    """Return how each table of an empty history is made, and all columns."""
    with duckdb.connect(":memory:") as empty:
        empty.execute(schema())
        return (
            dict(empty.execute(_TABLES).fetchall()),
            frozenset(empty.execute(_COLUMNS).fetchall()),
        )


def _upgrade(path: Path, version: int) -> None:
    """Replace a history of an older schema by a copy of today's; the old file is kept beside it."""
    note(
        f"{path} has schema version {version}, of an older Knickpoint: copying it to version "
        f"{SCHEMA_VERSION}"
    )
    with replacing(path) as (fresh, old), explained(path):
        version = check_schema(old, path)  # another process may have been faster
        upgrades.copy_rows(old, fresh, version)
        if version != SCHEMA_VERSION:
            kept = _keep(path, f"schema-{version}")
            note(f"the old one is kept as {kept}, to be removed when you like")


def _back_up_damaged_log(path: Path) -> None:
    """Put a log aside that cannot be replayed: what it holds since the last closing is in bundles.

    DuckDB takes a log that ends early, but not one with a gap, which a disk may have after the power
    failed: a file can have its length before its content.
    """
    log = _log_of(path)
    if not log.exists() or not _find_damage_of_log(path):
        return
    with _locked(path, wait_s=10.0), explained(path):
        # Asked again: another process may have put it aside meanwhile, and may write a log of its own.
        if not (error := _find_damage_of_log(path)):
            return
        kept = next(one for one in _names(path, f"{path.stem}.damaged", ".wal") if _is_free(one))
        log.rename(kept)
        durable.sync(path.parent)
    note(
        f"the log of {path} is damaged, as after a power failure: {error}\nIt is kept as {kept}, "
        "to be removed when you like; trials that were only there are appended from their bundles"
    )


def _find_damage_of_log(path: Path) -> duckdb.Error | None:
    """Return what DuckDB says of a log that it cannot replay; all else is said by who opens it next."""
    try:
        duckdb.connect(path, read_only=True, config=_CONFIG).close()
    except duckdb.Error as error:
        return error if _OF_LOG in str(error) else None
    return None


def _keep(path: Path, why: str) -> Path:
    """Return the file a second name that nothing has, or copy it where a file has only one.

    A replacement that did not end may have kept the same already: it is not kept twice.
    """
    names = _names(path, f"{path.stem}.{why}", path.suffix)
    kept = next(one for one in names if _is_free(one) or _is_copy(path, one))
    if _is_free(kept):
        try:
            os.link(path, kept)
        except OSError:
            copy = kept.with_name(f"{kept.name}.new")
            shutil.copy2(path, copy)
            durable.move(copy, kept)
    # On the disk before the new one is: else lost power could leave neither name to the old one.
    durable.sync(path.parent)
    return kept


def _is_copy(path: Path, other: Path) -> bool:
    is_file = other.is_file() and not other.is_symlink()
    return is_file and filecmp.cmp(path, other, shallow=False)


def _is_free(place: Path) -> bool:
    return not os.path.lexists(place)


def _names(path: Path, stem: str, suffix: str) -> Iterator[Path]:
    """Return places beside a file, one after the other, for one more of a kind."""
    return (
        path.with_name(f"{stem}{more}{suffix}") for more in chain([""], (f"-{n}" for n in count(2)))
    )


def _in_use(path: Path, error: duckdb.Error) -> HistoryError | None:
    """Return the error for a file that someone else has open, if that is what DuckDB says."""
    text, said = str(error), f"the history file {path} is in use: {{}} has it open"
    if holder := _LOCK_HOLDER.search(text):
        return _InUseError(said.format(f"process {holder['pid']} ({PurePath(holder['program']).name})"))
    if "Could not set lock" in text:
        return _InUseError(said.format("another process"))
    if isinstance(error, duckdb.ConnectionException):
        return HistoryError(f"{said.format('this process, in another way,')}. {_LATER}")
    return None


def _refused(path: Path, error: duckdb.Error) -> HistoryError | None:
    """Return the error for a file that the operating system refuses, which no rebuild can repair."""
    step = disk.next_step(error)
    return HistoryError(f"the history file {path} cannot be used: {error}\n{step}") if step else None


def _make(path: Path) -> Path:
    """Make an empty history beside its final place, instead of what a killed process left there."""
    fresh = path.with_name(f"{path.name}.new")
    _remove(fresh)
    with duckdb.connect(fresh) as connection:
        # Together: each by itself would be brought to the disk by itself.
        connection.execute(f"BEGIN; {schema()}")
        connection.execute("INSERT INTO meta VALUES (?)", [SCHEMA_VERSION])
        connection.execute("COMMIT")
    return fresh


def _put(fresh: Path, path: Path) -> None:
    """Put a whole, closed file in the history's place in one step."""
    if _log_of(fresh).exists():
        # A disk that is full keeps rows in the log, and closing the file does not say so.
        with duckdb.connect(fresh) as connection:
            connection.execute("CHECKPOINT")
    durable.sync(fresh)
    # The old file's write-ahead log goes first, from the disk, too: it must never be replayed into
    # the new one.
    durable.remove(_log_of(path))
    fresh.replace(path)
    durable.sync(path.parent)


@contextmanager
def _locked(path: Path, *, wait_s: float) -> Iterator[None]:
    """Let one process at a time make or rebuild a history."""
    with explained(path):
        durable.make_directory(path.parent)
        try:
            lock = FileLock(path.with_name(f"{path.name}.lock")).acquire(timeout=wait_s)
        except Timeout as error:
            raise HistoryError(f"another process rebuilds {path}: wait until it has ended") from error
    with lock:
        yield


def _fold_left_log(path: Path) -> None:
    """Bring what is only in the write-ahead log into the file: a log is removed before its file."""
    if _log_of(path).exists():
        # Who has it open is reported by what comes next, and a corrupt one is to be replaced.
        with suppress(duckdb.Error, HistoryError), _open(path, read_only=False) as connection:
            _fold(connection, path)


@contextmanager
def _held_against_writers(path: Path, *, is_read: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    """Keep other processes from writing, as far as the file can be opened at all.

    Who copies it does so through the connection that is given: to open the file a second time and close
    it would end the hold of the whole process, as locks of files go.
    """
    with duckdb.connect(":memory:", config=_COPYING) as connection:
        if path.exists():
            quoted = str(path).replace("'", "''")

            def attach() -> None:
                with explained(path):
                    connection.execute(f"ATTACH '{quoted}' AS {upgrades.OLD} (READ_ONLY)")
                    connection.execute(f"USE {upgrades.OLD}")

            try:
                _wait_for(attach)
            except HistoryError as error:
                # What cannot be opened, nobody writes into.
                if is_read or isinstance(error, _InUseError):
                    raise
        yield connection


def _remove(path: Path) -> None:
    for one in (path, _log_of(path), checkpoint.backup_of(path)):
        one.unlink(missing_ok=True)


def _log_of(path: Path) -> Path:
    """Return the place of DuckDB's write-ahead log of a file."""
    return path.with_name(f"{path.name}.wal")


def describe_state(path: Path) -> str:
    """Return what tells the state of a history file from all others; empty where there is none.

    While it is open, nobody can write, and the state is that of what is read.
    """
    state = standing.describe_file(path)
    return f"{state}, {standing.describe_file(_log_of(path))}" if state else ""
