"""A real bisection of the fake system with a planted handicap: killed in the middle, and resumed."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perf.history import bundle
from perf.local.paths import DataPaths
from perf.model.results import Purpose

ROOT = Path(__file__).parents[2]
PLANTED_FROM = "2.0.2"
LIMIT_S = 240


def command(paths: DataPaths, output: Path) -> list[str]:
    planting = ["--from", PLANTED_FROM, "--settings", '{"service_time_ms": 6}', "--"]
    asked = ["fake", "2.0.0..2.0.3", "--suite", "fake-short", "--experiment", "fake-blink"]
    where = ["--data", str(paths.data), "--configs", str(ROOT / "tests/data/configs")]
    wrapper = str(ROOT / "tests/planting/bisect_planted.py")
    rest = ["--metric", "throughput", *where, "--output", str(output)]
    return [sys.executable, wrapper, *planting, *asked, *rest]


@pytest.mark.slow
@pytest.mark.usefixtures("fake_ports")
def test_a_killed_bisection_goes_on_and_finds_the_secret_release(tmp_path: Path) -> None:
    paths, output = DataPaths(tmp_path / "var"), tmp_path / "bisection.json"
    killed = subprocess.Popen(command(paths, output), stderr=subprocess.DEVNULL)
    end = time.monotonic() + LIMIT_S
    # In the second probe: one is over, and the other has a trial that is whole.
    while len(list(paths.trials.glob("cmp-*-2.*"))) < 1:
        assert killed.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.wait(timeout=10)
    (saved,) = paths.bisections.glob("*/bisection.json")
    before = json.loads(saved.read_text())
    assert before["found"] is None
    assert len(before["probes"]) == 1
    digests = {path.name: bundle.digest(path) for path in bundle.find(paths)}

    again = subprocess.run(
        command(paths, output), capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert again.returncode == 1, again.stderr
    assert "resumed, 1 probe is done" in again.stderr
    assert f"came with {PLANTED_FROM}" in again.stdout.splitlines()[0]
    assert "a handicap was planted in this trial" in again.stdout
    record = json.loads(output.read_text())
    assert record["probes"][0] == before["probes"][0]
    measured = [trial["id"] for probe in record["probes"] for trial in probe["trials"]]
    found = {path.name: bundle.digest(path) for path in bundle.find(paths)}
    assert set(measured) == set(found)
    assert {name: found[name] for name in digests} == digests
    for path in bundle.find(paths):
        trial = bundle.read(path)[0]
        assert trial.purpose is Purpose.BISECTION
        is_planted = any(remark.kind == "planted" for remark in trial.remarks)
        assert is_planted == (trial.release.version >= PLANTED_FROM)
