"""CrateDB's session of the sensor workload.

A reading is a row of one table, `PRIMARY KEY (device_id, ts)`, clustered by device, so that a device's
readings are in one shard. CrateDB has no column of bytes: the metadata are kept as text in Base64,
neither indexed nor in the column store. The same reading twice is refused, where Cassandra would
overwrite it.

The latest readings are no look-up by primary key but a query, so they are those of the last refresh,
one second ago by default: see `perf.systems.cratedb.client`.
"""

from base64 import b64decode, b64encode
from collections.abc import Sequence

from perf.model.records import Sensor, Stored
from perf.systems.cratedb.client import (
    SCHEMA,
    CrateSession,
    Row,
    opaque,
    table_options,
)
from perf.workloads.sensor import VALUES, SensorReading, payload_bytes

_TABLE = f"{SCHEMA}.sensor_readings"
_COLUMNS = ", ".join(("device_id", "ts", *VALUES, "metadata"))
_INSERT = f"INSERT INTO {_TABLE} ({_COLUMNS}) VALUES ({', '.join('?' * (len(VALUES) + 3))})"  # noqa: S608  constants
_LATEST = f"SELECT {_COLUMNS} FROM {_TABLE} WHERE device_id = ? ORDER BY ts DESC LIMIT ?"  # noqa: S608  constants
_PAGE_ROWS = 10_000
_PAGE = (
    f"SELECT {_COLUMNS} FROM {_TABLE} WHERE device_id > ? OR (device_id = ? AND ts > ?) "  # noqa: S608  constants
    "ORDER BY device_id, ts LIMIT ?"
)


class CrateSensorSession(CrateSession):
    """A client of the sensor workload."""

    def create_schema(self, records: Sensor) -> None:
        """Create the table; do nothing if it exists."""
        values = ", ".join(f"{value} DOUBLE PRECISION" for value in VALUES)
        self._client.ask(
            f"CREATE TABLE IF NOT EXISTS {_TABLE} (device_id TEXT, ts TIMESTAMP WITH TIME ZONE, "
            f"{values}, {opaque('metadata')}, PRIMARY KEY (device_id, ts)) "
            f"{table_options(self._target, clustered_by='device_id')}",
            is_slow=True,
        )

    def write(self, readings: Sequence[SensorReading]) -> None:
        """Insert readings of one device: one alone, several as one bulk request."""
        rows = [_to_row(reading) for reading in readings]
        if len(rows) == 1:
            self._client.ask(_INSERT, rows[0])
        else:
            self._client.ask_each_row(_INSERT, rows)

    def read_latest(self, device_id: str, count: int) -> Sequence[SensorReading]:
        """Return the newest readings of a device as of the last refresh, newest first."""
        return tuple(map(_to_reading, self._client.ask(_LATEST, (device_id, count))))

    def finish_load(self) -> None:
        """Refresh the table, so that all that was written is visible to queries."""
        self._client.ask(f"REFRESH TABLE {_TABLE}", is_slow=True)

    def stored(self) -> Stored:
        """Refresh the table and read every row back, page by page."""
        self.finish_load()
        rows = size = 0
        after: Row = ["", 0]
        while page := self._client.ask(_PAGE, (after[0], *after[:2], _PAGE_ROWS), is_slow=True):
            rows += len(page)
            size += sum(payload_bytes(_to_reading(row)) for row in page)
            after = page[-1]
        return Stored(rows=rows, payload_bytes=size)


def _to_row(reading: SensorReading) -> Row:
    metadata = b64encode(reading.metadata).decode("ascii")
    return [reading.device_id, reading.ts_ms, *reading.values, metadata]


def _to_reading(row: Row) -> SensorReading:
    a, b, c, d, e, f, g, h = row[2:10]
    return SensorReading(row[0], row[1], (a, b, c, d, e, f, g, h), _to_bytes(row[10]))


def _to_bytes(text: str | None) -> bytes:
    # What is lost or no Base64 is for whoever verifies wrong data, and no error of the operation.
    try:
        return b64decode(text or "")
    except ValueError:
        return b""
