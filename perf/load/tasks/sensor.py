"""The operations of the sensor workload: write a batch of readings, read the newest of a device."""

from collections.abc import Sequence
from functools import lru_cache

from perf.load.spec import LoadSpec
from perf.load.tasks.task import Soon
from perf.records import Sensor
from perf.sessions import AnswersLater, OnRead, SensorSession
from perf.workloads.answer import Answer
from perf.workloads.sensor import (
    Reading,
    batch,
    check_latest,
    choose_device,
    device_ids,
    expected_latest,
)

# Expected answers that are kept: enough for the devices of a usual workload, and some tens of MB.
_KEPT_ANSWERS = 4096


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
    ) -> None:
        """Let operation number n write batch number n from row `first_row` on."""
        self.rows = batch_rows
        self._records, self._seed = records, spec.seed
        self._first_row = first_row
        self._session = session
        self.prepare(0)  # makes the padding pool, so that no measured operation has to

    def prepare(self, number: int) -> tuple[Reading, ...]:
        """Compute the rows."""
        return batch(self._records, self._seed, self._first_row, self.rows, number)

    def send(self, prepared: tuple[Reading, ...]) -> None:
        """Write them."""
        self._session.write(prepared)

    def soon(self) -> Soon[tuple[Reading, ...], None] | None:
        """Give the driver's own call."""
        return self._session.write_soon if isinstance(self._session, AnswersLater) else None

    def judge(self, prepared: tuple[Reading, ...], reply: None) -> Answer:
        """Trust the acknowledgement; what is stored is verified by counting and by reading."""
        return Answer.COMPLETED

    def describe(self, prepared: tuple[Reading, ...]) -> str:
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
        def expect(device_index: int) -> tuple[Reading, ...]:
            return expected_latest(records, spec.seed, spec.readable_rows, device_index, self._count)

        self._expect = expect

    def prepare(self, number: int) -> int:
        """Choose the device, by index."""
        return choose_device(self._records, self._spec.seed, number)

    def send(self, prepared: int) -> Sequence[Reading]:
        """Read its newest readings."""
        return self._session.read_latest(self._device_ids[prepared], self._count)

    def soon(self) -> Soon[int, Sequence[Reading]] | None:
        """Give a call that asks for the device of an index."""
        session, ids, count = self._session, self._device_ids, self._count
        if not isinstance(session, AnswersLater):
            return None

        def read_soon(prepared: int, done: OnRead) -> None:
            session.read_latest_soon(ids[prepared], count, done)

        return read_soon

    def judge(self, prepared: int, reply: Sequence[Reading]) -> Answer:
        """Compare every row."""
        if tuple(reply) == self._expect(prepared):
            return Answer.COMPLETED
        return check_latest(
            self._records,
            self._spec.seed,
            self._spec.readable_rows,
            prepared,
            count=self._count,
            answer=reply,
        )

    def describe(self, prepared: int) -> str:
        """Name the device."""
        return f"newest readings of {self._device_ids[prepared]}"
