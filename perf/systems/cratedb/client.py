"""The client side of CrateDB: SQL over its HTTP endpoint `/_sql`, as its reference describes it.

Statements and parameters go out as JSON, many rows of one statement as `bulk_args`; a failure comes
back as JSON with a code. A request goes to the next node in turn, and is one attempt: nothing is
retried and nothing redirected. What carries it is in `perf.systems.cratedb.wire`.

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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from pydantic import JsonValue

from perf.systems.contract import Target
from perf.systems.cratedb import wire as crate_wire
from perf.systems.cratedb.wire import Connections
from perf.systems.layout_words import Number, Words, find_wrong_words

SCHEMA = "knickpoint"
"""The schema of all tables."""
SLOW_S = 600.0
"""How long a statement about a whole table may take."""

_OK = 200
_OPAQUE = "TEXT INDEX OFF STORAGE WITH (columnstore = false)"
# A node takes a thousand shards unless told otherwise (`cluster.max_shards_per_node`).
_WORDS: Words = {"shards": Number(1, 1000), "refresh_interval_ms": Number(0, 3_600_000)}

Row: TypeAlias = list[Any]


class CrateError(Exception):
    """The server refused a statement, or one row of several; `code` is 0 where it gave none."""

    def __init__(self, code: int, message: str, status: int) -> None:
        """Keep code and HTTP status."""
        self.code = code
        self.status = status
        super().__init__(f"{message} (code {code}, HTTP status {status})")


class UnreadableAnswerError(Exception):
    """An answer is not of the form that the reference describes."""


FAILURES = (CrateError, UnreadableAnswerError, *crate_wire.FAILURES)
"""What a client raises."""


def opaque(column: str) -> str:
    """Declare a text column that no query searches: by default, every column would be indexed."""
    return f"{column} {_OPAQUE}"


def classify(error: Exception) -> str:
    """Name the kind of an error: what was sent and not answered in time is "timeouts"."""
    if isinstance(error, TimeoutError):
        return "timeouts"
    if isinstance(error, CrateError):
        return f"error:cratedb-{error.code}" if error.code else f"error:http-{error.status}"
    return f"error:{type(error).__name__}"


class SqlClient:
    """Connections to all nodes of a cluster. Threads share it."""

    def __init__(self, addresses: Sequence[str], port: int, timeout_s: float) -> None:
        """Prepare to connect to each node when it is first asked."""
        self._timeout_s = timeout_s
        self._nodes = tuple(Connections(address, port) for address in addresses)
        # The next of a cycle is one step for the interpreter, so threads need no lock.
        self._turns = itertools.cycle(self._nodes)

    def ask(
        self, statement: str, arguments: Sequence[Any] = (), *, timeout_s: float | None = None
    ) -> Sequence[Row]:
        """Give the rows that answer a statement.

        Raises:
            CrateError: the server refuses it.
            UnreadableAnswerError: the answer is of another form.
            perf.systems.cratedb.wire.FAILURES: there is no answer.

        """
        answer = self._send({"stmt": statement, "args": arguments}, timeout_s)
        rows = answer.get("rows")
        if not isinstance(rows, list):
            raise UnreadableAnswerError(f"an answer without rows: {answer!r:.200}")
        return rows

    def ask_each_row(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Do a statement with each row of arguments, in one request.

        Raises:
            CrateError: at least one row was refused; the others were done.
            UnreadableAnswerError: the answer is of another form.
            perf.systems.cratedb.wire.FAILURES: there is no answer.

        """
        answer = self._send({"stmt": statement, "bulk_args": rows}, None)
        results = answer.get("results")
        if not isinstance(results, list) or len(results) != len(rows):
            raise UnreadableAnswerError(f"no results for {len(rows)} rows: {answer!r:.200}")
        refused = [result for result in results if not _is_done(result)]
        if refused:
            code, why = _read_refusal(refused[0])
            raise CrateError(code, f"{len(refused)} of {len(rows)} rows were refused: {why}", _OK)

    def close(self) -> None:
        """Close all connections."""
        for node in self._nodes:
            node.close()

    def _send(self, body: Mapping[str, Any], timeout_s: float | None) -> dict[str, Any]:
        text = json.dumps(body, separators=(",", ":")).encode()
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        status, answer = next(self._turns).post(text, limit_s)
        if status != _OK:
            raise _read_error(status, answer)
        try:
            document: dict[str, Any] = json.loads(answer)
        except (ValueError, RecursionError) as error:
            raise UnreadableAnswerError(f"no JSON: {answer!r:.200}") from error
        if not isinstance(document, dict):
            raise UnreadableAnswerError(f"no object: {answer!r:.200}")
        return document


def _read_error(status: int, body: bytes) -> CrateError:
    try:
        error = json.loads(body)["error"]
        return CrateError(int(error["code"]), str(error["message"]), status)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return CrateError(0, f"{body!r:.200}", status)


def _is_done(result: Any) -> bool:  # noqa: ANN401  JSON
    count = result.get("rowcount") if isinstance(result, dict) else None
    return isinstance(count, int) and count >= 0


def _read_refusal(result: Any) -> tuple[int, str]:  # noqa: ANN401  JSON
    try:
        if error := result.get("error"):
            return int(error.get("code", 0)), str(error["message"])
        return 0, str(result.get("error_message", "no reason"))
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return 0, f"{result!r:.200}"


@contextmanager
def open_client(target: Target) -> Iterator[SqlClient]:
    """Connect a client; return when a node has answered."""
    client = SqlClient(target.addresses, target.port, target.timeout_s)
    try:
        client.ask("SELECT 1")
        yield client
    finally:
        client.close()


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
