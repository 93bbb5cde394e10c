"""The session of the workloads put/get and YCSB on CQL, on `cassandra-driver`.

A record is a row of one partition, its fields columns of text, as in YCSB's own binding for Cassandra
(site.ycsb.db.CassandraCQLClient): a key as primary key, then field0, field1 and so on. How the words
of a workload map to CQL:

    insert, put    INSERT of all columns: both replace what is under the key
    update         UPDATE of the columns that it names; it does not ask whether the row is there
    get            SELECT of all columns by key
    scan           SELECT … WHERE token(key) >= token(?) LIMIT ?: in the order of tokens, which is that
                   of the keys' hashes and not of the keys

YCSB updates one field or all; for these the statements are prepared before the first operation.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cassandra.query import UNSET_VALUE

from perf.model.errors import StepFailed
from perf.model.records import PutGet, Stored, Values, Ycsb
from perf.systems.contract import Target
from perf.systems.cql.client import (
    KEYSPACE,
    SLOW_S,
    DriverSession,
    ask_soon,
    create_keyspace,
    read_all,
)
from perf.systems.cql.layout import with_options
from perf.systems.sessions import OnGot, OnWritten

_TABLE = f"{KEYSPACE}.records"


class CqlKeyValueSession(DriverSession):
    """A client of the workloads put/get and YCSB."""

    def __init__(self, session: Any, target: Target) -> None:  # noqa: ANN401  the driver is untyped
        """Wrap a connected session of the driver."""
        super().__init__(session, target)
        self._fields: tuple[str, ...] = ()
        self._insert: Any = None
        self._select: Any = None
        self._scan: Any = None
        self._update_all: Any = None
        self._updates: tuple[Any, ...] = ()

    def create_schema(self, records: PutGet | Ycsb) -> None:
        """Create keyspace and table, a column per field; do nothing if they exist.

        Raises StepFailed if the table has another number of fields: rows would lack some unseen.
        """
        fields = ", ".join(f"field{number} text" for number in range(records.field_count))
        self._session.execute(create_keyspace(self._target), timeout=SLOW_S)
        self._session.execute(
            f"CREATE TABLE IF NOT EXISTS {_TABLE} (key text PRIMARY KEY, {fields})"
            + with_options(self._target.layout),
            timeout=SLOW_S,
        )
        self.prepare()
        if len(self._fields) != records.field_count:
            raise StepFailed(
                "create schema",
                self._target.addresses[0],
                f"table {_TABLE} has {len(self._fields)} fields, and these records have "
                f"{records.field_count}: it is of another workload. Drop it, or wipe the node's data",
            )

    def prepare(self) -> None:
        """Prepare the statements, once; raise what the driver raises if there is no table yet."""
        if self._updates:
            return
        ask = self._session.prepare
        # Asked: a client need not be the one that created the table. All but the key are fields.
        count = len(ask(f"SELECT * FROM {_TABLE}").result_metadata) - 1  # noqa: S608  constants
        self._fields = tuple(f"field{number}" for number in range(count))
        columns = ", ".join(("key", *self._fields))
        self._insert = ask(f"INSERT INTO {_TABLE} ({columns}) VALUES ({_marks(count + 1)})")  # noqa: S608  constants
        self._select = ask(f"SELECT {', '.join(self._fields)} FROM {_TABLE} WHERE key = ?")  # noqa: S608  constants
        self._scan = ask(f"SELECT {columns} FROM {_TABLE} WHERE token(key) >= token(?) LIMIT ?")  # noqa: S608  constants
        self._scan.fetch_size = None  # all rows in one answer, never in pages
        self._update_all = ask(_update(self._fields))
        self._updates = tuple(ask(_update((field,))) for field in self._fields)

    def insert(self, key: str, values: Values) -> None:
        """Insert a row; one under the same key is replaced."""
        self._session.execute(*self._putting(key, values))

    def put(self, key: str, values: Values) -> None:
        """Insert a row, or replace all columns of the one that is there."""
        self._session.execute(*self._putting(key, values))

    def update(self, key: str, changes: Mapping[int, bytes]) -> None:
        """Change some columns of a row."""
        self._session.execute(*self._updating(key, changes))

    def get(self, key: str) -> Values | None:
        """Select a row by its key; None if there is none."""
        return _only(tuple(self._session.execute(*self._getting(key))))

    def scan(self, first_key: str, count: int) -> Sequence[tuple[str, Values]]:
        """Select rows in the order of their tokens."""
        self.prepare()
        found = self._session.execute(self._scan, (first_key, count))
        return tuple((key, _to_values(fields)) for key, *fields in found)

    def insert_soon(self, key: str, values: Values, done: OnWritten) -> None:
        """Begin what `insert` does; `done` is called by the thread of the driver's event loop."""
        self.put_soon(key, values, done)

    def put_soon(self, key: str, values: Values, done: OnWritten) -> None:
        """Begin what `put` does; `done` is called by the thread of the driver's event loop."""
        ask_soon(self._session, partial(self._putting, key, values), lambda _: done(None, None), done)

    def update_soon(self, key: str, changes: Mapping[int, bytes], done: OnWritten) -> None:
        """Begin what `update` does; `done` is called by the thread of the driver's event loop."""
        asked = partial(self._updating, key, changes)
        ask_soon(self._session, asked, lambda _: done(None, None), done)

    def get_soon(self, key: str, done: OnGot) -> None:
        """Begin what `get` does; `done` is called by the thread of the driver's event loop."""
        asked = partial(self._getting, key)
        ask_soon(self._session, asked, lambda rows: done(_only(rows), None), done)

    def stored(self) -> Stored:
        """Read every row back; count rows and the bytes of their fields."""
        self.prepare()
        rows = size = 0
        for row in read_all(self._session, f"SELECT {', '.join(self._fields)} FROM {_TABLE}", "key"):  # noqa: S608  constants
            rows += 1
            size += sum(map(len, _to_values(row)))
        return Stored(rows=rows, payload_bytes=size)

    def _putting(self, key: str, values: Values) -> tuple[Any, ...]:
        self.prepare()
        return self._insert, (key, *(value.decode("ascii") for value in values))

    def _updating(self, key: str, changes: Mapping[int, bytes]) -> tuple[Any, ...]:
        self.prepare()
        if len(changes) == 1:
            ((field, value),) = changes.items()
            return self._updates[field], (value.decode("ascii"), key)
        values = [
            changes[field].decode("ascii") if field in changes else UNSET_VALUE
            for field in range(len(self._fields))
        ]
        return self._update_all, (*values, key)

    def _getting(self, key: str) -> tuple[Any, ...]:
        self.prepare()
        return self._select, (key,)


def _only(rows: Sequence[tuple[str | None, ...]]) -> Values | None:
    return _to_values(rows[0]) if rows else None


def _to_values(row: Sequence[str | None]) -> Values:
    # A column that was never written is a field without bytes, and for whoever verifies a wrong one.
    return tuple((text or "").encode() for text in row)


def _marks(count: int) -> str:
    return ", ".join("?" * count)


def _update(fields: Sequence[str]) -> str:
    changes = ", ".join(f"{field} = ?" for field in fields)
    return f"UPDATE {_TABLE} SET {changes} WHERE key = ?"  # noqa: S608  constants
