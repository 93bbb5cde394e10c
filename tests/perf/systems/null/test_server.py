"""The server as a process, with its own client: what is planted is what happens."""

import contextlib
import json
import os
import queue
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perf.model.records import Stored
from perf.systems.contract import Target
from perf.systems.null.client import NullSession, Refused
from perf.systems.null.record import Deeds, read_record
from perf.systems.null.wire import PORT
from perf.workloads.sensor import SensorReading

# Loopback has sixteen million addresses: two runs of the tests take two of them.
ADDRESS = f"127.78.{os.getpid() >> 8 & 255}.{os.getpid() & 255 or 1}"
TARGET = Target(
    system="null",
    addresses=(ADDRESS,),
    port=PORT,
    replication_factor=1,
    consistency="one",
    timeout_s=5.0,
)
READING = SensorReading("sensor-000000001", 1_700_000_000_000, (0.0,) * 8, b"x" * 12)


def _connect(process: subprocess.Popen[bytes], limit_s: float = 10.0) -> NullSession:
    end_s = time.monotonic() + limit_s
    while True:
        try:
            return NullSession(TARGET)
        except ConnectionRefusedError:
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < end_s, "the server does not listen"
            time.sleep(0.02)


class Server:
    """A running server, its client, and the record that it leaves."""

    def __init__(self, directory: Path, settings: dict[str, Any]) -> None:
        self.record = directory / "record.bin"
        reported = {"address": ADDRESS, "record": str(self.record), "settings": settings}
        (directory / "null.json").write_text(json.dumps(reported))
        command = [sys.executable, "-m", "perf.systems.null.server", str(directory / "null.json")]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self.session = _connect(self.process)

    def end(self) -> Deeds:
        self.process.terminate()
        assert self.process.wait(10) == 0
        return read_record(self.record)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    with contextlib.ExitStack() as stack:

        def start(**settings: object) -> Server:
            server = Server(tmp_path, {"keep_record": True, **settings})
            stack.callback(server.process.wait)
            stack.callback(server.process.kill)
            stack.callback(server.session.close)
            return server

        yield start


def test_sums_of_what_was_acknowledged_and_no_rows(serve: Callable[..., Server]) -> None:
    session = serve().session
    session.write((READING, READING))
    session.write((READING,))
    assert session.stored() == Stored(rows=3, payload_bytes=300)
    assert session.read_latest(READING.device_id, 3) == ()


def test_the_record_holds_each_operation_with_its_times(serve: Callable[..., Server]) -> None:
    server = serve(service_time_ms=3, slow_every=4, slow_ms=30)
    before_s = time.time()
    for _ in range(8):
        server.session.write((READING,))
    deeds = server.end()
    planned_ms = (deeds.due_s - deeds.arrived_s) * 1000
    assert np.round(planned_ms, 3).tolist() == [3, 3, 3, 30] * 2
    assert (deeds.answered_s >= deeds.due_s).all()
    assert before_s - 1 < deeds.arrived_s[0] < time.time() + 1
    assert np.unique(deeds.ts_ms).tolist() == [READING.ts_ms]


def test_calls_that_answer_later_share_a_connection(serve: Callable[..., Server]) -> None:
    server = serve(service_time_ms=50)
    ended: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
    for _ in range(20):
        server.session.write_soon((READING,), lambda _, failure: ended.put(failure))
    assert [ended.get(timeout=5) for _ in range(20)] == [None] * 20
    deeds = server.end()
    assert deeds.arrived_s.max() < deeds.answered_s.min(), "they were not outstanding together"


def test_a_read_later_finds_nothing(serve: Callable[..., Server]) -> None:
    session = serve().session
    found: queue.SimpleQueue[object] = queue.SimpleQueue()
    session.read_latest_soon("d", 3, lambda answer, failure: found.put((answer, failure)))
    assert found.get(timeout=5) == ((), None)


def test_a_refusal_raises_and_stores_nothing(serve: Callable[..., Server]) -> None:
    server = serve(refuse_every=2)
    server.session.write((READING,))
    with pytest.raises(Refused) as refusal:
        server.session.write((READING,))
    assert server.session.classify(refusal.value) == "error:Refused"
    assert server.session.stored().rows == 1
    assert server.end().is_refused.tolist() == [False, True]


def test_capacity_is_slots_by_service_time_whatever_timers_do(serve: Callable[..., Server]) -> None:
    server = serve(service_time_ms=2, slots=2)
    ended: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
    for _ in range(400):
        server.session.write_soon((READING,), lambda _, failure: ended.put(failure))
    assert [ended.get(timeout=5) for _ in range(400)] == [None] * 400
    deeds = server.end()
    # While more wait than there are slots, nothing but the plan decides: 1 000 per second.
    due_s = np.sort(deeds.due_s)
    assert due_s[-1] - due_s[199] == pytest.approx(200 / 1000, abs=0.0001)


@pytest.mark.slow
def test_no_answer_in_time_is_a_time_out_in_both_forms(serve: Callable[..., Server]) -> None:
    serve(service_time_ms=500)
    session = NullSession(replace(TARGET, timeout_s=0.1))
    try:
        with pytest.raises(TimeoutError) as failure:
            session.write((READING,))
        assert session.classify(failure.value) == "timeouts"
        ended: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
        session.write_soon((READING,), lambda _, failure: ended.put(failure))
        assert isinstance(ended.get(timeout=5), TimeoutError)
    finally:
        session.close()


def test_what_is_never_to_be_answered_is_not_and_the_others_are(serve: Callable[..., Server]) -> None:
    server = serve(never_answer_every=2)
    ended: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
    for _ in range(3):
        server.session.write_soon((READING,), lambda _, failure: ended.put(failure))
    assert [ended.get(timeout=5) for _ in range(2)] == [None, None]
    assert sorted(np.isinf(server.end().answered_s).tolist()) == [False, False, True]


def test_what_was_never_answered_is_in_the_record_all_the_same(serve: Callable[..., Server]) -> None:
    server = serve(service_time_ms=60_000)
    impatient = NullSession(replace(TARGET, timeout_s=0.1))
    with pytest.raises(TimeoutError):
        impatient.write((READING,))
    impatient.close()
    server.session.write_soon((READING,), lambda _, __: None)
    server.session.stored()  # answered after it, as both share a connection
    assert np.isinf(server.end().answered_s).all()


def test_a_server_that_dies_fails_what_is_outstanding(serve: Callable[..., Server]) -> None:
    server = serve(service_time_ms=60_000)
    ended: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
    server.session.write_soon((READING,), lambda _, failure: ended.put(failure))
    server.process.kill()
    assert isinstance(ended.get(timeout=5), OSError)


def test_a_connection_that_the_server_ended_fails_what_comes_after_at_once() -> None:
    ended: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
    with socket.create_server((ADDRESS, 0)) as peer:
        session = NullSession(replace(TARGET, port=peer.getsockname()[1], timeout_s=60.0))
        # It takes what is sent for as long as it likes, so that sending alone never fails.
        with peer.accept()[0] as its_end:
            its_end.shutdown(socket.SHUT_WR)
            for _ in range(3):
                session.write_soon((READING,), lambda _, failure: ended.put(failure))
                assert isinstance(ended.get(timeout=5), ConnectionResetError)
            with pytest.raises(ConnectionResetError):
                session.stored()
            with pytest.raises(ConnectionResetError):
                session.write((READING,))
            session.close()
