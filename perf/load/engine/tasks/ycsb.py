"""The operations of a YCSB core workload: read, update, insert, scan, read-modify-write.

After site.ycsb.workloads.CoreWorkload of YCSB core 0.17.0. What differs: an operation chooses among
records that its engine knows to be stored (those that were there, and its own acknowledged inserts), so
a record that is not found is a fault of the system. YCSB takes failed inserts for stored as well. Of
several engines each inserts records of its own, as several YCSB clients do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perf.load.engine.tasks.choices import Choices
from perf.load.engine.tasks.task import Parts, Soon, Task
from perf.load.spec import LoadSpec
from perf.model.errors import UsageError
from perf.model.records import Answer, Operation, Values, Ycsb
from perf.systems.sessions import AnswersKeysLater, KeyValueSession, OnGot, OnWritten, Scans
from perf.workloads.ycsb import Ends, check_scan, key_name, make_record


class StoreTask:
    """Store record number n, whatever is under its key: a preload's operations may be repeated."""

    rows = 1

    def __init__(self, spec: LoadSpec, records: Ycsb, session: KeyValueSession) -> None:
        """Store on a session."""
        self._records, self._seed, self._session = records, spec.seed, session

    def prepare(self, number: int) -> tuple[str, Values]:
        """Make the record."""
        key = key_name(self._records, number)
        return key, make_record(self._records, self._seed, key)

    def send(self, prepared: tuple[str, Values]) -> None:
        """Store it."""
        self._session.put(*prepared)

    def soon(self) -> Soon[tuple[str, Values], None] | None:
        """Give the driver's own call."""
        session = self._session
        if not isinstance(session, AnswersKeysLater):
            return None
        return lambda prepared, done: session.put_soon(*prepared, done)

    def judge(self, prepared: tuple[str, Values], reply: None) -> Answer:
        """Trust the acknowledgement; what is stored is verified by counting and by reading."""
        return Answer.COMPLETED

    def describe(self, prepared: tuple[str, Values]) -> str:
        """Name the record."""
        return f"put of {prepared[0]}"


class ReadTask:
    """Read a record and verify each of its fields."""

    rows = 1

    def __init__(self, choices: Choices, session: KeyValueSession) -> None:
        """Read on a session."""
        self._choices, self._session = choices, session
        self.prepare = choices.key
        self.judge = choices.judge

    def send(self, prepared: str) -> Values | None:
        """Read it."""
        return self._session.get(prepared)

    def soon(self) -> Soon[str, Values | None] | None:
        """Give the driver's own call."""
        return self._session.get_soon if isinstance(self._session, AnswersKeysLater) else None

    def describe(self, prepared: str) -> str:
        """Name the record."""
        return f"read of {prepared}"


@dataclass(frozen=True, slots=True)
class RecordUpdate:
    """Fields of a record, by number, and what they are to become."""

    key: str
    changes: Mapping[int, bytes]


class UpdateTask:
    """Change one field of a record, or all."""

    rows = 1

    def __init__(self, choices: Choices, session: KeyValueSession) -> None:
        """Update on a session."""
        self._choices, self._session = choices, session

    def prepare(self, number: int) -> RecordUpdate:
        """Choose the record and make what is written."""
        key = self._choices.key(number)
        return RecordUpdate(key, self._choices.changes(number, key))

    def send(self, prepared: RecordUpdate) -> None:
        """Write it."""
        self._session.update(prepared.key, prepared.changes)

    def soon(self) -> Soon[RecordUpdate, None] | None:
        """Give the driver's own call."""
        session = self._session
        if not isinstance(session, AnswersKeysLater):
            return None
        return lambda prepared, done: session.update_soon(prepared.key, prepared.changes, done)

    def judge(self, prepared: RecordUpdate, reply: None) -> Answer:
        """Trust the acknowledgement; what is stored is verified by reading."""
        return Answer.COMPLETED

    def describe(self, prepared: RecordUpdate) -> str:
        """Name the record."""
        return f"update of {prepared.key}"


@dataclass(frozen=True, slots=True)
class Insert:
    """A new record: which of its engine's inserts it is, its key and its fields."""

    turn: int
    key: str
    values: Values


class InsertTask:
    """Insert a new record; once that is acknowledged, others may choose it."""

    rows = 1

    def __init__(self, choices: Choices, session: KeyValueSession) -> None:
        """Insert on a session."""
        self._choices, self._session = choices, session

    def prepare(self, number: int) -> Insert:
        """Make this engine's next record, whatever the number of the operation is."""
        choices = self._choices
        turn = choices.known.next_turn()
        key = key_name(choices.records, choices.known.number_of_turn(turn))
        return Insert(turn, key, make_record(choices.records, choices.seed, key))

    def send(self, prepared: Insert) -> None:
        """Insert it."""
        self._session.insert(prepared.key, prepared.values)

    def soon(self) -> Soon[Insert, None] | None:
        """Give the driver's own call."""
        session = self._session
        if not isinstance(session, AnswersKeysLater):
            return None
        return lambda prepared, done: session.insert_soon(prepared.key, prepared.values, done)

    def judge(self, prepared: Insert, reply: None) -> Answer:
        """Trust the acknowledgement, and let the record be chosen from now on."""
        self._choices.known.acknowledge(prepared.turn)
        return Answer.COMPLETED

    def describe(self, prepared: Insert) -> str:
        """Name the record."""
        return f"insert of {prepared.key}"


@dataclass(frozen=True, slots=True)
class Scan:
    """Where a scan begins, how many records it asks for, and whether the first is one of the old."""

    first_key: str
    count: int
    begins_old: bool


class ScanTask:
    """Read some records from a key on, in the system's own order, and verify them.

    Whatever that order is, `Ends` finds scans that end too early, but not the first few of them.
    """

    def __init__(self, choices: Choices, session: KeyValueSession) -> None:
        """Scan on a session.

        Raises:
            UsageError: its system cannot scan.

        """
        if not isinstance(session, Scans):
            raise UsageError(f"{type(session).__name__} cannot scan; leave out what has scans (YCSB E)")
        self._choices, self._session = choices, session
        self._ends = Ends()
        # Their mean, as whole records; at the end of the keys they are fewer.
        self.rows = (1 + choices.records.max_scan_length) // 2

    def prepare(self, number: int) -> Scan:
        """Choose where to begin, and how many records to ask for."""
        choices = self._choices
        record = choices.record(number)
        first_key = key_name(choices.records, record)
        return Scan(first_key, choices.length(number), choices.known.was_there(record))

    def send(self, prepared: Scan) -> Sequence[tuple[str, Values]]:
        """Read them."""
        return self._session.scan(prepared.first_key, prepared.count)

    def soon(self) -> None:
        """Give nothing: scans are waited for."""
        return

    def judge(self, prepared: Scan, reply: Sequence[tuple[str, Values]]) -> Answer:
        """Verify the order, the keys and each field, and that it did not end too early."""
        records, seed, first_key = self._choices.records, self._choices.seed, prepared.first_key
        answer = check_scan(records, seed, first_key, prepared.count, reply)
        is_short = answer is Answer.COMPLETED and len(reply) < prepared.count
        if is_short and prepared.begins_old and not self._ends.can_be(first_key, len(reply)):
            return Answer.NOT_FOUND
        return answer

    def describe(self, prepared: Scan) -> str:
        """Name where it begins."""
        return f"scan of {prepared.count} from {prepared.first_key}"


class ReadModifyWriteTask:
    """Read a record, then change one field of it, or all: one operation, whose parts are timed as well.

    As in YCSB, what is written does not depend on what was read, and nothing is if nothing was found.
    """

    rows = 1

    def __init__(self, choices: Choices, session: KeyValueSession, parts: Parts) -> None:
        """Work on a session; note the parts `read` and `update`."""
        self._choices, self._session = choices, session
        self._read, self._update = (
            parts(Operation.READ_MODIFY_WRITE, name) for name in ("read", "update")
        )
        self.prepare = UpdateTask(choices, session).prepare

    def send(self, prepared: RecordUpdate) -> Values | None:
        """Do the one, then the other; give what was read."""
        begin_s = self._read.now()
        found = self._session.get(prepared.key)
        read_s = self._read.now()
        self._read.note(begin_s, read_s)
        if found is not None:
            self._session.update(prepared.key, prepared.changes)
            self._update.note(read_s, self._update.now())
        return found

    def soon(self) -> Soon[RecordUpdate, Values | None] | None:
        """Give a call that begins the update when the record is there."""
        session = self._session
        if not isinstance(session, AnswersKeysLater):
            return None

        def begin(prepared: RecordUpdate, done: OnGot) -> None:
            session.get_soon(prepared.key, self._go_on(session, prepared, done))

        return begin

    def _go_on(self, session: AnswersKeysLater, prepared: RecordUpdate, done: OnGot) -> OnGot:
        begin_s = self._read.now()

        def write(found: Values | None, error: Exception | None) -> None:
            if error is not None:
                done(None, error)
                return
            read_s = self._read.now()
            self._read.note(begin_s, read_s)
            if found is None:
                done(None, None)
            else:
                finish = self._finish(read_s, found, done)
                session.update_soon(prepared.key, prepared.changes, finish)

        return write

    def _finish(self, begin_s: float, found: Values, done: OnGot) -> OnWritten:
        def finish(_: None, error: Exception | None) -> None:
            if error is not None:
                done(None, error)
                return
            self._update.note(begin_s, self._update.now())
            done(found, None)

        return finish

    def judge(self, prepared: RecordUpdate, reply: Values | None) -> Answer:
        """Judge what was read."""
        return self._choices.judge(prepared.key, reply)

    def describe(self, prepared: RecordUpdate) -> str:
        """Name the record."""
        return f"read-modify-write of {prepared.key}"


def make_ycsb_tasks(
    spec: LoadSpec, records: Ycsb, session: KeyValueSession, parts: Parts
) -> Mapping[Operation, Task[Any, Any]]:
    """Give the task of each operation of the mix; all of them choose among the same records."""
    choices = Choices(spec, records)
    return {operation: _make_task(operation, choices, session, parts) for operation in spec.mix}


def _make_task(
    operation: Operation, choices: Choices, session: KeyValueSession, parts: Parts
) -> Task[Any, Any]:
    match operation:
        case Operation.READ:
            return ReadTask(choices, session)
        case Operation.UPDATE:
            return UpdateTask(choices, session)
        case Operation.INSERT:
            return InsertTask(choices, session)
        case Operation.SCAN:
            return ScanTask(choices, session)
        case Operation.READ_MODIFY_WRITE:
            return ReadModifyWriteTask(choices, session, parts)
        case _:
            raise UsageError(f"records of kind {choices.records.kind} know no {operation.value}")
