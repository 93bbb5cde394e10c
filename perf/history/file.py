"""The history as a file: made and replaced in one step, locked by its one writer, checked on opening.

DuckDB's exceptions end here: `explained` turns them into a HistoryError that says what to do.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.resources import files
from itertools import chain, count
from pathlib import Path, PurePath

import click
import duckdb
from filelock import FileLock, Timeout

from perf import durable
from perf.errors import HistoryError
from perf.history import disk, upgrades

SCHEMA_VERSION = 3

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    # A history never loads or fetches code, and a query never touches another file.
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "enable_external_access": False,
    "lock_configuration": True,
}
_LOCK_HOLDER = re.compile(r"lock is held in (?P<program>.+?) \(PID (?P<pid>\d+)\)")


def connect(path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    """Open an existing history file and check that it is one; one of an older schema is upgraded.

    Raises:
        HistoryError: another process holds it, or it is corrupt, foreign or of another version.

    """
    with explained(path), ExitStack() as undo:
        connection = duckdb.connect(path, read_only=read_only, config=_CONFIG)
        undo.callback(connection.close)
        version = check_schema(connection, path)
        if version == SCHEMA_VERSION:
            undo.pop_all()
            return connection
    _upgrade(path, version)
    return connect(path, read_only=read_only)


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
    """Give an empty history beside the old one, which it replaces in one step at the end.

    After an exception the old one stays. Until the end no other process may write to the old one,
    so nothing that it appends is lost by the replacement; the old one may be corrupt or absent.

    Raises:
        HistoryError: another process uses the history, or the new file cannot be written.

    """
    with _locked(path, wait_s=0.0):
        _fold_log(path)
        with _held_against_writers(path):
            with explained(path):
                fresh = _make(path)
            try:
                yield fresh
                with explained(path):
                    _put(fresh, path)
            finally:
                _remove(fresh)


def rewrite(path: Path) -> None:
    """Replace a history by a copy without the room that removed rows took.

    Raises:
        HistoryError: another process uses the history, or the copy cannot be written.

    """
    with replacement(path) as fresh, explained(path):
        upgrades.copy_rows(path, fresh, SCHEMA_VERSION)


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
    """Give the error for a file that cannot be used as it is."""
    return HistoryError(
        f"the history file {path} cannot be used: {error}\n"
        "If it is corrupt or foreign, make it new from the trial bundles: knickpoint history rebuild"
    )


def schema() -> str:
    """Give the SQL that makes an empty history."""
    return files("perf.history").joinpath("schema.sql").read_text(encoding="utf-8")


def check_schema(connection: duckdb.DuckDBPyConnection, path: Path) -> int:
    """Give the version of an open history's schema, which this Knickpoint can read.

    Raises:
        HistoryError: it is no history, or one of a newer Knickpoint.

    """
    tables = {
        name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    }
    if not {"meta", "trials"} <= tables:
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
    return int(version)


def _upgrade(path: Path, version: int) -> None:
    """Replace a history of an older schema by a copy of today's; the old file is kept beside it."""
    click.echo(
        f"{path} has schema version {version}, of an older Knickpoint: copying it to version "
        f"{SCHEMA_VERSION}",
        err=True,
    )
    with replacement(path) as fresh, explained(path):
        with duckdb.connect(path, read_only=True, config=_CONFIG) as old:
            version = check_schema(old, path)  # another process may have been faster
        upgrades.copy_rows(path, fresh, version)
        if version != SCHEMA_VERSION:
            kept = _keep(path, version)
            click.echo(f"the old one is kept as {kept}, to be removed when you like", err=True)


def _keep(path: Path, version: int) -> Path:
    """Give the file a second name that nothing has, or copy it where a file has only one."""
    stem = f"{path.stem}.schema-{version}"
    names = (f"{stem}{again}{path.suffix}" for again in chain([""], (f"-{n}" for n in count(2))))
    kept = next(place for name in names if not os.path.lexists(place := path.with_name(name)))
    try:
        os.link(path, kept)
    except OSError:
        shutil.copy2(path, kept)
    return kept


def _in_use(path: Path, error: duckdb.Error) -> HistoryError | None:
    """Give the error for a file that someone else has open, if that is what DuckDB says."""
    text = str(error)
    if holder := _LOCK_HOLDER.search(text):
        who = f"process {holder['pid']} ({PurePath(holder['program']).name})"
    elif "Could not set lock" in text:
        who = "another process"
    elif isinstance(error, duckdb.ConnectionException):
        who = "this process, in another way,"
    else:
        return None
    return HistoryError(
        f"the history file {path} is in use: {who} has it open. "
        "Wait until that has ended, then try again"
    )


def _refused(path: Path, error: duckdb.Error) -> HistoryError | None:
    """Give the error for a file that the operating system refuses, which no rebuild can mend."""
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


def _fold_log(path: Path) -> None:
    """Bring what is only in the write-ahead log into the file: a log is removed before its file."""
    if _log_of(path).exists():
        # Who has it open is told by what comes next, and a corrupt one is to be replaced.
        with suppress(duckdb.Error), duckdb.connect(path) as connection:
            connection.execute("CHECKPOINT")


@contextmanager
def _held_against_writers(path: Path) -> Iterator[None]:
    """Keep other processes from writing, as far as the file can be opened at all."""
    with ExitStack() as held:
        if path.exists():
            try:
                held.enter_context(duckdb.connect(path, read_only=True, config=_CONFIG))
            except duckdb.Error as error:
                if in_use := _in_use(path, error):
                    raise in_use from error
        yield


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    _log_of(path).unlink(missing_ok=True)


def _log_of(path: Path) -> Path:
    """Give the place of DuckDB's write-ahead log of a file."""
    return path.with_name(f"{path.name}.wal")
