"""Measure a night or a single trial: which trials, in which order, with which artifacts.

One process at a time measures into a data directory, and one job at a time on a testbed; a second one
is refused, and says who holds it.
"""

import math
import statistics
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from perf.config.catalog import Catalog, find_experiment
from perf.history import bundle
from perf.history.place import start_of_ids
from perf.hosts.testbed import place_clients
from perf.hosts.tuning.readiness import check_readiness
from perf.jobs.feasible import check_load_time, planned_s
from perf.jobs.holding import hold, renew_lease
from perf.jobs.night import find_missing, open_night
from perf.local.places import Places
from perf.local.progress import Progress
from perf.model.design import Deployment, Suite, Testbed
from perf.model.errors import BundleError, HostUnfit
from perf.model.metrics import RESPONSE_TIME, THROUGHPUT
from perf.model.nights import Night, PlannedTrial
from perf.model.results import (
    Artifact,
    Purpose,
    Release,
    Source,
    Trial,
    TrialId,
    TrialStatus,
)
from perf.releases import artifacts as releases
from perf.systems import registry
from perf.systems.contract import name_profile
from perf.trial.harness import Order, run_trial
from perf.trial.placement import place_nodes
from perf.trial.preflight import check_access, check_fitness

_LOG_LINES = 12


@dataclass(frozen=True, slots=True)
class Job:
    """What one measuring command works with."""

    catalog: Catalog
    suite: Suite
    places: Places
    progress: Progress


def measure_night(session: Job, *, is_to_be_told: bool = False) -> tuple[Trial, ...]:
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
        missing = find_missing(night, session.places)
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


def measure_one(session: Job, experiment: str, version: str) -> Trial:
    """Measure one extra trial of an experiment at a release, outside of any night's plan."""
    check_load_time(_resolve(session, experiment))
    purpose = f"a trial of {experiment} at {version}"
    with hold(session.places, session.progress, [_testbed(session)], purpose):
        fetched = fetch_release(session, experiment, version)
        session.progress.heading(f"{experiment} at {version}")
        return measure_extra(session, experiment, fetched)


def fetch_release(session: Job, experiment: str, version: str) -> tuple[Release, Artifact]:
    """Fetch what an experiment installs at a release.

    Raises:
        ReleaseError: the release could be fetched from nowhere.
        UsageError: the release is unknown.

    """
    system = registry.load(_resolve(session, experiment).experiment.system)
    release = releases.find_release(system, version)
    return release, releases.fetch(system, release, tell=session.progress.tell)


def measure_extra(session: Job, experiment: str, fetched: tuple[Release, Artifact]) -> Trial:
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


def _resolve(session: Job, experiment: str) -> Deployment:
    return session.catalog.resolve(session.suite, find_experiment(session.suite, experiment))


def _fetch_all(session: Job, planned: tuple[PlannedTrial, ...]) -> dict[str, tuple[Release, Artifact]]:
    # Everything is fetched before anything is measured: a night must not stop half-way because an
    # archive is out of reach, and no download runs beside a measurement.
    return {trial.id: fetch_release(session, trial.experiment, trial.version) for trial in planned}


def _run(
    session: Job,
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


def _expected_s(session: Job, night: Night, missing: tuple[PlannedTrial, ...]) -> float:
    # The night's own finished trials are the best guess; before the first, the configuration is.
    taken = [
        (trial.finished_at - trial.started_at).total_seconds()
        for trial in _read_finished(session, night)
    ]
    if taken:
        return statistics.median(taken) * len(missing)
    return sum(planned_s(_resolve(session, trial.experiment)) for trial in missing)


def _read_finished(session: Job, night: Night) -> Iterator[Trial]:
    missing = {trial.id for trial in find_missing(night, session.places)}
    for planned in night.trials:
        if planned.id not in missing:
            # A damaged bundle is refused loudly when it is appended; it must not stop a night.
            with suppress(BundleError):
                yield bundle.read(session.places.trials / planned.id)[0]


def _check_hosts(session: Job) -> None:
    # Before the night is planned and anything is downloaded. Each trial checks again.
    for experiment in session.suite.experiments:
        deployment = session.catalog.resolve(session.suite, experiment)
        testbed, topology, run_dir = deployment.testbed, deployment.topology, session.places.run
        clients = place_clients(testbed, topology.clients, run_dir)
        check_access(deployment, clients)
        system = registry.load(experiment.system)
        check_fitness(deployment, system, place_nodes(deployment, run_dir), clients)
        found = (releases.find_release(system, version) for version in experiment.releases)
        for profile in sorted({name_profile(system, release) for release in found}):
            check_readiness(deployment, profile, run_dir)


def _testbed(session: Job) -> Testbed:
    return session.catalog.testbeds[session.suite.testbed]
