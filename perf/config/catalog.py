"""The catalog: every configuration file, read, validated and resolved by name."""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from perf.config.checks.files import ConfigFile, Entries, HasName
from perf.config.checks.reports import check_report
from perf.config.checks.rules import check_detection, check_triage
from perf.config.checks.sources import check_source
from perf.config.checks.suites import check_suite
from perf.config.checks.systems import check_system_config
from perf.config.checks.testbeds import (
    check_leases,
    check_testbed,
    check_topology,
)
from perf.config.checks.workloads import check_workload
from perf.config.selectors import in_order, resolve_suite
from perf.config.variants import split_variants
from perf.local.document import YamlDocument, read_document
from perf.local.problems import describe, suggest
from perf.model.design import Deployment, Experiment, Suite, SystemConfig, Testbed, Topology, Workload
from perf.model.errors import ConfigError, UsageError
from perf.model.identity import named
from perf.model.references import Reference, Report, figures_of
from perf.model.results import Release, SeriesKey
from perf.model.rules import Detection, Triage, TriageEntry
from perf.model.scalars import is_version
from perf.model.scaling import scale_down, unscaled_name
from perf.model.sources import BuildSource
from perf.releases.artifacts import HasReleases, choose_release
from perf.releases.asking import Found
from perf.systems import registry

T = TypeVar("T")
N = TypeVar("N", bound=HasName)

TRIAGE_FILE = "triage.yaml"
_KINDS: tuple[Any, ...] = (
    *(BuildSource, Detection, Report, Suite, SystemConfig),
    *(Testbed, Topology, Triage, Workload),
)
_ADAPTERS: Mapping[Any, TypeAdapter[Any]] = {kind: TypeAdapter(kind) for kind in _KINDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """A whole configuration that fits together. `systems` is by system, then by config name.

    `workload_files` has the file of each workload, without its ending: that of a variant has the name
    of another. `found` is what the sources have offered; suites list the versions that their selectors
    choose among all that is known, and `selectors` has the rules as they are written, by suite and
    experiment.
    """

    topologies: Mapping[str, Topology]
    testbeds: Mapping[str, Testbed]
    workloads: Mapping[str, Workload]
    systems: Mapping[str, Mapping[str, SystemConfig]]
    suites: Mapping[str, Suite]
    detection: Detection
    triage: tuple[TriageEntry, ...] = ()
    reports: tuple[Report, ...] = ()
    workload_files: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, BuildSource] = field(default_factory=dict)
    found: Found = field(default_factory=Found)
    selectors: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    root: Path = Path("configs")

    def releases(self, system: str) -> tuple[Release, ...]:
        """Return the releases of a system that the package knows, then those that sources offered.

        Raises:
            UsageError: there is no such system, or its driver is not installed.

        """
        return known_releases(registry.load(system), self.found)

    def find_release(self, system: str, version: str) -> Release:
        """Return a system's release of this version.

        Raises:
            UsageError: there is none; the message names the nearest.

        """
        return choose_release(system, version, self.releases(system))

    def ruled_systems(self, suite: Suite) -> frozenset[str]:
        """Return the systems of which a suite chooses releases by a rule, not by their versions."""
        return frozenset(
            one.system
            for one in suite.experiments
            if not all(map(is_version, self.selectors.get((suite.name, one.name), ())))
        )

    def newest(self, system: str, versions: Collection[str]) -> str:
        """Return the last of some versions of a system, by line and place.

        Raises:
            UsageError: there is no such release.

        """
        if not versions:
            raise UsageError(
                f"no release of {system} is chosen; ask the sources: knickpoint releases --refresh"
            )
        return in_order(self.find_release(system, one) for one in versions)[-1].version

    @property
    def references(self) -> tuple[Reference, ...]:
        """All published figures, in the order of their reports."""
        return tuple(figure for report in self.reports for figure in figures_of(report))

    def suite(self, name: str) -> Suite:
        """Return a suite.

        Raises:
            UsageError: there is no suite of that name.

        """
        return _look_up("suite", name, self.suites)

    def testbed(self, name: str) -> Testbed:
        """Return a testbed.

        Raises:
            UsageError: there is no testbed of that name.

        """
        return _look_up("testbed", name, self.testbeds)

    def workload(self, name: str) -> Workload:
        """Return a workload, as it is written.

        Raises:
            UsageError: there is no workload of that name.

        """
        return _look_up("workload", name, self.workloads)

    def workload_file(self, name: str) -> str:
        """Return the file of a workload, without its ending, be it scaled down, a variant, or gone."""
        written = unscaled_name(name)
        return self.workload_files.get(written, written)

    def workload_of(self, suite: Suite, experiment: Experiment) -> Workload:
        """Return the workload of an experiment as its suite runs it, which may scale it down.

        Raises:
            UsageError: there is no workload of that name; not for suites of this catalog.

        """
        written = self.workload(experiment.workload)
        return scale_down(written, suite.scaled_down_by) if suite.scaled_down_by else written

    def resolve(self, suite: Suite, experiment: Experiment) -> Deployment:
        """Replace each name in an experiment by what it stands for.

        Raises:
            UsageError: a name is unknown; not for suites of this catalog.

        """
        configs = _look_up("system", experiment.system, self.systems)
        return Deployment(
            experiment=experiment,
            topology=_look_up("topology", experiment.topology, self.topologies),
            testbed=_look_up("testbed", suite.testbed, self.testbeds),
            workload=self.workload_of(suite, experiment),
            config=_look_up(f"{experiment.system} config", experiment.config, configs),
        )


def default_root() -> Path:
    """Return configs/ in the current directory, or else the one that came with the package."""
    here = Path("configs")
    return here if here.is_dir() else Path(str(files("perf") / "configs"))


def known_releases(system: HasReleases, found: Found) -> tuple[Release, ...]:
    """Return the releases that a system knows, then those of it that sources offered."""
    known = system.releases()
    versions = {one.version for one in known}
    offered = (one.release for one in found.builds if one.release.system == system.name)
    return (*known, *(one for one in offered if one.version not in versions))


def load_catalog(root: Path, found: Found | None = None) -> Catalog:
    """Read and check all configuration files below `root`.

    `found` is what sources have offered so far: selectors choose among that, too. Without it, what a
    suite lists of a system that has a source is not held against what is known.

    Raises:
        ConfigError: something is wrong; carries every problem of every file.

    """
    if not root.is_dir():
        raise ConfigError([f"{root}: no such directory; give the one that holds suites/ and the rest"])
    problems: list[str] = list(_stray_files(root))
    known = _known_releases(found or Found())
    entries = Entries(
        topologies=_read_folder(Topology, root / "topologies", problems),
        testbeds=_read_folder(Testbed, root / "testbeds", problems),
        workloads=_read_folder(Workload, root / "workloads", problems, split_variants),
        systems={
            folder.name: _read_folder(SystemConfig, folder, problems)
            for folder in sorted((root / "systems").glob("*/"))
        },
        suites=_read_folder(Suite, root / "suites", problems),
        known_systems=registry.names(),
        known_releases={
            system: {one.version: one.line for one in releases} for system, releases in known.items()
        },
    )
    sources = _read_sources(root / "sources", problems)
    offering = {one.system for one in _values(sources).values()} if found is None else set()
    written = entries.suites
    resolve = partial(resolve_suite, known=known, offering=offering, problems=problems)
    entries = replace(entries, suites={name: resolve(entry) for name, entry in written.items()})
    detection = _read_entry(Detection, root / "detection.yaml", problems)
    problems += _check_all(entries)
    if detection is not None and detection.value is not None:
        problems += check_detection(detection.top, detection.value)
    triage = read_triage(root / TRIAGE_FILE, problems)
    reports = _read_reports(root / "reference", problems, entries)
    if problems or detection is None or detection.value is None:
        raise ConfigError(problems)
    return Catalog(
        topologies=_values(entries.topologies),
        testbeds=_values(entries.testbeds),
        workloads=_values(entries.workloads),
        systems=MappingProxyType({key: _values(each) for key, each in entries.systems.items()}),
        suites=_values(entries.suites),
        detection=detection.value,
        triage=triage,
        reports=reports,
        workload_files=MappingProxyType(
            {name: entry.document.path.stem for name, entry in entries.workloads.items()}
        ),
        sources=_values(sources),
        found=found or Found(),
        selectors=_rules_of(_values(written)),
        root=root,
    )


def read_triage(path: Path, problems: list[str]) -> tuple[TriageEntry, ...]:
    """Read the entries of a triage file and add what is wrong with it; no file, no entry."""
    entry = _read_entry(Triage, path, problems) if os.path.lexists(path) else None
    if entry is None or entry.value is None:
        return ()
    problems += check_triage(entry.top, entry.value)
    return entry.value.entries


def _read_sources(folder: Path, problems: list[str]) -> Mapping[str, ConfigFile[BuildSource]]:
    found: Mapping[str, ConfigFile[BuildSource]] = _read_folder(
        cast("type[Any]", BuildSource), folder, problems
    )
    for source in found.values():
        problems += check_source(source, registry.names())
    return found


def _rules_of(suites: Mapping[str, Suite]) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Return what each experiment of each suite is written to measure."""
    rules = {
        (suite.name, one.name): one.releases for suite in suites.values() for one in suite.experiments
    }
    return MappingProxyType(rules)


def _read_reports(folder: Path, problems: list[str], entries: Entries) -> tuple[Report, ...]:
    """Read the published figures, a file for each report, and add what is wrong with them."""
    found = _read_folder(Report, folder, problems)
    for entry in found.values():
        if entry.value is not None:
            problems += check_report(entry.top, entry.value, entries)
    return tuple(_values(found).values())


def _check_all(entries: Entries) -> Iterator[str]:
    for topology in entries.topologies.values():
        yield from check_topology(topology)
    for testbed in entries.testbeds.values():
        yield from check_testbed(testbed)
    yield from check_leases(entries.testbeds)
    for workload in entries.workloads.values():
        yield from check_workload(workload)
    for folder, configs in entries.systems.items():
        for config in configs.values():
            yield from check_system_config(folder, config, entries.known_systems)
    for suite in entries.suites.values():
        yield from check_suite(suite, entries)


def _known_releases(found: Found) -> dict[str, tuple[Release, ...]]:
    """Return the releases of each system whose driver is installed; judging needs none."""
    known = {}
    for name in registry.names():
        with suppress(UsageError):
            known[name] = known_releases(registry.load(name), found)
    return known


def _stray_files(root: Path) -> Iterator[str]:
    """Find YAML files that nothing would ever read; silence would look like acceptance."""
    read = {root / "detection.yaml", root / TRIAGE_FILE}
    for pattern in ("topologies/*.yaml", "testbeds/*.yaml", "workloads/*.yaml", "reference/*.yaml"):
        read.update(root.glob(pattern))
    for pattern in ("systems/*/*.yaml", "suites/*.yaml", "sources/*.yaml"):
        read.update(root.glob(pattern))
    found = {path for ending in ("yaml", "yml") for path in root.rglob(f"*.{ending}")}
    for path in sorted(found - read):
        yield (
            f"{path}: nothing reads this file; put it into topologies/, testbeds/, workloads/, "
            "systems/<system>/, suites/, sources/ or reference/, with the ending .yaml"
        )


def _whole(document: YamlDocument, _: list[str]) -> Iterator[tuple[str, YamlDocument]]:
    """Yield all of a file as what it is named after."""
    yield document.path.stem, document


def _read_folder(
    kind: type[N],
    folder: Path,
    problems: list[str],
    split: Callable[[YamlDocument, list[str]], Iterator[tuple[str, YamlDocument]]] = _whole,
) -> Mapping[str, ConfigFile[N]]:
    """Read the files of one folder, and the parts that they hold; each bears its name inside.

    A file that is not even YAML keeps its name, without a value.
    """
    entries: dict[str, ConfigFile[N]] = {}
    for path in sorted(folder.glob("*.yaml")):
        document = _read(path, problems)
        if document is None:
            unread = YamlDocument(
                path=path, tree=None, lines={}, spellings={}, problems=(), unusable=frozenset()
            )
            entries[path.stem] = ConfigFile(unread, None)
            continue
        for name, part in split(document, problems):
            if name in entries:
                taken = entries[name].document.locate(())
                problems.append(
                    f"{part.locate(())}: a workload {name} is here, and another at {taken}; rename one"
                )
                continue
            entry = entries[name] = _validate(kind, part, problems)
            if entry.value is not None and entry.value.name != name:
                problems.append(
                    (entry.top / "name").say(f"but the file is {path.name}; make them equal")
                )
    return entries


def _read_entry(kind: type[T], path: Path, problems: list[str]) -> ConfigFile[T] | None:
    document = _read(path, problems)
    return None if document is None else _validate(kind, document, problems)


def _read(path: Path, problems: list[str]) -> YamlDocument | None:
    try:
        document = read_document(path)
    except ConfigError as error:
        problems += error.problems
        return None
    problems += document.problems
    return document


def _validate(kind: type[T], document: YamlDocument, problems: list[str]) -> ConfigFile[T]:
    adapter = _ADAPTERS[kind]
    try:
        value = adapter.validate_json(json.dumps(document.tree))
    except ValidationError as error:
        problems += describe(document, _shape(adapter), error.errors(include_url=False))
        return ConfigFile(document, None)
    return ConfigFile(document, None if document.problems else value)


@cache
def _shape(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    return adapter.json_schema()


def _values(entries: Mapping[str, ConfigFile[T]]) -> Mapping[str, T]:
    valid: Iterable[tuple[str, T]] = (
        (name, entry.value) for name, entry in entries.items() if entry.value is not None
    )
    return MappingProxyType(dict(valid))


def _look_up(kind: str, name: str, known: Mapping[str, T]) -> T:
    if name not in known:
        raise UsageError(f"there is no {kind} {name!r}; {suggest(name, known)}")
    return known[name]


def find_experiment(suite: Suite, name: str) -> Experiment:
    """Return an experiment of a suite; raise UsageError where it has none of that name."""
    for experiment in suite.experiments:
        if experiment.name == name:
            return experiment
    known = ", ".join(experiment.name for experiment in suite.experiments)
    raise UsageError(f"suite {suite.name} has no experiment {name!r}; it has: {known}")


def find_experiment_of(catalog: Catalog, suite: Suite, key: SeriesKey) -> Experiment | None:
    """Return the experiment of a suite that measures a series, as it is configured now; no sentinel."""
    for experiment in suite.experiments:
        if experiment.sentinel_every_nights:
            continue
        deployment = catalog.resolve(suite, experiment)
        workload = named(deployment.workload)
        found = (
            *(experiment.system, deployment.topology.name, deployment.testbed.testbed_class),
            *(deployment.config.name, f"{workload.name}@{workload.sha256}", deployment.engine),
        )
        if found == (
            *(key.system, key.topology, key.testbed_class),
            *(key.config, key.workload, key.engine),
        ):
            return experiment
    return None
