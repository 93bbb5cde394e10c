"""`knickpoint workloads`: one line for each, and everything about one."""

import re
from pathlib import Path

import pytest
from catalogs import shipped
from click.testing import CliRunner, Result

from perf.commands.workloads import workloads
from perf.config.catalog import Catalog
from perf.model.errors import UsageError
from perf.model.identity import content_hash
from perf.model.scaling import scale_down
from perf.model.statements import Statements

CONFIGS = Path(__file__).parents[3] / "configs"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return shipped()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(workloads, [*arguments, "--configs", str(CONFIGS)])


def test_each_workload_is_listed_with_kind_operations_and_description(catalog: Catalog) -> None:
    result = run()
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert [line.split()[0] for line in lines[::2]] == sorted(catalog.workloads)
    mix = next(place for place, line in enumerate(lines) if line.startswith("iot-mix "))
    assert lines[mix].split() == ["iot-mix", "sensor", "read-latest", "write"]
    assert lines[mix + 1].strip() == catalog.workloads["iot-mix"].description


@pytest.mark.parametrize("name", ["iot-write", "iot-write-by-1000", "iot-write-by-7"])
def test_one_is_reported_as_written_and_as_each_suite_runs_it(catalog: Catalog, name: str) -> None:
    result = run(name)
    assert result.exit_code == 0
    said = re.sub(r"\s+", " ", result.output)
    written = catalog.workloads["iot-write"]
    for text in (written.purpose, written.owner, written.source, written.not_comparable):
        assert re.sub(r"\s+", " ", text) in said
    assert f"series iot-write@{content_hash(written)}" in said
    assert "devices 1000000" in said
    assert "iot as written, on example-rack: iot-cassandra-write, iot-mongodb-write" in said
    small = scale_down(written, 1000)
    assert f"series iot-write-by-1000@{content_hash(small)}" in said
    assert "devices 1000," in said
    assert "floors records 1000, operations 1000, in_flight 16" in said


def test_sizes_that_ended_at_a_floor_are_reported_with_their_factor(catalog: Catalog) -> None:
    said = re.sub(r"\s+", " ", run("ycsb-soak").output)
    (suite,) = (one for one in catalog.suites.values() if one.name == "ycsb-soak-small")
    assert suite.scaled_down_by
    written = catalog.workloads["ycsb-soak"]
    small = scale_down(written, suite.scaled_down_by)
    (before,), (after,) = written.measurements, small.measurements
    _, _, others = said.partition("smaller by less ")
    assert f"iteration_s {before.iteration_s / after.iteration_s:g}" in others
    assert "record_count" not in others


def test_sequences_are_reported_phase_by_phase() -> None:
    said = re.sub(r"\s+", " ", run("put-get").output)
    assert re.search(r"counted phase put-1: \d+ × put, closed loop, 20 in flight", said)


def test_an_unused_workload_says_so() -> None:
    assert run("sensor-write-rack").output.endswith("in suites\n  none uses it\n")


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    result = run("iot-writ")
    assert isinstance(result.exception, UsageError)
    assert "there is no workload 'iot-writ'; did you mean iot-write?" in str(result.exception)


def test_every_workload_file_says_whose_it_is_and_what_it_is_not(catalog: Catalog) -> None:
    for workload in catalog.workloads.values():
        texts = (workload.purpose, workload.owner, workload.source, workload.not_comparable)
        assert all(len(text) > 10 for text in texts), workload.name
        assert "\n" not in workload.description, workload.name


def test_a_workload_of_ones_own_is_reported_with_its_statements(catalog: Catalog) -> None:
    result = run("own-index")
    assert result.exit_code == 0
    said = re.sub(r"\s+", " ", result.output)
    records = catalog.workloads["own-index"].records
    assert isinstance(records, Statements)
    assert all(text in said for text in records.schema)
    assert all(one.text in said for one in records.statements.values())
    assert "stored before 20000 rows consistency" in said


def test_only_statements_can_be_tried() -> None:
    result = run("try", "iot-mix")
    assert isinstance(result.exception, UsageError)
    assert "iot-mix has records of kind sensor" in str(result.exception)
