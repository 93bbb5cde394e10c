"""A planted secret, looked for wherever a careless program leaves one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOOK_S = 0.02


def find_in_files(secret: str, *roots: Path) -> list[Path]:
    """Return the files below some directories that hold a secret."""
    files = [path for root in roots for path in root.rglob("*") if path.is_file()]
    return [path for path in files if secret.encode() in path.read_bytes()]


@contextmanager
def watch_processes(secret: str) -> Iterator[set[str]]:
    """Look at the command lines of all processes, again and again; give those that hold a secret."""
    found: set[str] = set()
    done = threading.Event()

    def look() -> None:
        while not done.wait(_LOOK_S):
            found.update(_command_lines(secret))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield found
    finally:
        done.set()
        watcher.join()


def _command_lines(secret: str) -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:  # it has ended
            continue
        if secret.encode() in line:
            yield line.replace(b"\0", b" ").decode(errors="replace")


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment that a process was started with."""
    entries = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)  # type: ignore[misc]
