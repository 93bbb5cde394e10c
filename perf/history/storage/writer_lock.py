"""One writer at a time for a history of several labs: a lock in the PostgreSQL that keeps its catalog.

DuckLake takes several writers at once by trying again, and promises no order and no unique keys; see
https://github.com/duckdb/ducklake/issues/1094. A trial is appended in a twentieth of a second and
measured in minutes, so writers can as well wait for each other: then no two can conflict, and a trial
that one of them has appended is seen by the next.
"""

import importlib
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING

from perf.model.errors import HistoryError, UsageError

if TYPE_CHECKING:
    from psycopg import Connection

MISSING_EXTRA = (
    "history.yaml asks for a history of several labs, and this installation lacks what that takes "
    "({missing}); install it with: .venv/bin/python -m pip install --require-hashes -r "
    "requirements/lake.lock"
)
# The first eight letters of "knickpoint": locks of PostgreSQL are numbers, and per database.
_KEY = int.from_bytes(b"knickpoi")
_READERS_KEY = int.from_bytes(b"knickrea")
WAIT_S = 120.0
_POLL_S = 0.2
# A host that lost its power keeps the lock until PostgreSQL misses its sign of life.
_SETTINGS = (
    "-c tcp_keepalives_idle=15 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 "
    "-c client_min_messages=error"
)
_HOLDER = """
    SELECT a.usename, coalesce(host(a.client_addr), 'the host of the catalog'), a.backend_start
    FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'advisory' AND l.granted AND l.classid::bigint << 32 | l.objid::bigint = %s
"""
_READERS = """
    SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid <> pg_backend_pid()
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid::bigint << 32 | objid::bigint = %s
"""
_UNFINISHED = "BEGIN; LOCK TABLE ducklake_snapshot IN SHARE MODE; COMMIT"


class WriterLock:
    """A session with the catalog's PostgreSQL, which holds the lock while `held`."""

    def __init__(self, address: str, name: str) -> None:
        """Connect; `address` is libpq's, `name` what the history is called in messages.

        Raises:
            UsageError: psycopg is not installed.
            HistoryError: PostgreSQL cannot be reached, or refuses.

        """
        self._name = name
        self._psycopg = _import()
        try:
            self._session: Connection = self._psycopg.connect(
                address, autocommit=True, options=f"{_SETTINGS} -c lock_timeout={WAIT_S * 1000:.0f}"
            )
            # Keeps nobody out: it tells who cleans up that somebody may be reading.
            self._session.execute("SELECT pg_advisory_lock_shared(%s)", [_READERS_KEY])
        except self._psycopg.Error as error:
            raise HistoryError(
                f"the catalog of the history {name} refused the connection: {_one_line(error)}\n"
                "Is PostgreSQL running there, and are host, port, user and database in history.yaml "
                "right? A password is taken from PGPASSWORD or PGPASSFILE"
            ) from error

    def close(self) -> None:
        """End the session, and with it the lock."""
        self._session.close()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait until no one else writes, and keep others from it.

        Raises:
            HistoryError: another writer has it for too long, or the session was lost: then what was
                done meanwhile may be kept or not, which doing it again tells.

        """
        with self._explained(
            "another writer has had the history {name} for {wait_s:.0f} s{holder}. "
            "Wait until it has ended"
        ):
            self._session.execute("SELECT pg_advisory_lock(%s)", [_KEY])
        try:
            yield
        except BaseException:
            with suppress(self._psycopg.Error):
                self._release()
            raise
        with self._explained():
            self._release()

    @contextmanager
    def waited_for(self) -> Iterator[None]:
        """Hold the lock, once all that a killed writer had sent is done or undone as well.

        Its lock ends with its session, while the other session may still be at work on a commit that
        it was notified of before. To lock the table that each commit writes to is to wait for that.
        """
        with self.held():
            with self._explained(
                "a commit into the history {name} has not ended in {wait_s:.0f} s: of a writer that "
                "was killed, or one that asks for no lock. Wait until PostgreSQL has ended it "
                "(pg_stat_activity shows it)"
            ):
                self._session.execute(_UNFINISHED)
            yield

    def wait_for_others(self) -> bool:
        """Wait until all who have the history open now have closed it; return False if it lasts.

        Raises:
            HistoryError: the session was lost.

        """
        give_up_s = time.monotonic() + WAIT_S
        with self._explained():
            waited_for = set(self._session.execute(_READERS, [_READERS_KEY]).fetchall())
            while waited_for:
                if time.monotonic() > give_up_s:
                    return False
                time.sleep(_POLL_S)
                waited_for &= set(self._session.execute(_READERS, [_READERS_KEY]).fetchall())
        return True

    def describe_state(self) -> str:
        """Return what is different for each state of the history: its newest snapshot.

        Raises:
            HistoryError: the session was lost.

        """
        newest = (
            "SELECT snapshot_id, snapshot_time::text FROM ducklake_snapshot "
            "ORDER BY snapshot_id DESC LIMIT 1"
        )
        with self._explained():
            found = self._session.execute(newest).fetchone()
        return f"{self._name} {found}"

    def count_inlined(self) -> int:
        """Return how many trials lie in the catalog itself, and in no Parquet file yet.

        Raises:
            HistoryError: the session was lost.

        """
        sql = (
            "SELECT i.table_name FROM ducklake_inlined_data_tables i JOIN ducklake_table t "
            "USING (table_id) WHERE t.table_name = 'trials' AND t.end_snapshot IS NULL"
        )
        with self._explained():
            tables = self._session.execute(sql).fetchall()
            return sum(self._count(name) for (name,) in tables)

    def _count(self, table: str) -> int:
        named = importlib.import_module("psycopg.sql")
        found = self._session.execute(
            named.SQL("SELECT count(*) FROM {}").format(named.Identifier(table))
        ).fetchone()
        return int(found[0]) if found else 0

    @contextmanager
    def _explained(self, waited: str = "") -> Iterator[None]:
        """Turn what PostgreSQL says into a HistoryError; `waited` says what was waited for too long."""
        try:
            yield
        except self._psycopg.Error as error:
            if waited and isinstance(error, self._psycopg.errors.LockNotAvailable):
                # Else the session stays in the failed transaction, and refuses to give up the lock.
                self._session.execute("ROLLBACK")
                said = waited.format(name=self._name, wait_s=WAIT_S, holder=self._find_holder())
                raise HistoryError(
                    f"{said}, then run the command again: what is appended already is not appended "
                    "twice"
                ) from error
            raise HistoryError(
                f"the catalog of the history {self._name} ended the session: {_one_line(error)}\n"
                "Run the command again when PostgreSQL serves: what was appended is kept, and is not "
                "appended twice"
            ) from error

    def _release(self) -> None:
        self._session.execute("SELECT pg_advisory_unlock(%s)", [_KEY])

    def _find_holder(self) -> str:
        with suppress(self._psycopg.Error):
            for user, host, since in self._session.execute(_HOLDER, [_KEY]):
                return f" (user {user} on {host}, connected since {since:%Y-%m-%d %H:%M} UTC)"
        return ""


def _import() -> ModuleType:
    try:
        return importlib.import_module("psycopg")
    except ImportError as error:
        raise UsageError(MISSING_EXTRA.format(missing="psycopg")) from error


def _one_line(error: Exception) -> str:
    """Return what libpq says; it never holds a password."""
    return " ".join(str(error).split())
