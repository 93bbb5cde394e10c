"""What docs/operations.md tells an operator to type is run as it stands there."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perf.history import bundle
from perf.history.store import append_all, open_history
from perf.local.paths import DataPaths
from perf.model.results import Interval, Trial, TrialId

ROOT = Path(__file__).parents[1]


def read_block(name: str) -> str:
    """Return the lines of the shell block that begins with this comment."""
    text = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    found = re.search(rf"```sh\n# {name}\n(.*?)```", text, re.DOTALL)
    assert found, name
    return found[1]


@pytest.fixture
def lab(
    tmp_path: Path,
    make_trial: Callable[..., Trial],
    make_intervals: Callable[..., tuple[Interval, ...]],
) -> DataPaths:
    """Return a data directory as it is while a night goes on: a third trial is being measured."""
    paths = DataPaths(tmp_path / "lab with a blank")
    for number in (1, 2, 3):
        trial = make_trial(id=TrialId(f"2026-03-01-1.0{number}.sensor-write.5.0.4"))
        staged = bundle.stage(paths, trial.id)
        (staged / bundle.LOGS / "node-1-system.log").write_text("INFO started\n")
        if number < 3:
            bundle.seal(staged, trial, make_intervals())
    append_all(paths, lambda _: None)
    for name in ("told.json", "run/node/data"):
        path = paths.data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")
    return paths


@pytest.mark.slow
def test_a_backup_that_is_restored_has_every_row(lab: DataPaths, tmp_path: Path) -> None:
    fresh = DataPaths(tmp_path / "restored here")
    for block, data in (("backup", lab.data), ("restore", fresh.data)):
        done = subprocess.run(
            ["sh", "-euc", read_block(block)],
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "DATA": str(data),
                "BACKUP": str(tmp_path / "back up.tar.gz"),
            },
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    digests = []
    for paths in (lab, fresh):
        with open_history(paths.history, read_only=True) as history:
            digests.append((len(history.heads()), history.tables_digest()))
    assert digests[0] == digests[1]
    assert digests[0][0] == 2
    assert sorted(path.name for path in fresh.trials.iterdir()) == [
        "2026-03-01-1.01.sensor-write.5.0.4",
        "2026-03-01-1.02.sensor-write.5.0.4",
    ]
    assert (fresh.data / "told.json").exists()
    assert not fresh.run.exists()
    assert (fresh.site / "index.html").exists()
