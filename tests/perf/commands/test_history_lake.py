"""Moving a history into a lake and back, and asking the lake how it was."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from lake_of_labs import LakeOfLabs

from analysis.orchestration.kept_answer import answer_for
from perf.commands.doctor import doctor
from perf.commands.history import history
from perf.config.catalog import load_catalog
from perf.history.storage import migration
from perf.history.store import append_all, open_history
from perf.local.paths import DataPaths
from perf.model.results import Trial

CONFIGS = Path(__file__).parents[3] / "configs"
pytestmark = pytest.mark.slow


def silent(_text: str) -> None:
    """Swallow progress."""


def run(paths: DataPaths, *arguments: str) -> Result:
    return CliRunner().invoke(
        history, [*arguments, "--data", str(paths.data)], catch_exceptions=False, standalone_mode=False
    )


def digest(paths: DataPaths) -> str:
    with open_history(paths.history, read_only=True) as opened:
        return opened.tables_digest()


def refuse(paths: DataPaths, *arguments: str) -> str:
    done = CliRunner().invoke(history, [*arguments, "--data", str(paths.data)])
    assert done.exception is not None
    assert type(done.exception).__name__ == "UsageError", done.exception
    return str(done.exception)


def test_a_history_moves_into_a_lake_and_back(filled: DataPaths, lake: LakeOfLabs) -> None:
    before, content = digest(filled), filled.history.read_bytes()
    lake.join(filled)
    done = run(filled, "migrate", "--to", "lake")
    assert re.search(r"3 trials copied from .*history.duckdb, and compared", done.output)
    assert filled.history.read_bytes() == content
    assert 4 < len(lake.files()) < 12  # in files, not in the catalog
    assert digest(filled) == before
    assert append_all(filled, silent).known == 3

    aside = filled.history.rename(filled.data / "aside.duckdb")
    done = run(filled, "migrate", "--to", "file")
    assert "3 trials copied from ducklake:postgres:" in done.output
    (filled.data / "history.yaml").unlink()
    assert digest(filled) == before
    assert append_all(filled, silent).known == 3
    assert aside.read_bytes() == content


def test_a_lake_is_judged_again_only_after_somebody_appended(
    filled: DataPaths,
    lake: LakeOfLabs,
    make_bundle: Callable[..., Path],
    make_trial: Callable[..., Trial],
) -> None:
    lake.join(filled)
    run(filled, "migrate", "--to", "lake")
    catalog, today = load_catalog(CONFIGS), datetime.now(UTC).date()
    states = []
    for is_new in (False, True):
        if is_new:
            make_bundle(make_trial())
            append_all(filled, silent)
        first = answer_for(filled, catalog, today)
        written = filled.answer.stat().st_mtime_ns
        assert answer_for(filled, catalog, today) == first
        assert filled.answer.stat().st_mtime_ns == written
        states.append(first.made_from)
    assert "" != states[0] != states[1] != ""


def test_nothing_is_mixed(
    filled: DataPaths,
    lake: LakeOfLabs,
    make_bundle: Callable[..., Path],
    make_trial: Callable[..., Trial],
) -> None:
    lake.join(filled)
    make_bundle(make_trial())
    append_all(filled, silent)
    before = digest(filled)
    assert "has 4 trials already" in refuse(filled, "migrate", "--to", "lake")
    assert "is there already" in refuse(filled, "migrate", "--to", "file")
    assert digest(filled) == before


def test_what_was_copied_already_is_not_refused(filled: DataPaths, lake: LakeOfLabs) -> None:
    lake.join(filled)
    run(filled, "migrate", "--to", "lake")
    before, content = digest(filled), filled.history.read_bytes()
    for target in ("lake", "file"):
        assert "3 trials copied" in run(filled, "migrate", "--to", target).output
    assert (digest(filled), filled.history.read_bytes()) == (before, content)


def test_a_copy_that_is_not_equal_does_not_count(
    filled: DataPaths, lake: LakeOfLabs, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.join(filled)
    copy = migration._copy  # noqa: SLF001

    def lose(connection: migration.duckdb.DuckDBPyConnection, source: str, target: str) -> None:
        copy(connection, source, target)
        connection.execute(f"DELETE FROM {target}.samples WHERE position = 1")  # noqa: S608

    monkeypatch.setattr(migration, "_copy", lose)
    with pytest.raises(migration.HistoryError, match="not equal"):
        run(filled, "migrate", "--to", "lake")
    with open_history(filled.history, read_only=True) as opened:
        assert opened.trials() == ()
    aside = filled.history.rename(filled.data / "aside.duckdb")
    append_all(filled, silent)
    with pytest.raises(migration.HistoryError, match="not equal"):
        run(filled, "migrate", "--to", "file")
    assert sorted(path.name for path in filled.data.glob("*.duckdb*")) == [
        aside.name,
        "history.duckdb.lock",
    ]


def test_there_must_be_something_to_move(paths: DataPaths, filled: DataPaths, lake: LakeOfLabs) -> None:
    for target in ("file", "lake"):
        assert "history.yaml is not there, and" in refuse(filled, "migrate", "--to", target)
    paths.history.unlink()
    lake.join(paths)
    assert "knickpoint append" in refuse(paths, "migrate", "--to", "lake")


def test_a_lake_is_seen_as_it_was(joined: DataPaths, bundles: tuple[Path, ...]) -> None:
    with open_history(joined.history) as opened:
        opened.append(bundles[0])
        opened.append(bundles[1])
    listed = run(joined, "at").output.splitlines()
    found = [re.split(r"  +", line) for line in listed if "append trial" in line]
    assert [(row[2], row[3]) for row in found] == [
        ("rack-a", "append trial-3"),
        ("rack-a", "append trial-4"),
    ]
    with open_history(joined.history) as opened:
        opened.append(bundles[2])
        opened._storage.flush()  # type: ignore[attr-defined]  # noqa: SLF001
    first, second = found
    counted = "SELECT count(*) AS n FROM trials"
    assert run(joined, "at", first[0], counted).output.split() == ["n", "1", "(1", "row)"]
    assert "trial-4" in run(joined, "at", second[0]).output
    assert "trial-5" not in run(joined, "at", second[0]).output
    assert run(joined, "at", "2099-01-01 00:00", counted).output.split()[1] == "3"
    with pytest.raises(migration.HistoryError, match=r"(?s)No snapshot found.*history at"):
        run(joined, "at", "99999")
    with pytest.raises(migration.HistoryError, match="No snapshot found"):
        run(joined, "at", "2020-01-01")
    with pytest.raises(migration.HistoryError, match=r"no history in .* at this time"):
        run(joined, "at", "0")
    assert "neither the number of a snapshot nor a time" in refuse(joined, "at", "yesterday")
    assert "the query failed" in refuse(joined, "at", first[0], "DELETE FROM trials")


def test_old_trials_of_a_lake_are_rolled_up(
    joined: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    at = datetime.now(UTC).replace(microsecond=0) - timedelta(days=500)
    make_bundle(make_trial(started_at=at, finished_at=at))
    append_all(joined, silent)
    said = run(joined, "prune", "--older-than", "400", "--dry-run").output
    assert re.search("1 trial from before .* would be rolled up", said)
    said = run(joined, "prune", "--older-than", "400").output
    assert re.search(r"1 trial from before .* rolled up, .* MB now, and no snapshot of before", said)
    assert len(run(joined, "at").output.splitlines()) == 3
    assert "nothing to roll up" in run(joined, "prune", "--older-than", "400", "--dry-run").output


def test_the_doctor_opens_the_lake(joined: DataPaths) -> None:
    arguments = ["--data", str(joined.data)]
    empty = CliRunner().invoke(doctor, arguments).output
    assert re.search(r"MISSING +shared history .*\n.*make one with: knickpoint append", empty)
    with open_history(joined.history):
        pass
    assert re.search(r"ok +shared history .*can be read", CliRunner().invoke(doctor, arguments).output)


def test_a_file_keeps_nothing_of_how_it_was(filled: DataPaths) -> None:
    assert "docs/shared-history.md" in refuse(filled, "at")
