"""Trials of a real Cassandra that start from kept files: a later release, and after planted damage."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from origin import WIDE, replace

from perf.commands.main import knickpoint
from perf.hosts.remote import SshHost
from perf.load.native_binary import sha256_of
from perf.local.paths import DataPaths
from perf.systems.contract import Node
from perf.trial.servers import Servers

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(1500)]

ROOT = Path(__file__).parents[3]
ADDRESS, FAR = "127.0.0.74", "127.0.0.75"  # which no other test has
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


@pytest.fixture
def far(configs: Path, sshd: SshHost, tmp_path: Path) -> Path:
    """Reach both hosts of the testbed over SSH, the server at an address of its own."""
    _, key, _, known_hosts = sshd.options
    config = tmp_path / "ssh_config"
    config.write_text(f"Host *\n  IdentityFile {key}\n  {known_hosts.replace('=', ' ', 1)}\n")
    hosts = "".join(
        f"  - {{name: {name}, role: {role}, address: {FAR}, user: {sshd.user}, port: {sshd.port}, "
        f"work_dir: {tmp_path}/far, python: {sys.executable}}}\n"
        for name, role in (("node-1", "server"), ("client", "client"))
    )
    path = configs / "testbeds/local.yaml"
    text = path.read_text().replace("transport: local", "transport: ssh")
    before, after = text.index("  - {name: node-1"), text.index("# One engine process")
    path.write_text(f"{text[:before]}{hosts}ssh_config: {config}\n{text[after:]}")
    for suite in (configs / "suites").glob("*.yaml"):
        if suite.stem != "single":
            suite.unlink()  # some need more hosts
    shutil.rmtree(configs / "reference")
    return configs


def measure(configs: Path, paths: DataPaths, version: str) -> dict[str, Any]:
    """Measure a trial of a release; return what its bundle holds."""
    before = set(paths.trials.glob("*"))
    command = [sys.executable, "-m", "perf.commands.main", "measure", "--suite", "single"]
    command += ["--experiment", "kept", "--release", version]
    command += ["--configs", str(configs), "--data", str(paths.data)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
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
    assert "made by 5.0.0 with default on" in data_set(maker)
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
    assert "made by 5.0.9 with default on" in data_set(again)
    assert "keep" in spent(again)


def test_both_sides_of_a_comparison_start_from_the_same_files(
    configs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, int | None, dict[str, str]]] = []
    start = Servers.start

    def look_and_start(servers: Servers) -> None:
        cluster = servers.cluster
        started.append((cluster.release.version, cluster.config.heap_mb, read_files(cluster.nodes[0])))
        start(servers)

    monkeypatch.setattr(Servers, "start", look_and_start)
    default = (configs / "systems/cassandra/default.yaml").read_text()
    assert "heap_mb: 512" in default
    (configs / "systems/cassandra/large.yaml").write_text(
        default.replace("name: default", "name: large").replace("heap_mb: 512", "heap_mb: 640")
        + "settings: {concurrent_reads: 16, key_cache_size: 0MiB, disk_access_mode: mmap_index_only}\n"
    )
    words = ["compare", "--suite", "single", "--experiment", "kept", "--trials", "4"]
    words += ["--baseline", "5.0.9/large", "--candidate", "5.0.0", "--configs", str(configs)]
    paths = DataPaths(tmp_path / "var")
    result = CliRunner().invoke(knickpoint, [*words, "--data", str(paths.data)])
    assert result.exit_code in {0, 1}, result.output
    (maker, compacting, first, *others) = started
    assert maker == ("5.0.0", 512, {})
    assert compacting[:2] == maker[:2]
    assert [one for one in first[2] if one.startswith("knickpoint/") and one.endswith("-Data.db")]
    assert len({version for version, _, _ in started}) == 2
    assert {heap for _, heap, _ in started} == {512, 640}
    assert len(others) >= 3
    assert [files for _, _, files in others] == [first[2]] * len(others)
    assert "different files" not in result.output


def test_hosts_over_ssh_start_from_the_files_that_they_kept(far: Path, tmp_path: Path) -> None:
    paths = DataPaths(tmp_path / "var")
    maker = measure(far, paths, "5.0.9")
    assert list((tmp_path / "far").glob("kept/cassandra/node-1/*/files/data/knickpoint/*/*-Data.db"))
    user = measure(far, paths, "5.0.9")
    assert data_set(user) == data_set(maker)
    assert "keep" in spent(maker)
    assert "keep" not in spent(user)


def read_files(node: Node) -> dict[str, str]:
    """Return the SHA-256 of each file of a node's data."""
    data = Path(node.work_dir) / "data"
    files = [path for path in data.rglob("*") if path.is_file()]
    return {str(path.relative_to(data)): sha256_of(path) for path in files}
