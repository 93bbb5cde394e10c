"""Releases, files, configuration and process of CrateDB, and what its nodes are asked by the harness.

The server is a stand-in, and what answers is the peer at its HTTP endpoint: no CrateDB is run here.
"""

import platform
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from crate_peer import CratePeer, Fault
from made_up_release import artifact_of
from ruamel.yaml import YAML

from perf.hosts.remote import LocalHost
from perf.model.design import SystemConfig, Testbed, Topology
from perf.model.errors import ConfigError, NotReady, ReleaseError, StepFailed
from perf.model.results import Release
from perf.systems.contract import GC_PAUSE_S, UNWRITTEN_BYTES, Cluster, Node
from perf.systems.cratedb.system import SIGNER, CrateDB, environment

SYSTEM = CrateDB()
# Stands in for bin/crate: reads its options as the vendor's script does, shows them, and ends.
PROGRAM = """#!/bin/sh
echo "arguments=$* heap=$CRATE_HEAP_SIZE gc=$CRATE_GC_LOG_DIR/$CRATE_GC_LOG_FILES"
eval set -- $CRATE_JAVA_OPTS
for option; do echo "option=$option"; done
grep Cpus_allowed_list /proc/self/status
"""
# Most of the vendor's is comments; what this sets, in both forms, is laid over or kept.
SHIPPED = """\
#path.data: /path/to/data1
auth:
  host_based:
    enabled: true
    config:
      0: {user: crate, address: _local_, method: trust}
stats.enabled: true
"""
JAVA = "#!/bin/sh\necho 'openjdk version \"22.0.2\" 2024-07-16' >&2\n"
# Of the reference, chapter Configuration: all that we write, with the form of its value.
DOCUMENTED: dict[str, type] = {
    "cluster.name": str,
    "node.name": str,
    "network.host": str,
    "http.port": int,
    "transport.tcp.port": int,
    "psql.port": int,
    "path.data": str,
    "path.logs": str,
    "discovery.seed_hosts": list,
    "cluster.initial_master_nodes": list,
    "auth.host_based.enabled": bool,
    "udc.enabled": bool,
}

MakeCluster = Callable[..., Cluster]


def _build(directory: Path) -> Path:
    for name, text in (("bin/crate", PROGRAM), ("jdk/bin/java", JAVA)):
        program = directory / "build" / name
        program.parent.mkdir(parents=True)
        program.write_text(text)
        program.chmod(0o755)
    logging = directory / "build/config/log4j2.properties"
    logging.parent.mkdir()
    logging.write_text("rootLogger.level = info\n")
    return directory / "build"


@pytest.fixture
def make_cluster(tmp_path: Path, make_testbed: Callable[..., Testbed]) -> MakeCluster:
    """Return `make_cluster(servers=1, address=…, **config)`: nodes below the test's directory."""
    build = _build(tmp_path)

    def make(servers: int = 1, address: str = "127.0.0.61", **config: Any) -> Cluster:  # noqa: ANN401  YAML
        start, last = address.rsplit(".", 1)
        nodes = tuple(
            Node(
                name=f"s{index + 1}",
                index=index,
                address=f"{start}.{int(last) + index}",
                remote=LocalHost(),
                work_dir=str(tmp_path / f"s{index + 1}"),
            )
            for index in range(servers)
        )
        return Cluster(
            release=SYSTEM.releases()[-1],
            artifact=artifact_of(build),
            nodes=nodes,
            topology=Topology(
                name="test", description="test", servers=servers, replication_factor=servers
            ),
            testbed=make_testbed(),
            config=SystemConfig(system="cratedb", name="tuned", description="test", **config),
        )

    return make


def _configured(cluster: Cluster) -> dict[str, Any]:
    for node in cluster.nodes:
        SYSTEM.install(node, cluster)
        SYSTEM.configure(node, cluster)
    conf = Path(cluster.nodes[0].work_dir, "conf/crate.yml")
    settings: dict[str, Any] = YAML(typ="safe").load(conf)
    return settings


def _release(version: str) -> Release:
    return next(release for release in SYSTEM.releases() if release.version == version)


def test_catalogue_orders_lines_by_number_and_knows_some_days() -> None:
    lines = list(dict.fromkeys(release.line for release in SYSTEM.releases()))
    assert lines == ["5.7", "5.8", "5.9", "5.10", "6.0", "6.1", "6.2", "6.3", "6.4"]
    assert _release("5.10.10").ordinal == 10
    assert _release("6.4.0").released_at == date(2026, 7, 6)
    assert all(release.version.rpartition(".")[0] == release.line for release in SYSTEM.releases())
    assert all(
        release.ordinal == int(release.version.rpartition(".")[2]) for release in SYSTEM.releases()
    )


@pytest.mark.parametrize(
    ("machine", "directory"), [("x86_64", "x64_linux"), ("aarch64", "aarch64_linux")]
)
def test_origin_is_the_signed_archive_for_this_machine(
    monkeypatch: pytest.MonkeyPatch, machine: str, directory: str
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    (origin,) = SYSTEM.origins(_release("5.7.1"))
    url = f"https://cdn.crate.io/downloads/releases/cratedb/{directory}/crate-5.7.1.tar.gz"
    assert (origin.location, origin.checksum, origin.signer) == (url, f"{url}.asc", SIGNER)


def test_no_archive_for_this_machine_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(ReleaseError, match=r"5\.7\.1.*riscv64; set KNICKPOINT_RELEASE_CRATEDB_5_7_1"):
        SYSTEM.origins(_release("5.7.1"))


def test_artifact_without_a_server_is_refused(make_cluster: MakeCluster, tmp_path: Path) -> None:
    cluster = make_cluster()
    (tmp_path / "empty").mkdir()
    artifact = artifact_of(tmp_path / "empty")
    with pytest.raises(StepFailed, match="empty holds no program bin/crate"):
        SYSTEM.install(cluster.nodes[0], replace(cluster, artifact=artifact))


def test_configuration_of_one_node(make_cluster: MakeCluster, tmp_path: Path) -> None:
    settings = _configured(make_cluster())
    assert settings == {
        "cluster.name": "knickpoint",
        "node.name": "s1",
        "network.host": "127.0.0.61",
        "http.port": 4200,
        "transport.tcp.port": 4300,
        "psql.port": 5432,
        "path.data": f"{tmp_path}/s1/data",
        "path.logs": f"{tmp_path}/s1/logs",
        "discovery.seed_hosts": ["127.0.0.61:4300"],
        "cluster.initial_master_nodes": ["s1"],
        "auth.host_based.enabled": False,
        "udc.enabled": False,
    }
    assert all((tmp_path / "s1" / name).is_dir() for name in ("data", "logs", "gc", "tmp"))
    assert "rootLogger" in (tmp_path / "s1/conf/log4j2.properties").read_text()


def test_every_setting_is_one_of_the_reference(make_cluster: MakeCluster) -> None:
    settings = _configured(make_cluster(servers=3))
    assert {name: type(value) for name, value in settings.items()} == DOCUMENTED


def test_several_nodes_name_each_other(make_cluster: MakeCluster) -> None:
    settings = _configured(make_cluster(servers=3))
    assert settings["discovery.seed_hosts"] == [f"127.0.0.{last}:4300" for last in (61, 62, 63)]
    assert settings["cluster.initial_master_nodes"] == ["s1", "s2", "s3"]


def test_settings_of_a_config_are_written_flat(make_cluster: MakeCluster) -> None:
    settings = _configured(
        make_cluster(settings={"stats": {"enabled": False}, "indices.breaker.query.limit": "70%"})
    )
    assert settings["stats.enabled"] is False
    assert settings["indices.breaker.query.limit"] == "70%"


def test_settings_that_are_not_theirs_are_refused_all_at_once(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(settings={"http": {"port": 1}, "node.name": "x", "path": "y"})
    with pytest.raises(ConfigError) as failure:
        _configured(cluster)
    for part in ("settings.http.port", "settings.node.name", "settings.path:"):
        assert part in str(failure.value)


def _wait_for_the_end(node: Node) -> None:
    end_s = time.monotonic() + 30
    while SYSTEM.is_running(node):
        assert time.monotonic() < end_s, f"the program of {node.name} still runs after 30 s"
        time.sleep(0.02)


def test_the_vendors_script_is_started_with_its_own_variables(
    make_cluster: MakeCluster, make_testbed: Callable[..., Testbed]
) -> None:
    cluster = make_cluster(heap_mb=512, jvm_options=("-XX:+UseZGC", "-Dcassandra.x=a b"))
    cluster = replace(cluster, testbed=make_testbed(jvm_options=("-XX:TieredStopAtLevel=1",)))
    node = replace(cluster.nodes[0], cores=(0,))
    _configured(cluster)
    SYSTEM.start(node, cluster)
    _wait_for_the_end(node)
    log = Path(SYSTEM.logs(node)[0]).read_text().splitlines()
    home = node.work_dir
    assert f"arguments=-Cpath.conf={home}/conf heap=512m gc={home}/gc/0" in log
    assert [line for line in log if line.startswith("option=")] == [
        f"option=-Djava.io.tmpdir={home}/tmp",  # noqa: S108  the node's own
        "option=-XX:TieredStopAtLevel=1",
        "option=-XX:+UseZGC",
        "option=-Dcassandra.x=a b",
    ]
    assert "Cpus_allowed_list:\t0" in log


def test_without_a_heap_the_script_decides(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    _configured(cluster)
    SYSTEM.start(cluster.nodes[0], cluster)
    _wait_for_the_end(cluster.nodes[0])
    assert "heap= " in Path(SYSTEM.logs(cluster.nodes[0])[0]).read_text()


def test_java_is_a_fact(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    _configured(cluster)
    fact = SYSTEM.facts(cluster)[0]
    assert (fact.host, fact.name) == ("s1", "version:java")
    assert fact.value == 'openjdk version "22.0.2" 2024-07-16'


def test_a_node_begins_with_the_releases_own_file_under_what_is_a_fact(
    tmp_path: Path, make_cluster: MakeCluster
) -> None:
    (tmp_path / "build/config/crate.yml").write_text(SHIPPED)
    cluster = make_cluster(settings={"stats": {"enabled": False}})
    settings = _configured(cluster)
    assert settings["auth.host_based.config.0.user"] == "crate"  # the release's
    assert settings["stats.enabled"] is False  # the config's
    assert settings["auth.host_based.enabled"] is False  # forced
    facts = {fact.name: fact.value for fact in SYSTEM.facts(cluster)}
    assert {f"forced:{key}" for key in DOCUMENTED} <= facts.keys()
    given = environment(cluster.nodes[0], cluster).keys() - {"CRATE_JAVA_OPTS"}
    assert {f"forced:{key}" for key in given} <= facts.keys()
    assert not {key for key in facts if "stats" in key or "config" in key}


def test_defaults_are_those_of_the_file_and_digests_of_what_starts_the_jvm(
    tmp_path: Path, make_cluster: MakeCluster
) -> None:
    (tmp_path / "build/config/crate.yml").write_text(SHIPPED)
    cluster = make_cluster()
    before = SYSTEM.defaults(cluster.release, cluster.artifact)
    assert before["crate.yml: auth.host_based.config.0.method"] == '"trust"'
    (tmp_path / "build/bin/crate").write_text("#!/bin/sh\n# -XX:+UseSerialGC\n")
    after = SYSTEM.defaults(cluster.release, cluster.artifact)
    assert {key for key in before if before[key] != after[key]} == {"bin: crate"}
    (tmp_path / "build/config/crate.yml").write_text("# nothing but comments\n")
    assert SYSTEM.defaults(cluster.release, cluster.artifact).keys() == {"bin: crate"}
    (tmp_path / "build/config/crate.yml").write_text("- no settings\n")
    with pytest.raises(ConfigError, match=r"crate\.yml: holds no settings"):
        SYSTEM.configure(cluster.nodes[0], cluster)


class Deployed(CrateDB):
    """CrateDB whose server processes all run; they are the peer."""

    def is_running(self, node: Node) -> bool:
        """Say yes."""
        return True


@dataclass(frozen=True, slots=True)
class Nodes:
    """A cluster whose first node is a peer that serves."""

    system: CrateDB
    cluster: Cluster
    peer: CratePeer


@pytest.fixture
def nodes(make_cluster: MakeCluster) -> Iterator[Nodes]:
    with CratePeer() as peer:
        system = Deployed(peer.port)
        yield Nodes(system, make_cluster(address=peer.address), peer)


def test_a_node_that_sees_all_others_serves(nodes: Nodes) -> None:
    nodes.system.check(nodes.cluster)


def test_a_node_that_misses_another_does_not_serve(nodes: Nodes) -> None:
    nodes.peer.nodes = (("s1", "6.4.2"), ("stranger", "6.4.2"))
    with pytest.raises(NotReady, match="sees s1, stranger, but s1 were deployed") as refusal:
        nodes.system.check(nodes.cluster)
    assert refusal.value.node == "s1"


def test_a_cluster_that_has_not_found_all_its_copies_does_not_serve(nodes: Nodes) -> None:
    nodes.peer.incomplete = ("sensor_readings",)
    with pytest.raises(NotReady, match="lacks copies of rows of sensor_readings"):
        nodes.system.check(nodes.cluster)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [Fault(), Fault.refusal(503, 5000, "no master"), Fault(200, b"<html>"), Fault(502, b"gateway")],
    ids=["closes", "has-no-master", "is-no-database", "is-a-gateway"],
)
def test_a_node_that_gives_no_answer_does_not_serve(nodes: Nodes, fault: Fault) -> None:
    nodes.peer.faults.append(fault)
    with pytest.raises(NotReady):
        nodes.system.check(nodes.cluster)
    nodes.system.check(nodes.cluster)


@pytest.mark.keeps("wrong-release-is-refused")
def test_versions_of_all_nodes(nodes: Nodes) -> None:
    nodes.peer.nodes = (("s2", "6.4.1"), ("s1", "6.4.2"))
    assert nodes.system.running_versions(nodes.cluster) == (("s1", "6.4.2"), ("s2", "6.4.1"))


def test_each_node_says_what_it_has_yet_to_write_and_how_long_it_paused(nodes: Nodes) -> None:
    (node,) = nodes.cluster.nodes
    log = Path(nodes.system.logs(node)[1])
    log.parent.mkdir(parents=True)
    # As the vendor's script has it written: decorations, then the message.
    log.write_text(
        "[2026-01-01T00:00:00.000+0000][77][gc,start     ] GC(0) Pause Young (Normal) (G1 Evacuation)\n"
        "[2026-01-01T00:00:00.012+0000][77][gc         ] GC(0) Pause Young 24M->4M(512M) 12.5ms\n"
        "[2026-01-01T00:00:00.013+0000][77][gc,cpu       ] GC(0) User=0.01s Sys=0.00s Real=0.01s\n"
        "[2026-01-01T00:00:01.000+0000][77][gc           ] GC(1) Pause Remark 60M->60M(512M) 2.500ms\n"
    )
    nodes.peer.uncommitted = {"s1": 4096}
    with nodes.system.open_telemetry(nodes.cluster) as read_levels:
        first = read_levels()
        nodes.peer.uncommitted = {}
        second = read_levels()
    assert [(level.node, level.name, level.value) for level in first] == [
        ("s1", UNWRITTEN_BYTES, 4096.0),
        ("s1", GC_PAUSE_S, 0.015),
    ]
    assert second[0].value == 0.0


def test_a_node_that_cannot_say_is_named(nodes: Nodes) -> None:
    with nodes.system.open_telemetry(nodes.cluster) as read_levels:
        nodes.peer.faults.append(Fault.refusal(500, 5002, "shards"))
        with pytest.raises(NotReady, match="look failed on s1: shards"):
            read_levels()


def test_quotes_of_options_survive_a_second_reading() -> None:
    text = shlex.join(["-Da=b c"])
    done = subprocess.run(
        ["sh", "-c", 'eval printf "%s" $1', "sh", text], capture_output=True, text=True, check=True
    )
    assert done.stdout == "-Da=b c"
