"""HdrHistogram logs: two of them as HdrHistogram 2.1.12 for Java writes them, others made here."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram

from perf.history.importers import hdr
from perf.history.importers.run import File, ForeignRun, Naming, Unreadable

IMPORTS = Path(__file__).parents[3] / "data" / "imports"
START_S = 1_771_034_400


def make_line(tag: str, start_s: float, values: Sequence[int]) -> str:
    """Return the line of one interval of a second."""
    histogram = HdrHistogram(1, 24 * 3600 * 10**9, 3)
    for value in values:
        histogram.record_value(value)
    named = f"Tag={tag}," if tag else ""
    highest = histogram.get_max_value() / 1e6
    return f"{named}{start_s:.3f},1.000,{highest:.3f},{histogram.encode().decode()}\n"


def make_log(
    *lines: str,
    head: str = f"#[BaseTime: {START_S}.000 (seconds since epoch)]",
    said: Naming = Naming(),  # noqa: B008  it is frozen
) -> File:
    """Return a log with these intervals, which begin in line 4."""
    legend = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'
    text = f"#[Histogram log format version 1.3]\n{head}\n{legend}\n" + "".join(lines)
    return File(name="file", text=text, said=said)


def read_sample(name: str) -> ForeignRun:
    """Read a log in tests/data/imports."""
    return read(File(name="file", text=(IMPORTS / name).read_text(encoding="utf-8")))


def read(file: File) -> ForeignRun:
    """Read the only run of a log."""
    (run,) = hdr.read(file)
    return run


def values(run: ForeignRun, operation: str) -> dict[tuple[str, str], float]:
    """Return the values of an operation by metric and statistic."""
    return {(s.metric, s.statistic): s.value for s in run.samples if s.operation == operation}


def test_a_log_of_cassandra_stress_is_in_nanoseconds_and_shows_three_times() -> None:
    run = read_sample("cassandra-stress.hdr")  # 200 values from 0 to 2 ms a second; 1 ms of waiting
    found = values(run, "write")
    assert found["service_time", "p50"] == pytest.approx(1.0, rel=2e-3)
    assert found["service_time", "max"] == pytest.approx(2.0, rel=2e-3)
    assert found["service_time", "mean"] == pytest.approx(1.005, rel=2e-3)
    assert found["response_time", "p99"] == pytest.approx(2.98, rel=2e-3)
    assert found["send_lateness", "p99"] == pytest.approx(1.0, rel=2e-3)
    assert found["throughput", "mean"] == 200.0
    assert [interval.start_s for interval in run.intervals] == [
        START_S + second for second in range(3) for _ in ("st", "rt", "wt")
    ]
    assert run.stated.started_at is not None
    assert run.finished_at is not None
    assert run.stated.started_at.timestamp() == START_S
    assert run.finished_at.timestamp() == START_S + 3


def test_a_log_of_ycsb_is_in_microseconds_and_counts_from_its_start() -> None:
    run = read_sample("ycsb-Intended-READ.hdr")
    found = values(run, "read")
    assert found["response_time", "p50"] == pytest.approx(2.0, rel=2e-3)
    assert ("throughput", "mean") not in found  # its operations are those of READ.hdr
    assert [interval.start_s for interval in run.intervals] == [START_S, START_S + 10]
    plain = values(read(make_log(make_line("", 0.5, [2000]), head="#[Logging for: HdrREAD]")), "read")
    assert plain["service_time", "max"] == pytest.approx(2.0, rel=1e-3)
    assert plain["throughput", "mean"] == 1.0


def test_percentiles_come_from_merged_histograms() -> None:
    generator = random.Random(7)  # noqa: S311  test data, not a secret
    seconds = [[int(generator.lognormvariate(14, 0.5)) for _ in range(500)] for _ in range(2)]
    run = read(make_log(*(make_line("W-st", n, times) for n, times in enumerate(seconds))))
    together = sorted(value / 1e6 for times in seconds for value in times)
    found = values(run, "w")
    assert found["service_time", "p50"] == pytest.approx(together[499], rel=2e-3)
    assert found["service_time", "p99"] == pytest.approx(together[989], rel=2e-3)


def test_a_log_of_unknown_origin_needs_a_word() -> None:
    line, head = make_line("get:one two", START_S + 7.0, [3, 5]), "#made by a test"
    with pytest.raises(Unreadable, match=r"line 4: .* say from where they count with --times"):
        hdr.read(make_log(line, head=head, said=Naming(unit="ms")))
    run = read(make_log(line, head=head, said=Naming(times="duration", unit="ms")))
    assert values(run, "get_one_two")["duration", "max"] == pytest.approx(5.0, rel=1e-3)
    assert run.intervals[0].start_s == START_S + 7.0


def test_empty_intervals_are_left_out_and_bad_lines_reported() -> None:
    lines = (make_line("W-st", 0.0, []), make_line("W-st", 1.0, [10**6]))
    assert len(read(make_log(*lines)).intervals) == 1
    bad = (make_line("W-st", 0.0, [1])[:40] + "\n", "not a line\n", "Tag=W-st,-1,1.0,1.0,HISTFAAAA\n")
    with pytest.raises(Unreadable) as caught:
        hdr.read(make_log(*lines, *bad))
    assert [one.split(":")[0] for one in caught.value.problems] == [
        f"file, line {number}" for number in (6, 7, 8)
    ]
    with pytest.raises(Unreadable, match="it has no interval with values"):
        hdr.read(File(name="file", text="# nothing\n"))
