"""The command that `make lab-up` names: a whole night over SSH, on a ring of three hosts."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import HOSTS, ROOT, Lab
from .trials import BUSY, await_that

pytestmark = [pytest.mark.slow, pytest.mark.real, pytest.mark.timeout(1200)]


def shrink(configs: Path) -> None:
    """Leave of the suite one release, and of its workload some seconds."""
    suite = configs / "suites" / "lab.yaml"
    text, changes = re.subn(r"releases: .*", 'releases: ["5.0.9"]', suite.read_text())
    assert changes == 1
    assert "workload: sensor-write\n" in text
    suite.write_text(text.replace("workload: sensor-write\n", "workload: sensor-write-short\n"))
    testbed = configs / "testbeds" / "lab.yaml"
    testbed.write_text(BUSY.sub(r"\1: 1000000.0", testbed.read_text()))


def test_a_night_on_the_lab_ends_in_a_site(lab: Lab, tmp_path: Path) -> None:
    configs, data = tmp_path / "configs", tmp_path / "var"
    shutil.copytree(ROOT / "configs", configs)
    shrink(configs)
    command = [sys.executable, "-m", "perf.commands.main", "nightly", "--suite", "lab"]
    command += ["--configs", str(configs), "--data", str(data)]
    # The testbed names its SSH configuration from the tree's root on.
    night = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
    assert night.returncode == 0, night.stdout + night.stderr
    (bundle,) = data.glob("trials/*/trial.json")
    trial = json.loads(bundle.read_text())["trial"]
    assert trial["status"] == "completed", trial["reasons"]
    assert trial["release"]["version"] == "5.0.9"
    facts = trial["environment_before"]
    tuned = {fact["host"]: fact["value"] for fact in facts if fact["name"] == "tuning"}
    assert {host: mark.partition("@")[0] for host, mark in tuned.items()} == {
        "db-1": "cassandra",
        "db-2": "cassandra",
        "db-3": "cassandra",
        "load-1": "client",
    }
    described = {fact["host"] for fact in facts if fact["name"] == "kernel"}
    assert described >= set(HOSTS[:4])
    assert (data / "site" / "index.html").is_file()
    (page,) = (data / "site" / "night").glob("*")
    assert "5.0.9" in page.read_text()
    await_that(lambda: not any(lab.ours().values()), 10, "nothing is left on the hosts")
