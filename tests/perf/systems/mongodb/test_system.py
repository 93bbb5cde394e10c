"""Releases, files, configuration and process of MongoDB, up to the point where a client connects."""

import platform
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from made_up_release import artifact_of
from ruamel.yaml import YAML

from perf.hosts.remote import LocalHost
from perf.model.design import SystemConfig, Testbed, Topology
from perf.model.errors import ConfigError, ReleaseError, StepFailed
from perf.model.results import Release, Source
from perf.releases.artifacts import fetch
from perf.systems.contract import Cluster, Node
from perf.systems.mongodb.system import MongoDB

# Stands in for mongod: shows what it was started with, then ends.
PROGRAM = """#!/bin/sh
echo "tunables=$GLIBC_TUNABLES arguments=$*"
grep Cpus_allowed_list /proc/self/status
"""
SYSTEM = MongoDB()


def _build(directory: Path) -> Path:
    program = directory / "build/bin/mongod"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return directory / "build"


@pytest.fixture
def make_cluster(tmp_path: Path, make_testbed: Callable[..., Testbed]) -> Callable[..., Cluster]:
    """Give `make_cluster(servers=1, **settings)`: nodes below the test's directory, to be installed."""

    def make(servers: int = 1, **settings: Any) -> Cluster:  # noqa: ANN401  YAML
        names = [f"s{index + 1}" for index in range(servers)]
        nodes = tuple(
            Node(
                name=name,
                index=index,
                address=f"127.0.0.{index + 51}",
                remote=LocalHost(),
                work_dir=str(tmp_path / name),
            )
            for index, name in enumerate(names)
        )
        return Cluster(
            release=SYSTEM.releases()[-1],
            artifact=artifact_of(_build(tmp_path)),
            nodes=nodes,
            topology=Topology(
                name="test", description="test", servers=servers, replication_factor=servers
            ),
            testbed=make_testbed(),
            config=SystemConfig(system="mongodb", name="tuned", description="test", settings=settings),
        )

    return make


def _configured(cluster: Cluster) -> dict[str, Any]:
    for node in cluster.nodes:
        Path(node.work_dir).mkdir(exist_ok=True)
        SYSTEM.configure(node, cluster)
    conf: dict[str, Any] = YAML(typ="safe").load(Path(cluster.nodes[0].work_dir, "mongod.conf"))
    return conf


@pytest.fixture
def on_host(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return `on_host(machine, **os_release)`: the Linux that this machine says it is."""

    def pretend(machine: str, **about: str) -> None:
        monkeypatch.setattr(platform, "freedesktop_os_release", lambda: about)
        monkeypatch.setattr(platform, "machine", lambda: machine)

    return pretend


def _release(version: str) -> Release:
    return next(release for release in SYSTEM.releases() if release.version == version)


def test_catalogue_knows_when_a_release_was_published() -> None:
    assert _release("8.0.0").released_at == date(2024, 10, 2)
    assert {release.line for release in SYSTEM.releases()} == {"5.0", "6.0", "7.0", "8.0"}
    assert "8.0.2" not in {release.version for release in SYSTEM.releases()}


@pytest.mark.parametrize(
    ("version", "machine", "family", "host_version", "build"),
    [
        ("8.0.4", "x86_64", "debian", "12", "x86_64-debian12-8.0.4"),
        ("7.0.5", "x86_64", "debian", "12", "x86_64-debian12-7.0.5"),
        ("6.0.4", "aarch64", "ubuntu", "22.04", "aarch64-ubuntu2204-6.0.4"),
        ("7.0.12", "x86_64", "rhel", "8.9", "x86_64-rhel80-7.0.12"),
        ("7.0.14", "x86_64", "rhel", "8.9", "x86_64-rhel8-7.0.14"),
        ("8.0.0", "x86_64", "rhel", "9.4", "x86_64-rhel93-8.0.0"),
    ],
)
def test_origin_is_the_official_build_for_this_linux(
    on_host: Callable[..., None],
    version: str,
    machine: str,
    family: str,
    host_version: str,
    build: str,
) -> None:
    on_host(machine, ID=family, VERSION_ID=host_version)
    (origin,) = SYSTEM.origins(_release(version))
    assert origin.location == f"https://fastdl.mongodb.org/linux/mongodb-linux-{build}.tgz"
    assert origin.checksum == f"{origin.location}.sha256"


def test_relatives_of_rhel_use_its_builds(on_host: Callable[..., None]) -> None:
    on_host("x86_64", ID="rocky", ID_LIKE="rhel centos fedora", VERSION_ID="9.3")
    (origin,) = SYSTEM.origins(_release("7.0.1"))
    assert "rhel90" in origin.location


@pytest.mark.parametrize(
    ("version", "family", "host_version"),
    [("7.0.4", "debian", "12"), ("5.0.0", "debian", "12"), ("8.0.0", "arch", "")],
)
def test_no_build_for_this_linux_says_what_to_do(
    on_host: Callable[..., None], version: str, family: str, host_version: str
) -> None:
    on_host("x86_64", ID=family, VERSION_ID=host_version)
    with pytest.raises(
        ReleaseError,
        match=rf"MongoDB {version}: no official build.*{family}.*KNICKPOINT_RELEASE_MONGODB",
    ):
        SYSTEM.origins(_release(version))


def test_a_local_copy_is_read_before_the_system_is_asked_for_a_build(
    on_host: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_host("x86_64", ID="arch", VERSION_ID="")
    monkeypatch.setenv("KNICKPOINT_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ReleaseError) as refused:
        fetch(SYSTEM, _release("8.0.0"))
    assert "set KNICKPOINT_RELEASE_MONGODB_8_0_0 to the path" in str(refused.value)
    monkeypatch.setenv("KNICKPOINT_RELEASE_MONGODB_8_0_0", str(_build(tmp_path)))
    artifact = fetch(SYSTEM, _release("8.0.0"))
    assert artifact.source is Source.PATH
    assert Path(artifact.location, "bin/mongod").read_text() == PROGRAM


def test_another_artifact_replaces_the_installed_one(
    tmp_path: Path, make_cluster: Callable[..., Cluster]
) -> None:
    cluster = make_cluster()
    (node,) = cluster.nodes
    Path(node.work_dir).mkdir()
    SYSTEM.install(node, cluster)
    local = tmp_path / "local/bin"
    local.mkdir(parents=True)
    (local / "mongod").touch(mode=0o755)
    artifact = artifact_of(local.parent, Source.PATH)
    assert Path(node.work_dir, "server/bin/mongod").read_text() == PROGRAM
    SYSTEM.install(node, replace(cluster, artifact=artifact))
    assert not Path(node.work_dir, "server/bin/mongod").read_text()


def test_artifact_without_a_server_is_refused(
    tmp_path: Path, make_cluster: Callable[..., Cluster]
) -> None:
    cluster = make_cluster()
    (node,) = cluster.nodes
    Path(node.work_dir).mkdir()
    (tmp_path / "empty").mkdir()
    artifact = artifact_of(tmp_path / "empty")
    with pytest.raises(StepFailed, match=r"empty holds no program bin/mongod"):
        SYSTEM.install(node, replace(cluster, artifact=artifact))


@pytest.mark.parametrize("servers", [1, 3])
def test_all_that_is_laid_over_the_codes_defaults_is_a_fact(
    make_cluster: Callable[..., Cluster], servers: int
) -> None:
    cluster = make_cluster(servers)
    written = {
        f"forced:{section}.{name}"
        for section, settings in _configured(cluster).items()
        for name in settings
    }
    facts = {fact.name: fact.value for fact in SYSTEM.facts(cluster)}
    assert facts.keys() == written | {"defaults", "forced:GLIBC_TUNABLES"}
    assert facts["defaults"] == "in the release's code"


def test_stand_alone_configuration(tmp_path: Path, make_cluster: Callable[..., Cluster]) -> None:
    assert _configured(make_cluster()) == {
        "net": {"bindIp": "127.0.0.51", "port": 27017, "unixDomainSocket": {"enabled": False}},
        "storage": {"dbPath": f"{tmp_path}/s1/data"},
        "processManagement": {"fork": False},
    }
    assert (tmp_path / "s1/data").is_dir()


def test_several_nodes_are_a_replica_set(make_cluster: Callable[..., Cluster]) -> None:
    conf = _configured(make_cluster(servers=3))
    assert conf["replication"] == {"replSetName": "knickpoint"}


def test_settings_are_merged_into_each_section(
    tmp_path: Path, make_cluster: Callable[..., Cluster]
) -> None:
    conf = _configured(
        make_cluster(
            net={"maxIncomingConnections": 500},
            storage={"wiredTiger": {"engineConfig": {"cacheSizeGB": 0.25}}},
            setParameter={"diagnosticDataCollectionEnabled": False},
        )
    )
    assert conf["net"]["maxIncomingConnections"] == 500
    assert conf["net"]["port"] == 27017
    assert conf["storage"]["dbPath"] == f"{tmp_path}/s1/data"
    assert conf["storage"]["wiredTiger"] == {"engineConfig": {"cacheSizeGB": 0.25}}
    assert conf["setParameter"] == {"diagnosticDataCollectionEnabled": False}


def test_settings_that_are_not_theirs_are_refused_all_at_once(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster(servers=3, net={"port": 1}, storage="fast")
    config = replace(cluster.config, heap_mb=512)
    topology = replace(cluster.topology, replication_factor=2)
    with pytest.raises(ConfigError) as failure:
        _configured(replace(cluster, config=config, topology=topology))
    for part in (
        "settings.net.port",
        "settings.storage.dbPath",
        "cacheSizeGB",
        "replication_factor is 2",
    ):
        assert part in str(failure.value)


def test_server_starts_on_its_cores_with_the_vendors_environment(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster()
    node = replace(cluster.nodes[0], cores=(0,))
    Path(node.work_dir).mkdir()
    SYSTEM.install(node, cluster)
    SYSTEM.configure(node, cluster)
    SYSTEM.start(node, cluster)
    end_s = time.monotonic() + 10
    while SYSTEM.is_running(node) and time.monotonic() < end_s:
        time.sleep(0.02)
    log = Path(SYSTEM.logs(node)[0]).read_text()
    assert f"arguments=--config {node.work_dir}/mongod.conf" in log
    assert "tunables=glibc.pthread.rseq=0" in log
    assert "Cpus_allowed_list:\t0\n" in log
