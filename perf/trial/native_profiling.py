"""Profiles of servers that are no JVM, by Linux's `perf`: where their CPU time goes, by stack.

`perf record` looks at each thread once in 2 ms of CPU time, and follows frame pointers: of a server
that was built without them, only the innermost functions are right. Not yet run on a `mongod` or
`scylla`; tried on a program whose work is known.
"""

import re
import signal
import time
from collections import Counter
from collections.abc import Iterable

from perf.hosts.remote import Remote, read_tail, running_pid, send_signal
from perf.model.errors import StepFailed
from perf.model.stacks import THREAD

_PAUSE_S = 0.05
_PARANOID = "/proc/sys/kernel/perf_event_paranoid"
_SCRIPT = 'perf script -i "$1" -F comm,time,ip,sym,dso 2>/dev/null | gzip >"$2"'
_BEGUN_S, _ENDED_S = 0.3, 30.0
_HEAD = re.compile(r"^(\S.*?)\s+([\d.]+):\s*$")
_FRAME = re.compile(r"^\s+[0-9a-f]+ (.+) \((.*)\)$")
_INNER = (re.compile(r"<[^<>]*>"), re.compile(r"\([^()]*\)"))
_DIGITS = re.compile(r"[-\d]+")


def is_there(remote: Remote) -> bool:
    """Return whether a host has `perf`."""
    return remote.run(["sh", "-c", "command -v perf"], check=False).returncode == 0


def begin(remote: Remote, pid: int, path: str, interval_us: int) -> None:
    """Begin to look at a process; what is seen is kept at `path` on its host.

    Raises:
        StepFailed: perf events are not allowed there, or it could not begin.

    """
    log = f"{path}.log"
    wanted = ("-e", "cpu-clock", "-c", str(interval_us * 1000), "-k", "mono", "--call-graph", "fp")
    remote.start(
        ["perf", "record", *wanted, "-o", path, "-p", str(pid)],
        pid_file=f"{path}.pid",
        log=log,
        cwd=path.rpartition("/")[0],
    )
    # Where it may not look it ends at once; its file stays empty for long.
    if _ends_within(remote, path, _BEGUN_S):
        level = remote.run(["cat", _PARANOID], check=False).stdout.strip()
        said = " ".join(read_tail(remote, log).split())[-300:]
        raise StepFailed("profile", remote.name, f"perf ended at once ({_PARANOID} is {level}): {said}")


def end(remote: Remote, path: str) -> None:
    """End looking.

    Raises:
        StepFailed: it does not end.

    """
    send_signal(remote, f"{path}.pid", signal.SIGINT)
    if not _ends_within(remote, path, _ENDED_S):
        raise StepFailed("profile", remote.name, f"perf did not end within {_ENDED_S:g} s")


def _ends_within(remote: Remote, path: str, limit_s: float) -> bool:
    end_s = time.monotonic() + limit_s
    while running_pid(remote, f"{path}.pid") is not None:
        if time.monotonic() > end_s:
            return False
        time.sleep(_PAUSE_S)
    return True


def write_stacks(remote: Remote, path: str) -> str:
    """Have the host put names to what was seen; return the path of that text there, compressed."""
    remote.run(["sh", "-c", _SCRIPT, "script", path, f"{path}.txt.gz"], timeout_s=300)
    return f"{path}.txt.gz"


def collapse(text: Iterable[str], program: str, since_s: float, until_s: float) -> Counter[str]:
    """Return how often each stack was seen, from what `perf script` prints: its thread first.

    What was seen before and after two moments of the host's monotonic clock does not count.

    Functions of the server's own program end with `()`, as methods of Java do; numbers of threads,
    arguments and parameters of templates are left out.
    """
    stacks: Counter[str] = Counter()
    thread, frames, is_within = "", list[str](), False
    for line in (*text, ""):
        if found := _FRAME.match(line):
            name = _plain(found[1])
            frames.append(f"{name}()" if found[2] == program and name != "[unknown]" else name)
        elif head := _HEAD.match(line):
            thread = THREAD + _DIGITS.sub("", head[1])
            is_within = since_s <= float(head[2]) <= until_s
        elif frames:
            stacks[";".join((thread, *reversed(frames)))] += is_within
            frames = []
    return +stacks


def _plain(symbol: str) -> str:
    """Return the name of a function alone: namespaces by dots, without arguments."""
    name = symbol.replace("(anonymous namespace)", "anonymous").replace("operator()", "operator")
    for pattern in _INNER:
        before = ""
        while before != name:
            before, name = name, pattern.sub("", name)
    words = [word for word in name.partition("[clone")[0].split() if word != "const"]
    return (words[-1] if words else "[unknown]").replace("::", ".").replace(";", "")
