"""What the operations of a YCSB core workload are about, out of what their engine knows is stored."""

from array import array
from itertools import count

from perf.load.spec import LoadSpec
from perf.model.errors import UsageError
from perf.model.records import Answer, Operation, Values, Ycsb
from perf.workloads.keys import insert_share, make_chooser
from perf.workloads.ycsb import (
    check_record,
    choose_field,
    choose_length,
    choose_record,
    key_name,
    make_field,
    make_record,
    updated_version,
)


class KnownRecords:
    """The records that one engine knows to be stored, from the oldest, and the numbers of its inserts.

    An insert costs 4 bytes: a million per hour and engine are 48 MB in twelve hours.
    """

    def __init__(self, spec: LoadSpec) -> None:
        """Know what is there before the first operation, and let inserts begin where this run's do."""
        self._stored = spec.readable_rows
        self._first = spec.first_row + spec.engine_index
        self._step = spec.engine_count
        self._turns = count()
        # In the order in which they were acknowledged. Threads append and read it without a lock: one
        # never sees an insert that is not acknowledged.
        self._acknowledged = array("I")

    def __len__(self) -> int:
        """Count them."""
        return self._stored + len(self._acknowledged)

    def number(self, index: int) -> int:
        """Return the record number at a place in the order of age."""
        if index < self._stored:
            return index
        return self._first + self._acknowledged[index - self._stored] * self._step

    def was_there(self, number: int) -> bool:
        """Return whether a record was stored before the first operation."""
        return number < self._stored

    def next_turn(self) -> int:
        """Return the next of this engine's inserts, from 0."""
        return next(self._turns)

    def number_of_turn(self, turn: int) -> int:
        """Return the record number that an insert creates."""
        return self._first + turn * self._step

    def acknowledge(self, turn: int) -> None:
        """Know an insert's record from now on."""
        self._acknowledged.append(turn)


class Choices:
    """What each operation is about, chosen by its number; shared by all tasks of an engine."""

    def __init__(self, spec: LoadSpec, records: Ycsb) -> None:
        """Choose for this run of engines.

        Raises:
            UsageError: nothing is stored that an operation could be about.

        """
        if not spec.readable_rows and any(one is not Operation.INSERT for one in spec.mix):
            why = (
                "nothing is stored that could be read or changed; give the workload `preload: records`"
            )
            raise UsageError(why)
        self.records, self.seed = records, spec.seed
        self.known = KnownRecords(spec)
        self._run = spec.run
        self._chooser = make_chooser(
            records,
            stored=spec.readable_rows,
            insert_share=insert_share(spec.mix),
            engine_count=spec.engine_count,
        )

    def key(self, number: int) -> str:
        """Choose the record, among those known by now, and give its key."""
        return key_name(self.records, self.record(number))

    def record(self, number: int) -> int:
        """Choose the record, among those known by now, and give its number."""
        index = choose_record(self._chooser, self.seed, self._run, number, len(self.known))
        return self.known.number(index)

    def changes(self, number: int, key: str) -> dict[int, bytes]:
        """Make what an update writes: one field, or all."""
        version = updated_version(number)
        if self.records.write_all_fields:
            return dict(enumerate(make_record(self.records, self.seed, key, version)))
        field = choose_field(self.records, self.seed, self._run, number)
        return {field: make_field(self.records, self.seed, key, field, version)}

    def length(self, number: int) -> int:
        """Choose how many records a scan asks for."""
        return choose_length(self.records, self.seed, self._run, number)

    def judge(self, key: str, reply: Values | None) -> Answer:
        """Judge what was read under a key."""
        return check_record(self.records, self.seed, key, reply)
