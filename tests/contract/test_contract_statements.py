"""Workloads in statements, each against a server of its language: sent, answered, judged.

Cassandra is real; MongoDB's is an emulator of its protocol, and proves our use of the driver alone.
"""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from catalogs import shipped
from served import REAL, Served

from perf.load.engine.tasks.statements import make_statement_tasks, store_row_task
from perf.load.engine.tasks.task import Task
from perf.load.spec import LoadSpec
from perf.model.errors import StepFailed
from perf.model.records import Answer, Stored
from perf.model.statements import Expected, Statements
from perf.systems import registry
from perf.systems.contract import open_session
from perf.systems.sessions import StatementSession

ROWS, TIMES = 50, 20
EXAMPLES = {
    "own-index": "cassandra",
    "own-lightweight": "cassandra",
    "own-expiring": "cassandra",
    "own-documents": "mongodb",
    "own-sql": "cratedb",
}
CASES = [
    pytest.param(name, marks=[pytest.mark.real] if system in REAL else [])
    for name, system in EXAMPLES.items()
]
WRONG = {
    "own-sql": "CREATE TABEL customers (id BIGINT PRIMARY KEY)",
    "own-index": "CREATE TABEL customers (id bigint PRIMARY KEY)",
    "own-documents": '{"createIndexes": "wrong", "indexes": [{"name": "without a key"}]}',
}


def read_records(name: str) -> Statements:
    records = shipped().workloads[name].records
    assert isinstance(records, Statements)
    return replace(records, rows=ROWS)


def make_spec(served: Served, records: Statements) -> LoadSpec:
    return LoadSpec(
        target=served.target,
        records=records,
        mix=dict.fromkeys(records.statements, 1.0),
        seed=1,
        engine_index=0,
        engine_count=1,
        readable_rows=ROWS,
        first_row=ROWS,
        output_dir="",
    )


@pytest.fixture
def served(name: str, request: pytest.FixtureRequest) -> Served:
    found: Served = request.getfixturevalue(f"{EXAMPLES[name]}_server")
    return found


@pytest.fixture
def session(name: str, served: Served) -> Iterator[StatementSession]:
    """Store the rows of an example; yield a client that connected afterwards, as an engine does."""
    records, system = read_records(name), registry.load(EXAMPLES[name])
    with open_session(system, served.target, records) as first:
        first.create_schema(records)
        store = store_row_task(make_spec(served, records), records, first)
        for number in range(ROWS):
            filled = store.prepare(number)
            assert store.judge(filled, store.send(filled)) is Answer.COMPLETED
        assert first.stored() == Stored(rows=ROWS, payload_bytes=0)
    with open_session(system, served.target, records) as session:
        yield session


def ask(task: Task[Any, Any], filled: Any) -> Any:  # noqa: ANN401  of the task
    """Return the rows of an answer, asked for without a waiting thread where the driver can."""
    if task.soon is None:
        return task.send(filled)
    answers: list[Any] = []
    has_come = threading.Event()

    def done(rows: Any, error: Exception | None) -> None:  # noqa: ANN401  of the task
        answers.append(rows if error is None else error)
        has_come.set()

    task.soon(filled, done)
    assert has_come.wait(10)
    (answer,) = answers
    assert not isinstance(answer, Exception), answer
    return answer


@pytest.mark.parametrize("name", CASES)
def test_answers_are_as_the_workload_expects(
    name: str, served: Served, session: StatementSession
) -> None:
    records = read_records(name)
    for task in make_statement_tasks(make_spec(served, records), records, session).values():
        for number in range(TIMES):
            filled = task.prepare(number)
            rows = ask(task, filled)
            assert task.judge(filled, rows) is Answer.COMPLETED, (task.describe(filled), rows)

    # Rows as of another seed: what compares values with the row's own must find them wrong.
    readers = {
        one: replace(statement, expect=replace(statement.expect or Expected(), rows=1))
        for one, statement in records.statements.items()
        if statement.expect and statement.expect.columns
    }
    spec = replace(make_spec(served, records), seed=2, mix=dict.fromkeys(readers, 1.0))
    records = replace(records, statements={**records.statements, **readers})
    for task in make_statement_tasks(spec, records, session).values():
        for number in range(TIMES):
            filled = task.prepare(number)
            assert task.judge(filled, ask(task, filled)) is not Answer.COMPLETED


@pytest.mark.parametrize("name", [one for one in CASES if one.values[0] in WRONG])
def test_a_statement_that_the_server_refuses_is_named(name: str, served: Served) -> None:
    records = replace(read_records(name), schema=(WRONG[name],))
    system = registry.load(EXAMPLES[name])
    with open_session(system, served.target, records) as session:
        with pytest.raises(StepFailed) as refused:
            session.create_schema(records)
        assert f"it was: {WRONG[name]}" in str(refused.value)
        assert refused.value.step == "schema"
