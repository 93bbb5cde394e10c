# ruff: noqa: S608  statements are compared, not sent
"""A server at CrateDB's HTTP endpoint: it holds requests to the reference, and keeps what it is given.

It is not CrateDB. It proves that our requests are what the reference describes (method, path, headers,
form of the JSON, number and types of arguments, statements) and that our sessions read what they wrote;
it proves nothing about CrateDB. What it does not know it refuses, with CrateDB's form of an error.
"""

import gzip
import json
import socket
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, cast

from crate_sql import Answer, Refused, Store

_STATUS = {400: 400, 401: 403, 403: 403, 404: 404, 409: 409, 500: 500}
_SLOW_S = 0.02
_KEYS = ({"stmt"}, {"stmt", "args"}, {"stmt", "bulk_args"})


@dataclass(frozen=True, slots=True)
class Fault:
    """What is done once instead of an answer: a status with a body, silence, or a closed connection.

    A slow one comes byte by byte; `announced` is a length that the head tells in place of the body's.
    """

    status: int = 0
    body: bytes = b""
    is_silent: bool = False
    is_slow: bool = False
    announced: int | None = None

    @classmethod
    def refusal(cls, status: int, code: int, message: str) -> Self:
        """Return a fault in CrateDB's own form."""
        return cls(status, json.dumps({"error": {"code": code, "message": message}}).encode())


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that was understood."""

    statement: str
    arguments: Any
    is_bulk: bool


@dataclass
class CratePeer:
    """The server, on an address and any free port, while it is entered.

    `nodes` are names and versions for sys.nodes, `uncommitted` bytes by node for sys.shards,
    `incomplete` tables that lack copies, for sys.health.
    """

    address: str = "127.0.0.1"
    port: int = 0
    nodes: Sequence[tuple[str, str]] = (("s1", "6.4.2"),)
    uncommitted: dict[str, int] = field(default_factory=dict)
    incomplete: Sequence[str] = ()
    faults: deque[Fault] = field(default_factory=deque)
    asked: deque[Asked] = field(default_factory=lambda: deque(maxlen=1000))

    def __post_init__(self) -> None:
        """Begin with nothing stored."""
        self.store = Store()
        self.ended = threading.Event()
        self.connections = 0
        self._open: dict[socket.socket, threading.Event] = {}

    def __enter__(self) -> Self:
        """Serve."""
        kind = _SixServer if ":" in self.address else _Server
        self._server = kind((self.address, self.port), _Handler)
        self._server.peer = self
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End; who still waits for an answer gets none."""
        self.ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self.store.close()

    def begin(self, connection: socket.socket) -> threading.Event:
        """Count a connection; give what its handler says when it has ended it."""
        self.connections += 1
        return self._open.setdefault(connection, threading.Event())

    def drop_idle(self) -> None:
        """Close all connections from here, as a server does that has waited long; return when done."""
        for connection, ended in tuple(self._open.items()):
            connection.shutdown(socket.SHUT_RDWR)
            ended.wait()
            del self._open[connection]

    def statements(self, beginning: str) -> list[Asked]:
        """Return what was asked that begins so."""
        return [asked for asked in self.asked if asked.statement.startswith(beginning)]

    def answer(self, body: bytes, schema: str = "doc") -> dict[str, Any]:
        """Answer one body, whose tables without a schema are in this one; raise Refused."""
        asked = _read(body)
        self.asked.append(asked)
        if asked.is_bulk:
            return {"cols": [], "results": self.store.run_each(asked.statement, asked.arguments)}
        found = self._about_nodes(asked.statement)
        if found is None:
            found = self.store.run(asked.statement, asked.arguments, schema)
        return {"cols": found.columns, "rows": found.rows, "rowcount": found.count}

    def _about_nodes(self, statement: str) -> Answer | None:
        name, version, size = "name", "version['number']", "sum(translog_stats['uncommitted_size'])"
        names = [[known] for known, _ in self.nodes]
        versions = [list(known) for known in sorted(self.nodes)]
        sizes = [list(known) for known in self.uncommitted.items()]
        answers = {
            f"SELECT {name} FROM sys.nodes": Answer([name], names, len(names)),
            f"SELECT {name}, {version} FROM sys.nodes ORDER BY {name}": Answer(
                [name, version], versions, len(versions)
            ),
            "SELECT table_name FROM sys.health WHERE health <> 'GREEN'": Answer(
                ["table_name"], [[table] for table in self.incomplete], len(self.incomplete)
            ),
            f"SELECT node['name'], {size} FROM sys.shards GROUP BY node['name']": Answer(
                ["node['name']", size], sizes, len(sizes)
            ),
        }
        return answers.get(statement)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    peer: CratePeer


class _SixServer(_Server):
    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self._ended = cast("_Server", self.server).peer.begin(self.request)

    def finish(self) -> None:
        super().finish()
        self._ended.set()

    def do_POST(self) -> None:
        peer = cast("_Server", self.server).peer
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        if peer.faults:
            self._fail(peer, peer.faults.popleft())
        elif self.path != "/_sql?types=true":
            self._reply(404, b"no such path")
        elif self.headers["Content-Type"] != "application/json":
            self._refuse(Refused(4000, "SQLParseException[not application/json]"))
        else:
            try:
                answer = peer.answer(body, self.headers.get("Default-Schema", "doc"))
            except Refused as refused:
                self._refuse(refused)
            else:
                self._reply(200, json.dumps(answer | {"duration": 0.25}).encode())

    def _fail(self, peer: CratePeer, fault: Fault) -> None:
        if fault.is_silent:
            peer.ended.wait()
        if not fault.status:
            self.close_connection = True
            return
        text = _render(fault.status, fault.body, fault.announced)
        step = 1 if fault.is_slow else len(text)
        try:
            for begin in range(0, len(text), step):
                self.wfile.write(text[begin : begin + step])
                if fault.is_slow:
                    peer.ended.wait(_SLOW_S)
        except OSError:  # nobody listens any longer
            self.close_connection = True

    def _refuse(self, refused: Refused) -> None:
        error = {"error": {"code": refused.code, "message": refused.message}}
        self._reply(_STATUS[int(str(refused.code)[:3])], json.dumps(error).encode())

    def _reply(self, status: int, body: bytes) -> None:
        self.wfile.write(_render(status, body, None))

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _render(status: int, body: bytes, announced: int | None) -> bytes:
    length = len(body) if announced is None else announced
    about = f"content-type: application/json\r\ncontent-length: {length}"
    return f"HTTP/1.1 {status} -\r\n{about}\r\n\r\n".encode() + body


def _read(body: bytes) -> Asked:
    try:
        document = json.loads(body)
    except ValueError as error:
        raise Refused(4000, f"SQLParseException[Failed to parse source {body[:100]!r}]") from error
    if not isinstance(document, dict) or set(document) not in _KEYS:
        raise Refused(4000, "SQLParseException[a request has stmt, and args or bulk_args]")
    arguments = document.get("args", document.get("bulk_args", []))
    is_bulk = "bulk_args" in document
    rows = arguments if is_bulk else [arguments]
    if not isinstance(arguments, list) or not all(isinstance(row, list) for row in rows):
        raise Refused(4000, "SQLParseException[args is a list, bulk_args a list of lists]")
    if not isinstance(document["stmt"], str) or (is_bulk and not rows):
        raise Refused(4000, "SQLParseException[no statement, or no rows]")
    return Asked(document["stmt"], arguments, is_bulk)
