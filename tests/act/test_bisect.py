"""`bisect`, started by hand on two real releases; the newer has a handicap that nobody told it."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest
from act_runner import Runner
from actions_server import Forge
from origin import WINDOW

ROOT = Path(__file__).parents[2]
ASKED = {
    "system": "cassandra",
    "span": "5.0.8..5.0.9",
    "experiment": "cassandra-single-write",
    "metric": "throughput",
    "suite": "single",
    "minutes": "30",
}


@pytest.fixture
def handicapped(ready: Path, tmp_path: Path) -> Path:
    """Return an environment whose `knickpoint bisect` plants a handicap, and says so in each trial."""
    made = tmp_path / "environment"
    made.mkdir()
    for part in ready.iterdir():
        if part.name not in {"bin", ".ready"}:
            (made / part.name).symlink_to(part)
    (made / "bin").mkdir()
    (made / "bin/python").symlink_to(sys.executable)
    (made / ".ready").touch()
    os.utime(made / ".ready", (4_000_000_000, 4_000_000_000))
    command = made / "bin/knickpoint"
    planted = f"--from 5.0.9 --settings '{json.dumps({WINDOW: '100ms'})}'"
    command.write_text(
        f'#!/bin/sh\n[ "$1" = bisect ] && shift || exit 70\n'
        f'exec {made}/bin/python {ROOT}/tests/planting/bisect_planted.py {planted} -- "$@"\n'
    )
    command.chmod(0o755)
    return made


@pytest.mark.slow
@pytest.mark.real
def test_a_small_budget_ends_with_the_release_that_most_probably_became_worse(
    make_runner: Callable[..., Runner], forge: Forge, handicapped: Path
) -> None:
    runner = make_runner()
    runner.environment = handicapped
    done = runner.run("bisect.yml", "workflow_dispatch", {"inputs": ASKED})
    assert done.jobs == {"bisect": "failure"}, done.log
    assert done.left == ()
    # Eight trials are enough to see the change, and not to say it for certain: that is no "fine".
    assert done.summary.startswith("## Not decided"), done.summary
    assert "The budget is used up" in done.summary
    assert "most probable is 5.0.9" in done.summary
    assert "a handicap was planted in this trial" in done.summary
    (kept,) = forge.find_artifacts(str(runner.next_run))
    with ZipFile(kept) as archive:
        assert archive.namelist() == ["bisection.json"]
        record = json.loads(archive.read("bisection.json"))
    (probe,) = record["probes"]
    assert [trial["status"] for trial in probe["trials"]].count("completed") >= 8


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        {"span": "5.0.9..5.0.8"},
        {"experiment": "--help"},
        {"metric": "$(touch owned)"},
        {"system": "--configs=/etc", "span": "x"},
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_refused_before_anything_is_measured(
    make_runner: Callable[..., Runner], forge: Forge, wrong: dict[str, str]
) -> None:
    runner = make_runner()
    done = runner.run("bisect.yml", "workflow_dispatch", {"inputs": {**ASKED, **wrong}})
    assert done.jobs == {"bisect": "failure"}, done.log
    assert "## Not measured: wrong usage or configuration" in done.summary
    assert not (runner.data / "trials").exists()
    assert forge.find_artifacts(str(runner.next_run)) == []
