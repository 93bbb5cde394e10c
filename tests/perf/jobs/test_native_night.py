"""A night with both engines on a real Cassandra: the same load, and series that never meet."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from needs import need_native

from perf.history.store import open_history
from perf.load.native_binary import sha256_of
from perf.local.paths import DataPaths
from perf.model.results import Purpose

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(1500)]

ROOT = Path(__file__).parents[3]
LIMITS = re.compile(r"(max_(?:foreign_cpu|steal|throttled)_share): .*")
BUSY = re.compile(r"(max_(?:lateness|client_cpu|client_wait)_share|max_iteration_spread): .*")
SUITE = """\
name: both-engines
description: The same load by both engines.
testbed: local
experiments:
"""
EXPERIMENT = """\
  - name: by-{engine}
    system: cassandra
    config: default
    topology: local-one
    workload: by-{engine}
    releases: ["5.0.9"]
"""
ENGINES = ("python", "native")


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    """Return our configuration with a workload for each engine; the testbed says native."""
    root = tmp_path / "configs"
    shutil.copytree(ROOT / "configs", root)
    for path in (root / "suites").glob("*.yaml"):
        path.unlink()
    shutil.rmtree(root / "reference")
    testbed = root / "testbeds/local.yaml"
    text = BUSY.sub(r"\1: 1000000.0", LIMITS.sub(r"\1: 1.0", testbed.read_text()))
    testbed.write_text(f"{text}\nengine: native\n")
    written = (root / "workloads/sensor-write-short.yaml").read_text()
    for engine, line in (("python", "engine: python\n"), ("native", "")):
        named = written.replace("name: sensor-write-short", f"name: by-{engine}", 1)
        (root / f"workloads/by-{engine}.yaml").write_text(named + line)
    experiments = "".join(EXPERIMENT.format(engine=engine) for engine in ENGINES)
    (root / "suites/both-engines.yaml").write_text(SUITE + experiments)
    return root


def test_both_engines_measure_and_are_told_apart(configs: Path, tmp_path: Path) -> None:
    built = need_native()
    paths = DataPaths(tmp_path / "var")
    command = [sys.executable, "-m", "perf.commands.main", "nightly", "--suite", "both-engines"]
    command += ["--configs", str(configs), "--data", str(paths.data)]
    night = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1200)
    assert night.returncode == 0, night.stdout + night.stderr
    trials = {
        trial["experiment"]: trial
        for path in paths.trials.glob("*/trial.json")
        for trial in [json.loads(path.read_text())["trial"]]
    }
    assert {name: trial["engine"] for name, trial in trials.items()} == {
        "by-python": "python",
        "by-native": "native",
    }
    assert [trial["reasons"] for trial in trials.values()] == [[], []]
    facts = {
        name: {fact["name"]: fact["value"] for fact in trial["environment_before"]}
        for name, trial in trials.items()
    }
    assert facts["by-native"]["knickload_sha256"] == sha256_of(built)
    assert "knickload_sha256" not in facts["by-python"]
    with open_history(paths.history, read_only=True) as history:
        keys = {one.key for one in history.observations(Purpose.SCHEDULED)}
    for engine in ENGINES:
        workloads = {key.workload.partition("@")[0] for key in keys if key.engine == engine}
        assert workloads == {f"by-{engine}"}
    page = next((paths.site / "trials").glob("*by-native*.html")).read_text()
    assert re.search(r"Load engine.{0,80}native", page, re.DOTALL)
