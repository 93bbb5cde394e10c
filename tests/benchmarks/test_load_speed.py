"""How fast the load engine's own work is: what it costs beside the database. No time is asserted."""

import random
from collections.abc import Sequence

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from perf.load.engine.recorder import OperationKind, Recorder
from perf.load.histogram import encode, make_histogram
from perf.model.records import Answer, Sensor
from perf.workloads.sensor import check_latest, expected_latest, reading

RECORDS = Sensor(kind="sensor", devices=1000, payload_bytes=1000)
SEED = 42
ROWS = 1_000_000
DEVICE = 5
OPERATIONS = 10_000
GROUP = "10 000 operations into two histograms"


def draw_operations() -> list[tuple[float, float, float]]:
    """Return one second of operations as an engine logs them: intended start, send, end."""
    generator = random.Random(SEED)  # noqa: S311  test data, not a secret
    rows = []
    for number in range(OPERATIONS):
        intended_s = number / OPERATIONS
        sent_s = intended_s + generator.expovariate(5000)
        rows.append((intended_s, sent_s, sent_s + generator.lognormvariate(-6.2, 0.6)))
    return rows


def record_one_by_one(rows: Sequence[tuple[float, float, float]]) -> tuple[str, str]:
    """Do what a fold does with its histograms, by the library's own call for a single value."""
    response, service = make_histogram(), make_histogram()
    for intended_s, sent_s, ended_s in rows:
        response.record_value(round((ended_s - intended_s) * 1e6))
        service.record_value(round((ended_s - sent_s) * 1e6))
    return encode(response), encode(service)


def test_make_a_reading(benchmark: BenchmarkFixture) -> None:
    benchmark(reading, RECORDS, SEED, ROWS - 1)


def test_check_a_read_of_ten_rows(benchmark: BenchmarkFixture) -> None:
    rows = expected_latest(RECORDS, SEED, ROWS, DEVICE, 10)
    answer = benchmark(check_latest, RECORDS, SEED, ROWS, DEVICE, count=10, answer=rows)
    assert answer is Answer.COMPLETED


Rows = Sequence[tuple[float, float, float]]


def append_and_fold(recorder: Recorder, rows: Rows) -> tuple[str, ...]:
    """Do all that an engine does for two histograms: one step per operation, then a fold."""
    note = recorder.logs["write"].completed.extend
    for row in rows:
        note(row)
    return tuple(one.encoded for one in recorder.fold())


@pytest.mark.benchmark(group=GROUP)
def test_append_and_fold(benchmark: BenchmarkFixture) -> None:
    rows = draw_operations()

    def begin() -> tuple[tuple[Recorder, Rows], dict[str, object]]:
        recorder = Recorder((OperationKind(operation="write"),), 0.0)
        recorder.begin_stage("steady", 0.0)
        return (recorder, rows), {}

    folded = benchmark.pedantic(append_and_fold, setup=begin, rounds=50, warmup_rounds=1)
    # The comparison below is fair only if both give the same.
    assert folded == record_one_by_one(rows)
    tell_cost(benchmark)


@pytest.mark.benchmark(group=GROUP)
def test_record_one_by_one(benchmark: BenchmarkFixture) -> None:
    benchmark.pedantic(record_one_by_one, args=(draw_operations(),), rounds=10, warmup_rounds=1)
    tell_cost(benchmark)


def tell_cost(benchmark: BenchmarkFixture) -> None:
    if benchmark.stats:  # there are none when benchmarks are skipped or run as plain tests
        benchmark.extra_info["ns_per_operation"] = round(benchmark.stats["min"] / OPERATIONS * 1e9)
