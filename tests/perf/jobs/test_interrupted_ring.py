"""A night on real rings, interrupted in the middle: nothing is left running, lost or doubled."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from budget import cases

from perf.systems import registry

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(1200)]
ROOT = Path(__file__).parents[3]
SUITE = """\
name: short
description: Two releases on a ring of three, as briefly as possible.
testbed: local
experiments:
  - name: short-write
    system: cassandra
    config: default
    topology: local-three
    workload: short-write
    releases: ["5.0.0", "5.0.9"]
"""
WORKLOAD = """\
name: short-write
description: A few seconds of writes.
owner: tests
source: made up for tests
purpose: It tests what becomes of an interrupted night.
not_comparable: Anything.
records: {kind: sensor, devices: 50, payload_bytes: 1024}
operation: write
consistency: quorum
preload_rows_per_device: 1
preload_in_flight: 8
operation_timeout_s: 10
measurements:
  - name: saturation
    load: {kind: closed, in_flight: 8}
    warmup_s: 1
    warmup_cap_s: 1
    iteration_s: 5
    iterations: 2
seed: 1
"""


def wait_until(condition: Callable[[], bool], limit_s: float, what: str) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"not within {limit_s:g} s: {what}"
        time.sleep(0.2)


def nothing_listens() -> bool:
    ports = registry.load("cassandra").ports()
    for address in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
        for port in ports:
            with socket.socket() as probe:
                if probe.connect_ex((address, port)) == 0:
                    return False
    return True


@pytest.mark.parametrize("how", cases([signal.SIGINT, signal.SIGKILL], [signal.SIGKILL]))
def test_a_night_is_resumed_after(how: signal.Signals, tmp_path: Path) -> None:
    configs, data = tmp_path / "configs", tmp_path / "var"
    shutil.copytree(ROOT / "configs", configs)
    (configs / "suites" / "short.yaml").write_text(SUITE)
    (configs / "workloads" / "short-write.yaml").write_text(WORKLOAD)
    command = [sys.executable, "-m", "perf.commands.main", "nightly", "--suite", "short"]
    command += ["--configs", str(configs), "--data", str(data)]
    log = tmp_path / "night.log"
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as first:
        wait_until(
            lambda: log.read_text().count("saturation: write") == 2 or first.poll() is not None,
            420,
            "the second trial is under load",
        )
        assert first.poll() is None, log.read_text()
        os.kill(first.pid, how)
        assert first.wait(90) == (130 if how is signal.SIGINT else -signal.SIGKILL)
    wait_until(nothing_listens, 10, "all servers are gone")
    (finished,) = data.glob("trials/[0-9]*")
    before = (finished / "trial.json").read_bytes()

    second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert second.returncode == 0, second.stderr
    assert "resumed, 1 of 2 trials are done" in second.stderr
    assert nothing_listens()
    assert (finished / "trial.json").read_bytes() == before
    assert len(list(data.glob("trials/[0-9]*"))) == 2
    with duckdb.connect(str(data / "history.duckdb"), read_only=True) as history:
        rows = history.execute(
            "SELECT version, count(*) FROM trials GROUP BY ALL ORDER BY 1"
        ).fetchall()
    assert rows == [("5.0.0", 1), ("5.0.9", 1)]
    (night,) = (data / "site" / "night").iterdir()
    assert "5.0.0" in night.read_text()
    assert "5.0.9" in night.read_text()
