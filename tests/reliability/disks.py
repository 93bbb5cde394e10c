"""Commands of Knickpoint on a disk that fails where it is told to, and that remembers each change.

`serving` builds `disk_shim.c` and gives `Commands`, whose `run` is one command in a process of its own.
"""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from needs import need

MET = re.compile(
    r"the history file \S+ is in use: process \d+ \(\S+\) has it open\. Wait until that has ended"
    r"|another process rebuilds \S+: wait until it has ended"
    r"|another run \(pid \d+\) measures into \S+; wait for it to end"
)
"""What a command says that met another one at work."""
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TOKEN = "KNICKPOINT_KILLED"  # noqa: S105  the name of a variable
ALL = "wcrstu"
"""All kinds of changes, as in disk_shim.c: write, create, rename, sync, truncate, unlink."""
FULL = "wc"
"""What a full disk refuses."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the disk, or (`told`) what a command said meanwhile."""

    what: str
    inode: int
    offset: int
    path: str
    to: str
    content: bytes

    @property
    def kind(self) -> str:
        """Return its letter in disk_shim.c; empty for what is said."""
        if self.what == "told":
            return ""
        kinds = {"create": "c", "mkdir": "c", "link": "r", "remove": "u", "exchange": "r"}
        return kinds.get(self.what, self.what[0])


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a command; `code` is minus the signal that killed it."""

    code: int
    out: str
    err: str
    seconds: float = 0.0
    changes: int = 0
    """Of the disk; known only of one that was to die at some change, and was not killed."""

    @property
    def is_killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def is_refused(self) -> bool:
        """Return whether it met another command at work, and said so."""
        return self.code == 3 and bool(MET.search(self.said))

    @property
    def said(self) -> str:
        return self.out + self.err

    def __str__(self) -> str:
        return f"exit code {self.code}\n{self.out}{self.err}"


@dataclass(slots=True)
class Commands:
    """The server of commands; `place` is a directory of its own."""

    server: subprocess.Popen[str]
    place: Path
    begun: int = 0

    def run(
        self,
        *argv: object,
        after_s: float | None = None,
        with_group: bool = False,
        limit_s: float = 240.0,
        **how: Any,  # noqa: ANN401  those of `begin`
    ) -> Done:
        """Run one command to its end, or kill it after so many seconds, alone or all that it forked."""
        began_s = time.monotonic()
        running = self.begin(*argv, **how)
        done = self.end(running, limit_s if after_s is None else after_s)
        if done is None:
            (os.killpg if with_group else os.kill)(running[0], signal.SIGKILL)
            done = self.end(running, 10.0)
            assert after_s is not None, f"not within {limit_s:g} s: {done}"
        assert done is not None
        return replace(done, seconds=time.monotonic() - began_s)

    def begin(
        self,
        *argv: object,
        under: Path | None = None,
        fail: str = "",
        record: Path | None = None,
        made_up: bool = False,
        cwd: Path = ROOT,
        environment: Mapping[str, str] | None = None,
    ) -> tuple[int, Path]:
        """Begin a command; `fail` and `record` are of what lies below `under`, see disk_shim.c."""
        if record:
            record.unlink(missing_ok=True)
        reported = {"DISK_UNDER": str(under or ""), "DISK_FAIL": fail, "DISK_RECORD": str(record or "")}
        reported = {name: value for name, value in reported.items() if value}
        reported["KNICKPOINT_CACHE"] = str(self.place / "cache")
        self.begun += 1
        output = self.place / f"output-{self.begun}"
        output.mkdir()
        asked = {"argv": [str(one) for one in argv], "environment": {**reported, **(environment or {})}}
        asked |= {"output": str(output), "made_up": made_up, "cwd": str(cwd)}
        return int(self._ask(asked)), output

    def end(self, running: tuple[int, Path], limit_s: float = 300.0) -> Done | None:
        """Wait for the end of a command; None where it does not come in time."""
        pid, output = running
        code = self._ask({"wait": pid, "limit_s": limit_s})
        if code == "None":
            return None
        out, err = ((output / name).read_text(errors="replace") for name in ("out", "err"))
        counted = output / "counted"
        changes = int(counted.read_text()) if counted.exists() else 0
        shutil.rmtree(output)
        return Done(int(code), out, err, changes=changes)

    def find_left(self) -> list[str]:
        """Return the command lines of what commands started and left running."""
        found = []
        for place in Path("/proc").iterdir():
            if place.name.isdecimal() and int(place.name) != self.server.pid:
                with suppress(OSError):
                    # A forked process still has the server's environment, a started one the command's.
                    if f"{TOKEN}={self.place}".encode() in (place / "environ").read_bytes():
                        found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        return found

    def _ask(self, asked: Mapping[str, Any]) -> str:
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        print(json.dumps(asked), file=self.server.stdin, flush=True)
        return self.server.stdout.readline().strip()


def build(place: Path) -> Path:
    """Compile the shim."""
    need(shutil.which("cc"), "no C compiler here: install gcc")
    library = place / "disk.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", library, HERE / "disk_shim.c", "-ldl"]
    subprocess.run(command, check=True)
    return library


@contextmanager
def serving(place: Path) -> Iterator[Commands]:
    """Start the server; `place` is an empty directory."""
    environment = {**os.environ, "LD_PRELOAD": str(build(place)), "COLUMNS": "500"}
    environment |= {TOKEN: str(place), "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, HERE / "command_server.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=ROOT,
    ) as server:
        yield Commands(server, place)
        assert server.stdin is not None
        server.stdin.close()


def dying(change: int) -> str:
    """State that a command is to die at so manyth change of the disk; 0: only to count them."""
    return f"{ALL} {change} {errno.EIO} die"


def failing(kinds: str, place: int, number: int, how: str) -> str:
    """Say how the disk is to fail: from the `place`-th change of these kinds on, or at it alone."""
    return f"{kinds} {place} {number} {how}"


def describe_fault(fail: str) -> str:
    """Say it in words, for a test that failed."""
    kinds, place, number, how = fail.split()
    return f"{errno.errorcode[int(number)]} at change {place} of {kinds}, {how}"


def read_record(path: Path) -> tuple[Change, ...]:
    """Read what the shim wrote."""
    found = []
    with path.open("rb") as file:
        while line := file.readline():
            what, inode, offset, length, one, other = line.decode().rstrip("\n").split("\t")
            carried = int(length) if what in {"write", "told"} else 0
            content = file.read(carried)
            found.append(Change(what, int(inode), int(offset), one, other, content))
    return tuple(found)
