"""Whatever a history file holds: it answers, or says that it is damaged and what to do about it."""

import os
import random
import shutil
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest
from mutations import NO_FILES, is_well_told, put_in_place, within

from perf.history import bundle
from perf.history.distributions import distribute
from perf.history.storage import file
from perf.history.store import open_history, rebuild
from perf.local.paths import DataPaths
from perf.model.errors import HistoryError, KnickpointError
from perf.model.results import Interval, Purpose, Trial, TrialId, find_moves
from reports.pages.reproduction.courses import cut

LONGEST_S = 30.0
_FINE, _TOLD, _ESCAPED = range(10, 13)


@pytest.fixture(scope="module")
def filled(
    tmp_path_factory: pytest.TempPathFactory,
    make_trial: Callable[..., Trial],
    make_intervals: Callable[..., tuple[Interval, ...]],
) -> DataPaths:
    """Return a data directory with a history of a few trials and their bundles."""
    paths = DataPaths(tmp_path_factory.mktemp("filled"))
    with open_history(paths.history) as history:
        for number in range(3):
            trial = make_trial(id=TrialId(f"trial-{number}"))
            trial = replace(trial, started_at=trial.started_at + timedelta(days=number))
            staged = bundle.stage(paths, trial.id)
            history.append(bundle.seal(staged, trial, make_intervals()))
    return paths


def ask_everything(path: Path) -> None:
    """Ask a history all that commands ask."""
    with open_history(path, read_only=True) as history:
        trials = [head.id for head in history.heads()]
        history.trials()
        history.observations(*Purpose)
        find_moves(trials, history.environments())
        history.bundle_digests()
        history.search_bounds()
        history.find_trials()
        recordings = history.recordings(trials, "response_time", "service_time", "send_lateness")
        history.tables_digest()
        for trial in trials:
            for phase, operation in history.histogram_names([trial], "response_time"):
                names = {"phase": phase, "operation": operation, "kind": "response_time"}
                history.percentile([trial], percentile=99.0, **names)
    try:
        cut(recordings, 6)
        for recording in recordings:
            distribute(recording.intervals)
    except ValueError as error:  # what pages leave out, and say so
        raise HistoryError(str(error)) from error


def ask_apart(path: Path) -> int:
    """Ask everything in a process of its own, since DuckDB may end it; give its exit code."""
    child = os.fork()
    if child == 0:
        code = _ESCAPED
        try:
            with within(LONGEST_S):
                ask_everything(path)
            code = _FINE
        except KnickpointError as error:
            if is_well_told(error):
                code = _TOLD
        except BaseException:  # noqa: BLE001  the process ends here
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def spoil(data: bytes, chance: random.Random) -> bytes:
    """Return the bytes of a history file with a few accidents, each of a kind that disks have."""
    spoiled = bytearray(data)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(spoiled))
        match chance.randrange(5):
            case 0:
                del spoiled[at:]
            case 1:
                spoiled[at] ^= 1 << chance.randrange(8)
            case 2:
                spoiled[at : at + 4096] = bytes(len(spoiled[at : at + 4096]))
            case 3:
                spoiled[at : at + 512] = chance.randbytes(len(spoiled[at : at + 512]))
            case _:
                # The headers: what decides how all else is read.
                near = chance.randrange(min(3 * 4096, len(spoiled)))
                spoiled[near] = chance.randrange(256)
        if not spoiled:
            break
    return bytes(spoiled)


@pytest.mark.slow
@pytest.mark.keeps("hostile-histories")
def test_a_spoiled_file_answers_or_is_reported_as_damaged(
    filled: DataPaths,
    tmp_path: Path,
    effort: Callable[[int, int], int],
    figures: dict[str, object],
) -> None:
    data, chance = filled.history.read_bytes(), random.Random(5)  # noqa: S311  no secret
    path = tmp_path / "history.duckdb"
    tries = effort(4, 150)
    codes: dict[int, int] = {}
    for _ in range(tries):
        path.write_bytes(spoil(data, chance))
        code = ask_apart(path)
        codes[code] = codes.get(code, 0) + 1
        # Below zero DuckDB itself has ended the process: the figures say how often.
        assert code in {_FINE, _TOLD} or code < 0, code
    assert codes.get(_TOLD)
    figures["spoiled files"] = (
        f"{tries}: {codes.get(_TOLD, 0)} told, {codes.get(_FINE, 0)} not read where they were spoiled, "
        f"{sum(count for code, count in codes.items() if code < 0)} that ended DuckDB"
    )


ROWS = (
    "UPDATE samples SET value = 'nan'",
    "UPDATE samples SET value = 'infinity'",
    "UPDATE samples SET value = 1e308",
    "UPDATE samples SET iteration = -2147483648",
    "UPDATE samples SET phase = repeat('x', 1000000)",
    "UPDATE samples SET phase = chr(27) || '[2J' || chr(0) || chr(8238)",
    "UPDATE samples SET metric = 'unheard of', statistic = ''",
    "INSERT INTO samples SELECT * FROM samples",
    "DELETE FROM samples",
    "UPDATE trials SET version = '', line = chr(10), system = '../../x'",
    "UPDATE trials SET started_at = 'infinity'",
    "UPDATE trials SET finished_at = '-infinity'",
    "UPDATE trials SET started_at = '294247-01-01'",
    "UPDATE trials SET started_at = '0044-03-15 (BC)'",
    "UPDATE trials SET status = 'splendid'",
    "UPDATE trials SET purpose = ''",
    "UPDATE trials SET ordinal = -9223372036854775808, seed = 9223372036854775807",
    "UPDATE trials SET artifact_source = 'elsewhere'",
    "UPDATE trials SET log_tail = repeat(chr(27), 1000000)",
    "UPDATE facts SET value = repeat('y', 1000000), host = ''",
    "UPDATE counters SET value = -1, iteration = -5",
    "UPDATE histograms SET encoded = ''",
    "UPDATE histograms SET encoded = 'HISTFAAAAAAA'",
    "UPDATE histograms SET encoded = repeat('A', 1000000)",
    "UPDATE histograms SET start_s = 'nan', length_s = 0",
    "UPDATE histograms SET start_s = 'infinity', length_s = -1",
    "UPDATE histograms SET length_s = 0",
    "UPDATE histograms SET iteration = 2147483647",
    "UPDATE histograms SET max_us = -1",
    "UPDATE meta SET schema_version = -2147483648",
    "INSERT INTO meta VALUES (7)",
    "DROP TABLE samples",
    "ALTER TABLE trials DROP COLUMN seed",
    "ALTER TABLE trials ADD COLUMN more VARCHAR",
    "ALTER TABLE samples ALTER value TYPE VARCHAR",
    "DROP TABLE trials; CREATE VIEW trials AS SELECT 1 AS trial_id",
    "DROP TABLE histograms; CREATE VIEW histograms AS SELECT * FROM read_csv('/etc/passwd')",
)


@pytest.mark.slow
@pytest.mark.keeps("hostile-histories")
@pytest.mark.parametrize("change", ROWS)
def test_rows_of_others_are_answers_or_reported_as_damage(
    filled: DataPaths, tmp_path: Path, change: str
) -> None:
    path = tmp_path / "history.duckdb"
    shutil.copy2(filled.history, path)
    with duckdb.connect(path) as connection:
        try:
            connection.execute(change)
        except duckdb.Error as error:
            if "Constraint" in str(error) or "dependent" in str(error):
                return  # the schema itself refuses it
            raise
    try:
        with within(LONGEST_S):
            ask_everything(path)
    except KnickpointError as error:
        reported = error
    else:
        return
    assert is_well_told(reported)


@pytest.mark.slow
@pytest.mark.keeps("hostile-histories")
@pytest.mark.parametrize("kind", NO_FILES)
def test_a_history_that_is_no_file_is_reported_and_never_waited_for(
    filled: DataPaths, tmp_path: Path, kind: str
) -> None:
    paths = DataPaths(tmp_path)
    put_in_place(paths.history, kind)
    for attempt in (
        lambda: ask_everything(paths.history),
        lambda: open_history(paths.history),
        lambda: rebuild(paths.history, bundle.find(filled), lambda _: None),
    ):
        try:
            with within(LONGEST_S):
                attempt()
        except KnickpointError as error:
            reported = error
        else:
            continue
        assert is_well_told(reported, paths.history.name)


@pytest.mark.keeps("hostile-histories")
def test_a_log_of_others_beside_a_history_is_never_taken_in(filled: DataPaths, tmp_path: Path) -> None:
    path = tmp_path / "history.duckdb"
    shutil.copy2(filled.history, path)
    path.with_name(f"{path.name}.wal").write_bytes(b"\xff" * 5000)
    try:
        with within(LONGEST_S):
            ask_everything(path)
    except HistoryError as error:
        reported = error
        assert is_well_told(reported, "history rebuild")
    assert rebuild(path, bundle.find(filled), lambda _: None).new == 3
    with file.explained(path):
        ask_everything(path)
