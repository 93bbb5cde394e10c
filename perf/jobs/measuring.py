"""What each measuring command works with, and the one way in which a trial is ordered and reported."""

import math
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeAlias

from perf.config.catalog import Catalog, default_root, find_experiment, load_catalog
from perf.history.place import has_history, start_of_ids
from perf.history.store import Appended, append_all, open_history
from perf.jobs.feasible import check_load_time
from perf.jobs.holding import hold, renew_lease
from perf.load.native_binary import ENGINE, build_command, find_native, native_cache, sha256_of
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.design import Deployment, Suite
from perf.model.errors import HostUnfit, KnickpointError, ReleaseError, UsageError
from perf.model.metrics import RESPONSE_TIME, SERVICE_TIME, THROUGHPUT
from perf.model.results import Artifact, Purpose, Release, Source, Trial, TrialId, TrialStatus
from perf.model.shown import list_some
from perf.releases import artifacts as releases
from perf.releases.artifacts import HasReleases
from perf.releases.asking import pin, read_found, refresh
from perf.releases.building import origin_of
from perf.releases.origin import Origin
from perf.systems import registry
from perf.trial.harness import Order, run_trial
from perf.trial.profiling import PROFILED

_LOG_LINES = 12
_AT_ONCE = 4
"""Releases that are fetched at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A release and the bytes to install."""

    release: Release
    artifact: Artifact


FetchedAll: TypeAlias = Mapping[tuple[str, str], Fetched | KnickpointError]


@dataclass(frozen=True, slots=True)
class Job:
    """What one measuring command works with: its configuration, its data directory, whom it tells."""

    catalog: Catalog
    paths: DataPaths
    progress: Progress
    running: Mapping[tuple[str, str], Fetched] = field(default_factory=dict)
    """What an attached cluster runs, by system and version: nothing is fetched for it."""

    def fetch(self, system_name: str, version: str) -> Fetched:
        """Fetch what a system installs at a release.

        What it was when it was fetched first, in this data directory, it must be ever after.

        Raises:
            ReleaseError: the release could be fetched from nowhere, or is not what it was.
            UsageError: the release is unknown.

        """
        if running := self.running.get((system_name, version)):
            return running
        system = registry.load(system_name)
        release = self.catalog.find_release(system_name, version)
        build = self._find_build(system, release)
        artifact = releases.fetch(system, release, build=build, report=self.progress.report)
        if artifact.source not in (Source.PATH, Source.BUILTIN):
            key = f"{system_name} {version} {artifact.source}"
            self._pin_measured(key, release, artifact.source)
            if changed := self._find_change(key, artifact.sha256):
                raise ReleaseError(f"{changed} Find out who changed a release.")
        return Fetched(release=release, artifact=artifact)

    def _pin_measured(self, key: str, release: Release, source: Source) -> None:
        """Take what the history says was measured first for the first use of a release.

        A file of first uses that is lost, or was removed, must not make way for other bytes.
        """
        if key not in read_found(self.paths.found_releases).pins and has_history(self.paths):
            with open_history(self.paths.history, read_only=True) as history:
                measured = history.find_artifact(release, source)
            if measured:
                pin(self.paths.found_releases, key, measured)

    def _find_change(self, key: str, sha256: str) -> str:
        """Say that something is not what it was when it was first used here; nothing if it is.

        The cache is writable by all that runs as this user; what was used first is kept beside the
        history.
        """
        path = self.paths.found_releases
        expected = pin(path, key, sha256)
        if sha256 == expected:
            return ""
        return (
            f"{key} is not what it was when it was first used here: its checksum was {expected}, and is"
            f" {sha256}; to accept it, put that in place of the other in {path}."
        )

    def fetch_all(self, wanted: Iterable[tuple[str, str]]) -> "FetchedAll":
        """Fetch several releases, by system and version, some at a time; none stops another.

        Returns each with what was fetched, or with why it could not be.
        """
        waiting: SimpleQueue[tuple[str, str]] = SimpleQueue()
        asked = tuple(dict.fromkeys(wanted))
        done: dict[tuple[str, str], Fetched | KnickpointError] = {}
        for one in asked:
            waiting.put(one)

        def work() -> None:
            with suppress(Empty):
                while True:
                    one = waiting.get_nowait()
                    try:
                        done[one] = self.fetch(*one)
                    except KnickpointError as error:
                        done[one] = error
                    except Exception as error:  # noqa: BLE001  raised where it is asked for
                        unexpected[one] = error

        unexpected: dict[tuple[str, str], Exception] = {}
        # Ctrl-C ends a download at once: nobody waits for these threads.
        workers = [Thread(target=work, daemon=True) for _ in range(min(_AT_ONCE, len(asked)))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for error in unexpected.values():
            raise error
        return done

    def _find_build(self, system: HasReleases, release: Release) -> Origin | None:
        """Return where a source has a release, unless its system knows a checked place by itself."""
        offered = self.catalog.found.of(release.system, release.version)
        if offered is None:
            return None
        if release in system.releases():
            with suppress(ReleaseError):
                system.origins(release)
                return None
        source = self.catalog.sources.get(offered.source)
        return origin_of(offered, source, self.catalog.root.parent)

    def measure(self, order: Order) -> Trial:
        """Measure a trial and tell how it ended; the caller holds the testbed (`hold`).

        Raises:
            HostUnfit: the hosts cannot carry any trial.
            MeasureError: the testbed was lost to another job.

        """
        renew_lease(order.deployment)
        if order.deployment.engine == "native":
            self._check_engine()
        system = registry.load(order.deployment.experiment.system)
        try:
            trial = run_trial(order, system, self.paths, self.progress)
        except HostUnfit as problem:
            hint = "finished trials are kept; the same command resumes here"
            raise HostUnfit(f"{problem}\n{hint}") from problem
        self.progress.report(explain(trial, self.paths))
        return trial

    def _check_engine(self) -> None:
        """Insist that the native engine is the program that was built from these sources first.

        Raises:
            HostUnfit: it is another one, or there is none.

        """
        try:
            built = find_native()
        except UsageError as error:
            raise HostUnfit(f"engine: native cannot offer the load: {error}") from error
        if not built.is_relative_to(native_cache()):
            return  # an operator named it
        if changed := self._find_change(f"{ENGINE} {built.parent.name}", sha256_of(built)):
            raise HostUnfit(
                f"{changed} Built anew by another compiler it is another one, which is a change of"
                " method, and for another place of the cache another file; else find out who changed"
                f" it, remove it and say: {build_command()}"
            )


def open_job(data: Path, configs: Path | None) -> Job:
    """Return what a measuring command works with, in these two directories.

    Raises:
        ConfigError: the configuration is wrong.
        InputError: what the sources of builds have offered cannot be read.

    """
    paths = DataPaths(data)
    found = read_found(paths.found_releases)
    return Job(load_catalog(configs or default_root(), found), paths, Progress())


def ask_sources(job: Job, systems: Container[str]) -> Job:
    """Ask the sources of some systems for builds; return the job that knows them, too.

    Raises:
        ConfigError: the configuration is wrong with what was found.
        InputError: what the sources offered before cannot be read.

    """
    catalog = job.catalog
    sources = [one for one in catalog.sources.values() if one.system in systems]
    if not sources:
        return job
    known = {one.system: registry.load(one.system).releases() for one in sources}
    job.progress.report(f"asking {', '.join(one.name for one in sources)} for new releases")
    refreshed = refresh(
        job.paths.found_releases, sources, catalog.root.parent, known, job.progress.report
    )
    if refreshed.new:
        names = [f"{one.release.system} {one.release.version}" for one in refreshed.new]
        job.progress.report(f"found: {', '.join(list_some(names, 10))}")
    return replace(job, catalog=load_catalog(catalog.root, refreshed.found))


def keep(job: Job) -> Appended:
    """Append what was measured to the history, and tell how much it was.

    Raises:
        BundleError: the bundles cannot be listed.
        HistoryError: the history cannot be written.

    """
    kept = append_all(job.paths, job.progress.report)
    job.progress.report(f"history: {kept.new} trials appended, {kept.known} already there")
    return kept


def order_point(trial: str, night: str, deployment: Deployment, fetched: Fetched) -> Order:
    """Return the order of a trial that is to be a point of its series, unless it is of a local copy."""
    purpose = Purpose.SCHEDULED
    if fetched.artifact.source is Source.PATH:
        # A local copy may be anything: it is kept and shown, but is no point of a release's series.
        purpose = Purpose.CANDIDATE
    elif deployment.experiment.sentinel_every_nights:
        purpose = Purpose.SENTINEL
    return Order(
        trial=TrialId(trial),
        night=night,
        purpose=purpose,
        deployment=deployment,
        release=fetched.release,
        artifact=fetched.artifact,
    )


def measure_one(
    job: Job, suite: Suite, experiment: str, version: str, *, profile: bool = False
) -> Trial:
    """Measure one extra trial of an experiment at a release, outside of any night's plan.

    With a profiler attached it is no point of a series.
    """
    deployment = job.catalog.resolve(suite, find_experiment(suite, experiment))
    check_load_time(deployment)
    purpose = f"a trial of {experiment} at {version}"
    with hold(job.paths, job.progress, [deployment.testbed], purpose):
        fetched = job.fetch(deployment.experiment.system, version)
        job.progress.heading(f"{experiment} at {version}")
        return measure_extra(job, deployment, fetched, profile=profile)


def measure_extra(
    job: Job, deployment: Deployment, fetched: Fetched, *, profile: bool = False
) -> Trial:
    """Measure one extra trial of what was fetched; the caller holds the testbed (`hold`)."""
    now = datetime.now(UTC)
    start = start_of_ids(job.paths, "", now)
    name = f"{start}T{now:%H%M%S}.{deployment.experiment.name}.{fetched.release.version}"
    while (job.paths.trials / name).exists():  # one that failed within a second is tried again
        name += "+"
    order = order_point(name, "", deployment, fetched)
    if profile:
        order = replace(order, purpose=Purpose.COMPARISON, remarks=(PROFILED,))
    return job.measure(order)


def describe(trial: Trial) -> str:
    """Describe in one line how a trial ended, and its headline figures."""
    name = f"{trial.experiment} at {trial.release.version}"
    if trial.status is not TrialStatus.COMPLETED:
        reasons = "; ".join(reason.text for reason in trial.reasons)
        return f"{name}: {trial.status.upper()}: {reasons}"
    return f"{name}: completed: {'; '.join(_headline(trial))}"


def explain(trial: Trial, paths: DataPaths) -> str:
    """Describe how a trial ended; of one that did not complete, also the last lines of its log."""
    if trial.status is TrialStatus.COMPLETED:
        return describe(trial)
    tail = trial.log_tail.splitlines()[-_LOG_LINES:]
    shown = ["--- last lines of its log ---", *tail] if tail else []
    return "\n".join([describe(trial), *shown, f"everything kept: {paths.trials / trial.id}"])


def _headline(trial: Trial) -> Iterator[str]:
    overall = {
        (sample.phase, sample.metric, sample.statistic): sample.value
        # Those of whole phases come first, and so win, before those of each operation of a mix.
        for sample in reversed(trial.samples)
        if sample.iteration is None
    }
    for (phase, metric, _), value in reversed(overall.items()):
        if metric == THROUGHPUT.name:
            # A program of the user's own may know of service times only.
            times = (overall.get((phase, one.name, "p99")) for one in (RESPONSE_TIME, SERVICE_TIME))
            p99_ms = next((one for one in times if one is not None), math.nan)
            yield f"{phase} {value:.0f} {THROUGHPUT.unit}, p99 {p99_ms:.1f} {RESPONSE_TIME.unit}"
