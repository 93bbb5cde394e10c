"""`knickpoint conformance` on the fake system: sound, with planted faults, interrupted."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from ruamel.yaml import YAML

from perf.commands.conformance import conformance
from perf.model.errors import UsageError
from perf.systems import registry
from perf.systems.conformance.check import find_out
from perf.systems.conformance.models import list_models

pytestmark = pytest.mark.usefixtures("fake_ports")

CONFIGS = Path(__file__).parents[3] / "configs"
ADDRESS = f"127.27.0.{1 + int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0').removeprefix('gw'))}"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    """Return configurations whose testbed `own` is one server at an address of this test's own."""
    root = tmp_path / "configs"
    for folder in ("suites", "testbeds", "workloads"):
        (root / folder).mkdir(parents=True)
    for folder in ("systems/fake", "topologies"):
        shutil.copytree(CONFIGS / folder, root / folder)
    for name in ("detection.yaml", "triage.yaml"):
        shutil.copy(CONFIGS / name, root / name)
    yaml = YAML()
    own = yaml.load(CONFIGS / "testbeds/local.yaml")
    own["name"] = own["testbed_class"] = "own"
    own["hosts"] = [
        {"name": "s1", "role": "server", "address": ADDRESS},
        {"name": "c1", "role": "client", "address": ADDRESS},
    ]
    own["limits"]["start_s"] = 240
    own["needs"] = {"memory_mb": 1, "disk_mb": 1}
    yaml.dump(own, root / "testbeds/own.yaml")
    return root


def _plant(configs: Path, **faults: object) -> None:
    planted = {"system": "fake", "name": "planted", "description": "faults", "settings": faults}
    YAML().dump(planted, configs / "systems/fake/planted.yaml")


def _command(configs: Path, *options: str, system: str = "fake") -> Sequence[str]:
    asked = ("conformance", system, "--testbed", "own", "--configs", str(configs))
    where = ("--data", str(configs.parent / "var"))
    return (sys.executable, "-m", "perf.commands.main", *asked, *where, *options)


@pytest.fixture
def run(configs: Path) -> Iterator[Run]:
    """Return `run(*options)`, which runs the command; nothing is left behind it."""

    def run(*options: str, system: str = "fake") -> subprocess.CompletedProcess[str]:
        command = _command(configs, *options, system=system)
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)

    yield run
    assert not _servers(configs)
    assert not list((configs.parent / "var/run").rglob("server.pid"))


def _servers(configs: Path) -> list[psutil.Process]:
    below = str(configs.parent / "var/run")
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(below in word for word in process.info["cmdline"] or ())
    ]


def test_a_sound_system_passes_every_check(run: Run) -> None:
    done = run()
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert not [line for line in lines if line.startswith("✗")]
    assert lines[-1].endswith("checks passed, 0 failed, 7 skipped")
    # The very checks that the contract suite asks.
    for model in list_models(registry.load("fake")):
        for check in model.checks:
            assert any(line[2:].startswith(f"{model.name}: {check.sentence} · ") for line in lines)


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_cassandra_passes_every_check(run: Run, configs: Path) -> None:
    shutil.copytree(CONFIGS / "systems/cassandra", configs / "systems/cassandra")
    done = run("--release", "5.0.9", system="cassandra")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    asked = ("✓ what was acknowledged is there after a restart", "✓ other servers start from the files")
    rows = [line.partition(" · ")[2] for line in lines if line.startswith(asked)]
    assert rows == rows[:1] * 2
    assert "rows" in rows[0]
    assert not list((configs.parent / "var").glob("run/kept/cassandra/*/*"))
    assert lines[-1] == "58 checks passed, 0 failed, 1 skipped"


@pytest.mark.slow
def test_failed_checks_are_shown_with_what_was_seen(run: Run, configs: Path) -> None:
    _plant(configs, corrupt_every=3, lose_every=10)
    done = run("--config", "planted")
    assert done.returncode == 3, done.stderr
    failed = [line for line in done.stdout.splitlines() if line.startswith("✗")]
    (bits,) = [line for line in failed if line.startswith("✗ sensor: every bit of a reading")]
    assert bits.endswith(" · 7 readings of 8 written")
    (counted,) = [line for line in failed if line.startswith("✗ sensor: what is stored is counted")]
    assert counted.endswith("6 rows and 4728 bytes, but 7 and 5516 were written")
    last = done.stderr.splitlines()[-1]
    assert f" {len(failed)} failed" in last
    assert str(configs.parent / "var/conformance") in last
    assert "✓ the testbed is left clean" in done.stdout


@pytest.mark.slow
def test_what_does_not_start_is_checked_no_further(run: Run, configs: Path) -> None:
    _plant(configs, crash_on_start=True)
    done = run("--config", "planted")
    assert done.returncode == 3
    assert "✗ the servers start, and serve as a whole · start failed on s1" in done.stdout
    assert "sensor:" not in done.stdout
    (log,) = (configs.parent / "var/conformance").rglob("*.log")
    assert "planted fault: crash_on_start" in log.read_text()


@pytest.mark.slow
def test_an_interrupted_proof_leaves_nothing_behind(configs: Path) -> None:
    _plant(configs, never_ready=True)
    with subprocess.Popen(
        _command(configs, "--config", "planted"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        end_s = time.monotonic() + 60
        # The server itself, not a command that looks for one beforehand.
        while not any("perf.systems.fake.server" in one.info["cmdline"] for one in _servers(configs)):
            assert running.poll() is None, running.stderr and running.stderr.read()
            assert time.monotonic() < end_s
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "✓ the testbed is left clean" in said
    assert not _servers(configs)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--testbed", "nowhere"), "there is no testbed 'nowhere'"),
        (("--topology", "rack-three"), "needs 3 server hosts, but testbed own has 1"),
        (("--release", "9.9"), "fake has no release '9.9'"),
        (("--config", "fast"), "there is no fake config 'fast'"),
    ],
    ids=["testbed", "topology", "release", "config"],
)
def test_a_mistake_is_said_before_anything_is_touched(
    configs: Path, options: tuple[str, ...], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        conformance.main(_command(configs, *options)[4:], standalone_mode=False)
    assert not (configs.parent / "var").exists()


def test_an_error_of_a_driver_breaks_a_promise() -> None:
    def fail() -> str:
        raise OSError("gone\nfor good")

    assert str(find_out("it answers", fail)) == "✗ it answers · OSError: gone for good"
    assert find_out("it counts", lambda: "7").passed
