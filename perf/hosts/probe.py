"""The canary's fixed work: a program of its own, sent to a host and run there by its Python (3.9 on).

It needs nothing but the standard library. Argument: the directory in which to write. It prints one
JSON object: the value of each repetition, by metric.
"""

import gc
import hashlib
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# A part ends after its number of repetitions, or on a slow host after its share of two seconds.
_BUDGET_S = 0.45
_HASHED = bytes(range(256)) * 1024
_HASHED_TIMES = 40
_COPIED_BYTES = 64 << 20
_WRITTEN = bytes(4096)


def measure(directory: Path) -> dict[str, list[float]]:
    """Do all of the fixed work, one part after the other."""
    gc.disable()
    return {
        "canary_cpu": [1000 * one_s for one_s in _repeat(_compute, 40)],
        "canary_memory": [_COPIED_BYTES / 1e6 / one_s for one_s in _copying(25)],
        "canary_fsync": [1000 * one_s for one_s in _syncing(directory, 100)],
        "canary_loopback": [1e6 * one_s for one_s in _round_trips(4000)],
    }


def _repeat(work: Callable[[], object], count: int) -> list[float]:
    """Return the seconds that each repetition took, without the first."""
    clock = time.perf_counter
    work()
    took_s: list[float] = []
    now_s = clock()
    end_s = now_s + _BUDGET_S
    while len(took_s) < count and (now_s < end_s or not took_s):
        before_s = now_s
        work()
        now_s = clock()
        took_s.append(now_s - before_s)
    return took_s


def _compute() -> None:
    """Hash what the inner caches hold: no interpreter, memory or system call has a part in it."""
    digest = hashlib.sha256()
    for _ in range(_HASHED_TIMES):
        digest.update(_HASHED)


def _copying(count: int) -> list[float]:
    source = memoryview(bytearray(_COPIED_BYTES))
    target = memoryview(bytearray(_COPIED_BYTES))

    def copy() -> None:
        target[:] = source

    return _repeat(copy, count)


def _syncing(directory: Path, count: int) -> list[float]:
    with _existing(directory), tempfile.NamedTemporaryFile(dir=directory) as file:

        def write() -> None:
            os.pwrite(file.fileno(), _WRITTEN, 0)
            os.fsync(file.fileno())

        return _repeat(write, count)


@contextmanager
def _existing(directory: Path) -> Iterator[None]:
    """Make a directory for as long as it is needed; leave it if it was there."""
    missing = [path for path in (directory, *directory.parents) if not path.is_dir()]
    for path in reversed(missing):
        path.mkdir()
    try:
        yield
    finally:
        for path in missing:
            path.rmdir()


def _round_trips(count: int) -> list[float]:
    # On two cores, if there are two: left alone, the scheduler puts both processes now on one core
    # and now on two, which differs by a factor of three.
    near, *others = sorted(os.sched_getaffinity(0))
    far = next(iter(others), near)
    os.sched_setaffinity(0, {near})
    with socket.create_server(("127.0.0.1", 0)) as server:
        child = os.fork()
        if not child:
            os.sched_setaffinity(0, {far})
            _echo(server)
        with socket.create_connection(server.getsockname()) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

            def ask() -> None:
                client.send(b"?")
                client.recv(1)

            took_s = _repeat(ask, count)
        os.waitpid(child, 0)
    return took_s


def _echo(server: socket.socket) -> None:
    try:
        peer, _ = server.accept()
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while byte := peer.recv(1):
            peer.send(byte)
    finally:
        os._exit(0)


if __name__ == "__main__":
    json.dump(measure(Path(sys.argv[1]).absolute()), sys.stdout)
