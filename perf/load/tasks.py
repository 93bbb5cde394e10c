"""What one operation is: made ready beforehand, sent, and its answer judged, in three steps.

Only the step in the middle is timed; making the data and checking the answer is the client's own
work and must not count as the system's.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeAlias, TypeVar

from perf.load.spec import LoadSpec
from perf.records import Operation
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

Prepared = TypeVar("Prepared")
Reply = TypeVar("Reply")

Soon: TypeAlias = Callable[[Prepared, Callable[[Reply | None, Exception | None], None]], None]
"""Sends without waiting: takes what was prepared, and what to call with the answer or the error."""

# Expected answers that are kept: enough for the devices of a usual workload, and some tens of MB.
_KEPT_ANSWERS = 4096


class Task(Protocol[Prepared, Reply]):
    """One kind of operation, used by many threads at once."""

    @property
    def rows(self) -> int:
        """How many rows a completed operation writes or reads."""
        ...

    def prepare(self, number: int) -> Prepared:
        """Make operation `number` ready; a pure function of the seed and the number."""
        ...

    def send(self, prepared: Prepared) -> Reply:
        """Send it and return the answer; raise what the driver raises."""
        ...

    def soon(self) -> Soon[Prepared, Reply] | None:
        """Give the call that sends it without waiting, if the driver has one."""
        ...

    def judge(self, prepared: Prepared, reply: Reply) -> Answer:
        """Say what the answer is worth."""
        ...

    def describe(self, prepared: Prepared) -> str:
        """Name the operation in a message."""
        ...


class WriteTask:
    """Write one batch of readings; an acknowledged write is complete."""

    def __init__(
        self, spec: LoadSpec, session: SensorSession, *, first_row: int, batch_rows: int
    ) -> None:
        """Let operation number n write batch number n from row `first_row` on."""
        self.rows = batch_rows
        self._spec = spec
        self._first_row = first_row
        self._session = session
        self.prepare(0)  # makes the padding pool, so that no measured operation has to

    def prepare(self, number: int) -> tuple[Reading, ...]:
        """Compute the rows."""
        return batch(self._spec.records, self._spec.seed, self._first_row, self.rows, number)

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

    def __init__(self, spec: LoadSpec, session: SensorSession) -> None:
        """Verify against the rows that the spec says are stored."""
        self._spec = spec
        self._device_ids = device_ids(spec.records)
        self._session = session
        self._count = spec.records.latest_count
        self.rows = min(self._count, spec.readable_rows // spec.records.devices)

        @lru_cache(maxsize=_KEPT_ANSWERS)
        def expect(device_index: int) -> tuple[Reading, ...]:
            return expected_latest(
                spec.records, spec.seed, spec.readable_rows, device_index, self._count
            )

        self._expect = expect

    def prepare(self, number: int) -> int:
        """Choose the device, by index."""
        return choose_device(self._spec.records, self._spec.seed, number)

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
            self._spec.records,
            self._spec.seed,
            self._spec.readable_rows,
            prepared,
            count=self._count,
            answer=reply,
        )

    def describe(self, prepared: int) -> str:
        """Name the device."""
        return f"newest readings of {self._device_ids[prepared]}"


def make_task(spec: LoadSpec, session: SensorSession) -> Task[Any, Any]:
    """Give the task of the stages."""
    match spec.operation:
        case Operation.WRITE:
            return WriteTask(spec, session, first_row=spec.first_row, batch_rows=spec.batch_rows)
        case Operation.READ_LATEST:
            return ReadLatestTask(spec, session)
