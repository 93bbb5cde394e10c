"""How a release gets to the host of a node: sent once, looked at each time, the oldest forgotten."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from here_over_ssh import HereOverSsh
from made_up_release import artifact_of

from perf.hosts.remote import LocalHost
from perf.model.design import SystemConfig, Testbed, Topology
from perf.model.errors import StepFailed
from perf.model.results import Release
from perf.systems import processes
from perf.systems.contract import Cluster, Node
from perf.systems.processes import install_archive, put_release


@dataclass(frozen=True, slots=True)
class Far(HereOverSsh):
    """Another host, without what was fetched here; `fetched` is where that really lies."""

    name: str = "far"
    address: str = "far"
    fetched: str = ""
    puts: list[str] = field(default_factory=list)

    def put(self, source: Path, target: str) -> None:
        self.puts.append(target)
        self.run(["cp", "-a", f"{self.fetched}/.", target])


@pytest.fixture
def fetched(tmp_path: Path) -> Path:
    """Return a release with a program, a link to it and a link to its directory."""
    directory = tmp_path / "fetched"
    (directory / "bin").mkdir(parents=True)
    (directory / "bin/server").write_text("#!/bin/sh\n")
    (directory / "bin/server").chmod(0o755)
    (directory / "bin/alias").symlink_to("server")
    (directory / "sbin").symlink_to("bin")
    return directory


@pytest.fixture
def cluster(fetched: Path, tmp_path: Path, make_testbed: Callable[..., Testbed]) -> Cluster:
    work_dir = tmp_path / "run/db/node-1"
    remote = Far(fetched=str(fetched))
    node = Node(name="node-1", index=0, address="far", remote=remote, work_dir=str(work_dir))
    return Cluster(
        release=Release(system="db", version="1.0", line="1", ordinal=0),
        artifact=replace(artifact_of(fetched), location="/fetched/elsewhere"),
        nodes=(node,),
        topology=Topology(name="one", description="one node", servers=1),
        testbed=make_testbed(),
        config=SystemConfig(system="db", name="default", description="as shipped"),
    )


def puts(cluster: Cluster) -> int:
    remote = cluster.nodes[0].remote
    assert isinstance(remote, Far)
    return len(remote.puts)


def test_a_release_is_sent_once_and_each_node_links_to_it(cluster: Cluster, tmp_path: Path) -> None:
    (node,) = cluster.nodes
    other = replace(node, name="node-2", index=1, work_dir=str(tmp_path / "run/db/node-2"))
    for one in (node, other, node):
        install_archive(one, cluster, "bin/server")
        assert Path(one.work_dir, "server").readlink() == Path(put_release(one, cluster))
    assert puts(cluster) == 1
    LocalHost().run(["rm", "-rf", node.work_dir])  # as after each trial
    install_archive(node, cluster, "bin/server")
    assert puts(cluster) == 1


def change(copy: Path) -> None:
    (copy / "bin/server").write_text("#!/bin/sh\nexit 1\n")


def add(copy: Path) -> None:
    (copy / "bin/more").write_text("")


def rename(copy: Path) -> None:
    (copy / "bin/alias").rename(copy / "bin/another")


def lose(copy: Path) -> None:
    (copy / "bin/alias").unlink()


def lead_elsewhere(copy: Path) -> None:
    """Make the directory a link to one that has the same files, and may get more."""
    (copy / "bin").rename(copy.parents[3] / "elsewhere")
    (copy / "bin").symlink_to(copy.parents[3] / "elsewhere")


@pytest.mark.parametrize("harm", [change, add, rename, lose, lead_elsewhere])
def test_a_copy_that_was_changed_is_sent_anew(cluster: Cluster, harm: Callable[[Path], None]) -> None:
    (node,) = cluster.nodes
    copy = Path(put_release(node, cluster))
    harm(copy)
    assert Path(put_release(node, cluster)) == copy
    assert puts(cluster) == 2
    assert sorted(path.name for path in (copy / "bin").iterdir()) == ["alias", "server"]
    assert (copy / "bin/server").read_text() == "#!/bin/sh\n"
    assert not (copy / "bin").is_symlink()


def test_what_arrives_damaged_is_refused(cluster: Cluster, fetched: Path) -> None:
    change(fetched)
    with pytest.raises(StepFailed, match="is not what"):
        put_release(cluster.nodes[0], cluster)


def test_a_host_keeps_the_releases_that_were_used_last(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "MOST_RELEASES", 2)
    (node,) = cluster.nodes
    for version in ("1.0", "1.1", "1.0", "1.2"):
        release = replace(cluster.release, version=version)
        kept = Path(put_release(node, replace(cluster, release=release))).parent
    assert sorted(path.name.partition("-")[0] for path in kept.iterdir()) == ["1.0", "1.2"]
