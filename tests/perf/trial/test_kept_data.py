"""Which files a trial starts from, and when they are made anew: with directories for servers."""

import hashlib
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import pytest
from needs import need

from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.hosts.remote import SshHost
from perf.jobs import measuring
from perf.jobs.interleaving import ComparisonRun, Pairing, Side, fetch_sides, open_plan
from perf.jobs.measuring import Job
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.design import Deployment
from perf.model.errors import StepFailed
from perf.model.records import Sensor
from perf.model.results import Artifact, Purpose, Reason, Release, Source, Trial, TrialId, TrialStatus
from perf.systems.contract import Cluster, Node
from perf.systems.fake.system import Fake
from perf.trial import harness, kept_data
from perf.trial.harness import Order, run_trial
from perf.trial.kept_data import MOST_AGE, KeptData, describe
from perf.trial.placement import place
from perf.trial.servers import Servers
from perf.trial.spent import Spent

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
ARTIFACT = Artifact(source=Source.BUILTIN, sha256="")
DATA, STATISTICS = "data/rows/1-Data.db", "data/rows/1-Statistics.db"
FLUSHED = "data/rows/2-Data.db"
FOUND = [Reason(kind="dataset-failed", text="rows are missing")]


class Filing(Fake):
    """A system of directories: it runs from start to stop, and has no process."""

    kept_dirs: ClassVar[tuple[str, ...]] = ("data",)
    unchanging: ClassVar[tuple[str, ...]] = ("*-Data.db",)
    serving: ClassVar[frozenset[str]] = frozenset({"readers", "storage.cache_gb"})

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.in_memory: set[str] = set()
        self.stops = True

    def start(self, node: Node, cluster: Cluster) -> None:
        """Run, and compact what was written last."""
        self.running.add(node.name)
        (Path(node.work_dir) / FLUSHED).unlink(missing_ok=True)

    def check(self, cluster: Cluster) -> None:
        pass

    def running_versions(self, cluster: Cluster) -> tuple[tuple[str, str], ...]:
        return tuple((node.name, cluster.release.version) for node in cluster.nodes)

    def is_running(self, node: Node) -> bool:
        return node.name in self.running

    def stop(self, node: Node, *, force: bool) -> None:
        if self.stops:
            self.running.discard(node.name)
        if node.name in self.in_memory:
            self.in_memory.remove(node.name)
            (Path(node.work_dir) / FLUSHED).write_text("a few rows")


class Host:
    """One testbed in a directory, on which trials begin one after the other."""

    def __init__(self, base: Path) -> None:
        self.base, self.system, self.loads = base, Filing(), 0
        catalog = load_catalog(CONFIGS)
        suite = catalog.suite("fake-short")
        found = catalog.resolve(suite, suite.experiments[0])
        workload = replace(catalog.workloads["tiny-read"], dataset="kept")
        topology = replace(found.topology, servers=2, replication_factor=2)
        self.deployment = replace(found, workload=workload, topology=topology)
        self.releases = [one for one in self.system.releases() if one.line == "2.0"]

    def store(self, servers: Servers, _: object) -> tuple[Reason, ...]:
        """Write what a node would have; each load writes something else."""
        self.loads += 1
        for node in servers.cluster.nodes:
            assert self.system.is_running(node)
            self.system.in_memory.add(node.name)
            for path in (Path(node.work_dir) / DATA, Path(node.work_dir) / STATISTICS):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{node.name} {self.loads} {path.name}")
        return ()

    def data(self, release: Release | None = None, deployment: Deployment | None = None) -> KeptData:
        deployment = deployment or self.deployment
        cluster = place(deployment, release or self.releases[1], ARTIFACT, self.base)
        return KeptData(Servers(self.system, cluster, Progress(io.StringIO())), deployment)

    def begin(self, release: Release | None = None, deployment: Deployment | None = None) -> str:
        """Begin a trial; return what it says it starts from."""
        data = self.data(release, deployment)
        data.servers.wipe()
        facts = data.provide(Spent())
        return facts[0].value if facts else ""

    def node(self, name: str) -> Path:
        return self.base / "fake" / name

    def digest(self) -> str:
        """Return one of all files of all nodes."""
        nodes = self.base / "fake"
        files = sorted(path for path in nodes.rglob("*") if path.is_file())
        said = ((str(path.relative_to(nodes)), path.read_text()) for path in files)
        return hashlib.sha256(json.dumps(list(said)).encode()).hexdigest()

    def kept(self, name: str = "node-1") -> Path:
        (found,) = (self.base / "kept" / "fake" / name).iterdir()
        return found

    def edit(self, **changes: object) -> None:
        """Change the manifests of the one set."""
        for name in ("node-1", "node-2"):
            path = self.kept(name) / "manifest.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(tmp_path)
    monkeypatch.setattr(kept_data, "store", host.store)
    return host


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """Yield a directory of another file system."""
    with TemporaryDirectory(dir="/dev/shm") as name:
        need(
            Path(name).stat().st_dev != tmp_path.stat().st_dev,
            "memory and disk are one file system here",
        )
        yield Path(name)


def test_the_trial_that_makes_a_set_and_those_after_it_start_from_the_same_files(host: Host) -> None:
    first = host.begin()
    assert host.loads == 1
    assert not host.system.running
    files = {path: path.read_text() for path in host.node("node-2").rglob("*") if path.is_file()}
    assert {path.name for path in files} == {"1-Data.db", "1-Statistics.db"}
    assert host.begin() == first
    assert host.loads == 1
    assert {path: path.read_text() for path in files} == files
    assert "made by 2.0.1 with default on" in first


def test_what_the_shutdown_wrote_is_compacted_before_files_are_kept(host: Host) -> None:
    host.begin()
    assert (host.kept() / "files" / DATA).exists()
    assert not (host.kept() / "files" / FLUSHED).exists()


def test_what_never_changes_is_linked_and_what_may_is_copied(host: Host) -> None:
    host.begin()
    kept = host.kept() / "files"
    assert (kept / DATA).samefile(host.node("node-1") / DATA)
    before = (kept / STATISTICS).read_text()
    (host.node("node-1") / STATISTICS).write_text("changed in place by a trial")
    (host.node("node-1") / DATA).unlink()
    assert (kept / STATISTICS).read_text() == before
    host.begin()
    assert host.loads == 1


def test_where_there_are_no_links_files_are_copied(host: Host, elsewhere: Path) -> None:
    (host.base / "kept").symlink_to(elsewhere)
    first = host.begin()
    kept = host.kept() / "files"
    assert (kept / DATA).read_text() == (host.node("node-1") / DATA).read_text()
    assert not (kept / DATA).samefile(host.node("node-1") / DATA)
    assert host.begin() == first


@pytest.mark.slow
def test_a_host_over_ssh_keeps_its_own_sets(host: Host, sshd: SshHost) -> None:
    _, key, _, known_hosts = sshd.options
    config = host.base / "ssh_config"
    config.write_text(f"Host *\n  IdentityFile {key}\n  {known_hosts.replace('=', ' ', 1)}\n")
    testbed = host.deployment.testbed
    hosts = tuple(
        replace(one, user=sshd.user, port=sshd.port, work_dir=str(host.base / one.address))
        for one in testbed.hosts
    )
    far = replace(testbed, transport="ssh", hosts=hosts, ssh_config=str(config))
    one = replace(host.deployment.topology, servers=1, replication_factor=1)
    host.deployment = replace(host.deployment, testbed=far, topology=one)
    first = host.begin()
    assert host.begin() == first
    assert host.loads == 1
    (kept,) = host.base.glob("127.0.0.1/kept/fake/node-1/*/files")
    node = host.base / "127.0.0.1/fake/node-1"
    assert (kept / DATA).samefile(node / DATA)
    assert not (kept / STATISTICS).samefile(node / STATISTICS)
    (kept / DATA).write_text("changed")
    assert host.begin() != first
    assert host.loads == 2


@pytest.mark.slow
@pytest.mark.parametrize("is_forth", [True, False])
def test_both_sides_of_a_comparison_start_from_the_same_files(
    host: Host,
    make_trial: Callable[..., Trial],
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_forth: bool,
) -> None:
    def run(order: Order, _: object, paths: DataPaths, __: object) -> Trial:
        started.append((order.release.version, host.begin(order.release), host.digest()))
        trial = make_trial(id=order.trial, release=order.release)
        bundle.seal(bundle.stage(paths, trial.id), trial, ())
        return trial

    monkeypatch.setattr(measuring, "run_trial", run)
    host.begin(host.releases[-1])  # the set that is there was made by a release later than both
    old, new = (
        Side(label=one.version, version=one.version, deployment=host.deployment)
        for one in (host.releases[1], host.releases[4])
    )
    pairing = Pairing(
        purpose=Purpose.COMPARISON,
        suite="fake-short",
        baseline=old if is_forth else new,
        candidate=new if is_forth else old,
    )
    started: list[tuple[str, str, str]] = []
    job = Job(load_catalog(CONFIGS), DataPaths(host.base), Progress(io.StringIO()))
    artifacts = fetch_sides(job, pairing)
    plan, _ = open_plan(pairing, artifacts, job.paths, datetime.now(UTC))
    course = ComparisonRun(plan=plan, pairing=pairing, artifacts=artifacts, job=job)
    assert len([*course.measure_block(1), *course.measure_block(2)]) == 8
    assert {version for version, _, _ in started} == {old.version, new.version}
    assert len({(fact, files) for _, fact, files in started}) == 1
    assert host.loads == 2


def test_without_a_data_set_a_trial_begins_empty(host: Host) -> None:
    fresh = replace(host.deployment, workload=replace(host.deployment.workload, dataset=None))
    assert host.begin(deployment=fresh) == ""
    assert not host.node("node-1").exists()
    assert host.loads == 0


def cut_short(host: Host) -> None:
    (host.kept("node-2") / "manifest.json").unlink()


def age(host: Host) -> None:
    host.edit(made_at=(datetime.now(UTC) - MOST_AGE - timedelta(minutes=1)).isoformat())


def garble(host: Host) -> None:
    (host.kept() / "manifest.json").write_text('{"set": ')


def lose(host: Host) -> None:
    (host.kept("node-2") / "files" / DATA).unlink()


def add(host: Host) -> None:
    (host.kept("node-2") / "files/data/rows/3-Data.db").write_text("")


def flip(host: Host) -> None:
    path = host.kept("node-2") / "files" / DATA
    path.write_text(path.read_text().swapcase())


def mix_up(host: Host) -> None:
    path = host.kept("node-2") / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"set": "of-another"}))


@pytest.mark.parametrize("harm", [cut_short, age, garble, lose, add, flip, mix_up])
def test_what_is_old_or_not_whole_or_was_changed_is_made_anew(
    host: Host, harm: Callable[[Host], None]
) -> None:
    first = host.begin()
    harm(host)
    second = host.begin()
    assert host.loads == 2
    assert second != first
    assert (host.node("node-2") / DATA).read_text() == "node-2 2 1-Data.db"
    assert host.begin() == second
    assert host.loads == 2


@pytest.mark.parametrize(("harm", "left"), [(cut_short, [1, 0]), (age, [0, 0]), (garble, [0, 1])])
def test_what_is_of_no_use_is_removed_by_trials_of_other_workloads(
    host: Host, harm: Callable[[Host], None], left: list[int]
) -> None:
    host.begin()
    harm(host)
    fresh = replace(host.deployment, workload=replace(host.deployment.workload, dataset=None))
    host.begin(deployment=fresh)
    sets = [list((host.base / "kept/fake" / name).iterdir()) for name in ("node-1", "node-2")]
    assert [len(one) for one in sets] == left


def test_a_later_release_reads_what_an_earlier_one_made_and_never_the_reverse(host: Host) -> None:
    old, new = host.releases[1], host.releases[4]
    newer = host.begin(new)
    older = host.begin(old)
    assert host.loads == 2
    assert newer != older
    assert host.begin(new) == older
    assert host.loads == 2


def test_what_shapes_files_is_of_another_set_and_what_does_not_is_of_the_same(host: Host) -> None:
    def key(deployment: Deployment, release: Release, artifact: Artifact = ARTIFACT) -> str:
        cluster = place(deployment, release, artifact, host.base)
        return json.dumps(describe(deployment, cluster, Filing.serving))

    release = host.releases[0]
    made = replace(host.deployment, config=replace(host.deployment.config, settings={"layers": 2}))
    workload, config = made.workload, made.config
    other = Sensor(kind="sensor", devices=21, payload_bytes=256, latest_count=5)
    same = (
        replace(made, workload=replace(workload, measurements=workload.measurements[:1])),
        replace(made, workload=replace(workload, consistency="one", name="other")),
        replace(made, config=replace(config, name="big", heap_mb=1024)),
        replace(made, config=replace(config, jvm_options=("-XX:+UseZGC",))),
        replace(made, config=replace(config, settings={"readers": 9, "layers": 2})),
        replace(made, config=replace(config, settings={"storage": {"cache_gb": 9}, "layers": 2})),
    )
    others = (
        replace(made, workload=replace(workload, seed=8)),
        replace(made, workload=replace(workload, preload_rows_per_device=7)),
        replace(made, workload=replace(workload, records=other)),
        replace(made, topology=replace(made.topology, replication_factor=1)),
        replace(made, topology=replace(made.topology, servers=1)),
        replace(made, config=replace(config, layout={"compaction": "leveled"})),
        replace(made, config=replace(config, settings={})),
        replace(made, config=replace(config, settings={"storage": {"pages": 9}, "layers": 2})),
        replace(made, config=replace(config, jvm_options=("-Dtable.format=new",))),
    )
    assert {key(one, release) for one in same} == {key(made, release)}
    assert key(made, host.releases[3]) == key(made, release)
    keys = [key(made, release), *(key(one, release) for one in others)]
    keys += [key(made, replace(release, line="1.0"))]
    build = replace(release, line="2.0-dev")
    keys += [key(made, build, replace(ARTIFACT, sha256=one)) for one in ("a", "b")]
    assert len(set(keys)) == len(keys)


def test_a_set_that_a_trial_could_not_trust_is_removed(host: Host) -> None:
    assert host.data().doubt(FOUND) == ()
    host.begin()
    assert host.data().doubt([Reason(kind="engine-failed", text="under load")]) == ()
    assert host.kept().is_dir()
    assert [one.kind for one in host.data().doubt(FOUND)] == ["dataset-removed"]
    host.begin()
    assert host.loads == 2


def test_servers_that_do_not_end_in_time_leave_nothing_that_is_used(host: Host) -> None:
    host.system.stops = False
    limits = replace(host.deployment.testbed.limits, stop_s=0.01)
    hasty = replace(host.deployment, testbed=replace(host.deployment.testbed, limits=limits))
    with pytest.raises(StepFailed) as failure:
        host.begin(deployment=hasty)
    assert failure.value.step == "stop"
    assert not list(host.base.glob("kept/fake/node-1/*/manifest.json"))


def test_the_oldest_sets_make_room_for_a_new_one(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.begin()
    host.edit(disk_bytes=5 * 1024**2)
    first = host.kept()
    workload = host.deployment.workload
    seeds = [replace(host.deployment, workload=replace(workload, seed=n)) for n in (1, 2)]
    monkeypatch.setattr(kept_data, "read_room", lambda *_: (11, "/"))
    host.begin(deployment=seeds[0])  # two nodes on one host keep 10 MB already, and 11 are free
    assert first.is_dir()
    monkeypatch.setattr(kept_data, "read_room", lambda *_: (2, "/"))
    host.begin(deployment=seeds[1])
    assert not first.exists()
    monkeypatch.setattr(kept_data, "read_room", lambda *_: (0, "/"))
    with pytest.raises(StepFailed) as failure:
        host.begin()
    assert failure.value.step == "keep"
    assert not list(host.base.glob(f"kept/fake/*/{first.name}/manifest.json"))


class Forgetful(Fake):
    """The fake database, whose rows are in no file."""

    kept_dirs: ClassVar[tuple[str, ...]] = ("data",)
    unchanging: ClassVar[tuple[str, ...]] = ()
    serving: ClassVar[frozenset[str]] = frozenset()

    def install(self, node: Node, cluster: Cluster) -> None:
        super().install(node, cluster)
        (Path(node.work_dir) / "data").mkdir(exist_ok=True)


@pytest.mark.slow
@pytest.mark.usefixtures("fake_ports")
def test_rows_that_are_not_there_after_the_start_fail_a_trial_and_cost_the_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "run_canary", lambda *_: ())
    deployment, system = Host(tmp_path).deployment, Forgetful()
    order = Order(
        trial=TrialId("n.01.kept.1.0.0"),
        night="n",
        purpose=Purpose.SCHEDULED,
        deployment=deployment,
        release=system.releases()[0],
        artifact=ARTIFACT,
    )
    trial = run_trial(order, system, DataPaths(tmp_path), Progress(io.StringIO()))
    assert trial.status is TrialStatus.FAILED
    assert [reason.kind for reason in trial.reasons] == ["dataset-failed"]
    assert "0 of 120 rows" in trial.reasons[0].text
    assert [remark.kind for remark in trial.remarks] == ["dataset-removed"]
    assert not list(tmp_path.glob("run/kept/fake/*/*"))
    spent = {one.operation for one in trial.samples if one.metric == "time_spent"}
    assert {"load", "settle", "keep"} <= spent
