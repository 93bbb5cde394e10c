"""Checkpoints of a history file that no torn write can spoil.

What DuckDB's newest header names is never overwritten, but for one thing: a block of metadata that has
room left is filled up in place, and its checksum is of the whole block. Half of such a write, of a disk
that fails or loses power, would make the file unreadable, and with it what was there before. So these
blocks are kept beside the file until the checkpoint is on the disk; a file that has the header of that
moment still gets them back. What was to be brought into it is in its log.

Other checkpoints than these must not happen: `PLAIN` and `prevent` see to that.
"""

import fcntl
import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

import duckdb

from perf.local import durable
from perf.local.plain_files import read_plain

PLAIN: dict[str, str | bool | int | float | list[str]] = {"checkpoint_threshold": "1TB"}
"""No checkpoint by DuckDB itself while a file is open."""
LOG_BYTES = 16 * 2**20
"""So long may a log grow, as with DuckDB itself."""
_HEADERS = 3 * 4096
_BLOCK = 2**18
_MOST_BYTES = 2**30


def prevent(connection: duckdb.DuckDBPyConnection) -> None:
    """Let closing the file make no checkpoint."""
    connection.execute("PRAGMA disable_checkpoint_on_shutdown")


def run(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Bring the log of an open file into it.

    Raises:
        OSError: the blocks cannot be kept beside it; nothing was changed.
        duckdb.Error: the checkpoint failed; the file must be closed then.

    """
    blocks = connection.execute("PRAGMA metadata_info").fetchall()
    places = [_HEADERS + _BLOCK * number for number, _, free, _ in blocks if free]
    source = _descriptor(path)
    parts = [os.pread(source, _HEADERS, 0), *(os.pread(source, _BLOCK, place) for place in places)]
    body = b"".join(parts)
    head = {"places": places, "sha256": hashlib.sha256(body).hexdigest()}
    durable.atomic_write(backup_of(path), json.dumps(head).encode() + b"\n" + body)
    connection.execute("CHECKPOINT")
    durable.remove(backup_of(path))


def repair(path: Path) -> None:
    """Put the blocks back that a checkpoint was writing when it ended; to be called before opening.

    A file with another header has made that checkpoint, or one since, and stays as it is; so does one
    that another process has open, or that cannot be written.
    """
    if not backup_of(path).exists():
        return
    with suppress(OSError, ValueError, KeyError), path.open("r+b", buffering=0) as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        head, _, body = read_plain(backup_of(path), _MOST_BYTES).partition(b"\n")
        header = json.loads(head)
        is_whole = hashlib.sha256(body).hexdigest() == header["sha256"]
        if is_whole and file.read(_HEADERS) == body[:_HEADERS]:
            for number, place in enumerate(header["places"]):
                start = _HEADERS + _BLOCK * number
                os.pwrite(file.fileno(), body[start : start + _BLOCK], place)
            os.fsync(file.fileno())
        durable.remove(backup_of(path))


def _descriptor(path: Path) -> int:
    """Find the descriptor by which this process has a file open.

    To open it a second time and close it would end DuckDB's lock, as locks of files go.
    """
    wanted = path.stat()
    for descriptor in (int(one.name) for one in Path("/proc/self/fd").iterdir()):
        with suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), wanted):
                return descriptor
    raise OSError(f"{path} is not open")


def backup_of(path: Path) -> Path:
    """Return the place of the blocks that are kept while a checkpoint is written."""
    return path.with_name(f"{path.name}.spare")
