"""A real Cassandra with an account and TLS: a whole trial over SSH; what engines say is wrong."""

import io
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from cassandra.cluster import Session
from certificates import Pair, issue, make_authority, trust_store
from needs import need_native
from planted import environment_of, find_in_files, watch_processes

from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.hosts.remote import LocalHost, SshHost, running_pid
from perf.load.engines import PYTHON_ENGINE, Engine, run_engines
from perf.load.spec import LoadSpec, Preload
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.access import Access, Tls
from perf.model.design import Deployment, Host, Steadiness, SystemConfig, Testbed, Topology
from perf.model.errors import NotReady, StepFailed
from perf.model.records import Operation, Sensor
from perf.model.results import Purpose, Trial, TrialId, TrialStatus
from perf.releases.artifacts import fetch, find_release
from perf.systems.cassandra.system import Cassandra
from perf.systems.contract import Cluster, Node
from perf.systems.cql import client as cql
from perf.trial.harness import Order, run_trial

pytestmark = [pytest.mark.real, pytest.mark.slow]

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
SYSTEM = Cassandra()
SERVER = "127.0.0.3"
VARIABLE, FIRST = "KNICKPOINT_PASSWORD_BENCH", "KNICKPOINT_PASSWORD_FIRST"
PLANTED = "pl4nted-Secret-'\"$(x)"


@dataclass(slots=True)
class WithAccount(Cassandra):
    """Cassandra whose operator gives each fresh ring an account, by the one that it comes with."""

    environments: list[dict[str, str]] = field(default_factory=list)

    def bootstrap(self, cluster: Cluster) -> None:
        """Create the account."""
        try:
            with _first_account(cluster) as session:
                name, word = _access(cluster).username, PLANTED.replace("'", "''")
                session.execute(
                    f"CREATE ROLE IF NOT EXISTS {name} WITH PASSWORD = '{word}' AND LOGIN = true"
                    " AND SUPERUSER = true"
                )
        except Exception as error:
            raise NotReady("start", "db1", type(error).__name__) from error
        (node,) = cluster.nodes
        pid = running_pid(node.remote, node.pid_file)
        assert pid is not None
        self.environments.append(environment_of(pid))


def _access(cluster: Cluster) -> Access:
    assert cluster.config.access is not None
    return cluster.config.access


@contextmanager
def _first_account(cluster: Cluster) -> Iterator[Session]:
    access = replace(_access(cluster), username="cassandra", password_env=FIRST)
    target = Cassandra().target(cluster, consistency="one", timeout_s=10)
    with cql.open_driver(replace(target, access=access)) as session:
        yield session


@dataclass(frozen=True, slots=True)
class Lab:
    """Hosts over SSH, an authority, and what is measured there."""

    directory: Path
    authority: Pair
    deployment: Deployment

    def run(self, name: str, access: Access, limit_s: float = 120) -> tuple[Trial, str]:
        """Run a trial; give what was reported meanwhile, too."""
        config = SystemConfig(
            system="cassandra", name="closed", description="test", heap_mb=512, access=access
        )
        limits = replace(self.deployment.testbed.limits, start_s=limit_s, stop_s=30)
        testbed = replace(self.deployment.testbed, limits=limits)
        release = find_release(Cassandra(), "5.0.9")
        order = Order(
            trial=TrialId(name),
            night="n",
            purpose=Purpose.SCHEDULED,
            deployment=replace(self.deployment, testbed=testbed, config=config),
            release=release,
            artifact=fetch(Cassandra(), release, report=print),
        )
        reported = io.StringIO()
        system = WithAccount()
        trial = run_trial(order, system, DataPaths(self.directory / "var"), Progress(reported))
        for environment in system.environments:
            assert not [key for key in environment if key.startswith("KNICKPOINT_PASSWORD")]
        return trial, reported.getvalue()


@pytest.fixture
def lab(sshd: SshHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setenv(VARIABLE, PLANTED)
    monkeypatch.setenv(FIRST, "cassandra")
    # Operators name keys in their SSH configuration; here a wrapper on PATH names them.
    wrapper = tmp_path / "bin" / "ssh"
    wrapper.parent.mkdir()
    # As sshd's PermitUserEnvironment and the like are off, a far process has no variable of ours.
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} {" ".join(sshd.options)} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", str(wrapper.parent), prepend=":")
    hosts = tuple(
        Host(
            name=name,
            address=address,
            role=role,
            user=sshd.user,
            port=sshd.port,
            work_dir=str(tmp_path / "far" / name),
            python=sys.executable,
        )
        for name, role, address in (("db1", "server", SERVER), ("load1", "client", "127.0.0.1"))
    )
    certificates = tmp_path / "far" / "db1" / "access"
    authority = make_authority(tmp_path / "ca", "authority")
    certificates.mkdir(parents=True)
    issue(authority, "server", SERVER).as_pkcs12(certificates / "server.p12", "cassandra")
    trust_store(authority, certificates / "clients.p12", "cassandra")
    catalog = load_catalog(CONFIGS)
    suite = catalog.suite("fake-short")
    deployment = catalog.resolve(suite, suite.experiments[0])
    return Lab(
        tmp_path,
        authority,
        replace(
            deployment,
            experiment=replace(
                deployment.experiment, name="bench-closed", system="cassandra", config="closed"
            ),
            topology=Topology(name="one", description="one node", servers=1, replication_factor=1),
            testbed=replace(
                deployment.testbed,
                transport="ssh",
                hosts=hosts,
                jvm_options=("-XX:TieredStopAtLevel=1",),
            ),
            workload=replace(deployment.workload, preload_rows_per_device=2, operation_timeout_s=10.0),
        ),
    )


@pytest.mark.keeps("no-secret-leaks")
def test_a_trial_with_an_account_and_tls_leaves_no_secret(lab: Lab) -> None:
    own = issue(lab.authority, "client")
    tls = Tls(
        ca_file=str(lab.authority.certificate),
        certificate_file=str(own.certificate),
        key_file=str(own.key),
    )
    access = Access(username="bench", password_env=VARIABLE, tls=tls)
    with watch_processes(PLANTED) as shown:
        trial, reported = lab.run("n.01.closed.5.0.9", access)
    assert trial.status is TrialStatus.COMPLETED, trial.reasons
    assert trial.samples
    assert shown == set()
    assert PLANTED not in reported
    data = lab.directory / "var"
    for command in (("append",), ("report", "--configs", str(CONFIGS))):
        words = [sys.executable, "-m", "perf.commands.main", *command, "--data", str(data)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert PLANTED not in done.stdout + done.stderr
    assert "bench-closed" in (data / "site" / "index.html").read_text()
    # Bundle with logs and facts, nodes and engines with specs and logs, history, pages: everything.
    assert find_in_files(PLANTED, lab.directory) == []
    engines = list((lab.directory / "far" / "load1" / "engines").rglob("spec.json"))
    assert engines
    for spec in engines:
        assert '"password_env": null' in spec.read_text()
        assert not (spec.parent / "password").exists()
    kept, _ = bundle.read(lab.directory / "var" / "trials" / trial.id)
    assert kept == trial


@pytest.fixture(scope="module")
def closed(
    tmp_path_factory: pytest.TempPathFactory, make_testbed: Callable[..., Testbed]
) -> Iterator[Cluster]:
    """Yield a serving node that asks for its first account, over TLS."""
    base = tmp_path_factory.mktemp("closed")
    authority = make_authority(base / "access", "authority")
    issue(authority, "server", SERVER).as_pkcs12(base / "access" / "server.p12", "cassandra")
    release = find_release(SYSTEM, "5.0.9")
    access = Access(
        username="cassandra", password_env=FIRST, tls=Tls(ca_file=str(authority.certificate))
    )
    node = Node(
        name="s1", index=0, address=SERVER, remote=LocalHost(), work_dir=str(base / "cassandra" / "s1")
    )
    cluster = Cluster(
        release=release,
        artifact=fetch(SYSTEM, release, report=print),
        nodes=(node,),
        topology=Topology(name="one", description="one node", servers=1, replication_factor=1),
        testbed=make_testbed(jvm_options=("-XX:TieredStopAtLevel=1",)),
        config=SystemConfig(
            system="cassandra", name="closed", description="test", heap_mb=512, access=access
        ),
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(FIRST, "cassandra")
        SYSTEM.install(node, cluster)
        SYSTEM.configure(node, cluster)
        SYSTEM.start(node, cluster)
        try:
            wait(lambda: SYSTEM.check(cluster), 180)
            yield cluster
        finally:
            SYSTEM.stop(node, force=True)
            wait(lambda: require_gone(node), 30)


def wait(step: Callable[[], None], limit_s: float) -> None:
    end = time.monotonic() + limit_s
    while True:
        try:
            return step()
        except NotReady:
            if time.monotonic() > end:
                raise
        time.sleep(0.1)


def require_gone(node: Node) -> None:
    if SYSTEM.is_running(node):
        raise NotReady("stop", node.name, "still there")


@pytest.mark.parametrize("engine", ["python", "native"])
def test_engines_log_in_over_tls_and_say_what_is_wrong(
    closed: Cluster, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = PYTHON_ENGINE if engine == "python" else (str(need_native()),)
    right = SYSTEM.target(closed, consistency="quorum", timeout_s=10.0)
    assert right.access is not None
    records = Sensor(kind="sensor", devices=10, payload_bytes=500)
    with SYSTEM.sessions.sensor(right) as session:
        session.create_schema(records)
    with cql.open_driver(right) as driver:
        driver.execute("TRUNCATE knickpoint.sensor_readings", timeout=60)

    def load(access: Access | None) -> None:
        spec = LoadSpec(
            target=replace(right, access=access),
            records=records,
            mix={Operation.WRITE: 1.0},
            seed=1,
            engine_index=0,
            engine_count=1,
            preload=Preload(rows=100, in_flight=4),
            output_dir=str(tmp_path / "engine"),
        )
        run_engines(
            [Engine(spec=spec, remote=LocalHost(), command=command)],
            connect_s=60,
            limit_s=60,
            steadiness=Steadiness(window_s=1, tolerance=1.0),
            watch=lambda: None,
            observe=lambda _: None,
        )

    load(right.access)
    with SYSTEM.sessions.sensor(right) as session:
        assert session.stored().rows == 100

    def refusal(access: Access) -> str:
        with pytest.raises(StepFailed) as caught:
            load(access)
        assert PLANTED not in str(caught.value)
        return str(caught.value).splitlines()[-1]

    where = f"access failed on {SERVER}:9042: "
    monkeypatch.setenv(VARIABLE, PLANTED)
    assert refusal(replace(right.access, password_env=VARIABLE)) == (
        f"{where}the server refuses the account cassandra; check its name and password"
    )
    assert refusal(Access(tls=right.access.tls)) == (
        f"{where}the server asks for an account; set access.username, and where its password is"
    )
    stranger = make_authority(tmp_path / "other", "stranger").certificate
    assert refusal(replace(right.access, tls=Tls(ca_file=str(stranger)))).startswith(
        f"{where}its certificate is not signed by tls.ca_file {stranger}: "
    )
