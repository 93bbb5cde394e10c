"""The night as GitHub starts it, by its schedule: a real Cassandra, an environment of its own."""

import re
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest
from act_runner import Runner
from actions_server import Forge

from perf.history.store import open_history
from perf.model import TrialStatus

WORKFLOW = Path(__file__).parents[2] / ".github/workflows/nightly.yml"


@pytest.mark.long
@pytest.mark.real
def test_a_scheduled_night_measures_tells_and_keeps(
    make_runner: Callable[..., Runner], forge: Forge
) -> None:
    runner = make_runner(is_prepared=False)
    done = runner.run("nightly.yml", "schedule", {"schedule": "17 1 * * *"})
    assert done.code == 0, done.log
    assert done.jobs == {"night": "success", "tell": "success"}
    assert done.left == ()
    assert set(done.steps.values()) == {"success"}

    # The actions are those that the workflow pins, to the digit.
    pins = re.findall(r"uses: (\S+)@([0-9a-f]{40})", WORKFLOW.read_text())
    assert len(pins) >= 2
    for action, commit in pins:
        assert f"matched https://github.com/{action} with ref {commit}" in done.log

    with open_history(runner.data / "history.duckdb", read_only=True) as history:
        (trial,) = history.trials()
    assert (trial.release.system, trial.release.version) == ("cassandra", "5.0.9")
    assert trial.status is TrialStatus.COMPLETED

    night = done.outputs["night"]
    assert any(line.startswith("## Cannot tell") for line in done.summary.splitlines())
    assert "    cassandra-single-write at 5.0.9: completed" in done.summary
    assert f"    Site:    {runner.data}/site/index.html" in done.summary

    kept = {path.stem: ZipFile(path) for path in forge.find_artifacts(str(runner.next_run))}
    assert set(kept) == {"site", "notices", f"night-{night}"}
    assert "index.html" in kept["site"].namelist()
    assert all(name.startswith(f"{night}.01.") for name in kept[f"night-{night}"].namelist())
    assert any(name.endswith("/trial.json") for name in kept[f"night-{night}"].namelist())
