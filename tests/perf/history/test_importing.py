"""`knickpoint history import`: foreign runs become trials, kept and rebuilt like others."""

import os
import random
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from perf.commands.history import history
from perf.commands.history_import import import_results
from perf.history import bundle
from perf.history.store import open_history, rebuild
from perf.local.paths import DataPaths
from perf.model.errors import UsageError
from perf.model.results import Purpose, Trial, TrialStatus

IMPORTS = Path(__file__).parents[2] / "data" / "imports"
NAMED = ("--system", "cassandra", "--release", "5.0.4")
FILES = {
    "cassandra-stress.txt": ("cassandra-stress", *NAMED, "--workload", "mixed"),
    "latte.json": ("latte", "--system", "cassandra"),
    "pytest-benchmark.json": ("pytest-benchmark", "--system", "codec"),
    "results.csv": ("csv",),
    "results.json": ("json", "--system", "mydb", "--workload", "answers"),
    "tsbs-load.txt": ("tsbs", "--system", "cratedb", "--release", "6.2.0", "--workload", "cpu-only"),
    "ycsb-new.txt": ("ycsb", *NAMED),
}


def run(paths: DataPaths, *arguments: str | Path) -> str:
    """Import; raise what it raises, return what it prints."""
    given = [*map(str, arguments), "--data", str(paths.data)]
    result = CliRunner().invoke(import_results, given, catch_exceptions=False, standalone_mode=False)
    return result.stdout


def import_sample(paths: DataPaths, name: str) -> str:
    """Import a file of tests/data/imports."""
    kind, *options = FILES[name]
    return run(paths, "--format", kind, *options, IMPORTS / name)


def trials(paths: DataPaths) -> tuple[Trial, ...]:
    """Return all trials of the history."""
    with open_history(paths.history, read_only=True) as opened:
        return opened.trials()


def write_rows(path: Path, rows: Sequence[str]) -> Path:
    """Write a table of time, release and value."""
    path.write_text("\n".join(["time,release,metric,value", *rows]) + "\n", encoding="utf-8")
    return path


def test_every_format_is_judged_rebuilt_and_known_again(paths: DataPaths) -> None:
    for name in FILES:
        assert "0 trials" not in import_sample(paths, name)
    with open_history(paths.history, read_only=True) as opened:
        digest, observations = opened.tables_digest(), opened.observations()
    assert {one.purpose for one in observations} == {Purpose.IMPORTED}
    assert {one.status for one in observations} == {TrialStatus.COMPLETED}
    assert {one.key.engine for one in observations} == {
        *("cassandra-stress", "latte", "pytest-benchmark", "imported", "tsbs", "ycsb"),
    }
    paths.history.unlink()
    rebuild(paths.history, bundle.find(paths), lambda _text: None)
    for name in FILES:
        assert "0 trials imported" in import_sample(paths, name)
    with open_history(paths.history, read_only=True) as opened:
        assert opened.tables_digest() == digest


def test_the_end_says_what_came_in_and_what_is_next(paths: DataPaths) -> None:
    first, second = import_sample(paths, "results.csv").splitlines()
    assert first == "3 trials imported, 2 series"
    assert second.startswith(f"next: knickpoint detect --data {paths.data}, ")
    assert import_sample(paths, "results.csv").startswith("0 trials imported (3 known already), 2 ser")


def test_trials_of_a_table_are_named_by_their_rows(paths: DataPaths) -> None:
    import_sample(paths, "results.csv")
    first, *_ = trials(paths)
    assert (first.release.line, first.release.ordinal, first.release.version) == ("5.0", 4, "5.0.4")
    assert (first.experiment, first.workload.name, first.night) == (
        "mydb-orders",
        "orders",
        "2026-02-13",
    )
    assert first.started_at == datetime(2026, 2, 13, 1, tzinfo=UTC)
    with open_history(paths.history, read_only=True) as opened:
        found = set(opened.environments()[first.id].items())
    assert ("kernel", "6.1.0-17") in found
    assert "knickpoint" not in {name for name, _ in found}


def test_what_came_out_of_a_run_is_kept_but_explains_nothing(paths: DataPaths) -> None:
    import_sample(paths, "cassandra-stress.txt")
    (trial,) = trials(paths)
    assert ("total operation time", "00:05:00") in {(f.name, f.value) for f in trial.environment_after}
    with open_history(paths.history, read_only=True) as opened:
        names = set(opened.environments()[trial.id])
    assert names == {"threads", "config imported", "testbed imported", "topology imported"}


def test_options_win_over_the_file(paths: DataPaths) -> None:
    options = [*NAMED, "--line", "5.0", "--ordinal", "4", "--workload", "orders", "--testbed", "lab"]
    options += [
        "--experiment",
        "x",
        "--night",
        "2026-01-31",
        "--started-at",
        "2026-02-01T02:00:00+02:00",
    ]
    run(paths, "--format", "latte", *options, IMPORTS / "latte.json")
    (trial,) = trials(paths)
    assert (trial.release.line, trial.release.ordinal, trial.release.version) == ("5.0", 4, "5.0.4")
    assert (trial.workload.name, trial.testbed_class, trial.experiment) == ("orders", "lab", "x")
    assert trial.night == "2026-01-31"
    assert trial.started_at == datetime(2026, 2, 1, tzinfo=UTC)
    assert (trial.finished_at - trial.started_at).total_seconds() == pytest.approx(60.222)


def test_a_file_without_a_time_is_as_old_as_it_is_and_still_known_when_touched(
    paths: DataPaths, tmp_path: Path
) -> None:
    copy = tmp_path / "run.txt"
    copy.write_bytes((IMPORTS / "ycsb-new.txt").read_bytes())
    os.utime(copy, (1_771_034_400, 1_771_034_400))
    arguments = ("--format", "ycsb", *NAMED, copy)
    run(paths, *arguments)
    os.utime(copy, (1_771_120_800, 1_771_120_800))
    assert "0 trials imported (1 known already)" in run(paths, *arguments)
    (trial,) = trials(paths)
    assert trial.started_at == datetime.fromtimestamp(1_771_034_400, UTC)


def test_builds_of_a_moving_target_are_ordered_by_time(paths: DataPaths, tmp_path: Path) -> None:
    builds = ("zulu", "alpha", "mike")
    rows = [f"2026-02-0{day}T01:00Z,{build},throughput,{day}" for day, build in enumerate(builds, 1)]
    options = ("--format", "csv", "--system", "db", "--workload", "w")
    run(paths, *options, write_rows(tmp_path / "a.csv", rows))
    with open_history(paths.history, read_only=True) as opened:
        found = opened.observations()
    assert [(one.release.version, one.value) for one in found] == [
        ("zulu", 1.0),
        ("alpha", 2.0),
        ("mike", 3.0),
    ]
    assert {(one.release.line, one.release.ordinal) for one in found} == {("nightly", 0)}


def test_what_is_imported_every_night_is_news_where_that_is_said(
    paths: DataPaths, tmp_path: Path
) -> None:
    table = write_rows(tmp_path / "a.csv", ["2026-02-01T01:00Z,one,throughput,1"])
    options = ("--format", "csv", "--system", "db", "--workload", "w")
    run(paths, *options, "--scheduled", table)
    assert [trial.purpose for trial in trials(paths)] == [Purpose.SCHEDULED]


@pytest.mark.slow
def test_imports_in_any_order_give_the_same_rows_as_in_order(tmp_path: Path) -> None:
    rows = [f"2026-02-{day:02}T01:00Z,build-{day},throughput,{100 + day}" for day in range(1, 13)]
    backfilled = rows.copy()
    random.Random(3).shuffle(backfilled)  # noqa: S311  an order, not a secret
    kept = []
    for name, order in (("in order", rows), ("at once", backfilled), ("one by one", backfilled)):
        paths = DataPaths(tmp_path / name)
        parts = [[row] for row in order] if name == "one by one" else [order]
        for number, part in enumerate(parts):
            path = write_rows(tmp_path / f"{name}-{number}.csv", part)
            run(paths, "--format", "csv", "--system", "db", "--workload", "w", path)
        with open_history(paths.history, read_only=True) as opened:
            kept.append((opened.tables_digest(), opened.observations(), opened.environments()))
    assert [one.value for one in kept[0][1]] == [100.0 + day for day in range(1, 13)]
    assert kept[0] == kept[1] == kept[2]


def test_nothing_is_imported_if_anything_is_wrong(paths: DataPaths, tmp_path: Path) -> None:
    good = write_rows(tmp_path / "good.csv", ["2026-02-01,1,throughput,1"])
    bad = write_rows(tmp_path / "bad.csv", ["2026-02-01,1,throughput,x", "2026-02-01,,speed,1"])
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError) as caught:
        run(paths, "--format", "csv", "--system", "db", good, bad, binary)
    assert UsageError.exit_code == 2
    head, *problems = str(caught.value).splitlines()
    assert head == "4 problems, so nothing was imported:"
    assert [problem.split(": ")[0].strip() for problem in problems] == [
        f"{good}, line 2",
        f"{bad}, line 2",
        f"{bad}, line 3",
        str(binary),
    ]
    assert "it has no workload; set it with --workload" in problems[0]
    assert not paths.data.exists()


def test_names_that_cannot_be_printed_are_refused(paths: DataPaths, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.csv", ["2026-02-01,1\x1b[31m,throughput,1"])
    with pytest.raises(UsageError) as caught:
        run(paths, "--format", "csv", "--system", "db", "--workload", "a\x07", path)
    _, *problems = str(caught.value).splitlines()
    why = "holds characters that cannot be printed; rename it"
    assert [problem.strip() for problem in problems] == [
        f"{path}, line 2: experiment 'db-a\\x07' {why}",
        f"{path}, line 2: release '1\\x1b[31m' {why}",
        f"{path}, line 2: workload 'a\\x07' {why}",
    ]
    assert not paths.data.exists()


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+02:00", "9999-12-31T23:59:59-02:00"])
def test_a_time_that_utc_cannot_hold_is_refused(paths: DataPaths, tmp_path: Path, time: str) -> None:
    path = write_rows(tmp_path / "a.csv", [f"{time},1,throughput,1"])
    named = ("--format", "csv", "--system", "db", "--workload", "w")
    why = f"{path}, line 2: its time lies outside of the years 1 to 9999 in UTC"
    with pytest.raises(UsageError, match=re.escape(why)):
        run(paths, *named, path)
    sound = write_rows(tmp_path / "b.csv", ["2026-02-01,1,throughput,1"])
    with pytest.raises(UsageError, match="outside of the years 1 to 9999"):
        run(paths, *named, "--started-at", time, sound)


def test_a_start_is_of_one_file_only(paths: DataPaths) -> None:
    with pytest.raises(UsageError, match="one by one"):
        run(paths, "--format", "tsbs", "--started-at", "2026-02-01", *IMPORTS.glob("tsbs-*.txt"))


def test_an_imported_histogram_answers_for_any_percentile(paths: DataPaths) -> None:
    options = ("--format", "hdr", *NAMED, "--workload", "w")
    run(paths, *options, IMPORTS / "cassandra-stress.hdr")
    arguments = ["percentile", "--release", "5.0.4", "--experiment", "cassandra-w"]
    arguments += ["--percentile", "75", "--data", str(paths.data)]
    printed = CliRunner().invoke(history, arguments, catch_exceptions=False, standalone_mode=False)
    first, second = printed.stdout.splitlines()
    assert first == "response_time of write in run, all iterations, 1 trial"
    assert float(second.split()[1]) == pytest.approx(2.5, rel=2e-3)
