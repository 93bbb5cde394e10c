"""A Cassandra that somebody else runs is measured as it is; what others keep there stays."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace as changed
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from cassandra.cluster import Cluster
from origin import SHORT, WIDE, replace

from perf.jobs.measuring import open_job
from perf.systems import registry
from perf.trial import placement
from perf.trial.servers import Servers

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[3]
ADDRESS = "127.0.0.70"  # which no other test has
VERSION = "5.0.9"
ROWS = 50
Session: TypeAlias = Any
"""Of the driver, which is untyped."""


@pytest.fixture(scope="module")
def configs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("attached") / "configs"
    shutil.copytree(ROOT / "configs", root)
    for name in ("local", "attached"):
        replace(root / f"testbeds/{name}.yaml", {"127.0.0.1": ADDRESS})
    replace(root / "testbeds/local.yaml", WIDE)
    wide = {old: new for old, new in WIDE.items() if "foreign" not in old}
    replace(root / "testbeds/attached.yaml", wide)
    replace(root / "workloads/sensor-write-short.yaml", SHORT)
    return root


@pytest.fixture(scope="module")
def other(configs: Path) -> Iterator[Session]:
    """Run a Cassandra that holds what others keep; give a session of it."""
    job = open_job(configs.parent / "server", configs)
    suite = job.catalog.suite("single")
    deployment = job.catalog.resolve(suite, suite.experiments[0])
    fetched = job.fetch("cassandra", VERSION)
    placed = placement.place(deployment, fetched.release, fetched.artifact, job.paths.run)
    servers = Servers(registry.load("cassandra"), changed(placed, clients=()), job.progress)
    try:
        servers.install()
        servers.configure()
        servers.start()
        with Cluster([ADDRESS]) as driver:
            session = driver.connect()
            copies = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
            session.execute(f"CREATE KEYSPACE others WITH replication = {copies}")
            session.execute("CREATE TABLE others.kept (id int PRIMARY KEY, value text)")
            for number in range(ROWS):
                insert = "INSERT INTO others.kept (id, value) VALUES (%s, %s)"
                session.execute(insert, (number, str(number)))
            yield session
    finally:
        servers.clean_up(configs.parent / "logs")


def keyspaces(session: Session) -> set[str]:
    rows = session.execute("SELECT keyspace_name FROM system_schema.keyspaces")
    return {row[0] for row in rows if not row[0].startswith("system")}


def kept(session: Session) -> set[tuple[int, str]]:
    return {tuple(row) for row in session.execute("SELECT id, value FROM others.kept")}


ALL_KEPT = {(number, str(number)) for number in range(ROWS)}


def measure(configs: Path, data: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "perf.commands.main", "measure", "--suite", "attached"),
        *("--configs", str(configs), "--data", str(data)),
    ]


def trials(data: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text())["trial"] for path in sorted(data.glob("trials/*/trial.json"))]


def test_what_runs_is_measured_and_nothing_of_it_stays(
    configs: Path, other: Session, tmp_path: Path
) -> None:
    done = subprocess.run(
        measure(configs, tmp_path), cwd=ROOT, capture_output=True, text=True, check=False
    )
    (trial,) = trials(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert trial["status"] == "completed", trial["reasons"]
    assert trial["release"]["version"] == VERSION
    assert trial["artifact"]["source"] == "attached"
    assert keyspaces(other) == {"others"}
    assert kept(other) == ALL_KEPT


def test_a_keyspace_of_that_name_that_is_not_ours_is_not_touched(
    configs: Path, other: Session, tmp_path: Path
) -> None:
    copies = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    other.execute(f"CREATE KEYSPACE knickpoint WITH replication = {copies}")
    other.execute("CREATE TABLE knickpoint.sensor_readings (id int PRIMARY KEY)")
    other.execute("INSERT INTO knickpoint.sensor_readings (id) VALUES (7)")
    try:
        done = subprocess.run(
            measure(configs, tmp_path), cwd=ROOT, capture_output=True, text=True, check=False
        )
        (trial,) = trials(tmp_path)
        assert (done.returncode, trial["status"]) == (3, "failed")
        assert [one["kind"] for one in trial["reasons"]] == ["attach-failed"]
        assert [row[0] for row in other.execute("SELECT id FROM knickpoint.sensor_readings")] == [7]
    finally:
        other.execute("DROP KEYSPACE knickpoint")


@pytest.mark.parametrize("moment", ["load: ", "measure iteration 2"])
def test_what_a_killed_trial_left_is_dropped_by_who_made_it_and_nobody_else(
    configs: Path, other: Session, tmp_path: Path, moment: str
) -> None:
    mine, foreign = tmp_path / "mine", tmp_path / "foreign"
    with subprocess.Popen(
        measure(configs, mine), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if moment in line:
                break
        running.kill()
        with suppress(ValueError):
            running.stdout.read()
    assert keyspaces(other) == {"others", "knickpoint"}
    # Another Knickpoint does not touch it.
    subprocess.run(measure(configs, foreign), cwd=ROOT, capture_output=True, check=False)
    assert [one["reasons"][0]["kind"] for one in trials(foreign)] == ["attach-failed"]
    assert keyspaces(other) == {"others", "knickpoint"}
    # The same one goes on with its night.
    subprocess.run(measure(configs, mine), cwd=ROOT, capture_output=True, check=False)
    assert [one["status"] for one in trials(mine)] == ["completed"]
    assert keyspaces(other) == {"others"}
    assert kept(other) == ALL_KEPT
