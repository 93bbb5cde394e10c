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
from functools import lru_cache, partial
from threading import Lock
from typing import Any

from perf.load.engine.tasks.task import Soon, Task
from perf.load.spec import LoadSpec
from perf.model.errors import UsageError
from perf.model.records import Answer, Operation, Sensor
from perf.systems.sessions import AnswersLater, OnRead, SensorSession
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
) -> Mapping[Operation, Task[Any, Any]]:
    """Give the task of each operation of the mix.

    Raises:
        UsageError: the sensor workload has no such operation.

    """
    target = spec.target
    is_promised = target.consistency == "quorum" or target.replication_factor == 1
    is_mixed = {Operation.WRITE, Operation.READ_LATEST} <= spec.mix.keys()
    acknowledged = Acknowledged(records) if is_mixed and is_promised else None

    def make(operation: Operation) -> Task[Any, Any]:
        if operation is Operation.WRITE:
            return WriteTask(
                spec,
                records,
                session,
                first_row=spec.first_row,
                batch_rows=spec.batch_rows,
                note=acknowledged.note if acknowledged else None,
            )
        if operation is not Operation.READ_LATEST:
            raise UsageError(f"records of kind {records.kind} know no operation {operation.value}")
        read = ReadLatestTask(spec, records, session)
        return ReadAmongWritesTask(read, acknowledged) if is_mixed else read

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
        """Give the sequence numbers of a device's newest readings, in no order."""
        begin = device_index * self._count
        return tuple(one - 1 for one in self._newest[begin : begin + self._count] if one)


class WriteTask:
    """Write one batch of readings; an acknowledged write is complete."""

    def __init__(
        self,
        spec: LoadSpec,
        records: Sensor,
        session: SensorSession,
        *,
        first_row: int,
        batch_rows: int,
        note: Callable[[Sequence[SensorReading]], None] | None = None,
    ) -> None:
        """Let operation number n write batch number n from row `first_row` on.

        `note` is called with what was acknowledged.
        """
        self._note = note
        self.rows = batch_rows
        self._records, self._seed = records, spec.seed
        self._first_row = first_row
        self._session = session
        self.prepare(0)  # makes the padding pool, so that no measured operation has to

    def prepare(self, number: int) -> tuple[SensorReading, ...]:
        """Compute the rows."""
        return batch(self._records, self._seed, self._first_row, self.rows, number)

    def send(self, prepared: tuple[SensorReading, ...]) -> None:
        """Write them."""
        self._session.write(prepared)

    def soon(self) -> Soon[tuple[SensorReading, ...], None] | None:
        """Give the driver's own call."""
        return self._session.write_soon if isinstance(self._session, AnswersLater) else None

    def judge(self, prepared: tuple[SensorReading, ...], reply: None) -> Answer:
        """Trust the acknowledgement; what is stored is verified by counting and by reading."""
        if self._note is not None:
            self._note(prepared)
        return Answer.COMPLETED

    def describe(self, prepared: tuple[SensorReading, ...]) -> str:
        """Name the rows."""
        first = f"write of {prepared[0].device_id} at {prepared[0].ts_ms}"
        return first if len(prepared) == 1 else f"{first} and {len(prepared) - 1} after it"


class ReadLatestTask:
    """Read the newest readings of a device and compare each with what must be there."""

    def __init__(self, spec: LoadSpec, records: Sensor, session: SensorSession) -> None:
        """Verify against the rows that the spec says are stored."""
        self._spec, self._records = spec, records
        self._device_ids = device_ids(records)
        self._session = session
        self._count = records.latest_count
        self.rows = min(self._count, spec.readable_rows // records.devices)

        @lru_cache(maxsize=_KEPT_ANSWERS)
        def expect(device_index: int) -> tuple[SensorReading, ...]:
            return expected_latest(records, spec.seed, spec.readable_rows, device_index, self._count)

        self._expect = expect
        self._genuine = lru_cache(maxsize=_KEPT_ANSWERS * self._count)(
            partial(reading, records, spec.seed)
        )

    def prepare(self, number: int) -> int:
        """Choose the device, by index."""
        return choose_device(self._records, self._spec.seed, number)

    def send(self, prepared: int) -> Sequence[SensorReading]:
        """Read its newest readings."""
        return self._session.read_latest(self._device_ids[prepared], self._count)

    def soon(self) -> Soon[int, Sequence[SensorReading]] | None:
        """Give a call that asks for the device of an index."""
        session, ids, count = self._session, self._device_ids, self._count
        if not isinstance(session, AnswersLater):
            return None

        def read_soon(prepared: int, done: OnRead) -> None:
            session.read_latest_soon(ids[prepared], count, done)

        return read_soon

    def judge(self, prepared: int, reply: Sequence[SensorReading]) -> Answer:
        """Compare every row."""
        return self.judge_among(prepared, reply, None)

    def judge_among(
        self, prepared: int, reply: Sequence[SensorReading], acknowledged: tuple[int, ...] | None
    ) -> Answer:
        """Compare every row, where newer ones may be on their way if `acknowledged` is not None."""
        if not acknowledged and tuple(reply) == self._expect(prepared):
            return Answer.COMPLETED
        return check_latest(
            self._records,
            self._spec.seed,
            self._spec.readable_rows,
            prepared,
            count=self._count,
            answer=reply,
            acknowledged=acknowledged,
            genuine=self._genuine,
        )

    def describe(self, prepared: int) -> str:
        """Name the device."""
        return f"newest readings of {self._device_ids[prepared]}"


class ReadAmongWritesTask:
    """The same while rows are being written: what must come is known when the read is made ready."""

    def __init__(self, read: ReadLatestTask, acknowledged: Acknowledged | None) -> None:
        """Do what `read` does; without `acknowledged`, no row of this run must be there."""
        self.rows = read.rows
        self._read, self._acknowledged = read, acknowledged

    def prepare(self, number: int) -> tuple[int, tuple[int, ...]]:
        """Choose the device, by index, and look up what is acknowledged of it by now."""
        device_index = self._read.prepare(number)
        return device_index, self._acknowledged.of(device_index) if self._acknowledged else ()

    def send(self, prepared: tuple[int, tuple[int, ...]]) -> Sequence[SensorReading]:
        """Read its newest readings."""
        return self._read.send(prepared[0])

    def soon(self) -> Soon[tuple[int, tuple[int, ...]], Sequence[SensorReading]] | None:
        """Give a call that asks for the device of an index."""
        inner = self._read.soon()
        if inner is None:
            return None

        def read_soon(prepared: tuple[int, tuple[int, ...]], done: OnRead) -> None:
            inner(prepared[0], done)

        return read_soon

    def judge(self, prepared: tuple[int, tuple[int, ...]], reply: Sequence[SensorReading]) -> Answer:
        """Compare every row, whenever it was written."""
        return self._read.judge_among(prepared[0], reply, prepared[1])

    def describe(self, prepared: tuple[int, tuple[int, ...]]) -> str:
        """Name the device."""
        return self._read.describe(prepared[0])
