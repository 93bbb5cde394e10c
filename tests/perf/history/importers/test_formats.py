"""Each foreign format: what is taken from a file, under which metric, and what is refused."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from perf.history.importers.formats import FORMATS
from perf.history.importers.run import File, ForeignRun, Naming, Unreadable

IMPORTS = Path(__file__).parents[3] / "data" / "imports"


def read(kind: str, text: str, *, times: str | None = None) -> ForeignRun:
    """Read the only run of a text."""
    (run,) = FORMATS[kind].read(File(name="file", text=text, said=Naming(times=times)))
    return run


def read_sample(kind: str, name: str, *, times: str | None = None) -> ForeignRun:
    """Read the only run of a file in tests/data/imports."""
    return read(kind, (IMPORTS / name).read_text(encoding="utf-8"), times=times)


def values(run: ForeignRun, operation: str, phase: str = "run") -> Mapping[tuple[str, str], float]:
    """Return the values of an operation by metric and statistic."""
    return {
        (sample.metric, sample.statistic): sample.value
        for sample in run.samples
        if (sample.operation, sample.phase) == (operation, phase)
    }


def names(run: ForeignRun) -> set[str]:
    """Return the names of all facts of a run."""
    return {fact.name for fact in (*run.settings, *run.findings)}


def refuse(kind: str, text: str) -> tuple[str, ...]:
    """Return what is said of a bad text."""
    with pytest.raises(Unreadable) as caught:
        FORMATS[kind].read(File(name="file", text=text))
    return caught.value.problems


def test_ycsb_shows_service_time_from_response_time() -> None:
    run = read_sample("ycsb", "ycsb-new.txt")
    assert values(run, "all") == {("throughput", "mean"): 19876.35912095687}
    assert values(run, "read") == pytest.approx(
        {
            ("service_time", "mean"): 0.6982516,
            ("service_time", "min"): 0.112,
            ("service_time", "max"): 61.503,
            ("service_time", "p50"): 0.561,
            ("service_time", "p95"): 1.384,
            ("service_time", "p99"): 2.595,
            ("service_time", "p99.9"): 10.247,
            ("response_time", "mean"): 1.2049133,
            ("response_time", "min"): 0.115,
            ("response_time", "max"): 92.671,
            ("response_time", "p50"): 0.640,
            ("response_time", "p95"): 3.101,
            ("response_time", "p99"): 9.215,
            ("response_time", "p99.9"): 44.671,
        }
    )
    assert {sample.operation for sample in run.samples} == {"all", "read", "update"}
    assert run.stated.workload == "workloada"
    settings = {fact.name: fact.value for fact in run.settings}
    assert settings["threads"] == "32"
    assert settings["ycsb"] == "0.17.0"
    assert "CLEANUP Operations" in names(run)


def test_a_password_on_a_command_line_is_not_kept() -> None:
    for run in (read_sample("ycsb", "ycsb-new.txt"), read_sample("latte", "latte.json")):
        assert "not-for-print" not in repr(run)
        assert not any("password" in name for name in names(run))


def test_ycsb_of_the_first_years_speaks_of_milliseconds_and_prints_buckets() -> None:
    run = read_sample("ycsb", "ycsb-old.txt")
    assert values(run, "read") == {
        ("service_time", "mean"): 1.0054548,
        ("service_time", "min"): 0.161,
        ("service_time", "max"): 343.52,
        ("service_time", "p95"): 2.0,
        ("service_time", "p99"): 5.0,
    }
    assert run.stated.workload == "workloadc"


def test_ycsb_with_intended_times_only_calls_response_time_plainly() -> None:
    text = (
        (IMPORTS / "ycsb-old.txt").read_text().replace("-t\n", "-p measurement.interval=intended -t\n")
    )
    assert ("response_time", "p99") in values(read("ycsb", text), "read")
    assert ("duration", "p99") in values(read("ycsb", text, times="duration"), "read")


def test_ycsb_of_two_measurements_gives_the_exact_one() -> None:
    text = (
        "[OVERALL], Throughput(ops/sec), 100.0\n"
        "[HdrREAD], Operations, 5\n[HdrREAD], 99thPercentileLatency(us), 4321\n"
        "[BucketREAD], Operations, 5\n[BucketREAD], 99thPercentileLatency(us), 4000\n"
    )
    text += "[HdrIntended-CLEANUP], Operations, 1\n[HdrIntended-CLEANUP], MaxLatency(us), 5\n"
    run = read("ycsb", text)
    assert values(run, "read") == {("service_time", "p99"): 4.321}
    assert {sample.operation for sample in run.samples} == {"all", "read"}


def test_cassandra_stress_gives_each_operation() -> None:
    run = read_sample("cassandra-stress", "cassandra-stress.txt")
    assert values(run, "read") == {
        ("throughput", "mean"): 13514.0,
        ("row_throughput", "mean"): 13514.0,
        ("service_time", "mean"): 3.8,
        ("service_time", "p50"): 3.1,
        ("service_time", "p95"): 8.1,
        ("service_time", "p99"): 15.3,
        ("service_time", "p99.9"): 42.0,
        ("service_time", "max"): 1203.6,
    }
    assert values(run, "all")["throughput", "mean"] == 18020.0
    assert values(run, "write")["service_time", "max"] == 87.3
    assert {"total errors", "total operation time"} <= names(run)


def test_cassandra_stress_of_2_1_with_several_numbers_of_threads_has_a_phase_each() -> None:
    run = read_sample("cassandra-stress", "cassandra-stress-old.txt")
    assert {(sample.phase, sample.operation) for sample in run.samples} == {
        ("4-threads", "write"),
        ("8-threads", "write"),
    }
    assert values(run, "write", "8-threads")["throughput", "mean"] == 7102.0


def test_cassandra_stress_with_a_fixed_rate_counts_from_the_intended_start() -> None:
    text = (IMPORTS / "cassandra-stress.txt").read_text()
    run = read(
        "cassandra-stress", "cassandra-stress write n=1000 -rate threads=8 fixed=5000/s\n" + text
    )
    assert ("response_time", "p99") in values(run, "read")


def test_a_decimal_comma_is_refused_because_it_looks_like_a_thousands_one() -> None:
    problems = refuse("cassandra-stress", "Results:\nOp rate : 6.070 op/s\nLatency mean : 32,8 ms\n")
    assert len(problems) == 1
    assert problems[0].startswith("file, line 3: latency mean")


def test_latte_has_service_times_of_cycles_and_requests() -> None:
    run = read_sample("latte", "latte.json")
    assert values(run, "cycle") == {
        ("throughput", "mean"): 4981.57,
        ("row_throughput", "mean"): 4981.57,
        ("service_time", "mean"): 1.21,
        ("service_time", "min"): 0.402,
        ("service_time", "p50"): 1.104,
        ("service_time", "p99"): 3.302,
        ("service_time", "p99.9"): 9.806,
        ("service_time", "max"): 41.22,
    }
    assert values(run, "request")["throughput", "mean"] == 9963.14
    assert {sample.operation for sample in run.samples} == {"cycle", "request"}
    assert (run.stated.release, run.stated.workload) == ("5.0.4", "read")
    assert run.stated.started_at == datetime(2026, 2, 14, 2, 0, 0, 512_000, UTC)
    assert {"rate", "threads", "connection.db"} <= {fact.name for fact in run.settings}
    assert "timestamp" not in {fact.name for fact in run.settings}


def test_latte_with_too_few_percentiles_is_refused() -> None:
    text = (IMPORTS / "latte.json").read_text().replace("99.9000015258789, 100.0]", "100.0]")
    assert "4 percentiles are announced" in refuse("latte", text)[0]
    assert "result" in refuse("latte", '{"conf": {}, "percentiles": []}')[0]


def test_tsbs_loads_rows_and_metrics() -> None:
    run = read_sample("tsbs", "tsbs-load.txt")
    assert values(run, "insert-metric", "load") == {("throughput", "mean"): 1186595.86}
    assert values(run, "insert-row", "load") == {("throughput", "mean"): 118659.59}
    assert run.stated.started_at == datetime.fromtimestamp(1770948010, UTC)
    assert {fact.name: fact.value for fact in run.settings} == {"workers": "8"}


def test_tsbs_queries_are_read_where_the_run_is_complete() -> None:
    run = read_sample("tsbs", "tsbs-queries.txt")
    assert values(run, "all queries") == {("throughput", "mean"): 61.99}
    assert values(run, "TimescaleDB last row per host") == {
        ("service_time", "min"): 4.42,
        ("service_time", "p50"): 6.75,
        ("service_time", "mean"): 16.05,
        ("service_time", "max"): 209.67,
    }


def test_tsbs_figures_under_wrong_labels_are_left_out() -> None:
    run = read_sample("tsbs", "tsbs-queries-mislabelled.txt")
    (operation,) = {sample.operation for sample in run.samples} - {"all queries"}
    assert values(run, operation) == {
        ("service_time", "min"): 3.10,
        ("service_time", "max"): 35.71,
        ("service_time", "mean"): pytest.approx(12.5),  # 2.5 s of 200 queries; the label says 31.02
    }


def test_pytest_benchmark_gives_durations() -> None:
    run = read_sample("pytest-benchmark", "pytest-benchmark.json")
    assert values(run, "tests/test_codec.py::test_encode") == pytest.approx(
        {("duration", "min"): 1.0421, ("duration", "p50"): 1.1003, ("duration", "mean"): 1.1204}
    )
    assert run.stated.release == "0c4bd1d6f0a1"
    assert run.stated.started_at == datetime(2026, 2, 14, 1, 30, 5, 221001, UTC)
    settings = {fact.name: fact.value for fact in run.settings}
    assert settings["release"] == "6.1.0-18-amd64"
    assert settings["cpu.flags"] == "avx, avx2"
    # The clock is another each time, and so is the commit: they explain no change.
    assert {"cpu.hz_actual_friendly", "commit id", "commit time"} <= {
        fact.name for fact in run.findings
    }


@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_a_foreign_text_is_refused_by_each_format(kind: str) -> None:
    for text in ("", "hello\nworld\n", "{}", '{"a": ['):
        assert all(problem.startswith("file") for problem in refuse(kind, text))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("ycsb", "[OVERALL], Throughput(ops/sec), NaN\n[READ], 99thPercentileLatency(us), fast\n"),
        ("cassandra-stress", "Results:\nOp rate : 1 op/s\nLatency mean : NaN ms\nLatency max : fast\n"),
        ("tsbs", "loaded 1 rows in 1sec with 1 workers (mean rate +Inf rows/sec)\n" * 2),
    ],
)
def test_all_bad_numbers_are_reported_at_once_with_their_lines(kind: str, text: str) -> None:
    problems = refuse(kind, text)
    assert len(problems) == 2
    assert all(problem.startswith("file, line ") for problem in problems)


def test_two_runs_in_a_file_are_refused() -> None:
    text = "[OVERALL], Throughput(ops/sec), 100.0\n"
    assert "one file holds one run" in refuse("ycsb", text * 2)[0]
    text = "Run complete after 1 queries with 1 workers (Overall query rate 1.0 queries/sec):\n"
    assert "split the file" in refuse("tsbs", text * 2)[0]


@pytest.mark.parametrize(
    ("printed", "counts"),
    [
        # Of workload F: what a read-modify-write reads and updates is counted there, too.
        (
            (
                "[READ], Operations, 1000\n[UPDATE], Operations, 400\n"
                "[READ-MODIFY-WRITE], Operations, 400\n[Intended-READ], Operations, 1000\n"
            ),
            {"read": (600, 0), "update": (0, 0), "read-modify-write": (400, 0)},
        ),
        (
            (
                "[READ], Operations, 90\n[READ-ERROR], Operations, 7\n[READ-NOT_FOUND], Operations, 3\n"
                "[CLEANUP], Operations, 4\n[INSERT-FAILED], Operations, 2\n"
            ),
            {"read": (90, 10), "insert": (0, 2)},
        ),
    ],
)
def test_ycsb_counts_each_operation_once(printed: str, counts: dict[str, tuple[int, int]]) -> None:
    text = f"[OVERALL], Throughput(ops/sec), 7\n{printed}"
    (run,) = FORMATS["ycsb"].read(File(name="printed", text=text))
    assert {one.operation: (one.completed, one.failed) for one in run.done} == counts


def test_of_lattes_cycles_those_that_failed_are_not_completed() -> None:
    text = (IMPORTS / "latte.json").read_text().replace('"error_count": 0', '"error_count": 12')
    (run,) = FORMATS["latte"].read(File(name="report", text=text))
    assert [(one.completed, one.failed) for one in run.done] == [(300_000 - 12, 12)]
