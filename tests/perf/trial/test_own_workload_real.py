"""A workload of one's own on a real Cassandra: tried, then measured."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from catalogs import shipped
from needs import need_native
from origin import WIDE, replace

from perf.load.native_binary import SETTING, sha256_of
from perf.local.paths import DataPaths

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[3]
ADDRESS = "127.0.0.68"  # which no other test has
MISSES = {"not_found", "wrong_data"}


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    root = tmp_path / "configs"
    shutil.copytree(ROOT / "configs", root)
    replace(root / "testbeds/local.yaml", {"127.0.0.1": ADDRESS, **WIDE})
    return root


def run(configs: Path, paths: DataPaths, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "perf.commands.main", *arguments]
    command += ["--configs", str(configs), "--data", str(paths.data)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=400)


def test_a_workload_of_ones_own_is_tried_and_measured(configs: Path, tmp_path: Path) -> None:
    paths = DataPaths(tmp_path / "var")
    tried = run(configs, paths, "workloads", "try", "own-index", "--release", "5.0.9")
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert (tried.stdout.count("✓"), tried.stdout.count("✗")) == (20, 0)

    asked = ("--suite", "own-workloads", "--experiment", "own-index", "--release", "5.0.9")
    measured = run(configs, paths, "measure", *asked)
    assert measured.returncode == 0, measured.stdout + measured.stderr
    (path,) = paths.trials.glob("*/trial.json")
    trial = json.loads(path.read_text())["trial"]
    assert trial["status"] == "completed", trial["reasons"]
    throughput = {
        (one["phase"], one["operation"]): one["value"]
        for one in trial["samples"]
        if one["metric"] == "throughput" and one["iteration"] is None
    }
    of_steady = {name: value for (phase, name), value in throughput.items() if phase == "steady"}
    assert of_steady.keys() == {"all", "find-by-email", "add-customer"}
    assert of_steady["find-by-email"] / of_steady["all"] == pytest.approx(0.9, abs=0.05)

    # What is expected of the answers is wrong now, so that they are.
    workload = configs / "workloads/own-index.yaml"
    replace(workload, {"columns: {id: id, city: city}": "columns: {id: id, city: email}"})
    tried = run(configs, paths, "workloads", "try", "own-index", "--release", "5.0.9")
    assert tried.returncode == 3, tried.stdout + tried.stderr
    assert tried.stdout.count("✗ ") == tried.stdout.count("wrong_data: 1 row") == 10


def test_the_native_engine_measures_it_as_well(
    configs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "own-index"  # the contract suite has both engines send the others
    native = need_native()
    monkeypatch.setenv(SETTING, str(native))
    with (configs / f"workloads/{name}.yaml").open("a") as opened:
        opened.write("engine: native\n")
    paths = DataPaths(tmp_path / "var")
    asked = ("--suite", "own-workloads", "--experiment", name, "--release", "5.0.9")
    measured = run(configs, paths, "measure", *asked)
    assert measured.returncode == 0, measured.stdout + measured.stderr
    (path,) = paths.trials.glob("*/trial.json")
    trial = json.loads(path.read_text())["trial"]
    assert trial["status"] == "completed", trial["reasons"]
    digests = {one["value"] for one in trial["environment_before"] if one["name"] == "knickload_sha256"}
    assert digests == {sha256_of(native)}
    counts: Counter[tuple[str, str]] = Counter()
    for one in trial["counters"]:
        counts[one["operation"], one["name"]] += one["value"]
    asked_for = {operation for operation, kind in counts if kind == "attempted"}
    assert asked_for == set(shipped().workloads[name].mix)
    assert all(counts[operation, "completed"] > 0 for operation in asked_for), counts
    bad = {key for key in counts if key[1] in MISSES or key[1].startswith("error:")}
    assert sum(counts[key] for key in bad) == 0, counts
