"""Looks at processes of this machine."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from perf.hosts.remote import LocalHost
from perf.model.errors import StepFailed
from perf.systems.contract import GC_PAUSE_S, Cluster, Node, NodeFigure, System
from perf.trial.telemetry import open_snapshots, read_processes

# Works as long as it is told to, one line at a time, and says when it is done.
WORKER = """
import os, sys, time
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for line in sys.stdin:
    end_s = time.process_time() + float(line)
    while time.process_time() < end_s:
        pass
    os.pwrite(file, bytes(1 << 20), 0)
    os.fsync(file)
    print("done", flush=True)
"""

Worker = tuple[Node, Callable[[float], None]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Worker]]:
    """Return `start(name)`: a node whose process works on demand."""
    with ExitStack() as ending:

        def begin(name: str) -> Worker:
            home = tmp_path / name
            home.mkdir()
            worker = ending.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", WORKER, str(home / "file")],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            ending.callback(worker.kill)
            born = Path(f"/proc/{worker.pid}/stat").read_text().rsplit(") ", 1)[1].split()[19]
            (home / "server.pid").write_text(f"{worker.pid} {born}\n")
            node = Node(name=name, index=0, address="-", remote=LocalHost(), work_dir=str(home))

            def work(cpu_s: float) -> None:
                assert worker.stdin
                assert worker.stdout
                print(cpu_s, file=worker.stdin, flush=True)
                assert worker.stdout.readline() == "done\n"

            return node, work

        yield begin


def test_a_process_is_charged_with_what_it_did(start: Callable[[str], Worker]) -> None:
    (busy, work), (idle, rest) = start("busy"), start("idle")
    work(0.0)
    rest(0.0)
    before = {process.node: process for process in read_processes([busy, idle])}
    work(0.3)
    after = {process.node: process for process in read_processes([busy, idle])}
    assert list(after) == ["busy", "idle"]
    assert {process.host for process in after.values()} == {"local"}
    # The kernel counts in ticks of 10 ms.
    assert 0.28 <= after["busy"].cpu_s - before["busy"].cpu_s < 0.6
    assert after["busy"].written_bytes - before["busy"].written_bytes >= 1 << 20
    assert after["idle"] == before["idle"]


def test_a_process_that_is_gone_is_reported_by_node(start: Callable[[str], Worker]) -> None:
    (here, _), (other, _) = start("here"), start("other")
    pid, _ = Path(other.pid_file).read_text().split()
    Path(other.pid_file).write_text(f"{pid} 1\n")
    with pytest.raises(StepFailed, match="look failed on other: its server process is gone"):
        read_processes([here, other])
    Path(other.pid_file).unlink()
    with pytest.raises(StepFailed, match=r"look failed on other: .*server\.pid"):
        read_processes([here, other])


def test_a_look_sees_each_host_once(start: Callable[[str], Worker]) -> None:
    (node, _), (twin, _) = start("node-1"), start("node-2")
    level = NodeFigure(node="node-1", name=GC_PAUSE_S, value=1.5)
    clients = [SimpleNamespace(remote=host) for host in (LocalHost(), LocalHost("client-1"))]
    cluster = SimpleNamespace(nodes=(node, twin), clients=clients)  # nothing else is looked at
    system = SimpleNamespace(open_telemetry=lambda _: nullcontext(lambda: (level,)))
    with open_snapshots(cast("System", system), cast("Cluster", cluster)) as (look, _):
        seen = look()
    assert [usage.host for usage in seen.hosts] == ["local", "client-1"]
    assert [process.node for process in seen.processes] == ["node-1", "node-2"]
    assert seen.levels == (level,)
