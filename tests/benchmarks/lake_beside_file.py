"""What a history of several labs costs beside a file: one append, many files, and a judgement.

    python tests/benchmarks/lake_beside_file.py [NIGHTS [APPENDS]]

Both are on this machine, PostgreSQL with its usual care (fsync on); both are asked in turns. Appended
are the real trials of the shipped recording, under other names, 1,600 of them unless APPENDS says
otherwise. The history that is judged is made up: 4 experiments of 50 series each, NIGHTS nights (50).
"""

import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests/peers"), str(ROOT / "tests/benchmarks/site")]

from lake_of_labs import LakeOfLabs, make_lake  # noqa: E402  found by the line above
from large_history import Size, grow  # noqa: E402
from postgres_server import PASSWORD, find_programs, serving  # noqa: E402

from perf.history import bundle  # noqa: E402
from perf.history.place import read_place  # noqa: E402
from perf.history.rows import HistoryRow, rows_of_trial  # noqa: E402
from perf.history.storage import migration  # noqa: E402
from perf.history.store import History, open_history  # noqa: E402
from perf.local.paths import DataPaths  # noqa: E402
from perf.model.results import TrialId  # noqa: E402

JUDGE = """
import sys, time
from datetime import date
from pathlib import Path
from analysis.orchestration.judging import judge_history
from perf.config.catalog import load_catalog
from perf.local.paths import DataPaths
started_s = time.monotonic()
judge_history(DataPaths(Path(sys.argv[1])), load_catalog(Path("configs")), date(2026, 1, 1))
print(time.monotonic() - started_s)
"""
TURNS = 7


def main(nights: int = 50, appends: int = 1600) -> None:
    """Print all figures."""
    programs = find_programs()
    assert programs is not None, "install postgresql"
    os.environ["PGPASSWORD"] = PASSWORD
    with (
        serving(programs, is_careful=True) as server,
        tempfile.TemporaryDirectory(prefix="knickpoint-bench-") as name,
    ):
        place = Path(name)
        measure_appends(place, make_lake(server, f"{place}/appended/"), appends)
        measure_judging(place, make_lake(server, f"{place}/judged/"), nights)


def measure_appends(place: Path, lake: LakeOfLabs, appends: int) -> None:
    """Append the same trials to both, in turns of one."""
    with tarfile.open(ROOT / "reports/demo/trials.tar.xz") as archive:
        archive.extractall(place / "demo", filter="data")
    read = [bundle.read(path) for path in bundle.find(DataPaths(place / "demo"))]
    sides = {"file": DataPaths(place / "file"), "lake": lake.join(DataPaths(place / "lake"))}
    took: dict[str, list[float]] = {side: [] for side in sides}
    opened = {side: open_history(paths.history) for side, paths in sides.items()}
    for number in range(appends):
        trial, intervals = read[number % len(read)]
        trial = replace(trial, id=TrialId(f"{trial.id}.{number}"))
        tables = rows_of_trial(trial, intervals, "ab" * 32)
        for side, history in opened.items():
            started_s = time.monotonic()
            history._storage.transact(partial(_insert, history, tables), "append")  # noqa: SLF001
            took[side].append(1000 * (time.monotonic() - started_s))
    for side, values in took.items():
        _say(
            f"append to the {side}: n={appends}, median {statistics.median(values):.1f} ms, "
            f"p99 {statistics.quantiles(values, n=100)[98]:.1f} ms, "
            f"the last hundred {statistics.median(values[-100:]):.1f} ms"
        )
    _say(f"Parquet files after {appends} appends: {len(lake.files())}, before they are moved")
    for side, history in opened.items():
        started_s = time.monotonic()
        with history:
            pass
        _say(f"closing the {side}: {time.monotonic() - started_s:.2f} s")
    _say(f"Parquet files after {appends} appends: {len(lake.files())}")


def _insert(history: History, tables: Sequence[tuple[str, Sequence[HistoryRow]]]) -> None:
    for table, rows in tables:
        history.tables.insert(table, rows)


def measure_judging(place: Path, lake: LakeOfLabs, nights: int) -> None:
    """Judge the same history in both, in turns."""
    alone = DataPaths(place / "alone")
    grow(alone, Size(series=200, nights=nights))
    shared = lake.join(DataPaths(place / "shared"))
    target = read_place(shared.history)
    assert target is not None
    started_s = time.monotonic()
    count = migration.copy_to_lake(alone.history, target)
    _say(f"migration of {count} trials: {time.monotonic() - started_s:.1f} s")
    took: dict[str, list[float]] = {"file": [], "lake": []}
    for _ in range(TURNS):
        for side, paths in (("file", alone), ("lake", shared)):
            took[side].append(_judge(paths))
    medians = {side: statistics.median(values) for side, values in took.items()}
    for side, values in took.items():
        _say(f"judging the {side}: n={TURNS}, median {medians[side]:.2f} s, {sorted(values)}")
    _say(f"ratio {medians['lake'] / medians['file']:.2f}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _judge(paths: DataPaths) -> float:
    command = [sys.executable, "-c", JUDGE, str(paths.data)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return float(done.stdout)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
