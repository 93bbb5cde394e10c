"""What one operation is: made ready beforehand, sent, and its answer judged, in three steps.

Only the step in the middle is timed; making the data and checking the answer is the client's own
work and must not count as the system's.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from perf.design import Operation
from perf.load.spec import LoadSpec
from perf.systems.contract import SensorSession
from perf.workloads.sensor import Answer, Reading, check_latest, choose_device, device_ids, reading

Prepared = TypeVar("Prepared")
Reply = TypeVar("Reply")


class Task(Protocol[Prepared, Reply]):
    """One kind of operation, used by many threads at once."""

    def prepare(self, number: int) -> Prepared:
        """Make operation `number` ready; a pure function of the seed and the number."""
        ...

    def send(self, prepared: Prepared) -> Reply:
        """Send it and return the answer; raise what the driver raises."""
        ...

    def judge(self, prepared: Prepared, reply: Reply) -> Answer:
        """Say what the answer is worth."""
        ...

    def describe(self, prepared: Prepared) -> str:
        """Name the operation in a message."""
        ...


class WriteTask:
    """Write one reading; an acknowledged write is complete."""

    def __init__(self, spec: LoadSpec, session: SensorSession, first_row: int) -> None:
        """Let operation number n write row first_row + n."""
        self._spec = spec
        self._first_row = first_row
        self._session = session
        self.prepare(0)  # makes the padding pool, so that no measured operation has to

    def prepare(self, number: int) -> Reading:
        """Compute the row."""
        return reading(self._spec.records, self._spec.seed, self._first_row + number)

    def send(self, prepared: Reading) -> None:
        """Write it."""
        self._session.write(prepared)

    def judge(self, prepared: Reading, reply: None) -> Answer:
        """Trust the acknowledgement; what is stored is verified by counting and by reading."""
        return Answer.COMPLETED

    def describe(self, prepared: Reading) -> str:
        """Name the row."""
        return f"write of {prepared.device_id} at {prepared.ts_ms}"


class ReadLatestTask:
    """Read the newest readings of a device and compare each with what must be there."""

    def __init__(self, spec: LoadSpec, session: SensorSession) -> None:
        """Verify against the rows that the spec says are stored."""
        self._spec = spec
        self._device_ids = device_ids(spec.records)
        self._session = session

    def prepare(self, number: int) -> int:
        """Choose the device, by index."""
        return choose_device(self._spec.records, self._spec.seed, number)

    def send(self, prepared: int) -> Sequence[Reading]:
        """Read its newest readings."""
        count = self._spec.records.latest_count
        return self._session.read_latest(self._device_ids[prepared], count)

    def judge(self, prepared: int, reply: Sequence[Reading]) -> Answer:
        """Compare every row."""
        records = self._spec.records
        return check_latest(
            records,
            self._spec.seed,
            self._spec.readable_rows,
            prepared,
            count=records.latest_count,
            answer=reply,
        )

    def describe(self, prepared: int) -> str:
        """Name the device."""
        return f"newest readings of {self._device_ids[prepared]}"


def make_task(spec: LoadSpec, session: SensorSession) -> Task[Any, Any]:
    """Give the task of a timed load."""
    match spec.operation:
        case Operation.WRITE:
            return WriteTask(spec, session, spec.first_row)
        case Operation.READ_LATEST:
            return ReadLatestTask(spec, session)
