"""Reads among writes: whatever a system does to a row, some read finds it, and none cries wolf."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from perf.load.engine.tasks.sensor import Acknowledged, make_sensor_tasks
from perf.load.engine.tasks.task import Task
from perf.load.spec import LoadSpec
from perf.model.errors import UsageError
from perf.model.records import Answer, Operation, Sensor
from perf.systems.contract import Target
from perf.workloads.sensor import SensorReading, reading

RECORDS = Sensor(kind="sensor", devices=6, payload_bytes=200, latest_count=4, order="shuffled")
PRELOADED = 6 * 4
SEED = 3
Change = Callable[[SensorReading, int], Sequence[SensorReading]]


class Rows:
    """A database of rows; `change` says what becomes of a row, by its place among the writes."""

    def __init__(self, change: Change = lambda row, _: (row,)) -> None:
        self.rows = {self.key(row): row for row in map(self.genuine, range(PRELOADED))}
        self.change, self.writes = change, 0

    @staticmethod
    def genuine(row: int) -> SensorReading:
        return reading(RECORDS, SEED, row)

    @staticmethod
    def key(row: SensorReading) -> tuple[str, int]:
        return row.device_id, row.ts_ms

    def write(self, readings: Sequence[SensorReading]) -> None:
        for row in readings:
            self.writes += 1
            for kept in self.change(row, self.writes):
                self.rows[self.key(kept)] = kept

    def read_latest(self, device_id: str, count: int) -> Sequence[SensorReading]:
        rows = [row for key, row in self.rows.items() if key[0] == device_id]
        return sorted(rows, key=lambda row: -row.ts_ms)[:count]


def make_spec(mix: Mapping[Operation, float], **target: Any) -> LoadSpec:  # noqa: ANN401  fields of Target
    place = Target(
        system="fake",
        addresses=("127.0.0.1",),
        port=1,
        replication_factor=3,
        consistency="quorum",
        timeout_s=1.0,
    )
    return LoadSpec(
        target=replace(place, **target),
        records=RECORDS,
        mix=mix,
        seed=SEED,
        engine_index=0,
        engine_count=1,
        readable_rows=PRELOADED,
        first_row=PRELOADED,
        output_dir="",
    )


MIX = {Operation.WRITE: 20.0, Operation.READ_LATEST: 80.0}


def run(session: Any, spec: LoadSpec, operations: int = 600) -> Counter[Answer]:  # noqa: ANN401  a sensor session
    """Keep up to eight operations in flight; each takes effect, and is answered, at a drawn moment."""
    tasks = make_sensor_tasks(spec, RECORDS, session)
    draw = random.Random(SEED)  # noqa: S311  test data, not a secret
    in_flight: list[tuple[Task[Any, Any], Any]] = []
    unanswered: list[tuple[Task[Any, Any], Any, Any]] = []
    answers: Counter[Answer] = Counter()
    for number in range(operations):
        operation = draw.choices(list(spec.mix), list(spec.mix.values()))[0]
        in_flight.append((tasks[operation], tasks[operation].prepare(number)))
        while len(in_flight) > 4 or (in_flight and draw.random() < 0.5):
            task, prepared = in_flight.pop(draw.randrange(len(in_flight)))
            unanswered.append((task, prepared, task.send(prepared)))
        while len(unanswered) > 4 or (unanswered and draw.random() < 0.5):
            task, prepared, reply = unanswered.pop(draw.randrange(len(unanswered)))
            answer = task.judge(prepared, reply)
            if task is tasks.get(Operation.READ_LATEST):
                answers[answer] += 1
    return answers


@pytest.mark.parametrize("consistency", ["all", "one", "quorum"])
def test_no_read_of_a_faithful_system_is_doubted(consistency: str) -> None:
    answers = run(Rows(), make_spec(MIX, consistency=consistency))
    assert set(answers) == {Answer.COMPLETED}
    assert answers[Answer.COMPLETED] > 400


def test_reads_find_rows_that_were_written_a_moment_ago() -> None:
    session = Rows()
    run(session, make_spec(MIX))
    newest = session.read_latest("sensor-000000001", 4)
    assert all(row not in map(Rows.genuine, range(PRELOADED)) for row in newest)


def corrupt(row: SensorReading, place: int) -> Sequence[SensorReading]:
    return (replace(row, metadata=b"x" + row.metadata[1:]),) if place % 40 == 0 else (row,)


def lose(row: SensorReading, place: int) -> Sequence[SensorReading]:
    return () if place % 40 == 0 else (row,)


def misplace(row: SensorReading, place: int) -> Sequence[SensorReading]:
    other = replace(row, device_id="sensor-000000000")
    return (row, other) if place % 40 == 0 and row.device_id != other.device_id else (row,)


def invent(row: SensorReading, place: int) -> Sequence[SensorReading]:
    return (row, replace(row, ts_ms=row.ts_ms + 1)) if place % 40 == 0 else (row,)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (corrupt, Answer.WRONG_DATA),
        (invent, Answer.WRONG_DATA),
        (lose, Answer.NOT_FOUND),
        (misplace, Answer.WRONG_DATA),
    ],
    ids=["corrupted", "invented", "lost", "foreign"],
)
def test_what_a_system_does_to_new_rows_is_found(change: Change, found: Answer) -> None:
    answers = run(Rows(change), make_spec(MIX))
    assert answers[found] > 0
    assert set(answers) == {Answer.COMPLETED, found}


@pytest.mark.parametrize("consistency", ["one", "quorum"])
def test_a_row_stored_beforehand_must_be_there_at_any_consistency(consistency: str) -> None:
    session = Rows(lambda *_: ())  # nothing new is stored, so that the old rows stay the newest
    lost = Rows.genuine(PRELOADED - 1)
    del session.rows[Rows.key(lost)]
    answers = run(session, make_spec({Operation.READ_LATEST: 1.0}, consistency=consistency))
    assert answers[Answer.NOT_FOUND] > 0
    answers = run(session, make_spec(MIX, consistency=consistency))
    assert answers[Answer.NOT_FOUND] > 0


def test_with_one_copy_an_acknowledged_row_must_be_there_whatever_was_asked() -> None:
    weak = {"consistency": "one", "replication_factor": 1}
    assert run(Rows(lose), make_spec(MIX, **weak))[Answer.NOT_FOUND] > 0
    # Of three, another copy may have been asked.
    assert not run(Rows(lose), make_spec(MIX, consistency="one"))[Answer.NOT_FOUND]


def test_the_newest_acknowledged_rows_are_kept_whatever_their_order() -> None:
    kept = Acknowledged(RECORDS)
    rows = [Rows.genuine(6 * sequence + 2) for sequence in range(9)]
    for row in (rows[0], rows[5], rows[3], rows[8], rows[1], rows[7]):
        kept.note((row,))
    assert sorted(kept.of(2)) == [3, 5, 7, 8]
    assert kept.of(1) == ()
    kept.note([Rows.genuine(6 * sequence + 1) for sequence in range(7)])
    assert sorted(kept.of(1)) == [3, 4, 5, 6]


def test_an_operation_of_another_workload_is_refused() -> None:
    session: Any = Rows()
    with pytest.raises(UsageError, match="records of kind sensor know no operation put"):
        make_sensor_tasks(make_spec({Operation.WRITE: 1, Operation.PUT: 1}), RECORDS, session)
