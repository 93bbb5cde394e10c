"""Checks of a session of the sensor workload."""

import queue
import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from perf.model.records import Sensor
from perf.systems.conformance.check import Check, Skipped, require, show
from perf.systems.sessions import AnswersLater, SensorSession
from perf.workloads.sensor import SensorReading, payload_bytes

RECORDS = Sensor(kind="sensor", devices=8, payload_bytes=1000, latest_count=3)
LIMIT_S = 30.0
"""How long an answer that comes later may take."""
THREADS = 8

# Values that a detour through text, single precision or seconds would change.
_VALUES = (0.1, 1 / 3, -0.0, 5e-324, 1.7976931348623157e308, -1e-9, 2.0**53 + 1, 1e22)
_EARLY_MS = 1_700_000_000_123


def make_reading(device: str, place: int) -> SensorReading:
    """Return a reading whose values are hard to keep; those of one device differ by place."""
    values = _VALUES[place % 8 :] + _VALUES[: place % 8]
    metadata = bytes((byte + place) % 256 for byte in range(700))
    a, b, c, d, e, f, g, h = values
    return SensorReading(device, _EARLY_MS + place, (a, b, c, d, e, f, g, h), metadata)


def _bits(reading: SensorReading) -> tuple[str, int, bytes, bytes]:
    return reading.device_id, reading.ts_ms, struct.pack("8d", *reading.values), reading.metadata


def _places(readings: Sequence[SensorReading]) -> list[int]:
    return [reading.ts_ms - _EARLY_MS for reading in readings]


def _create_schema_again(session: SensorSession) -> str:
    session.write((make_reading("schema", 0),))
    session.create_schema(RECORDS)
    show(session)
    found = session.read_latest("schema", 3)
    require(len(found) == 1, f"{len(found)} readings of 1 written before")
    return "1 reading written before is still there"


def _give_newest_first(session: SensorSession) -> str:
    for place in (3, 0, 4, 1, 2):
        session.write((make_reading("order", place),))
    show(session)
    found = _places(session.read_latest("order", 3))
    require(found == [4, 3, 2], f"readings {found}, but 4, 3, 2 were to come")
    return "the newest 3 of 5, newest first"


def _keep_every_bit(session: SensorSession) -> str:
    written = [make_reading("bits", place) for place in range(8)]
    for reading in written:
        session.write((reading,))
    show(session)
    found = session.read_latest("bits", 8)
    require(len(found) == len(written), f"{len(found)} readings of {len(written)} written")
    for came, sent in zip(found, reversed(written), strict=True):
        require(_bits(came) == _bits(sent), f"{came!r:.200}, but {sent!r:.200} was written")
    return f"{len(written)} readings of 8 values and {len(written[0].metadata)} bytes"


def _know_no_stranger(session: SensorSession) -> str:
    found = session.read_latest("nobody", 3)
    require(not found, f"{len(found)} readings of a device that wrote none")
    return "no reading"


def _give_what_there_is(session: SensorSession) -> str:
    session.write((make_reading("few", 0),))
    show(session)
    found = session.read_latest("few", 10)
    require(len(found) == 1, f"{len(found)} readings of 1 written")
    return "1 of 10 asked for"


def _count_what_is_stored(session: SensorSession) -> str:
    before = session.stored()
    device = f"stored-{before.rows}"  # so that it is new whenever this is asked
    for place in range(7):
        session.write((make_reading(device, place),))
    after = session.stored()
    rows, size = after.rows - before.rows, after.payload_bytes - before.payload_bytes
    wanted = 7 * payload_bytes(make_reading(device, 0))
    require(
        (rows, size) == (7, wanted), f"{rows} rows and {size} bytes, but 7 and {wanted} were written"
    )
    return f"{rows} rows, {size} bytes"


def _store_batches(session: SensorSession) -> str:
    before = session.stored()
    device = f"batch-{before.rows}"
    batch = tuple(make_reading(device, place) for place in range(5))
    session.write(batch)
    rows = session.stored().rows - before.rows
    require(rows == 5, f"{rows} rows of 5 written in one request")
    found = tuple(session.read_latest(device, 5))
    require(found == batch[::-1], f"readings {_places(found)} of a batch of 5")
    return "5 readings in one request"


def _answer_later(session: SensorSession) -> str:
    if not isinstance(session, AnswersLater):
        raise Skipped("this driver has no calls that answer later")
    batch = tuple(make_reading("later", place) for place in range(3))
    written: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
    session.write_soon(batch, lambda _, failure: written.put(failure))
    failure = written.get(timeout=LIMIT_S)
    require(failure is None, f"the write failed: {failure!r}")
    show(session)
    read: queue.SimpleQueue[tuple[Sequence[SensorReading] | None, Exception | None]] = (
        queue.SimpleQueue()
    )
    session.read_latest_soon("later", 3, lambda answer, failure: read.put((answer, failure)))
    answer, failure = read.get(timeout=LIMIT_S)
    require(failure is None and answer is not None, f"the read failed: {failure!r}")
    found = tuple(answer or ())
    require(found == batch[::-1], f"readings {_places(found)} of 3 written")
    return "3 readings written and read"


def _serve_threads(session: SensorSession) -> str:
    def work(thread: int) -> str:
        device = f"thread-{thread}"
        for place in range(20):
            session.write((make_reading(device, place),))
        show(session)
        found = list(session.read_latest(device, 20))
        wanted = [make_reading(device, place) for place in reversed(range(20))]
        return "" if found == wanted else f"{device} got readings {_places(found)}"

    with ThreadPoolExecutor(THREADS) as pool:
        wrong = [seen for seen in pool.map(work, range(THREADS)) if seen]
    require(not wrong, "; ".join(wrong))
    return f"{THREADS} threads, 20 writes and 1 read each"


CHECKS: tuple[Check[SensorSession], ...] = (
    Check("the schema may be created again, and costs no data", _create_schema_again),
    Check("the latest readings come newest first, in whatever order written", _give_newest_first),
    Check("every bit of a reading comes back", _keep_every_bit),
    Check("an unknown device has no readings", _know_no_stranger, reads_back=False),
    Check("fewer readings than asked for are all given", _give_what_there_is),
    Check(
        "what is stored is counted: each reading and its bytes", _count_what_is_stored, reads_back=False
    ),
    Check("a batch is stored like single readings", _store_batches),
    Check("an answer that comes later is the same answer", _answer_later),
    Check("threads share a session", _serve_threads),
)
