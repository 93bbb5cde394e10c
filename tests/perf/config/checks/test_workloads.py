"""Workloads that a schema takes and that would measure nothing, or nothing but misses."""

import json
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from perf.config.checks.files import ConfigFile
from perf.config.checks.workloads import check_workload
from perf.local.document import read_document
from perf.model.design import Workload

WORKLOAD = TypeAdapter(Workload)
HEAD = """\
name: tried
description: test
purpose: test
owner: test
source: test
not_comparable: test
consistency: one
preload_in_flight: 4
operation_timeout_s: 10
seed: 1
"""
SENSOR = f"{HEAD}records: {{kind: sensor, devices: 100, payload_bytes: 200, latest_count: 5}}\n"
YCSB = f"{HEAD}records: {{kind: ycsb, record_count: 1000, request_distribution: uniform}}\n"
# 90 rows at each of 100 moments, in nine batches.
DEVOPS = f"{HEAD}records: {{kind: devops, hosts: 10, span_s: 1000}}\nbatch_rows: 1000\n"
FLOORS = "floors: {records: 10, operations: 10, in_flight: 1, offered_load_ops_per_s: 10, seconds: 1}\n"
MEASUREMENTS = """\
measurements:
  - name: steady
    load: {kind: open, offered_load_ops_per_s: 100, in_flight: 4}
    warmup_s: 1
    warmup_cap_s: 1
    iteration_s: 2
    iterations: 1
"""


def sequence(*phases: str) -> str:
    listed = (f"  - {{name: phase-{n}, in_flight: 1, {one}}}\n" for n, one in enumerate(phases))
    return "".join(("sequence:\n", *listed))


LOAD, QUERY = "operation: load", "operation: double-groupby-1"
WRITE, READ = "operation: write", "operation: read-latest"
STORED = "preload_rows_per_device: 5\n"


def problems(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "tried.yaml"
    path.write_text(text)
    document = read_document(path)
    value = WORKLOAD.validate_json(json.dumps(document.tree))
    return list(check_workload(ConfigFile(document, value)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DEVOPS + f"mix: {{load: 1}}\n{MEASUREMENTS}", "only so many rows to load"),
        (DEVOPS + sequence(f"{LOAD}, operations: 10", QUERY), "there are 9 batches"),
        (DEVOPS + sequence(f"{LOAD}, operations: 8", QUERY), "no phase before it loads all rows"),
        (DEVOPS + sequence(QUERY, LOAD), "no phase before it loads all rows"),
        (DEVOPS + f"{QUERY}\n{MEASUREMENTS}", "no phase before them loads all rows"),
        (
            DEVOPS.replace("1000}", "1000, interval_s: 1001}") + sequence(LOAD),
            "span_s is 1000, so there would be no rows",
        ),
        (SENSOR + sequence(READ), "preload at least as many"),
        (SENSOR + "dataset: kept\n" + sequence(WRITE), "there is nothing to keep"),
        (DEVOPS + "dataset: kept\n" + sequence(LOAD, QUERY), "there is nothing to keep"),
        (SENSOR + STORED + sequence(WRITE, READ), "after a phase that writes rows"),
        (
            SENSOR + STORED + sequence(WRITE) + f"{READ}\n{MEASUREMENTS}",
            "measurements only read, after",
        ),
        (YCSB + sequence("operation: insert", "operation: read"), "nothing is stored that read could"),
        (YCSB + f"mix: {{insert: 1, scan: 1}}\n{MEASUREMENTS}", "add `preload: records`"),
        *(
            (
                YCSB
                + f"preload: records\noperation: read\n{MEASUREMENTS}"
                + FLOORS.replace(f"{name}: {floor}", f"{name}: {above}"),
                f"floors.{name} is {above}, but what is written is",
            )
            for name, floor, above in [
                ("records", 10, 1001),
                ("in_flight", 1, 5),
                ("offered_load_ops_per_s", 10, 101),
                ("seconds", 1, 3),
            ]
        ),
        (
            DEVOPS.replace("1000}", "1000, queries: 9}") + sequence(LOAD, QUERY) + FLOORS,
            "floors.operations is 10, but what is written is 9",
        ),
    ],
)
def test_what_would_measure_nothing_is_reported(tmp_path: Path, text: str, expected: str) -> None:
    (said,) = problems(tmp_path, text)
    assert expected in said


@pytest.mark.parametrize(
    "text",
    [
        DEVOPS + sequence(LOAD, QUERY) + FLOORS,
        DEVOPS + sequence(f"{LOAD}, operations: 2"),
        SENSOR + "batch_rows: 10\n" + sequence(WRITE),
        SENSOR + STORED + sequence(READ, WRITE) + f"mix: {{write: 1, read-latest: 1}}\n{MEASUREMENTS}",
        SENSOR + STORED + "dataset: kept\n" + sequence(READ, WRITE),
        YCSB + sequence("operation: insert"),
        YCSB + f"preload: records\noperation: read\n{MEASUREMENTS}{FLOORS}",
    ],
)
def test_what_measures_something_is_taken(tmp_path: Path, text: str) -> None:
    assert problems(tmp_path, text) == []


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        (SENSOR, "devices: 100", "devices: 1000000000000"),
        (SENSOR, "payload_bytes: 200", "payload_bytes: 100000000"),
        (SENSOR, "latest_count: 5", "latest_count: 1000000"),
        (YCSB, "record_count: 1000", "record_count: 1000000000000000000"),
        (YCSB, "uniform", "uniform, field_length: 100000000"),
        (DEVOPS, "hosts: 10", "hosts: 1000000000"),
        (DEVOPS, "span_s: 1000", "span_s: 10000000000"),
        (HEAD + "records: {kind: put-get, keys: 7}\n", "keys: 7", "keys: 1000000000000000000"),
        (HEAD + "records: {kind: put-get, keys: 7}\n", "7", "7, value_bytes_range: 10000000000000"),
    ],
)
def test_a_slip_of_some_zeros_is_refused(tmp_path: Path, text: str, before: str, after: str) -> None:
    with pytest.raises(ValidationError, match="less than or equal to"):
        problems(tmp_path, text.replace(before, after))
