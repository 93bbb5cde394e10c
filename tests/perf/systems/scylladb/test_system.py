"""ScyllaDB's releases, commands, configuration and answers, checked to its documentation.

The server is a script, its REST API a small server that knows the documented addresses and no others,
and rows of its system tables are given: no ScyllaDB is here.
"""

import http.server
import json
import platform
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_up_release import artifact_of
from ruamel.yaml import YAML

from perf.hosts.remote import LocalHost
from perf.model.design import SystemConfig, Testbed, Topology
from perf.model.errors import ConfigError, NotReady, ReleaseError, StepFailed
from perf.releases.artifacts import find_release
from perf.systems.contract import COMPACTION_PENDING_TASKS, Cluster, Node
from perf.systems.cql import client as cql
from perf.systems.scylladb import system as scylladb
from perf.systems.scylladb.system import ScyllaDB

SYSTEM = ScyllaDB()
# Of a release: a setting that its code does not default to, and paths of a package.
SHIPPED = """
num_tokens: 256
tablets_mode_for_new_keyspaces: enabled
workdir: /var/lib/scylla
listen_address: localhost
api_ui_dir: /opt/scylladb/swagger-ui/dist/
"""
INSTALLER = """#!/bin/bash
echo "$*" >"$(dirname "$0")/../asked"
prefix=$4
mkdir -p "$prefix/bin" "$prefix/etc/scylla"
printf '#!/bin/sh\\necho "arguments=$*"\\n' >"$prefix/bin/scylla"
chmod 755 "$prefix/bin/scylla"
cp "$(dirname "$0")/conf/scylla.yaml" "$prefix/etc/scylla/scylla.yaml"
cp "$(dirname "$0")/../asked" "$prefix/asked"
"""


@pytest.fixture
def make_cluster(tmp_path: Path, make_testbed: Callable[..., Testbed]) -> Callable[..., Cluster]:
    """Give `make_cluster(servers=1, **settings)`: nodes below the test's directory, to be installed."""
    package = tmp_path / "package/scylla"
    (package / "conf").mkdir(parents=True)
    (package / "install.sh").write_text(INSTALLER)
    (package / "conf/scylla.yaml").write_text(SHIPPED)

    def make(servers: int = 1, **settings: Any) -> Cluster:  # noqa: ANN401  YAML
        nodes = tuple(
            Node(
                name=f"s{index + 1}",
                index=index,
                address=f"127.0.0.{index + 61}",
                remote=LocalHost(),
                work_dir=str(tmp_path / f"s{index + 1}"),
            )
            for index in range(servers)
        )
        for node in nodes:
            Path(node.work_dir).mkdir()
        return Cluster(
            release=find_release(SYSTEM, "2025.4.2"),
            artifact=artifact_of(package.parent),
            nodes=nodes,
            topology=Topology(name="test", description="test", servers=servers),
            testbed=make_testbed(),
            config=SystemConfig(system="scylladb", name="tuned", description="test", settings=settings),
        )

    return make


def _configured(cluster: Cluster, index: int = 0) -> dict[str, Any]:
    node = cluster.nodes[index]
    SYSTEM.install(node, cluster)
    SYSTEM.configure(node, cluster)
    conf: dict[str, Any] = YAML(typ="safe").load(Path(node.work_dir, "scylla.yaml"))
    return conf


def test_origin_is_the_relocatable_archive_for_this_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    (origin,) = SYSTEM.origins(find_release(SYSTEM, "2025.4.2"))
    assert origin.location == (
        "https://downloads.scylladb.com/downloads/scylla/relocatable/scylladb-2025.4/"
        "scylla-2025.4.2-0.20260116.64039588dbe6.aarch64.tar.gz"
    )
    assert origin.checksum.startswith("3431416c")
    assert len(origin.checksum) == 64


def test_an_archive_whose_build_is_not_known_asks_for_a_copy() -> None:
    with pytest.raises(
        ReleaseError, match=r"ScyllaDB 2025\.1\.9: .*KNICKPOINT_RELEASE_SCYLLADB_2025_1_9"
    ):
        SYSTEM.origins(find_release(SYSTEM, "2025.1.9"))


def test_lines_are_in_the_order_of_their_releases() -> None:
    lines = list(dict.fromkeys(release.line for release in SYSTEM.releases()))
    assert lines == sorted(lines, key=lambda line: [int(part) for part in line.split(".")])
    assert "2025.1.8" not in {release.version for release in SYSTEM.releases()}


def test_the_installer_of_the_release_is_run_without_root(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster()
    (node,) = cluster.nodes
    SYSTEM.install(node, cluster)
    asked = Path(node.work_dir, "server/asked").read_text()
    assert asked == f"--nonroot --without-systemd --prefix {node.work_dir}/server\n"
    assert not Path(node.work_dir, "package").exists()
    Path(node.work_dir, "server/asked").write_text("once")
    SYSTEM.install(node, cluster)
    assert Path(node.work_dir, "server/asked").read_text() == "once"


def test_a_copy_without_an_installer_is_refused(
    tmp_path: Path, make_cluster: Callable[..., Cluster]
) -> None:
    cluster = make_cluster()
    (tmp_path / "empty").mkdir()
    artifact = artifact_of(tmp_path / "empty")
    with pytest.raises(StepFailed, match=r"empty is no relocatable archive.*no install\.sh"):
        SYSTEM.install(cluster.nodes[0], replace(cluster, artifact=artifact))


def test_an_installer_that_installs_no_program_is_to_blame(
    tmp_path: Path, make_cluster: Callable[..., Cluster]
) -> None:
    cluster = make_cluster()
    (tmp_path / "package/scylla/install.sh").write_text("true\n")
    with pytest.raises(StepFailed, match=r"package/scylla/install\.sh installed no program bin/scylla"):
        SYSTEM.install(cluster.nodes[0], cluster)


def test_configuration_is_the_releases_own_under_ours(
    tmp_path: Path, make_cluster: Callable[..., Cluster]
) -> None:
    conf = _configured(make_cluster(3, developer_mode=True, command_line={"smp": 1}), 1)
    assert conf["num_tokens"] == 256
    assert conf["tablets_mode_for_new_keyspaces"] == "enabled"
    assert conf["developer_mode"] is True
    assert "command_line" not in conf
    assert "workdir" not in conf
    for name in ("listen_address", "rpc_address", "api_address", "prometheus_address"):
        assert conf[name] == "127.0.0.62"
    assert conf["seed_provider"][0]["parameters"] == [{"seeds": "127.0.0.61"}]
    assert conf["api_ui_dir"] == f"{tmp_path}/s2/server/swagger-ui/dist/"
    ports = ("native_transport_port", "native_shard_aware_transport_port", "storage_port")
    assert {conf[name] for name in (*ports, "api_port", "prometheus_port")} == set(SYSTEM.ports())


def test_settings_that_are_not_theirs_are_refused_all_at_once(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster(rpc_address="0.0.0.0", command_line={"smp": 1, "blocked-reactor": 2})  # noqa: S104
    cluster = replace(cluster, config=replace(cluster.config, heap_mb=512))
    with pytest.raises(ConfigError) as failure:
        SYSTEM.configure(cluster.nodes[0], cluster)
    for part in ("settings.rpc_address", "blocked-reactor", "command_line.memory"):
        assert part in str(failure.value)
    assert "command_line.smp" not in str(failure.value)


def test_a_testbed_that_names_cores_decides_how_many(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(command_line={"smp": 1})
    pinned = replace(cluster, nodes=(replace(cluster.nodes[0], cores=(0, 1)),))
    with pytest.raises(
        ConfigError, match=r"command_line\.smp: testbed .* one shard on each; remove smp"
    ):
        SYSTEM.configure(pinned.nodes[0], pinned)


def test_what_is_known_of_the_disk_is_given_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_cluster: Callable[..., Cluster]
) -> None:
    cluster = make_cluster()
    (node,) = cluster.nodes
    properties = tmp_path / "io_properties.yaml"
    monkeypatch.setattr(scylladb, "IO_PROPERTIES", str(properties))
    fact = SYSTEM.facts(cluster)[0]
    assert (fact.host, fact.name, fact.value) == ("s1", "io_properties", "none")
    properties.write_text("disks: []\n")
    assert SYSTEM.facts(cluster)[0].value == "b88338b112f5"
    SYSTEM.install(node, cluster)
    SYSTEM.start(node, cluster)
    end_s = time.monotonic() + 30
    while SYSTEM.is_running(node):
        assert time.monotonic() < end_s, "the program still runs after 30 s"
        time.sleep(0.02)
    assert f"--io-properties-file {properties}" in Path(SYSTEM.logs(node)[0]).read_text()


def test_all_that_is_laid_over_the_releases_own_file_is_a_fact(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster()
    config, shipped = _configured(cluster), YAML(typ="safe").load(SHIPPED)
    laid_over = {key for key in {*config, *shipped} if config.get(key) != shipped.get(key)}
    command = scylladb.server_command(cluster.nodes[0], cluster)
    options = {word for word in command if word.startswith("--")}
    facts = {fact.name: fact.value for fact in SYSTEM.facts(cluster)}
    assert {f"forced:{key}" for key in laid_over | options} <= facts.keys()
    assert "forced:num_tokens" not in facts
    assert facts["defaults"] == "the release's own scylla.yaml"


def test_defaults_are_those_of_the_archives_file(
    tmp_path: Path, make_cluster: Callable[..., Cluster]
) -> None:
    cluster = make_cluster()
    shipped = SYSTEM.defaults(cluster.release, cluster.artifact)
    assert shipped["scylla.yaml: tablets_mode_for_new_keyspaces"] == '"enabled"'
    assert len(shipped) == 5
    unpacked = replace(cluster.artifact, location=str(tmp_path / "package/scylla"))
    assert SYSTEM.defaults(cluster.release, unpacked) == shipped
    (tmp_path / "empty").mkdir()
    nothing = replace(cluster.artifact, location=str(tmp_path / "empty"))
    assert SYSTEM.defaults(cluster.release, nothing) == {}


def test_command_line_is_the_documented_one(make_cluster: Callable[..., Cluster]) -> None:
    said = {"smp": 2, "memory": "1536M", "overprovisioned": True}
    cluster = make_cluster(command_line=said)
    node = replace(cluster.nodes[0], cores=(2, 3))
    home = node.work_dir
    tuned = scylladb.server_command(node, cluster, has_io_properties=True)
    at = tuned.index("--io-properties-file")
    assert tuned[at + 1] == "/etc/scylla.d/io_properties.yaml"
    assert scylladb.server_command(node, cluster) == (
        f"{home}/server/bin/scylla",
        *("--options-file", f"{home}/scylla.yaml", "--workdir", f"{home}/work"),
        *("--log-to-syslog", "0", "--log-to-stdout", "1", "--cpuset", "2,3"),
        *("--smp", "2", "--memory", "1536M", "--overprovisioned"),
    )
    plain = scylladb.server_command(cluster.nodes[0], make_cluster_plain(cluster))
    assert plain[-4:] == ("--log-to-syslog", "0", "--log-to-stdout", "1")


def make_cluster_plain(cluster: Cluster) -> Cluster:
    return replace(cluster, config=replace(cluster.config, settings={}))


@pytest.fixture
def serving(
    make_cluster: Callable[..., Cluster], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Cluster]]:
    """Return `serving(rows)`: two nodes that run, whose ports answer, and what their tables say."""
    cluster = make_cluster(2)
    monkeypatch.setattr(SYSTEM.__class__, "is_running", lambda *_: True)
    monkeypatch.setattr(scylladb, "require_port", lambda *_: None)
    asked: list[str] = []

    def serve(rows: tuple[Any, ...]) -> Cluster:
        def answer(cluster: Cluster, port: int, query: str) -> cql.Answers:
            assert port == 9042
            asked.append(query)
            return tuple((node, rows) for node in cluster.nodes)

        monkeypatch.setattr(cql, "ask_each", answer)
        return cluster

    yield serve
    assert len(asked) == 1


def test_a_ring_serves_once_each_node_sees_all_as_normal(serving: Callable[..., Cluster]) -> None:
    SYSTEM.check(serving((("NORMAL", True), ("NORMAL", True))))


@pytest.mark.parametrize("second", [("JOINING", True), ("NORMAL", False), None])
def test_a_ring_that_is_not_whole_is_not_ready(serving: Callable[..., Cluster], second: Any) -> None:  # noqa: ANN401
    rows = (("NORMAL", True), *((second,) if second else ()))
    with pytest.raises(NotReady, match="sees 1 of 2 nodes up and normal"):
        SYSTEM.check(serving(rows))


@pytest.mark.keeps("wrong-release-is-refused")
def test_version_is_reported_without_its_build(serving: Callable[..., Cluster]) -> None:
    cluster = serving((("2025.4.2-0.20260116.64039588dbe6",),))
    assert SYSTEM.running_versions(cluster) == (("s1", "2025.4.2"), ("s2", "2025.4.2"))


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Yield what a REST API answers by address: change it at will. Others are answered with 404."""
    known: dict[str, Any] = {
        "/compaction_manager/compactions": [],
        "/compaction_manager/metrics/pending_tasks": 0,
    }

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(known.get(self.path)).encode()
            self.send_response(200 if self.path in known else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.61", 0), Handler) as server:
        monkeypatch.setattr(scylladb, "API_PORT", server.server_port)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield known
        server.shutdown()
        thread.join()


def test_settled_means_no_compaction_runs_or_waits(
    api: dict[str, Any], make_cluster: Callable[..., Cluster]
) -> None:
    cluster = make_cluster()
    SYSTEM.settle(cluster)
    api["/compaction_manager/metrics/pending_tasks"] = 4
    with pytest.raises(NotReady, match="0 running, 4 pending"):
        SYSTEM.settle(cluster)
    api["/compaction_manager/metrics/pending_tasks"] = 0
    running = {"id": "1", "ks": "k", "cf": "t", "completed": 1, "total": 2, "unit": "keys"}
    api["/compaction_manager/compactions"] = [running]
    with pytest.raises(NotReady, match="1 running, 0 pending"):
        SYSTEM.settle(cluster)


def test_telemetry_shows_of_compactions(
    api: dict[str, Any], make_cluster: Callable[..., Cluster]
) -> None:
    api["/compaction_manager/metrics/pending_tasks"] = 3
    with SYSTEM.open_telemetry(make_cluster()) as look:
        (level,) = look()
    assert (level.node, level.name, level.value) == ("s1", COMPACTION_PENDING_TASKS, 3.0)


def test_an_api_that_lacks_what_is_asked_for_says_so(
    api: dict[str, Any], make_cluster: Callable[..., Cluster]
) -> None:
    del api["/compaction_manager/compactions"]
    with pytest.raises(NotReady, match="answers /compaction_manager/compactions with status 404"):
        SYSTEM.settle(make_cluster())


def test_no_api_is_reported_with_its_node(
    monkeypatch: pytest.MonkeyPatch, make_cluster: Callable[..., Cluster]
) -> None:
    monkeypatch.setattr(scylladb, "API_PORT", 1)
    with pytest.raises(NotReady, match="look failed on s1: its API: ConnectionRefusedError"):
        SYSTEM.settle(make_cluster())
