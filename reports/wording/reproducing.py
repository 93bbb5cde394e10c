"""How to measure the same again: whether the configuration still has the contents, and the commands."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from perf.config.catalog import Catalog
from perf.model.design import Testbed, Workload
from perf.model.identity import named
from perf.model.nights import Night
from perf.model.results import Named, TrialHead
from perf.model.scaling import unscaled_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What the files of a configuration hold, by name and content; `systems` with the system's name.

    `workloads` are as they are written, and as suites scale them down; `workload_file` gives the file
    of one by its name, without its ending.
    """

    testbeds: Mapping[Named, Testbed] = field(default_factory=dict)
    workloads: Mapping[Named, Workload] = field(default_factory=dict)
    topologies: frozenset[Named] = frozenset()
    systems: frozenset[tuple[str, Named]] = frozenset()
    workload_file: Callable[[str], str] = unscaled_name


NOTHING_KNOWN = Contents()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproductionCommands:
    """Commands to copy, and what must hold for them to measure the same."""

    text: str
    commands: str


def read_contents(catalog: Catalog) -> Contents:
    """Hash all files of a configuration."""
    return Contents(
        testbeds={named(one): one for one in catalog.testbeds.values()},
        workloads={named(one): one for one in _list_workloads(catalog)},
        topologies=frozenset(named(one) for one in catalog.topologies.values()),
        systems=frozenset(
            (system, named(one)) for system, own in catalog.systems.items() for one in own.values()
        ),
        workload_file=catalog.workload_file,
    )


def _list_workloads(catalog: Catalog) -> Iterator[Workload]:
    yield from catalog.workloads.values()
    for suite in catalog.suites.values():
        if suite.scaled_down_by:
            by_workload = {one.workload: one for one in suite.experiments}
            yield from (catalog.workload_of(suite, one) for one in by_workload.values())


def list_changed(head: TrialHead, contents: Contents) -> tuple[str, ...]:
    """Give the paths of the files that do not have the content any more with which a trial was made."""
    system = head.release.system
    standing = (
        (f"configs/topologies/{head.topology.name}.yaml", head.topology in contents.topologies),
        (f"configs/testbeds/{head.testbed.name}.yaml", head.testbed in contents.testbeds),
        (
            f"configs/workloads/{contents.workload_file(head.workload.name)}.yaml",
            head.workload in contents.workloads,
        ),
        (
            f"configs/systems/{system}/{head.config.name}.yaml",
            (system, head.config) in contents.systems,
        ),
    )
    return tuple(path for path, is_same in standing if not is_same)


def view_reproduction(changed: tuple[str, ...], *commands: str) -> ReproductionCommands:
    """Return the commands that measure the same again; `changed` are files with another content now.

    A content hash is of the meaning of a file, so that no command finds its revision: what the
    history of the file is has to be looked through.
    """
    if not changed:
        return ReproductionCommands(
            text="The configuration that these pages were made with still has the very contents that"
            " were measured, so this measures the same.",
            commands="\n".join(commands),
        )
    look = f"git log --oneline -- {' '.join(changed)}"
    return ReproductionCommands(
        text="Some files of the configuration have another content now. Check out a revision in which"
        " they have the hashes of this page first; the page of the new trial shows whether they do."
        " Without that, something else is measured.",
        commands="\n".join((look, "git checkout REVISION -- configs", *commands)),
    )


def reproduce_command(trial: TrialHead, catalog: Catalog, nights: Sequence[Night]) -> str:
    """Return the command line that measures this experiment at this release again."""
    suite = find_suite(trial, catalog, nights)
    return measure_command(suite, trial.experiment, trial.release.version)


def measure_command(suite: str, experiment: str, version: str) -> str:
    """Return the command line that measures an experiment at a release; a suite may be none."""
    return shlex.join(
        (
            *("knickpoint", "measure"),
            *(("--suite", suite) if suite else ()),
            *("--experiment", experiment, "--release", version),
        )
    )


def find_suites(
    heads: Iterable[TrialHead], catalog: Catalog, nights: Sequence[Night]
) -> Mapping[str, str]:
    """Return a suite for each experiment, of trials in order of time: that of its newest trial."""
    newest = {head.experiment: head for head in heads}
    return {name: find_suite(head, catalog, nights) for name, head in newest.items()}


def find_suite(trial: TrialHead, catalog: Catalog, nights: Sequence[Night]) -> str:
    """Return a suite that measures what a trial measured: that of its night, else any; empty if none.

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
