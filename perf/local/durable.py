"""Files that are whole or as they were, even where the power fails: written aside, synced, then moved.

A disk may keep what it was given in any order. So content is on it before a name leads there, and a
name is on it before anybody is notified; a directory that was made is on it before all that is put
inside.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


def atomic_write(path: Path, content: bytes) -> None:
    """Put a file in place in one step, with the directories above it; on the disk when this returns.

    Of several processes at once, one does so after the other.

    Raises:
        OSError: it cannot be written; what was there is there still, unless what failed was only to
            bring the new name to the disk.

    """
    make_directory(path.parent)
    fresh = path.with_name(f"{path.name}.new")
    try:
        with naming(path), _opened_alone(fresh) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            fresh.replace(path)
    except OSError:
        with suppress(OSError):  # what went wrong first is what must be reported
            fresh.unlink(missing_ok=True)
        raise
    sync(path.parent)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name this file in an error of the operating system that names none: that of a write or a sync."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def _opened_alone(fresh: Path) -> Iterator[IO[bytes]]:
    """Open a file anew for one process at a time; what one that was killed has left is overwritten."""
    while True:
        with fresh.open("ab") as file:  # what is in it may be another's, who is writing it
            with suppress(OSError):  # a file system of a network may have no such locks
                fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(file, fresh):
                file.truncate(0)
                yield file
                return


def _is_at(file: IO[bytes], path: Path) -> bool:
    """Return whether an open file is still there: who had it before has moved it to its place."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def move(fresh: Path, path: Path) -> None:
    """Bring a whole file or directory to the disk, then move it in one step to where nothing is yet.

    Raises:
        OSError: it cannot be done.

    """
    if fresh.is_dir():
        for inner in sorted(fresh.rglob("*"), reverse=True):
            if not inner.is_symlink():  # its name is all that it is
                sync(inner)
    sync(fresh)
    fresh.rename(path)
    sync(path.parent)


def remove(path: Path) -> None:
    """Remove a file, if there is one; it is gone from the disk when this returns.

    Raises:
        OSError: it cannot be removed.

    """
    if path.exists():
        path.unlink(missing_ok=True)
        sync(path.parent)


def make_directory(path: Path) -> None:
    """Make a directory and those above it, if they are missing; on the disk when this returns.

    Raises:
        OSError: it cannot be made.

    """
    missing = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for one in missing:
        sync(one.parent)


def sync(path: Path) -> None:
    """Bring the content of a file, or the names in a directory, to the disk.

    Raises:
        OSError: the disk refuses.

    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with naming(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
