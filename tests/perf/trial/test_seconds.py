"""Server processes sampled second by second: what a bundle holds, and what is read of it."""

import gzip
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from perf.hosts.remote import LocalHost, running_pid
from perf.systems.contract import Node
from perf.trial.seconds import SECONDS, read_seconds, sample_seconds

HEAD = "node,time_s,cpu_s,read_bytes,written_bytes,memory_bytes,threads\n"
WAIT_S = 20
SPIN = "x = bytearray(30_000_000)\nwhile True: pass"


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Return a node whose server spins on one core; it dies with the test's process."""
    host, work_dir = LocalHost(), tmp_path / "node-1"
    work_dir.mkdir()
    node = Node(name="node-1", index=0, address="", remote=host, work_dir=str(work_dir))
    host.start(
        ["python3", "-c", SPIN], pid_file=node.pid_file, log=f"{tmp_path}/log", cwd=str(work_dir)
    )
    return node


def await_lines(path: Path, count: int) -> None:
    end = time.monotonic() + WAIT_S
    while not path.exists() or len(path.read_text().splitlines()) < count:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_second_of_a_server_is_what_two_looks_differ_by(node: Node, tmp_path: Path) -> None:
    with sample_seconds(SimpleNamespace(nodes=(node,)), tmp_path) as remarks:  # type: ignore[arg-type]
        await_lines(Path(node.work_dir, "seconds.csv"), 3)
    child = node.remote.child(node.pid_file)
    child.kill()
    child.wait()
    assert remarks == []
    first, *_ = found = read_seconds(tmp_path)
    assert len(found) >= 2
    assert (first.node, first.threads) == ("node-1", 1)
    assert first.end_s - first.start_s == pytest.approx(1, abs=0.5)
    assert 0.1 < first.cores <= 1.1
    assert 30e6 < first.memory_bytes < 200e6
    assert running_pid(node.remote, f"{node.work_dir}/seconds.pid") is None


def test_the_sampler_ends_with_the_servers(node: Node, tmp_path: Path) -> None:
    with sample_seconds(SimpleNamespace(nodes=(node,)), tmp_path):  # type: ignore[arg-type]
        await_lines(Path(node.work_dir, "seconds.csv"), 1)
        child = node.remote.child(node.pid_file)
        child.kill()
        child.wait()
        assert node.remote.child(f"{node.work_dir}/seconds.pid").wait(WAIT_S) == 0


def test_what_cannot_be_sampled_is_a_remark(node: Node, tmp_path: Path) -> None:
    child = node.remote.child(node.pid_file)
    child.kill()
    child.wait()
    lost = Node(name="n", index=0, address="", remote=LocalHost(), work_dir=str(tmp_path / "gone"))
    with sample_seconds(SimpleNamespace(nodes=(lost,)), tmp_path) as remarks:  # type: ignore[arg-type]
        pass
    (remark,) = remarks
    assert remark.kind == "seconds-missing"
    assert not (tmp_path / SECONDS).exists()


@pytest.mark.parametrize("text", ["", HEAD, f"{HEAD}n,1,x,0,0,0,1\n", f"{HEAD}n,1,2\n", "a,b\n1,2\n"])
def test_a_file_that_is_none_has_no_seconds(tmp_path: Path, text: str) -> None:
    assert read_seconds(tmp_path) == ()
    (tmp_path / SECONDS).write_bytes(gzip.compress(text.encode()))
    assert read_seconds(tmp_path) == ()
    (tmp_path / SECONDS).write_bytes(text.encode())
    assert read_seconds(tmp_path) == ()


def test_rates_are_per_second_and_of_each_server_by_itself(tmp_path: Path) -> None:
    lines = "a,10.0,1.0,0,100,5,3\nb,10.5,7.0,0,0,5,3\na,12.0,4.0,50,300,6,4\nb,11.5,7.5,0,0,5,3\n"
    (tmp_path / SECONDS).write_bytes(gzip.compress(f"{HEAD}{lines}".encode()))
    first, second = read_seconds(tmp_path)
    assert (first.node, first.start_s, first.end_s) == ("a", 10.0, 12.0)
    assert (first.cores, first.read_per_s, first.written_per_s) == (1.5, 25.0, 100.0)
    assert (first.memory_bytes, first.threads) == (6, 4)
    assert (second.node, second.cores) == ("b", 0.5)
