"""What a client can ask of a system: a protocol per data model, and the same where answers come later.

A session is used by many threads at once and raises what its driver raises. Whether a system has a
session of a kind is asked of the system: see `Sessions` in `perf.systems.contract`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from perf.model.records import Devops, Operation, PutGet, Sensor, Stored, Values, Ycsb
from perf.model.statements import Statements
from perf.workloads.devops.rows import DevopsRow, Group, Query
from perf.workloads.sensor import SensorReading
from perf.workloads.statements import StatementValue


class Session(Protocol):
    """What every session can do, whatever its data model is."""

    def stored(self) -> Stored:
        """Count all stored records and their bytes, from what is read back; slow, used once."""
        ...

    def classify(self, error: Exception) -> str:
        """Name the kind of an error from this driver: "timeouts", or "error:<kind>"."""
        ...


class SensorSession(Session, Protocol):
    """A client of the sensor workload."""

    def create_schema(self, records: Sensor) -> None:
        """Create tables or collections; do nothing if they exist."""
        ...

    def write(self, readings: Sequence[SensorReading]) -> None:
        """Store readings of one device in one request; return when they are acknowledged."""
        ...

    def read_latest(self, device_id: str, count: int) -> Sequence[SensorReading]:
        """Return the newest readings of a device, newest first."""
        ...


@runtime_checkable
class ShowsLater(Protocol):
    """A session whose queries do not see at once what was acknowledged.

    Reading operations are as they are: none of them waits for it. `stored` makes everything visible,
    so what a workload has loaded, and what was counted, is there to be read.
    """

    def finish_load(self) -> None:
        """Make all that was written visible to queries."""
        ...


class KeyValueSession(Session, Protocol):
    """A client of put/get (one field) and YCSB (several). Sizes count values, not keys."""

    def create_schema(self, records: PutGet | Ycsb) -> None:
        """Create tables or collections; do nothing if they exist."""
        ...

    def insert(self, key: str, values: Values) -> None:
        """Store a record under a key that is new; what happens if it is not is the system's own way."""
        ...

    def put(self, key: str, values: Values) -> None:
        """Store a whole record, in place of what is under its key, if anything is."""
        ...

    def update(self, key: str, changes: Mapping[int, bytes]) -> None:
        """Change some fields, by number, of a record that is there."""
        ...

    def get(self, key: str) -> Values | None:
        """Return the values of a record; None if there is none."""
        ...


@runtime_checkable
class Scans(Protocol):
    """A session that can give records in an order of keys: the system's own, said in its docs."""

    def scan(self, first_key: str, count: int) -> Sequence[tuple[str, Values]]:
        """Give up to `count` records from `first_key` on, that one included."""
        ...


class DevopsSession(Session, Protocol):
    """A client of the devops workload. `stored` counts rows of all tables, and 8 bytes per value."""

    def create_schema(self, records: Devops) -> None:
        """Create the nine tables or their like; do nothing if they exist."""
        ...

    def write(self, rows: Sequence[DevopsRow]) -> None:
        """Store rows, of any tables and hosts, in one request; return when they are acknowledged."""
        ...

    def finish_load(self) -> None:
        """Make all that was written visible to queries, where that is not so by itself."""
        ...

    def can_ask(self, operation: Operation) -> bool:
        """Return whether the system can be asked queries of this type."""
        ...

    def ask(self, query: Query) -> Sequence[Group]:
        """Ask it; groups ordered by time, then by host."""
        ...


class StatementSession(Session, Protocol):
    """A client of a workload in statements; it knows them from when it is connected.

    `stored` counts rows, and no bytes.
    """

    def create_schema(self, records: Statements) -> None:
        """Send what makes the tables and indexes, one after the other, and make statements ready."""
        ...

    def columns(self, name: str) -> Sequence[str]:
        """Return the columns of the rows that a statement answers with, in order."""
        ...

    def ask(self, name: str, values: Mapping[str, StatementValue]) -> Sequence[Sequence[Any]]:
        """Send a statement, and return the rows of its answer."""
        ...


OnWritten: TypeAlias = Callable[[None, Exception | None], None]
OnRead: TypeAlias = Callable[[Sequence[SensorReading] | None, Exception | None], None]
OnGot: TypeAlias = Callable[[Values | None, Exception | None], None]
OnAsked: TypeAlias = Callable[[Sequence[Sequence[Any]] | None, Exception | None], None]


@runtime_checkable
class AnswersLater(Protocol):
    """A sensor session whose driver does not need a waiting thread per operation.

    Each call returns at once and later calls `done` exactly once, with the answer or with what the
    driver raised; maybe from another thread, maybe before it returns. It never raises by itself.
    """

    def write_soon(self, readings: Sequence[SensorReading], done: OnWritten) -> None:
        """Store readings of one device in one request."""
        ...

    def read_latest_soon(self, device_id: str, count: int, done: OnRead) -> None:
        """Give the newest readings of a device, newest first."""
        ...


@runtime_checkable
class AnswersKeysLater(Protocol):
    """The same of a key-value session."""

    def insert_soon(self, key: str, values: Values, done: OnWritten) -> None:
        """Begin what `insert` does."""
        ...

    def put_soon(self, key: str, values: Values, done: OnWritten) -> None:
        """Begin what `put` does."""
        ...

    def update_soon(self, key: str, changes: Mapping[int, bytes], done: OnWritten) -> None:
        """Begin what `update` does."""
        ...

    def get_soon(self, key: str, done: OnGot) -> None:
        """Begin what `get` does; no record is an answer without values and without an error."""
        ...


@runtime_checkable
class AnswersStatementsLater(Protocol):
    """The same of a session of statements."""

    def ask_soon(self, name: str, values: Mapping[str, StatementValue], done: OnAsked) -> None:
        """Begin what `ask` does."""
        ...
