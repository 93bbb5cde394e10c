"""What every system must keep to, at the level of the commands that it gives to a host.

Nothing is simulated but the server itself: commands run for real in a directory of the test, and a
stand-in that listens nowhere takes the place of each server process.
"""

import ast
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from made_up_release import artifact_of

from perf.hosts.remote import RUN_TIMEOUT_S, Completed, LocalHost, SshHost
from perf.load.spec import LoadSpec, dump_spec, read_spec
from perf.model.design import ClosedLoop, SystemConfig, Testbed, Topology
from perf.model.errors import NotReady, ReleaseError, StepFailed
from perf.model.records import Operation, Sensor
from perf.model.results import Source
from perf.systems import registry
from perf.systems.contract import Cluster, Node, System
from perf.workloads.stages import Stage

SOON_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """What the suite must know of a system: a minimal artifact, and settings to look for.

    `files` are made in the artifact's directory, empty and executable, `scripts` with their text. MARK,
    somewhere in `settings`, must appear in a configuration file.
    """

    files: tuple[str, ...] = ()
    scripts: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any]


MARK = 7341
STAGE = Stage(
    phase="saturation",
    load=ClosedLoop(kind="closed", in_flight=1),
    warmup_s=1.0,
    warmup_cap_s=1.0,
    iteration_s=1.0,
    iterations=(1,),
)
EXAMPLES = {
    "cassandra": Example(files=("lib/cassandra.jar",), settings={"concurrent_writes": MARK}),
    "cratedb": Example(
        files=("bin/crate", "config/log4j2.properties"), settings={"stats": {"jobs_log_size": MARK}}
    ),
    "fake": Example(settings={"service_time_ms": MARK}),
    "mongodb": Example(
        files=("bin/mongod",), settings={"operationProfiling": {"slowOpThresholdMs": MARK}}
    ),
    "null": Example(settings={"service_time_ms": MARK}),
    "scylladb": Example(
        # As the release's own, which puts all below the directory behind --prefix.
        scripts={
            "scylla/install.sh": 'mkdir -p "$4/bin" "$4/etc/scylla"; echo "cluster_name: Test Cluster" '
            '>"$4/etc/scylla/scylla.yaml"; cp "$0" "$4/bin/scylla"; chmod 755 "$4/bin/scylla"\n'
        },
        settings={"compaction_static_shares": MARK},
    ),
}


@dataclass(frozen=True, slots=True)
class RecordingHost(SshHost):
    """This machine, except that `start` starts a stand-in for the server; records every call."""

    name: str = "recorded"
    address: str = "recorded"
    calls: list[tuple[str, ...]] = field(default_factory=list)
    pid_files: list[str] = field(default_factory=list)
    here: LocalHost = field(default_factory=LocalHost)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = RUN_TIMEOUT_S,
        stdin: str | None = None,
        check: bool = True,
    ) -> Completed:
        """Run the command for real."""
        self.calls.append(("run", *argv))
        return self.here.run(argv, timeout_s=timeout_s, stdin=stdin, check=check)

    def start(
        self,
        argv: Sequence[str],
        *,
        pid_file: str,
        log: str,
        cwd: str,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start a process that only waits."""
        self.calls.append(("start", *argv))
        self.pid_files.append(pid_file)
        self.here.start(["sleep", "300"], pid_file=pid_file, log=log, cwd=cwd, env=env)

    def put(self, source: Path, target: str) -> None:
        """Copy for real."""
        self.calls.append(("put", str(source), target))
        self.here.put(source, target)

    def get(self, source: str, target: Path) -> None:
        """Copy for real."""
        self.calls.append(("get", source, str(target)))
        self.here.get(source, target)

    def count(self, verb: str) -> int:
        """Count the calls of a verb."""
        return sum(call[0] == verb for call in self.calls)

    def end(self) -> None:
        """Kill and reap every stand-in."""
        for pid_file in self.pid_files:
            child = self.here.child(pid_file)
            if child is not None:
                child.kill()
                child.wait()


@dataclass(frozen=True, slots=True)
class Case:
    """One system on a recorded host."""

    name: str
    system: System
    host: RecordingHost
    directory: Path
    testbed: Testbed

    def deploy(self, servers: int = 1) -> Cluster:
        """Return a cluster of the newest release in which no verb has been called."""
        example = EXAMPLES[self.name]
        artifact = self.directory / "artifact"
        contents = dict.fromkeys(example.files, "") | example.scripts
        for name, text in contents.items():
            file = artifact / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch(mode=0o755)
            file.write_text(text)
        artifact.mkdir(exist_ok=True)
        nodes = tuple(
            Node(
                name=f"s{index + 1}",
                index=index,
                address=f"127.0.0.{index + 41}",
                remote=self.host,
                work_dir=str(self.directory / "nodes" / f"s{index + 1}"),
            )
            for index in range(servers)
        )
        return Cluster(
            release=self.system.releases()[-1],
            artifact=artifact_of(artifact, Source.PATH),
            nodes=nodes,
            topology=Topology(
                name="test", description="test", servers=servers, replication_factor=servers
            ),
            testbed=self.testbed,
            config=SystemConfig(
                system=self.name, name="test", description="test", settings=example.settings
            ),
        )

    def prepare(self, servers: int = 1) -> Cluster:
        """Return a cluster that is installed and configured."""
        cluster = self.deploy(servers)
        for node in cluster.nodes:
            self.system.install(node, cluster)
            self.system.configure(node, cluster)
        return cluster

    def start(self, servers: int = 1) -> Cluster:
        """Return a cluster whose server processes run."""
        cluster = self.prepare(servers)
        for node in cluster.nodes:
            self.system.start(node, cluster)
        return cluster

    def written(self, node: Node) -> str:
        """Return the text of every small file in a node's directory."""
        files = (path for path in Path(node.work_dir).rglob("*") if path.is_file())
        return "\n".join(
            path.read_text(errors="replace") for path in files if path.stat().st_size < 2**20
        )


@pytest.fixture(params=registry.names())
def case(
    request: pytest.FixtureRequest, tmp_path: Path, make_testbed: Callable[..., Testbed]
) -> Iterator[Case]:
    assert request.param in EXAMPLES, f"give system {request.param} an Example in this file"
    host = RecordingHost()
    try:
        yield Case(request.param, registry.load(request.param), host, tmp_path, make_testbed())
    finally:
        host.end()


@pytest.fixture
def on_debian_12(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the answer to "which Linux is this?" the same on every machine that runs the suite."""
    monkeypatch.setattr(
        platform, "freedesktop_os_release", lambda: {"ID": "debian", "VERSION_ID": "12"}
    )
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


def _ends_soon(system: System, node: Node) -> bool:
    end_s = time.monotonic() + SOON_S
    while system.is_running(node):
        if time.monotonic() > end_s:
            return False
        time.sleep(0.02)
    return True


def test_system_has_the_name_of_its_module(case: Case) -> None:
    assert case.system.name == case.name


def test_releases_are_unique_and_ordered_within_each_line(case: Case) -> None:
    releases = case.system.releases()
    assert len({release.version for release in releases}) == len(releases) > 0
    for line in {release.line for release in releases}:
        of_line = [release for release in releases if release.line == line]
        ordinals = [release.ordinal for release in of_line]
        assert ordinals == sorted(set(ordinals)), f"ordinals of line {line} must rise"
    assert {release.system for release in releases} == {case.name}


@pytest.mark.usefixtures("on_debian_12")
def test_each_release_has_origins_or_a_reason(case: Case) -> None:
    refused: dict[str, str] = {}
    for release in case.system.releases():
        try:
            origins = case.system.origins(release)
        except ReleaseError as reason:
            refused[release.version] = str(reason)
            continue
        assert origins
        assert all(origin.location for origin in origins)
        assert all(origin.checksum for origin in origins if origin.source is Source.ARCHIVE)
    assert all(version in reason for version, reason in refused.items())
    assert len(refused) < len(case.system.releases())


def test_ports_are_ports(case: Case) -> None:
    ports = case.system.ports()
    assert len(set(ports)) == len(ports) > 0
    assert all(0 < port < 65_536 for port in ports)


def test_logs_lie_in_the_directory_of_the_node(case: Case) -> None:
    (node,) = case.deploy().nodes
    logs = case.system.logs(node)
    assert logs
    assert all(Path(log).is_relative_to(node.work_dir) for log in logs)


def test_target_travels_to_an_engine_unchanged(case: Case, tmp_path: Path) -> None:
    target = case.system.target(case.deploy(3), consistency="quorum", timeout_s=2.5)
    assert len(target.addresses) == 3
    spec = LoadSpec(
        target=target,
        records=Sensor(kind="sensor", devices=1, payload_bytes=1000),
        mix={Operation.WRITE: 1.0},
        stages=(STAGE,),
        seed=1,
        engine_index=0,
        engine_count=1,
        output_dir=str(tmp_path),
    )
    (tmp_path / "spec.json").write_text(dump_spec(spec))
    assert read_spec(tmp_path / "spec.json").target == target


def test_second_install_copies_nothing(case: Case) -> None:
    cluster = case.deploy()
    (node,) = cluster.nodes
    case.system.install(node, cluster)
    first, copies = len(case.host.calls), case.host.count("put")
    case.system.install(node, cluster)
    assert case.host.count("put") == copies
    assert len(case.host.calls) - first <= first


def test_second_configure_writes_the_same(case: Case) -> None:
    cluster = case.prepare()
    (node,) = cluster.nodes
    before = case.written(node)
    case.system.configure(node, cluster)
    assert case.written(node) == before


def test_settings_reach_the_configuration(case: Case) -> None:
    (node,) = case.prepare().nodes
    assert str(MARK) in case.written(node)


@pytest.mark.slow
def test_each_node_is_configured_for_its_own_address(case: Case) -> None:
    for node in case.prepare(3).nodes:
        assert node.address in case.written(node)


def test_second_start_starts_nothing(case: Case) -> None:
    cluster = case.start()
    (node,) = cluster.nodes
    assert case.system.is_running(node)
    case.system.start(node, cluster)
    assert case.host.count("start") == 1


@pytest.mark.slow
def test_start_ends_no_check_before_the_server_listens(case: Case) -> None:
    cluster = case.start()
    with pytest.raises(NotReady) as refusal:
        case.system.check(cluster)
    assert refusal.value.node == cluster.nodes[0].name


@pytest.mark.slow
def test_check_fails_before_start(case: Case) -> None:
    with pytest.raises(StepFailed):
        case.system.check(case.prepare(3))


def test_check_gives_up_on_a_server_that_ended(case: Case) -> None:
    cluster = case.start()
    (node,) = cluster.nodes
    Path(case.system.logs(node)[0]).write_text("the last words\n")
    case.system.stop(node, force=True)
    assert _ends_soon(case.system, node)
    with pytest.raises(StepFailed) as failure:
        case.system.check(cluster)
    assert not isinstance(failure.value, NotReady)
    assert "the last words" in str(failure.value)


@pytest.mark.parametrize("force", [False, True], ids=["asked", "forced"])
def test_stop_ends_the_server_and_may_be_repeated(case: Case, *, force: bool) -> None:
    cluster = case.start()
    (node,) = cluster.nodes
    case.system.stop(node, force=force)
    assert _ends_soon(case.system, node)
    case.system.stop(node, force=force)
    assert not case.system.is_running(node)


def test_stop_and_wipe_are_fine_where_nothing_was_installed(case: Case) -> None:
    (node,) = case.deploy().nodes
    assert not case.system.is_running(node)
    case.system.stop(node, force=False)
    case.system.wipe(node)


@pytest.mark.slow
def test_wipe_leaves_nothing_and_only_there(case: Case) -> None:
    cluster = case.prepare(3)
    wiped, *kept = cluster.nodes
    for _ in range(2):
        case.system.wipe(wiped)
        assert not list(Path(wiped.work_dir).rglob("*"))
    assert all(node.address in case.written(node) for node in kept)


def test_wiped_node_can_be_deployed_again(case: Case) -> None:
    cluster = case.prepare()
    (node,) = cluster.nodes
    before = case.written(node)
    case.system.wipe(node)
    case.system.install(node, cluster)
    case.system.configure(node, cluster)
    assert case.written(node) == before


def test_module_leaves_time_order_and_output_to_the_harness(case: Case) -> None:
    file = sys.modules[type(case.system).__module__].__file__
    assert file is not None
    tree = ast.parse(Path(file).read_text())
    imported = {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not imported & {"time", "threading", "concurrent.futures", "random", "sched", "datetime"}
    assert "print" not in called
