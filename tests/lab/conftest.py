"""The lab of this tree, up for these tests and down after them; one that was up before stays up."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import filelock
import pytest
from needs import need

ROOT = Path(__file__).parents[2]
OURS = (
    "perf.systems.fake.server",
    "perf.load.engine.process",
    "/opt/knickpoint/bin/knickload",
    "org.apache.cassandra.service.CassandraDaemon",
)
HOSTS = ("db-1", "db-2", "db-3", "load-1", "load-2")


@dataclass(frozen=True)
class Lab:
    """The hosts of the lab, seen from the machine that carries them."""

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(ROOT / "infra" / "lab" / "lab.py"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)

    def do(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def states(self) -> dict[str, str]:
        lines = (line.split(maxsplit=2) for line in self.do("status").splitlines())
        return {name: state for name, _, state in lines}

    def is_up(self) -> bool:
        return all(state.startswith("up") for state in self.states().values())

    def first_process(self, host: str) -> int:
        return self.first_processes(host)[host]

    def first_processes(self, *hosts: str) -> dict[str, int]:
        """Return the first process of each host, by one question: a busy machine is slow to answer."""
        states, found = self.states(), {}
        for host in hosts:
            first = re.search(r"first process (\d+)", states[host])
            assert first, f"{host} is not up"
            found[host] = int(first[1])
        return found

    def processes(self, host: str, *programs: str) -> list[int]:
        """Return the pids, as the machine counts, of a host's processes of these programs."""
        return self._processes(self.first_process(host), *programs)

    def _processes(self, first: int, *programs: str) -> list[int]:
        room = Path(f"/proc/{first}/ns/pid").readlink()
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if (path / "ns" / "pid").readlink() == room:
                    first, *words = (path / "cmdline").read_bytes().decode().split("\0")
                    is_one = any(first.startswith(name) or name in words for name in programs)
                    found += [int(path.name)] if is_one and Path(first).name != "sh" else []
            except OSError:
                continue  # it has just ended
        return found

    def ours(self, *hosts: str) -> dict[str, list[int]]:
        """Return the servers and engines that run on hosts."""
        firsts = self.first_processes(*(hosts or HOSTS))
        return {host: self._processes(first, *OURS) for host, first in firsts.items()}


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    need(os.geteuid() == 0, "the lab needs root")
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    need(sshd, "the lab needs sshd; install openssh-server")
    found = Lab()
    (ROOT / "var").mkdir(exist_ok=True)
    with filelock.FileLock(ROOT / "var" / "lab-tests.lock", timeout=1500):
        was_up = found.is_up()
        up = found.run("up")
        need("another lab is up" not in up.stderr and "are in use" not in up.stderr, up.stderr)
        assert up.returncode == 0, up.stdout + up.stderr
        try:
            yield found
        finally:
            found.do("up" if was_up else "down")
