"""Readings out of the driver's rows, with timestamps in exact milliseconds."""

from datetime import datetime, timedelta
from typing import Any

from perf.workloads.sensor import SensorReading

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  the driver's timestamps are naive and in UTC


def to_reading(row: tuple[Any, ...]) -> SensorReading:
    """Make a reading of a row that the driver decoded; a value that is missing stays None."""
    return SensorReading(row[0], to_ms(row[1]), row[2:-1], row[-1] or b"")


def to_ms(timestamp: datetime) -> int:
    """Return the driver's timestamp in milliseconds since the epoch, exactly.

    The driver computes it by floating point, so it may be a microsecond off the millisecond.
    """
    return ((timestamp - _EPOCH) // timedelta(microseconds=1) + 500) // 1000
