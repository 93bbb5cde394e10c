"""Commands of Knickpoint on a disk that fails where it is told to, and that remembers each change.

`serving` builds `disk_shim.c` and gives `Commands`, whose `run` is one command in a process of its own.
"""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from needs import need

HERE = Path(__file__).parent
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
        """Give its letter in disk_shim.c; empty for what is said."""
        if self.what == "told":
            return ""
        kinds = {"create": "c", "mkdir": "c", "link": "r", "remove": "u", "exchange": "r"}
        return kinds.get(self.what, self.what[0])


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a command."""

    code: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"exit code {self.code}\n{self.out}{self.err}"


@dataclass(slots=True)
class Commands:
    """The server of commands; `place` is a directory of its own."""

    server: subprocess.Popen[str]
    place: Path

    def run(
        self,
        *argv: object,
        under: Path | None = None,
        fail: str = "",
        record: Path | None = None,
        made_up: bool = False,
        cache: Path | None = None,
    ) -> Done:
        """Run one command; `fail` and `record` are of what lies below `under`, see disk_shim.c."""
        if record:
            record.unlink(missing_ok=True)
        told = {"DISK_UNDER": str(under or ""), "DISK_FAIL": fail, "DISK_RECORD": str(record or "")}
        told = {name: value for name, value in told.items() if value}
        told["KNICKPOINT_CACHE"] = str(cache or self.place / "cache")
        request = {
            "argv": [str(one) for one in argv],
            "environment": told,
            "output": str(self.place),
            "made_up": made_up,
        }
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        print(json.dumps(request), file=self.server.stdin, flush=True)
        code = int(self.server.stdout.readline())
        return Done(code, *((self.place / name).read_text(errors="replace") for name in ("out", "err")))


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
    with subprocess.Popen(
        [sys.executable, HERE / "command_server.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as server:
        yield Commands(server, place)
        assert server.stdin is not None
        server.stdin.close()


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
