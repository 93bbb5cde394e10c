"""What an interrupted start leaves is found and ended, however far the start had come."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from budget import tries

from perf.hosts.leftovers import end_leftovers
from perf.hosts.remote import MARK, LocalHost
from perf.local.progress import Progress

# Starts processes below a base directory, each in a child of its own, and says its pid.
STARTS = """
import os, signal, sys, time
sys.path[:0] = sys.argv[3:]
from perf.hosts.remote import LocalHost
from here_over_ssh import HereOverSsh
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
host, base = (LocalHost() if sys.argv[1] == "here" else HereOverSsh("far", "nowhere")), sys.argv[2]
for _ in sys.stdin:
    if not (pid := os.fork()):
        os.setsid()
        files = {"pid_file": f"{base}/node/server.pid", "log": f"{base}/node/server.log"}
        host.start(["sleep", "300"], **files, cwd=base)
        time.sleep(300)
    print(pid, flush=True)
"""


def find_marked(base: Path) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(one.startswith(f"{MARK}={base}/".encode()) for one in variables):
            found.append(int(path.parent.name))
    return found


@pytest.mark.keeps("a-kill-needs-no-hand")
@pytest.mark.parametrize("where", ["here", pytest.param("far", marks=pytest.mark.slow)])
def test_a_start_that_is_killed_at_any_moment_leaves_no_orphan(
    tmp_path: Path, where: str, figures: dict[str, object]
) -> None:
    base = tmp_path / "system"
    (base / "node").mkdir(parents=True)
    draw = random.Random(25)  # noqa: S311  moments, no secret
    paths = [str(Path(__file__).parents[3]), *sys.path]
    command = [sys.executable, "-c", STARTS, where, str(base), *paths]
    found = early = 0
    pid_file = base / "node" / "server.pid"
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdin is not None
        assert starter.stdout is not None
        for _ in range(tries(250)):
            pid_file.unlink(missing_ok=True)
            starter.stdin.write("\n")
            starter.stdin.flush()
            pid = int(starter.stdout.readline())
            time.sleep(draw.uniform(0, 0.05))
            try:
                os.killpg(pid, signal.SIGKILL)  # and the shell there, as where a connection ends
            except ProcessLookupError:  # it has no group of its own yet
                os.kill(pid, signal.SIGKILL)
            # What is just between its birth and its first program has no environment of its own yet.
            end = time.monotonic() + 10
            while True:
                left = len(find_marked(base))
                found += left
                early += left and not pid_file.exists()
                end_leftovers(LocalHost(), str(base), 5, Progress())
                if not find_marked(base) and not is_starting(base):
                    break
                assert time.monotonic() < end
        starter.stdin.close()
    end = time.monotonic() + 5
    while find_marked(base):
        assert time.monotonic() < end
        time.sleep(0.01)
    figures["starts killed"] = tries(250)
    figures["of which were found before their pid file"] = early
    assert where == "here" or found


def is_starting(base: Path) -> bool:
    """Return whether a shell or a guard that is to start something there still runs."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if f"{base}/node/server.log".encode() in words:
            return True
    return False


def test_what_belongs_to_others_goes_on(tmp_path: Path) -> None:
    host, others = LocalHost(), LocalHost()
    for base, one in (("mine", host), ("mine-too", others)):
        (tmp_path / base / "node").mkdir(parents=True)
        files = {name: str(tmp_path / base / "node" / f"server.{name}") for name in ("pid", "log")}
        one.start(["sleep", "60"], pid_file=files["pid"], log=files["log"], cwd=str(tmp_path))
    end_leftovers(host, str(tmp_path / "mine"), 5, Progress())
    mine, other = (
        one.child(str(tmp_path / base / "node" / "server.pid"))
        for base, one in (("mine", host), ("mine-too", others))
    )
    assert mine is not None
    assert other is not None
    try:
        assert mine.wait(5) == -signal.SIGTERM
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
