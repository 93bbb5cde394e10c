"""Trials of scaled or variant workloads: their files, their phases, the suite that measures them."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from catalogs import shipped

from perf.config.catalog import Catalog
from perf.model.design import Experiment, Suite
from perf.model.identity import named
from perf.model.nights import Night
from perf.model.results import Named, Trial
from reports.pages.trial.phases import find_phases
from reports.wording.reproducing import (
    Contents,
    find_suite,
    find_suites,
    list_changed,
    read_contents,
)

MakeTrial = Callable[..., Trial]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """Return the configuration that is shipped."""
    return shipped()


@pytest.fixture(scope="module")
def contents(catalog: Catalog) -> Contents:
    return read_contents(catalog)


def measured(catalog: Catalog, suite: Suite, experiment: Experiment, make_trial: MakeTrial) -> Trial:
    """Return a trial of an experiment as it is configured now."""
    found = catalog.resolve(suite, experiment)
    trial = make_trial(experiment=experiment.name)
    return replace(
        trial,
        release=replace(trial.release, system=experiment.system),
        topology=named(found.topology),
        testbed=named(found.testbed),
        workload=named(found.workload),
        config=named(found.config),
    )


def test_what_each_suite_measures_is_unchanged(
    catalog: Catalog, contents: Contents, make_trial: MakeTrial
) -> None:
    trials = [
        measured(catalog, suite, experiment, make_trial)
        for suite in catalog.suites.values()
        for experiment in suite.experiments
    ]
    names = {trial.workload.name for trial in trials}
    assert {"iot-write", "iot-write-512b", "iot-write-by-1000", "iot-write-512b-by-1000"} <= names
    assert [trial.workload for trial in trials if list_changed(trial, contents)] == []


@pytest.mark.parametrize("name", ["iot-write-512b-by-1000", "iot-write-512b", "iot-write-by-1000"])
def test_a_changed_workload_is_reported_by_the_file_that_there_is(
    contents: Contents, make_trial: MakeTrial, name: str
) -> None:
    head = make_trial(workload=Named(name=name, sha256="0"))
    assert "configs/workloads/iot-write.yaml" in list_changed(head, contents)


def test_a_phase_that_was_scaled_down_shows_its_own_load(
    catalog: Catalog, contents: Contents, make_trial: MakeTrial
) -> None:
    suite = catalog.suite("iot-small")
    trial = measured(catalog, suite, suite.experiments[0], make_trial)
    plan = catalog.resolve(suite, suite.experiments[0]).workload.measurements[0]
    counters = tuple(replace(one, phase=plan.name, iteration=1) for one in trial.counters)
    (row, *_) = find_phases(replace(trial, counters=counters), contents.workloads)
    assert row.load == f"closed loop, {plan.load.in_flight} in flight"


def test_a_suite_is_found_by_workload_and_scale(catalog: Catalog, make_trial: MakeTrial) -> None:
    small = catalog.suite("iot-small")
    # A copy of a suite for another scale, as docs/workloads.md proposes it, before it in the alphabet.
    larger = replace(small, name="a-copy", scaled_down_by=100)
    both = replace(catalog, suites={"a-copy": larger, "iot-small": small})
    for suite in (larger, small):
        trial = measured(both, suite, small.experiments[1], make_trial)
        assert find_suite(trial, both, ()) == suite.name
    for other in ("iot-write-512b", "iot-write-512b-by-10", "iot-write-2kb-by-1000"):
        trial = replace(trial, workload=Named(name=other, sha256="0"))
        assert find_suite(trial, both, ()) == ""


def test_the_suite_of_an_experiment_is_that_of_its_newest_trial(
    catalog: Catalog, make_trial: MakeTrial
) -> None:
    nights = [
        Night(
            id=name, suite=suite, plan_sha256="44" * 32, started_at=make_trial().started_at, trials=()
        )
        for name, suite in (("first", "quickstart"), ("second", "nightly"))
    ]
    heads = [make_trial(experiment="e", night=night.id) for night in nights]
    assert find_suites(heads, catalog, nights) == {"e": "nightly"}
