"""What CrateDB's client says over HTTP, how it takes each answer, and how tables are laid out."""

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Self

import pytest
from crate.client.exceptions import ConnectionError as NoAnswerError
from crate.client.exceptions import IntegrityError
from crate_peer import CratePeer, Fault
from urllib3.exceptions import ProtocolError

from perf.systems.contract import Target
from perf.systems.cratedb.client import (
    FAILURES,
    RefusedRowsError,
    SqlClient,
    UnreadableAnswerError,
    check_layout,
    classify,
    open_client,
    table_options,
)

TARGET = Target(
    system="cratedb",
    addresses=("127.0.0.1",),
    port=4200,
    replication_factor=3,
    consistency="quorum",
    timeout_s=5.0,
)
TABLE = (
    "CREATE TABLE IF NOT EXISTS knickpoint.t (id TEXT PRIMARY KEY, x DOUBLE PRECISION) "
    "WITH (number_of_replicas = 0)"
)
INSERT = "INSERT INTO knickpoint.t (id, x) VALUES (?, ?)"


@pytest.fixture
def client(peer: CratePeer) -> Iterator[SqlClient]:
    client = SqlClient([peer.address], peer.port, 5.0)
    client.ask(TABLE)
    yield client
    client.close()


def test_arguments_travel_as_json_and_come_back(client: SqlClient, peer: CratePeer) -> None:
    client.ask(INSERT, ("ü", 0.1))
    client.ask_each_row(INSERT, [["b", 5e-324], ["c", -0.0]])
    assert client.ask("SELECT id, x FROM knickpoint.t WHERE id = ?", ("ü",)) == [["ü", 0.1]]
    one, several = peer.statements("INSERT")
    assert (one.arguments, one.is_bulk) == (["ü", 0.1], False)
    assert (several.arguments, several.is_bulk) == ([["b", 5e-324], ["c", -0.0]], True)


def test_queries_see_the_last_refresh_and_look_ups_everything(client: SqlClient) -> None:
    client.ask(INSERT, ("a", 1.0))
    everything = "SELECT id FROM knickpoint.t ORDER BY id"
    assert client.ask(everything) == []
    assert client.ask("SELECT id FROM knickpoint.t WHERE id = ?", ("a",)) == [["a"]]
    client.ask("REFRESH TABLE knickpoint.t")
    assert client.ask(everything) == [["a"]]


def test_a_refusal_is_named_after_its_exception(client: SqlClient) -> None:
    client.ask(INSERT, ("a", 1.0))
    with pytest.raises(IntegrityError) as failure:
        client.ask(INSERT, ("a", 1.0))
    assert classify(failure.value) == "error:cratedb-DuplicateKeyException"


def test_one_refused_row_of_several_is_a_failure_of_them_all(client: SqlClient) -> None:
    with pytest.raises(RefusedRowsError, match="1 of 3 rows were refused") as failure:
        client.ask_each_row(INSERT, [["a", 1.0], ["b", 2.0], ["a", 3.0]])
    assert classify(failure.value) == "error:cratedb-DuplicateKeyException"
    assert client.ask("SELECT x FROM knickpoint.t WHERE id = ?", ("b",)) == [[2.0]]


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (b'{"rowcount": -2, "error": {"code": 4091, "message": "There[x]"}}', "error:cratedb-There"),
        (b'{"rowcount": -2, "error_message": "There[x]"}', "error:cratedb-There"),
        (b"{}", "error:RefusedRowsError"),
        (b"7", "error:RefusedRowsError"),
        (b'{"rowcount": null, "error": "there"}', "error:RefusedRowsError"),
    ],
)
def test_a_refused_row_is_named_as_well_as_the_server_does(
    client: SqlClient, peer: CratePeer, result: bytes, kind: str
) -> None:
    peer.faults.append(Fault(200, b'{"cols": [], "results": [{"rowcount": 1}, %b]}' % result))
    with pytest.raises(RefusedRowsError, match="1 of 2 rows were refused") as failure:
        client.ask_each_row(INSERT, [["a", 1.0], ["b", 2.0]])
    assert classify(failure.value) == kind


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault.refusal(500, 5002, "Unavailable[shards]"), "error:cratedb-Unavailable"),
        (Fault.refusal(404, 4041, "Relation unknown"), "error:ProgrammingError"),
        (Fault.refusal(503, 5030, "NodeDisconnected[s2]"), "error:cratedb-NodeDisconnected"),
        (Fault(503, b'{"error": "MasterNotDiscovered[s2]"}'), "error:cratedb-MasterNotDiscovered"),
        (Fault(502, b"bad gateway"), "error:http-502"),
        (Fault(503, b'{"error": "text"}'), "error:http-503"),
        (Fault(503, b""), "error:http-503"),
        (Fault(504, b"[" * 100_000), "error:http-504"),
        (Fault(500, b"[" * 100_000), "error:UnreadableAnswerError"),
        (Fault(500, b"[]"), "error:UnreadableAnswerError"),
        (Fault(200, b"[" * 100_000), "error:ProgrammingError"),
        (Fault(200, b"{}", announced=10**18), "error:ProgrammingError"),
        (Fault(200, b'{"cols": ['), "error:ProgrammingError"),
        (Fault(200, b"[]"), "error:UnreadableAnswerError"),
        (Fault(200, b'{"cols": []}'), "error:UnreadableAnswerError"),
        (Fault(301, b""), "error:UnreadableAnswerError"),
        (Fault(), "error:ConnectionError"),
    ],
)
def test_each_fault_is_one_failed_attempt_with_a_name(
    client: SqlClient, peer: CratePeer, fault: Fault, kind: str
) -> None:
    asked = len(peer.asked)
    peer.faults.append(fault)
    with pytest.raises(FAILURES) as failure:
        client.ask("SELECT 1")
    assert classify(failure.value) == kind
    assert (len(peer.asked), len(peer.faults)) == (asked, 0)
    assert client.ask("SELECT 1") == [[1]]


def test_no_results_for_some_rows_is_no_answer(client: SqlClient, peer: CratePeer) -> None:
    peer.faults.append(Fault(200, b'{"cols": [], "results": [{"rowcount": 1}]}'))
    with pytest.raises(UnreadableAnswerError, match="no results for 2 rows"):
        client.ask_each_row(INSERT, [["a", 1.0], ["b", 2.0]])


def test_silence_is_a_timeout_and_is_not_asked_again(peer: CratePeer) -> None:
    client = SqlClient([peer.address], peer.port, 0.1)
    peer.faults.append(Fault(is_silent=True))
    with pytest.raises(FAILURES) as failure:
        client.ask("SELECT 1")
    client.close()
    assert classify(failure.value) == "timeouts"
    assert not peer.asked


def test_a_slow_statement_has_a_limit_of_its_own(
    peer: CratePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perf.systems.cratedb.client._SLOW_S", 0.1)
    client = SqlClient([peer.address], peer.port, 60.0)
    peer.faults.append(Fault(is_silent=True))
    with pytest.raises(FAILURES) as failure:
        client.ask("SELECT 1", is_slow=True)
    client.close()
    assert classify(failure.value) == "timeouts"


@pytest.mark.slow
def test_who_takes_no_connection_keeps_an_operation_no_longer_than_its_limit() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            client = SqlClient(["127.0.0.1"], port, 1.1)
            begin_s = time.monotonic()
            with pytest.raises(NoAnswerError) as failure:
                client.ask("SELECT 1")
            assert 1.0 < time.monotonic() - begin_s < 3.0
    assert classify(failure.value) == "error:ConnectionError"


class Rude:
    """A server that does one thing with each connection once something has come; it counts them.

    By default it does nothing until it is left.
    """

    def __init__(self, do: Callable[[socket.socket], None] | None = None) -> None:
        self.connections = 0
        self._do = do or self._ignore
        self._left = threading.Event()
        self._listening = socket.socket()
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._listening.bind(("127.0.0.1", 0))
        self._listening.listen()
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # until it is left, or nobody listens any longer
            while True:
                connection, _ = self._listening.accept()
                self.connections += 1
                with connection:
                    connection.recv(16)
                    with contextlib.suppress(OSError):
                        self._do(connection)

    def _ignore(self, _: socket.socket) -> None:
        self._left.wait()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listening.close()


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _drip(at_once: bytes) -> Callable[[socket.socket], None]:
    def send(connection: socket.socket) -> None:
        connection.sendall(at_once)
        for _ in range(200):
            connection.sendall(b"1")
            time.sleep(0.02)

    return send


def test_a_connection_that_is_reset_is_one_failed_attempt(caplog: pytest.LogCaptureFixture) -> None:
    with Rude(_reset) as rude:
        client = SqlClient(["127.0.0.1"], rude.port, 5.0)
        with pytest.raises(NoAnswerError) as failure:
            client.ask_each_row(INSERT, [["a", 1.0]])
    assert classify(failure.value) == "error:ConnectionError"
    assert (rude.connections, caplog.records) == (1, [])


@pytest.mark.parametrize(
    "do",
    [
        pytest.param(_drip(b"HTTP/1.1 200 "), id="head"),
        pytest.param(_drip(b"HTTP/1.1 200 -\r\ncontent-length: 1000\r\n\r\n"), id="body"),
        pytest.param(_drip(b"HTTP/1.1 200 -\r\ntransfer-encoding: chunked\r\n\r\n"), id="chunk"),
        pytest.param(None, id="nothing"),
    ],
)
def test_an_answer_that_drips_ends_with_the_limit_of_its_operation(
    do: Callable[[socket.socket], None] | None,
) -> None:
    with Rude(do) as rude:
        client = SqlClient(["127.0.0.1"], rude.port, 0.3)
        begin_s = time.monotonic()
        with pytest.raises(NoAnswerError) as failure:
            client.ask("SELECT 1")
        assert 0.25 < time.monotonic() - begin_s < 0.9
    assert classify(failure.value) == "timeouts"
    assert rude.connections == 1


def test_who_does_not_read_what_is_sent_is_a_timeout() -> None:
    with Rude() as rude:
        client = SqlClient(["127.0.0.1"], rude.port, 0.3)
        with pytest.raises(NoAnswerError) as failure:
            client.ask("SELECT ?", (os.urandom(4_000_000).hex(),))
    assert isinstance(failure.value.__cause__, ProtocolError)
    assert classify(failure.value) == "timeouts"


def test_a_kept_connection_has_the_limit_anew(peer: CratePeer) -> None:
    client = SqlClient([peer.address], peer.port, 0.3)
    for _ in range(2):
        assert client.ask("SELECT 1") == [[1]]
        time.sleep(0.2)  # nothing is waited for: in all, it is more than the limit
    assert client.ask("SELECT 1") == [[1]]
    client.close()
    assert peer.connections == 1


def test_a_node_has_an_address_of_either_version() -> None:
    with CratePeer("::1") as peer:
        client = SqlClient([peer.address], peer.port, 5.0)
        assert client.ask("SELECT 1") == [[1]]
        client.close()


def test_a_large_request_is_understood(client: SqlClient, peer: CratePeer) -> None:
    client.ask_each_row(INSERT, [["x" * 10_000, 1.0], ["y", 2.0]])
    assert peer.statements("INSERT")[0].arguments[0][0] == "x" * 10_000


def test_a_connection_is_kept_and_one_that_ended_is_replaced(
    client: SqlClient, peer: CratePeer
) -> None:
    for _ in range(5):
        client.ask("SELECT 1")
    assert peer.connections == 1
    peer.drop_idle()
    assert client.ask("SELECT 1") == [[1]]
    assert peer.connections == 2


def test_nobody_to_send_to_is_no_timeout() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        client = SqlClient(["127.0.0.1"], unused.getsockname()[1], 5.0)
        with pytest.raises(NoAnswerError) as failure:
            client.ask("SELECT 1")
    assert classify(failure.value) == "error:ConnectionError"


def test_nodes_are_asked_in_turn() -> None:
    with CratePeer("127.0.0.1") as one, CratePeer("127.0.0.2", one.port) as other:
        client = SqlClient([one.address, other.address], one.port, 5.0)
        for _ in range(6):
            client.ask("SELECT 1")
        client.close()
        assert (len(one.asked), len(other.asked)) == (3, 3)


def test_connecting_asks_a_node_once_and_changes_nothing(peer: CratePeer) -> None:
    with open_client(replace(TARGET, addresses=(peer.address,), port=peer.port)):
        pass
    assert [asked.statement for asked in peer.asked] == ["SELECT 1"]


@pytest.mark.parametrize(
    ("consistency", "copies", "active"),
    [("one", 3, 1), ("quorum", 3, 2), ("all", 3, 3), ("quorum", 2, 2), ("quorum", 1, 1), ("all", 1, 1)],
)
def test_consistency_is_how_many_copies_a_write_waits_for(
    consistency: str, copies: int, active: int
) -> None:
    target = replace(TARGET, consistency=consistency, replication_factor=copies)
    assert table_options(target) == (
        f'WITH (number_of_replicas = {copies - 1}, "write.wait_for_active_shards" = {active})'
    )


def test_layout_says_how_many_shards_and_how_often_they_are_refreshed() -> None:
    laid_out = replace(TARGET, layout={"shards": 12, "refresh_interval_ms": 0})
    options = 'number_of_replicas = 2, "write.wait_for_active_shards" = 2'
    assert table_options(TARGET, shards=5) == f"CLUSTERED INTO 5 SHARDS WITH ({options})"
    assert table_options(TARGET, clustered_by="d") == f"CLUSTERED BY (d) WITH ({options})"
    assert table_options(laid_out, clustered_by="d", shards=5) == (
        f"CLUSTERED BY (d) INTO 12 SHARDS WITH ({options}, refresh_interval = 0)"
    )


def test_layout_is_checked_all_at_once() -> None:
    assert check_layout({"shards": 1, "refresh_interval_ms": 0}) == ()
    assert check_layout({"shards": 0, "refresh_interval_ms": 1.5, "replicas": 1}) == (
        "shards: is 0; set a whole number from 1 to 1000",
        "refresh_interval_ms: is 1.5; set a whole number from 0 to 3600000",
        "replicas: is no word of this system's layouts; known: refresh_interval_ms, shards",
    )
    assert check_layout({"shards": True})
    assert check_layout({"shards": 100_000_000})
