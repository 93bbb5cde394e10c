"""A chat channel behind a webhook, in memory: it acknowledges, refuses, breaks and stalls on demand."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

PATH = "/services/T0SECRET/B0SECRET/x7secretx7"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What the next request gets instead of "ok". A status of 0 is no answer at all."""

    status: int
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Channel:
    """What was written; `faults` come first, one for each request."""

    url: str = ""
    heard: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    asked: int = 0


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the parent
        """Say nothing."""

    def do_POST(self) -> None:
        """Take a message."""
        channel = self.server.channel
        channel.asked += 1
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        assert self.headers["Content-Type"] == "application/json"
        fault = channel.faults.pop(0) if channel.faults else None
        if fault is None and self.path == PATH:
            channel.heard.append(json.loads(raw))
        answer = fault or Fault(status=200 if self.path == PATH else 404, text="ok")
        if not answer.status:
            self.close_connection = True
            return
        content = answer.text.encode()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.channel = Channel(url=f"http://127.0.0.1:{self.server_port}{PATH}")


@contextmanager
def serve() -> Iterator[Channel]:
    """Serve until the block ends."""
    server = _Server()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.channel
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
