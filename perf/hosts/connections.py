"""Shared SSH connections: one per host, opened after its first command, used by all that follow.

A connection costs both sides a key exchange and a log-in, which hosts that measure should not pay for
each look at them. The shared one is a child process of this one (`ssh -M -N`), its socket lies in a
private directory, and it ends when this process ends, however that ends. It is a convenience, never a
condition: without it, or once it has failed, each command connects by itself.
"""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from perf.local.children import environment, tie

_PREFIX = "knickpoint-ssh-"
_END_S = 2.0


class SharedConnections:
    """The shared connections of this process, by the ssh command that leads to their host."""

    def __init__(self) -> None:
        """Have none yet."""
        self._lock = threading.Lock()
        self._masters: dict[tuple[str, ...], tuple[subprocess.Popen[bytes], str]] = {}
        self._directory: Path | None = None
        self._opened = 0

    def options(self, ssh: Sequence[str]) -> tuple[str, ...]:
        """Return the options by which a command uses its host's shared connection, if there is one.

        Until the connection stands there is no socket, and ssh connects by itself. What the operator's
        configuration says of shared connections is set aside: those would outlive this process.
        """
        return ("-o", "ControlMaster=no", "-o", f"ControlPath={self._find(ssh) or 'none'}")

    def _find(self, ssh: Sequence[str]) -> str:
        with self._lock:
            master, path = self._masters.get(tuple(ssh), (None, ""))
            return path if master is not None and master.poll() is None else ""

    def open(self, ssh: Sequence[str]) -> None:
        """Begin a shared connection to a host that has just answered, and return at once.

        Does nothing where there is one, and outside of the main thread: what another thread starts
        would end with that thread.
        """
        if threading.current_thread() is not threading.main_thread() or self._find(ssh):
            return
        with self._lock:
            path = self._next_path()
            # With ControlPersist, which the operator may have configured, ssh would go to the
            # background, tied to nothing.
            options = ("-o", "ControlPersist=no", "-o", f"ControlPath={path}")
            # SIGTERM, upon which ssh takes its socket away. A session of its own, so that Ctrl-C in a
            # terminal does not end it before hosts are cleaned up.
            master = subprocess.Popen(  # noqa: S603  no shell; the command is ours
                tie([*ssh[:1], "-M", "-N", *options, *ssh[1:]], signal.SIGTERM),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment(),
                start_new_session=True,
            )
            self._masters[tuple(ssh)] = (master, path)

    def drop(self, ssh: Sequence[str]) -> None:
        """End a host's shared connection: a command that went through it has failed."""
        with self._lock:
            master, _ = self._masters.pop(tuple(ssh), (None, ""))
        if master is not None:
            _end(master)

    def close(self) -> None:
        """End all shared connections."""
        for ssh in tuple(self._masters):
            self.drop(ssh)
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    def _next_path(self) -> str:
        # A name of its own for each: the socket of one that is just ending is not used again. Short,
        # for the path of a socket has room for about 100 characters.
        if self._directory is None:
            _sweep()
            self._directory = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
            atexit.register(self.close)
        self._opened += 1
        return str(self._directory / str(self._opened))


def _sweep() -> None:
    """Remove the directories of processes of this user that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        pid = path.name.removeprefix(_PREFIX).partition("-")[0]
        with suppress(OSError):
            is_ours = path.lstat().st_uid == os.getuid() and not path.is_symlink()
            if is_ours and pid.isdigit() and not Path(f"/proc/{pid}").exists():
                shutil.rmtree(path)


def _end(master: subprocess.Popen[bytes]) -> None:
    master.terminate()
    try:
        master.wait(_END_S)
    except subprocess.TimeoutExpired:
        master.kill()
        master.wait()


SHARED = SharedConnections()
