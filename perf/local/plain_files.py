"""Read files that others may have put there: plain ones only, without waiting, and only so much.

A pipe would keep its reader until somebody writes, a device has no end, and a file of gigabytes takes
the machine's memory; whoever reads one by mistake must be told so instead.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from perf.model.errors import InputError

MOST_PARTS = 1_000_000
"""Commas and brackets of a file of JSON: no more values than that."""


@contextmanager
def open_plain(path: Path, most_bytes: int) -> Iterator[BinaryIO]:
    """Open a regular file of at most so many bytes for reading.

    Raises:
        OSError: it cannot be read, is something else than a file, or is larger.

    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        about = os.fstat(descriptor)
        if stat.S_ISDIR(about.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "it is a pipe, a device or a socket, not a file", str(path))
        if about.st_size > most_bytes:
            raise _too_large(path, about.st_size, most_bytes)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def read_plain(path: Path, most_bytes: int) -> bytes:
    """Return the content of a regular file of at most so many bytes.

    Raises:
        OSError: as of `open_plain`.

    """
    with open_plain(path, most_bytes) as file:
        # As much as is there, as a rule: room for the most of each of many small files takes time.
        size = os.fstat(file.fileno()).st_size
        content = file.read(size + 1)
        if len(content) > size:
            content += file.read(most_bytes + 1 - len(content))
    if len(content) > most_bytes:  # it has grown, or the system does not know its size
        raise _too_large(path, len(content), most_bytes)
    return content


def read_json(path: Path, most_bytes: int) -> bytes:
    """Return the content of a file of JSON that has few enough values; it need not be JSON.

    Where each value is wrong, a fault of each is kept until all are found, in up to a kilobyte: of a
    file of 16 MiB that took more than 3 GB.

    Raises:
        OSError: as of `open_plain`, or it has too many values.

    """
    content = read_plain(path, most_bytes)
    if (parts := sum(map(content.count, (b",", b"[", b"{")))) > MOST_PARTS:
        what = f"it has {parts:,} commas and brackets, and at most {MOST_PARTS:,} are read"
        raise OSError(errno.EFBIG, what, str(path))
    return content


def read_input(path: Path, most_bytes: int, read: Callable[[Path, int], bytes] = read_plain) -> bytes:
    """Return the content of a file that a command was given; raise InputError if it cannot be read."""
    try:
        return read(path, most_bytes)
    except OSError as error:
        raise InputError(path, [f"it cannot be read: {error.strerror}"]) from error


def _too_large(path: Path, size: int, most_bytes: int) -> OSError:
    return OSError(errno.EFBIG, f"it has {size} bytes, and at most {most_bytes} are read", str(path))
