"""CrateDB's session of the workloads put/get and YCSB.

A record is a row, its key the primary key, each field a text that is neither indexed nor in the
column store: no operation searches by it. `insert` of a key that is there is refused, `put` replaces
the row by ON CONFLICT DO UPDATE, `update` changes the columns that it names, and nothing where there is
no such row.

A `get` is a look-up by primary key, which sees what was acknowledged. A `scan` is a query in the order
of keys as text, over all shards, which sees the last refresh: see `perf.systems.cratedb.client`.
"""

from collections.abc import Mapping, Sequence

from perf.model.records import PutGet, Stored, Values, Ycsb
from perf.systems.contract import Target
from perf.systems.cratedb.client import (
    SCHEMA,
    CrateSession,
    Row,
    SqlClient,
    opaque,
    table_options,
)

_TABLE = f"{SCHEMA}.records"
_PAGE_ROWS = 10_000
_FIND_FIELDS = (
    "SELECT column_name FROM information_schema.columns "
    "WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position"
)


class CrateKeyValueSession(CrateSession):
    """A client of the workloads put/get and YCSB."""

    def __init__(self, client: SqlClient, target: Target) -> None:
        """Wrap a connected client."""
        super().__init__(client, target)
        self._known_columns = ""

    def create_schema(self, records: PutGet | Ycsb) -> None:
        """Create the table, a column per field; do nothing if it exists."""
        count = records.field_count if isinstance(records, Ycsb) else 1
        fields = ", ".join(opaque(f"field{number}") for number in range(count))
        self._client.ask(
            f"CREATE TABLE IF NOT EXISTS {_TABLE} (id TEXT PRIMARY KEY, {fields}) "
            f"{table_options(self._target)}",
            is_slow=True,
        )

    def insert(self, key: str, values: Values) -> None:
        """Insert a row; one under the same key is error 4091."""
        self._client.ask(_insert(len(values)), _to_row(key, values))

    def put(self, key: str, values: Values) -> None:
        """Insert a row, or replace all fields of the one that is there."""
        fields = ", ".join(f"field{number} = excluded.field{number}" for number in range(len(values)))
        statement = f"{_insert(len(values))} ON CONFLICT (id) DO UPDATE SET {fields}"
        self._client.ask(statement, _to_row(key, values))

    def update(self, key: str, changes: Mapping[int, bytes]) -> None:
        """Change some columns of a row."""
        fields = ", ".join(f"field{number} = ?" for number in changes)
        arguments = [*(value.decode("ascii") for value in changes.values()), key]
        self._client.ask(f"UPDATE {_TABLE} SET {fields} WHERE id = ?", arguments)  # noqa: S608  numbers

    def get(self, key: str) -> Values | None:
        """Return the values of a record by its primary key; None if there is none."""
        rows = self._client.ask(f"SELECT {self._columns()} FROM {_TABLE} WHERE id = ?", (key,))  # noqa: S608  names of columns
        return _to_record(rows[0])[1] if rows else None

    def scan(self, first_key: str, count: int) -> Sequence[tuple[str, Values]]:
        """Return records in the order of their keys as text, as of the last refresh."""
        rows = self._client.ask(
            f"SELECT {self._columns()} FROM {_TABLE} WHERE id >= ? ORDER BY id LIMIT ?",  # noqa: S608  names of columns
            (first_key, count),
        )
        return tuple(map(_to_record, rows))

    def finish_load(self) -> None:
        """Refresh the table, so that all that was written is visible to scans."""
        self._client.ask(f"REFRESH TABLE {_TABLE}", is_slow=True)

    def stored(self) -> Stored:
        """Refresh the table and read every row back, page by page."""
        self.finish_load()
        page_of = f"SELECT {self._columns()} FROM {_TABLE} WHERE id > ? ORDER BY id LIMIT ?"  # noqa: S608  names of columns
        rows = size = 0
        after = ""
        while page := self._client.ask(page_of, (after, _PAGE_ROWS), is_slow=True):
            rows += len(page)
            size += sum(len(value) for row in page for value in _to_record(row)[1])
            after = page[-1][0]
        return Stored(rows=rows, payload_bytes=size)

    def _columns(self) -> str:
        # Asked once: a client need not be the one that created the table.
        if not self._known_columns:
            found = self._client.ask(_FIND_FIELDS, tuple(_TABLE.split(".")))
            self._known_columns = ", ".join(row[0] for row in found)
        return self._known_columns or "id"


def _insert(count: int) -> str:
    fields = ", ".join(f"field{number}" for number in range(count))
    return f"INSERT INTO {_TABLE} (id, {fields}) VALUES ({', '.join('?' * (count + 1))})"  # noqa: S608  numbers


def _to_row(key: str, values: Values) -> Row:
    return [key, *(value.decode("ascii") for value in values)]


def _to_record(row: Row) -> tuple[str, Values]:
    # What is no text, and what was never written, is for whoever verifies a wrong field, and no error
    # of the operation.
    return str(row[0]), tuple(text.encode() if isinstance(text, str) else b"" for text in row[1:])
