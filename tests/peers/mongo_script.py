"""A server that speaks MongoDB's wire protocol and answers as it is asked: a script, not a database."""

import socketserver
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import bson

Document = dict[str, Any]
OP_REPLY, OP_QUERY = 1, 2004


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


@dataclass(slots=True)
class Script:
    """One member: its answers by command, and all that it was asked.

    An answer of None closes the connection; SILENCE says nothing until the client gives up.
    """

    hello: Document
    answers: dict[str, Document | None] = field(default_factory=dict)
    asked: list[Document] = field(default_factory=list)

    def named(self, command: str) -> list[Document]:
        """Return what was asked of one command."""
        return [asked for asked in self.asked if next(iter(asked)) == command]

    def answer(self, asked: Document) -> Document | None:
        """Answer one command."""
        command = next(iter(asked))
        if command.lower() in {"hello", "ismaster"}:
            limits = {"maxBsonObjectSize": 2**24, "maxMessageSizeBytes": 48 * 10**6}
            sessions = {"logicalSessionTimeoutMinutes": 30}
            return {
                "ok": 1,
                "maxWireVersion": 21,
                "maxWriteBatchSize": 10**5,
                **limits,
                **sessions,
                **self.hello,
            }
        self.asked.append(asked)
        return self.answers.get(command, {"ok": 1})


SILENCE: Document = {"silence": True}


def _handler(script: Script) -> type[socketserver.StreamRequestHandler]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while header := self.rfile.read(16):
                length, request, _, code = struct.unpack("<iiii", header)
                body = self.rfile.read(length - 16)
                answer = script.answer(parse(code, body))
                if answer is None:
                    return
                if answer is SILENCE:
                    self.rfile.read(1)
                    return
                self.wfile.write(frame(code, request, answer))

    return Handler


def parse(code: int, body: bytes) -> Document:
    """Return the command of a message; what came beside it is under its name."""
    if code == OP_QUERY:
        document: Document = bson.decode(body[body.index(b"\0", 4) + 9 :])
        return document
    found: Document = {}
    at = 4
    while at < len(body):
        kind, at = body[at], at + 1
        (size,) = struct.unpack_from("<i", body, at)
        if kind == 0:
            found = bson.decode(body[at : at + size]) | found
        else:
            end = body.index(b"\0", at + 4)
            found[body[at + 4 : end].decode()] = bson.decode_all(body[end + 1 : at + size])
        at += size
    return found


def frame(code: int, request: int, answer: Document) -> bytes:
    """Return an answer as it goes over the wire, in the form of what was asked."""
    encoded = bson.encode(answer)
    if code == OP_QUERY:
        body, code = struct.pack("<iqii", 8, 0, 0, 1) + encoded, OP_REPLY
    else:
        body = struct.pack("<iB", 0, 0) + encoded
    return struct.pack("<iiii", 16 + len(body), 0, request, code) + body


@contextmanager
def serve_scripts(scripts: Mapping[tuple[str, int], Script]) -> Iterator[None]:
    """Let scripts answer, each at its address and port."""
    with ExitStack() as servers:
        for place, script in scripts.items():
            server = servers.enter_context(_Server(place, _handler(script)))
            thread = threading.Thread(target=server.serve_forever, args=(0.02,))
            thread.start()
            servers.callback(thread.join)
            servers.callback(server.shutdown)
        yield
