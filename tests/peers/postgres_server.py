"""A PostgreSQL of the tests' own: a cluster of a user without rights, on a free port.

Debian's server refuses to run as root, so root gives it to the user `postgres`, or to `nobody`.
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PASSWORD = "of the tests only"  # noqa: S105  a server that lives as long as a test
USER = "knickpoint"
_PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def find_programs() -> Path | None:
    """Return the directory of the newest installed server's programs; None without one."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    return _PROGRAMS[0] if _PROGRAMS else None


@dataclass
class PostgresServer:
    """A cluster that can be stopped and started again; it listens on 127.0.0.1 and on no socket."""

    programs: Path
    place: Path
    port: int
    is_careful: bool = False
    """Whether commits wait for the disk, as they do where a history is kept."""

    @property
    def address(self) -> str:
        """How a client of the history finds it; the password is in the environment."""
        return f"host=127.0.0.1 port={self.port} dbname=postgres user={USER}"

    def start(self) -> None:
        """Start it, and wait until it serves."""
        fsync = "on" if self.is_careful else "off"
        settings = (
            f"-c port={self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= "
            f"-c fsync={fsync} -c shared_buffers=32MB -c max_connections=60"
        )
        log = str(self.place / "log")
        self._run("pg_ctl", "-D", self._data, "-l", log, "-w", "-t", "60", "-o", settings, "start")

    def stop(self, how: str = "immediate") -> None:
        """Stop it; "immediate" is what a crash does: sessions end, nothing is finished."""
        self._run("pg_ctl", "-D", self._data, "-m", how, "-w", "stop")

    def make(self) -> None:
        """Make the cluster, with one user whose password is asked for."""
        self.place.mkdir(parents=True)
        password = self.place / "password"
        password.write_text(PASSWORD, encoding="utf-8")
        if os.geteuid() == 0:
            owner = _other_user()
            for path in (self.place, password):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        self._run(
            *("initdb", "-D", self._data, "-U", USER, f"--pwfile={password}"),
            *("-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "--no-sync"),
        )

    @property
    def _data(self) -> str:
        return str(self.place / "data")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        output = self.place / "output"
        with output.open("w") as file:
            # A server that starts keeps its parent's output open, so that is a file and no pipe.
            done = subprocess.run(
                [*_as_other_user(), *command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd="/",
                check=False,
                timeout=90,
            )
        assert done.returncode == 0, output.read_text(encoding="utf-8")


@contextmanager
def serving(programs: Path, *, is_careful: bool = False) -> Iterator[PostgresServer]:
    """Yield a new server that runs, and stop it at the end.

    It is not below pytest's own directory, which no other user may enter.
    """
    with tempfile.TemporaryDirectory(prefix="knickpoint-postgres-") as above:
        Path(above).chmod(0o755)
        server = PostgresServer(programs, Path(above) / "cluster", find_free_port(), is_careful)
        server.make()
        server.start()
        try:
            yield server
        finally:
            if (server.place / "data" / "postmaster.pid").exists():
                server.stop()


def find_free_port() -> int:
    """Return a port of 127.0.0.1 that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _other_user() -> pwd.struct_passwd:
    names = [user.pw_name for user in pwd.getpwall()]
    return pwd.getpwnam("postgres" if "postgres" in names else "nobody")


def _as_other_user() -> Sequence[str]:
    if os.geteuid() != 0:
        return ()
    owner = _other_user()
    return (
        *("setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"),
        *("env", "-u", "PGPASSWORD"),
    )
