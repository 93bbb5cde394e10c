"""Histories and bundles of every schema that was ever released are still read."""

import errno
import gzip
import hashlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from perf.history import bundle
from perf.history.storage import file, upgrades
from perf.history.store import append_all, open_history
from perf.local.paths import DataPaths
from perf.model.errors import HistoryError

DATA = Path(__file__).parents[3] / "data"
LEAVE_A_LOG = """
import duckdb, os, signal, sys
connection = duckdb.connect(sys.argv[1])
connection.execute("UPDATE trials SET engine = 'changed'")
os.kill(os.getpid(), signal.SIGKILL)
"""
OLDER = tuple(range(upgrades.OLDEST, file.SCHEMA_VERSION))
# What a released schema holds never changes: renew this together with file.SCHEMA_VERSION, after a
# history of the version before was put into tests/data/histories and what is new stands in `upgrades`.
RELEASED = {3: "af229229b0c024a8"}


def unpack(version: int, paths: DataPaths) -> None:
    paths.data.mkdir(parents=True)
    packed = DATA / f"histories/version-{version}.duckdb.gz"
    paths.history.write_bytes(gzip.decompress(packed.read_bytes()))


def test_a_schema_that_changes_gets_a_new_version() -> None:
    tables = re.sub(r"^(COMMENT|--).*\n", "", file.schema(), flags=re.MULTILINE)
    found = hashlib.sha256(tables.encode()).hexdigest()[:16]
    assert {file.SCHEMA_VERSION: found} == RELEASED


@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize("read_only", [False, True])
def test_an_older_history_holds_what_its_bundles_hold(
    paths: DataPaths,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    version: int,
    *,
    read_only: bool,
) -> None:
    unpack(version, paths)
    packed = paths.history.read_bytes()
    (fresh := DataPaths(tmp_path / "fresh")).data.mkdir()
    fresh.trials.symlink_to(DATA / f"bundles/version-{version}")
    append_all(fresh, lambda _: None)
    with (
        open_history(paths.history, read_only=read_only) as upgraded,
        open_history(fresh.history, read_only=True) as rebuilt,
    ):
        assert upgraded.trials() == rebuilt.trials() != ()
        assert upgraded.tables_digest() == rebuilt.tables_digest()
    assert f"history.schema-{version}.duckdb, to be removed" in capsys.readouterr().err
    assert (paths.data / f"history.schema-{version}.duckdb").read_bytes() == packed
    with open_history(paths.history) as history:
        assert len(history.heads()) == 1
    assert capsys.readouterr().err == ""


def test_what_is_only_in_the_log_is_upgraded_and_no_older_copy_is_lost(
    paths: DataPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpack(2, paths)
    (paths.data / "history.schema-2.duckdb").write_text("kept before")
    done = subprocess.run([sys.executable, "-c", LEAVE_A_LOG, str(paths.history)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (paths.data / "history.duckdb.wal").stat().st_size

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)  # as on a file system without a second name for a file
    with open_history(paths.history, read_only=True) as history:
        assert history.query("SELECT engine FROM trials").rows == (("changed",),)
    assert (paths.data / "history.schema-2.duckdb").read_text() == "kept before"
    with duckdb.connect(paths.data / "history.schema-2-2.duckdb") as kept:
        assert kept.execute("SELECT engine FROM trials").fetchall() == [("changed",)]


@pytest.mark.parametrize("can_link", [True, False])
def test_an_upgrade_that_ended_before_its_last_step_goes_on_with_the_copy_that_it_kept(
    paths: DataPaths, monkeypatch: pytest.MonkeyPatch, *, can_link: bool
) -> None:
    unpack(2, paths)
    before = paths.history.read_bytes()
    with monkeypatch.context() as ended:
        ended.setattr(file, "_put", stop)
        if not can_link:
            ended.setattr(os, "link", stop)
        with pytest.raises(HistoryError, match="cannot be written"):
            open_history(paths.history)
    assert paths.history.read_bytes() == before
    with open_history(paths.history) as history:
        assert len(history.heads()) == 1
    (kept,) = paths.data.glob("history.schema-*")
    assert kept.read_bytes() == before


def stop(*_: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_an_upgrade_that_fails_leaves_the_old_history(paths: DataPaths) -> None:
    unpack(1, paths)
    with duckdb.connect(paths.history) as connection:
        connection.execute("DROP TABLE samples; CREATE TABLE samples (something INTEGER)")
        connection.execute("INSERT INTO samples VALUES (1)")
    before = paths.history.read_bytes()
    with pytest.raises(HistoryError, match="knickpoint history rebuild"):
        open_history(paths.history)
    assert paths.history.read_bytes() == before


@pytest.mark.parametrize("version", [*range(1, bundle.SCHEMA_VERSION + 1)])
def test_a_bundle_of_each_version_is_read(version: int) -> None:
    (place,) = (DATA / f"bundles/version-{version}").iterdir()
    trial, intervals = bundle.read(place)
    assert trial.id == place.name
    assert intervals


def test_a_history_that_is_upgraded_to_be_read_cannot_be_written(paths: DataPaths) -> None:
    unpack(2, paths)
    with open_history(paths.history, read_only=True) as history:
        with pytest.raises(duckdb.InvalidInputException, match="read-only"):
            history.tables.execute("DELETE FROM trials", ())
        assert len(history.heads()) > 0
