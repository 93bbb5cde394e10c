"""Which engine offers the load: where it is said, what it changes, and what cannot have it."""

import io
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from catalogs import shipped

from perf.commands.workloads import describe_workload
from perf.config.catalog import Catalog, find_experiment_of, load_catalog
from perf.config.difference import compare_catalogs
from perf.jobs.feasible import FASTEST_PER_S, check_load_time
from perf.load.native_binary import SETTING, sha256_of
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.design import Deployment
from perf.model.errors import ConfigError, HostUnfit, UsageError
from perf.model.identity import content_hash, named
from perf.model.results import Artifact, Purpose, SeriesKey, Source, Trial, TrialId, TrialStatus
from perf.systems.fake import system as fake
from perf.trial.harness import Order, run_trial

pytestmark = pytest.mark.usefixtures("fake_ports")

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
SHIPPED = Path(__file__).parents[3] / "configs"
TESTBED, WORKLOAD = "testbeds/loop.yaml", "workloads/blink.yaml"
Say = Callable[[str, str], Catalog]

RACKS = {"example-rack", "storage-hdd", "storage-1ssd", "storage-2ssd"}
"""Classes of testbeds, whose clients would be the limit else."""


@pytest.fixture
def say(tmp_path: Path) -> Say:
    """Return `say(file, line)`: the tests' configuration with one more line in a file."""
    root = tmp_path / "configs"
    shutil.copytree(CONFIGS, root)

    def say(file: str, line: str) -> Catalog:
        with (root / file).open("a") as opened:
            opened.write(f"{line}\n")
        return load_catalog(root)

    return say


def resolve(catalog: Catalog, name: str = "fake-blink") -> Deployment:
    return next(
        catalog.resolve(suite, experiment)
        for suite in catalog.suites.values()
        for experiment in suite.experiments
        if experiment.name == name
    )


@pytest.fixture
def deployment() -> Deployment:
    return resolve(load_catalog(CONFIGS))


def test_python_is_what_offers_the_load_where_nothing_else_is_said() -> None:
    catalog = shipped()
    resolved = [
        catalog.resolve(suite, experiment)
        for suite in catalog.suites.values()
        for experiment in suite.experiments
    ]
    unsaid = [one for one in resolved if not (one.testbed.engine or one.workload.engine)]
    assert unsaid
    assert {one.engine for one in unsaid} == {"python"}


def test_racks_have_the_native_engine() -> None:
    testbeds = shipped().testbeds.values()
    assert {one.name for one in testbeds if one.testbed_class in RACKS} == {
        one.name for one in testbeds if one.engine == "native"
    }


@pytest.mark.parametrize(
    ("of_testbed", "of_workload", "engine"),
    [
        (None, None, "python"),
        ("python", None, "python"),
        ("native", None, "native"),
        (None, "native", "native"),
        ("python", "native", "native"),
        ("native", "python", "python"),
    ],
)
def test_the_workload_decides_before_the_testbed(
    deployment: Deployment, of_testbed: str, of_workload: str, engine: str
) -> None:
    chosen = replace(
        deployment,
        testbed=replace(deployment.testbed, engine=of_testbed),  # type: ignore[arg-type]
        workload=replace(deployment.workload, engine=of_workload),  # type: ignore[arg-type]
    )
    assert chosen.engine == engine


def test_equal_hashes_mean_the_same_engine(deployment: Deployment) -> None:
    testbed, workload = deployment.testbed, deployment.workload
    assert content_hash(replace(testbed, engine="python")) == content_hash(testbed)
    assert content_hash(replace(testbed, engine="native")) != content_hash(testbed)
    # On a testbed that says native, this one is another engine than an absent one.
    hashes = {content_hash(replace(workload, engine=one)) for one in (None, "python", "native")}
    assert len(hashes) == 3


@pytest.mark.parametrize(("file", "source"), [(TESTBED, "testbed loop"), (WORKLOAD, "workload blink")])
def test_a_system_that_the_native_engine_cannot_ask_is_refused(
    say: Say, file: str, source: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        say(file, "engine: native")
    reported = [problem for problem in caught.value.problems if "fake-short.yaml" in problem]
    assert len(reported) == 1
    assert "fake-short.yaml" in reported[0]
    assert f'experiments[0].system is "fake", which the engine native of {source}' in reported[0]
    assert "cannot ask for records of kind sensor (it can: cassandra, mongodb, scylladb)" in reported[0]
    assert "say `engine: python` in the workload" in reported[0]


@pytest.mark.parametrize("system", ["null", "cratedb"])
def test_so_are_the_other_systems_without_a_native_client(tmp_path: Path, system: str) -> None:
    root = tmp_path / "configs"
    shutil.copytree(CONFIGS, root)
    suite = root / "suites/fake-short.yaml"
    release = "1.0" if system == "null" else "6.0.5"
    text = suite.read_text().replace("system: fake", f'system: "{system}"')
    suite.write_text(text.replace('["1.0.0", "1.0.1"]', f'["{release}"]'))
    (root / "systems" / system).mkdir()
    (root / "systems" / system / "default.yaml").write_text(
        f'system: "{system}"\nname: default\ndescription: As it comes.\n'
    )
    with (root / WORKLOAD).open("a") as opened:
        opened.write("engine: native\n")
    with pytest.raises(ConfigError, match=rf'experiments\[0\].system is "{system}", which the engine'):
        load_catalog(root)


def test_the_native_engine_sends_statements_in_cql_and_no_commands(tmp_path: Path) -> None:
    root = tmp_path / "configs"
    shutil.copytree(SHIPPED, root)
    for workload in ("own-index", "own-lightweight", "own-expiring", "own-documents"):
        with (root / f"workloads/{workload}.yaml").open("a") as opened:
            opened.write("engine: native\n")
    catalog = load_catalog(root)
    engines = [
        catalog.resolve(catalog.suites["own-workloads"], experiment).engine
        for experiment in catalog.suites["own-workloads"].experiments
    ]
    assert engines == ["native", "native", "native"]

    text = (root / "suites/own-workloads.yaml").read_text().split("  - name: own-lightweight")[0]
    text = text.replace("name: own-workloads", "name: commands").replace("own-index", "own-documents")
    text = text.replace("cassandra", "mongodb").replace('"5.0.9"', '"8.0.0"')
    (root / "suites/commands.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_catalog(root)
    (problem,) = caught.value.problems
    assert "which the engine native of workload own-documents cannot ask for records of kind" in problem
    assert "statements in mongodb (it can: no system); say `engine: python` in the workload" in problem


def test_a_workload_that_says_python_may_run_on_a_native_testbed(say: Say, tmp_path: Path) -> None:
    for workload in ("tiny-read", "tiny-write", "blink"):
        with (tmp_path / f"configs/workloads/{workload}.yaml").open("a") as opened:
            opened.write("engine: python\n")
    assert resolve(say(TESTBED, "engine: native")).engine == "python"


def test_an_engine_that_there_is_not_is_refused_with_those_that_there_are(say: Say) -> None:
    with pytest.raises(ConfigError, match=r'loop.yaml.*engine is "nativ"; did you mean native\?'):
        say(TESTBED, "engine: nativ")


def test_the_workloads_command_says_which_engine_a_workload_asks_for(deployment: Deployment) -> None:
    asked = replace(deployment.workload, engine="native")
    assert "\n  engine             native\n" in describe_workload(asked, ())
    assert "\n  engine " not in describe_workload(deployment.workload, ())


def test_another_engine_at_head_does_not_compare_with_base(say: Say) -> None:
    head = say(WORKLOAD, "engine: python")
    found = compare_catalogs(load_catalog(CONFIGS), head, testbed="loop")
    (touched,) = found.touched
    assert touched.experiment == "fake-blink"
    assert "its workload blink (engine) differs: its numbers begin a new series" in touched.why_not


def test_a_series_is_measured_by_its_own_engine_alone(deployment: Deployment) -> None:
    catalog = load_catalog(CONFIGS)
    workload = named(deployment.workload)
    key = SeriesKey(
        system="fake",
        line="1.0",
        topology=deployment.topology.name,
        testbed_class=deployment.testbed.testbed_class,
        config=deployment.config.name,
        workload=f"{workload.name}@{workload.sha256}",
        engine="python",
        phase="steady",
        operation="write",
        metric="throughput",
        statistic="mean",
    )
    suite = catalog.suite("fake-short")
    assert find_experiment_of(catalog, suite, key) == suite.experiments[0]
    assert find_experiment_of(catalog, suite, replace(key, engine="native")) is None


def test_a_faster_engine_is_given_more_rows_to_store(deployment: Deployment) -> None:
    limits = replace(deployment.testbed.limits, load_s=10.0)
    records = replace(deployment.workload.records, devices=1)
    rows = FASTEST_PER_S["python"] * 20
    workload = replace(deployment.workload, records=records, preload_rows_per_device=rows)
    slow = replace(deployment, workload=workload, testbed=replace(deployment.testbed, limits=limits))
    with pytest.raises(UsageError, match="even at 100,000 per second"):
        check_load_time(slow)
    check_load_time(replace(slow, workload=replace(workload, engine="native")))


def measure(deployment: Deployment, data: Path) -> Trial:
    order = Order(
        trial=TrialId("n.01.fake.1.0.0"),
        night="n",
        purpose=Purpose.SCHEDULED,
        deployment=deployment,
        release=fake.SYSTEM.releases()[0],
        artifact=Artifact(source=Source.BUILTIN, sha256=""),
    )
    return run_trial(order, fake.Fake(), DataPaths(data), Progress(io.StringIO()))


@pytest.fixture
def native(deployment: Deployment) -> Deployment:
    """Return a deployment that is measured by what stands in for the native engine."""
    return replace(deployment, workload=replace(deployment.workload, engine="native"))


@pytest.mark.slow
def test_a_trial_shows_its_engine_and_the_digest_of_its_program(
    native: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The contract is the same, so the Python engine can stand in; it says that it was this program.
    program = tmp_path / "knickload"
    program.write_text(
        f'#!/bin/sh\necho "as told: $1" >>{tmp_path}/calls\n'
        f'exec {sys.executable} -m perf.load.engine.process "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv(SETTING, str(program))
    trial = measure(native, tmp_path / "data")
    assert trial.status is TrialStatus.COMPLETED, trial.reasons
    assert trial.engine == "native"
    assert "/engines/0/spec.json" in (tmp_path / "calls").read_text()
    for facts in (trial.environment_before, trial.environment_after):
        named = {fact.name: fact.value for fact in facts}
        assert named["knickload_sha256"] == sha256_of(program)
        assert not any(name.startswith("version:") for name in named)


def test_without_the_program_nothing_is_started(
    native: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SETTING, raising=False)
    monkeypatch.setenv("KNICKPOINT_CACHE", str(tmp_path / "cache"))
    with pytest.raises(HostUnfit, match=r"not built from these sources.*say: make native"):
        measure(native, tmp_path / "data")
    assert not list(tmp_path.glob("data/trials/*"))
