from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from dict_sessions import Dict, Later, Scanning, Times, do, do_soon

from perf.load.engine.tasks.choices import Choices
from perf.load.engine.tasks.making import make_preload_task, make_tasks
from perf.load.spec import LoadSpec
from perf.model.errors import UsageError
from perf.model.records import Answer, Operation, Ycsb
from perf.systems.contract import Target
from perf.workloads.ycsb import key_name, make_record, updated_version

SEED = 5
STORED = 50
TARGET = Target(
    system="fake",
    addresses=("127.0.0.1",),
    port=1,
    replication_factor=1,
    consistency="one",
    timeout_s=1.0,
)
RECORDS = Ycsb(kind="ycsb", record_count=STORED, request_distribution="uniform")
READ, UPDATE, INSERT = Operation.READ, Operation.UPDATE, Operation.INSERT
SCAN, MODIFY = Operation.SCAN, Operation.READ_MODIFY_WRITE


def specify(
    *mix: Operation,
    records: Ycsb = RECORDS,
    engine: int = 0,
    engines: int = 1,
    readable_rows: int = STORED,
) -> LoadSpec:
    return LoadSpec(
        target=TARGET,
        records=records,
        mix=dict.fromkeys(mix, 1.0),
        seed=SEED,
        engine_index=engine,
        engine_count=engines,
        readable_rows=readable_rows,
        first_row=STORED,
        output_dir="/nowhere",
    )


def key_of(number: int) -> str:
    return key_name(RECORDS, number)


def load(spec: LoadSpec, session: Dict, rows: int = STORED) -> None:
    task = make_preload_task(spec, session)
    for number in range(rows):
        do(task, number)
    session.calls.clear()


@pytest.mark.parametrize("act", [do, do_soon])
@pytest.mark.parametrize("operation", [READ, UPDATE, INSERT, MODIFY])
@pytest.mark.parametrize("all_fields", [False, True])
def test_each_operation_completes_and_leaves_genuine_records(
    act: Callable[..., Answer], operation: Operation, *, all_fields: bool
) -> None:
    spec, session = specify(operation, records=replace(RECORDS, write_all_fields=all_fields)), Later()
    load(spec, session)
    task = make_tasks(spec, session, Times())[operation]
    assert [act(task, number) for number in range(100)] == [Answer.COMPLETED] * 100
    reader = make_tasks(specify(READ, readable_rows=len(session.kept)), session, Times())[READ]
    assert {do(reader, number) for number in range(500)} == {Answer.COMPLETED}
    assert len(session.kept) == STORED + 100 * (operation is INSERT)


def test_an_update_changes_one_field_or_all_of_them() -> None:
    session = Dict()
    task = make_tasks(specify(UPDATE), session, Times())[UPDATE]
    changed = [task.prepare(number) for number in range(300)]
    assert all(len(one.changes) == 1 for one in changed)
    assert {field for one in changed for field in one.changes} == set(range(10))
    every = make_tasks(
        specify(UPDATE, records=replace(RECORDS, write_all_fields=True)), session, Times()
    )[UPDATE].prepare(7)
    whole = make_record(RECORDS, SEED, every.key, updated_version(7))
    assert dict(every.changes) == dict(enumerate(whole))


def test_a_missing_and_a_corrupted_record_are_told_apart() -> None:
    spec, session = specify(READ, MODIFY), Later()
    load(spec, session)
    tasks = make_tasks(spec, session, Times())
    for operation, act in ((READ, do), (MODIFY, do), (READ, do_soon), (MODIFY, do_soon)):
        key = tasks[READ].prepare(3)
        good = session.kept.pop(key)
        assert act(tasks[operation], 3) is Answer.NOT_FOUND
        session.kept[key] = [*good[:4], good[5], *good[5:]]
        assert act(tasks[operation], 3) is Answer.WRONG_DATA
        session.kept[key] = good


def test_engines_insert_records_of_their_own_without_a_gap_between_them() -> None:
    session = Dict()
    for engine in range(3):
        task = make_tasks(specify(INSERT, engine=engine, engines=3), session, Times())[INSERT]
        for number in range(20):
            assert do(task, engine + 3 * number) is Answer.COMPLETED
    assert set(session.kept) == {key_of(number) for number in range(STORED, STORED + 60)}


@pytest.mark.parametrize("act", [do, do_soon])
def test_latest_reads_follow_the_inserts_that_were_acknowledged(act: Callable[..., Any]) -> None:
    latest = replace(RECORDS, request_distribution="latest")
    spec, session = specify(READ, INSERT, records=latest, engine=1, engines=2), Later()
    load(spec, session)
    tasks = make_tasks(spec, session, Times())
    lost = tasks[INSERT].prepare(0).key  # made ready when its stage ended, and never sent
    session.fails = lambda key: key in failing
    failing = {key_of(STORED + 1 + 2 * turn) for turn in (3, 11)}
    for number in range(40):
        try:
            act(tasks[INSERT], number)
        except TimeoutError:
            assert act is do
    session.fails = lambda _: False
    chosen = Counter(tasks[READ].prepare(number) for number in range(2000))
    new = set(session.kept) - {key_of(number) for number in range(STORED)}
    assert len(new) == 38
    assert not {lost, *failing} & set(chosen)
    assert chosen.most_common(1)[0][0] == list(session.kept)[-1]
    assert sum(chosen[key] for key in new) > 1000
    assert {do(tasks[READ], number) for number in range(500)} == {Answer.COMPLETED}


def test_zipfian_chooses_what_was_inserted_once_it_is_acknowledged() -> None:
    zipfian = replace(RECORDS, request_distribution="zipfian", operation_count=200)
    spec, session = specify(READ, INSERT, records=zipfian), Dict()
    load(spec, session)
    tasks = make_tasks(spec, session, Times())
    before = [tasks[READ].prepare(number) for number in range(1000)]
    old = set(session.kept)
    for number in range(100):
        do(tasks[INSERT], number)
    after = [tasks[READ].prepare(number) for number in range(1000)]
    # A choice stays what it was, unless it would have been one of the new records all along.
    moved = {new for new, earlier in zip(after, before, strict=True) if new != earlier}
    assert moved
    assert moved <= set(session.kept) - old


def test_scans_are_verified_and_need_a_session_that_can() -> None:
    spec, session = specify(SCAN, records=replace(RECORDS, max_scan_length=9)), Scanning()
    load(spec, session)
    task = make_tasks(spec, session, Times())[SCAN]
    assert task.rows == 5
    assert task.soon is None
    assert {do(task, number) for number in range(200)} == {Answer.COMPLETED}
    key = task.prepare(8).first_key
    session.kept[key][0] = b"x" * 100
    assert do(task, 8) is Answer.WRONG_DATA
    with pytest.raises(UsageError, match="cannot scan"):
        make_tasks(spec, Dict(), Times())


def test_scans_that_stop_after_the_first_record_are_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec, session = specify(SCAN, INSERT, records=replace(RECORDS, max_scan_length=9)), Scanning()
    load(spec, session)
    tasks = make_tasks(spec, session, Times())
    scan, whole = tasks[SCAN], session.scan
    for number in range(100):
        do(tasks[INSERT], number)
        assert do(scan, number) is Answer.COMPLETED
    monkeypatch.setattr(session, "scan", lambda key, _: whole(key, 1))
    answers = Counter(do(scan, number) for number in range(200))
    assert answers[Answer.NOT_FOUND] > 0.25 * answers.total()


@pytest.mark.parametrize("act", [do, do_soon])
def test_a_read_modify_write_is_one_operation_with_two_timed_parts(act: Callable[..., Answer]) -> None:
    spec, session, times = specify(MODIFY), Later(), Times()
    load(spec, session)
    task = make_tasks(spec, session, times)[MODIFY]
    assert act(task, 4) is Answer.COMPLETED
    assert session.calls == ["get", "update"]
    assert times.noted == [("read-modify-write.read", 1.0), ("read-modify-write.update", 1.0)]
    session.kept.clear()
    times.noted.clear()
    assert act(task, 4) is Answer.NOT_FOUND
    assert session.calls == ["get", "update", "get"]  # nothing is written where nothing was found
    assert times.noted == [("read-modify-write.read", 1.0)]


@pytest.mark.parametrize("failing", ["get", "update"])
def test_a_part_that_fails_fails_the_operation(failing: str) -> None:
    spec, session = specify(MODIFY), Later()
    load(spec, session)
    task = make_tasks(spec, session, Times())[MODIFY]
    session.fails = lambda _: session.calls[-1] == failing
    with pytest.raises(TimeoutError):
        do(task, 1)
    assert isinstance(do_soon(task, 1), TimeoutError)


def test_a_preload_may_be_repeated() -> None:
    spec, session = specify(INSERT), Later()
    task = make_preload_task(spec, session)
    assert do(task, 3) is do(task, 3) is do_soon(task, 3) is Answer.COMPLETED
    assert session.calls == ["put"] * 3
    assert task.describe(task.prepare(3)) == f"put of {key_of(3)}"


def test_each_operation_is_named_in_messages() -> None:
    spec, session = specify(READ, UPDATE, INSERT, SCAN, MODIFY), Scanning()
    load(spec, session)
    for operation, task in make_tasks(spec, session, Times()).items():
        assert task.describe(task.prepare(1)).startswith(f"{operation.value} of ")
        assert task.soon is None


def test_nothing_stored_and_foreign_operations_are_refused() -> None:
    with pytest.raises(UsageError, match="preload: records"):
        Choices(specify(READ, INSERT, readable_rows=0), RECORDS)
    assert make_tasks(specify(INSERT, readable_rows=0), Dict(), Times())
    with pytest.raises(UsageError, match="know no"):
        make_tasks(specify(Operation.WRITE), Dict(), Times())
