"""One history for several labs: DuckLake, its catalog in PostgreSQL, its rows in Parquet files.

What is appended lies in the catalog at first ("inlined"), so that a trial is one transaction of
PostgreSQL: a writer that is killed meanwhile leaves nothing behind, not even a file. From time to time
all of it is moved into Parquet files, so that there is one of them per table and hundreds of trials.

A query reaches nothing else than on a history file: no other file, no other server, nothing to write.
"""

import importlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar

import duckdb

from perf.history.place import FORM, LakePlace
from perf.history.storage import file, upgrades
from perf.history.storage.queries import refuse_reaching
from perf.history.storage.writer_lock import MISSING_EXTRA, WriterLock
from perf.history.tables import Tables, quoted
from perf.local.progress import note
from perf.model.errors import HistoryError, UsageError

T = TypeVar("T")

NAME = "history"
"""What the attached lake is called inside of DuckDB."""
MOST_INLINED = 200
"""Trials in the catalog itself, after which they are moved into Parquet files."""
_INLINED_ROWS = 1_000_000
_WITHOUT_PAST = (
    "ducklake_rewrite_data_files(?, delete_threshold => 0.0)",
    "ducklake_merge_adjacent_files(?)",
    "ducklake_expire_snapshots(?, older_than => now())",
)
"""Only what no snapshot names can be deleted, and a merged file is named by the one that merged it."""
_ATTEMPTS = 5
_TIMEOUT_S = 10
_SIGNED: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
# Signatures are checked once per process, by `_verify`: that takes three times as long as all the rest.
CONFIG = {**_SIGNED, "allow_unsigned_extensions": True}
_SECRETS = ("PGPASSWORD", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_MOST_SAID = 600
# A table of rows that lie in the catalog goes when they are moved after an upgrade: that aborts.
_GONE = ("404 (Not Found)", "HTTP 404", "No such file or directory", "transaction is aborted")


class LakeStorage:
    """A connection to the lake, locked into it."""

    advice = (
        "restore it; if another lab measured under the same id, give each lab a name of its own: lab "
        "in its history.yaml"
    )
    together = 5
    """Trials that are appended in one transaction, for each takes a dozen answers of PostgreSQL; of 20,
    DuckLake takes four times as much CPU for each."""

    def __init__(self, place: LakePlace, *, read_only: bool, at: str | None = None) -> None:
        """Open the lake; make it if there is none and it is opened for writing.

        `at` is the number of a snapshot, or a time: the history as it was then, read-only.

        Raises:
            UsageError: the extra `lake` is not installed, or keys of S3 are not in the environment.
            HistoryError: it cannot be reached, or is no history, or there is none to read.

        """
        self.name = self.origin = place.history
        self._place = place
        with ExitStack() as undo:
            self._lock = WriterLock(place.address, self.name)
            undo.callback(self._lock.close)
            self.connection = duckdb.connect(":memory:", config=CONFIG)
            undo.callback(self.connection.close)
            self.tables = Tables(self.connection, self.explained)
            with self.explained():
                prepare(self.connection, place)
                if read_only or at:
                    attach(self.connection, place, read_only=True, at=at)
                else:
                    with self._lock.held():
                        self._attach_or_make()
                self._check(is_past=at is not None)
                _lock_in(self.connection, place)
            undo.pop_all()
        self._has_appended = False

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what DuckDB says of the lake into a HistoryError that says what to do."""
        try:
            yield
        except duckdb.Error as error:
            raise self.damage(error) from error

    def damage(self, error: Exception) -> HistoryError:
        """Return the error for a lake that cannot be used as it is; no message holds a secret."""
        said = conceal(str(error))
        text = f"the history {self.name} cannot be used: {said}"
        return HistoryError(f"{text}\n{_next_step(said, self._place)}")

    def transact(self, work: Callable[[], T], message: str) -> T:
        """Do all of the work in one transaction, alone; again from the start if others came between.

        Raises:
            HistoryError: it failed, or others, who do not ask for the lock, came between too often.

        """
        for attempt in range(1, _ATTEMPTS + 1):
            with self._lock.waited_for():
                try:
                    with self.tables.transaction():
                        result = work()
                        sign(self.connection, self._place, message)
                except duckdb.TransactionException as error:
                    if attempt == _ATTEMPTS:
                        raise self.damage(error) from error
                    continue
            self._has_appended = True
            return result
        raise AssertionError  # the last attempt returns or raises

    def check_query(self, sql: str) -> None:
        """Refuse a query that could reach beyond the history; raises UsageError."""
        refuse_reaching(self.connection, sql)

    def close(self, *, is_fine: bool) -> None:
        """End; what was appended is moved into Parquet files first, if it has become much.

        Raises:
            HistoryError: the files cannot be written; the trials stay in the catalog.

        """
        try:
            if is_fine and self._has_appended and self._lock.count_inlined() >= MOST_INLINED:
                self.flush()
        finally:
            self.connection.close()
            self._lock.close()

    def flush(self) -> None:
        """Move all rows that lie in the catalog into Parquet files; snapshots stay as they are."""
        with self._lock.waited_for(), self.explained():
            self._flush()

    def _flush(self) -> None:
        # Each by itself: of all tables at once, after one was altered, DuckLake ended in an internal
        # error ("access index 0 within vector of size 0") with 14.6 million samples.
        for table in sorted(_list_tables(self.connection)):
            sql = "CALL ducklake_flush_inlined_data(?, table_name => ?)"
            self.connection.execute(sql, [NAME, table])

    def measure(self) -> int:
        """Return the bytes of all objects that today's history is in."""
        sql = "SELECT sum(file_size_bytes + delete_file_size_bytes) AS size FROM ducklake_table_info(?)"
        return int(self.tables.rows(sql, [NAME])[0]["size"] or 0)

    def give_up_past(self) -> bool:
        """Keep the history as it is now only: merge its files, forget its snapshots, delete the rest.

        Objects go when all who had the history open before have closed it; return False if that takes
        too long: then they go the next time.

        Raises:
            HistoryError: it cannot be done; the history itself is as it was.

        """
        with self._lock.waited_for(), self.explained():
            self._flush()
            for step in _WITHOUT_PAST:
                self.connection.execute(f"CALL {step}", [NAME])
        if not self._lock.wait_for_others():
            return False
        with self._lock.waited_for(), self.explained():
            self.connection.execute("CALL ducklake_cleanup_old_files(?, cleanup_all => true)", [NAME])
        return True

    def _attach_or_make(self) -> None:
        """Attach the lake; make its tables if it has none. The caller holds the lock."""
        attach(self.connection, self._place, read_only=False)
        if _list_tables(self.connection):
            self._upgrade()
            return
        # The one row of `meta` goes into a file at once: a path that cannot be written, or keys that
        # do not fit, are reported now and not after the first 200 trials.
        detach(self.connection)
        attach(self.connection, self._place, read_only=False, inlined_rows=0)
        make_tables(self.connection, self._place)
        detach(self.connection)
        attach(self.connection, self._place, read_only=False)

    def _upgrade(self) -> None:
        """Bring a lake of an older schema to today's, in one transaction. The caller holds the lock."""
        version = self._read_version()
        if version is None or not upgrades.OLDEST <= version < file.SCHEMA_VERSION:
            return  # there is nothing to do, or it is refused
        what = f"schema version {version} to {file.SCHEMA_VERSION}"
        note(f"{self.name}: {what}; labs with an older Knickpoint are refused from now on")
        with self._lock.waited_for(), self.tables.transaction():
            try:
                upgrades.add_what_lacks(self.connection, version, _keyless(file.schema()))
            except ValueError as error:
                raise self.damage(error) from error
            self.connection.execute("UPDATE meta SET schema_version = ?", [file.SCHEMA_VERSION])
            sign(self.connection, self._place, what)

    def _read_version(self) -> int | None:
        """Return the schema's version; None if it is no history. Reads a file: so the path is there."""
        if not {"meta", "trials"} <= _list_tables(self.connection):
            return None
        found = self.connection.execute("SELECT schema_version FROM meta").fetchall()
        return int(found[0][0]) if len(found) == 1 else None

    def _check(self, *, is_past: bool) -> None:
        """Check that it is a history of this schema, or of one before if it is shown as it was."""
        version = self._read_version()
        if version is None:
            raise HistoryError(
                f"there is no history in {self.name} at this time: make one with: knickpoint append"
            )
        if version == file.SCHEMA_VERSION or (is_past and version < file.SCHEMA_VERSION):
            return
        said = f"the history {self.name} has schema version {version}"
        if version > file.SCHEMA_VERSION:
            raise HistoryError(
                f"{said}, written by a newer Knickpoint; this one knows {file.SCHEMA_VERSION}: update "
                "it, then run the command again. What this lab measured is in its bundles"
            )
        raise HistoryError(
            f"{said}, of an older Knickpoint; the first lab that appends with this one brings it to "
            f"{file.SCHEMA_VERSION}, and older ones are refused then. Update all labs, then run: "
            "knickpoint append"
        )


def describe_state(place: LakePlace) -> str:
    """Return what is different for each state of a lake; empty if it is out of reach.

    Asked before the lake is read, it is that of what is read, or of a state that never comes back.
    """
    try:
        with closing(WriterLock(place.address, place.history)) as lock:
            return lock.describe_state()
    except (HistoryError, UsageError):
        return ""


def prepare(connection: duckdb.DuckDBPyConnection, place: LakePlace) -> None:
    """Load the extensions from their wheels; give DuckDB the keys of S3 from the environment.

    Raises:
        UsageError: an extension is not installed, or there are no keys.

    """
    for name in ("postgres_scanner", "ducklake", *(("httpfs",) if place.is_on_s3 else ())):
        extension = _find_extension(name)
        _verify(extension)
        connection.execute(f"LOAD {quoted(str(extension))}")
    # Tried again by us, with the question of what is there already.
    connection.execute("SET ducklake_max_retry_count = 0")
    if place.is_on_s3:
        connection.execute(_secret(place))


def attach(
    connection: duckdb.DuckDBPyConnection,
    place: LakePlace,
    *,
    read_only: bool,
    at: str | None = None,
    inlined_rows: int = _INLINED_ROWS,
) -> None:
    """Attach the lake as `NAME` and make it the database that queries are about."""
    options = [f"DATA_PATH {quoted(place.data_path)}", f"DATA_INLINING_ROW_LIMIT {inlined_rows}"]
    if read_only:
        options.append("READ_ONLY")
    if at is not None:
        kind = "SNAPSHOT_VERSION" if at.isdecimal() else "SNAPSHOT_TIME"
        options.append(f"{kind} {quoted(at)}")
    address = place.address
    if "connect_timeout" not in address:
        address = f"{address} connect_timeout={_TIMEOUT_S}"
    connection.execute(f"ATTACH {quoted(FORM + address)} AS {NAME} ({', '.join(options)})")
    connection.execute(f"USE {NAME}")


def detach(connection: duckdb.DuckDBPyConnection) -> None:
    """Detach the lake."""
    connection.execute(f"USE memory; DETACH {NAME}")


def make_tables(connection: duckdb.DuckDBPyConnection, place: LakePlace) -> None:
    """Make the tables of an empty history, in one transaction.

    DuckLake has no keys; that a trial is there once is what `LakeStorage.transact` sees to.
    """
    connection.execute("BEGIN")
    connection.execute(_keyless(file.schema()))
    connection.execute("INSERT INTO meta VALUES (?)", [file.SCHEMA_VERSION])
    sign(connection, place, "make the tables")
    connection.execute("COMMIT")


def _keyless(schema: str) -> str:
    return re.sub(r",\s*PRIMARY KEY \([^)]*\)", "", schema).replace("PRIMARY KEY", "NOT NULL")


def sign(connection: duckdb.DuckDBPyConnection, place: LakePlace, message: str) -> None:
    """Say in the snapshot that is about to be made which lab made it, and what for."""
    connection.execute("CALL ducklake_set_commit_message(?, ?, ?)", [NAME, place.lab, message])


def conceal(text: str) -> str:
    """Return what DuckDB said without secrets, and without the pages of SQL that it may quote."""
    for name in _SECRETS:
        if secret := os.environ.get(name):
            text = text.replace(secret, f"${name}")
    text = " ".join(text.split())
    if len(text) <= _MOST_SAID:
        return text
    return f"{text[: _MOST_SAID // 2]} … {text[-_MOST_SAID // 2 :]}"


def _list_tables(connection: duckdb.DuckDBPyConnection) -> set[str]:
    sql = "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
    return {name for (name,) in connection.execute(sql).fetchall()}


def _lock_in(connection: duckdb.DuckDBPyConnection, place: LakePlace) -> None:
    """Let the connection reach the lake's own files only, for good."""
    connection.execute(f"SET allowed_directories = [{quoted(place.data_path)}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _find_extension(name: str) -> Path:
    package = f"duckdb_extension_{name}"
    try:
        module = importlib.import_module(package)
    except ImportError as error:
        raise UsageError(MISSING_EXTRA.format(missing=package.replace("_", "-"))) from error
    found = sorted(Path(str(module.__file__)).parent.glob(f"extensions/*/{name}.duckdb_extension"))
    fitting = [path for path in found if path.parent.name == f"v{duckdb.__version__}"]
    if not fitting:
        versions = ", ".join(path.parent.name for path in found) or "none"
        missing = f"{package} for DuckDB {duckdb.__version__}; installed is {versions}"
        raise UsageError(MISSING_EXTRA.format(missing=missing))
    return fitting[0]


@cache
def _verify(extension: Path) -> None:
    """Check the signature of an extension, as DuckDB does when it loads one; raises duckdb.Error."""
    with duckdb.connect(":memory:", config=_SIGNED) as connection:
        connection.execute(f"LOAD {quoted(str(extension))}")


def _secret(place: LakePlace) -> str:
    """Return the SQL that tells DuckDB the keys; never to be part of a message."""
    values = {"KEY_ID": "AWS_ACCESS_KEY_ID", "SECRET": "AWS_SECRET_ACCESS_KEY"}
    missing = [name for name in values.values() if not os.environ.get(name)]
    if missing:
        raise UsageError(f"{place.data_path} needs keys; set in the environment: {', '.join(missing)}")
    parts = {option: os.environ[name] for option, name in values.items()}
    if token := os.environ.get("AWS_SESSION_TOKEN"):
        parts["SESSION_TOKEN"] = token
    if place.s3 is not None:
        parts["URL_STYLE"] = place.s3.url_style
        parts |= {"ENDPOINT": place.s3.endpoint} if place.s3.endpoint else {}
        parts |= {"REGION": place.s3.region} if place.s3.region else {}
    texts = ", ".join(f"{option} {quoted(value)}" for option, value in parts.items())
    use_ssl = "true" if place.s3 is None or place.s3.use_ssl else "false"
    return (
        f"CREATE SECRET (TYPE s3, PROVIDER config, {texts}, USE_SSL {use_ssl}, "
        f"SCOPE {quoted(place.data_path)})"
    )


def _next_step(said: str, place: LakePlace) -> str:
    if "does not exist" in said and "creating" in said.lower():
        return "There is no history yet: make one with: knickpoint append"
    if "DATA_PATH" in said:
        return "data_path in history.yaml must be the one that the history was made with"
    if any(words in said for words in _GONE):
        return (
            "Another lab may have cleaned up meanwhile, and what was being read is gone: run the "
            "command again"
        )
    if "No snapshot found" in said:
        return "See which there are with: knickpoint history at"
    return (
        f"Does PostgreSQL serve, and can {place.data_path} be read (and for an append written) from "
        "here? Then run the command again: nothing is appended by halves, and nothing twice"
    )
