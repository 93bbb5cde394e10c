"""A history of several labs grows old: it gets the next schema, and gives up old histograms."""

import gzip
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from lake_of_labs import LakeOfLabs

from perf.history import retention
from perf.history.place import LakePlace, read_place
from perf.history.storage import file, upgrades, writer_lock
from perf.history.storage import lake as lake_module
from perf.history.storage.lake import LakeStorage
from perf.history.store import History, append_all, describe_state, open_history
from perf.history.tables import Tables
from perf.local.paths import DataPaths
from perf.model.errors import HistoryError
from perf.model.results import Interval, Trial, TrialId

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[3] / "data"
OLDER = tuple(range(upgrades.OLDEST, file.SCHEMA_VERSION))
OLD, YOUNG = TrialId("old"), TrialId("young")
PER_SECOND, PER_ITERATION = 4 * 30 * 2, 4 * 2  # a warm-up and three iterations, of two kinds


def silent(_text: str) -> None:
    """Swallow progress."""


def place_of(paths: DataPaths) -> LakePlace:
    place = read_place(paths.history)
    assert place is not None
    return place


def make_old_lake(place: LakePlace, packed: Path) -> None:
    """Make a lake that holds what a history file of an older schema does, with the tables of it."""
    with closing(duckdb.connect(":memory:", config=lake_module.CONFIG)) as connection:
        lake_module.prepare(connection, place)
        lake_module.attach(connection, place, read_only=False)
        connection.execute(f"ATTACH '{packed}' AS old (READ_ONLY)")
        names = "SELECT table_name FROM duckdb_tables() WHERE database_name = 'old'"
        tables = connection.execute(names).fetchall()
        connection.execute("BEGIN")
        for (table,) in tables:
            connection.execute(f"CREATE TABLE {table} AS FROM old.{table}")
        connection.execute("COMMIT")
        connection.execute("CALL ducklake_flush_inlined_data(?)", [lake_module.NAME])


@pytest.mark.parametrize("version", OLDER)
def test_a_lake_of_an_older_schema_is_brought_to_todays(
    joined: DataPaths, lake: LakeOfLabs, tmp_path: Path, version: int
) -> None:
    packed = tmp_path / "old.duckdb"
    packed.write_bytes(gzip.decompress((DATA / f"histories/version-{version}.duckdb.gz").read_bytes()))
    place = place_of(joined)
    make_old_lake(place, packed)
    with pytest.raises(HistoryError, match=f"schema version {version}, of an older .* append"):
        open_history(joined.history, read_only=True)
    files = set(lake.files())
    with open_history(joined.history) as upgraded, open_history(packed) as as_file:
        assert upgraded.tables_digest() == as_file.tables_digest()
        assert upgraded.trials() == as_file.trials() != ()
        told = "SELECT comment FROM duckdb_columns() WHERE table_name = ? AND column_name = ?"
        new = [["samples", "host"], ["load_steps", "outcome"]] if version == 1 else []
        for name in (*new, ["rolled_up", "trial_id"]):
            assert upgraded.tables.rows(told, name) == as_file.tables.rows(told, name)
    assert files <= set(lake.files())  # no row was written anew
    with open_history(joined.history, read_only=True) as again:
        assert len(again.heads()) == 1
    # What it was before can still be seen.
    with History(LakeStorage(place, read_only=True, at="2")) as before:
        assert before.query("SELECT schema_version FROM meta").rows == ((version,),)


def test_what_a_lab_with_an_older_version_appends_meanwhile_fits(
    joined: DataPaths, tmp_path: Path
) -> None:
    packed = tmp_path / "old.duckdb"
    packed.write_bytes(gzip.decompress((DATA / "histories/version-1.duckdb.gz").read_bytes()))
    place = place_of(joined)
    make_old_lake(place, packed)
    with closing(duckdb.connect(":memory:", config=lake_module.CONFIG)) as older:
        lake_module.prepare(older, place)
        lake_module.attach(older, place, read_only=False)
        row = older.execute("SELECT * FROM samples LIMIT 1").fetchone()
        assert row is not None
        with open_history(joined.history):
            pass
        names = "trial_id, position, phase, operation, metric, statistic, value, iteration"
        marks = ", ".join("?" for _ in row)
        older.execute(f"INSERT INTO samples ({names}) VALUES ({marks})", row)  # noqa: S608  ours
    with open_history(joined.history) as upgraded:
        assert upgraded.query("SELECT DISTINCT host FROM samples").rows == (("",),)


def test_a_lake_of_a_newer_schema_is_refused(joined: DataPaths) -> None:
    with open_history(joined.history) as history:
        history.tables.execute("UPDATE meta SET schema_version = 99", ())
    for read_only in (True, False):
        with pytest.raises(HistoryError, match="version 99, written by a newer Knickpoint"):
            open_history(joined.history, read_only=read_only)


def test_a_lake_that_is_not_of_the_schema_that_it_says_stays_as_it_was(
    joined: DataPaths, lake: LakeOfLabs
) -> None:
    with open_history(joined.history) as history:
        history.tables.execute("UPDATE meta SET schema_version = 2", ())
        history.tables.execute("ALTER TABLE samples DROP COLUMN host", ())
    with lake.connect() as session:
        newest = "SELECT max(snapshot_id) FROM ducklake_snapshot"
        before = session.execute(newest).fetchall()
        with pytest.raises(HistoryError, match=r"lacks the column samples\.host"):
            open_history(joined.history)
        assert session.execute(newest).fetchall() == before


@pytest.fixture
def kept(
    joined: DataPaths,
    make_bundle: Callable[..., Path],
    make_trial: Callable[..., Trial],
    make_intervals: Callable[..., tuple[Interval, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> DataPaths:
    """Return a lake with an old and a young trial, in files."""
    monkeypatch.setattr(lake_module, "MOST_INLINED", 1)
    now = datetime.now(UTC).replace(microsecond=0)
    with open_history(joined.history) as opened:
        for name, days in ((OLD, 400), (YOUNG, 3)):
            started_at = now - timedelta(days=days)
            trial = make_trial(id=name, started_at=started_at, finished_at=started_at)
            opened.append(make_bundle(trial, make_intervals(iterations=3, seconds=30)))
    return joined


def roll_up(storage: LakeStorage) -> retention.RolledUp:
    old = retention.find_old(storage.tables, datetime.now(UTC) - timedelta(days=365))
    return retention.roll_up_lake(storage, old, silent)


def read_percentiles(history: History) -> list[float]:
    of = {"phase": "saturation", "operation": "write", "kind": "response_time"}
    return [
        history.percentile([trial], percentile=percentile, iteration=iteration, **of)  # type: ignore[arg-type]
        for trial in (OLD, YOUNG)
        for iteration in (None, 1, 2, 3)
        for percentile in (1, 50, 99.9, 100)
    ]


def test_old_histograms_are_rolled_up_and_their_files_go(kept: DataPaths, lake: LakeOfLabs) -> None:
    with open_history(kept.history, read_only=True) as history:
        percentiles, trials = read_percentiles(history), history.trials()
    before = set(lake.files())
    storage = LakeStorage(place_of(kept), read_only=False)
    with History(storage):
        assert roll_up(storage) == retention.RolledUp(trials=1, before=PER_SECOND, after=PER_ITERATION)
        assert storage.give_up_past()
        assert roll_up(storage).trials == 0
        assert storage.measure() == sum(path.stat().st_size for path in lake.files())
    gone = before - set(lake.files())
    assert {path.parent.name for path in gone} == {"histograms"}
    with open_history(kept.history, read_only=True) as history:
        assert read_percentiles(history) == percentiles
        assert history.trials() == trials
        counted = "SELECT trial_id, count(*) FROM histograms GROUP BY ALL ORDER BY ALL"
        assert history.query(counted).rows == ((OLD, PER_ITERATION), (YOUNG, PER_SECOND))
        assert history.query("SELECT * FROM rolled_up").rows == ((OLD, PER_SECOND),)
    with lake.connect() as session:
        left = session.execute("SELECT count(*) FROM ducklake_snapshot").fetchall()
    assert left == [(1,)]


def test_two_that_roll_up_at_once_do_it_once(kept: DataPaths) -> None:
    first, second = (LakeStorage(place_of(kept), read_only=False) for _ in range(2))
    with History(first), History(second):
        old = retention.find_old(second.tables, datetime.now(UTC))
        assert roll_up(first).trials == 1
        assert retention.roll_up_lake(second, old, silent) == retention.RolledUp(
            trials=1, before=PER_SECOND, after=PER_ITERATION
        )
        rolled_up = second.tables.rows("SELECT trial_id FROM rolled_up ORDER BY ALL")
    assert [row["trial_id"] for row in rolled_up] == [OLD, YOUNG]


def test_files_stay_for_who_reads_them(
    kept: DataPaths, lake: LakeOfLabs, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(lake.files())
    reader = open_history(kept.history, read_only=True)
    storage = LakeStorage(place_of(kept), read_only=False)
    with History(storage):
        with reader.snapshot():
            assert len(reader.heads()) == 2
            roll_up(storage)
            with monkeypatch.context() as impatient:
                impatient.setattr(writer_lock, "WAIT_S", 0.0)
                assert not storage.give_up_past()
            assert before <= set(lake.files())
            counted = "SELECT count(*) FROM histograms"
            assert reader.query(counted).rows == ((2 * PER_SECOND,),)
        threading.Timer(0.5, lambda: reader.__exit__(None, None, None)).start()
        assert storage.give_up_past()
    assert not before <= set(lake.files())


def test_a_reader_whose_files_are_gone_is_told_so(kept: DataPaths, lake: LakeOfLabs) -> None:
    with open_history(kept.history, read_only=True) as reader, reader.snapshot():
        assert len(reader.heads()) == 2
        for path in lake.files():
            path.unlink()
        with pytest.raises(HistoryError, match=r"cleaned up .* run the command again"):
            reader.trials()


def test_the_state_of_a_lake_is_another_one_after_an_append(
    joined: DataPaths, bundles: tuple[Path, ...]
) -> None:
    assert describe_state(joined.history) == ""  # nothing is there yet
    with open_history(joined.history):
        pass
    empty = describe_state(joined.history)
    append_all(joined, silent)
    filled = describe_state(joined.history)
    assert append_all(joined, silent).known == len(bundles)
    assert "" != empty != filled == describe_state(joined.history)


def test_the_fingerprint_tells_each_change(filled: DataPaths) -> None:
    with duckdb.connect(filled.history) as connection:
        tables = Tables(connection, lambda: file.explained(filled.history))
        found = [tables.fingerprint("history")]
        for change in (
            "UPDATE samples SET value = value + 1e-9 WHERE position = 0 AND trial_id = 'trial-3'",
            "INSERT INTO reasons VALUES ('trial-3', 7, 'a', 'b'), ('trial-3', 8, 'a', 'b')",
            "DELETE FROM facts WHERE position = 0 AND trial_id = 'trial-4'",
        ):
            connection.execute(change)
            found.append(tables.fingerprint("history"))
            assert found[-1] not in found[:-1]
