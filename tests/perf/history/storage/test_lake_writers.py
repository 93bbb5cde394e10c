"""Several writers at once, killed at any moment: what was reported as appended is there, and once."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from budget import EFFORT
from lake_of_labs import LakeOfLabs
from postgres_server import PASSWORD

from perf.history import bundle
from perf.history.place import read_place
from perf.history.storage import lake as lake_module
from perf.history.storage import writer_lock
from perf.history.storage.writer_lock import WriterLock
from perf.history.store import History, append_all, open_history, rebuild
from perf.local.paths import DataPaths
from perf.model.errors import HistoryError
from perf.model.results import Interval, Trial, TrialId

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]
APPEND = """
import sys
from pathlib import Path
from perf.history.store import append_all
from perf.local.paths import DataPaths
append_all(DataPaths(Path(sys.argv[1])), lambda text: print(text, flush=True))
"""
# Kills itself when a chosen function is called for the n-th time.
DIE = """
import itertools, os, signal, sys
from pathlib import Path
from perf.history.storage import lake, writer_lock
from perf.history import store, tables
from perf.local.paths import DataPaths

def dying(function, moment):
    calls = itertools.count(1)
    def call(*arguments, **named):
        if next(calls) == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **named)
    return call

paths = DataPaths(Path(sys.argv[1]))
"""


def silent(_text: str) -> None:
    """Swallow progress."""


@dataclass
class Writer:
    """A process that appends all bundles of a lab; started again whenever it was killed."""

    paths: DataPaths
    output: Path
    process: "subprocess.Popen[bytes] | None" = None
    kills: int = 0
    reported_before: int = 0

    def start(self) -> None:
        self.reported_before = len(self.reported)
        with self.output.open("ab") as output:
            command = [sys.executable, "-c", APPEND, str(self.paths.data)]
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        # Only what hits a writer at its work counts, not while it starts.
        if self.process.wait(60) == -signal.SIGKILL and self.has_reported:
            self.kills += 1

    @property
    def code(self) -> int | None:
        """How it ended; None while it runs."""
        assert self.process is not None
        return self.process.poll()

    @property
    def has_reported(self) -> bool:
        """Whether it told of a trial since it was started."""
        return len(self.reported) > self.reported_before

    @property
    def reported(self) -> list[str]:
        """The trials that it told as appended, in whole lines."""
        if not self.output.exists():
            return []
        lines = self.output.read_text(encoding="utf-8").splitlines(keepends=True)
        return [line.split()[1] for line in lines if line.startswith("appended ") and line[-1] == "\n"]


@pytest.fixture
def make_lab(
    tmp_path: Path,
    lake: LakeOfLabs,
    make_trial: Callable[..., Trial],
    make_intervals: Callable[..., tuple[Interval, ...]],
) -> Callable[[str, int], Writer]:
    """Return `make_lab(name, count)`: a lab with so many bundles, whose history is in the lake."""

    def make(name: str, count: int) -> Writer:
        paths = lake.join(DataPaths(tmp_path / name), lab=name)
        for number in range(count):
            trial = make_trial(id=TrialId(f"2026-03-01-{name}-1.{number:03d}"), seed=number)
            staged = bundle.stage(paths, trial.id)
            bundle.seal(staged, trial, make_intervals(seed=number))
        return Writer(paths, tmp_path / f"{name}.out")

    return make


def expect_all(writers: list[Writer], path: Path) -> tuple[str, set[str]]:
    """Return the digest of a history file with all bundles of these labs, and all trials."""
    found = [place for writer in writers for place in bundle.find(writer.paths)]
    assert rebuild(path, found, silent).bad == ()
    with open_history(path, read_only=True) as history:
        return history.tables_digest(), {place.name for place in found}


def check_told(history: History, writers: list[Writer], rows_per_trial: int) -> None:
    """Check that all trials that were reported are there, once and whole, at this moment."""
    reported = [trial for writer in writers for trial in writer.reported]
    rows = history.query("SELECT trial_id, count(*) FROM trials GROUP BY ALL").rows
    assert {count for _, count in rows} <= {1}
    assert set(reported) <= {trial for trial, _ in rows}
    assert len(reported) == len(set(reported))
    sql = "SELECT trial_id, count(*) FROM histograms GROUP BY ALL"
    assert {count for _, count in history.query(sql).rows} <= {rows_per_trial}


def run_all(writers: list[Writer], *, seed: int, most_kills: int, path: Path) -> int:
    """Run the writers until each has ended by itself; kill one after the other meanwhile.

    Gives how many kills hit a writer that had appended something since it was started.
    """
    generator, kills, next_anywhere = random.Random(seed), 0, False  # noqa: S311  moments, no secret
    deadline = time.monotonic() + 900
    for writer in writers:
        writer.start()
    with open_history(path, read_only=True) as history:
        while any(writer.code is None for writer in writers):
            assert time.monotonic() < deadline
            running = [writer for writer in writers if writer.code is None]
            # Half of the kills wait for a writer that has reported: by the clock alone, a fast machine
            # would be done after few. The other half hit any, while it starts perhaps.
            at_work = [writer for writer in running if writer.has_reported]
            victims = running if next_anywhere else at_work
            if not victims:
                time.sleep(0.01)
                continue
            next_anywhere = generator.random() < 0.5
            victim = generator.choice(victims)
            try:
                victim.process.wait(generator.uniform(0.0, 0.5))  # type: ignore[union-attr]
                continue
            except subprocess.TimeoutExpired:
                pass
            if kills < most_kills:
                victim.kill()
                kills += 1
                check_told(history, writers, rows_per_trial=18)
                if victim.code == -signal.SIGKILL:
                    victim.start()
    assert [writer.code for writer in writers] == [0] * len(writers), [
        writer.output.read_text(encoding="utf-8")[-2000:] for writer in writers
    ]
    return sum(writer.kills for writer in writers)


def test_writers_at_once_lose_nothing_and_double_nothing(
    make_lab: Callable[[str, int], Writer], tmp_path: Path
) -> None:
    writers = [make_lab("rack-a", 5), make_lab("rack-b", 5)]
    # A second process of the same lab appends the very same trials at the same time.
    writers.append(Writer(writers[0].paths, tmp_path / "again.out"))
    for writer in writers:
        writer.start()
    assert [writer.process.wait(60) for writer in writers if writer.process] == [0, 0, 0]
    digest, trials = expect_all(writers[:2], tmp_path / "alone.duckdb")
    assert sorted(trial for writer in writers for trial in writer.reported) == sorted(trials)
    with open_history(writers[0].paths.history, read_only=True) as history:
        assert history.tables_digest() == digest


@pytest.mark.slow
def test_eight_writers_killed_at_random_lose_nothing_and_double_nothing(
    make_lab: Callable[[str, int], Writer], tmp_path: Path, lake: LakeOfLabs
) -> None:
    each, most_kills = (200, 80) if EFFORT >= 1 else (80, 32)
    writers = [make_lab(f"rack-{number}", each) for number in range(8)]
    with open_history(writers[0].paths.history):
        pass
    started = time.monotonic()
    kills = run_all(writers, seed=7, most_kills=most_kills, path=writers[0].paths.history)
    took_s = time.monotonic() - started
    assert kills >= each // 10
    digest, trials = expect_all(writers, tmp_path / "alone.duckdb")
    assert len(trials) == 8 * each
    with open_history(writers[0].paths.history, read_only=True) as history:
        assert history.tables_digest() == digest
    assert append_all(writers[3].paths, silent).known == each
    print(f"{kills} kills, {took_s:.0f} s, {len(lake.files())} Parquet files")  # noqa: T201  the record


DYING = {
    "before the first row": "tables.Tables.insert = dying(tables.Tables.insert, 1)",
    "in the middle of a trial": "tables.Tables.insert = dying(tables.Tables.insert, 11)",
    "before the commit": "lake.sign = dying(lake.sign, 2)",
    "after the commit": "writer_lock.WriterLock._release = dying(writer_lock.WriterLock._release, 2)",
    "before the files": "lake.LakeStorage.flush = dying(lake.LakeStorage.flush, 1)",
}


# A process and four openings each, so most of them have their time in the long tests.
@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(moment, marks=() if moment == "after the commit" else pytest.mark.slow)
        for moment in sorted(DYING)
    ],
)
def test_killed_at_a_chosen_moment(
    make_lab: Callable[[str, int], Writer], tmp_path: Path, moment: str
) -> None:
    writer = make_lab("rack-a", 3)
    program = (
        f"{DIE}lake.MOST_INLINED = 3\n{DYING[moment]}\n"
        "store.append_all(paths, lambda text: print(text, flush=True))\n"
    )
    command = [sys.executable, "-c", program, str(writer.paths.data)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    writer.output.write_text(done.stdout, encoding="utf-8")
    with open_history(writer.paths.history, read_only=True) as history:
        check_told(history, [writer], rows_per_trial=18)
        kept = {trial.id for trial in history.trials()}
    # The three trials go in one transaction, and are reported after it.
    assert len(kept) == len(writer.reported) + (3 if moment == "after the commit" else 0)
    digest, _ = expect_all([writer], tmp_path / "alone.duckdb")
    append_all(writer.paths, silent)
    with open_history(writer.paths.history, read_only=True) as history:
        assert history.tables_digest() == digest


def test_a_catalog_that_crashes_in_the_middle_of_an_append_keeps_nothing_of_it(
    make_lab: Callable[[str, int], Writer],
    tmp_path: Path,
    lake: LakeOfLabs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer = make_lab("rack-a", 2)
    sign = lake_module.sign

    def crash(*arguments: object) -> None:
        sign(*arguments)  # type: ignore[arg-type]
        lake.server.stop("immediate")
        lake.server.start()

    first, second = bundle.find(writer.paths)
    with open_history(writer.paths.history) as history:
        history.append(first)
    with open_history(writer.paths.history) as history:
        monkeypatch.setattr(lake_module, "sign", crash)
        with pytest.raises(HistoryError, match=r"[Rr]un the command again"):
            history.append(second)
    monkeypatch.undo()
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with open_history(writer.paths.history, read_only=True) as history:
        assert [trial.id for trial in history.trials()] == [first.name]
    digest, _ = expect_all([writer], tmp_path / "alone.duckdb")
    assert append_all(writer.paths, silent).new == 1
    with open_history(writer.paths.history, read_only=True) as history:
        assert history.tables_digest() == digest


def test_a_catalog_that_is_down_is_reported(
    make_lab: Callable[[str, int], Writer], lake: LakeOfLabs
) -> None:
    writer = make_lab("rack-a", 1)
    lake.server.stop()
    try:
        with pytest.raises(HistoryError, match=r"(?s)Connection refused.*Is PostgreSQL running there"):
            append_all(writer.paths, silent)
    finally:
        lake.server.start()
    assert append_all(writer.paths, silent).new == 1


def test_a_writer_waits_for_another_and_says_so_when_it_takes_too_long(
    make_lab: Callable[[str, int], Writer], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = make_lab("rack-a", 1)
    with open_history(writer.paths.history):
        pass
    place = read_place(writer.paths.history)
    assert place is not None
    monkeypatch.setattr(writer_lock, "WAIT_S", 0.2)
    other = WriterLock(place.address, place.history)
    try:
        with (
            other.held(),
            pytest.raises(HistoryError, match=r"another writer has had .*user knickpoint"),
        ):
            open_history(writer.paths.history)
        with open_history(writer.paths.history) as history:
            assert history.append(bundle.find(writer.paths)[0])
    finally:
        other.close()


def test_what_waits_for_no_writer_names_the_catalog_when_a_table_is_locked(
    make_lab: Callable[[str, int], Writer], lake: LakeOfLabs, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = make_lab("rack-a", 1)
    place = read_place(writer.paths.history)
    assert place is not None
    with open_history(writer.paths.history):
        pass
    monkeypatch.setattr(writer_lock, "WAIT_S", 0.2)
    with closing(WriterLock(place.address, place.history)) as lock, lake.connect() as other:
        other.execute("BEGIN; LOCK TABLE ducklake_table IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(HistoryError, match=r"^the catalog of the history .* lock timeout"):
            lock.count_inlined()
        other.execute("ROLLBACK")
        assert lock.count_inlined() == 0


def test_a_commit_that_does_not_end_is_reported_and_keeps_no_one_else_from_writing(
    make_lab: Callable[[str, int], Writer], lake: LakeOfLabs, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = make_lab("rack-a", 1)
    place = read_place(writer.paths.history)
    assert place is not None
    (trial,) = bundle.find(writer.paths)
    with open_history(writer.paths.history):
        pass
    monkeypatch.setattr(writer_lock, "WAIT_S", 0.2)
    other = WriterLock(place.address, place.history)
    try:
        with open_history(writer.paths.history) as history:
            with lake.connect() as unfinished:
                unfinished.execute("BEGIN; LOCK TABLE ducklake_snapshot IN ROW EXCLUSIVE MODE")
                with pytest.raises(HistoryError, match=r"a commit into .* has not ended in 0 s"):
                    history.append(trial)
                with other.held():  # given back, although that session goes on
                    unfinished.execute("ROLLBACK")
            assert history.append(trial)
    finally:
        other.close()
