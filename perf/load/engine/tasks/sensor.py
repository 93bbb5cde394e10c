"""The operations of the sensor workload: write a batch of readings, read the newest of a device.

Offered together, a read must find the rows stored beforehand and those that this engine's own writes
were acknowledged for, and may find others that were on their way. What an acknowledgement promises a
reader depends on the consistency: at quorum, or where there is one copy, that the row is there. At one,
a reader may ask a copy that has not got it yet; and at all, MongoDB may acknowledge a row a moment
before a reader of what the majority has sees it. There, rows of this run that come are checked, and
none must.
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from threading import Lock
from typing import Any

from perf.load.engine.tasks.task import Task
from perf.load.spec import LoadSpec
from perf.model.errors import UsageError
from perf.model.records import Answer, Operation, OperationName, Sensor
from perf.systems.sessions import AnswersLater, SensorSession
from perf.workloads.sensor import (
    SensorReading,
    batch,
    check_latest,
    choose_device,
    device_ids,
    expected_latest,
    place_of,
    reading,
)

# Expected answers that are kept: enough for the devices of a usual workload, and some tens of MB.
_KEPT_ANSWERS = 4096


def make_sensor_tasks(
    spec: LoadSpec, records: Sensor, session: SensorSession
) -> Mapping[OperationName, Task[Any, Any]]:
    """Return the task of each operation of the mix.

    Raises:
        UsageError: the sensor workload has no such operation.

    """
    target = spec.target
    is_promised = target.consistency == "quorum" or target.replication_factor == 1
    is_mixed = {Operation.WRITE, Operation.READ_LATEST} <= spec.mix.keys()
    acknowledged = Acknowledged(records) if is_mixed and is_promised else None

    def make(operation: OperationName) -> Task[Any, Any]:
        if operation is Operation.WRITE:
            note = acknowledged.note if acknowledged else None
            return write_task(spec, records, session, note=note)
        if operation is not Operation.READ_LATEST:
            raise UsageError(f"records of kind {records.kind} know no operation {operation}")
        return _read_task(spec, records, session, is_mixed=is_mixed, acknowledged=acknowledged)

    return {operation: make(operation) for operation in spec.mix}


class Acknowledged:
    """The newest readings of each device that were acknowledged, by their sequence numbers.

    As many for each device as a read asks for: 80 bytes for the usual ten, 80 MB for a million devices.
    """

    def __init__(self, records: Sensor) -> None:
        """Begin with none."""
        self._count = records.latest_count
        # One more than each sequence number; 0 stands for none.
        self._newest = array("q", bytes(8 * records.devices * self._count))
        self._lock = Lock()

    def note(self, readings: Sequence[SensorReading]) -> None:
        """Note readings of one device."""
        for one in readings[-self._count :]:
            device_index, sequence = place_of(one)
            begin = device_index * self._count
            with self._lock:
                kept = self._newest[begin : begin + self._count]
                oldest = min(kept)
                if sequence >= oldest:
                    self._newest[begin + kept.index(oldest)] = sequence + 1

    def of(self, device_index: int) -> tuple[int, ...]:
        """Return the sequence numbers of a device's newest readings, in no order."""
        begin = device_index * self._count
        return tuple(one - 1 for one in self._newest[begin : begin + self._count] if one)


def write_task(
    spec: LoadSpec,
    records: Sensor,
    session: SensorSession,
    *,
    preloads: bool = False,
    note: Callable[[Sequence[SensorReading]], None] | None = None,
) -> Task[tuple[SensorReading, ...], None]:
    """Return what writes batch number n; `note` is called with what was acknowledged.

    Batches are those of the spec, or single rows from the very first on where it `preloads`.
    """
    first_row, batch_rows = (0, 1) if preloads else (spec.first_row, spec.batch_rows)

    def prepare(number: int) -> tuple[SensorReading, ...]:
        return batch(records, spec.seed, first_row, batch_rows, number)

    def judge(prepared: tuple[SensorReading, ...], _: None) -> Answer:
        if note is not None:
            note(prepared)
        return Answer.COMPLETED

    def describe(prepared: tuple[SensorReading, ...]) -> str:
        first = f"write of {prepared[0].device_id} at {prepared[0].ts_ms}"
        return first if len(prepared) == 1 else f"{first} and {len(prepared) - 1} after it"

    prepare(0)  # makes the padding pool, so that no measured operation has to
    return Task(
        rows=batch_rows,
        prepare=prepare,
        send=session.write,
        soon=session.write_soon if isinstance(session, AnswersLater) else None,
        judge=judge,
        describe=describe,
    )


@dataclass(frozen=True, slots=True)
class Read:
    """A device, by index, and what must come of this run's rows; None where none are being written."""

    device_index: int
    acknowledged: tuple[int, ...] | None


def _read_task(
    spec: LoadSpec,
    records: Sensor,
    session: SensorSession,
    *,
    is_mixed: bool,
    acknowledged: Acknowledged | None,
) -> Task[Read, Sequence[SensorReading]]:
    """Return what reads the newest readings of a device and compares each with what must be there.

    Where rows are being written meanwhile, what must come is known when the read is made ready;
    without `acknowledged`, no row of this run must be there.
    """
    count, ids = records.latest_count, device_ids(records)
    later = session if isinstance(session, AnswersLater) else None

    @lru_cache(maxsize=_KEPT_ANSWERS)
    def expect(device_index: int) -> tuple[SensorReading, ...]:
        return expected_latest(records, spec.seed, spec.readable_rows, device_index, count)

    genuine = lru_cache(maxsize=_KEPT_ANSWERS * count)(partial(reading, records, spec.seed))

    def prepare(number: int) -> Read:
        device_index = choose_device(records, spec.seed, number)
        if not is_mixed:
            return Read(device_index, None)
        return Read(device_index, acknowledged.of(device_index) if acknowledged else ())

    def judge(prepared: Read, reply: Sequence[SensorReading]) -> Answer:
        if not prepared.acknowledged and tuple(reply) == expect(prepared.device_index):
            return Answer.COMPLETED
        return check_latest(
            records,
            spec.seed,
            spec.readable_rows,
            prepared.device_index,
            count=count,
            answer=reply,
            acknowledged=prepared.acknowledged,
            genuine=genuine,
        )

    return Task(
        rows=min(count, spec.readable_rows // records.devices),
        prepare=prepare,
        send=lambda read: session.read_latest(ids[read.device_index], count),
        soon=(lambda read, done: later.read_latest_soon(ids[read.device_index], count, done))
        if later
        else None,
        judge=judge,
        describe=lambda read: f"newest readings of {ids[read.device_index]}",
    )
