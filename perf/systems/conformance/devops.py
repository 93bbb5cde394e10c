"""Checks of a session of the devops workload.

Each check has a time of its own, so that a query over all hosts meets no rows of another. What writes
rows to count them gives its hosts a name by what is there already, so that it may be asked twice.
"""

from collections.abc import Sequence
from typing import Literal

from perf.model.records import ASKED_OF, Devops, Operation
from perf.systems.conformance.check import Check, Skipped, require
from perf.systems.sessions import DevopsSession
from perf.workloads.devops.queries import METRICS
from perf.workloads.devops.rows import DevopsRow, Group, Query
from perf.workloads.devops.tables import TABLES, TAGS

RECORDS = Devops(kind="devops", hosts=8, span_s=3600)

_BEGIN_MS = 1_262_304_000_000  # the first moment of 2010
_SECOND_MS, _MINUTE_MS, _HOUR_MS, _DAY_MS = 1000, 60_000, 3_600_000, 86_400_000
_TOLERANCE = 1e-9


def make_row(host: str, ts_ms: int, value: int, table: str = "cpu") -> DevopsRow:
    """Return a row; its first value is `value`, and each further one higher by one."""
    fields = range(len(TABLES[table]))
    return DevopsRow(
        table, (host, *(f"{tag}-1" for tag in TAGS[1:])), ts_ms, tuple(value + at for at in fields)
    )


def _query(operation: Operation, begin_ms: int, length_ms: int, *hosts: str, metrics: int = 1) -> Query:
    aggregate: Literal["max", "mean"] = "max" if hosts else "mean"
    bucket_ms = _MINUTE_MS if hosts else _HOUR_MS
    return Query(
        operation, METRICS[:metrics], hosts, begin_ms, begin_ms + length_ms, bucket_ms, aggregate
    )


def _ask(session: DevopsSession, query: Query) -> Sequence[Group]:
    if not session.can_ask(query.operation):
        raise Skipped(f"this system cannot be asked {query.operation.value}")
    return tuple(session.ask(query))


def _create_schema_again(session: DevopsSession) -> str:
    session.write((make_row("schema", _BEGIN_MS, 1),))
    session.finish_load()
    before = session.stored()
    session.create_schema(RECORDS)
    after = session.stored()
    require(after == before, f"{before.rows} rows before, {after.rows} after")
    return f"{after.rows} rows, as before"


def _count_what_is_stored(session: DevopsSession) -> str:
    session.finish_load()
    before = session.stored()
    hosts = [f"stored_{before.rows}_{place}" for place in range(3)]
    session.write([make_row(host, _BEGIN_MS, 1, table) for table in TABLES for host in hosts])
    session.finish_load()
    after = session.stored()
    found = after.rows - before.rows, after.payload_bytes - before.payload_bytes
    wanted = len(hosts) * len(TABLES), 8 * len(hosts) * sum(map(len, TABLES.values()))
    require(
        found == wanted,
        f"{found[0]} rows and {found[1]} bytes, but {wanted[0]} and {wanted[1]} were written",
    )
    return f"{found[0]} rows of {len(TABLES)} tables, {found[1]} bytes"


def _say_what_can_be_asked(session: DevopsSession) -> str:
    asked = [one.value for one in ASKED_OF["devops"] if "groupby" in one and session.can_ask(one)]
    if not asked:
        raise Skipped("this system can be asked none of the queries")
    return ", ".join(asked)


def _find_maxima(session: DevopsSession) -> str:
    begin_ms = _BEGIN_MS + 10 * _DAY_MS
    moments = {0: 4, 10: 9, 59: 7, 60: 3, 130: 5, 180: 8}  # seconds, and the first value there
    session.write([make_row("maxima", begin_ms + s * 1000, value) for s, value in moments.items()])
    session.finish_load()
    # The window takes its begin, and leaves its end out.
    query = _query(
        Operation.SINGLE_GROUPBY_5_1_12,
        begin_ms + 10 * _SECOND_MS,
        170 * _SECOND_MS,
        "maxima",
        metrics=5,
    )
    found = _ask(session, query)
    wanted = tuple(
        Group(begin_ms + minute * _MINUTE_MS, "", tuple(float(value + at) for at in range(5)))
        for minute, value in ((0, 9), (1, 3), (2, 5))
    )
    require(found == wanted, f"{found!r:.300}, but {wanted!r:.300} was to come")
    return f"{len(found)} minutes of 5 metrics"


def _put_hosts_together(session: DevopsSession) -> str:
    begin_ms = _BEGIN_MS + 20 * _DAY_MS
    hosts = tuple(f"together_{place}" for place in range(8))
    rows = [
        make_row(host, begin_ms + second * 1000, (place * 7 + second) % 11)
        for place, host in enumerate((*hosts, "apart"))
        for second in range(0, 300, 10)
    ]
    session.write(rows)
    session.finish_load()
    found = _ask(session, _query(Operation.SINGLE_GROUPBY_5_8_1, begin_ms, _HOUR_MS, *hosts))
    wanted = tuple(
        Group(minute_ms, "", (float(best),))
        for minute_ms in range(begin_ms, begin_ms + 5 * _MINUTE_MS, _MINUTE_MS)
        for best in (
            max(
                row.values[0]
                for row in rows
                if row.tags[0] in hosts and minute_ms <= row.ts_ms < minute_ms + _MINUTE_MS
            ),
        )
    )
    require(found == wanted, f"{found!r:.300}, but {wanted!r:.300} was to come")
    return f"{len(hosts)} hosts, {len(found)} minutes"


def _find_means(session: DevopsSession) -> str:
    begin_ms = _BEGIN_MS + 30 * _DAY_MS
    values = {"means_10": (1, 2, 4), "means_9": (50, 51, 51)}
    session.write(
        [
            make_row(host, begin_ms + hour * _HOUR_MS + place * 10_000, value)
            for host, of_host in values.items()
            for hour in range(2)
            for place, value in enumerate(of_host)
        ]
    )
    session.finish_load()
    query = _query(Operation.DOUBLE_GROUPBY_ALL, begin_ms, 12 * _HOUR_MS, metrics=len(METRICS))
    found = _ask(session, query)
    places = [(group.ts_ms, group.host) for group in found]
    wanted = [(begin_ms + hour * _HOUR_MS, host) for hour in range(2) for host in sorted(values)]
    require(places == wanted, f"groups {places}, but {wanted} were to come")
    for group in found:
        mean = sum(values[group.host]) / 3
        right = [abs(one - mean - at) <= _TOLERANCE * one for at, one in enumerate(group.values)]
        require(all(right) and len(right) == len(METRICS), f"{group}, but its first mean is {mean}")
    return f"{len(found)} groups of {len(METRICS)} metrics, by hour and host"


def _know_no_stranger(session: DevopsSession) -> str:
    found = _ask(
        session, _query(Operation.SINGLE_GROUPBY_1_1_1, _BEGIN_MS + 40 * _DAY_MS, _HOUR_MS, "nobody")
    )
    require(not found, f"{len(found)} groups of a host that wrote nothing")
    return "no group"


CHECKS: tuple[Check[DevopsSession], ...] = (
    Check("the schema may be created again, and costs no data", _create_schema_again),
    Check("what is stored is counted: rows of all tables, 8 bytes per value", _count_what_is_stored),
    Check("it says which queries it can be asked", _say_what_can_be_asked, reads_back=False),
    Check("a maximum per minute is of the rows of the window, its end left out", _find_maxima),
    Check("a maximum over several hosts is of them all, and of no other", _put_hosts_together),
    Check("means are per hour and host, in that order, and not rounded", _find_means),
    Check("an unknown host has no groups", _know_no_stranger),
)
