"""Checks of a session of the workloads put/get and YCSB."""

import queue
from concurrent.futures import ThreadPoolExecutor

from perf.model.records import Values, Ycsb
from perf.systems.conformance.check import Check, Skipped, require
from perf.systems.conformance.sensor import LIMIT_S, THREADS
from perf.systems.sessions import AnswersKeysLater, KeyValueSession, Scans

RECORDS = Ycsb(kind="ycsb", record_count=8, request_distribution="uniform")

_PRINTABLE = bytes(range(32, 127))
_FIELDS = range(RECORDS.field_count)


def make_values(mark: str) -> tuple[bytes, ...]:
    """Return the values of all fields of a record; they differ by mark and field."""
    return tuple(f"{mark}-{field}-".encode().ljust(RECORDS.field_length, b"~") for field in _FIELDS)


def _new_key(session: KeyValueSession, mark: str) -> str:
    """Return a key that nobody has used, also where the same was asked before on the same data."""
    return f"{mark}-after-{session.stored().rows}"


def _require_found(session: KeyValueSession, key: str, wanted: Values) -> None:
    found = session.get(key)
    require(found is not None and tuple(found) == tuple(wanted), f"{found!r:.200} under {key}")


def _create_schema_again(session: KeyValueSession) -> str:
    session.put("schema", make_values("schema"))
    session.create_schema(RECORDS)
    _require_found(session, "schema", make_values("schema"))
    return "1 record written before is still there"


def _know_no_stranger(session: KeyValueSession) -> str:
    found = session.get("nobody")
    require(found is None, f"{found!r:.200} under a key that was not written")
    return "no record"


def _keep_every_byte(session: KeyValueSession) -> str:
    written = [_PRINTABLE[field:] + _PRINTABLE * (2 * field) for field in _FIELDS]
    key = _new_key(session, "bytes")
    session.insert(key, written)
    _require_found(session, key, written)
    return f"{len(written)} fields of {len(written[0])} to {len(written[-1])} bytes"


def _replace_whole_records(session: KeyValueSession) -> str:
    before, key = session.stored().rows, _new_key(session, "put")
    for mark, factor in (("first", 3), ("second", 1), ("third", 5)):
        written = [value * factor for value in make_values(mark)]
        session.put(key, written)
        _require_found(session, key, written)
    rows = session.stored().rows - before
    require(rows == 1, f"{rows} records under one key")
    return "3 puts of different sizes, each in place of the one before"


def _update_some_fields(session: KeyValueSession) -> str:
    values, key = list(make_values("before")), _new_key(session, "update")
    session.insert(key, values)
    for fields in ((3,), (0, 7), _FIELDS):
        changes = {field: f"after-{len(fields)}-{field}".encode() for field in fields}
        session.update(key, changes)
        values = [changes.get(field, value) for field, value in enumerate(values)]
        _require_found(session, key, values)
    return "1, 2 and all fields changed, the others not"


def _count_what_is_stored(session: KeyValueSession) -> str:
    before, key = session.stored(), _new_key(session, "stored")
    values = make_values("stored")
    for place in range(7):
        session.insert(f"{key}-{place}", values)
    session.update(f"{key}-3", {2: values[2] * 2})
    after = session.stored()
    rows, size = after.rows - before.rows, after.payload_bytes - before.payload_bytes
    wanted = 7 * sum(map(len, values)) + len(values[2])
    require(
        (rows, size) == (7, wanted), f"{rows} records and {size} bytes, but 7 and {wanted} were written"
    )
    return f"{rows} records, {size} bytes"


def _scan_in_one_order(session: KeyValueSession) -> str:
    if not isinstance(session, Scans):
        raise Skipped("this system cannot scan")
    for place in range(20):
        session.put(f"scan-{place:02}", make_values(f"scan-{place}"))
    session.stored()  # what is written is visible to scans once it has been counted
    found = session.scan("scan-07", 5)
    keys = [key for key, _ in found]
    require(keys[:1] == ["scan-07"] and len(keys) <= 5, f"keys {keys} of 5 from scan-07 on")
    for key, values in found:
        _require_found(session, key, values)
    for place, key in enumerate(keys):
        rest = [one for one, _ in session.scan(key, 5 - place)]
        require(rest == keys[place:], f"keys {rest} from {key} on, but {keys[place:]} were to come")
    return f"{len(keys)} records, and from each of them the same ones"


def _answer_later(session: KeyValueSession) -> str:
    if not isinstance(session, AnswersKeysLater):
        raise Skipped("this driver has no calls that answer later")
    answers: queue.SimpleQueue[tuple[object, Exception | None]] = queue.SimpleQueue()

    def done(answer: object, failure: Exception | None) -> None:
        answers.put((answer, failure))

    first, second = make_values("later"), make_values("much-later")
    changed = [*second[:4], b"changed", *second[5:]]
    key = _new_key(session, "later")
    session.insert_soon(key, first, done)
    require((gave := answers.get(timeout=LIMIT_S)) == (None, None), f"the insert gave {gave!r:.200}")
    session.put_soon(key, second, done)
    require((gave := answers.get(timeout=LIMIT_S)) == (None, None), f"the put gave {gave!r:.200}")
    session.update_soon(key, {4: b"changed"}, done)
    require((gave := answers.get(timeout=LIMIT_S)) == (None, None), f"the update gave {gave!r:.200}")
    session.get_soon("nobody", done)
    require((gave := answers.get(timeout=LIMIT_S)) == (None, None), f"nobody gave {gave!r:.200}")
    read: queue.SimpleQueue[tuple[Values | None, Exception | None]] = queue.SimpleQueue()
    session.get_soon(key, lambda answer, failure: read.put((answer, failure)))
    values, failure = read.get(timeout=LIMIT_S)
    require(failure is None and list(values or ()) == changed, f"{values!r:.200}, {failure!r}")
    return "an insert, a put, an update and two gets"


def _serve_threads(session: KeyValueSession) -> str:
    mark = _new_key(session, "thread")

    def work(thread: int) -> str:
        keys = [f"{mark}-{thread}-{place}" for place in range(20)]
        for key in keys:
            session.insert(key, make_values(key))
        found = [session.get(key) for key in keys]
        wrong = [
            key
            for key, one in zip(keys, found, strict=True)
            if one is None or tuple(one) != make_values(key)
        ]
        return f"thread {thread} found others under {wrong}" if wrong else ""

    with ThreadPoolExecutor(THREADS) as pool:
        wrong = [seen for seen in pool.map(work, range(THREADS)) if seen]
    require(not wrong, "; ".join(wrong))
    return f"{THREADS} threads, 20 inserts and gets each"


CHECKS: tuple[Check[KeyValueSession], ...] = (
    Check("the schema may be created again, and costs no data", _create_schema_again),
    Check("an unknown key has no record", _know_no_stranger, reads_back=False),
    Check("every byte of a record comes back", _keep_every_byte),
    Check("a put replaces the whole record, whatever its size", _replace_whole_records),
    Check("an update changes the fields that it names, and no others", _update_some_fields),
    Check("what is stored is counted: each record and the bytes of its values", _count_what_is_stored),
    Check("a scan begins at its key, and there is one order of keys", _scan_in_one_order),
    Check("an answer that comes later is the same answer", _answer_later),
    Check("threads share a session", _serve_threads),
)
