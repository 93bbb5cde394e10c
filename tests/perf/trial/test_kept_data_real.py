"""Trials of a real Cassandra that start from kept files: a later release, and after planted damage."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from origin import WIDE, replace

from perf.local.paths import DataPaths

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[3]
ADDRESS = "127.0.0.74"  # which no other test has
SHORT = {
    "warmup_cap_s: 6": "warmup_cap_s: 2",
    "iteration_s: 5": "iteration_s: 1",
    "iterations: 3": "iterations: 1",
}


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    root = tmp_path / "configs"
    shutil.copytree(ROOT / "configs", root)
    replace(root / "testbeds/local.yaml", {"127.0.0.1": ADDRESS, **WIDE})
    replace(root / "workloads/sensor-read.yaml", SHORT)
    kept = {"cassandra-single-write": "kept", "sensor-write-short": "sensor-read-kept"}
    replace(root / "suites/single.yaml", kept)
    return root


def measure(configs: Path, paths: DataPaths, version: str) -> dict[str, Any]:
    """Measure a trial of a release; return what its bundle holds."""
    before = set(paths.trials.glob("*"))
    command = [sys.executable, "-m", "perf.commands.main", "measure", "--suite", "single"]
    command += ["--experiment", "kept", "--release", version]
    command += ["--configs", str(configs), "--data", str(paths.data)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    (bundle,) = set(paths.trials.glob("*")) - before
    trial: dict[str, Any] = json.loads((bundle / "trial.json").read_text())["trial"]
    assert trial["status"] == "completed", trial["reasons"]
    return trial


def spent(trial: dict[str, Any]) -> dict[str, float]:
    return {one["operation"]: one["value"] for one in trial["samples"] if one["metric"] == "time_spent"}


def data_set(trial: dict[str, Any]) -> str:
    facts = [one for one in trial["environment_before"] if one["name"] == "dataset"]
    assert facts == [one for one in trial["environment_after"] if one["name"] == "dataset"]
    (fact,) = facts
    return str(fact["value"])


def test_the_second_trial_starts_from_what_the_first_one_stored(configs: Path, tmp_path: Path) -> None:
    paths = DataPaths(tmp_path / "var")
    maker = measure(configs, paths, "5.0.0")
    assert "made by 5.0.0 on" in data_set(maker)
    (files,) = paths.run.glob("kept/cassandra/node-1/*/files")
    tables = sorted(files.glob("data/knickpoint/*/*-Data.db"))
    assert tables
    before = {path: (path.stat().st_ino, path.stat().st_size) for path in tables}

    user = measure(configs, paths, "5.0.9")
    assert data_set(user) == data_set(maker)
    assert "keep" in spent(maker)
    assert "keep" not in spent(user)
    assert spent(user)["load"] < spent(maker)["load"]
    assert {path: (path.stat().st_ino, path.stat().st_size) for path in tables} == before

    # Both read the same rows; none of them lacked one, or differed.
    for trial in (maker, user):
        asked = sum(one["value"] for one in trial["counters"] if one["name"] == "attempted")
        right = sum(one["value"] for one in trial["counters"] if one["name"] == "completed")
        assert asked == right > 0

    tables[0].unlink()
    again = measure(configs, paths, "5.0.9")
    assert "made by 5.0.9 on" in data_set(again)
    assert "keep" in spent(again)
