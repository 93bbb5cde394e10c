"""Published figures: which series each stands beside, and those that are shipped."""

from dataclasses import replace

import pytest
from catalogs import shipped

from perf.model.references import Reference, Report, cells, references_for
from perf.model.results import SeriesKey

REPORTS = {
    *("iot-mongodb8-cassandra5", "put-get-mongodb2-cassandra08", "tsbs-cratedb-mongodb"),
    *("ycsb-cassandra-ssd", "ycsb-mongodb-scylladb"),
}
FIGURE = Reference(
    system="cassandra",
    line="5.0",
    workload="sensor-write",
    phase="saturation",
    operation="write",
    metric="throughput",
    statistic="mean",
    value=987_000.0,
    source="Made up.",
    url="https://example.org/report",
    note="Everything differs.",
)
KEY = SeriesKey(
    system="cassandra",
    line="5.0",
    topology="local-three",
    testbed_class="local",
    config="default",
    workload="sensor-write@0123456789ab",
    engine="python",
    phase="saturation",
    operation="write",
    metric="throughput",
    statistic="mean",
)


@pytest.mark.parametrize(
    "change",
    [
        *({"topology": "rack-three"}, {"testbed_class": "lab"}, {"config": "tuned"}),
        *({"engine": "native"}, {"workload": "sensor-write@ba9876543210"}),
    ],
)
def test_what_a_note_can_tell_keeps_no_figure_away(change: dict[str, str]) -> None:
    assert references_for(replace(KEY, **change), [FIGURE]) == (FIGURE,)


@pytest.mark.parametrize(
    "change",
    [
        *({"system": "mongodb"}, {"line": "4.1"}, {"workload": "sensor-write-short@0123456789ab"}),
        *({"phase": "steady"}, {"operation": "read-latest"}, {"metric": "operations_per_dollar"}),
        *({"statistic": "p50"}, {"host": "node-1"}),
    ],
)
def test_a_figure_stands_beside_no_other_series(change: dict[str, str]) -> None:
    assert references_for(replace(KEY, **change), [FIGURE]) == ()


def test_figures_keep_their_order_and_one_without_a_line_is_about_all() -> None:
    any_line = replace(FIGURE, line=None, value=1.0)
    assert references_for(KEY, (any_line, FIGURE)) == (any_line, FIGURE)
    assert references_for(replace(KEY, line="4.1"), (any_line, FIGURE)) == (any_line,)


def test_a_figure_stands_beside_the_workload_at_any_scale() -> None:
    small = replace(KEY, workload="sensor-write-by-1000@0123456789ab")
    assert references_for(small, [FIGURE]) == (FIGURE,)


def test_each_shipped_report_can_be_read_and_says_what_must_not_be_compared() -> None:
    reports = shipped().reports
    assert {one.name for one in reports} == REPORTS
    assert all(one.not_compared and one.left_open for one in reports)


def test_the_shipped_figures_for_a_kilobyte_are_those_of_their_source() -> None:
    references = shipped().references
    figures = {
        (one.system, one.version, one.metric, one.statistic): one.value
        for one in references
        if one.workload == "sensor-write"
    }
    # The report's table for payloads of 1 KB: writes per second, p50 and p99 in milliseconds.
    assert figures == {
        ("cassandra", "5.0.0", "throughput", "mean"): 987_000,
        ("cassandra", "5.0.0", "response_time", "p50"): 1.1,
        ("cassandra", "5.0.0", "response_time", "p99"): 5.1,
        ("mongodb", "8.0.0", "throughput", "mean"): 1_210_000,
        ("mongodb", "8.0.0", "response_time", "p50"): 1.2,
        ("mongodb", "8.0.0", "response_time", "p99"): 8.4,
    }
    assert [one.value for one in references_for(KEY, references)] == [987_000]


def values(report: Report, table: str) -> dict[tuple[str, str], float | None]:
    """Return the published values of a table by row and column."""
    (found,) = (one for one in report.tables if one.name == table)
    names = [column.name for column in found.columns]
    return {
        (row.name, name): value
        for row in found.rows
        for name, value in zip(names, row.values, strict=True)
    }


def shipped_report(name: str) -> Report:
    return next(one for one in shipped().reports if one.name == name)


def test_published_ratios_are_those_of_the_published_figures() -> None:
    found = values(shipped_report("ycsb-cassandra-ssd"), "operations")
    for row in ("a", "b", "c", "d", "f"):
        for disks in ("one", "two"):
            ratio, of, over = (
                found[row, column] or 0.0 for column in (f"{disks}-ratio", f"{disks}-ssd", "baseline")
            )
            assert ratio == pytest.approx(of / over, abs=0.06)


def test_published_scaling_factors_are_those_of_the_published_throughput() -> None:
    report = shipped_report("ycsb-mongodb-scylladb")
    table = next(one for one in report.tables if one.name == "caching")
    named = [column.name for column in table.columns]
    found = {
        (spot.subject, spot.workload): row.values[named.index(column.name)]
        for row, column, spot in cells(table)
    }
    reported = [one for one in report.scalings if "caching" in one.title and one.published_percent]
    assert len(reported) == 6
    for one in reported:
        growth = (found[one.large, one.large_workload] or 0) / (
            found[one.small, one.small_workload] or 1
        )
        assert one.published_percent == pytest.approx(100 * growth, abs=1)


@pytest.mark.parametrize("system", ["cassandra", "mongodb"])
def test_both_tables_of_the_put_get_report_have_its_twelve_runs(system: str) -> None:
    report = shipped_report("put-get-mongodb2-cassandra08")
    found = values(report, system)
    assert len({row for row, _ in found}) == 12
    assert all(value is not None for value in found.values())
    phases = [spot.phase for one in report.tables if one.name == system for _, _, spot in cells(one)]
    assert list(dict.fromkeys(phases))[:6] == ["put-1", "get-1", "get-2", "get-3", "put-2", "put-3"]
    # Of 20 threads in a closed loop, each waits for the mean: rate × mean is their number.
    for row in ("put-1", "get-1", "get-4", "put-get-1", "get-7"):
        rate, mean = (found[row, column] or 0.0 for column in ("rate", "mean"))
        assert rate * mean / 1000 == pytest.approx(20, rel=0.01)


def test_the_published_spread_of_put_get_is_that_of_four_identical_runs() -> None:
    report = shipped_report("put-get-mongodb2-cassandra08")
    for name, first in (("variability-puts", "put-1"), ("variability-gets", "get-1")):
        found = values(report, name)
        runs = sorted({row for row, _ in found})
        assert len(runs) == 4
        # One of the four is the run of the table above.
        whole = values(report, "mongodb")
        columns = [column for row, column in found if row == runs[0]]
        assert [found[runs[2], one] for one in columns] == [whole[first, one] for one in columns]
    gets = values(report, "variability-gets")
    longest = [gets[row, "max"] for row in sorted({row for row, _ in gets})]
    assert longest == [4665, 13_211, 4684, 22_285]
