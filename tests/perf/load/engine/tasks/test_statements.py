"""Operations of statements: about rows that are known to be stored, and no others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from perf.load.engine.tasks.statements import make_statement_tasks, store_row_task
from perf.load.spec import LoadSpec
from perf.model.errors import UsageError
from perf.model.records import Answer
from perf.model.statements import (
    Expected,
    IntegerValue,
    RowNumber,
    Statement,
    Statements,
)
from perf.systems.contract import Target

RECORDS = Statements(
    kind="statements",
    language="cql",
    schema=("CREATE TABLE t (id bigint PRIMARY KEY, number int)",),
    rows=10,
    store="add-one",
    count="SELECT id FROM t",
    values={"id": RowNumber(kind="row-number"), "number": IntegerValue(kind="integer", most=1000)},
    statements={
        "add-one": Statement(text="INSERT INTO t (id, number) VALUES (:id, :number)", row="new"),
        "get-one": Statement(
            text="SELECT number FROM t WHERE id = :id",
            row="uniform",
            expect=Expected(rows=1, columns={"number": "number"}),
        ),
        "get-new": Statement(text="SELECT number FROM t WHERE id = :id", row="latest"),
        "get-hot": Statement(text="SELECT number FROM t WHERE id = :id", row="zipfian"),
    },
)
TARGET = Target(
    system="cassandra",
    addresses=("127.0.0.1",),
    port=9042,
    replication_factor=1,
    consistency="quorum",
    timeout_s=1.0,
)


class Table:
    """A session whose table is a dict; it knows just the statements above."""

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}

    def columns(self, name: str) -> Sequence[str]:
        return () if name == "add-one" else ("number",)

    def ask(self, name: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        if name == "add-one":
            self.rows[values["id"]] = values["number"]
            return ()
        found = self.rows.get(values["id"])
        return () if found is None else ((found,),)


def make_spec(**changes: Any) -> LoadSpec:  # noqa: ANN401  any field
    spec = LoadSpec(
        target=TARGET,
        records=RECORDS,
        mix={"add-one": 1.0, "get-one": 1.0, "get-new": 1.0, "get-hot": 1.0},
        seed=5,
        engine_index=1,
        engine_count=2,
        readable_rows=10,
        first_row=10,
        output_dir="",
    )
    return replace(spec, **changes)


@pytest.fixture
def table() -> Table:
    found = Table()
    store = store_row_task(make_spec(), RECORDS, found)  # type: ignore[arg-type]
    for number in range(10):
        store.send(store.prepare(number))
    assert sorted(found.rows) == list(range(10))
    return found


def test_what_is_read_is_what_was_stored(table: Table) -> None:
    tasks = make_statement_tasks(make_spec(), RECORDS, table)  # type: ignore[arg-type]
    get = tasks["get-one"]
    asked = [get.prepare(number) for number in range(200)]
    assert {one.about.row for one in asked} == set(range(10))
    assert {get.judge(one, get.send(one)) for one in asked} == {Answer.COMPLETED}
    table.rows[4] += 1
    wrong = [one.about.row for one in asked if get.judge(one, get.send(one)) is Answer.WRONG_DATA]
    assert set(wrong) == {4}


def test_a_new_row_is_chosen_once_it_is_acknowledged(table: Table) -> None:
    tasks = make_statement_tasks(make_spec(), RECORDS, table)  # type: ignore[arg-type]
    add, latest = tasks["add-one"], tasks["get-new"]
    new = add.prepare(0)
    assert new.about.row == 11, "the second of two engines"
    assert max(latest.prepare(number).about.row for number in range(500)) == 9
    assert add.judge(new, add.send(new)) is Answer.COMPLETED
    assert max(latest.prepare(number).about.row for number in range(500)) == 11
    assert add.prepare(1).about.row == 13


def test_rows_are_chosen_alike_in_each_trial_and_otherwise_in_each_run(table: Table) -> None:
    def rows(**changes: Any) -> list[int]:  # noqa: ANN401  any field
        tasks = make_statement_tasks(make_spec(**changes), RECORDS, table)  # type: ignore[arg-type]
        return [tasks["get-hot"].prepare(number).about.row for number in range(100)]

    assert rows() == rows()
    assert rows() != rows(run=1)
    assert rows() != rows(seed=6)


def test_a_column_that_no_answer_has_is_named(table: Table) -> None:
    get = replace(RECORDS.statements["get-one"], expect=Expected(columns={"nmber": "number"}))
    records = replace(RECORDS, statements={**RECORDS.statements, "get-one": get})
    with pytest.raises(UsageError, match="get-one expects a column nmber, but its answer has number"):
        make_statement_tasks(make_spec(), records, table)  # type: ignore[arg-type]
