"""Cassandra's verbs on nodes whose Java is a script: copies are verified, deaths noticed at once."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from perf.hosts.remote import Completed, LocalHost
from perf.model.design import SystemConfig, Testbed, Topology
from perf.model.errors import NotReady, StepFailed
from perf.model.results import Artifact, Source
from perf.releases import java
from perf.releases.artifacts import SUMS, find_release
from perf.systems.cassandra.system import Cassandra
from perf.systems.contract import Cluster, Node

SYSTEM = Cassandra()
SUM_LINE = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  lib/a.jar\n"
SUM_OF_SUMS = "cf68441c975f242ee009f0bcbd18406348db301559357f92782ef6f4f3103c6a"


class Elsewhere(LocalHost):
    """A host that has none of this machine's cache, although it is this machine."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 60.0,
        stdin: str | None = None,
        check: bool = True,
    ) -> Completed:
        if argv[0] == "sha256sum" and "/cache/" in argv[1]:
            return Completed(1, "", "no such file")
        return LocalHost.run(self, argv, timeout_s=timeout_s, stdin=stdin, check=check)


def plant_java(home: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Make a script the host's Java 17."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    version = 'if [ "$1" = -version ]; then echo \'openjdk version "17.0.1"\' >&2; exit; fi'
    program.write_text(f"#!/bin/sh\n{version}\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))


@pytest.fixture
def artifact(tmp_path: Path) -> Artifact:
    """Return the smallest artifact: one library and its sums."""
    directory = tmp_path / "cache" / "maven"
    (directory / "lib").mkdir(parents=True)
    (directory / "lib" / "a.jar").write_bytes(b"a")
    (directory / SUMS).write_text(SUM_LINE)
    return Artifact(source=Source.MAVEN, sha256=SUM_OF_SUMS, location=str(directory))


@pytest.fixture
def make_cluster(
    artifact: Artifact,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make_testbed: Callable[..., Testbed],
) -> Callable[..., Cluster]:
    """Return a function that describes one node on a remote, with a script for its Java."""

    def make(remote: LocalHost, script: str = "exit 1") -> Cluster:
        plant_java(tmp_path / "jdk", monkeypatch, script)
        node = Node(
            name="node-1",
            index=0,
            address="127.0.0.45",
            remote=remote,
            work_dir=str(tmp_path / "run" / "node-1"),
        )
        return Cluster(
            release=find_release(SYSTEM, "5.0.9"),
            artifact=artifact,
            nodes=(node,),
            topology=Topology(name="one", description="one node", servers=1),
            testbed=make_testbed(),
            config=SystemConfig(system="cassandra", name="default", description="as shipped"),
        )

    return make


def deploy(cluster: Cluster) -> Node:
    """Install, configure and start the one node."""
    (node,) = cluster.nodes
    SYSTEM.install(node, cluster)
    SYSTEM.configure(node, cluster)
    SYSTEM.start(node, cluster)
    return node


def wait_until_gone(node: Node) -> None:
    end = time.monotonic() + 10
    while SYSTEM.is_running(node):
        assert time.monotonic() < end, "still running"
        time.sleep(0.02)


def test_links_to_the_copy_that_the_host_has(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(LocalHost())
    (node,) = cluster.nodes
    for _ in range(2):
        SYSTEM.install(node, cluster)
        assert Path(node.work_dir, "release").readlink() == Path(cluster.artifact.location)
        assert Path(node.work_dir, "java").readlink().parts[-3:] == ("jdk", "bin", "java")


def test_a_host_is_searched_for_a_java_once(
    make_cluster: Callable[..., Cluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = make_cluster(LocalHost())
    (first,) = cluster.nodes
    second = replace(first, name="node-2", index=1, work_dir=str(tmp_path / "run" / "node-2"))
    elsewhere = replace(second, name="node-3", index=2, work_dir=str(tmp_path / "run" / "node-3"))
    elsewhere = replace(elsewhere, remote=LocalHost(name="other"))
    cluster = replace(cluster, nodes=(first, second, elsewhere))
    searched: list[str] = []
    search = java.search

    def counted(remote: LocalHost, majors: Sequence[int]) -> java.Java | None:
        searched.append(remote.name)
        return search(remote, majors)

    monkeypatch.setattr(java, "search", counted)
    for node in cluster.nodes:
        SYSTEM.install(node, cluster)
    assert searched == ["local", "other"]
    assert {Path(one.work_dir, "java").readlink() for one in cluster.nodes} == {
        tmp_path / "jdk" / "bin" / "java"
    }


def test_a_dead_node_is_reported_at_once_with_the_end_of_its_log(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster(LocalHost(), "echo 'Address already in use'; exit 3")
    node = deploy(cluster)
    wait_until_gone(node)
    with pytest.raises(StepFailed, match="the server process ended") as caught:
        SYSTEM.check(cluster)
    assert not isinstance(caught.value, NotReady)
    assert caught.value.log_tail.strip() == "Address already in use"


def test_a_node_without_an_open_port_is_not_ready(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(LocalHost(), "exec sleep 60")
    node = deploy(cluster)
    pid = Path(node.work_dir, "server.pid").read_text()
    SYSTEM.start(node, cluster)  # it runs already
    assert Path(node.work_dir, "server.pid").read_text() == pid
    with pytest.raises(NotReady, match="port 9042 is not open yet"):
        SYSTEM.check(cluster)
    SYSTEM.stop(node, force=False)
    wait_until_gone(node)
    SYSTEM.stop(node, force=True)  # nothing is left to kill


def test_wipe_leaves_only_what_others_share(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(Elsewhere())
    node = deploy(cluster)
    wait_until_gone(node)
    for _ in range(2):
        SYSTEM.wipe(node)
        assert [path.name for path in (tmp_path / "run").iterdir()] == ["releases"]
    SYSTEM.install(node, cluster)
    assert Path(node.work_dir, "release", "lib", "a.jar").is_file()
