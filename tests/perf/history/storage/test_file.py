"""The history as a file: locked, corrupt, foreign, newer, replaced. Never a DuckDB exception."""

import errno
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from perf.history import retention
from perf.history.storage import checkpoint, file, upgrades
from perf.history.store import append_all, open_history, rebuild
from perf.local.paths import DataPaths
from perf.model.errors import HistoryError
from perf.model.results import Trial

ROOT = Path(__file__).parents[4]
DIE = """
import os, signal, sys
from pathlib import Path
from perf.history.store import open_history
history = open_history(Path(sys.argv[1]))
history.append(Path(sys.argv[2]))
os.kill(os.getpid(), signal.SIGKILL)
"""
HOLD = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "read")
print("open", flush=True)
sys.stdin.read()
"""
WRITE = """
import sys, duckdb
with duckdb.connect(sys.argv[1]) as connection:
    connection.execute("INSERT INTO meta VALUES (99)")
"""


def silent(_text: str) -> None:
    """Swallow progress."""


@contextmanager
def held(path: Path, how: str) -> Iterator[int]:
    """Keep a file open in another process, to "read" or to "write"; give the process id."""
    command = [sys.executable, "-c", HOLD, str(path), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        yield process.pid
        process.communicate()


def test_a_history_that_is_written_elsewhere_is_refused_with_the_process(
    paths: DataPaths, bundles: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perf.history.storage.file._WAIT_S", 0.2)
    append_all(paths, silent)
    before = paths.history.read_bytes()
    with held(paths.history, "write") as pid:
        for attempt in (
            lambda: open_history(paths.history),
            lambda: open_history(paths.history, read_only=True),
            lambda: append_all(paths, silent),
            lambda: rebuild(paths.history, bundles, silent),
        ):
            with pytest.raises(HistoryError, match=rf"in use: process {pid} \(python.*Wait until"):
                attempt()
    assert paths.history.read_bytes() == before


def test_many_may_read_at_once_but_not_write(
    paths: DataPaths, bundles: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perf.history.storage.file._WAIT_S", 0.2)
    append_all(paths, silent)
    with held(paths.history, "read"):
        with open_history(paths.history, read_only=True) as history:
            assert len(history.trials()) == len(bundles)
        with pytest.raises(HistoryError, match="in use"):
            open_history(paths.history)


@pytest.mark.slow
@pytest.mark.parametrize("read_only", [True, False])
def test_what_another_process_has_open_is_waited_for_and_that_is_reported_once(
    paths: DataPaths, capsys: pytest.CaptureFixture[str], *, read_only: bool
) -> None:
    file.create(paths.history)
    command = [sys.executable, "-c", HOLD, str(paths.history), "write"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        ending = threading.Timer(0.5, process.kill)
        ending.start()
        with open_history(paths.history, read_only=read_only) as history:
            assert history.trials() == ()
        ending.join()
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(r"in use: process \d+ \(python.*\) has it open; waiting up to 60 s", line)


@pytest.mark.slow
def test_nothing_can_be_appended_to_a_history_that_is_being_copied(
    paths: DataPaths, bundles: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came after the copy would be gone with the old file."""
    append_all(paths, silent)
    copy_rows, tried = upgrades.copy_rows, list[str]()

    def append_after(*arguments: Any, **options: Any) -> None:  # noqa: ANN401  all that it takes
        copy_rows(*arguments, **options)
        command = [sys.executable, "-c", WRITE, str(paths.history)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        tried.append(done.stderr)

    monkeypatch.setattr("perf.history.storage.upgrades.copy_rows", append_after)
    retention.roll_up_old(paths.history, datetime.now(UTC), silent)
    assert "Could not set lock" in tried[0]
    with open_history(paths.history, read_only=True) as history:
        assert len(history.trials()) == len(bundles)


def test_opening_in_two_ways_in_one_process_is_refused(paths: DataPaths) -> None:
    with open_history(paths.history), pytest.raises(HistoryError, match="this process"):
        open_history(paths.history, read_only=True)


def test_reading_an_absent_history_says_how_to_make_one(paths: DataPaths) -> None:
    with pytest.raises(HistoryError, match="knickpoint append"):
        open_history(paths.history, read_only=True)
    assert not paths.data.exists()


def make_empty(path: Path) -> None:
    """Leave nothing in the file."""
    path.write_bytes(b"")


def make_text(path: Path) -> None:
    """Replace the file by text."""
    path.write_text("night,release\n" * 1000, encoding="utf-8")


def make_short(path: Path) -> None:
    """Cut the file in the middle."""
    os.truncate(path, path.stat().st_size // 2)


def make_rotten(path: Path) -> None:
    """Flip bits all over the file, behind its headers."""
    content = bytearray(path.read_bytes())
    for place in range(3 * 4096, len(content), 997):
        content[place] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(make_empty, marks=pytest.mark.slow),
        pytest.param(make_text, marks=pytest.mark.slow),
        make_short,
        make_rotten,
    ],
)
def test_a_corrupt_history_is_refused_and_the_bundles_mend_it(
    paths: DataPaths, bundles: tuple[Path, ...], spoil: Callable[[Path], None]
) -> None:
    append_all(paths, silent)
    with open_history(paths.history, read_only=True) as history:
        digest = history.tables_digest()
    spoil(paths.history)
    for read_only in (True, False):
        # DuckDB reads what a query needs: a file cut behind its headers opens, then refuses to answer.
        with (
            pytest.raises(HistoryError, match="knickpoint history rebuild"),
            open_history(paths.history, read_only=read_only) as history,
        ):
            history.tables_digest()
    assert rebuild(paths.history, bundles, silent).new == len(bundles)
    with open_history(paths.history) as history:
        assert history.tables_digest() == digest


def test_a_directory_in_place_of_the_history_is_refused(paths: DataPaths) -> None:
    paths.history.mkdir(parents=True)
    message = rf"(?s){re.escape(str(paths.history))}.*move it away"
    for attempt in (
        lambda: open_history(paths.history),
        lambda: open_history(paths.history, read_only=True),
        lambda: rebuild(paths.history, (), silent),
    ):
        with pytest.raises(HistoryError, match=message) as caught:
            attempt()
        assert "history rebuild" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "step"),
    [
        (errno.EACCES, "Let this user read and write"),
        (errno.EPERM, "Let this user read and write"),
        (errno.EROFS, "file system is read-only"),
        (errno.EISDIR, "move it away"),
        (errno.ENOSPC, "Make room"),
        (errno.EDQUOT, "Make room"),
        (errno.ENOTDIR, "Move away the file"),
    ],
)
def test_what_the_system_refuses_is_never_told_to_rebuild(code: int, step: str) -> None:
    reason, path = os.strerror(code), Path("/srv/No space left on device/history.duckdb")
    for error in (
        OSError(code, reason, str(path)),
        duckdb.IOException(f'IO Error: Cannot open file "{path}": {reason}'),
        duckdb.FatalException(f'Failed to commit: Could not write file "{path}": {reason}'),
    ):
        with pytest.raises(HistoryError, match=step) as caught, file.explained(path):
            raise error
        assert "history rebuild" not in str(caught.value)


def test_words_in_a_path_are_no_reason() -> None:
    path = Path("/srv/a: No space left on device/history.duckdb")
    with pytest.raises(HistoryError, match="history rebuild") as caught, file.explained(path):
        raise duckdb.IOException(
            f'The file "{path}" exists, but it is not a valid DuckDB database file!'
        )
    assert "Make room" not in str(caught.value)


def test_a_data_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for attempt in (
        lambda: open_history(tmp_path / "file" / "history.duckdb"),
        lambda: rebuild(tmp_path / "file" / "history.duckdb", (), silent),
    ):
        with pytest.raises(HistoryError, match=r"cannot be written: .*\nMove away the file"):
            attempt()


@pytest.mark.parametrize(
    "foreign",
    [
        "CREATE TABLE trials (id INTEGER)",
        "CREATE TABLE meta (key VARCHAR)",
        "CREATE TABLE meta (key VARCHAR); CREATE TABLE trials (id INTEGER)",
    ],
)
def test_a_foreign_database_is_refused_and_left_alone(paths: DataPaths, foreign: str) -> None:
    paths.data.mkdir()
    with duckdb.connect(paths.history) as connection:
        connection.execute(foreign)
    with pytest.raises(HistoryError, match="knickpoint history rebuild"):
        open_history(paths.history)
    with duckdb.connect(paths.history) as connection:
        assert len(connection.execute("SELECT * FROM duckdb_tables()").fetchall()) == foreign.count(
            "TABLE"
        )


@pytest.mark.parametrize(
    ("version", "message"),
    [(file.SCHEMA_VERSION + 1, "newer Knickpoint.*update"), (0, "knickpoint history rebuild")],
)
def test_another_schema_version_is_refused(paths: DataPaths, version: int, message: str) -> None:
    file.create(paths.history)
    with duckdb.connect(paths.history) as connection:
        connection.execute("UPDATE meta SET schema_version = ?", [version])
    with pytest.raises(HistoryError, match=message):
        open_history(paths.history)


def test_a_rebuild_that_fails_leaves_the_old_history(
    paths: DataPaths, bundles: tuple[Path, ...]
) -> None:
    append_all(paths, silent)
    before = paths.history.read_bytes()

    def refuse(_text: str) -> None:
        raise RuntimeError("the terminal is gone")

    with pytest.raises(RuntimeError, match="the terminal is gone"):
        rebuild(paths.history, bundles, refuse)
    assert paths.history.read_bytes() == before
    assert not list(paths.data.glob("*.new*"))


def test_two_rebuilds_at_once_are_refused(paths: DataPaths) -> None:
    with (
        file.replacement(paths.history),
        pytest.raises(HistoryError, match="another process rebuilds"),
        file.replacement(paths.history),
    ):
        pass


@pytest.mark.slow
def test_the_write_ahead_log_of_an_old_file_never_reaches_a_new_one(
    paths: DataPaths,
    bundles: tuple[Path, ...],
    make_bundle: Callable[..., Path],
    make_trial: Callable[..., Trial],
) -> None:
    append_all(paths, silent)
    extra = make_bundle(make_trial(id="extra"))
    command = [sys.executable, "-c", DIE, str(paths.history), str(extra)]
    subprocess.run(command, cwd=ROOT, check=False)
    log = paths.history.with_name("history.duckdb.wal")
    assert log.stat().st_size > 0
    content = log.read_bytes()

    rebuild(paths.history, bundles, silent, drops_lost=True)
    with open_history(paths.history, read_only=True) as history:
        assert [trial.id for trial in history.trials()] == [place.name for place in bundles]

    paths.history.unlink()
    log.write_bytes(content)
    with open_history(paths.history) as history:
        assert history.trials() == ()


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE samples ALTER value TYPE VARCHAR; UPDATE samples SET value = 'fast'",
        "ALTER TABLE samples ALTER host DROP NOT NULL; UPDATE samples SET host = NULL",
        "ALTER TABLE counters ALTER value TYPE VARCHAR; UPDATE counters SET value = 'many'",
        "INSERT INTO load_steps SELECT trial_id, 0, 'a', 1, 1, 1, 1, 1, 'fine', '' FROM trials",
    ],
)
def test_rows_that_another_program_wrote_are_reported_as_damage(
    paths: DataPaths, make_bundle: Callable[..., Path], change: str
) -> None:
    make_bundle()
    append_all(paths, silent)
    with duckdb.connect(paths.history) as connection:
        connection.execute(change)
    with (
        pytest.raises(HistoryError, match="history rebuild"),
        open_history(paths.history, read_only=True) as history,
    ):
        history.trials()


def damage_log(history: Path, bundle: Path) -> Path:
    """Leave a log with a gap in it, as after the power failed; give it."""
    command = [sys.executable, "-c", DIE, str(history), str(bundle)]
    subprocess.run(command, cwd=ROOT, check=False)
    log = history.with_name(f"{history.name}.wal")
    content = log.read_bytes()
    third = len(content) // 3
    log.write_bytes(content[:third] + bytes(third) + content[2 * third :])
    return log


@pytest.mark.slow
def test_a_damaged_log_is_put_aside_by_one_process_and_no_live_one_by_another(
    paths: DataPaths, make_bundle: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of two that found one damaged log must not take away what the first writes by then."""
    file.create(paths.history)
    bundle = make_bundle()
    log = damage_log(paths.history, bundle)
    locked = file._locked  # noqa: SLF001  the moment between asking and putting aside

    @contextmanager
    def be_second(path: Path, *, wait_s: float) -> Iterator[None]:
        log.rename(log.with_name("history.damaged.wal"))
        command = [sys.executable, "-c", DIE, str(paths.history), str(bundle)]
        subprocess.run(command, cwd=ROOT, check=False)
        assert log.stat().st_size > 0
        with locked(path, wait_s=wait_s):
            yield

    monkeypatch.setattr("perf.history.storage.file._locked", be_second)
    with open_history(paths.history) as history:
        assert [trial.id for trial in history.trials()] == [bundle.name]
    assert [path.name for path in paths.history.parent.glob("*.damaged*")] == ["history.damaged.wal"]


@pytest.mark.slow
def test_a_copy_of_a_history_that_cannot_be_opened_is_reported_as_damage(
    paths: DataPaths,
    bundles: tuple[Path, ...],
    make_bundle: Callable[..., Path],
    make_trial: Callable[..., Trial],
) -> None:
    """Not as a file of somebody else, which is to be moved away."""
    append_all(paths, silent)
    log = damage_log(paths.history, make_bundle(make_trial(id="extra")))
    with pytest.raises(HistoryError, match=r"lacks what was last appended.*\n.*append them again"):
        retention.roll_up_old(paths.history, datetime.now(UTC), silent)
    assert log.exists()
    rebuild(paths.history, bundles, silent)


def test_a_log_that_has_grown_long_is_folded_into_the_file_after_an_append(
    paths: DataPaths, make_bundle: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, log = make_bundle(), paths.history.with_name(f"{paths.history.name}.wal")
    with open_history(paths.history) as history:
        monkeypatch.setattr(checkpoint, "LOG_BYTES", 0)
        history.append(place)
        assert not log.exists() or not log.stat().st_size
        assert len(history.heads()) == 1


def test_a_damaged_log_is_kept_beside_the_history_and_its_trials_are_appended_again(
    paths: DataPaths, make_bundle: Callable[..., Path]
) -> None:
    file.create(paths.history)
    bundle = make_bundle()
    content = damage_log(paths.history, bundle).read_bytes()
    assert append_all(paths, silent).new == 1
    (kept,) = paths.history.parent.glob("*.damaged*")
    assert (kept.name, kept.read_bytes()) == ("history.damaged.wal", content)
