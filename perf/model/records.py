"""What a workload stores and asks for: the shape of its records, and its operations.

A kind of records is a data model of its own; each has a module in `perf.workloads` that computes its
records, and a session protocol in `perf.systems.contract` that a system may offer.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, TypeAlias

from annotated_types import Ge, Le
from pydantic import Field

from perf.model.scalars import STRICT, Name, RecordCount, RowBytes, Several, Share, Sources, Span
from perf.model.statements import Statements


class Operation(StrEnum):
    """What a client can ask of a system."""

    WRITE = "write"
    READ_LATEST = "read-latest"
    PUT = "put"
    GET = "get"
    PUT_GET = "put-get"
    READ = "read"
    UPDATE = "update"
    INSERT = "insert"
    SCAN = "scan"
    READ_MODIFY_WRITE = "read-modify-write"
    LOAD = "load"
    SINGLE_GROUPBY_1_1_1 = "single-groupby-1-1-1"
    SINGLE_GROUPBY_1_1_12 = "single-groupby-1-1-12"
    SINGLE_GROUPBY_5_1_12 = "single-groupby-5-1-12"
    SINGLE_GROUPBY_5_8_1 = "single-groupby-5-8-1"
    DOUBLE_GROUPBY_1 = "double-groupby-1"
    DOUBLE_GROUPBY_5 = "double-groupby-5"
    DOUBLE_GROUPBY_ALL = "double-groupby-all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensor:
    """The records of the sensor workload.

    `payload_bytes` is the size of one reading with its padding; `latest_count` the number of newest
    readings that a read asks for. Writes take the devices in turn, or, shuffled, in an order of its own
    in each turn; either way each device is written once before any is a second time.
    """

    __pydantic_config__ = STRICT
    kind: Literal["sensor"]
    """Readings of devices."""
    devices: Sources
    """Number of devices."""
    payload_bytes: Annotated[RowBytes, Ge(128)]
    """Size of a reading."""
    latest_count: Several = 10
    """Newest readings that a read asks for."""
    order: Literal["shuffled"] | None = None
    """Order of the devices in writes; absent: always the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PutGet:
    """The records of the put/get workload: one value under each of `keys` keys of `key_bytes` bytes.

    A value has `least_value_bytes` bytes and up to `value_bytes_range` − 1 more, uniformly, drawn from
    a value seed; the phases say which.
    """

    __pydantic_config__ = STRICT
    field_count: ClassVar[int] = 1
    kind: Literal["put-get"]
    """One value per key."""
    keys: RecordCount
    """Number of keys."""
    key_bytes: Annotated[int, Ge(16), Le(1000)] = 32
    """Size of a key."""
    least_value_bytes: RowBytes = 100
    """Size of the smallest value."""
    value_bytes_range: RowBytes = 1800
    """Sizes of values, from the smallest on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ycsb:
    """The records of a YCSB core workload; names, meanings and defaults are those of its properties.

    `record_count` records are there before the first operation. `insert_order` says whether key number
    n is n itself or its hash. `request_distribution` chooses the record of each operation; zipfian is
    the scrambled one, as in YCSB. A scan asks for 1 to `max_scan_length` records, uniformly.
    """

    __pydantic_config__ = STRICT
    kind: Literal["ycsb"]
    """Records of YCSB."""
    record_count: RecordCount
    """Records before the first operation."""
    request_distribution: Literal["zipfian", "uniform", "hotspot", "latest"]
    """How the record of an operation is chosen."""
    field_count: Several = 10
    """Fields of a record."""
    field_length: Annotated[RowBytes, Ge(8)] = 100
    """Bytes of a field."""
    insert_order: Literal["hashed", "ordered"] = "hashed"
    """Whether keys are hashed."""
    zero_padding: Annotated[int, Ge(1), Le(1000)] = 1
    """Digits of a key's number."""
    read_all_fields: Literal[True] = True
    """A session reads whole records."""
    write_all_fields: bool = False
    """Whether an update writes all fields."""
    hotspot_data_fraction: Share = 0.2
    """Share of the records that are hot."""
    hotspot_operation_fraction: Share = 0.8
    """Share of the operations on hot records."""
    max_scan_length: Several = 1000
    """Most records of a scan."""
    operation_count: RecordCount | None = None
    """How many operations a run is expected to have: zipfian leaves room for twice their inserts.
    Absent: as many as records, as in the workload files that come with YCSB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Devops:
    """The records of the devops workload, after TSBS: `hosts` hosts report nine measurements each.

    Every `interval_s` seconds from `begin` (Unix time, seconds) on, for `span_s` seconds. `queries` is
    how many queries of a type are made from the seed; they are asked in turn.
    """

    __pydantic_config__ = STRICT
    kind: Literal["devops"]
    """Measurements of hosts, after TSBS."""
    hosts: Sources
    """Number of hosts."""
    span_s: Span
    """Length of the recorded time."""
    interval_s: Span = 10
    """Seconds between two measurements."""
    begin_s: Annotated[int, Ge(0), Le(10_000_000_000)] = 1_451_606_400
    """2016-01-01T00:00:00Z, as in the examples of TSBS."""
    queries: RecordCount = 1000
    """Queries of each type that are made."""


Records: TypeAlias = Annotated[
    Sensor | PutGet | Ycsb | Devops | Statements, Field(discriminator="kind")
]
OperationName: TypeAlias = Annotated[Operation | Name, Field(union_mode="left_to_right")]
"""An operation, by its name: one of those above, or a statement of the workload's own."""


def operations_known(records: Records) -> Collection[OperationName]:
    """Return the operations of records."""
    return records.statements if isinstance(records, Statements) else ASKED_OF[records.kind]


ASKED_OF: Mapping[str, tuple[Operation, ...]] = {
    "sensor": (Operation.WRITE, Operation.READ_LATEST),
    "put-get": (Operation.PUT, Operation.GET, Operation.PUT_GET),
    "ycsb": (
        Operation.READ,
        Operation.UPDATE,
        Operation.INSERT,
        Operation.SCAN,
        Operation.READ_MODIFY_WRITE,
    ),
    "devops": (
        Operation.LOAD,
        *(one for one in Operation if "groupby" in one.value),
    ),
}
"""The operations of each kind of records; those of statements are their own."""

WRITES = (Operation.WRITE, Operation.PUT, Operation.INSERT, Operation.LOAD)
"""Operations that store whole records, and nothing else."""

ALL = "all"
"""The name under which what all operations of a mix did together is kept."""


def is_part(operation: str) -> bool:
    """Say whether a name is that of a part of an operation, `<operation>.<part>`, which has times."""
    return "." in operation


Values: TypeAlias = Sequence[bytes]
"""The values of all fields of a record, in the order of its fields; ASCII."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What is in the database: records, and the sum of their sizes as the workload counts them."""

    rows: int
    payload_bytes: int


class Answer(StrEnum):
    """The outcome of an operation; each answered operation counts as exactly one."""

    COMPLETED = "completed"
    NOT_FOUND = "not_found"
    WRONG_DATA = "wrong_data"
