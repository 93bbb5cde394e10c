"""The tasks of the devops workload on a session in memory."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from perf.load.engine.tasks.devops import load_task, query_task
from perf.load.engine.tasks.making import foresee, make_tasks
from perf.load.engine.tasks.task import OperationPart
from perf.load.spec import LoadSpec
from perf.model.errors import UsageError
from perf.model.records import Answer, Devops, Operation
from perf.systems.contract import Target
from perf.systems.fake.devops import DevopsRows, FakeDevopsSession
from perf.systems.sessions import DevopsSession
from perf.workloads.devops.queries import QUERIES, cpu_history
from perf.workloads.devops.rows import Group, Query
from perf.workloads.devops.tables import devops_rows
from perf.workloads.loading import devops_stored

RECORDS = Devops(kind="devops", hosts=9, span_s=5400, interval_s=30, queries=6)
BATCH_ROWS = 1000
BATCHES = -(-devops_rows(RECORDS) // BATCH_ROWS)


def make_spec(mix: dict[Operation, float]) -> LoadSpec:
    return LoadSpec(
        target=Target(
            system="fake",
            addresses=("127.0.0.1",),
            port=1,
            replication_factor=1,
            consistency="one",
            timeout_s=1.0,
        ),
        records=RECORDS,
        mix=mix,
        seed=5,
        engine_index=0,
        engine_count=1,
        batch_rows=BATCH_ROWS,
        output_dir="/nowhere",
    )


def make_session(corrupt: Callable[[int], bool] = lambda _: False) -> DevopsSession:
    """Return a session of three nodes in memory; `corrupt` says which writes are changed, from 1."""
    nodes = [DevopsRows() for _ in range(3)]
    writes = 0

    def ask(node: int, question: dict[str, Any]) -> Any:  # noqa: ANN401  JSON
        nonlocal writes
        if question["devops"] != "write":
            return nodes[node].answer(question)
        writes += 1
        nodes[node].write(question["rows"], is_corrupt=corrupt(writes), is_lost=False)
        return True

    return FakeDevopsSession(ask, len(nodes), repr)


def load(session: DevopsSession) -> None:
    task = load_task(make_spec({Operation.LOAD: 1.0}), RECORDS, session)
    for number in range(BATCHES):
        batch = task.prepare(number)
        task.send(batch)
        assert task.judge(batch, None) is Answer.COMPLETED


@pytest.fixture(scope="module")
def loaded() -> DevopsSession:
    session = make_session()
    load(session)
    return session


def test_loading_stores_every_row_once(loaded: DevopsSession) -> None:
    assert loaded.stored() == devops_stored(RECORDS)


def test_there_is_no_batch_beyond_the_last(loaded: DevopsSession) -> None:
    task = load_task(make_spec({Operation.LOAD: 1.0}), RECORDS, loaded)
    assert task.prepare(BATCHES - 1)
    with pytest.raises(UsageError, match=f"there is no batch {BATCHES} to load"):
        task.prepare(BATCHES)


def test_a_batch_is_named_by_its_first_row(loaded: DevopsSession) -> None:
    task = load_task(make_spec({Operation.LOAD: 1.0}), RECORDS, loaded)
    text = task.describe(task.prepare(1))
    assert text == "load of 1000 rows from kernel of host_1 at 1451606760000 on"


@pytest.mark.parametrize("operation", QUERIES)
def test_queries_are_answered_as_expected(operation: Operation, loaded: DevopsSession) -> None:
    task = query_task(make_spec({operation: 1.0}), RECORDS, loaded, operation)
    for number in range(RECORDS.queries):
        asked = task.prepare(number)
        assert task.judge(asked, task.send(asked)) is Answer.COMPLETED
        assert task.describe(asked).startswith(operation.value)


@pytest.mark.parametrize("operation", QUERIES)
def test_a_corrupted_batch_is_found_by_every_type_of_query(operation: Operation) -> None:
    session = make_session(corrupt=lambda write: write == 20)
    load(session)
    task = query_task(make_spec({operation: 1.0}), RECORDS, session, operation)
    history = cpu_history(RECORDS, 5)
    found = set()
    for number in range(RECORDS.queries):
        asked = task.prepare(number)
        assert asked.expected == history.answer(asked.query)
        found.add(task.judge(asked, task.send(asked)))
    assert Answer.WRONG_DATA in found


def test_each_operation_of_a_mix_has_its_task(loaded: DevopsSession) -> None:
    spec = make_spec(dict.fromkeys((Operation.LOAD, *QUERIES), 1.0))
    foresee(spec)
    tasks = make_tasks(spec, loaded, note_nothing)
    assert {operation: task.rows for operation, task in tasks.items()} == {
        Operation.LOAD: spec.batch_rows,
        **dict.fromkeys(QUERIES, 1),
    }
    assert all(task.soon is None for task in tasks.values())


def note_nothing(operation: Operation, part: str) -> OperationPart:
    pytest.fail(f"{operation.value} has no part {part}")


class Unable(FakeDevopsSession):
    def can_ask(self, operation: Operation) -> bool:
        return operation is Operation.SINGLE_GROUPBY_1_1_1

    def ask(self, query: Query) -> Sequence[Group]:
        pytest.fail(f"was asked {query}")


def test_what_a_system_cannot_be_asked_is_refused_by_name() -> None:
    session = Unable(lambda _, __: None, 1, repr)
    spec = make_spec({Operation.DOUBLE_GROUPBY_1: 1.0})
    with pytest.raises(UsageError, match="fake cannot be asked double-groupby-1"):
        query_task(spec, RECORDS, session, Operation.DOUBLE_GROUPBY_1)
