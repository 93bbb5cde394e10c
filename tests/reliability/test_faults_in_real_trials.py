"""What breaks in a trial of one real Cassandra: its status and reason, and the next trial well.

All trials are of one testbed and one data directory, one after the other.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from budget import cases
from disturbed import CONFIGS, NETWORK, Deed, Disturbed, Moment, change_load, kill, pause, small_disk
from needs import need_native

from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.load.histogram import merge
from perf.local.paths import DataPaths
from perf.model.design import Deployment, EngineName, SystemConfig, Topology
from perf.model.metrics import RESPONSE_TIME
from perf.model.results import Trial, TrialStatus
from perf.releases import artifacts as releases
from perf.systems import registry

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(600)]

ADDRESS = f"{NETWORK}1"
INVALID, FAILED, COMPLETED = TrialStatus.INVALID, TrialStatus.FAILED, TrialStatus.COMPLETED
EACH_ENGINE = pytest.mark.parametrize("engine", cases(["python", "native"], ["native"]))
# As start_s of configs/testbeds/local.yaml has it for three servers, on busy cores.
LIMITS = {"start_s": 240.0, "stop_s": 60.0, "load_s": 60.0, "connect_s": 60.0, "settle_s": 60.0}


def deploy_cassandra(
    engine: EngineName = "python",
    settings: Mapping[str, Any] | None = None,
    limits: Mapping[str, float] | None = None,
    **load: Any,  # noqa: ANN401  the arguments of change_load
) -> Deployment:
    """Return one node with a heap of 512 MB, on an address that no other test has."""
    catalog = load_catalog(CONFIGS)
    suite = catalog.suite("fake-short")
    deployment = catalog.resolve(suite, suite.experiments[0])
    testbed = deployment.testbed
    hosts = (replace(one, address=ADDRESS) for one in testbed.hosts if one.name != "node-2")
    return replace(
        deployment,
        experiment=replace(deployment.experiment, system="cassandra"),
        topology=Topology(name="one", description="one node", servers=1, replication_factor=1),
        config=SystemConfig(
            system="cassandra",
            name="default",
            description="small",
            heap_mb=512,
            settings=dict(settings or {}),
        ),
        testbed=replace(
            testbed,
            hosts=tuple(host for host in hosts if host.name != "node-3"),
            jvm_options=("-XX:TieredStopAtLevel=1",),
            limits=replace(testbed.limits, **{**LIMITS, **(limits or {})}),
        ),
        workload=replace(change_load(deployment.workload, **{"seconds": 3.0, **load}), engine=engine),
    )


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> DataPaths:
    return DataPaths(tmp_path_factory.mktemp("real"))


@pytest.fixture(scope="module")
def trials(paths: DataPaths) -> Disturbed:
    """Return the trials of one testbed."""
    cassandra = registry.load("cassandra")
    release = releases.find_release(cassandra, "5.0.9")
    artifact = releases.fetch(cassandra, release, report=print)
    return Disturbed(paths, deploy_cassandra(), cassandra, release, artifact)


Try = Callable[..., Trial]


@pytest.fixture
def attempt(trials: Disturbed, figures: dict[str, object]) -> Try:
    """Return `attempt(deployment, moment, deed)`: a trial that leaves nothing but its bundle."""

    def attempt(
        deployment: Deployment, moment: Moment | None = None, deed: Deed = lambda _: None
    ) -> Trial:
        if deployment.engine == "native":
            need_native()
        trials.deployment = deployment
        trial = trials.run(moment, deed)
        assert trials.leftovers() == []
        assert bundle.read(trials.paths.trials / trial.id)[0] == trial
        if moment:
            figures["ended after"] = f"{trials.took_s:.1f} s"
        return trial

    return attempt


@EACH_ENGINE
@pytest.mark.keeps("killed-node-is-reported")
def test_a_killed_server_makes_a_trial_invalid(attempt: Try, engine: EngineName) -> None:
    trial = attempt(deploy_cassandra(engine), Moment.MEASUREMENT, kill("node-1"))
    assert trial.status is INVALID, trial.reasons
    assert [one.kind for one in trial.reasons] == ["node-died"], trial.reasons


@EACH_ENGINE
@pytest.mark.keeps("paused-node-is-reported")
def test_a_server_that_stands_still_for_ever_is_reported(attempt: Try, engine: EngineName) -> None:
    deployment = deploy_cassandra(engine, seconds=6.0, limits={"connect_s": 30.0})
    trial = attempt(deployment, Moment.MEASUREMENT, pause("node-1"))
    assert trial.status is INVALID, trial.reasons
    assert {one.kind for one in trial.reasons} & {"errors-above-limit", "nothing-completed"}
    assert " timeouts" in trial.reasons[0].text, trial.reasons


@EACH_ENGINE
@pytest.mark.alone
@pytest.mark.keeps("paused-node-is-reported")
def test_a_second_without_answers_is_in_the_response_times(
    attempt: Try, paths: DataPaths, engine: EngineName
) -> None:
    trial = attempt(deploy_cassandra(engine), Moment.MEASUREMENT, pause("node-1", 1.0))
    assert trial.status is COMPLETED, trial.reasons
    _, intervals = bundle.read(paths.trials / trial.id)
    times = merge(one for one in intervals if (one.kind, one.iteration) == (RESPONSE_TIME.name, 1))
    assert 0.9 <= times.get_max_value() / 1e6 < 2.9


@pytest.mark.keeps("broken-server-is-reported")
@pytest.mark.parametrize(
    ("settings", "limits", "text"),
    [
        (
            {"no_such_option": 1},
            {},
            "Please remove properties [no_such_option] from your cassandra.yaml",
        ),
        ({}, {"start_s": 0.5}, "not within 0.5 s: port 9042 is not open yet"),
    ],
    ids=["bad-option", "too-slow"],
)
def test_a_server_that_does_not_come_up_is_reported(
    attempt: Try, settings: Mapping[str, Any], limits: Mapping[str, float], text: str
) -> None:
    trial = attempt(deploy_cassandra(settings=settings, limits=limits))
    assert trial.status is FAILED
    assert [one.kind for one in trial.reasons] == ["start-failed"], trial.reasons
    assert text in trial.reasons[0].text


@pytest.mark.keeps("wrong-release-is-refused")
def test_another_release_is_never_measured(attempt: Try, trials: Disturbed) -> None:
    true = trials.release
    trials.release = releases.find_release(registry.load("cassandra"), "5.0.8")
    try:
        trial = attempt(deploy_cassandra())
    finally:
        trials.release = true
    assert trial.status is FAILED
    assert [one.kind for one in trial.reasons] == ["version-failed"], trial.reasons
    assert "runs 5.0.9, but 5.0.8 was to be measured" in trial.reasons[0].text
    assert trial.counters == ()


@EACH_ENGINE
@pytest.mark.keeps("full-disk-is-reported")
def test_a_server_whose_disk_fills_up_is_reported(
    attempt: Try, paths: DataPaths, engine: EngineName
) -> None:
    """Its disk has room for a start and for a part of the rows that are loaded."""
    deployment = deploy_cassandra(engine, rows_per_device=150)
    records = replace(deployment.workload.records, payload_bytes=100_000)
    deployment = replace(deployment, workload=replace(deployment.workload, records=records))
    with small_disk(paths.run / "cassandra", "200m"):
        trial = attempt(deployment)
    assert trial.status in {INVALID, FAILED}
    assert trial.reasons[0].kind in {"engine-failed", "node-died"}, trial.reasons
    assert trial.reasons[-1].kind == "disk-full", trial.reasons
    assert str(paths.run / "cassandra") in trial.reasons[-1].text
