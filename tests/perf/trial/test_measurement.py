"""What a trial says of its own load: invalid beside a hog, and the capacity that a search finds."""

import io
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.load.engines import Edge
from perf.load.results.search import Found
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.design import (
    CountedPhase,
    Deployment,
    Load,
    Measurement,
    OpenLoop,
    SearchLoad,
    SteppedLoad,
    SystemConfig,
    Validity,
)
from perf.model.records import Devops, Operation
from perf.model.results import Artifact, Purpose, Source, StepOutcome, Trial, TrialId, TrialStatus
from perf.systems import registry
from perf.systems.fake.devops import FakeDevopsSession
from perf.trial import harness
from perf.trial.harness import Order, run_trial
from perf.trial.measurement import LoadFindings, _MeasuringRun, judge
from perf.trial.telemetry import Snapshot

pytestmark = pytest.mark.usefixtures("fake_ports")

HARD = Operation.DOUBLE_GROUPBY_ALL
CONFIGS = Path(__file__).parents[2] / "data" / "configs"


@pytest.fixture(autouse=True)
def no_canary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the work out that tells how fast a host is: nothing here is about hosts."""
    monkeypatch.setattr(harness, "run_canary", lambda *_: ())


def resolve(system: str, load: Load, iterations: int = 1, **times: float) -> Deployment:
    catalog = load_catalog(CONFIGS)
    suite = catalog.suites["fake-night"]
    deployment = catalog.resolve(suite, suite.experiments[0])
    planned = {"warmup_s": 0.5, "warmup_cap_s": 0.5, "iteration_s": 2.0, **times}
    phase = Measurement(name="sought", load=load, iterations=iterations, **planned)
    records = deployment.workload.records
    return replace(
        deployment,
        experiment=replace(deployment.experiment, system=system),
        workload=replace(
            deployment.workload, records=records, measurements=(phase,), preload_rows_per_device=0
        ),
    )


def set_null(deployment: Deployment, **settings: float) -> Deployment:
    config = SystemConfig(system="null", name="planted", description="planted", settings=settings)
    topology = replace(deployment.topology, servers=1, replication_factor=1)
    return replace(deployment, config=config, topology=topology)


def limit(deployment: Deployment, **limits: float) -> Deployment:
    validity: Validity = replace(deployment.testbed.validity, **limits)
    return replace(deployment, testbed=replace(deployment.testbed, validity=validity))


def run(deployment: Deployment, tmp_path: Path) -> Trial:
    system = registry.load(deployment.experiment.system)
    order = Order(
        trial=TrialId("trial"),
        night="night",
        purpose=Purpose.SCHEDULED,
        deployment=deployment,
        release=system.releases()[0],
        artifact=Artifact(source=Source.BUILTIN, sha256=""),
    )
    return run_trial(order, system, DataPaths(tmp_path), Progress(io.StringIO()))


@contextmanager
def hogs(count: int) -> Iterator[None]:
    """Keep so many cores busy."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for hog in running:
            hog.kill()
            hog.wait()


def test_a_look_is_part_of_the_time_that_it_is_taken_in() -> None:
    events: list[str] = []

    def look() -> Snapshot:
        events.append("look")
        return Snapshot(hosts=(), processes=(), levels=())

    noted: Any = SimpleNamespace(enter=events.append)
    others: Any = SimpleNamespace(
        observe=lambda _: None, progress=SimpleNamespace(report=lambda _: None)
    )
    run = _MeasuringRun(others, others, look, others, noted)
    for is_start in (True, False):
        run._observe([], Edge(phase="steady", iterations=(1,), is_start=is_start))  # noqa: SLF001
    assert events == ["measured", "look", "warm-up", "look"]


@pytest.mark.slow
@pytest.mark.alone
def test_a_trial_beside_a_hog_is_invalid_and_says_so(tmp_path: Path) -> None:
    load = OpenLoop(kind="open", offered_load_ops_per_s=50.0, in_flight=8)
    deployment = limit(resolve("fake", load), max_foreign_cpu_share=0.25)
    with hogs(2):
        trial = run(deployment, tmp_path)
    assert trial.status is TrialStatus.INVALID
    reasons = {reason.kind: reason.text for reason in trial.reasons}
    assert "host-busy" in reasons, trial.reasons
    assert "other programs" in reasons["host-busy"]
    assert "the limit is 25" in reasons["host-busy"]


@pytest.mark.alone
@pytest.mark.slow
def test_a_search_finds_the_planted_capacity(tmp_path: Path) -> None:
    search = SearchLoad(
        kind="search",
        lowest_ops_per_s=160.0,
        highest_ops_per_s=400.0,
        response_time_p99_objective_ms=60.0,
        resolution=0.04,
        confirmations=2,
        in_flight=128,
    )
    # Four slots of 16 ms: 250 operations per second and not one more.
    deployment = set_null(resolve("null", search, iteration_s=2.0), slots=4, service_time_ms=16.0)
    trial = run(deployment, tmp_path)
    assert trial.status is TrialStatus.COMPLETED, trial.reasons
    found = {
        sample.statistic: sample.value for sample in trial.samples if sample.metric == "highest_load"
    }
    assert found["estimate"] == pytest.approx(250.0, rel=0.05), trial.steps
    assert found["lower"] <= found["estimate"] <= found["upper"]
    assert {step.outcome for step in trial.steps} == {StepOutcome.HELD, StepOutcome.MISSED}
    kept, intervals = bundle.read(tmp_path / "trials" / trial.id)
    assert kept.steps == trial.steps
    assert {step.phase for step in trial.steps} == {interval.phase for interval in intervals}


def test_a_search_without_an_answer_is_no_silent_gap_in_a_series() -> None:
    search = SearchLoad(
        kind="search",
        lowest_ops_per_s=100.0,
        highest_ops_per_s=200.0,
        response_time_p99_objective_ms=5.0,
        resolution=0.1,
        confirmations=1,
        in_flight=8,
    )
    deployment = resolve("null", search)
    phase = deployment.workload.measurements[0]
    found = Found(estimate=None, lower=None, upper=100.0, text="below 100 ops/s")
    [reason] = judge(LoadFindings(answers=((phase, found),)), deployment)
    assert (reason.kind, reason.text) == ("search-without-answer", "sought: below 100 ops/s")


def test_a_setting_that_the_system_refuses_fails_one_trial(tmp_path: Path) -> None:
    load = OpenLoop(kind="open", offered_load_ops_per_s=50.0, in_flight=8)
    trial = run(set_null(resolve("null", load), slotz=4), tmp_path)
    assert trial.status is TrialStatus.FAILED
    assert [reason.kind for reason in trial.reasons] == ["configure-failed"]
    assert "slotz" in trial.reasons[0].text
    assert bundle.read(tmp_path / "trials" / trial.id)[0] == trial


@pytest.mark.alone
@pytest.mark.slow
def test_a_ladder_says_which_loads_held_and_no_step_spoils_the_next(tmp_path: Path) -> None:
    ladder = SteppedLoad(kind="stepped", offered_loads_ops_per_s=(50.0, 250.0), in_flight=32)
    # Two slots of 16 ms: 125 operations per second; what is in flight when a step ends takes 0.25 s.
    deployment = resolve("null", ladder, warmup_s=2.0, warmup_cap_s=2.0, iterations=2)
    trial = run(set_null(deployment, slots=2, service_time_ms=16.0), tmp_path)
    assert trial.status is TrialStatus.COMPLETED, trial.reasons
    outcomes = {step.phase: step.outcome for step in trial.steps}
    assert outcomes == {"sought-50": StepOutcome.HELD, "sought-250": StepOutcome.MISSED}
    of_second = {
        (sample.metric, sample.statistic): sample.value
        for sample in trial.samples
        if (sample.phase, sample.iteration) == ("sought-50", 2)
    }
    # The second time, the low load follows the one that was too high: nothing of that may be in it.
    assert of_second["throughput", "mean"] == pytest.approx(50.0, rel=0.1)
    assert of_second["service_time", "p50"] < 30.0
    counters = {
        counter.name: counter.value
        for counter in trial.counters
        if (counter.phase, counter.iteration) == ("sought-50", 2)
    }
    assert counters["sent_in_window"] <= counters["attempted"] == 100


def test_what_a_release_cannot_be_asked_is_reported_before_anything_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeDevopsSession, "can_ask", lambda _, operation: operation is not HARD)
    deployment = resolve("fake", OpenLoop(kind="open", offered_load_ops_per_s=50.0, in_flight=8))
    phases = tuple(
        CountedPhase(name=one.value, operation=one, in_flight=1) for one in (Operation.LOAD, HARD)
    )
    workload = replace(
        deployment.workload,
        records=Devops(kind="devops", hosts=2, span_s=60, queries=2),
        operation=None,
        sequence=phases,
        measurements=(),
    )
    trial = run(replace(deployment, workload=workload), tmp_path)
    assert trial.status is TrialStatus.FAILED
    (reason,) = trial.reasons
    assert "fake 1.0.0 cannot be asked double-groupby-all" in reason.text
    assert not trial.counters
