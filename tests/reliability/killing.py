"""Commands that are killed: each is a process that runs the real entry point, begun in milliseconds.

A `Launcher` has imported all of Knickpoint once, and forks for each command, in a session of its own.
The command can be killed from outside, by the clock, or at its n-th change of a file (`dying.c`).
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TOKEN = "KNICKPOINT_KILLED"  # noqa: S105  the name of a variable
_POLL_S = 0.002
_KILLED = -signal.SIGKILL


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended: the code of its exit, minus the signal that killed it."""

    code: int
    seconds: float
    output: str
    calls: int
    """Changes of files; known only of one that was not killed."""

    @property
    def is_killed(self) -> bool:
        return self.code == _KILLED


@dataclass(slots=True)
class Launcher:
    """Forks commands. `place` is for their output."""

    server: "subprocess.Popen[str]"
    place: Path
    token: str

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path = ROOT,
        made_up: bool = False,
        environment: Mapping[str, str] | None = None,
        call: int = 0,
        after_s: float | None = None,
        with_group: bool = False,
        limit_s: float = 240,
    ) -> Ended:
        """Run a command: to its end, or kill it at its n-th change of a file or after so many seconds.

        Made-up trials are sealed as soon as they are ordered. With its group, all processes that it
        forked are killed in the same moment.
        """
        output, counted = self.place / "output", self.place / "calls"
        counted.unlink(missing_ok=True)
        begun_s = time.monotonic()
        asked = {"argv": [*argv], "cwd": str(cwd), "made_up": made_up, "call": call}
        asked["environment"] = {**(environment or {})}
        asked |= {"output": str(output), "counted": str(counted)}
        pid = int(self._ask(asked))
        code = self._wait(pid, limit_s if after_s is None else after_s)
        if code is None:
            os.killpg(pid, signal.SIGKILL) if with_group else os.kill(pid, signal.SIGKILL)
            code = self._wait(pid, 10)
            assert after_s is not None, f"not within {limit_s:g} s: {output.read_text()}"
        assert code is not None
        return Ended(
            code=code,
            seconds=time.monotonic() - begun_s,
            output=output.read_text(errors="replace"),
            calls=int(counted.read_text()) if counted.exists() else 0,
        )

    def find_left(self) -> list[str]:
        """Give the command lines of what commands started and left running."""
        found = []
        for place in Path("/proc").iterdir():
            if place.name.isdecimal() and int(place.name) != self.server.pid:
                with suppress(OSError):
                    # A forked process still has the server's environment, a started one the command's.
                    if f"{TOKEN}={self.token}".encode() in (place / "environ").read_bytes():
                        found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        return found

    def _wait(self, pid: int, limit_s: float) -> int | None:
        code = self._ask({"wait": pid, "limit_s": limit_s})
        return None if code == "None" else int(code)

    def _ask(self, asked: Mapping[str, Any]) -> str:
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(f"{json.dumps(asked)}\n")
        self.server.stdin.flush()
        return self.server.stdout.readline().strip()


@contextmanager
def launching(place: Path, token: str) -> Iterator[Launcher]:
    """Give a launcher, until the block ends; kills at calls need a C compiler."""
    place.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, TOKEN: token, "OPENBLAS_NUM_THREADS": "1"}
    if compiler := shutil.which("cc"):
        library = place / "dying.so"
        source = Path(__file__).with_name("dying.c")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        environment["LD_PRELOAD"] = str(library)
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=ROOT,
    )
    assert server.stdin is not None
    try:
        yield Launcher(server, place, token)
    finally:
        server.stdin.close()
        server.wait(timeout=30)
        if server.stdout is not None:
            server.stdout.close()


def _serve() -> None:
    """Import everything, then fork and wait as asked, until the input ends; runs in the server."""
    from importlib.metadata import entry_points  # noqa: PLC0415  nothing of this is the tests' own

    for entry in entry_points(group="knickpoint.commands"):
        entry.load()
    for line in sys.stdin:
        asked = json.loads(line)
        if "wait" in asked:
            _answer(_await(asked["wait"], asked["limit_s"]))
            continue
        ready, begun = os.pipe()
        pid = os.fork()
        if not pid:
            os.setsid()
            os.close(begun)
            _become(**asked)
            return
        os.close(begun)
        os.read(ready, 1)  # ends once the group of the process is there to be killed
        os.close(ready)
        _answer(pid)


def _answer(number: int | None) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _await(pid: int, limit_s: float) -> int | None:
    end_s = time.monotonic() + limit_s
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= end_s:
            return None
        time.sleep(_POLL_S)


def _become(
    *,
    argv: list[str],
    cwd: str,
    made_up: bool,
    environment: dict[str, str],
    call: int,
    output: str,
    counted: str,
) -> None:
    """Be the command from here on."""
    import ctypes  # noqa: PLC0415  only in the child

    import command_server  # noqa: PLC0415

    from perf.commands.main import main  # noqa: PLC0415
    from perf.jobs import measuring, night  # noqa: PLC0415

    for path, flags, numbers in (
        (os.devnull, os.O_RDONLY, (0,)),
        (output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, (1, 2)),
    ):
        opened = os.open(path, flags)
        for number in numbers:
            os.dup2(opened, number)
        os.close(opened)
    os.chdir(cwd)
    os.environ.update(environment)
    tempfile.tempdir = None  # of the server
    dying = ctypes.CDLL(None) if os.environ.pop("LD_PRELOAD", "") else None
    if dying:
        dying.dying_seen.restype = ctypes.c_long
        dying.dying_at(ctypes.c_long(call))
    if made_up:
        measuring.run_trial = command_server.seal
        night._check_hosts = lambda *_: None  # noqa: SLF001  no server is started
    sys.argv = ["knickpoint", *argv]
    code: object = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    if dying:
        Path(counted).write_text(str(dying.dying_seen()))
    # Nothing of the server's threads is in this process: their libraries cannot end in order.
    os._exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    _serve()
