"""Trials on the lab, each measured by a Knickpoint of its own that a test can disturb."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .conftest import HOSTS, ROOT, Lab

SUITE = """\
name: faults
description: Trials that are long enough to be disturbed, and short ones that are not.
testbed: lab
experiments:
  - name: half-a-minute
    system: {system}
    config: default
    topology: {topology}
    workload: half-a-minute
    releases: ["{release}"]
  - name: seconds
    system: {system}
    config: default
    topology: {topology}
    workload: seconds
    releases: ["{release}"]
"""
LENGTHS_S = {"half-a-minute": 30, "seconds": 3}
WORKLOAD = """\
name: {name}
description: Writes, for as long as a test needs.
owner: tests
source: made up for tests
purpose: It tests what becomes of an interrupted night.
not_comparable: Anything.
records: {{kind: sensor, devices: 20, payload_bytes: 256, latest_count: 5}}
operation: write
consistency: quorum
preload_rows_per_device: 1
preload_in_flight: 4
operation_timeout_s: 5
measurements:
  - name: saturation
    load: {{kind: closed, in_flight: 4}}
    warmup_s: 1
    warmup_cap_s: 1
    iteration_s: {seconds}
    iterations: 1
seed: 7
"""
# How busy the machine is beside the tests is not what they are about.
BUSY = re.compile(r"(max_(?:lateness|client_cpu|client_wait)_share|max_iteration_spread): .*")
UNDER_LOAD = "saturation: measure iteration 1"
# Knickpoint waits 40 s for a silent host, several times in a row; ssh takes the first of two values.
HASTY_SSH = """\
#!/bin/bash
exec -a ssh {ssh} -o ConnectTimeout=3 -o ServerAliveInterval=3 "$@"
"""


def await_that(condition: Callable[[], bool], limit_s: float, what: str) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"not within {limit_s:g} s: {what}"
        time.sleep(0.1)


@dataclass
class Trials:
    """A data directory and configurations of their own; `measure` begins a trial, `end` awaits it."""

    lab: Lab
    directory: Path
    system: str = "fake"
    release: str = "1.0.0"
    clients: int = 1
    is_hasty: bool = True
    """Whether a host that is silent for some ten seconds is given up."""
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        shutil.copytree(ROOT / "configs", self.directory / "configs")
        testbed = self.directory / "configs" / "testbeds" / "lab.yaml"
        testbed.write_text(BUSY.sub(r"\1: 1000000.0", testbed.read_text()))
        topology = "lab-three" if self.clients == 1 else "lab-three-two-clients"
        suite = SUITE.format(system=self.system, release=self.release, topology=topology)
        (self.directory / "configs" / "suites" / "faults.yaml").write_text(suite)
        for name, seconds in LENGTHS_S.items():
            workload = WORKLOAD.format(name=name, seconds=seconds)
            (self.directory / "configs" / "workloads" / f"{name}.yaml").write_text(workload)
        ssh = self.directory / "bin" / "ssh"
        ssh.parent.mkdir()
        ssh.write_text(HASTY_SSH.format(ssh=shutil.which("ssh")))
        ssh.chmod(0o755)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that its trials use."""
        return HOSTS[: 3 + self.clients]

    @property
    def log(self) -> Path:
        return self.directory / f"{len(self.running)}.log"

    def begin(self, experiment: str = "") -> subprocess.Popen[bytes]:
        """Begin a trial of one of the two lengths; without one, a night of all that the suite has."""
        options = ["--configs", str(self.directory / "configs"), "--data", str(self.directory / "var")]
        options += ["--suite", "faults"]
        if experiment:
            options += ["--experiment", experiment, "--release", self.release]
        verb = "measure" if experiment else "nightly"
        command = [sys.executable, "-m", "perf.commands.main", verb, *options]
        path = [str(self.directory / "bin")] if self.is_hasty else []
        environment = {**os.environ, "PATH": os.pathsep.join([*path, os.environ["PATH"]])}
        # The testbed names its SSH configuration from the tree's root on.
        with (self.directory / f"{len(self.running) + 1}.log").open("w") as output:
            trial = subprocess.Popen(command, stdout=output, stderr=output, cwd=ROOT, env=environment)
        self.running.append(trial)
        return trial

    def measure(self) -> subprocess.Popen[bytes]:
        """Begin a trial, and come back once it is under a load that goes on for half a minute."""
        trial = self.begin("half-a-minute")
        log = self.log
        # On two quiet cores the fake needs 15 s; on two with a load of 18 it took one to three minutes.
        limit_s = 400
        await_that(lambda: UNDER_LOAD in log.read_text() or trial.poll() is not None, limit_s, "a load")
        assert trial.poll() is None, log.read_text()
        each = self.lab.ours(*self.hosts)
        assert all(len(pids) == 1 for pids in each.values()), f"one server or engine on each: {each}"
        return trial

    def end(self, trial: subprocess.Popen[bytes], limit_s: float, code: int) -> dict[str, Any]:
        """Wait for the end of a trial; give what its bundle says, or nothing if there is none."""
        assert trial.wait(limit_s) == code, self.log.read_text()
        bundles = sorted((self.directory / "var" / "trials").glob("*/trial.json"))
        found: dict[str, Any] = json.loads(bundles[-1].read_text())["trial"] if bundles else {}
        return found

    def logs(self) -> list[str]:
        """Return the names of the logs in the newest bundle."""
        newest = max((self.directory / "var" / "trials").iterdir())
        return sorted(path.name for path in (newest / "logs").iterdir())

    def is_clean_after(self, *hosts: str) -> bool:
        """Return whether nothing of ours runs on hosts, nor on this machine."""
        masters = self.ssh_of(*(trial.pid for trial in self.running))
        return not any(self.lab.ours(*hosts).values()) and not masters

    def ssh_of(self, *parents: int, to: str = "") -> list[int]:
        """Return the SSH clients of processes; those of one that has ended belong to the machine."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes().split(b"\0")
                above = int((path / "stat").read_text().rsplit(") ", 1)[1].split()[1])
            except OSError:
                continue
            is_ssh = words[0] == b"ssh" and any(b"var/lab/ssh_config" in word for word in words)
            is_ssh = is_ssh and (not to or to.encode() in words)
            if is_ssh and above in {1, *parents}:
                found.append(int(path.name))
        return found

    def stop(self) -> None:
        """End what a failed test left."""
        for trial in self.running:
            if trial.poll() is None:
                os.kill(trial.pid, 9)
                trial.wait(10)
