"""Looks at processes of this machine, and what two looks say of a host."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from perf.errors import StepFailed
from perf.hosts.usage import HostUsage
from perf.remote import LocalHost
from perf.systems.contract import GC_PAUSE_S, Cluster, Level, Node
from perf.telemetry import Look, Process, Window, host_shares, look, read_processes

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
    """Give `start(name)`: a node whose process works on demand."""
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


def test_a_process_that_is_gone_is_told_by_node(start: Callable[[str], Worker]) -> None:
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
    level = Level(node="node-1", name=GC_PAUSE_S, value=1.5)
    cluster = cast("Cluster", SimpleNamespace(nodes=(node, twin)))  # nothing else is looked at
    seen = look(cluster, lambda: (level,), clients=[LocalHost(), LocalHost("client-1")])
    assert [usage.host for usage in seen.hosts] == ["local", "client-1"]
    assert [process.node for process in seen.processes] == ["node-1", "node-2"]
    assert seen.levels == (level,)


def usage(**changes: float) -> HostUsage:
    base = HostUsage(
        host="server-1",
        at_s=100.0,
        cores=4,
        busy_s=50.0,
        steal_s=1.0,
        throttled_s=0.0,
        clock_offset_s=1000.0,
        sent_bytes=0,
    )
    return replace(base, **changes)  # type: ignore[arg-type]  # the floats of HostUsage


def process(cpu_s: float, node: str = "node-1", host: str = "server-1") -> Process:
    return Process(node=node, host=host, cpu_s=cpu_s, read_bytes=0, written_bytes=0)


def window(
    before: tuple[HostUsage, ...],
    after: tuple[HostUsage, ...],
    *processes: tuple[Process, ...],
) -> Window:
    started, ended = processes or ((), ())
    return Window(
        phase="steady",
        iterations=(1,),
        before=Look(hosts=before, processes=started, levels=()),
        after=Look(hosts=after, processes=ended, levels=()),
    )


def test_foreign_is_what_neither_servers_nor_engines_used() -> None:
    seen = window(
        (usage(),),
        (usage(at_s=110.0, busy_s=75.0, steal_s=3.0, throttled_s=0.5, clock_offset_s=999.8),),
        (process(5.0), process(7.0, "node-2"), process(1.0, "node-3", "server-2")),
        (process(11.0), process(10.0, "node-2"), process(90.0, "node-3", "server-2")),
    )
    (shares,) = host_shares(seen, {"server-1": 4.0, "client-1": 10.0})
    assert (shares.host, shares.seconds, shares.cores) == ("server-1", 10.0, 4)
    # 25 s busy, of which 6 + 3 by the servers here and 4 by engines.
    assert shares.foreign_cpu_share == pytest.approx(12 / 40)
    assert shares.steal_share == pytest.approx(2 / 40)
    assert shares.throttled_share == pytest.approx(0.05)
    assert shares.clock_step_ms == pytest.approx(200)


def test_ticks_that_miss_a_little_are_no_negative_share() -> None:
    seen = window((usage(),), (usage(at_s=101.0, busy_s=50.98),), (process(0.0),), (process(0.995),))
    (shares,) = host_shares(seen, {})
    assert shares.foreign_cpu_share == 0.0


def test_a_host_that_one_look_missed_has_no_shares() -> None:
    later = usage(at_s=101.0)
    assert host_shares(window((), (later,)), {}) == ()
    assert host_shares(window((later,), ()), {}) == ()
    assert host_shares(window((later,), (usage(at_s=3.0),)), {}) == ()
