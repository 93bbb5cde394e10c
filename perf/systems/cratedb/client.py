"""The client side of CrateDB: the vendor's own client of its HTTP endpoint, as its users run it.

A client of it is made for each node and they take turns, so that a statement that failed is not sent to
another node. What this client does by itself stays as it is: it tries eleven times to connect, sends a
statement again whose connection was reset, and compresses requests from 8 KiB on. It gives the message
of an error and not its code, so errors are named after the exception that the message begins with.

How the words of a workload map to CrateDB, for all its sessions:

    consistency one      write.wait_for_active_shards: 1
    consistency quorum   write.wait_for_active_shards: a majority of the copies
    consistency all      write.wait_for_active_shards: all copies

So many copies of a shard must be active for a write to begin. Whatever that is, a write is
acknowledged when every active copy has it, on disk, as `translog.durability` is by default; a read
asks any one copy.

A row is found by its whole primary key as soon as it is acknowledged. Every other query sees a table as
it was when it was last refreshed: every second by default, and by REFRESH, which `stored` and
`finish_load` send. No reading operation sends one: what is as old as that is what a user gets.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self, TypeAlias

from crate.client.exceptions import Error
from crate.client.http import Client
from pydantic import JsonValue
from urllib3 import Timeout
from urllib3.exceptions import ReadTimeoutError

from perf.systems.contract import Target
from perf.systems.layout_words import Number, Words, find_wrong_words

SCHEMA = "knickpoint"
"""The schema of all tables."""

_SLOW_S = 600.0
_CONNECTING_TRIES = 11
# Connections that are kept for the next operation: more than a load has in flight.
_KEPT_CONNECTIONS = 4096
_OPAQUE = "TEXT INDEX OFF STORAGE WITH (columnstore = false)"
_NAMED = re.compile(r"\w+(?=\[)")
# A node takes a thousand shards unless told otherwise (`cluster.max_shards_per_node`).
_WORDS: Words = {"shards": Number(1, 1000), "refresh_interval_ms": Number(0, 3_600_000)}

Row: TypeAlias = list[Any]


class RefusedRowsError(Error):  # type: ignore[misc]  # the driver is untyped
    """The server refused some rows of several, and did the others."""


class UnreadableAnswerError(Error):  # type: ignore[misc]  # the driver is untyped
    """An answer is not of the form that the reference describes."""


FAILURES = Error
"""What a client raises."""


def opaque(column: str) -> str:
    """Declare a text column that no query searches: by default, every column would be indexed."""
    return f"{column} {_OPAQUE}"


def classify(error: Exception) -> str:
    """Name the kind of an error: what was sent and not answered in time is "timeouts"."""
    if isinstance(error.__context__, ReadTimeoutError):
        return "timeouts"
    named = _NAMED.match(str(error))
    return f"error:cratedb-{named[0]}" if named else f"error:{type(error).__name__}"


class SqlClient:
    """Connections to all nodes of a cluster. Threads share it."""

    def __init__(self, addresses: Sequence[str], port: int, timeout_s: float) -> None:
        """Prepare to connect to each node when it is first asked."""
        self._of_limit = {
            limit_s: tuple(_prepare(address, port, limit_s) for address in addresses)
            for limit_s in (timeout_s, _SLOW_S)
        }
        # The next of a cycle is one step for the interpreter, so threads need no lock.
        self._turns = itertools.cycle(self._of_limit[timeout_s])
        self._slow_turns = itertools.cycle(self._of_limit[_SLOW_S])

    def ask(
        self, statement: str, arguments: Sequence[Any] = (), *, is_slow: bool = False
    ) -> Sequence[Row]:
        """Return the rows that answer a statement; one about a whole table may take ten minutes.

        Raises:
            FAILURES: the server refuses it, there is no answer, or one of another form.

        """
        answer = _send(next(self._slow_turns if is_slow else self._turns), statement, arguments, ())
        rows = answer.get("rows")
        if not isinstance(rows, list):
            raise UnreadableAnswerError(f"an answer without rows: {answer!r:.200}")
        return rows

    def ask_each_row(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Do a statement with each row of arguments, in one request.

        Raises:
            FAILURES: as above, or at least one row was refused; the others were done.

        """
        answer = _send(next(self._turns), statement, (), rows)
        results = answer.get("results")
        if not isinstance(results, list) or len(results) != len(rows):
            raise UnreadableAnswerError(f"no results for {len(rows)} rows: {answer!r:.200}")
        refused = [result for result in results if not _is_done(result)]
        if refused:
            raise RefusedRowsError(
                f"{_read_refusal(refused[0])} ({len(refused)} of {len(rows)} rows were refused)"
            )

    def close(self) -> None:
        """Close all connections."""
        for clients in self._of_limit.values():
            for client in clients:
                client.close()


def _prepare(address: str, port: int, limit_s: float) -> Any:  # noqa: ANN401  the driver is untyped
    # So that no node can keep an operation longer than its limit, however often it is tried.
    timeout = Timeout(connect=limit_s / _CONNECTING_TRIES, read=limit_s)
    return Client([f"{address}:{port}"], timeout=timeout, pool_size=_KEPT_CONNECTIONS)


def _send(
    client: Any,  # noqa: ANN401  the driver is untyped
    statement: str,
    arguments: Sequence[Any],
    rows: Sequence[Sequence[Any]],
) -> dict[str, Any]:
    try:
        answer = client.sql(statement, arguments, rows)
    except (AttributeError, TypeError, ValueError) as error:
        raise UnreadableAnswerError(f"{type(error).__name__}: {error}") from error
    if not isinstance(answer, dict):
        raise UnreadableAnswerError(f"no object: {answer!r:.200}")
    return answer


def _is_done(result: Any) -> bool:  # noqa: ANN401  JSON
    count = result.get("rowcount") if isinstance(result, dict) else None
    return isinstance(count, int) and count >= 0


def _read_refusal(result: Any) -> str:  # noqa: ANN401  JSON
    try:
        return str(result.get("error_message") or result["error"]["message"])
    except (AttributeError, KeyError, TypeError):
        return f"{result!r:.200}"


@contextmanager
def open_client(target: Target) -> Iterator[SqlClient]:
    """Connect a client; return when a node has answered."""
    client = SqlClient(target.addresses, target.port, target.timeout_s)
    try:
        client.ask("SELECT 1")
        yield client
    finally:
        client.close()


class CrateSession:
    """What sessions of all data models share."""

    def __init__(self, client: SqlClient, target: Target) -> None:
        """Wrap a connected client."""
        self._client = client
        self._target = target

    @classmethod
    @contextmanager
    def connect(cls, target: Target) -> Iterator[Self]:
        """Connect a client; return when a node has answered."""
        with open_client(target) as client:
            yield cls(client, target)

    def classify(self, error: Exception) -> str:
        """Name the kind of an error."""
        return classify(error)


def active_copies(target: Target) -> int:
    """Give how many copies of a shard must be active for a write to begin."""
    copies = target.replication_factor
    return {"one": 1, "quorum": copies // 2 + 1, "all": copies}[target.consistency]


def check_layout(layout: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Give what is wrong with a layout; the words are `shards` and `refresh_interval_ms`."""
    return tuple(find_wrong_words(layout, _WORDS))


def table_options(target: Target, *, clustered_by: str = "", shards: int | None = None) -> str:
    """Give the end of a CREATE TABLE: shards, replicas and what the layout says beside them.

    `shards` is their number where the layout says none; None leaves it to the release.
    """
    wanted = target.layout.get("shards", shards)
    placed = f" BY ({clustered_by})" if clustered_by else ""
    counted = f" INTO {wanted} SHARDS" if wanted is not None else ""
    clustered = f"CLUSTERED{placed}{counted} " if placed or counted else ""
    options = [
        f"number_of_replicas = {target.replication_factor - 1}",
        f'"write.wait_for_active_shards" = {active_copies(target)}',
    ]
    if "refresh_interval_ms" in target.layout:
        options.append(f"refresh_interval = {target.layout['refresh_interval_ms']}")
    return f"{clustered}WITH ({', '.join(options)})"
