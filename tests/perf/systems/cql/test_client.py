"""The edge of the CQL driver: what is asked, what is reported later, and errors by kind."""

from collections.abc import Callable, Sequence

import pytest
from cassandra import (
    InvalidRequest,
    OperationTimedOut,
    ReadTimeout,
    Unavailable,
    WriteTimeout,
    WriteType,
)
from cassandra.cluster import NoHostAvailable

from perf.systems.contract import Target
from perf.systems.cql.client import CqlSession
from perf.systems.sessions import AnswersLater
from perf.workloads.sensor import SensorReading

TARGET = Target(
    system="cassandra",
    addresses=("127.0.0.1",),
    port=9042,
    replication_factor=3,
    consistency="quorum",
    timeout_s=1.0,
)


class Prepared(str):  # noqa: SLOT000  the driver's have settable fields
    """Stands in for a prepared statement."""

    fetch_size: int | None = 5000


class Recorder:
    """Stands in for the driver's session: keeps what it is asked, answers with fixed rows."""

    def __init__(self, rows: tuple[SensorReading, ...] = ()) -> None:
        self.rows = rows
        self.asked: list[tuple[object, ...]] = []
        self.refuses: Exception | None = None

    def prepare(self, statement: str) -> Prepared:
        return Prepared(statement)

    def execute_async(self, *asked: object) -> "Recorder":
        self.asked.append(asked)
        if self.refuses is not None:
            raise self.refuses
        return self

    def add_callbacks(
        self, callback: Callable[[object], None], errback: Callable[[Exception], None]
    ) -> None:
        self.answer, self.fail = callback, errback

    def execute(self, *asked: object, **_: object) -> tuple[SensorReading, ...]:
        self.asked.append(asked)
        return self.rows


def test_a_reading_is_bound_in_the_order_of_the_columns() -> None:
    reading = SensorReading(
        "d7", 1_700_000_000_123, (0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5), b"\x00\xff"
    )
    driver = Recorder((reading,))
    session = CqlSession(driver, TARGET)
    session.write([reading])
    assert session.read_latest("d7", 10) == (reading,)
    (insert, row), (select, question) = driver.asked
    assert "INSERT INTO knickpoint.sensor_readings (device_id, ts, temperature" in str(insert)
    assert row == ("d7", 1_700_000_000_123, *reading.values, b"\x00\xff")
    assert "WHERE device_id = ? LIMIT ?" in str(select)
    assert question == ("d7", 10)


def test_an_answer_may_come_later_and_is_given_once() -> None:
    reading = SensorReading(
        "d7", 1_700_000_000_123, (0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5), b"\x00\xff"
    )
    driver, reported = Recorder(), []
    session = CqlSession(driver, TARGET)
    assert isinstance(session, AnswersLater)

    def done(answer: Sequence[SensorReading] | None, error: Exception | None) -> None:
        reported.append((answer, error))

    session.write_soon([reading], done)
    assert reported == []
    driver.answer(None)
    session.read_latest_soon("d7", 10, done)
    driver.answer([reading])
    assert reported == [(None, None), ((reading,), None)]
    # Never in pages: a page would be taken for the whole answer.
    (select, _) = driver.asked[-1]
    assert isinstance(select, Prepared)
    assert select.fetch_size is None


def test_what_fails_later_is_reported_and_has_a_kind() -> None:
    driver, reported = Recorder(), []
    session = CqlSession(driver, TARGET)
    reading = SensorReading("d7", 1, (0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5), b"")

    def done(answer: object, error: Exception | None) -> None:
        assert answer is None
        assert error is not None
        reported.append(session.classify(error))

    session.write_soon([reading], done)
    driver.fail(OperationTimedOut())
    session.read_latest_soon("d7", 10, done)
    driver.fail(Unavailable("2 of 3"))
    driver.refuses = TypeError("cannot be bound")
    session.write_soon([reading], done)
    assert reported == ["timeouts", "error:unavailable", "error:TypeError"]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OperationTimedOut(), "timeouts"),
        (ReadTimeout("late"), "timeouts"),
        (WriteTimeout("late", write_type=WriteType.SIMPLE), "timeouts"),
        (Unavailable("2 of 3"), "error:unavailable"),
        (NoHostAvailable("none", {}), "error:no-host-available"),
        (InvalidRequest("bad"), "error:InvalidRequest"),
    ],
)
def test_errors_have_kinds(error: Exception, kind: str) -> None:
    classify: Callable[[Exception], str] = CqlSession(Recorder(), TARGET).classify
    assert classify(error) == kind
