"""The edge of the CQL driver: what is asked, what is reported later, and errors by kind."""

import errno
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from threading import Lock

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
from cassandra.connection import ConnectionBusy
from cassandra.io import libevwrapper as libev
from cassandra.io.libevreactor import LibevConnection

from perf.systems.contract import Target
from perf.systems.cql.client import FIRST_TOKEN, RING, CqlSession, DriverConnection, read_all
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


READING = SensorReading("d7", 1_700_000_000_123, (0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5), b"\x00\xff")
ROW = ("d7", datetime(2023, 11, 14, 22, 13, 20, 123_000), *READING.values, b"\x00\xff")  # noqa: DTZ001  as the driver gives it


class Prepared(str):  # noqa: SLOT000  the driver's have settable fields
    """Stands in for a prepared statement."""

    fetch_size: int | None = 5000


class Recorder:
    """Stands in for the driver's session: keeps what it is asked, answers with fixed rows."""

    def __init__(self, rows: tuple[tuple[object, ...], ...] = ()) -> None:
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

    def execute(self, *asked: object, **_: object) -> tuple[tuple[object, ...], ...]:
        self.asked.append(asked)
        return self.rows


def test_a_reading_is_bound_in_the_order_of_the_columns() -> None:
    driver = Recorder((ROW,))
    session = CqlSession(driver, TARGET)
    session.write([READING])
    assert session.read_latest("d7", 10) == (READING,)
    (insert, row), (select, question) = driver.asked
    assert "INSERT INTO knickpoint.sensor_readings (device_id, ts, temperature" in str(insert)
    assert row == ("d7", 1_700_000_000_123, *READING.values, b"\x00\xff")
    assert "WHERE device_id = ? LIMIT ?" in str(select)
    assert question == ("d7", 10)


def test_an_answer_may_come_later_and_is_given_once() -> None:
    driver, reported = Recorder(), []
    session = CqlSession(driver, TARGET)
    assert isinstance(session, AnswersLater)

    def done(answer: Sequence[SensorReading] | None, error: Exception | None) -> None:
        reported.append((answer, error))

    session.write_soon([READING], done)
    assert reported == []
    driver.answer(None)
    session.read_latest_soon("d7", 10, done)
    driver.answer([ROW])
    assert reported == [(None, None), ((READING,), None)]
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


class Ring:
    """A session whose rows are their own tokens; it answers two at a time, and counts what waits."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens = tokens
        self.under_way = self.most_under_way = 0

    def prepare(self, query: str) -> str:
        return query

    def execute_async(self, _: str, between: tuple[int, int], *, timeout: float) -> "Pages":
        assert timeout > 10
        low, high = between
        return Pages(self, [token for token in self.tokens if low < token <= high])


class Pages:
    """The answer to one request of a `Ring`, as the driver's `ResponseFuture` has it."""

    def __init__(self, ring: Ring, rows: Sequence[int]) -> None:
        self._ring, self._rest = ring, rows
        self.start_fetching_next_page()

    def start_fetching_next_page(self) -> None:
        self.current_rows, self._rest = self._rest[:2], self._rest[2:]
        self._ring.under_way += 1
        self._ring.most_under_way = max(self._ring.most_under_way, self._ring.under_way)

    def result(self) -> "Pages":
        self._ring.under_way -= 1
        return self

    @property
    def has_more_pages(self) -> bool:
        return bool(self._rest)


def test_each_row_of_the_ring_is_read_once_with_few_pages_under_way() -> None:
    last = FIRST_TOKEN + RING - 1
    crowded = range(-7, 8)
    tokens = [FIRST_TOKEN + 1, *crowded, RING // 4, last - 1, last]
    ring = Ring(tokens)
    assert sorted(read_all(ring, "SELECT a FROM b", "a")) == tokens
    assert (ring.under_way, ring.most_under_way) == (0, 4)
    assert list(read_all(Ring([]), "SELECT a FROM b", "a")) == []


class FullSocket:
    """Takes nothing more."""

    def send(self, data: bytes) -> int:
        raise BlockingIOError(errno.EAGAIN, "full")


def send_behind_a_full_socket(kind: type[LibevConnection]) -> list[bytes]:
    """Ask a connection whose socket was full to send a message; give what waits there then."""
    connection = kind.__new__(kind)
    connection.__dict__.update(
        is_defunct=False, is_closed=False, _requests={}, protocol_version=4, compressor=None
    )
    connection.__dict__.update(allow_beta_protocol_version=False, _is_checksumming_enabled=False)
    connection.__dict__.update(deque=deque(), _deque_lock=Lock(), _socket=FullSocket())
    kind.initialize_reactor()
    connection.push(b"first")
    connection.handle_write(None, libev.EV_WRITE)
    connection.send_msg(None, 1, print, encoder=lambda *_, **__: b"second")
    return list(connection.deque)


def test_an_operation_waits_where_the_socket_is_full_and_is_not_refused() -> None:
    assert send_behind_a_full_socket(DriverConnection) == [b"first", b"second"]


def test_the_driver_itself_would_refuse_it() -> None:
    # Once it no longer does, what DriverConnection overrides can go.
    with pytest.raises(ConnectionBusy):
        send_behind_a_full_socket(LibevConnection)


class Operation:
    """An operation of the driver with its answer, without a server."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def time_out(self) -> None:
        self.ended.append("late")


def test_an_operation_that_has_ended_is_let_go_of_before_its_time_limit() -> None:
    DriverConnection.initialize_reactor()
    operation = Operation()
    limit = DriverConnection.create_timer(1000.0, operation.time_out)
    known = weakref.ref(operation)
    del operation
    assert known() is not None
    limit.cancel()
    assert known() is None


def test_a_time_limit_is_kept_unless_the_operation_has_ended() -> None:
    DriverConnection.initialize_reactor()
    late, ended = Operation(), Operation()
    limits = [DriverConnection.create_timer(1000.0, one.time_out) for one in (late, ended)]
    limits[1].cancel()
    # As the driver's event loop does with its timers.
    finished = [limit.timer.finish(limit.timer.end) for limit in limits]
    assert finished == [True, True]
    assert (late.ended, ended.ended) == (["late"], [])
