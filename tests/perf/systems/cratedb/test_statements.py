"""CrateDB's session of workloads in statements: what it sends, and what it makes of the answers.

What every session of statements must keep to is in tests/contract.
"""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from uuid import UUID

import pytest
from crate_peer import CratePeer, Fault

from perf.model.errors import StepFailed
from perf.model.records import Stored
from perf.model.statements import (
    Expected,
    RealValue,
    RowNumber,
    Statement,
    Statements,
    TextValue,
    UuidValue,
    Value,
)
from perf.systems.contract import Target
from perf.systems.cratedb.client import FAILURES
from perf.systems.cratedb.statements import CrateStatementSession
from perf.systems.cratedb.system import CrateDB

KEY = UUID("81ddc4df-eafe-4ead-8722-73a43526c942")
ROW = {"id": 2**62, "key": KEY, "amount": 0.1, "label": "five"}
VALUES: dict[str, Value] = {
    "id": RowNumber(kind="row-number"),
    "key": UuidValue(kind="uuid"),
    "amount": RealValue(kind="real", most=1.0),
    "label": TextValue(kind="text", bytes=4),
}
COLUMNS = {"key": "key", "id": "id", "amount": "amount"}
RECORDS = Statements(
    kind="statements",
    language="sql",
    schema=(
        """CREATE TABLE things (id BIGINT PRIMARY KEY, key TEXT, amount DOUBLE PRECISION, label TEXT)
        CLUSTERED INTO 3 SHARDS WITH (refresh_interval = 5000)""",
        "CREATE TABLE others (id BIGINT PRIMARY KEY)",
    ),
    rows=10,
    store="add",
    count="SELECT id FROM things;",
    values=VALUES,
    statements={
        "add": Statement(
            text="INSERT INTO things (id, key, amount, label) VALUES (:id, :key, :amount, :label)",
            row="new",
        ),
        "get": Statement(
            text="SELECT id, label, amount, key FROM things WHERE id = :id",
            row="uniform",
            expect=Expected(rows=1, columns=COLUMNS),
        ),
        "find": Statement(text="SELECT label FROM things WHERE label = :label", row="uniform"),
        "rename": Statement(text="UPDATE things SET label = :label WHERE id = :id", row="uniform"),
    },
)


def connect(records: Statements, target: Target) -> AbstractContextManager[CrateStatementSession]:
    return CrateStatementSession.connect_for(records, target)


@pytest.fixture
def session(target: Target) -> Iterator[CrateStatementSession]:
    with connect(RECORDS, target) as session:
        session.create_schema(RECORDS)
        yield session


def test_the_system_takes_sql_alone() -> None:
    assert CrateDB().sessions.find(RECORDS)
    assert CrateDB().sessions.find(replace(RECORDS, language="cql")) is None


@pytest.mark.usefixtures("session")
def test_tables_are_in_the_schema_of_the_trial_with_the_copies_of_the_topology(peer: CratePeer) -> None:
    assert [one.statement for one in peer.statements("CREATE")] == list(RECORDS.schema)
    assert set(peer.store.tables) == {"knickpoint.things", "knickpoint.others"}
    copies = {"number_of_replicas": "2", "write.wait_for_active_shards": "2"}
    things, others = (peer.store.tables[f"knickpoint.{name}"] for name in ("things", "others"))
    assert (things.shards, things.options) == (3, {"refresh_interval": "5000", **copies})
    assert others.options == copies


def test_parameters_are_arguments_in_their_order(
    peer: CratePeer, session: CrateStatementSession
) -> None:
    assert session.ask("add", ROW) == ((),)
    (asked,) = peer.statements("INSERT")
    assert asked.statement == "INSERT INTO things (id, key, amount, label) VALUES (?, ?, ?, ?)"
    assert asked.arguments == [2**62, str(KEY), 0.1, "five"]


def test_columns_that_are_expected_come_in_their_order_as_they_were_stored(
    session: CrateStatementSession,
) -> None:
    session.ask("add", ROW)
    assert session.columns("get") == ("key", "id", "amount")
    ((key, number, amount),) = session.ask("get", ROW)
    assert (key, number, amount) == (KEY, 2**62, 0.1)
    assert session.ask("get", {**ROW, "id": 6}) == ()


@pytest.mark.parametrize("stored", [None, 7, "81ddc4df", {"a": 1}])
def test_what_is_no_uuid_is_for_whoever_compares(
    peer: CratePeer, session: CrateStatementSession, stored: object
) -> None:
    answer = {"cols": ["key", "id", "amount"], "rows": [[stored, 5, 0.1]], "rowcount": 1}
    peer.faults.append(Fault(200, json.dumps(answer).encode()))
    assert session.ask("get", ROW) == ([stored, 5, 0.1],)


def test_a_write_answers_with_a_row_for_each_that_it_wrote(session: CrateStatementSession) -> None:
    session.ask("add", ROW)
    assert session.ask("rename", ROW) == ((),)
    assert session.ask("rename", {**ROW, "id": 6}) == ()


@pytest.mark.parametrize(("count", "rows"), [(-1, 0), (0, 0), (3, 3)])
def test_a_number_of_rows_that_the_server_does_not_know_is_none(
    peer: CratePeer, session: CrateStatementSession, count: int, rows: int
) -> None:
    peer.faults.append(Fault(200, json.dumps({"cols": [], "rows": [[]], "rowcount": count}).encode()))
    assert session.ask("rename", ROW) == ((),) * rows


def test_queries_see_the_last_refresh_and_the_count_sends_one(
    peer: CratePeer, session: CrateStatementSession
) -> None:
    session.ask("add", ROW)
    assert session.ask("find", ROW) == ()
    assert len(session.ask("get", ROW)) == 1, "a look-up by key sees it at once"
    assert not peer.statements("REFRESH")
    assert session.stored() == Stored(rows=1, payload_bytes=0)
    assert session.ask("find", ROW) == (["five"],)
    (refresh,) = peer.statements("REFRESH")
    assert refresh.statement == 'REFRESH TABLE knickpoint."others", knickpoint."things"'


@pytest.mark.usefixtures("session")
def test_a_count_may_end_with_a_comment(peer: CratePeer, target: Target) -> None:
    records = replace(RECORDS, count="SELECT id FROM things -- all")
    with (
        connect(records, target) as other,
        pytest.raises(StepFailed),  # the peer knows no comments
    ):
        other.stored()
    (asked,) = peer.statements("SELECT count")
    assert asked.statement == "SELECT count(*) FROM (SELECT id FROM things -- all\n) AS counted"


def test_failures_are_named_as_of_the_other_sessions(session: CrateStatementSession) -> None:
    session.ask("add", ROW)
    with pytest.raises(FAILURES) as failure:
        session.ask("add", ROW)
    assert session.classify(failure.value) == "error:cratedb-DuplicateKeyException"


def test_a_column_that_no_answer_has_is_named(target: Target, session: CrateStatementSession) -> None:
    session.ask("add", ROW)
    get = replace(RECORDS.statements["get"], expect=Expected(columns={"nmber": "id"}))
    records = replace(RECORDS, statements={**RECORDS.statements, "get": get})
    with (
        connect(records, target) as other,
        pytest.raises(FAILURES, match="get expects a column nmber, but its answer has id, label,"),
    ):
        other.ask("get", ROW)


@pytest.mark.parametrize("answer", [{}, {"rowcount": None}])
def test_a_write_without_a_number_of_rows_is_unreadable(
    peer: CratePeer, session: CrateStatementSession, answer: dict[str, object]
) -> None:
    peer.faults.append(Fault(200, json.dumps({"cols": [], "rows": [[]], **answer}).encode()))
    with pytest.raises(FAILURES) as failure:
        session.ask("rename", ROW)
    assert session.classify(failure.value) == "error:UnreadableAnswerError"


def test_a_table_in_another_schema_would_have_copies_of_its_own(target: Target) -> None:
    records = replace(RECORDS, schema=("CREATE TABLE other.things (id BIGINT PRIMARY KEY)",))
    with connect(records, target) as session:
        with pytest.raises(StepFailed, match="name tables without a schema") as refused:
            session.create_schema(records)
        assert refused.value.step == "schema"


@pytest.mark.usefixtures("session")
def test_a_count_that_the_server_refuses_is_named(target: Target) -> None:
    with connect(replace(RECORDS, count="SELECT id FROM nothing"), target) as session:
        with pytest.raises(
            StepFailed, match=r"RelationUnknown.*it was: .*SELECT id FROM nothing"
        ) as refused:
            session.stored()
        assert refused.value.step == "count"
