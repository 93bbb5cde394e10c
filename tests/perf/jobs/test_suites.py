"""Each suite can be configured on its testbed, and each small one fills cells beside published ones."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from catalogs import shipped

from perf.model.design import Deployment
from perf.model.errors import ConfigError
from perf.model.references import PublishedRow, PublishedTable, Report, cells
from perf.model.results import Artifact, Source
from perf.model.scaling import unscaled_name
from perf.releases.artifacts import find_release
from perf.systems import registry
from perf.trial.placement import place

CATALOG = shipped()
SMALL = sorted(name for name in CATALOG.suites if "-small" in name)
GROUPS = sorted({re.sub(r"-small.*", "-small", name) for name in SMALL})


class Reached(Exception):  # noqa: N818  no error: the config was found to fit before any host is asked
    """A host is about to be touched."""


class Untouched:
    """A host of which systems may want nothing before they have looked at the config."""

    def __getattr__(self, verb: str) -> Any:  # noqa: ANN401  whatever they would do with it
        def reach(*_: object, **__: object) -> NoReturn:
            raise Reached(verb)

        return reach


def find_problems(deployment: Deployment, version: str) -> list[str]:
    """Return what `configure` finds wrong with the config of an experiment, on each of its nodes."""
    system = registry.load(deployment.experiment.system)
    artifact = Artifact(source=Source.ARCHIVE, sha256="ab" * 32)
    placed = place(deployment, find_release(system, version), artifact, Path("/nowhere"))
    nodes = tuple(replace(node, remote=Untouched()) for node in placed.nodes)
    problems: list[str] = []
    for node in nodes:
        try:
            system.configure(node, replace(placed, nodes=nodes))
        except ConfigError as error:
            problems += error.problems
        except Reached:
            continue
    return problems


@pytest.mark.parametrize("name", sorted(CATALOG.suites))
def test_each_experiment_can_be_configured_on_its_testbed(name: str) -> None:
    suite = CATALOG.suite(name)
    found = {
        f"{experiment.name} at {version}": problems
        for experiment in suite.experiments
        for version in experiment.versions
        if (problems := find_problems(CATALOG.resolve(suite, experiment), version))
    }
    assert found == {}


def test_what_does_not_fit_a_testbed_is_found() -> None:
    suite = CATALOG.suite("ycsb")
    experiment = next(one for one in suite.experiments if one.system == "scylladb")
    small = replace(experiment, config="default")
    problems = find_problems(CATALOG.resolve(suite, small), small.releases[0])
    assert "config default: settings.command_line.smp: testbed example-rack says" in problems[0]


def report_of(group: str) -> Report:
    """Return the report that all small suites of a group reproduce."""
    suites = {name for name in SMALL if name.startswith(group)}
    (report,) = (one for one in CATALOG.reports if suites <= set(one.suites))
    return report


def measured_rows(report: Report, group: str) -> Iterator[tuple[PublishedTable, PublishedRow]]:
    """Yield the rows of which the small suites of a group measure a cell."""
    known = {
        (one.system, unscaled_name(one.workload))
        for name in SMALL
        if name.startswith(group)
        for one in CATALOG.suite(name).experiments
    }
    for table in report.tables:
        for row, column, spot in cells(table):
            if not spot.subject or column.quotient or column.not_here:
                continue
            if (report.subject(spot.subject).system, spot.workload) in known:
                yield table, row


@pytest.mark.parametrize("group", GROUPS)
def test_a_small_suite_fills_a_row_in_which_something_is_published(group: str) -> None:
    rows = [row for _, row in measured_rows(report_of(group), group)]
    assert any(value is not None for row in rows for value in row.values)


def test_the_rows_of_each_size_that_the_report_shows_have_cassandra_beside_them() -> None:
    report = report_of("ycsb-small")
    filled = {(table.name, row.name) for table, row in measured_rows(report, "ycsb-small")}
    assert {("caching", "uniform-small"), ("caching", "hotspot-small")} <= filled
    suites = [CATALOG.suite(name) for name in ("ycsb", "ycsb-medium", "ycsb-large")]
    known = {(one.system, one.workload) for suite in suites for one in suite.experiments}
    wanted = {
        (report.subject(spot.subject).system, spot.workload)
        for table in report.tables
        for _, column, spot in cells(table)
        if spot.subject and not column.quotient and not column.not_here
    }
    assert wanted == known
    assert {one.large_workload for one in report.scalings} <= {workload for _, workload in known}
