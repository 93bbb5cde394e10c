"""Records under keys on CQL: what is asked, and what is made of the answers."""

from collections.abc import Callable
from typing import Any

import pytest
from cassandra import OperationTimedOut
from cassandra.query import UNSET_VALUE

from perf.model.errors import StepFailed
from perf.model.records import PutGet, Ycsb
from perf.systems.contract import Target
from perf.systems.cql.keys import CqlKeyValueSession
from perf.systems.sessions import AnswersKeysLater, Scans

TARGET = Target(
    system="cassandra",
    addresses=("127.0.0.1",),
    port=9042,
    replication_factor=3,
    consistency="quorum",
    timeout_s=1.0,
)


class Prepared(str):  # noqa: SLOT000  the driver's have settable fields
    """Stands in for a prepared statement of a table with three fields."""

    fetch_size: int | None = 5000
    result_metadata = ("key", "field0", "field1", "field2")


class Recorder:
    """Stands in for the driver's session: keeps what it is asked, answers with fixed rows."""

    def __init__(self, rows: tuple[tuple[str | None, ...], ...] = ()) -> None:
        self.rows = rows
        self.asked: list[tuple[Any, ...]] = []

    def prepare(self, statement: str) -> Prepared:
        return Prepared(statement)

    def execute(self, *asked: object, **_: object) -> tuple[tuple[str | None, ...], ...]:
        self.asked.append(asked)
        return self.rows

    def execute_async(self, *asked: object) -> "Recorder":
        self.asked.append(asked)
        return self

    def add_callbacks(
        self, callback: Callable[[object], None], errback: Callable[[Exception], None]
    ) -> None:
        self.answer, self.fail = callback, errback


def test_a_table_has_a_column_for_each_field() -> None:
    driver = Recorder()
    session = CqlKeyValueSession(driver, TARGET)
    with pytest.raises(StepFailed, match=r"records has 3 fields, and these records have 1: .* Drop it"):
        session.create_schema(PutGet(kind="put-get", keys=1))
    session.create_schema(
        Ycsb(kind="ycsb", record_count=1, request_distribution="uniform", field_count=3)
    )
    tables = [asked for (asked,) in driver.asked if "CREATE TABLE" in asked]
    assert [one.partition("(")[2] for one in tables] == [
        "key text PRIMARY KEY, field0 text)",
        "key text PRIMARY KEY, field0 text, field1 text, field2 text)",
    ]


def test_each_operation_binds_its_values_in_the_order_of_its_statement() -> None:
    driver = Recorder((("a", "b", "c"),))
    session = CqlKeyValueSession(driver, TARGET)
    session.put("k", (b"a", b"b", b"c"))
    session.update("k", {1: b"x"})
    session.update("k", {0: b"x", 2: b"z"})
    assert session.get("k") == (b"a", b"b", b"c")
    assert [(str(statement), bound) for statement, bound in driver.asked] == [
        (
            "INSERT INTO knickpoint.records (key, field0, field1, field2) VALUES (?, ?, ?, ?)",
            ("k", "a", "b", "c"),
        ),
        ("UPDATE knickpoint.records SET field1 = ? WHERE key = ?", ("x", "k")),
        (
            "UPDATE knickpoint.records SET field0 = ?, field1 = ?, field2 = ? WHERE key = ?",
            ("x", UNSET_VALUE, "z", "k"),
        ),
        ("SELECT field0, field1, field2 FROM knickpoint.records WHERE key = ?", ("k",)),
    ]
    driver.rows = ()
    assert session.get("k") is None


def test_a_scan_goes_by_tokens_and_never_by_pages() -> None:
    driver = Recorder((("k", "a", "b", "c"),))
    session = CqlKeyValueSession(driver, TARGET)
    assert isinstance(session, Scans)
    assert session.scan("k", 7) == (("k", (b"a", b"b", b"c")),)
    ((statement, bound),) = driver.asked
    assert "WHERE token(key) >= token(?) LIMIT ?" in statement
    assert (statement.fetch_size, bound) == (None, ("k", 7))


def test_an_answer_may_come_later_and_is_given_once() -> None:
    driver, reported = Recorder(), []
    session = CqlKeyValueSession(driver, TARGET)
    assert isinstance(session, AnswersKeysLater)

    def done(answer: object, error: Exception | None) -> None:
        reported.append(answer if error is None else session.classify(error))

    session.insert_soon("k", (b"a", b"b", b"c"), done)
    session.update_soon("k", {1: b"x"}, done)
    assert reported == []
    driver.answer(None)
    for rows in ([("a", "b", "c")], []):
        session.get_soon("k", done)
        driver.answer(rows)
    session.put_soon("k", (b"a", b"b", b"c"), done)
    driver.fail(OperationTimedOut())
    assert reported == [None, (b"a", b"b", b"c"), None, "timeouts"]


def test_a_column_that_was_never_written_is_a_field_without_bytes() -> None:
    session = CqlKeyValueSession(Recorder((("a", None, "c"),)), TARGET)
    assert session.get("k") == (b"a", b"", b"c")
