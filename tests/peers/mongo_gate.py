"""A gate in front of a server of MongoDB's wire protocol: TLS, and one account by SCRAM-SHA-256.

It ends TLS, checks the password itself, and hands all else on, once a client is let in. Who is not is
answered as mongod answers: error 18 for a wrong password, 13 for a command before the log-in.
"""

import base64
import hashlib
import hmac
import os
import socket
import socketserver
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mongo_script import Document, frame, parse

_ROUNDS = 4096
# What mongod answers anybody.
_OPEN = {"hello", "ismaster", "ping", "saslstart", "saslcontinue", "endsessions", "buildinfo"}
_REFUSED = {"ok": 0.0, "code": 18, "codeName": "AuthenticationFailed"}
_CLOSED = {"ok": 0.0, "code": 13, "codeName": "Unauthorized"}


@dataclass(slots=True)
class Scram:
    """The server's side of one conversation, RFC 5802 with SHA-256."""

    username: str
    password: str
    _so_far: str = ""
    _nonce: str = ""
    _salt: bytes = field(default_factory=lambda: os.urandom(28))

    def start(self, said: bytes) -> Document:
        """Answer the first message: a nonce, a salt, how often to hash."""
        bare = said.decode().removeprefix("n,,")
        parts = _split(bare)
        if parts["n"] != self.username:
            return {**_REFUSED, "errmsg": "Authentication failed."}
        self._nonce = parts["r"] + base64.b64encode(os.urandom(18)).decode()
        answer = f"r={self._nonce},s={base64.b64encode(self._salt).decode()},i={_ROUNDS}"
        self._so_far = f"{bare},{answer}"
        return {"ok": 1.0, "conversationId": 1, "done": False, "payload": answer.encode()}

    def go_on(self, said: bytes) -> Document:
        """Check the proof of the second message, and prove to the client that the password is known."""
        bare, _, proof = said.decode().rpartition(",p=")
        salted = hashlib.pbkdf2_hmac("sha256", self.password.encode(), self._salt, _ROUNDS)
        message = f"{self._so_far},{bare}".encode()
        client_key = _sign(salted, b"Client Key")
        signature = _sign(hashlib.sha256(client_key).digest(), message)
        wanted = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        is_right = hmac.compare_digest(wanted, base64.b64decode(proof))
        if not is_right or _split(bare)["r"] != self._nonce:
            return {**_REFUSED, "errmsg": "Authentication failed."}
        proven = base64.b64encode(_sign(_sign(salted, b"Server Key"), message)).decode()
        return {"ok": 1.0, "conversationId": 1, "done": True, "payload": f"v={proven}".encode()}


def _split(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(","))  # type: ignore[misc]


def _sign(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


@dataclass(slots=True)
class Gate:
    """Who is let in, and who came: `let_in` and `refused` are counted."""

    backend: tuple[str, int]
    context: ssl.SSLContext
    username: str = ""
    password: str = ""
    let_in: int = 0
    refused: int = 0

    def serve(self, client: socket.socket) -> None:
        """Serve one connection to its end."""
        with (
            suppress(OSError),
            self.context.wrap_socket(client, server_side=True) as plain,
            socket.create_connection(self.backend) as backend,
        ):
            lock = threading.Lock()
            pump = threading.Thread(target=_pump, args=(backend, plain, lock))
            pump.start()
            try:
                self._hand_on(plain, backend, lock)
            finally:
                with suppress(OSError):
                    backend.shutdown(socket.SHUT_RDWR)
                pump.join()

    def _hand_on(self, client: socket.socket, backend: socket.socket, lock: threading.Lock) -> None:
        scram = Scram(self.username, self.password)
        is_in = not self.username
        while message := _read_message(client):
            _, request, _, code = struct.unpack("<iiii", message[:16])
            asked = {} if is_in else parse(code, message[16:])
            command = next(iter(asked), "")
            answer: Document | None = None
            if command == "saslStart":
                answer = scram.start(asked["payload"])
            elif command == "saslContinue":
                answer = scram.go_on(asked["payload"])
                is_in = bool(answer["ok"])
                self.let_in += is_in
            elif not is_in and command.lower() not in _OPEN:
                answer = {**_CLOSED, "errmsg": f"Command {command} requires authentication"}
            if answer is None:
                backend.sendall(message)
                continue
            self.refused += not answer["ok"]
            with lock:
                client.sendall(frame(code, request, answer))


def _read_message(client: socket.socket) -> bytes:
    header = _read(client, 16)
    return header and header + _read(client, struct.unpack("<i", header[:4])[0] - 16)


def _read(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            return b""
        data += more
    return data


def _pump(source: socket.socket, target: socket.socket, lock: threading.Lock) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            with lock:
                target.sendall(data)


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    gate: Gate


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        server: Any = self.server
        server.gate.serve(self.request)


@contextmanager
def serve_gate(
    address: str,
    backend: tuple[str, int],
    joined: Path,
    account: tuple[str, str] = ("", ""),
    clients: Path | None = None,
) -> Iterator[tuple[int, Gate]]:
    """Serve at an address with the certificate and key of a file; give the port.

    `clients`: who vouches for clients, which then must show a certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(joined)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients)
    gate = Gate(backend, context, *account)
    with _Server((address, 0), _Handler) as server:
        server.gate = gate
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.server_address[1], gate
        finally:
            server.shutdown()
            thread.join()
