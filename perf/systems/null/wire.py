"""The frames between the null server and its client, of fixed size: they cost next to nothing.

A write does not carry its rows, only how many there are, how large, and which row is the first.
"""

import struct
from enum import IntEnum

PORT = 17_998


class RequestKind(IntEnum):
    """What a client asks for."""

    WRITE = 0
    READ = 1
    STORED = 2


class Status(IntEnum):
    """How the server answers."""

    DONE = 0
    REFUSED = 1


REQUEST = struct.Struct("<IIIIQQ")
"""Id of the request, kind, rows, their bytes, device (CRC-32 of its id), timestamp of the first row."""

ANSWER = struct.Struct("<IIQQ")
"""Id of the request, status, and for STORED the rows and bytes that were acknowledged."""
