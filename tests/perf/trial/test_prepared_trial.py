"""A trial on hosts with a policy: disks are made fresh, servers and clients pinned, leases kept."""

import io
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from perf.config.catalog import load_catalog
from perf.hosts.remote import Remote
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.design import DiskPolicy, Host
from perf.model.errors import HostUnfit
from perf.model.results import Artifact, Fact, Purpose, Reason, Source, Trial, TrialId, TrialStatus
from perf.systems.contract import Cluster, Node
from perf.systems.fake import system as fake
from perf.trial import harness, preflight
from perf.trial.harness import Order, run_trial

pytestmark = [pytest.mark.alone, pytest.mark.slow]

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
CORES = sorted(os.sched_getaffinity(0))
SERVERS, CLIENTS = (CORES[0],), (CORES[-1],)
FRESH = Fact(host="local", name="page_cache", value="dropped")


@pytest.fixture
def run(tmp_path: Path) -> Callable[[fake.Fake], Trial]:
    """Return a function that runs a trial of a system on pinned hosts with a disk policy."""

    def place(host: Host) -> Host:
        return replace(host, cores=SERVERS if host.role == "server" else CLIENTS)

    def run(system: fake.Fake) -> Trial:
        catalog = load_catalog(CONFIGS)
        suite = catalog.suite("fake-short")
        deployment = catalog.resolve(suite, suite.experiments[0])
        testbed = replace(
            deployment.testbed,
            hosts=tuple(map(place, deployment.testbed.hosts)),
            disk=DiskPolicy(drops_caches=True, trims=True),
        )
        order = Order(
            trial=TrialId("n.01.prepared.1.0.0"),
            night="n",
            purpose=Purpose.SCHEDULED,
            deployment=replace(deployment, testbed=testbed),
            release=system.releases()[0],
            artifact=Artifact(source=Source.BUILTIN, sha256=""),
        )
        return run_trial(order, system, DataPaths(tmp_path), Progress(io.StringIO()))

    return run


class Recording(fake.Fake):
    """The fake system with a record of what was done before its servers start."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def wipe(self, node: Node) -> None:
        self.done.append(f"wipe {node.name}")
        super().wipe(node)

    def install(self, node: Node, cluster: Cluster) -> None:
        self.done.append(f"install {node.name}")
        super().install(node, cluster)


def named(facts: tuple[Fact, ...], name: str) -> Mapping[str, str]:
    return {fact.host: fact.value for fact in facts if fact.name == name}


def test_a_trial_is_pinned_and_begins_on_a_fresh_disk(
    run: Callable[[fake.Fake], Trial], monkeypatch: pytest.MonkeyPatch
) -> None:
    system = Recording()

    def freshen(
        remote: Remote, directory: str, policy: DiskPolicy
    ) -> tuple[tuple[Fact, ...], tuple[str, ...]]:
        assert policy == DiskPolicy(drops_caches=True, trims=True)
        assert Path(directory).is_dir()
        system.done.append(f"fresh disk {remote.name}")
        return (FRESH,), ("page cache: dropped",)

    monkeypatch.setattr(preflight, "freshen", freshen)
    trial = run(system)
    assert trial.status is TrialStatus.COMPLETED, trial.reasons
    # Three nodes on one machine have one disk.
    nodes = ("node-1", "node-2", "node-3")
    wiped, installed = [f"wipe {one}" for one in nodes], [f"install {one}" for one in nodes]
    assert system.done[:7] == [*wiped, "fresh disk local", *installed]
    for facts in (trial.environment_before, trial.environment_after):
        assert named(facts, "page_cache") == {"local": "dropped"}
        assert named(facts, "pinned_cores") == {one: str(SERVERS[0]) for one in nodes}


class Loose(fake.Fake):
    """A system that forgets to pin its servers."""

    def start(self, node: Node, cluster: Cluster) -> None:
        super().start(replace(node, cores=()), cluster)


@pytest.mark.skipif(len(CORES) == 1, reason="on one core everything is pinned to it")
def test_a_server_that_is_not_pinned_fails_the_trial(
    run: Callable[[fake.Fake], Trial], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "freshen", lambda *_: ((), ()))
    trial = run(Loose())
    assert trial.status is TrialStatus.FAILED
    assert [reason.kind for reason in trial.reasons] == ["pinning-failed"]
    assert "was to be pinned to" in trial.reasons[0].text
    assert not any(sample.metric == "throughput" for sample in trial.samples)


def test_a_host_that_refuses_a_fresh_disk_starts_nothing(
    run: Callable[[fake.Fake], Trial], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object) -> None:
        raise HostUnfit("no rights")

    system = Recording()
    monkeypatch.setattr(preflight, "freshen", refuse)
    with pytest.raises(HostUnfit, match="no rights"):
        run(system)
    assert not any(one.startswith("install") for one in system.done)
    assert list(DataPaths(tmp_path).trials.glob("n.*")) == []


def test_a_trial_that_lost_its_hosts_meanwhile_is_invalid(
    run: Callable[[fake.Fake], Trial], monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = Reason(kind="lease-lost", text="db-1: the lease of this job was broken by x@y")
    monkeypatch.setattr(preflight, "freshen", lambda *_: ((), ()))
    monkeypatch.setattr(harness, "find_lost", lambda _: (lost,))
    trial = run(fake.Fake())
    assert trial.status is TrialStatus.INVALID
    assert trial.reasons == (lost,)
