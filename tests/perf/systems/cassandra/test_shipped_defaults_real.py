"""Two archives of Cassandra that differ in the JVM options they ship: in effect, listed, judged.

The code of both is that of the same libraries, so what differs between them is what they ship.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from shipped_conf import write_conf

from perf.local.paths import DataPaths, cache_dir
from perf.releases.artifacts import fetch, find_release
from perf.systems import registry

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(1500)]

ROOT = Path(__file__).parents[4]
ADDRESS = "127.0.0.66"  # which no other test has
# How busy the machine is beside the tests is not what they are about.
LIMITS = re.compile(r"(max_(?:foreign_cpu|steal|throttled)_share): .*")
BUSY = re.compile(r"(max_(?:lateness|client_cpu|client_wait)_share|max_iteration_spread): .*")
SOURCE = """\
name: drop
description: Where the archives of this test lie.
system: cassandra
kind: directory
path: {path}
line: 5.0-dev
"""
BUILDS = {
    "before": {"commit": "a" * 40, "time": "2026-03-01T10:00:00+00:00"},
    "after": {"commit": "b" * 40, "time": "2026-04-01T10:00:00+00:00"},
}
VERSIONS = {"before": "20260301.1000.aaaaaaaaaa", "after": "20260401.1000.bbbbbbbbbb"}
SHIPPED = {"before": "-XX:+UseG1GC", "after": "-XX:+UseSerialGC\n-Xmn2M"}


def pack(folder: Path, name: str, work_dir: Path) -> None:
    """Make an archive of the libraries of 5.0.9 and a conf/, and say which commit it is of."""
    cassandra = registry.load("cassandra")
    libraries = fetch(cassandra, find_release(cassandra, "5.0.9"), report=print).location
    write_conf(work_dir / name, collector=SHIPPED[name])
    with tarfile.open(folder / f"{name}.tar", "w", dereference=True) as archive:
        archive.add(Path(libraries, "lib"), f"{name}/lib")
        archive.add(work_dir / name / "conf", f"{name}/conf")
    (folder / f"{name}.json").write_text(json.dumps(BUILDS[name]))


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    """Return our configuration, with both archives in a directory that is its only source."""
    root = tmp_path / "configs"
    shutil.copytree(ROOT / "configs", root)
    shutil.rmtree(root / "sources")
    (root / "sources").mkdir()
    testbed = root / "testbeds/local.yaml"
    text = testbed.read_text().replace("127.0.0.1", ADDRESS)
    testbed.write_text(BUSY.sub(r"\1: 1000000.0", LIMITS.sub(r"\1: 1.0", text)))
    folder = tmp_path / "drop"
    folder.mkdir()
    (root / "sources/drop.yaml").write_text(SOURCE.format(path=folder))
    for name in SHIPPED:
        pack(folder, name, tmp_path / "packed")
    return root


def test_jvm_options_that_two_archives_ship_are_in_effect_listed_and_judged(
    configs: Path, tmp_path: Path
) -> None:
    paths, written = DataPaths(tmp_path / "var"), tmp_path / "result.json"
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "java").symlink_to(cache_dir() / "java")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "perf.commands.main", *arguments]
        command += ["--configs", str(configs), "--data", str(paths.data)]
        return subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "KNICKPOINT_CACHE": str(cache)},
            capture_output=True,
            text=True,
            check=False,
            timeout=1400,
        )

    refreshed = run("releases", "--refresh")
    assert refreshed.returncode == 0, refreshed.stderr
    sides = [f"--baseline={VERSIONS['before']}", f"--candidate={VERSIONS['after']}"]
    asked = ["--suite=single", "--experiment=cassandra-single-write", *sides, "--trials=4"]
    compared = run("compare", *asked, f"--output={written}")
    assert written.exists(), compared.stdout + compared.stderr
    (result,) = json.loads(written.read_text())["comparisons"]
    assert [(one["path"], one["before"], one["after"]) for one in result["defaults"]] == [
        ("jvm*-server.options: -XX:+UseG1GC", "true", ""),
        ("jvm*-server.options: -XX:+UseSerialGC", "", "true"),
        ("jvm*-server.options: -Xmn2M", "", "true"),
    ]
    for path in paths.trials.glob("*/trial.json"):
        trial = json.loads(path.read_text())["trial"]
        name = "before" if trial["release"]["version"] == VERSIONS["before"] else "after"
        log = (path.parent / "logs/node-1-system.log").read_text()
        (said,) = re.findall(r"JVM Arguments: \[(.*)\]", log)
        assert {*SHIPPED[name].split(), "-Xss256k"} <= set(said.split(", "))
        facts = {fact["name"]: fact["value"] for fact in trial["environment_before"]}
        assert facts["defaults"] == "the release's own conf/"
        assert "forced:listen_address" in facts
    # A machine that others use as well may leave it undecided; what they do is not asked here.
    assert result["outcome"] != "invalid", result["reason"]
