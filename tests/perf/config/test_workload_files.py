"""Workload files: variants, sequences and mixes, and all that can be wrong with them at once."""

import shutil
from pathlib import Path

import pytest

from perf.config.catalog import load_catalog
from perf.model.errors import ConfigError
from perf.model.records import Operation, Sensor

TEST_CONFIGS = Path(__file__).parents[2] / "data" / "configs"

SEQUENCE = """\
name: sequence
description: test
purpose: test
owner: test
source: test
not_comparable: test
records: {kind: put-get, keys: 100000}
consistency: one
preload_in_flight: 4
operation_timeout_s: 10
sequence:
  - {name: put-1, operation: put, in_flight: 20, value_seed: 1776}
  - {name: get-1, operation: get, in_flight: 20}
floors: {records: 100, operations: 10, in_flight: 4, offered_load_ops_per_s: 10, seconds: 2}
seed: 1
variants:
  large: {description: larger values, records: {least_value_bytes: 1000}}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(TEST_CONFIGS, tmp_path / "configs")
    return tmp_path / "configs"


def write(root: Path, text: str = SEQUENCE, *, name: str = "sequence") -> None:
    (root / "workloads" / f"{name}.yaml").write_text(text)


def problems(root: Path) -> str:
    with pytest.raises(ConfigError) as failure:
        load_catalog(root)
    return "\n".join(failure.value.problems)


def test_a_variant_is_a_workload_that_differs_in_what_it_says(root: Path) -> None:
    write(root)
    workloads = load_catalog(root).workloads
    base, large = workloads["sequence"], workloads["sequence-large"]
    assert large.description == "larger values"
    assert (base.records.kind, large.records.kind) == ("put-get", "put-get")
    assert (large.records.keys, large.records.least_value_bytes) == (100_000, 1000)  # type: ignore[union-attr]
    assert large.sequence == base.sequence


def test_what_is_wrong_in_a_variant_is_reported_at_its_own_line(root: Path) -> None:
    write(root, SEQUENCE.replace("least_value_bytes: 1000", "least_value_bytes: -1"))
    said = problems(root)
    assert f"sequence.yaml:{SEQUENCE.splitlines().index('variants:') + 2}: " in said
    assert "least_value_bytes" in said
    assert said.count("\n") == 0


@pytest.mark.parametrize(
    ("variants", "expected"),
    [
        ("  Large: {description: x}\n", "is no name"),
        ("  large: {records: {keys: 7}}\n", "has no description of its own"),
        ("  large: {}\n", "changes nothing"),
        ("  large: {description: x, name: y}\n", "must not hold the key name"),
    ],
)
def test_a_variant_that_cannot_be_is_refused(root: Path, variants: str, expected: str) -> None:
    write(root, SEQUENCE.partition("  large:")[0] + variants)
    assert expected in problems(root)


def test_a_name_taken_by_a_file_and_by_a_variant_is_reported_with_both_places(root: Path) -> None:
    write(root)
    write(
        root, SEQUENCE.partition("variants:")[0].replace("e\n", "e-large\n", 1), name="sequence-large"
    )
    (said,) = problems(root).splitlines()
    places = (f"sequence.yaml:{SEQUENCE.splitlines().index('variants:') + 2}: ", "sequence-large.yaml")
    assert all(place in said for place in places)
    assert "a workload sequence-large is here, and another at" in said


def test_a_suite_scales_its_workloads_down(root: Path) -> None:
    suite = root / "suites" / "fake-short.yaml"
    workload = root / "workloads" / "blink.yaml"
    floors = (
        "floors: {records: 4, operations: 4, in_flight: 1, offered_load_ops_per_s: 5, seconds: 0.4}\n"
    )
    suite.write_text(suite.read_text() + "\nscaled_down_by: 2\n")
    said = problems(root)
    assert "it cannot be scaled down by 2; add floors to it" in said
    for path in (root / "workloads").glob("*.yaml"):
        path.write_text(f"{path.read_text()}\n{floors}")
    catalog = load_catalog(root)
    chosen = catalog.suite("fake-short")
    deployment = catalog.resolve(chosen, chosen.experiments[0])
    assert deployment.workload.name.endswith("-by-2")
    written = catalog.workloads[workload.stem].records
    assert isinstance(written, Sensor)
    assert isinstance(deployment.workload.records, Sensor)
    assert deployment.workload.records.devices <= written.devices


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("operation: get", "operation: reed", "is"),
        ("operation: get", "operation: read", "records of kind put-get know no such operation"),
        (", value_seed: 1776", "", "stores values and has no value_seed"),
        ("in_flight: 20}\n", "in_flight: 20, value_seed: 3}\n", "get stores no values"),
        ("operation: put, in_flight: 20, value_seed: 1776", "operation: get, in_flight: 2", "no phase"),
        (
            "operation: get, in_flight: 20",
            "operation: put, in_flight: 2, value_seed: 3",
            "no phase after",
        ),
        ("value_seed: 1776", "value_seed: 1776, operations: 99999", "but there are 100000 keys"),
        ("operation: put, in", "operation: put-get, in", "no phase before it puts a value under every"),
        ("name: get-1", "name: preload", "names a phase of every trial"),
        ("name: get-1", "name: put-1", "as in sequence[0]"),
        ("seed: 1\n", "seed: 1\nscaled_down_by: 10\n", "say it in the suite that runs it smaller"),
        ("seed: 1\n", "seed: 1\npreload: records\n", "are stored by a phase of its sequence"),
        ("seed: 1\n", "seed: 1\nbatch_rows: 10\n", "only writes have batches"),
        ("seed: 1\n", "seed: 1\npreload_rows_per_device: 1\n", "have no devices"),
    ],
)
def test_what_a_sequence_cannot_mean_is_reported(
    root: Path, before: str, after: str, expected: str
) -> None:
    write(root, SEQUENCE.partition("variants:")[0].replace(before, after))
    assert expected in problems(root)


def test_a_workload_offers_one_operation_or_a_mix(root: Path) -> None:
    blink = (root / "workloads" / "blink.yaml").read_text()
    mixed = "mix: {write: 20, read-latest: 80}\npreload_rows_per_device: 10"
    rows = next(line for line in blink.splitlines() if line.startswith("preload_rows_per_device"))
    text = blink.replace("name: blink", "name: mixed").replace(rows, mixed)
    write(root, text, name="mixed")
    assert "but there is a mix as well" in problems(root)
    text = text.replace("operation: write\n", "")
    write(root, text, name="mixed")
    offered = load_catalog(root).workloads["mixed"].mix
    assert offered == {Operation.WRITE: 20, Operation.READ_LATEST: 80}


def test_a_phase_with_a_mix_of_its_own_reads_before_rows_are_written(root: Path) -> None:
    text = (TEST_CONFIGS.parents[2] / "configs/workloads/sensor-read-write.yaml").read_text()
    write(root, text, name="sensor-read-write")
    assert load_catalog(root).workloads["sensor-read-write"].offered == (
        Operation.READ_LATEST,
        Operation.WRITE,
    )
    late = text.replace("{read-latest: 1}", "{this: 1}").replace("{write: 1}", "{read-latest: 1}")
    write(root, late.replace("{this: 1}", "{write: 1}"), name="sensor-read-write")
    assert "only read, after a phase that writes rows" in problems(root)
    write(root, text.replace("mix: {write: 1}", "mix: {scan: 1}"), name="sensor-read-write")
    assert "records of kind sensor know no such operation" in problems(root)
