"""What the driver decodes becomes the readings that were written, and timestamps are exact."""

import struct
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from cassandra.cqltypes import BytesType, DateType, DoubleType, UTF8Type
from cassandra.protocol import ProtocolHandler
from hypothesis import given
from hypothesis import strategies as st

from perf.systems.cql.rows import to_ms, to_reading
from perf.workloads.sensor import SensorReading

PROTOCOL = 4
RESULT, ROWS, NO_METADATA = 0x08, 2, 4
TYPES = (UTF8Type, DateType, *[DoubleType] * 8, BytesType)
METADATA = [("knickpoint", "sensor_readings", f"c{place}", kind) for place, kind in enumerate(TYPES)]
READING = SensorReading(
    "d7", 1_700_000_000_123, (0.5, 1.5, -0.0, 3.5, 5e-324, 1e308, 6.5, 7.5), b"\x00\xff"
)

double = st.floats(allow_nan=False)
readings = st.builds(
    SensorReading,
    st.text(max_size=40),
    st.integers(min_value=-(10**12), max_value=4 * 10**12),
    st.tuples(*[double] * 8),
    st.binary(max_size=40),
)


def cells(reading: SensorReading) -> tuple[object, ...]:
    return (reading.device_id, reading.ts_ms, *reading.values, reading.metadata)


def answer(rows: Sequence[Sequence[object]]) -> bytes:
    """Return the body of a RESULT that holds these rows; None is a missing value."""
    body = struct.pack(">iiii", ROWS, NO_METADATA, len(TYPES), len(rows))
    for row in rows:
        for value, kind in zip(row, TYPES, strict=True):
            data = None if value is None else kind.serialize(value, PROTOCOL)
            body += struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data
    return body


def decode(rows: Sequence[Sequence[object]]) -> list[SensorReading]:
    """Return the readings of an answer that holds these rows."""
    message = ProtocolHandler.decode_message(PROTOCOL, {}, 1, 0, RESULT, answer(rows), None, METADATA)
    return list(map(to_reading, message.parsed_rows))


@given(st.lists(readings, max_size=5))
def test_readings_come_back_as_they_were_written(written: list[SensorReading]) -> None:
    assert decode([cells(reading) for reading in written]) == written


@pytest.mark.parametrize("missing", [2, 5, 9])
def test_a_missing_value_stays_missing_and_the_other_rows_are_read(missing: int) -> None:
    row = list(cells(READING))
    row[missing] = None
    first, hurt, second, last = decode([cells(READING), row, cells(READING), row])
    assert first == second == READING
    assert hurt == last != READING
    assert hurt.values[missing - 2] is None


def test_missing_padding_is_no_padding() -> None:
    (found,) = decode([(*cells(READING)[:-1], None)])
    assert found.metadata == b""


@given(st.integers(min_value=-(10**12), max_value=4 * 10**12))
def test_a_timestamp_survives_the_driver_exactly(ts_ms: int) -> None:
    assert to_ms(DateType.deserialize(DateType.serialize(ts_ms, PROTOCOL), PROTOCOL)) == ts_ms


@pytest.mark.parametrize("off_us", [-1, 0, 1])
def test_a_microsecond_off_is_rounded_to_the_millisecond(off_us: int) -> None:
    timestamp = datetime(2026, 3, 1, 2, 0, 0, 123_000) + timedelta(microseconds=off_us)  # noqa: DTZ001  as the driver gives it
    assert to_ms(timestamp) % 1000 == 123
