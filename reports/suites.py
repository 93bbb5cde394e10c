"""Which suite measures an experiment, and the command line that measures a trial again."""

import shlex
from collections.abc import Sequence

from perf.config import Catalog
from perf.model import TrialHead
from perf.night import Night


def reproduce_command(trial: TrialHead, catalog: Catalog, nights: Sequence[Night]) -> str:
    """Give the command line that measures this experiment at this release again."""
    suite = find_suite(trial, catalog, nights)
    return shlex.join(
        (
            *("knickpoint", "measure"),
            *(("--suite", suite) if suite else ()),
            *("--experiment", trial.experiment, "--release", trial.release.version),
        )
    )


def find_suite(trial: TrialHead, catalog: Catalog, nights: Sequence[Night]) -> str:
    """Give a suite that measures what a trial measured: that of its night, else any; empty if none.

    Suites of one procedure share the names of experiments, at another scale each.
    """
    planned = next((night.suite for night in nights if night.id == trial.night), None)
    listed = (
        suite.name
        for suite in catalog.suites.values()
        for experiment in suite.experiments
        if experiment.name == trial.experiment
        and suite.testbed == trial.testbed.name
        and catalog.workload_of(suite, experiment).name == trial.workload.name
    )
    return planned or next(listed, "")
