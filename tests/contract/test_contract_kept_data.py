"""MongoDB's kept data sets: whole trials against an emulator that has a file, and is no MongoDB."""

import hashlib
import io
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from made_up_release import artifact_of
from served import ADDRESS, find_free_port

from perf.config.catalog import load_catalog
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.design import Deployment, SystemConfig
from perf.model.facts import find_dataset
from perf.model.results import Artifact, Purpose, Release, Trial, TrialId, TrialStatus
from perf.systems.mongodb.system import MongoDB
from perf.trial import harness
from perf.trial.harness import Order, run_trial

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
RELEASE = Release(system="mongodb", version="4.4.0", line="4.4", ordinal=0)


@pytest.fixture
def artifact(mongo_program: tuple[str, ...], tmp_path: Path) -> Artifact:
    """Return a release whose `mongod` is the emulator, with the address and the files of its config."""
    program = tmp_path / "release/bin/mongod"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"""#!{sys.executable}
import os, sys
from ruamel.yaml import YAML
with open(sys.argv[sys.argv.index("--config") + 1]) as file:
    said = YAML(typ="safe", pure=True).load(file)
where = [said["net"]["bindIp"], str(said["net"]["port"]), said["storage"]["dbPath"] + "/rows"]
command = {list(mongo_program)!r}
os.execv(command[0], [*command, *where])
"""
    )
    program.chmod(0o755)
    return artifact_of(tmp_path / "release")


@pytest.fixture
def deployment() -> Deployment:
    catalog = load_catalog(CONFIGS)
    suite = catalog.suite("fake-short")
    found = catalog.resolve(suite, suite.experiments[0])
    hosts = tuple(replace(one, address=ADDRESS) for one in found.testbed.hosts)
    return replace(
        found,
        workload=replace(catalog.workloads["tiny-read"], dataset="kept"),
        topology=replace(found.topology, servers=1, replication_factor=1),
        testbed=replace(found.testbed, hosts=hosts),
        config=SystemConfig(system="mongodb", name="default", description="all defaults"),
    )


def parts(trial: Trial) -> set[str]:
    return {one.operation for one in trial.samples if one.metric == "time_spent"}


def sums(paths: DataPaths) -> Mapping[Path, str]:
    files = sorted(one for one in paths.run.glob("kept/mongodb/node-1/*/files/data/*"))
    return {one: hashlib.sha256(one.read_bytes()).hexdigest() for one in files}


@pytest.mark.slow
def test_later_trials_start_from_what_the_first_one_stored(
    artifact: Artifact,
    deployment: Deployment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(harness, "run_canary", lambda *_: ())
    system, paths = MongoDB(find_free_port()), DataPaths(tmp_path)

    def measure(number: int, deployment: Deployment) -> Trial:
        order = Order(
            trial=TrialId(f"n.0{number}.kept.1.0.0"),
            night="n",
            purpose=Purpose.SCHEDULED,
            deployment=deployment,
            release=RELEASE,
            artifact=artifact,
        )
        trial = run_trial(order, system, paths, Progress(io.StringIO()))
        assert trial.status is TrialStatus.COMPLETED, trial.reasons
        return trial

    maker = measure(1, deployment)
    kept = sums(paths)
    assert kept
    # A larger cache reads the same files.
    cached = {"storage": {"wiredTiger": {"engineConfig": {"cacheSizeGB": 2}}}}
    config = replace(deployment.config, name="large", settings=cached)
    user = measure(2, replace(deployment, config=config))
    assert parts(maker) - parts(user) == {"keep"}
    assert find_dataset(user) == find_dataset(maker)
    assert "made by 4.4.0 with default on" in str(find_dataset(maker))
    assert sums(paths) == kept
    reads = [one.value for one in user.samples if one.metric == "throughput"]
    assert reads
    assert min(reads) > 0

    for path in kept:
        path.unlink()
    assert "keep" in parts(measure(3, deployment))
