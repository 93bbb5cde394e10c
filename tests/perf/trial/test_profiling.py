"""The profiler on a JVM whose work is known, begun and ended as iterations begin and end."""

import gzip
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from signal import SIGKILL
from types import SimpleNamespace

import pytest
from java_libraries import compile_peer, fetch_jars
from needs import need

from perf.config.catalog import load_catalog
from perf.hosts.remote import LocalHost, running_pid
from perf.load.engines import Edge
from perf.model.design import Workload
from perf.model.results import Reason, Sample
from perf.model.stacks import read_stacks
from perf.releases.java import find_java
from perf.systems.contract import Node
from perf.trial import native_profiling
from perf.trial.profiling import Profiler, read_times

pytestmark = pytest.mark.real

PROGRAM, SOURCE = (Path(__file__).with_name(name) for name in ("Burner.java", "burner.cc"))
COMPILER = ("org.eclipse.jdt:ecj:3.33.0",)
PROFILED_S = 3.0
Start = Callable[[Sequence[str]], Node]


@pytest.fixture(scope="module")
def workload() -> Workload:
    return load_catalog(Path("configs")).workloads["sensor-write-short"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return `start(command)`: it runs as a server does, and is killed at the end."""
    host = LocalHost()
    nodes: list[Node] = []

    def start(command: Sequence[str]) -> Node:
        node = Node(name="node-1", index=0, address="", remote=host, work_dir=str(tmp_path))
        host.start(command, pid_file=node.pid_file, log=f"{tmp_path}/log", cwd=str(tmp_path))
        nodes.append(node)
        end = time.monotonic() + 20
        # Until then it is what ties it to this process.
        program = Path(f"/proc/{running_pid(host, node.pid_file)}/exe")
        while program.readlink().name.startswith("python"):
            assert time.monotonic() < end
        return node

    yield start
    for node in nodes:
        child = host.child(node.pid_file)
        assert child is not None
        child.send_signal(SIGKILL)
        child.wait()


def profile(
    node: Node, workload: Workload | None, staged: Path, rate: float = 0.0
) -> tuple[tuple[Reason, ...], dict[str, float]]:
    """Profile a few seconds of one phase and none of another; return the remarks, and costs by code.

    `rate` is how many operations it completed in a second.
    """
    staged.mkdir()
    profiler = Profiler(SimpleNamespace(nodes=(node,)), workload)  # type: ignore[arg-type]
    profiler.prepare()
    for phase in ("steady", "search-1"):
        profiler.observe(Edge(phase=phase, iterations=(1,), is_start=True))
        end = time.monotonic() + (PROFILED_S if phase == "steady" and workload else 0)
        while time.monotonic() < end:
            time.sleep(0.05)
        profiler.observe(Edge(phase=phase, iterations=(1,), is_start=False))
    remarks = profiler.keep(staged)
    load = Sample(phase="steady", operation="write", metric="throughput", statistic="mean", value=rate)
    return remarks, {f"{one.metric} {one.statistic}": one.value for one in profiler.costs([load])}


def share_of(method: str, path: Path) -> float:
    lines = [line.rpartition(" ") for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    total = sum(int(count) for _, _, count in lines)
    return sum(int(count) for stack, _, count in lines if f"Burner.{method}_" in stack) / total


@pytest.mark.slow
def test_samples_divide_as_the_work_does(start: Start, workload: Workload, tmp_path: Path) -> None:
    level = Path("/proc/sys/kernel/perf_event_paranoid")
    allowed = level.exists() and (os.geteuid() == 0 or int(level.read_text()) <= 2)
    need(allowed, "perf events are not allowed here: no JVM was profiled")
    java = find_java((17,), print).path
    node = start([java, "-cp", compile_peer(java, PROGRAM, fetch_jars("ecj", COMPILER)), "Burner"])
    remarks, costs = profile(node, workload, tmp_path / "bundle", rate=100.0)
    assert remarks == ()
    kept = tmp_path / "bundle/profiles"
    assert sorted(path.name for path in kept.iterdir()) == [
        "steady-alloc.collapsed.gz",
        "steady-cpu.collapsed.gz",
        "steady-lock.collapsed.gz",
        "times.json",
    ]
    heavy, light = (share_of(one, kept / "steady-cpu.collapsed.gz") for one in ("heavy", "light"))
    assert 2.5 < heavy / light < 6.5  # four to one, by hundreds of samples
    assert share_of("allocating", kept / "steady-alloc.collapsed.gz") > 0.9
    (times,) = read_times(tmp_path / "bundle").values()
    assert PROFILED_S <= times.seconds < 3 * PROFILED_S
    assert 0 < times.cpu_s < 4 * times.seconds
    # µs per operation: all packages add up to what the kernel counted, and own costs are of what burns.
    whole = sum(cost for code, cost in costs.items() if code.startswith("package_cpu"))
    assert whole == pytest.approx(times.cpu_s * 1e6 / (100 * times.seconds), rel=0.1)
    assert costs["method_cpu Burner.burn()"] > 0.8 * whole


@pytest.mark.slow
def test_a_server_that_is_no_jvm_is_profiled_by_perf(
    start: Start, workload: Workload, tmp_path: Path
) -> None:
    need(shutil.which("perf") and shutil.which("g++"), "install linux-perf and g++")
    program = tmp_path / "burner"
    flags = ("-O0", "-fno-omit-frame-pointer")
    subprocess.run(["g++", *flags, "-o", program, SOURCE], check=True)
    node = start([str(program)])
    remarks, costs = profile(node, workload, tmp_path / "bundle", rate=100.0)
    assert remarks == ()
    (path,) = (tmp_path / "bundle/profiles").glob("*.collapsed.gz")
    assert path.name == "steady-cpu.collapsed.gz"
    stacks = read_stacks(gzip.decompress(path.read_bytes()).decode(), "cpu")
    heavy, light = (
        sum(count for stack, count in stacks.items() if f"db.{name}()" in stack)
        for name in ("heavy", "anonymous.light")
    )
    assert 2.5 < heavy / light < 6.5
    (times,) = read_times(tmp_path / "bundle").values()
    whole = sum(cost for code, cost in costs.items() if code.startswith("package_cpu"))
    assert whole == pytest.approx(times.cpu_s * 1e6 / (100 * times.seconds), rel=0.1)
    assert costs["method_cpu db.burn()"] > 0.8 * whole


@pytest.mark.slow
def test_a_host_where_perf_may_not_look_says_why(
    start: Start, workload: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    refusing = tmp_path / "bin/perf"
    refusing.write_text("#!/bin/sh\necho Access to performance monitoring is limited. >&2\nexit 255\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (remark,), costs = profile(start(["sleep", "60"]), workload, tmp_path / "bundle")
    assert re.search(r"perf_event_paranoid is \S+\): Access to performance", remark.text)
    assert costs == {}


@pytest.mark.slow
def test_a_server_that_is_no_jvm_is_a_remark_without_perf(
    start: Start, workload: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_profiling, "is_there", lambda _: False)
    (remark,), costs = profile(start(["sleep", "60"]), workload, tmp_path / "bundle")
    assert costs == {}
    assert remark.kind == "profile-missing"
    assert "is no JVM, and its host has no perf" in remark.text
    assert read_times(tmp_path / "bundle") == {}


def test_a_trial_that_is_not_profiled_is_left_alone(start: Start, tmp_path: Path) -> None:
    assert profile(start(["sleep", "60"]), None, tmp_path / "bundle") == ((), {})
    assert not (tmp_path / "bundle/profiles").exists()
