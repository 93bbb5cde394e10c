"""Processes that are killed with SIGKILL at chosen moments lose no finished trial."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perf.history import bundle
from perf.history.store import append_all, open_history, rebuild
from perf.local.paths import DataPaths
from perf.model.results import Interval, Trial, TrialId

pytestmark = pytest.mark.keeps("a-kill-loses-no-trial")
ROOT = Path(__file__).parents[4]

# Each program kills itself when a chosen function is called for the n-th time: the moments at which
# a crash could hurt, without any race.
DIE = """
import itertools, os, signal, sys
from pathlib import Path
from perf.local import durable
from perf.history import bundle, store, tables
from perf.history.storage import file
from perf.local.paths import DataPaths

def dying(function, moment):
    calls = itertools.count(1)
    def call(*arguments, **named):
        if next(calls) == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **named)
    return call

file.FileStorage.together = 2  # so that one transaction ends before another
paths, moment = DataPaths(Path(sys.argv[1])), int(sys.argv[2])
"""
APPEND = (
    DIE
    + """
tables.Tables.insert = dying(tables.Tables.insert, moment)
store.append_all(paths, lambda text: print(text, flush=True))
"""
)
APPEND_AFTER_COMMIT = (
    DIE
    + """
store.append_all(paths, dying(lambda text: None, moment))
"""
)
REBUILD = (
    DIE
    + """
tables.Tables.insert = dying(tables.Tables.insert, moment)
store.rebuild(paths.history, bundle.find(paths), print)
"""
)
REPLACE = (
    DIE
    + """
durable.sync = dying(durable.sync, moment)
store.rebuild(paths.history, bundle.find(paths), print)
"""
)
SEAL = (
    DIE
    + """
trial, intervals = bundle.read(paths.trials / "trial-3")
staged = bundle.stage(paths, "again")
durable.sync = dying(durable.sync, moment)
bundle.seal(staged, store.bundle.replace(trial, id="again"), intervals)
"""
)


def run_until_killed(program: str, paths: DataPaths, moment: int) -> str:
    command = [sys.executable, "-c", program, str(paths.data), str(moment)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout


def silent(_text: str) -> None:
    """Swallow progress."""


@pytest.fixture
def expected(bundles: tuple[Path, ...], tmp_path: Path) -> str:
    """Return the digest of a history with all bundles in it, made elsewhere."""
    elsewhere = tmp_path / "elsewhere.duckdb"
    rebuild(elsewhere, bundles, silent)
    with open_history(elsewhere, read_only=True) as history:
        return history.tables_digest()


OF_TWO = 18
"""Tables that are inserted into for two trials: nine each, of which some are empty."""


@pytest.mark.parametrize(
    "moment", [20, *(pytest.param(moment, marks=pytest.mark.slow) for moment in (1, 2, 9, 10, 18))]
)
def test_killed_inside_a_transaction(paths: DataPaths, expected: str, moment: int) -> None:
    reported = run_until_killed(APPEND, paths, moment).splitlines()
    with open_history(paths.history, read_only=True) as history:
        kept = {trial.id for trial in history.trials()}
        rows = history.query("SELECT DISTINCT trial_id FROM histograms").rows
    assert kept == {line.removeprefix("appended ") for line in reported}
    assert len(kept) == (2 if moment > OF_TWO else 0)
    assert {trial for (trial,) in rows} == kept
    append_all(paths, silent)
    with open_history(paths.history, read_only=True) as history:
        assert history.tables_digest() == expected


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "kept"), [(1, 2), (3, 3)])
def test_killed_just_after_a_commit(paths: DataPaths, expected: str, moment: int, kept: int) -> None:
    run_until_killed(APPEND_AFTER_COMMIT, paths, moment)
    with open_history(paths.history, read_only=True) as history:
        assert len(history.trials()) == kept
    append_all(paths, silent)
    with open_history(paths.history, read_only=True) as history:
        assert history.tables_digest() == expected


@pytest.mark.slow
@pytest.mark.parametrize(("program", "moment"), [(REBUILD, 9), (REPLACE, 1), (REPLACE, 2)])
def test_killed_while_rebuilding(paths: DataPaths, expected: str, program: str, moment: int) -> None:
    append_all(paths, silent)
    run_until_killed(program, paths, moment)
    with open_history(paths.history, read_only=True) as history:
        assert history.tables_digest() == expected
    rebuild(paths.history, bundle.find(paths), silent)
    with open_history(paths.history, read_only=True) as history:
        assert history.tables_digest() == expected
    assert not list(paths.data.glob("*.new*"))


@pytest.mark.slow
@pytest.mark.parametrize("moment", [1, 3, 5, 6])
def test_killed_while_sealing(paths: DataPaths, bundles: tuple[Path, ...], moment: int) -> None:
    run_until_killed(SEAL, paths, moment)
    last = moment == 6  # the directory above, after the move
    assert [place.name for place in bundle.find(paths)] == ["again"] * last + [p.name for p in bundles]
    for place in bundle.find(paths):
        bundle.read(place)


@pytest.mark.slow
def test_killed_from_outside_at_any_moment(
    paths: DataPaths,
    make_bundle: Callable[..., Path],
    make_trial: Callable[..., Trial],
    make_intervals: Callable[..., tuple[Interval, ...]],
) -> None:
    intervals = make_intervals(seconds=20)
    for index in range(8):
        make_bundle(make_trial(id=TrialId(f"trial-{index}")), intervals)
    program = APPEND.replace("dying(tables.Tables.insert, moment)", "tables.Tables.insert")
    command = [sys.executable, "-c", program, str(paths.data), "0"]
    kept = 0
    for _ in range(3):
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.kill()
        with open_history(paths.history, read_only=True) as history:
            now = len(history.trials())
        assert kept < now
        kept = now
    assert append_all(paths, silent).known == kept
    with open_history(paths.history, read_only=True) as history:
        assert len(history.trials()) == 8
