"""A load from two client hosts: one schedule, figures added up, clocks compared, one of them lost."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from budget import cases
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from needs import need_native

from .conftest import HOSTS, ROOT, Lab
from .test_faults import NOTICED_S, TRIAL_S, check_that_the_next_completes
from .trials import BUSY, Trials, await_that

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
OTHERS = ("db-1", "db-2", "db-3", "load-1")
OFFERED_PER_S, SECONDS = 60, 4
OPEN = f"""\
measurements:
  - name: steady
    load: {{kind: open, offered_load_ops_per_s: {OFFERED_PER_S}, in_flight: 16}}
    warmup_s: 1
    warmup_cap_s: 1
    iteration_s: {SECONDS}
    iterations: 1
seed: 7
"""
# A Python whose clock is ahead, for all that runs in it: the engine as well as what tells the time.
AHEAD_MS = 240
AHEAD = f"""\
import time
def ahead(tell, by):
    return lambda: tell() + by
time.time = ahead(time.time, {AHEAD_MS} / 1000)
time.time_ns = ahead(time.time_ns, {AHEAD_MS} * 1000000)
"""


@pytest.fixture
def trials(lab: Lab, tmp_path: Path) -> Iterator[Trials]:
    found = Trials(lab, tmp_path, clients=2)
    try:
        yield found
    finally:
        found.stop()
        lab.do("up")


def read_counts(path: Path) -> dict[str, Counter[int]]:
    """Return how often each value is in a log, by tag: with HdrHistogram's own reader."""
    found: dict[str, Counter[int]] = {}
    reader = HistogramLogReader(str(path), HdrHistogram(1, 3_600_000_000, 3))
    while (one := reader.get_next_interval_histogram()) is not None:
        counts = found.setdefault(one.get_tag(), Counter())
        for at in one.get_recorded_iterator():
            counts[at.value_iterated_to] += at.count_at_value_iterated_to
    reader.close()
    return found


def count(counters: list[dict[str, Any]], name: str) -> int:
    return sum(one["value"] for one in counters if one["name"] == name and one["iteration"] == 1)


def offsets(trial: dict[str, Any], environment: str) -> dict[str, float]:
    """Return the offset of the clock of each client host, as the facts of a trial have it."""
    return {
        fact["host"]: float(fact["value"].partition(" ")[0])
        for fact in trial[environment]
        if fact["name"] == "clock_offset_ms"
    }


def test_two_clients_share_a_schedule_and_their_figures_are_added_up(trials: Trials) -> None:
    workload = trials.directory / "configs/workloads/seconds.yaml"
    workload.write_text(workload.read_text().partition("measurements:")[0] + OPEN)
    trial = trials.end(trials.begin("seconds"), TRIAL_S, 0)
    assert trial["status"] == "completed", trial["reasons"]
    # What each engine wrote still lies on its host; the preload was read back in full.
    own = [ROOT / f"var/lab/hosts/load-{number + 1}/engines/{number}" for number in (0, 1)]
    each = [json.loads((path / "result.json").read_text())["counters"] for path in own]
    assert [count(counters, "attempted") for counters in each] == [OFFERED_PER_S * SECONDS // 2] * 2
    for name in ("attempted", "completed", "completed_in_window"):
        assert count(trial["counters"], name) == sum(count(counters, name) for counters in each)
    (bundle,) = (trials.directory / "var/trials").iterdir()
    merged = read_counts(bundle / "intervals.hlog")
    first, second = (read_counts(path / "intervals.hlog") for path in own)
    assert merged == {tag: first[tag] + second[tag] for tag in first.keys() | second.keys()}
    assert all(first[tag] and second[tag] for tag in merged)
    for environment in ("environment_before", "environment_after"):
        found = offsets(trial, environment)
        assert set(found) == {"load-1", "load-2"}
        assert abs(found["load-1"] - found["load-2"]) < 10, "the lab has one clock"


def kill_the_engine(lab: Lab) -> None:
    (pid,) = lab.ours("load-2")["load-2"]
    os.kill(pid, signal.SIGKILL)


def cut_it_off(lab: Lab) -> None:
    lab.do("cut", "load-2")


def take_its_power(lab: Lab) -> None:
    lab.do("off", "load-2")


LOSSES = [
    (kill_the_engine, "engine-failed"),
    (cut_it_off, "ssh-failed"),
    (take_its_power, "ssh-failed"),
]


@pytest.mark.parametrize(("lose", "kind"), cases(LOSSES, LOSSES[:2]))
def test_a_client_that_is_lost_fails_the_trial_and_ends_the_other(
    lab: Lab, trials: Trials, lose: Callable[[Lab], None], kind: str
) -> None:
    running = trials.measure()
    lose(lab)
    trial = trials.end(running, NOTICED_S, 3)
    assert trial["status"] == "failed"
    reason = trial["reasons"][0]
    assert reason["kind"] == kind
    assert "load-2" in reason["text"]
    assert reason["text"].endswith("(while saturation, iteration 1 was measured)"), reason["text"]
    assert not [one for one in trial["samples"] if one["metric"] == "throughput"]
    await_that(lambda: trials.is_clean_after(*OTHERS), 5, "the other engine is ended, and the servers")
    lab.do("up")
    check_that_the_next_completes(trials)


def test_a_night_goes_on_after_a_client_was_lost(lab: Lab, trials: Trials) -> None:
    suite = trials.directory / "configs/suites/faults.yaml"
    text, changes = re.subn(r"releases: .*", 'releases: ["1.0.0", "1.1.0"]', suite.read_text())
    assert changes == 2
    suite.write_text(text.partition("  - name: seconds")[0])
    running = trials.begin()
    log = trials.log
    await_that(lambda: "measure iteration 1" in log.read_text(), 400, "a load")
    kill_the_engine(lab)
    assert running.wait(2 * TRIAL_S) == 3, log.read_text()
    bundles = (trials.directory / "var/trials").glob("*/trial.json")
    found = [json.loads(path.read_text())["trial"] for path in bundles]
    assert {one["release"]["version"]: one["status"] for one in found} == {
        "1.0.0": "failed",
        "1.1.0": "completed",
    }


def test_a_client_whose_clock_is_ahead_makes_the_trial_invalid(lab: Lab, trials: Trials) -> None:
    home = ROOT / "var/lab/hosts/load-2/ahead"
    home.mkdir(parents=True, exist_ok=True)
    (home / "sitecustomize.py").write_text(AHEAD)
    (home / "python").write_text(
        '#!/bin/sh\nPYTHONPATH=/var/lib/knickpoint/ahead exec /opt/knickpoint/bin/python "$@"\n'
    )
    (home / "python").chmod(0o755)
    testbed = trials.directory / "configs/testbeds/lab.yaml"
    before, load_2, after = testbed.read_text().partition("- name: load-2")
    after = after.replace("/opt/knickpoint/bin/python", "/var/lib/knickpoint/ahead/python", 1)
    testbed.write_text(before + load_2 + after)
    trial = trials.end(trials.begin("seconds"), TRIAL_S, 3)
    assert trial["status"] == "invalid"
    (reason,) = trial["reasons"]
    assert reason["kind"] == "clock-offset"
    said = "before the load the clock of load-2 was ahead of that of load-1 by 2"
    assert reason["text"].startswith(said)
    assert trial["counters"] == []  # no load was offered
    found = offsets(trial, "environment_before")
    assert abs(found["load-2"] - found["load-1"] - AHEAD_MS) < 10
    assert offsets(trial, "environment_after") == {}
    assert lab.is_up()


@pytest.mark.real
def test_a_night_of_the_native_engine_on_two_client_hosts(lab: Lab, tmp_path: Path) -> None:
    need_native()
    configs, data = tmp_path / "configs", tmp_path / "var"
    shutil.copytree(ROOT / "configs", configs)
    suite, testbed = configs / "suites/lab-two-clients.yaml", configs / "testbeds/lab.yaml"
    text, changes = re.subn(r"releases: .*", 'releases: ["5.0.9"]', suite.read_text())
    assert changes == 1
    suite.write_text(text)
    testbed.write_text(BUSY.sub(r"\1: 1000000.0", testbed.read_text()))
    command = [sys.executable, "-m", "perf.commands.main", "nightly", "--suite", "lab-two-clients"]
    command += ["--configs", str(configs), "--data", str(data)]
    # The testbed names its SSH configuration from the tree's root on.
    night = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1200)
    assert night.returncode == 0, night.stdout + night.stderr
    (bundle,) = data.glob("trials/*/trial.json")
    trial = json.loads(bundle.read_text())["trial"]
    assert trial["status"] == "completed", trial["reasons"]
    assert trial["engine"] == "native"
    digests = {
        fact["host"]: fact["value"]
        for fact in trial["environment_before"]
        if fact["name"] == "knickload_sha256"
    }
    assert set(digests) == {"load-1", "load-2"}
    assert len(set(digests.values())) == 1
    assert set(offsets(trial, "environment_after")) == {"load-1", "load-2"}
    attempted = sum(
        one["value"]
        for one in trial["counters"]
        if one["name"] == "attempted" and one["phase"] == "steady" and one["iteration"]
    )
    assert attempted == 100 * 5 * 3, "the schedule is that of one client"
    await_that(lambda: not any(lab.ours(*HOSTS).values()), 10, "nothing is left on the hosts")
