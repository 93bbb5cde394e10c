"""A trial on a tuned testbed: refused before anything starts, or proven at both of its ends."""

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from toy_hosts import ToyHost, write_profiles

from perf.config.catalog import load_catalog
from perf.hosts.tuning import profiles as tuning
from perf.hosts.tuning import readiness
from perf.hosts.tuning.profiles import label, load_profile
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.design import Testbed, Tuning
from perf.model.errors import HostUnfit
from perf.model.results import Artifact, Purpose, Source, TrialId, TrialStatus
from perf.systems.contract import Cluster, Node
from perf.systems.fake import system as fake
from perf.trial.harness import Order, run_trial

pytestmark = pytest.mark.usefixtures("fake_ports")

CONFIGS = Path(__file__).parents[2] / "data" / "configs"


class Drifting(fake.Fake):
    """A fake system beside which somebody changes a setting of the host once a server starts."""

    def __init__(self, toy: ToyHost) -> None:
        super().__init__()
        self.toy = toy

    def start(self, node: Node, cluster: Cluster) -> None:
        self.toy.write({"memory": "60"})
        super().start(node, cluster)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ToyHost]:
    """Yield the machine of a local testbed, with toy settings in its directory of running trials."""
    write_profiles(tmp_path / "profiles")
    monkeypatch.setattr(tuning, "find_root", lambda: tmp_path / "profiles")
    load_profile.cache_clear()
    directory = DataPaths(tmp_path / "var").run
    directory.mkdir(parents=True)
    machine = ToyHost(directory=directory)
    machine.write({"clock": "steady", "memory": "1"})
    monkeypatch.setattr(readiness, "open_host", lambda _testbed, _host: machine)
    yield machine
    load_profile.cache_clear()


def make_order(unavailable: dict[str, str]) -> Order:
    catalog = load_catalog(CONFIGS)
    suite, experiment = next(
        (suite, experiment)
        for suite in catalog.suites.values()
        for experiment in suite.experiments
        if experiment.name == "fake-blink"
    )
    deployment = catalog.resolve(suite, experiment)
    testbed: Testbed = replace(deployment.testbed, tuning=Tuning(unavailable=unavailable))
    return Order(
        trial=TrialId("n.01.tuned.1.0.0"),
        night="n",
        purpose=Purpose.SCHEDULED,
        deployment=replace(deployment, testbed=testbed),
        release=fake.SYSTEM.releases()[0],
        artifact=Artifact(source=Source.BUILTIN, sha256=""),
    )


def test_a_host_that_is_not_tuned_carries_no_trial(toy: ToyHost, tmp_path: Path) -> None:
    started: list[Node] = []

    class Watched(fake.Fake):
        def start(self, node: Node, cluster: Cluster) -> None:
            started.append(node)

    paths = DataPaths(tmp_path / "var")
    with pytest.raises(HostUnfit, match="never tuned since it booted"):
        run_trial(make_order({}), Watched(), paths, Progress(io.StringIO()))
    assert started == []
    assert toy.marker == ""
    assert not paths.trials.exists() or list(paths.trials.iterdir()) == []


@pytest.mark.slow
def test_the_proof_of_both_ends_is_in_the_trial(toy: ToyHost, tmp_path: Path) -> None:
    eager = load_profile("eager")
    (toy.directory / "run").mkdir()
    (toy.directory / "run/tuning").write_text(f"{label(eager)}\n")
    toy.write({"memory": "2"})
    said = io.StringIO()
    order = make_order({"disk": "toys have none"})
    trial = run_trial(order, Drifting(toy), DataPaths(tmp_path / "var"), Progress(said))

    server = label(load_profile("server"))
    assert "local: memory: 2 → 1" in said.getvalue()
    before = {fact.name: fact.value for fact in trial.environment_before}
    assert (before["tuning"], before["tuning_unavailable"]) == (server, "disk")
    assert [remark.text for remark in trial.remarks if remark.kind == "tuning-unavailable"] == [
        "measured without the tuning of disk on local (toys have none)"
    ]
    after = {fact.name: fact.value for fact in trial.environment_after}
    assert after["tuning"] == f"{server}, but memory 60 instead of 1"
    assert trial.status is TrialStatus.INVALID
    assert "host-drifted" in {reason.kind for reason in trial.reasons}
