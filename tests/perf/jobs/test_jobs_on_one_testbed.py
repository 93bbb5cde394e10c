"""Real jobs of the real command on one testbed over SSH: told apart, interrupted, killed, succeeded."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perf.hosts.lease_file import LEASE
from perf.hosts.leftovers import end_leftovers
from perf.hosts.remote import LocalHost, SshHost
from perf.local.progress import Progress
from perf.local.this_process import name_owner

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fake_ports")]

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
COMMAND = Path(sys.executable).with_name("knickpoint")
WAIT_S = 120.0


@pytest.fixture
def home(tmp_path: Path, sshd: SshHost) -> Iterator[Path]:
    """Yield a directory with a configuration for three hosts over SSH, which are on this machine."""
    shutil.copytree(CONFIGS, tmp_path / "configs")
    _, key, _, known_hosts = sshd.options
    (tmp_path / "ssh_config").write_text(
        f"Host *\n  IdentityFile {key}\n  {known_hosts.replace('=', ' ', 1)}\n"
    )
    hosts = "".join(
        f"  - {{name: {name}, role: {role}, address: 127.0.0.{number}, user: {sshd.user}, "
        f"port: {sshd.port}, work_dir: {tmp_path}/host-{number}, python: {sys.executable}}}\n"
        for name, role, number in (
            ("db-1", "server", 1),
            ("db-2", "server", 2),
            ("db-3", "server", 3),
            ("load-1", "client", 1),
        )
    )
    path = tmp_path / "configs/testbeds/loop.yaml"
    text = path.read_text().replace("transport: local", "transport: ssh")
    before, after = text.index("  - {name: node-1"), text.index("client_cores")
    path.write_text(f"{text[:before]}{hosts}ssh_config: {tmp_path}/ssh_config\n{text[after:]}")
    yield tmp_path
    for number in (1, 2, 3):
        end_leftovers(LocalHost(), str(tmp_path / f"host-{number}"), 10, Progress())


@pytest.fixture
def start(home: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that starts a job with a data directory of its own."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        command = [str(COMMAND), *words, "--configs", str(home / "configs")]
        job = subprocess.Popen(
            command, cwd=home, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        started.append(job)
        return job

    yield start
    for job in started:
        job.kill()
        job.communicate()


def read_holders(home: Path) -> list[str]:
    """Return what each host is held for, read from its disk."""
    holders = []
    for number in (1, 2, 3):
        path = home / f"host-{number}" / LEASE
        holder = json.loads(path.read_text())["holder"] if path.exists() else None
        holders.append(holder["purpose"] if holder else "")
    return holders


def wait_until_measured(home: Path) -> None:
    """Wait until all hosts are held and a server of the trial runs."""
    end_s = time.monotonic() + WAIT_S
    while not all(read_holders(home)) or not list(home.glob("host-*/fake/*/server.pid")):
        assert time.monotonic() < end_s, read_holders(home)
        time.sleep(0.05)


def measure(data: str) -> tuple[str, ...]:
    return "measure", "--suite", "fake-short", "--data", data


def test_a_job_that_was_interrupted_gives_its_hosts_back(
    home: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    job = start(*measure("a"))
    wait_until_measured(home)
    assert read_holders(home) == ["the trials of suite fake-short"] * 3
    shown, _ = start("host", "lease", "loop").communicate(timeout=WAIT_S)
    assert shown.count(f"held by {name_owner()} for the trials of suite fake-short") == 3
    job.send_signal(signal.SIGINT)
    said, _ = job.communicate(timeout=WAIT_S)
    assert job.returncode == 130, said
    assert read_holders(home) == [""] * 3


def test_the_next_job_succeeds_one_that_was_killed(
    home: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    killed = start(*measure("a"))
    wait_until_measured(home)
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=WAIT_S)
    shown, _ = start("host", "lease", "loop").communicate(timeout=WAIT_S)
    assert shown.count("its process is gone, so the next job here takes over") == 3
    one = ("measure", "--suite", "fake-short", "--experiment", "fake-blink", "--release", "1.0.0")
    job = start(*one, "--data", "b")
    said, _ = job.communicate(timeout=WAIT_S)
    assert job.returncode == 0, said
    took_over = f"took over from {name_owner()} (the trials of suite fake-short): its process is gone"
    assert said.count(took_over) == 3
    assert read_holders(home) == [""] * 3


def test_a_job_whose_lease_was_broken_ends_before_its_next_trial(
    home: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    job = start(*measure("a"))
    wait_until_measured(home)
    broken, _ = start("host", "lease", "loop", "--break").communicate(timeout=WAIT_S)
    assert broken.count("broken") == 3
    said, _ = job.communicate(timeout=WAIT_S)
    assert job.returncode == 3, said
    assert f"the lease of this job was broken by {name_owner()}" in said
    trials = [json.loads(path.read_text()) for path in sorted((home / "a/trials").glob("*/trial.json"))]
    # The trial that ran meanwhile is kept, and is invalid; the second one was never begun.
    assert len(trials) == 1
    (trial,) = (one.get("trial", one) for one in trials)
    assert trial["status"] == "invalid"
    assert {reason["kind"] for reason in trial["reasons"]} == {"lease-lost"}
    assert [path.name for path in (home / "a/trials").iterdir()] == [trial["id"]]
