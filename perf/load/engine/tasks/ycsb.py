"""The operations of a YCSB core workload: read, update, insert, scan, read-modify-write.

After site.ycsb.workloads.CoreWorkload of YCSB core 0.17.0. What differs: an operation chooses among
records that its engine knows to be stored (those that were there, and its own acknowledged inserts), so
a record that is not found is a fault of the system. YCSB takes failed inserts for stored as well. Of
several engines each inserts records of its own, as several YCSB clients do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from perf.load.engine.tasks.choices import Choices
from perf.load.engine.tasks.task import Parts, Task
from perf.load.spec import LoadSpec
from perf.model.errors import UsageError
from perf.model.records import Answer, Operation, OperationName, Values, Ycsb
from perf.systems.sessions import AnswersKeysLater, KeyValueSession, OnGot, Scans
from perf.workloads.ycsb import Ends, check_scan, key_name, make_record


@dataclass(frozen=True, slots=True)
class RecordUpdate:
    """Fields of a record, by number, and what they are to become."""

    key: str
    changes: Mapping[int, bytes]


@dataclass(frozen=True, slots=True)
class Insert:
    """A new record: which of its engine's inserts it is, its key and its fields."""

    turn: int
    key: str
    values: Values


@dataclass(frozen=True, slots=True)
class Scan:
    """Where a scan begins, how many records it asks for, and whether the first is one of the old."""

    first_key: str
    count: int
    begins_old: bool


def store_task(
    spec: LoadSpec, records: Ycsb, session: KeyValueSession
) -> Task[tuple[str, Values], None]:
    """Return what stores record number n, whatever is under its key: a preload may repeat it."""

    def prepare(number: int) -> tuple[str, Values]:
        key = key_name(records, number)
        return key, make_record(records, spec.seed, key)

    return Task(
        prepare=prepare,
        send=lambda record: session.put(*record),
        soon=(lambda record, done: session.put_soon(*record, done))
        if isinstance(session, AnswersKeysLater)
        else None,
        describe=lambda record: f"put of {record[0]}",
    )


def make_ycsb_tasks(
    spec: LoadSpec, records: Ycsb, session: KeyValueSession, parts: Parts
) -> Mapping[OperationName, Task[Any, Any]]:
    """Return the task of each operation of the mix; all of them choose among the same records."""
    choices = Choices(spec, records)
    return {operation: _make_task(operation, choices, session, parts) for operation in spec.mix}


def _make_task(
    operation: OperationName, choices: Choices, session: KeyValueSession, parts: Parts
) -> Task[Any, Any]:
    later = session if isinstance(session, AnswersKeysLater) else None
    match operation:
        case Operation.READ:
            return Task(
                prepare=choices.key,
                send=session.get,
                soon=later.get_soon if later else None,
                judge=choices.judge,
                describe=lambda key: f"read of {key}",
            )
        case Operation.UPDATE:
            return Task(
                prepare=partial(_prepare_update, choices),
                send=lambda update: session.update(update.key, update.changes),
                soon=(lambda update, done: later.update_soon(update.key, update.changes, done))
                if later
                else None,
                describe=lambda update: f"update of {update.key}",
            )
        case Operation.INSERT:
            return Task(
                prepare=partial(_prepare_insert, choices),
                send=lambda insert: session.insert(insert.key, insert.values),
                soon=(lambda insert, done: later.insert_soon(insert.key, insert.values, done))
                if later
                else None,
                judge=partial(_acknowledge, choices),
                describe=lambda insert: f"insert of {insert.key}",
            )
        case Operation.SCAN:
            return _scan(choices, session)
        case Operation.READ_MODIFY_WRITE:
            return _read_modify_write(choices, session, parts)
        case _:
            raise UsageError(f"records of kind {choices.records.kind} know no {operation}")


def _prepare_update(choices: Choices, number: int) -> RecordUpdate:
    """Choose the record and make what is written."""
    key = choices.key(number)
    return RecordUpdate(key, choices.changes(number, key))


def _prepare_insert(choices: Choices, _: int) -> Insert:
    """Make this engine's next record, whatever the number of the operation is."""
    turn = choices.known.next_turn()
    key = key_name(choices.records, choices.known.number_of_turn(turn))
    return Insert(turn, key, make_record(choices.records, choices.seed, key))


def _acknowledge(choices: Choices, prepared: Insert, _: None) -> Answer:
    """Let the record be chosen from now on."""
    choices.known.acknowledge(prepared.turn)
    return Answer.COMPLETED


def _scan(choices: Choices, session: KeyValueSession) -> Task[Scan, Sequence[tuple[str, Values]]]:
    """Return what reads some records from a key on, in the system's own order, and verifies them.

    Whatever that order is, `Ends` finds scans that end too early, but not the first few of them.

    Raises:
        UsageError: the session's system cannot scan.

    """
    if not isinstance(session, Scans):
        raise UsageError(f"{type(session).__name__} cannot scan; leave out what has scans (YCSB E)")
    ends, records, seed = Ends(), choices.records, choices.seed

    def prepare(number: int) -> Scan:
        record = choices.record(number)
        first_key = key_name(records, record)
        return Scan(first_key, choices.length(number), choices.known.was_there(record))

    def judge(prepared: Scan, reply: Sequence[tuple[str, Values]]) -> Answer:
        first_key = prepared.first_key
        answer = check_scan(records, seed, first_key, prepared.count, reply)
        is_short = answer is Answer.COMPLETED and len(reply) < prepared.count
        if is_short and prepared.begins_old and not ends.can_be(first_key, len(reply)):
            return Answer.NOT_FOUND
        return answer

    return Task(
        # Their mean, as whole records; at the end of the keys they are fewer.
        rows=(1 + records.max_scan_length) // 2,
        prepare=prepare,
        send=lambda scan: session.scan(scan.first_key, scan.count),
        judge=judge,
        describe=lambda scan: f"scan of {scan.count} from {scan.first_key}",
    )


def _read_modify_write(
    choices: Choices, session: KeyValueSession, parts: Parts
) -> Task[RecordUpdate, Values | None]:
    """Return what reads a record, then changes one field of it, or all; both parts are timed as well.

    As in YCSB, what is written does not depend on what was read, and nothing is if nothing was found.
    """
    read, update = (parts(Operation.READ_MODIFY_WRITE, name) for name in ("read", "update"))

    def send(prepared: RecordUpdate) -> Values | None:
        begin_s = read.now()
        found = session.get(prepared.key)
        read_s = read.now()
        read.note(begin_s, read_s)
        if found is not None:
            session.update(prepared.key, prepared.changes)
            update.note(read_s, update.now())
        return found

    def soon(later: AnswersKeysLater, prepared: RecordUpdate, done: OnGot) -> None:
        begin_s = read.now()

        def go_on(found: Values | None, error: Exception | None) -> None:
            if error is not None:
                done(None, error)
                return
            read_s = read.now()
            read.note(begin_s, read_s)
            if found is None:
                done(None, None)
            else:
                finish_it = partial(finish, read_s, found)
                later.update_soon(prepared.key, prepared.changes, finish_it)

        def finish(read_s: float, found: Values, _: None, error: Exception | None) -> None:
            if error is not None:
                done(None, error)
                return
            update.note(read_s, update.now())
            done(found, None)

        later.get_soon(prepared.key, go_on)

    return Task(
        prepare=partial(_prepare_update, choices),
        send=send,
        soon=partial(soon, session) if isinstance(session, AnswersKeysLater) else None,
        judge=lambda prepared, reply: choices.judge(prepared.key, reply),
        describe=lambda prepared: f"read-modify-write of {prepared.key}",
    )
