"""What Cassandra's nodes are reported: releases in order, even tokens, the config, the command line."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from ruamel.yaml import YAML
from shipped_conf import write_conf

from perf.hosts.remote import LocalHost
from perf.model.design import SystemConfig, Testbed, Topology
from perf.model.errors import ConfigError
from perf.model.results import Artifact, Source
from perf.releases.artifacts import find_release
from perf.systems.cassandra.defaults import (
    FORCED_OPTIONS,
    list_forced,
    read_options,
    read_settings,
)
from perf.systems.cassandra.system import (
    Cassandra,
    java_command,
    list_laid_over,
    render_config,
    tokens,
)
from perf.systems.contract import (
    BootstrapsOnce,
    Cluster,
    KnowsVersion,
    Node,
    ReportsTelemetry,
    Settles,
)
from perf.systems.cql import client as cql

SYSTEM = Cassandra()
CONFIG = SystemConfig(system="cassandra", name="default", description="as shipped", heap_mb=512)
# The newest five of each line; 6.0 has only one.
NEWEST = [
    release
    for _, line in itertools.groupby(SYSTEM.releases(), key=lambda release: release.line)
    for release in list(line)[-5:]
]


class Recorder(LocalHost):
    """A host that keeps the commands it is to start, and starts none."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[Sequence[str]] = []

    def start(
        self,
        argv: Sequence[str],
        *,
        pid_file: str,
        log: str,
        cwd: str,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.started.append(argv)


@pytest.fixture
def make_cluster(tmp_path: Path, make_testbed: Callable[..., Testbed]) -> Callable[..., Cluster]:
    """Return a function that describes a ring of three nodes under tmp_path."""

    def make(
        version: str = "5.0.9",
        *,
        settings: Mapping[str, JsonValue] | None = None,
        jvm_options: tuple[str, ...] = (),
    ) -> Cluster:
        remote = LocalHost()
        nodes = tuple(
            Node(
                name=f"node-{index + 1}",
                index=index,
                address=f"127.0.0.{41 + index}",
                remote=remote,
                work_dir=str(tmp_path / "run" / f"node-{index + 1}"),
            )
            for index in range(3)
        )
        return Cluster(
            release=find_release(SYSTEM, version),
            artifact=Artifact(source=Source.MAVEN, sha256="ab" * 32),
            nodes=nodes,
            topology=Topology(name="ring", description="a ring", servers=3, replication_factor=3),
            testbed=make_testbed(jvm_options=("-XX:TieredStopAtLevel=1",)),
            config=replace(CONFIG, settings=settings or {}, jvm_options=jvm_options),
        )

    return make


def load(text: str) -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe", pure=True).load(text)
    return loaded


def test_offers_the_abilities_that_fit() -> None:
    assert isinstance(SYSTEM, Settles)
    assert isinstance(SYSTEM, KnowsVersion)
    assert isinstance(SYSTEM, ReportsTelemetry)
    assert not isinstance(SYSTEM, BootstrapsOnce)


def test_releases_are_ordered_by_number_within_each_line() -> None:
    by_line = {
        line: [release.version for release in releases]
        for line, releases in itertools.groupby(SYSTEM.releases(), key=lambda release: release.line)
    }
    assert by_line["4.0"] == [f"4.0.{patch}" for patch in range(20)]
    assert by_line["4.1"] == [f"4.1.{patch}" for patch in range(11)]
    assert by_line["5.0"] == [f"5.0.{patch}" for patch in range(10)]
    assert by_line["6.0"] == ["6.0-alpha2"]
    assert find_release(SYSTEM, "4.1.10").ordinal > find_release(SYSTEM, "4.1.9").ordinal
    assert find_release(SYSTEM, "5.0.0").released_at == date(2024, 9, 5)


def test_the_official_archive_comes_before_maven() -> None:
    archive, maven = SYSTEM.origins(find_release(SYSTEM, "4.1.10"))
    assert archive.source is Source.ARCHIVE
    assert archive.location.endswith("/cassandra/4.1.10/apache-cassandra-4.1.10-bin.tar.gz")
    assert archive.checksum == f"{archive.location}.sha512"
    assert (maven.source, maven.location) == (
        Source.MAVEN,
        "org.apache.cassandra:cassandra-all:4.1.10",
    )


def test_the_libraries_of_the_newest_releases_of_each_line_are_pinned() -> None:
    pins = [SYSTEM.origins(release)[1].checksum for release in NEWEST]
    assert [len(bytes.fromhex(pin)) for pin in pins] == [32] * 16
    assert len(set(pins)) == len(pins)


@given(st.integers(1, 9), st.integers(1, 64))
def test_tokens_are_even_and_owners_take_turns(nodes: int, per_node: int) -> None:
    owners = {token: node for node in range(nodes) for token in tokens(node, nodes, per_node)}
    ring = sorted(owners)
    assert len(ring) == nodes * per_node
    assert cql.FIRST_TOKEN < ring[0] <= ring[-1] < cql.FIRST_TOKEN + cql.RING
    sizes = {high - low for low, high in itertools.pairwise([*ring, ring[0] + cql.RING])}
    assert max(sizes) - min(sizes) <= 1
    assert [owners[token] for token in ring] == list(range(nodes)) * per_node


def test_the_config_of_a_node(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(settings={"concurrent_writes": 64})
    node = cluster.nodes[1]
    config = load(render_config(node, cluster))
    assert config["listen_address"] == config["rpc_address"] == "127.0.0.42"
    (provider,) = config["seed_provider"]
    assert provider["parameters"] == [{"seeds": "127.0.0.41,127.0.0.42,127.0.0.43"}]
    assert config["num_tokens"] == len(config["initial_token"].split(",")) == 16
    assert config["auto_bootstrap"] is False
    assert config["concurrent_writes"] == 64
    places = [value for key, value in config.items() if key.endswith(("_directory", "_directories"))]
    assert len(places) == 5
    assert all(node.work_dir in str(place) for place in places)


def test_the_config_is_the_same_each_time(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster()
    texts = {render_config(cluster.nodes[0], cluster) for _ in range(3)}
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("version", "key", "value"),
    [
        ("4.0.19", "commitlog_sync_period_in_ms", 10_000),
        ("4.1.10", "commitlog_sync_period", "10000ms"),
        ("5.0.9", "commitlog_sync_period", "10000ms"),
    ],
)
def test_a_setting_that_was_renamed(
    make_cluster: Callable[..., Cluster], version: str, key: str, value: object
) -> None:
    cluster = make_cluster(version)
    config = load(render_config(cluster.nodes[0], cluster))
    assert {name: config[name] for name in config if name.startswith("commitlog_sync_p")} == {
        key: value
    }


@pytest.mark.parametrize("version", ["4.0.19", "5.0.9"])
def test_another_way_of_syncing_leaves_no_period_of_this_one(
    make_cluster: Callable[..., Cluster], version: str
) -> None:
    cluster = make_cluster(version, settings={"commitlog_sync": "batch"})
    config = load(render_config(cluster.nodes[0], cluster))
    assert [key for key in config if key.startswith("commitlog_sync")] == ["commitlog_sync"]


def test_a_config_may_choose_the_number_of_tokens(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(settings={"num_tokens": 1})
    config = load(render_config(cluster.nodes[0], cluster))
    assert config["initial_token"] == str(tokens(0, 3, 1)[0])


def test_refuses_settings_that_come_from_elsewhere(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(settings={"storage_port": 7001, "listen_address": "127.0.0.1"})
    with pytest.raises(ConfigError) as caught:
        render_config(cluster.nodes[0], cluster)
    assert len(caught.value.problems) == 2
    assert "config default, settings.listen_address" in str(caught.value)


def test_the_command_line(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(jvm_options=("-XX:MaxGCPauseMillis=50",))
    commands = [java_command(node, cluster) for node in cluster.nodes]
    command, home = commands[0], cluster.nodes[0].work_dir
    assert command[0] == f"{home}/java"
    assert {"-Xms512m", "-Xmx512m", "-XX:+UseG1GC", "-XX:+ExitOnOutOfMemoryError"} <= set(command)
    # A third second would be waited for where the delay is no less than two.
    (delay,) = (word for word in command if word.startswith("-Dcassandra.ring_delay_ms="))
    assert 1000 <= int(delay.partition("=")[2]) < 2000
    assert command.index("-XX:TieredStopAtLevel=1") < command.index("-XX:MaxGCPauseMillis=50")
    assert command[-3:] == (
        "-cp",
        f"{home}/conf:{home}/release/lib/*",
        "org.apache.cassandra.service.CassandraDaemon",
    )
    assert not any("jmx." in word for words in commands for word in words if word.startswith("-D"))
    assert not any(word.startswith("#") or not word for word in command)


def shipped(cluster: Cluster, release: Path, **conf: Any) -> Cluster:  # noqa: ANN401  of `write_conf`
    """Return the ring with an artifact that has a conf/ of its own."""
    write_conf(release, **conf)
    return replace(cluster, artifact=replace(cluster.artifact, location=str(release)))


def test_a_node_begins_with_what_its_release_ships(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(settings={"concurrent_reads": 64}, jvm_options=("-Xss1m",))
    cluster = shipped(cluster, tmp_path / "own", stack="300k", concurrent_writes=48)
    node = cluster.nodes[0]
    config = load(render_config(node, cluster))
    assert config["concurrent_writes"] == 48  # the release's
    assert config["concurrent_reads"] == 64  # the config's, which comes after it
    assert config["cluster_name"] == "knickpoint"  # forced
    assert config["listen_address"] == node.address
    assert config["commitlog_sync_period"] == "10000ms"
    command = java_command(node, cluster)
    assert {"-ea", "-Xss300k", "-XX:MaxGCPauseMillis=300", *FORCED_OPTIONS} <= set(command)
    assert command.index("-Xss300k") < command.index("-Xss1m")  # the JVM takes the last one
    assert "-Xss512k" not in command  # ours
    assert not {"-XX:+UseConcMarkSweepGC", "-XX:+NotTakenSinceItIsIndented"} & set(command)


@pytest.mark.parametrize(
    "text", ["# nothing but comments\n", "concurrent_reads: 32\n", "- 1\n", "a: ["]
)
def test_a_shipped_file_of_no_use_is_reported(
    make_cluster: Callable[..., Cluster], tmp_path: Path, text: str
) -> None:
    cluster = shipped(make_cluster(), tmp_path / "own")
    (tmp_path / "own/conf/cassandra.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"(?s)conf/cassandra\.yaml: .*; get the release again"):
        render_config(cluster.nodes[0], cluster)


def test_what_is_forced_is_listed_with_its_reason_unless_the_release_has_it_the_same_way(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = shipped(make_cluster(), tmp_path / "own")
    settings = read_settings(cluster.artifact.location)
    assert settings is not None
    forced = list_laid_over(cluster)
    config = load(render_config(cluster.nodes[0], cluster))
    laid_over = {key for key in {*config, *settings} if config.get(key) != settings.get(key)}
    heap = {"-Xms512m", "-Xmx512m"}
    shipped_options = read_options(cluster.artifact.location, 17)
    given = {*java_command(cluster.nodes[0], cluster)[1:-3]} - {*shipped_options} - heap
    whole = {*FORCED_OPTIONS, *cluster.testbed.jvm_options}
    added = {word if word in whole else word.partition("=")[0] for word in given}
    assert forced.keys() == laid_over | added
    assert not {"partitioner", "endpoint_snitch"} & forced.keys()
    assert forced["cluster_name"] == '"knickpoint": servers of one trial belong together'
    assert list_forced(settings).keys() < list_forced({}).keys()
    assert forced["-XX:TieredStopAtLevel=1"] == "an option of the testbed"


def test_a_period_that_is_left_out_for_another_way_of_syncing_is_listed(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = shipped(make_cluster(settings={"commitlog_sync": "batch"}), tmp_path / "own")
    config = load(render_config(cluster.nodes[0], cluster))
    assert "commitlog_sync_period" not in config
    assert "does not start with it" in list_laid_over(cluster)["commitlog_sync_period"]


def test_defaults_that_differ_are_to_be_seen_and_libraries_ship_none(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster()
    assert SYSTEM.defaults(cluster.release, cluster.artifact) == {}
    old, new = (
        SYSTEM.defaults(cluster.release, shipped(cluster, tmp_path / name, **conf).artifact)
        for name, conf in (("old", {}), ("new", {"stack": "512k", "concurrent_writes": 48}))
    )
    assert dict(old.items() - new.items()) == {
        "cassandra.yaml: concurrent_writes": "32",
        "jvm*-server.options: -Xss256k": "true",
    }
    assert old["cassandra.yaml: cluster_name"] == '"Test Cluster"'


def test_a_conf_that_cannot_be_read_says_which_file(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = shipped(make_cluster(), tmp_path / "own")
    (tmp_path / "own/conf/cassandra.yaml").write_text("a: [")
    with pytest.raises(ConfigError, match=r"own/conf/cassandra\.yaml"):
        render_config(cluster.nodes[0], cluster)


def test_a_node_is_pinned_to_its_cores(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster()
    remote = Recorder()
    node = replace(cluster.nodes[0], cores=(2, 3), remote=remote)
    SYSTEM.start(node, cluster)
    assert remote.started == [("taskset", "-c", "2,3", *java_command(node, cluster))]
    assert "taskset" not in java_command(node, cluster)
