"""Processes run where they are pinned to: asked before, proven after, refused in one go."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from needs import need

from perf.hosts.pinning import find_unpinnable, pin, prove_pinning, read_list
from perf.hosts.remote import Completed, LocalHost, Remote, SshHost, running_pid, send_signal
from perf.model.design import Needs
from perf.model.errors import HostUnfit, StepFailed
from perf.model.results import Fact
from perf.systems.contract import Node
from perf.trial.preflight import check_hosts

CORE = min(os.sched_getaffinity(0))
SLEEPER = (sys.executable, "-c", "import signal; signal.pause()")
BIG = {
    "online": "0-15",
    "allowed": "0-127",
    "nodes": "0-1",
    "of_node": "0-7",
    "taskset": "found",
    "numactl": "found",
}


class ReportedIncident(LocalHost):
    """A host that answers as it is reported."""

    def __init__(self, answer: dict[str, str]) -> None:
        super().__init__("db-1")
        self.answer = answer

    def run(self, *_: object, **__: object) -> Completed:
        return Completed(0, "".join(f"{name} {text}\n" for name, text in self.answer.items()), "")


@pytest.fixture(params=["local", pytest.param("ssh", marks=pytest.mark.slow)])
def host(request: pytest.FixtureRequest) -> Remote:
    return LocalHost() if request.param == "local" else request.getfixturevalue("sshd")


@pytest.fixture
def start(host: Remote, tmp_path: Path) -> Iterator[Callable[..., int]]:
    """Return a function that starts a command on the host, and gives its process id."""
    pid_file = str(tmp_path / "pid")

    def start(command: tuple[str, ...]) -> int:
        host.start(command, pid_file=pid_file, log=str(tmp_path / "log"), cwd=str(tmp_path))
        end = time.monotonic() + 20
        while (pid := running_pid(host, pid_file)) is None or SLEEPER[-1].encode() not in Path(
            f"/proc/{pid}/cmdline"
        ).read_bytes().split(b"\0")[2:3]:
            assert time.monotonic() < end, (tmp_path / "log").read_text()
        return pid

    yield start
    send_signal(host, pid_file, signal.SIGKILL)
    if isinstance(host, LocalHost) and (child := host.child(pid_file)):
        child.wait(10)


def need_numactl(host: Remote) -> None:
    found = host.run(["sh", "-c", "command -v numactl"], check=False).returncode == 0
    need(found, "no numactl here; install the package numactl")


def test_the_command_says_where_it_runs() -> None:
    assert pin(["server"], (), None) == ("server",)
    assert pin(["server"], (2, 3), None) == ("taskset", "-c", "2,3", "server")
    assert pin(["server"], (), 1) == ("numactl", "--membind=1", "--cpunodebind=1", "server")
    assert pin(["server"], (2, 3), 1) == ("numactl", "--membind=1", "--physcpubind=2,3", "server")


def test_lists_of_the_kernel() -> None:
    assert read_list("0-2,8,10-11\n") == {0, 1, 2, 8, 10, 11}
    assert read_list("") == set()


def test_a_pinned_process_is_proven_to_be(host: Remote, start: Callable[..., int]) -> None:
    assert find_unpinnable(host, (CORE,), None) == ()
    pid = start(pin(SLEEPER, (CORE,), None))
    (fact,) = prove_pinning(host, "db-1", pid, (CORE,), None)
    assert fact == Fact(host="db-1", name="pinned_cores", value=str(CORE))
    # It is what runs that counts, not what was asked for.
    os.sched_setaffinity(pid, os.sched_getaffinity(0))
    with pytest.raises(StepFailed, match=r"pinning failed on db-1: its process runs on cores .*, but"):
        prove_pinning(host, "db-1", pid, (CORE, 4096), None)


def test_memory_is_bound_and_proven_to_be(host: Remote, start: Callable[..., int]) -> None:
    need_numactl(host)
    node = min(read_list(Path("/sys/devices/system/node/has_memory").read_text()))
    assert find_unpinnable(host, (), node) == ()
    pid = start(pin(SLEEPER, (CORE,), node))
    facts = prove_pinning(host, "db-1", pid, (CORE,), node)
    assert [(one.name, one.value) for one in facts] == [
        ("pinned_cores", str(CORE)),
        ("memory_policy", f"bind:{node}"),
    ]


def test_memory_that_is_not_bound_is_found_out(start: Callable[..., int], host: Remote) -> None:
    pid = start(pin(SLEEPER, (CORE,), None))
    with pytest.raises(StepFailed, match=r"the memory policy of its process is \w+, not bind:0"):
        prove_pinning(host, "db-1", pid, (CORE,), 0)


def test_a_process_that_is_gone_is_reported(sshd: SshHost) -> None:
    with pytest.raises(StepFailed):
        prove_pinning(sshd, "db-1", 2**22 + 1, (CORE,), None)


@pytest.mark.parametrize(
    ("changed", "cores", "numa_node", "said"),
    [
        ({}, (1, 2), None, ""),
        ({}, (1, 2), 0, ""),
        ({"numactl": ""}, (1, 2), None, ""),
        ({}, (15, 16, 17), None, "it has no core 16, 17 that we may use, but 0, 1, 2"),
        ({"allowed": "0-1"}, (1, 2), None, "it has no core 2 that we may use, but 0, 1; name others"),
        (
            {"taskset": ""},
            (1,),
            None,
            "taskset is missing, which pins processes; install the package util",
        ),
        (
            {"numactl": ""},
            (),
            0,
            "numactl is missing, which pins processes; install the package numactl",
        ),
        ({}, (), 2, "it has no memory on NUMA node 2, but on 0-1; change or remove numa_node"),
        ({"nodes": "", "of_node": ""}, (), 0, "but on no NUMA nodes at all"),
        ({}, (7, 8, 9), 0, "core 8, 9 is not of NUMA node 0, whose cores are 0-7: all memory would"),
    ],
)
def test_what_a_host_lacks_is_said_with_what_it_has(
    changed: dict[str, str], cores: tuple[int, ...], numa_node: int | None, said: str
) -> None:
    answer = {name: text for name, text in {**BIG, **changed}.items() if text or name not in changed}
    answer |= {
        name: "" for name, text in changed.items() if not text and name not in {"taskset", "numactl"}
    }
    found = find_unpinnable(ReportedIncident(answer), cores, numa_node)
    assert (said in "".join(found)) if said else found == ()
    assert all(one.startswith("db-1: ") for one in found)


def test_all_hosts_that_cannot_pin_are_refused_at_once(tmp_path: Path) -> None:
    node = Node(
        name="db-1",
        index=0,
        address="127.0.0.1",
        remote=LocalHost("db-1"),
        work_dir=str(tmp_path),
        cores=(4000,),
    )
    nodes = (node, replace(node, name="db-2", remote=LocalHost("db-2"), numa_node=99, cores=()))
    with pytest.raises(HostUnfit) as caught:
        check_hosts(nodes, (), Needs(memory_mb=10**9, disk_mb=1))
    text = str(caught.value)
    for part in (
        "of memory available",
        "db-1: it has no core 4000",
        "db-2: it has no memory on NUMA node",
    ):
        assert part in text
