"""The client side of CrateDB: the vendor's own client of its HTTP endpoint, as its users run it.

A client of it is made for each node and they take turns. Its forms of a request, of an answer and of
an error stay as they are, and it compresses requests from 8 KiB on. How often it asks and for how long
is ours, since an operation is one attempt with one time limit:

- The vendor's client tries eleven times to connect, sends a statement again whose connection was reset,
  and follows redirections. Here each is sent once, to its node.
- It limits each step and each packet. Here the limit holds for connecting, sending and the whole answer
  together. Not limited is what comes before: resolving a node's name. Where that gives several
  addresses, each of them may take the whole limit to connect.

It gives the message of an error and not its code, so errors are named after the exception that the
message begins with.

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
import json
import logging
import re
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self, TypeAlias

from crate.client.exceptions import ConnectionError as NoAnswerError
from crate.client.exceptions import Error, ProgrammingError
from crate.client.http import Client
from pydantic import JsonValue
from urllib3 import BaseHTTPResponse
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError, ProtocolError, ReadTimeoutError

from perf.systems.contract import Target
from perf.systems.layout_words import Number, Words, find_wrong_words

SCHEMA = "knickpoint"
"""The schema of all tables; a statement that names none means this one, not `doc`."""

_SLOW_S = 600.0
_NO_SERVICE = (502, 503, 504)
# Connections that are kept for the next operation: more than a load has in flight.
_KEPT_CONNECTIONS = 4096
_OPAQUE = "TEXT INDEX OFF STORAGE WITH (columnstore = false)"
_NAMED = re.compile(r"\w+(?=\[)")
# A node takes a thousand shards unless told otherwise (`cluster.max_shards_per_node`).
_WORDS: Words = {"shards": Number(1, 1000), "refresh_interval_ms": Number(0, 3_600_000)}

Row: TypeAlias = list[Any]

# What goes wrong reaches the caller as an exception; the client's own lines would be noise.
logging.getLogger("crate").setLevel(logging.CRITICAL)


class RefusedRowsError(Error):  # type: ignore[misc]  # the driver is untyped
    """The server refused some rows of several, and did the others."""


class UnreadableAnswerError(Error):  # type: ignore[misc]  # the driver is untyped
    """An answer is not of the form that the reference describes."""


class NoServiceError(Error):  # type: ignore[misc]  # the driver is untyped
    """A node, or what stands before it, says by its HTTP status that it cannot serve for now."""

    def __init__(self, answer: BaseHTTPResponse) -> None:
        """Take what the server says of it, where it says anything."""
        self.status = answer.status
        try:
            error = json.loads(answer.data)["error"]
            message = error if isinstance(error, str) else str(error["message"])
        except (KeyError, RecursionError, TypeError, ValueError):
            message = f"HTTP {answer.status}: {answer.data!r:.200}"
        super().__init__(message)


FAILURES = Error
"""What a client raises."""


def opaque(column: str) -> str:
    """Declare a text column that no query searches: by default, every column would be indexed."""
    return f"{column} {_OPAQUE}"


def classify(error: Exception) -> str:
    """Name the kind of an error: what was not sent or not answered in time is "timeouts"."""
    cause = error.__cause__
    sending = cause.args if isinstance(cause, ProtocolError) else ()
    if isinstance(cause, ReadTimeoutError) or any(isinstance(why, TimeoutError) for why in sending):
        return "timeouts"
    named = _NAMED.match(str(error))
    if named:
        return f"error:cratedb-{named[0]}"
    if isinstance(error, NoServiceError):
        return f"error:http-{error.status}"
    return f"error:{type(error).__name__}"


class _Socket(socket.socket):
    """A connected socket on which nothing lasts beyond a point in time."""

    ends_s: float

    def sendall(self, *args: Any) -> None:  # noqa: ANN401  as it is
        self._limit()
        super().sendall(*args)

    def recv_into(self, *args: Any) -> int:  # noqa: ANN401  as it is
        self._limit()
        return super().recv_into(*args)

    def _limit(self) -> None:
        left_s = self.ends_s - time.monotonic()
        if left_s <= 0:  # as a limit, 0 would have another meaning
            raise TimeoutError("timed out")
        self.settimeout(left_s)


class _Connection(HTTPConnection):
    """A connection on which an operation as a whole ends at its limit, however slowly it comes in."""

    def request(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  as it is
        limit_s: Any = self.timeout  # the pool has just set it to its own
        self._ends_s = time.monotonic() + limit_s
        if isinstance(self.sock, _Socket):
            self.sock.ends_s = self._ends_s
        super().request(*args, **kwargs)

    def _new_conn(self) -> socket.socket:
        plain = super()._new_conn()
        limited = _Socket(plain.family, plain.type, plain.proto, plain.detach())
        limited.ends_s = self._ends_s
        return limited


class _Client(Client):  # type: ignore[misc]  # the driver is untyped
    """The vendor's client of one node, which it asks once.

    What is overridden here and above is private to it and to urllib3, for validity: more than one
    attempt, or a limit for each packet, would be hidden in the times of an operation.
    """

    def __init__(self, address: str, port: int, limit_s: float) -> None:
        host = f"[{address}]" if ":" in address else address
        super().__init__([f"{host}:{port}"], timeout=limit_s, pool_size=_KEPT_CONNECTIONS)
        (node,) = self.server_pool.values()
        self._pool = node.pool
        self._pool.ConnectionCls = _Connection

    def _request(
        self, method: str, path: str, *, data: bytes, headers: Mapping[str, str]
    ) -> BaseHTTPResponse:
        is_json = {"Accept": "application/json", "Content-Type": "application/json"}
        in_schema = {"Default-Schema": SCHEMA}
        try:
            answer: BaseHTTPResponse = self._pool.urlopen(
                method,
                path,
                body=data,
                headers={**headers, **is_json, **in_schema},
                retries=False,
                redirect=False,
                assert_same_host=False,
            )
        except HTTPError as error:
            raise NoAnswerError(f"{type(error).__name__}: {error}") from error
        except Exception as error:  # as the vendor's does
            raise ProgrammingError(f"{type(error).__name__}: {error}") from error
        if answer.status in _NO_SERVICE:  # of which the vendor's would say the status at most
            raise NoServiceError(answer)
        return answer


class SqlClient:
    """Connections to all nodes of a cluster. Threads share it."""

    def __init__(self, addresses: Sequence[str], port: int, timeout_s: float) -> None:
        """Prepare to connect to each node when it is first asked."""
        self._of_limit = {
            limit_s: tuple(_Client(address, port, limit_s) for address in addresses)
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
        rows: Sequence[Row] = self.ask_all(statement, arguments, is_slow=is_slow)["rows"]
        return rows

    def ask_all(
        self, statement: str, arguments: Sequence[Any] = (), *, is_slow: bool = False
    ) -> Mapping[str, Any]:
        """Return an answer as it is: beside its `rows`, it has their columns and how many they are.

        Raises:
            FAILURES: as above.

        """
        answer = _send(next(self._slow_turns if is_slow else self._turns), statement, arguments, ())
        if not isinstance(answer.get("rows"), list):
            raise UnreadableAnswerError(f"an answer without rows: {answer!r:.200}")
        return answer

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


def _send(
    client: _Client,
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
    """Return how many copies of a shard must be active for a write to begin."""
    copies = target.replication_factor
    return {"one": 1, "quorum": copies // 2 + 1, "all": copies}[target.consistency]


def copies_options(target: Target) -> str:
    """Return the options of a table that say how many copies it has, and how many a write waits for."""
    return (
        f"number_of_replicas = {target.replication_factor - 1}, "
        f'"write.wait_for_active_shards" = {active_copies(target)}'
    )


def check_layout(layout: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Return what is wrong with a layout; the words are `shards` and `refresh_interval_ms`."""
    return tuple(find_wrong_words(layout, _WORDS))


def table_options(target: Target, *, clustered_by: str = "", shards: int | None = None) -> str:
    """Return the end of a CREATE TABLE: shards, replicas and what the layout says beside them.

    `shards` is their number where the layout says none; None leaves it to the release.
    """
    wanted = target.layout.get("shards", shards)
    placed = f" BY ({clustered_by})" if clustered_by else ""
    counted = f" INTO {wanted} SHARDS" if wanted is not None else ""
    clustered = f"CLUSTERED{placed}{counted} " if placed or counted else ""
    options = [copies_options(target)]
    if "refresh_interval_ms" in target.layout:
        options.append(f"refresh_interval = {target.layout['refresh_interval_ms']}")
    return f"{clustered}WITH ({', '.join(options)})"
