"""What is stored before anything is measured, and what a row of a workload weighs; pure."""

from collections.abc import Sequence
from typing import assert_never

from perf.model.design import CountedPhase, Workload
from perf.model.records import WRITES, Devops, OperationName, PutGet, Sensor, Stored, Ycsb
from perf.model.statements import Statements
from perf.workloads.devops.tables import TABLES, VALUES_PER_HOST, devops_rows

_VALUE_BYTES = 8


def preload_rows(workload: Workload) -> int:
    """Count the rows that are stored before the first phase."""
    match workload.records:
        case Sensor(devices=devices):
            return workload.preload_rows_per_device * devices
        case Ycsb(record_count=count) | Statements(rows=count):
            return count if workload.preload else 0
        case PutGet() | Devops():
            return 0
        case _:
            assert_never(workload.records)


def row_bytes(workload: Workload) -> float:
    """Return the payload of a row on average, in bytes; exactly for sensor and YCSB, 0 if not known."""
    match workload.records:
        case Sensor() as records:
            return records.payload_bytes
        case Ycsb() as records:
            return records.field_count * records.field_length
        case PutGet() as records:
            return records.least_value_bytes + (records.value_bytes_range - 1) / 2
        case Devops():
            return _VALUE_BYTES * VALUES_PER_HOST / len(TABLES)
        case Statements():
            return 0  # what its text stores is not known
        case _:
            assert_never(workload.records)


def devops_stored(records: Devops) -> Stored:
    """Return what must be stored once all rows of the devops workload are: 8 bytes for each value."""
    rows = devops_rows(records)
    values = rows // len(TABLES) * VALUES_PER_HOST
    return Stored(rows=rows, payload_bytes=_VALUE_BYTES * values)


def writes_only(operations: Sequence[OperationName]) -> bool:
    """Return whether these operations store whole rows, and do nothing else; of none, False."""
    return bool(operations) and all(operation in WRITES for operation in operations)


def value_seed(sequence: Sequence[CountedPhase], place: int) -> int:
    """Give the seed of the values that phase number `place` stores, or finds stored when it begins."""
    given = [one.value_seed for one in sequence[: place + 1] if one.value_seed is not None]
    return given[-1] if given else 0
