"""What years of nights cost: keep, judge and tell one more, and ask; beside SQLite and Otava's CLI.

    python tests/benchmarks/scale/years.py [FOLDER [YEARSxSERIES[xROUNDS] …]]

For each size (1x100, 2x100, 5x100 and 10x100; the goals are about 10x1000) a history is made up in
FOLDER (`large_history`: seeded, through the real tables; by default a temporary one), with a histogram
per second in its last year, and judged and told once. Then come further nights, as sealed bundles, and
each is appended, judged and told by the commands' own functions in a process of its own; a second time
with a tenth of the series measured; ROUNDS of each kind, 3 unless told. SQLite gets the same samples
and the same questions, Otava's command line some of the series. On a busy machine only seconds of CPU
say something: both are printed.
"""

import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/benchmarks/site")]

import duckdb  # noqa: E402  found by the lines above
from hdrh.histogram import HdrHistogram  # noqa: E402
from large_history import Size, grow, now_after  # noqa: E402
from memory import run  # noqa: E402

from perf.history import bundle  # noqa: E402
from perf.history.store import History, open_history  # noqa: E402
from perf.local.paths import DataPaths  # noqa: E402
from perf.model.results import Interval, TrialId  # noqa: E402

NIGHT = Path(__file__).with_name("night.py")
NIGHTS_A_YEAR = 365
NIGHTS = 3
QUERIES = 30
OTAVA_SERIES = 10
SECONDS = 30
"""Histograms of each of 14 operations of a trial of the last year, one per second."""
SERIES = (
    "SELECT t.started_at, s.value FROM samples s JOIN trials t ON t.trial_id = s.trial_id "
    "WHERE t.experiment = '{experiment}' AND s.phase = 'saturation' AND s.operation = '{operation}' "
    "AND s.metric = 'response_time' AND s.statistic = 'p99' AND s.iteration IS NULL "
    "ORDER BY t.started_at"
)
OPERATIONS = ("insert", "update", "read", "scan")
HISTOGRAMS = """
    INSERT INTO histograms BY NAME
    SELECT trial_id, row_number() OVER (PARTITION BY trial_id) - 1 AS position, phase, operation,
           'response_time' AS kind, (second % 3 + 1)::INTEGER AS iteration,
           epoch(started_at) + second AS start_s, 1.0 AS length_s, 20000 AS max_us,
           $pool[(1 + hash(trial_id || operation || second) % len($pool))::BIGINT] AS encoded
    FROM trials,
         (SELECT DISTINCT phase, operation FROM samples WHERE metric = 'response_time') shapes,
         range($seconds) seconds(second)
    WHERE night >= (SELECT min(night) FROM
        (SELECT DISTINCT night FROM trials ORDER BY night DESC LIMIT $nights))
"""


def main(folder: str = "", *sizes: str) -> None:
    """Print the figures of each size."""
    say(f"cores that may be used: {len(os.sched_getaffinity(0))}")
    for size in sizes or ("1x100", "2x100", "5x100", "10x100"):
        years, series, *rounds = map(int, size.split("x"))
        with tempfile.TemporaryDirectory(prefix="knickpoint-scale-", dir=folder or None) as place:
            measure(DataPaths(Path(place)), Size(series, years * NIGHTS_A_YEAR), *rounds)


def measure(paths: DataPaths, size: Size, nights: int = NIGHTS) -> None:
    """Measure one size, with so many further nights of each kind."""
    say(f"\n{size.series:,} series × {size.nights:,} nights = {size.series * size.nights:,} points")
    began_s = time.monotonic()
    make_up(paths, size)
    say(f"  made up in {time.monotonic() - began_s:.0f} s; {describe_files(paths)}")
    show("first judgement and site", [report(paths, size.nights)])
    for name, experiments in (
        ("all", size.experiments),
        ("a tenth of", max(1, size.experiments // 10)),
    ):
        rounds = []
        for _ in range(nights):
            size = replace(size, nights=size.nights + 1)
            seal_night(paths, size, experiments)
            rounds.append(report(paths, size.nights))
        show(f"one more night of {name} series", rounds)
    show("the same again, nothing new", [report(paths, size.nights)])
    ask(paths, size)
    ask_sqlite(paths, size)
    run_otava(paths, size)
    say(f"  at the end: {describe_files(paths)}")


def make_up(paths: DataPaths, size: Size) -> None:
    """Make a history up, with the manifests that its digests are of, and histograms of a year."""
    grow(paths, size)
    for path in paths.trials.iterdir():
        (path / bundle.MANIFEST).write_text(path.name)
    pool = []
    for number in range(100):
        histogram = HdrHistogram(1, 60_000_000, 3)
        for value in range(200):
            histogram.record_value(500 + 37 * (value * (number + 7) % 211))
        pool.append(histogram.encode().decode())
    bounds = {"pool": pool, "seconds": SECONDS, "nights": NIGHTS_A_YEAR}
    with duckdb.connect(paths.history) as history:
        history.execute(HISTOGRAMS, bounds)


def seal_night(paths: DataPaths, size: Size, experiments: int) -> None:
    """Seal the bundles of one more night: the newest trial of each experiment, somewhat moved."""
    with open_history(paths.history, read_only=True) as history:
        names = history.tables.rows(
            "SELECT arg_max(trial_id, started_at) AS trial FROM trials GROUP BY experiment ORDER BY ALL"
        )
        newest = history.trials([TrialId(row["trial"]) for row in names[:experiments]])
        measured = {one.id: intervals_of(history, one.id) for one in newest}
    at = now_after(size.nights).replace(hour=1)
    for number, trial in enumerate(newest):
        began = at + number * size.apart
        name = f"{began:%Y-%m-%d}-1"
        fresh = replace(
            trial,
            id=TrialId(f"{name}.{number + 1:02d}.{trial.experiment}.{trial.release.version}"),
            night=name,
            started_at=began,
            finished_at=began + timedelta(minutes=9),
            samples=tuple(
                replace(one, value=one.value * (1 + 0.01 * ((place + size.nights) % 5 - 2)))
                for place, one in enumerate(trial.samples)
            ),
        )
        later_s = (began - trial.started_at).total_seconds()
        intervals = [replace(one, start_s=one.start_s + later_s) for one in measured[trial.id]]
        bundle.seal(bundle.stage(paths, fresh.id), fresh, intervals)


def intervals_of(history: History, trial: TrialId) -> list[Interval]:
    """Return the histograms of a trial."""
    names = Interval.__dataclass_fields__
    sql = f"SELECT {', '.join(names)} FROM histograms WHERE trial_id = ? ORDER BY position"  # noqa: S608  ours
    return [Interval(**row) for row in history.tables.rows(sql, [trial])]


def report(paths: DataPaths, nights: int, *less: str) -> dict[str, float]:
    """Append, judge and tell in a process of its own."""
    output, peak_mb = run([sys.executable, str(NIGHT), str(paths.data), str(nights), *less])
    return {**json.loads(output.splitlines()[-1]), "peak_mb": peak_mb}


def show(what: str, rounds: Sequence[dict[str, float]]) -> None:
    """Print the median and the spread of each figure."""
    say(f"  {what}, n = {len(rounds)}:")
    for name in rounds[0]:
        values = [one[name] for one in rounds]
        say(f"    {name:<14} {statistics.median(values):9.1f} ({min(values):.1f} to {max(values):.1f})")


def ask(paths: DataPaths, size: Size) -> None:
    """Ask for series and percentiles, each in an open history."""
    with open_history(paths.history, read_only=True) as history:
        asked = [one.format(**part) for one in (SERIES,) for part in parts(size)]
        time_each("DuckDB, a whole series", [lambda sql=sql: history.query(sql) for sql in asked])
        rows = history.tables.rows(
            "SELECT DISTINCT trial_id FROM histograms ORDER BY trial_id DESC LIMIT ?", [QUERIES]
        )
        trials = [TrialId(row["trial_id"]) for row in rows]
        time_each(
            "a percentile of a trial", [lambda one=one: percentile(history, one) for one in trials]
        )


def percentile(history: History, trial: TrialId) -> float:
    """Return a p99.9 from the histograms of a trial."""
    of = {"phase": "saturation", "operation": "read", "kind": "response_time"}
    return history.percentile([trial], percentile=99.9, **of)


def parts(size: Size) -> list[dict[str, str]]:
    """Return what series queries differ in."""
    systems = ("cassandra", "mongodb", "scylladb", "cratedb")
    works = [number % size.experiments for number in range(QUERIES)]
    return [
        {
            "experiment": f"{systems[work % len(systems)]}-workload-{work}",
            "operation": OPERATIONS[number % len(OPERATIONS)],
        }
        for number, work in enumerate(works)
    ]


def time_each(what: str, questions: Sequence[Callable[[], object]]) -> None:
    """Print how long questions take, after one that is not counted."""
    questions[0]()
    took = []
    for one in questions:
        began_s, cpu_s = time.monotonic(), time.process_time()
        one()
        took.append((1000 * (time.monotonic() - began_s), 1000 * (time.process_time() - cpu_s)))
    passed, cpu = zip(*took, strict=True)
    say(
        f"  {what}, n = {len(took)}: {statistics.median(passed):.1f} ms ({min(passed):.1f} to "
        f"{max(passed):.1f}), CPU {statistics.median(cpu):.1f} ms"
    )


def ask_sqlite(paths: DataPaths, size: Size) -> None:
    """Copy trials and samples to SQLite, with the indexes that the questions want, and ask the same."""
    target = paths.data / "peer.sqlite"
    with duckdb.connect(paths.history, read_only=True) as source, sqlite3.connect(target) as peer:
        peer.execute(
            "CREATE TABLE trials (trial_id TEXT PRIMARY KEY, experiment TEXT, started_at TEXT)"
        )
        columns = "trial_id, phase, operation, metric, statistic, iteration, value"
        peer.execute(f"CREATE TABLE samples ({columns})")
        rows = source.execute("SELECT trial_id, experiment, started_at::VARCHAR FROM trials")
        peer.executemany("INSERT INTO trials VALUES (?, ?, ?)", rows.fetchall())
        rows = source.execute(f"SELECT {columns} FROM samples ORDER BY trial_id, position")  # noqa: S608  ours
        while some := rows.fetchmany(50_000):
            peer.executemany("INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?, ?)", some)
        peer.execute("CREATE INDEX of_experiment ON trials (experiment, started_at)")
        peer.execute(
            "CREATE INDEX of_trial ON samples "
            "(trial_id, phase, operation, metric, statistic, iteration)"
        )
        peer.commit()
        asked = [SERIES.format(**part) for part in parts(size)]
        time_each("SQLite, the same", [lambda sql=sql: peer.execute(sql).fetchall() for sql in asked])
        began_s = time.monotonic()
        newest = peer.execute("SELECT max(trial_id) FROM trials").fetchone()
        rows = peer.execute(f"SELECT {columns} FROM samples WHERE trial_id = ?", newest).fetchall()  # noqa: S608
        for number in range(size.experiments):
            fresh = [(f"fresh-{number}", *row[1:]) for row in rows]
            peer.executemany("INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?, ?)", fresh)
            peer.commit()
        say(f"  SQLite, append of a night's samples: {time.monotonic() - began_s:.2f} s, n = 1")
    say(f"  SQLite file: {target.stat().st_size / 1e6:.0f} MB (trials and samples only)")


def run_otava(paths: DataPaths, size: Size) -> None:
    """Have Otava's command line analyse one and more of the same series, each from a CSV file."""
    folder = paths.data / "otava"
    folder.mkdir()
    tests = {}
    with open_history(paths.history, read_only=True) as history:
        for number, part in enumerate(parts(size)[:OTAVA_SERIES]):
            rows = history.query(SERIES.format(**part)).rows
            lines = [f"{at:%Y-%m-%d %H:%M:%S +0000},{value!r}" for at, value in rows]
            file = folder / f"{number}.csv"
            file.write_text("\n".join(["time,value", *lines]))
            metrics = {"value": {"column": "value"}}
            tests[f"series{number}"] = {
                "type": "csv", "file": str(file), "time_column": "time", "metrics": metrics
            }  # fmt: skip
    settings = folder / "otava.yaml"
    settings.write_text(json.dumps({"tests": tests}))  # JSON is YAML
    otava = Path(sys.executable).with_name("otava")
    # Without these it takes the last year only, and none of the days to come.
    options = ["--config-file", settings, "--since", "2020-01-01", "--until", "2100-01-01"]
    for names in (list(tests)[:1], list(tests)):
        began_s, cpu_s = time.monotonic(), sum(os.times()[2:4])
        command = [otava, "analyze", *names, *options, "--output", "json"]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
        say(
            f"  Otava's CLI, {len(names)} series of {len(rows):,} points, start included, n = 1: "
            f"{time.monotonic() - began_s:.1f} s, CPU {sum(os.times()[2:4]) - cpu_s:.1f} s"
        )
    shutil.rmtree(folder)


def describe_files(paths: DataPaths) -> str:
    """Describe how large the files are."""
    size_mb = paths.history.stat().st_size / 1e6
    readings_mb = paths.readings.stat().st_size / 1e6 if paths.readings.exists() else 0
    return f"history {size_mb:.0f} MB, readings {readings_mb:.1f} MB"


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
