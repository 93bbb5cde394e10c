"""What a session of the workloads put/get and YCSB promises."""

from perf.promises.promise import Promise, require
from perf.records import Ycsb
from perf.sessions import KeyValueSession

RECORDS = Ycsb(kind="ycsb", record_count=8, request_distribution="uniform")


def make_values(mark: str) -> tuple[bytes, ...]:
    """Give the values of all fields of a record; they differ by mark and field."""
    return tuple(
        f"{mark}-{field}-".encode().ljust(RECORDS.field_length, b"~")
        for field in range(RECORDS.field_count)
    )


def _know_no_stranger(session: KeyValueSession) -> str:
    found = session.get("nobody")
    require(found is None, f"{found!r:.200} under a key that nobody wrote")
    return "no record"


def _keep_every_byte(session: KeyValueSession) -> str:
    written = make_values("bytes")
    session.insert("bytes", written)
    found = session.get("bytes")
    require(found is not None and tuple(found) == written, f"{found!r:.200}")
    return f"{len(written)} fields of {RECORDS.field_length} bytes"


def _update_some_fields(session: KeyValueSession) -> str:
    written, changed = make_values("before"), make_values("after")
    session.insert("update", written)
    session.update("update", {3: changed[3], 7: changed[7]})
    wanted = tuple(changed[at] if at in {3, 7} else value for at, value in enumerate(written))
    found = session.get("update")
    require(found is not None and tuple(found) == wanted, f"{found!r:.200}")
    return "2 of 10 fields changed, the others not"


PROMISES: tuple[Promise[KeyValueSession], ...] = (
    Promise("an unknown key has no record", _know_no_stranger, reads_back=False),
    Promise("every byte of a record comes back", _keep_every_byte),
    Promise("an update changes the fields that it names, and no others", _update_some_fields),
)
