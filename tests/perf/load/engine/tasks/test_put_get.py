from collections.abc import Callable
from dataclasses import replace

import pytest
from dict_sessions import Dict, Later, Times, do, do_soon

from perf.load.engine.tasks.making import make_tasks
from perf.load.spec import LoadSpec
from perf.model.errors import UsageError
from perf.model.records import Answer, Operation, PutGet
from perf.systems.contract import Target
from perf.workloads.put_get import key_name, make_value

SEED, FIRST, SECOND = 5, 1776, 1812
RECORDS = PutGet(kind="put-get", keys=40)
PUT, GET, PUT_GET = Operation.PUT, Operation.GET, Operation.PUT_GET
SPEC = LoadSpec(
    target=Target(
        system="fake",
        addresses=("127.0.0.1",),
        port=1,
        replication_factor=1,
        consistency="one",
        timeout_s=1.0,
    ),
    records=RECORDS,
    mix={PUT: 1.0, GET: 1.0, PUT_GET: 1.0},
    seed=SEED,
    value_seed=FIRST,
    engine_index=0,
    engine_count=1,
    output_dir="/nowhere",
)
Act = Callable[..., Answer]


def run(session: Dict, spec: LoadSpec, operation: Operation, act: Act = do) -> set[Answer]:
    task = make_tasks(spec, session, Times())[operation]
    return {act(task, number) for number in range(RECORDS.keys)}


@pytest.mark.parametrize("act", [do, do_soon])
def test_puts_store_one_value_under_each_key_and_gets_ask_for_each_once(act: Act) -> None:
    session = Later()
    assert run(session, SPEC, PUT, act) == {Answer.COMPLETED}
    assert session.kept == {
        key_name(RECORDS, SEED, index): [make_value(RECORDS, SEED, FIRST, index)] for index in range(40)
    }
    assert run(session, SPEC, GET, act) == {Answer.COMPLETED}
    task = make_tasks(SPEC, session, Times())[GET]
    assert {task.prepare(number).key for number in range(40)} == set(session.kept)


def test_a_value_of_an_earlier_seed_is_wrong_once_another_was_put() -> None:
    session, later = Dict(), replace(SPEC, value_seed=SECOND)
    run(session, SPEC, PUT)
    assert run(session, later, GET) == {Answer.WRONG_DATA}
    run(session, later, PUT)
    assert run(session, later, GET) == {Answer.COMPLETED}
    assert run(session, SPEC, GET) == {Answer.WRONG_DATA}


@pytest.mark.parametrize("act", [do, do_soon])
def test_a_put_get_is_one_operation_on_one_key_with_two_timed_parts(act: Act) -> None:
    session, times = Later(), Times()
    run(session, SPEC, PUT)
    session.calls.clear()
    task = make_tasks(replace(SPEC, value_seed=SECOND), session, times)[PUT_GET]
    assert act(task, 7) is Answer.COMPLETED
    assert session.calls == ["put", "get"]
    assert times.noted == [("put-get.put", 1.0), ("put-get.get", 1.0)]
    assert run(session, replace(SPEC, value_seed=SECOND), PUT_GET, act) == {Answer.COMPLETED}
    assert run(session, replace(SPEC, value_seed=SECOND), GET) == {Answer.COMPLETED}


@pytest.mark.parametrize("act", [do, do_soon])
@pytest.mark.parametrize("operation", [GET, PUT_GET])
def test_what_is_lost_and_what_is_changed_are_told_apart(act: Act, operation: Operation) -> None:
    class Losing(Later):
        loses: bool = False

        def get(self, key: str) -> list[bytes] | None:
            found = super().get(key)
            return None if found is None or self.loses else [found[0][:-1] + b"-"]

    session = Losing()
    run(session, SPEC, PUT)
    assert run(session, SPEC, operation, act) == {Answer.WRONG_DATA}
    session.loses = True
    assert run(session, SPEC, operation, act) == {Answer.NOT_FOUND}


@pytest.mark.parametrize("failing", ["put", "get"])
def test_a_part_that_fails_fails_the_operation_and_has_no_time(failing: str) -> None:
    session, times = Later(), Times()
    task = make_tasks(SPEC, session, times)[PUT_GET]
    session.fails = lambda _: session.calls[-1] == failing
    with pytest.raises(TimeoutError):
        do(task, 1)
    assert isinstance(do_soon(task, 1), TimeoutError)
    assert [name for name, _ in times.noted] == ([] if failing == "put" else ["put-get.put"] * 2)


def test_each_operation_is_named_in_messages() -> None:
    for operation, task in make_tasks(SPEC, Dict(), Times()).items():
        assert task.describe(task.prepare(1)).startswith(f"{operation.value} of ")
        assert task.soon is None


def test_foreign_operations_are_refused() -> None:
    with pytest.raises(UsageError, match="know no operation scan"):
        make_tasks(replace(SPEC, mix={Operation.SCAN: 1.0}), Dict(), Times())
