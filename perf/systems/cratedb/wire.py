"""Connections to CrateDB's HTTP endpoint, as many as are in flight, kept open between requests.

They are sockets with the standard library's reader of answers, and nothing around it: what a client
spends is taken from the load that it can offer. One look-up by a thread against a server that only
answers cost 91 to 126 µs of CPU here with its JSON, 300 to 329 µs through `urllib3`, 974 to 1484 µs
through `requests` (3 runs of 3000 each, in turn, on a machine with other work).
"""

import io
import select
import socket
import time
from collections import deque
from http.client import HTTPException, HTTPResponse
from typing import Any, cast

MOST_BYTES = 256 << 20
"""How large an answer may be: several times a page of the largest records that a workload stores."""


class NoConnectionError(Exception):
    """There is nobody to send to."""


class TooLargeError(HTTPException):
    """An answer is larger than `MOST_BYTES`."""


FAILURES = (NoConnectionError, HTTPException, OSError)
"""What a request raises that has no answer; a TimeoutError is one that was sent."""


class Connections:
    """All connections to one node. Threads share it; each request has a connection to itself."""

    def __init__(self, address: str, port: int) -> None:
        """Connect nowhere yet."""
        self._place = (address, port)
        self._head = (
            f"POST /_sql HTTP/1.1\r\nHost: {address}:{port}\r\nAccept: application/json\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        ).encode()
        # To append and to pop are one step for the interpreter, so threads need no lock.
        self._idle: deque[socket.socket] = deque()

    def post(self, body: bytes, timeout_s: float) -> tuple[int, bytes]:
        """Send a body; give status and body of the answer.

        All of it may take `timeout_s`, however often the other side says a little.

        Raises:
            NoConnectionError: the node cannot be reached, or not in time.
            TimeoutError: the request was sent, and no answer came in time.
            http.client.HTTPException: what came is no HTTP or too large, or the connection was closed
                instead.
            OSError: the connection broke.

        """
        end_s = time.monotonic() + timeout_s
        connection = self._take(timeout_s)
        # Of a socket, the reader of answers asks for its file alone.
        source = cast("socket.socket", _Source(connection, end_s))
        response = HTTPResponse(source, method="POST")
        try:
            # To send all is one wait, whatever the pieces.
            connection.settimeout(_left_s(end_s))
            connection.sendall(b"%b%d\r\n\r\n%b" % (self._head, len(body), body))
            response.begin()
            answer = response.status, response.read()
        except BaseException as error:
            response.close()
            connection.close()
            # What the head announces is made room for before any of it is there.
            if isinstance(error, MemoryError | OverflowError):
                raise TooLargeError("an answer for which there is no room") from error
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return answer

    def close(self) -> None:
        """Close all that are not in use."""
        while self._idle:
            self._idle.pop().close()

    def _take(self, timeout_s: float) -> socket.socket:
        while self._idle:
            connection = self._idle.pop()
            if not _has_ended(connection):
                return connection
            connection.close()
        try:
            connection = socket.create_connection(self._place, timeout_s)
        except OSError as error:
            raise NoConnectionError(f"{self._place[0]}:{self._place[1]}: {error}") from error
        # Without it, a request waits for the acknowledgement of the one before.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


class _Source(io.RawIOBase):
    """What a connection gives until a time, by the clock `time.monotonic`, and so much and no more."""

    def __init__(self, connection: socket.socket, end_s: float) -> None:
        self._connection = connection
        self._end_s = end_s
        self._left_bytes = MOST_BYTES

    def makefile(self, _: str) -> io.BufferedReader:
        """Give the file of it, as a socket does."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  a buffer has no name before Python 3.12
        """Wait for some bytes."""
        self._connection.settimeout(_left_s(self._end_s))
        count = self._connection.recv_into(buffer)
        self._left_bytes -= count
        if self._left_bytes < 0:
            raise TooLargeError(f"an answer of more than {MOST_BYTES} bytes")
        return count


def _left_s(end_s: float) -> float:
    left_s = end_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("the time for the whole request is over")
    return left_s


def _has_ended(connection: socket.socket) -> bool:
    """Tell whether a connection that waits for nothing has something to read: its end."""
    asked = select.poll()
    asked.register(connection, select.POLLIN)
    return bool(asked.poll(0))
