"""Published figures: which series each stands beside, and those that are shipped."""

from dataclasses import replace
from pathlib import Path

import pytest

from perf.config import load_catalog
from perf.model import SeriesKey
from perf.references import Reference, references_for

CONFIGS = Path(__file__).parents[2] / "configs"
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
    reports = load_catalog(CONFIGS).reports
    assert {one.name for one in reports} <= REPORTS
    assert all(one.not_compared and one.left_open for one in reports)


def test_the_shipped_figures_for_a_kilobyte_are_those_of_their_source() -> None:
    shipped = load_catalog(CONFIGS).references
    figures = {
        (one.system, one.version, one.metric, one.statistic): one.value
        for one in shipped
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
    assert [one.value for one in references_for(KEY, shipped)] == [987_000]
