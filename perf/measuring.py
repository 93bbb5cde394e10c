"""Measure a night or a single trial: which trials, in which order, with which artifacts.

One process at a time measures into a data directory, and one job at a time on a testbed; a second one
is refused, and says who holds it.
"""

import math
import os
import statistics
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import filelock

from perf import releases
from perf.client_access import prove_on_clients
from perf.config import Catalog, named
from perf.credentials import prove_access
from perf.deployment import client_hosts, place_nodes
from perf.design import Deployment, Experiment, Suite, Testbed
from perf.errors import BundleError, HostUnfit, MeasureError, UsageError
from perf.harness import Order, run_trial
from perf.history import bundle
from perf.history.place import start_of_ids
from perf.hosts import lease
from perf.hosts.checks import check_hosts
from perf.hosts.readiness import check_readiness, name_profile
from perf.load.feasible import check_load_time
from perf.load.programs import check_engines
from perf.load.stages import expected_s, operations_of
from perf.metrics import RESPONSE_TIME, THROUGHPUT
from perf.model import Artifact, Purpose, Release, SeriesKey, Source, Trial, TrialId, TrialStatus
from perf.night import Night, PlannedTrial, open_night
from perf.places import Places
from perf.progress import Progress
from perf.systems import registry
from perf.workloads.loading import preload_rows

# Measured on two busy cores: boot and end of a three-node ring beside the load itself.
_DEPLOY_S = 45.0
_PRELOAD_ROWS_PER_S = 400.0
_LOCK_WAIT_S = 60.0
# A lease outlasts its trial by far: what runs long must not lose its hosts to another job.
_LEASED_TIMES = 3
_LEASED_BEYOND_S = 600.0
_LOG_LINES = 12


@dataclass(frozen=True, slots=True)
class Session:
    """What one measuring command works with."""

    catalog: Catalog
    suite: Suite
    places: Places
    progress: Progress


def measure_night(session: Session, *, is_to_be_told: bool = False) -> tuple[Trial, ...]:
    """Measure what is missing of the suite's night; give all of the night's trials.

    A night that is to be told stays unfinished, and is resumed, until `finish_night`.

    Raises:
        MeasureError: another process measures here, or the hosts cannot carry any trial.
        ReleaseError: a release could be fetched from nowhere.
        UsageError: what is to be stored, or a counted phase, can never be done within its time limit.

    """
    purpose = f"the trials of suite {session.suite.name}"
    for experiment in session.suite.experiments:
        check_load_time(session.catalog.resolve(session.suite, experiment))
    with hold(session.places, session.progress, [_testbed(session)], purpose):
        _check_hosts(session)
        now = datetime.now(UTC)
        night, is_resumed = open_night(
            session.places, session.catalog, session.suite, now, is_to_be_told=is_to_be_told
        )
        missing = night.missing(session.places)
        done = len(night.trials) - len(missing)
        how = f"resumed, {done} of {len(night.trials)} trials are done" if is_resumed else "new"
        session.progress.heading(
            f"night {night.id} of suite {night.suite}: {len(night.trials)} trials ({how})"
        )
        artifacts = _fetch_all(session, missing)
        for place, planned in enumerate(missing, start=1):
            session.progress.expect(_expected_s(session, night, missing[place - 1 :]))
            session.progress.heading(
                f"trial {done + place} of {len(night.trials)}: {planned.experiment} "
                f"at {planned.version}"
            )
            trial = _run(session, planned.experiment, artifacts[planned.id], planned.id, night.id)
            session.progress.tell(explain(trial, session.places))
        return tuple(_read_finished(session, night))


def measure_one(session: Session, experiment: str, version: str) -> Trial:
    """Measure one extra trial of an experiment at a release, outside of any night's plan."""
    check_load_time(_resolve(session, experiment))
    purpose = f"a trial of {experiment} at {version}"
    with hold(session.places, session.progress, [_testbed(session)], purpose):
        fetched = fetch_release(session, experiment, version)
        session.progress.heading(f"{experiment} at {version}")
        return measure_extra(session, experiment, fetched)


def fetch_release(session: Session, experiment: str, version: str) -> tuple[Release, Artifact]:
    """Fetch what an experiment installs at a release.

    Raises:
        ReleaseError: the release could be fetched from nowhere.
        UsageError: the release is unknown.

    """
    system = registry.load(_resolve(session, experiment).experiment.system)
    release = releases.find_release(system, version)
    return release, releases.fetch(system, release, tell=session.progress.tell)


def measure_extra(session: Session, experiment: str, fetched: tuple[Release, Artifact]) -> Trial:
    """Measure one extra trial of what was fetched; the caller holds the testbed (`hold`)."""
    now = datetime.now(UTC)
    start = start_of_ids(session.places, "", now)
    name = f"{start}T{now:%H%M%S}.{experiment}.{fetched[0].version}"
    while (session.places.trials / name).exists():  # one that failed within a second is tried again
        name += "+"
    trial = _run(session, experiment, fetched, name, night="")
    session.progress.tell(explain(trial, session.places))
    return trial


def describe(trial: Trial) -> str:
    """Say in one line how a trial ended, and its headline figures."""
    name = f"{trial.experiment} at {trial.release.version}"
    if trial.status is not TrialStatus.COMPLETED:
        reasons = "; ".join(reason.text for reason in trial.reasons)
        return f"{name}: {trial.status.upper()}: {reasons}"
    return f"{name}: completed: {'; '.join(_headline(trial))}"


def explain(trial: Trial, places: Places) -> str:
    """Say how a trial ended; of one that did not complete, also the last lines of its log."""
    if trial.status is TrialStatus.COMPLETED:
        return describe(trial)
    tail = trial.log_tail.splitlines()[-_LOG_LINES:]
    shown = ["--- last lines of its log ---", *tail] if tail else []
    return "\n".join([describe(trial), *shown, f"everything kept: {places.trials / trial.id}"])


def _headline(trial: Trial) -> Iterator[str]:
    overall = {
        (sample.phase, sample.metric, sample.statistic): sample.value
        # Those of whole phases come first, and so win, before those of each operation of a mix.
        for sample in reversed(trial.samples)
        if sample.iteration is None
    }
    for (phase, metric, _), value in reversed(overall.items()):
        if metric == THROUGHPUT.name:
            p99_ms = overall.get((phase, RESPONSE_TIME.name, "p99"), math.nan)
            yield f"{phase} {value:.0f} {THROUGHPUT.unit}, p99 {p99_ms:.1f} {RESPONSE_TIME.unit}"


def find_experiment(suite: Suite, name: str) -> Experiment:
    """Give an experiment of a suite; raise UsageError where it has none of that name."""
    for experiment in suite.experiments:
        if experiment.name == name:
            return experiment
    known = ", ".join(experiment.name for experiment in suite.experiments)
    raise UsageError(f"suite {suite.name} has no experiment {name!r}; it has: {known}")


def find_experiment_of(catalog: Catalog, suite: Suite, key: SeriesKey) -> Experiment | None:
    """Give the experiment of a suite that measures a series, as it is configured now; no sentinel."""
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


def _resolve(session: Session, experiment: str) -> Deployment:
    return session.catalog.resolve(session.suite, find_experiment(session.suite, experiment))


def _fetch_all(
    session: Session, planned: tuple[PlannedTrial, ...]
) -> dict[str, tuple[Release, Artifact]]:
    # Everything is fetched before anything is measured: a night must not stop half-way because an
    # archive is out of reach, and no download runs beside a measurement.
    return {trial.id: fetch_release(session, trial.experiment, trial.version) for trial in planned}


def _run(
    session: Session,
    experiment: str,
    release_and_artifact: tuple[Release, Artifact],
    trial_id: str,
    night: str,
) -> Trial:
    deployment = _resolve(session, experiment)
    release, artifact = release_and_artifact
    order = Order(
        trial=TrialId(trial_id),
        night=night,
        purpose=_purpose(deployment, artifact),
        deployment=deployment,
        release=release,
        artifact=artifact,
    )
    system = registry.load(deployment.experiment.system)
    renew_lease(deployment)
    try:
        return run_trial(order, system, session.places, session.progress)
    except HostUnfit as problem:
        hint = "finished trials are kept; the same command resumes here"
        raise HostUnfit(f"{problem}\n{hint}") from problem


def _purpose(deployment: Deployment, artifact: Artifact) -> Purpose:
    if artifact.source is Source.PATH:
        # A local copy may be anything: it is kept and shown, but is no point of a release's series.
        return Purpose.CANDIDATE
    return Purpose.SENTINEL if deployment.experiment.sentinel_every_nights else Purpose.SCHEDULED


def _expected_s(session: Session, night: Night, missing: tuple[PlannedTrial, ...]) -> float:
    # The night's own finished trials are the best guess; before the first, the configuration is.
    taken = [
        (trial.finished_at - trial.started_at).total_seconds()
        for trial in _read_finished(session, night)
    ]
    if taken:
        return statistics.median(taken) * len(missing)
    return sum(planned_s(_resolve(session, trial.experiment)) for trial in missing)


def _read_finished(session: Session, night: Night) -> Iterator[Trial]:
    missing = {trial.id for trial in night.missing(session.places)}
    for planned in night.trials:
        if planned.id not in missing:
            # A damaged bundle is refused loudly when it is appended; it must not stop a night.
            with suppress(BundleError):
                yield bundle.read(session.places.trials / planned.id)[0]


def _check_hosts(session: Session) -> None:
    # Before the night is planned and anything is downloaded. Each trial checks again.
    for experiment in session.suite.experiments:
        deployment = session.catalog.resolve(session.suite, experiment)
        clients = client_hosts(deployment.testbed, deployment.topology.clients)
        prove_access(deployment.config.access)
        prove_on_clients(deployment.config.access, [remote for _, remote in clients])
        check_engines(deployment.engine, clients)
        system = registry.load(experiment.system)
        nodes = place_nodes(deployment, session.places.run)
        # Servers that an interrupted run left behind hold ports; the first trial ends them.
        if not any(map(system.is_running, nodes)):
            check_hosts(nodes, system.ports(), deployment.testbed.needs, clients)
        found = (releases.find_release(system, version) for version in experiment.releases)
        for profile in sorted({name_profile(system, release) for release in found}):
            check_readiness(deployment, profile, session.places.run)


def planned_s(deployment: Deployment) -> float:
    """Guess how long a trial takes, in seconds, from its configuration alone."""
    workload = deployment.workload
    rows = preload_rows(workload)
    rows += sum(operations_of(workload, phase) for phase in workload.sequence)
    return _DEPLOY_S + rows / _PRELOAD_ROWS_PER_S + expected_s(workload)


def renew_lease(deployment: Deployment) -> None:
    """Hold the testbed until the end of a trial that begins now, and long after.

    Raises:
        MeasureError: the lease was lost; says how and to whom.
        StepFailed: a host cannot be reached.

    """
    limits = deployment.testbed.limits
    waits_s = limits.start_s + limits.stop_s + limits.load_s + limits.connect_s + limits.settle_s
    parts = deployment.workload.measurements
    warm_ups_s = sum(part.warmup_cap_s * part.iterations for part in parts)
    for_s = _LEASED_TIMES * planned_s(deployment) + warm_ups_s + waits_s + _LEASED_BEYOND_S
    lease.renew(deployment.testbed, for_s)


def _testbed(session: Session) -> Testbed:
    return session.catalog.testbeds[session.suite.testbed]


@contextmanager
def hold(
    places: Places, progress: Progress, testbeds: Iterable[Testbed], purpose: str
) -> Iterator[None]:
    """Hold a data directory and all hosts of some testbeds for one job, over its whole span.

    What this process holds already, as a night over its bisections, it holds on.

    Raises:
        MeasureError: another process measures into the data directory or on one of the hosts, and
            keeps doing so; or a host cannot be reached.

    """
    with _only_one(places, progress), lease.hold(testbeds, purpose, progress.tell):
        yield


@contextmanager
def _only_one(places: Places, progress: Progress) -> Iterator[None]:
    """Hold the lock of a data directory; raise MeasureError if another process keeps holding it.

    Who holds it already, as a bisection over its probes, holds it on.
    """
    places.data.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(places.lock, is_singleton=True)
    try:
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            # A run that was just interrupted may still be stopping its servers.
            progress.tell(f"another run measures into {places.data}; waiting up to {_LOCK_WAIT_S:g} s")
            lock.acquire(timeout=_LOCK_WAIT_S)
    except filelock.Timeout as error:
        holder = places.lock.with_suffix(".pid")
        pid = holder.read_text().strip() if holder.exists() else "unknown"
        raise MeasureError(
            f"another run (pid {pid}) measures into {places.data}; wait for it to end, "
            "or give --data another directory"
        ) from error
    try:
        places.lock.with_suffix(".pid").write_text(f"{os.getpid()}\n")
        bundle.remove_interrupted(places)
        yield
    finally:
        lock.release()
