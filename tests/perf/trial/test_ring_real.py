"""A real three-node Cassandra ring under a real trial, from wipe to sealed bundle."""

import io
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.design import Deployment, Measurement, OpenLoop
from perf.model.results import Purpose, Trial, TrialId, TrialStatus
from perf.releases import artifacts as releases
from perf.systems import registry
from perf.trial.harness import Order, run_trial

pytestmark = [pytest.mark.real, pytest.mark.alone, pytest.mark.slow, pytest.mark.timeout(420)]
CONFIGS = Path(__file__).parents[3] / "configs"


def short_deployment() -> Deployment:
    """Return the nightly read experiment with one short measured phase."""
    catalog = load_catalog(CONFIGS)
    suite = catalog.suite("nightly")
    experiment = next(e for e in suite.experiments if e.workload == "sensor-read")
    deployment = catalog.resolve(suite, experiment)
    load = OpenLoop(kind="open", offered_load_ops_per_s=50.0, in_flight=32)
    phase = Measurement(
        name="steady", load=load, warmup_s=1.0, warmup_cap_s=2.0, iteration_s=3.0, iterations=2
    )
    records = replace(deployment.workload.records, devices=40)
    workload = replace(deployment.workload, records=records, measurements=(phase,))
    return replace(deployment, workload=workload)


@pytest.fixture
def run(tmp_path: Path) -> Callable[[Progress], Trial]:
    def run(progress: Progress) -> Trial:
        deployment = short_deployment()
        cassandra = registry.load("cassandra")
        release = releases.find_release(cassandra, "5.0.9")
        order = Order(
            trial=TrialId("n.01.ring.5.0.9"),
            night="n",
            purpose=Purpose.SCHEDULED,
            deployment=deployment,
            release=release,
            artifact=releases.fetch(cassandra, release, report=progress.report),
        )
        trial = run_trial(order, cassandra, DataPaths(tmp_path), progress)
        for address in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
            for port in cassandra.ports():
                with socket.socket() as probe:
                    assert probe.connect_ex((address, port)) != 0, f"{address}:{port} still listens"
        return trial

    return run


def test_a_ring_is_measured_and_every_read_verified(
    run: Callable[[Progress], Trial], tmp_path: Path
) -> None:
    trial = run(Progress(io.StringIO()))
    assert trial.status is TrialStatus.COMPLETED, trial.reasons
    counted: dict[str, int] = {}
    for counter in trial.counters:
        if counter.iteration:
            counted[counter.name] = counted.get(counter.name, 0) + counter.value
    # 50 reads a second are scheduled for 6 s; how many of them end in time is the machine's matter.
    assert counted["attempted"] == 300
    assert counted["completed"] >= 297
    assert not counted.get("wrong_data")
    assert not counted.get("not_found")
    facts = {(fact.host, fact.name): fact.value for fact in trial.environment_before}
    assert '"17.' in facts["node-1", "version:java"]
    kept, intervals = bundle.read(tmp_path / "trials" / trial.id)
    assert kept == trial
    assert {(interval.kind, interval.iteration) for interval in intervals} >= {
        ("response_time", 1),
        ("service_time", 2),
    }


class KillOneNode(io.StringIO):
    """A progress stream that kills node-2's server when the measured phase is announced."""

    def __init__(self, pid_file: Path) -> None:
        super().__init__()
        self.pid_file = pid_file

    def write(self, text: str) -> int:
        if text.strip().startswith("steady:"):
            os.kill(int(self.pid_file.read_text().split()[0]), signal.SIGKILL)
        return super().write(text)


@pytest.mark.slow  # the fake system shows the same in seconds, in test_harness.py
def test_a_node_that_dies_mid_trial_makes_it_invalid(
    run: Callable[[Progress], Trial], tmp_path: Path
) -> None:
    trial = run(Progress(KillOneNode(tmp_path / "run" / "cassandra" / "node-2" / "server.pid")))
    assert trial.status is TrialStatus.INVALID
    assert trial.reasons[0].kind == "node-died"
    assert "node-2" in trial.reasons[0].text
    logs = {path.name for path in (tmp_path / "trials" / trial.id / "logs").iterdir()}
    assert logs == {f"node-{number}-{log}.log" for number in (1, 2, 3) for log in ("system", "gc")}
