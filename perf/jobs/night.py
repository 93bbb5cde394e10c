"""A night: what a suite plans to measure is on disk before the first trial starts, then measured.

A trial's id follows from its night and its place in the plan, so that an interrupted night is
resumed by measuring exactly the trials whose bundles are missing: none lost, none doubled. Where
several labs share a history, the lab is part of the night's id.

    <data>/nights/<id>.json       the plan
    <data>/nights/<id>.untold     there until all has been reported: until then the night is resumed
"""

import statistics
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import TypeAdapter

from perf.config.catalog import Catalog
from perf.history import bundle
from perf.jobs.feasible import check_load_time, planned_s
from perf.jobs.holding import hold
from perf.jobs.measuring import Job, order_point
from perf.jobs.plans import contents, is_done, next_id, no_plan, read_plan
from perf.local import durable
from perf.local.paths import DataPaths
from perf.model.design import Deployment, Suite
from perf.model.errors import BundleError, UsageError
from perf.model.identity import content_hash
from perf.model.nights import Night, PlannedTrial, is_ahead
from perf.model.results import Trial, TrialId
from perf.model.shown import list_some
from perf.systems import registry
from perf.trial.preflight import check_ahead

RESUMABLE_FOR = timedelta(hours=20)
_NIGHT = TypeAdapter(Night)


def measure_night(job: Job, suite: Suite, *, is_to_be_reported: bool = False) -> tuple[Trial, ...]:
    """Measure what is missing of the suite's night; give all of the night's trials.

    A night that is to be reported stays unfinished, and is resumed, until `finish_night`.

    Raises:
        MeasureError: another process measures here, or the hosts cannot carry any trial.
        ReleaseError: a release could be fetched from nowhere.
        UsageError: what is to be stored, or a counted phase, can never be done within its time limit.

    """
    deployments = {one.name: job.catalog.resolve(suite, one) for one in suite.experiments}
    for deployment in deployments.values():
        check_load_time(deployment)
    testbed, progress = job.catalog.testbed(suite.testbed), job.progress
    with hold(job.paths, progress, [testbed], f"the trials of suite {suite.name}"):
        # Before the night is planned and anything is downloaded. Each trial checks again.
        for deployment in deployments.values():
            check_ahead(deployment, registry.load(deployment.experiment.system), job.paths.run)
        night, is_resumed = open_night(
            job.paths, job.catalog, suite, datetime.now(UTC), is_to_be_reported=is_to_be_reported
        )
        missing, total = find_missing(night, job.paths), len(night.trials)
        done = total - len(missing)
        how = f"resumed, {done} of {total} trials are done" if is_resumed else "new"
        progress.heading(f"night {night.id} of suite {night.suite}: {total} trials ({how})")
        # Everything is fetched before anything is measured: a night must not stop half-way because an
        # archive is out of reach, and no download runs beside a measurement.
        orders = [
            order_point(
                one.id,
                night.id,
                deployments[one.experiment],
                job.fetch(deployments[one.experiment].experiment.system, one.version),
            )
            for one in missing
        ]
        for place, order in enumerate(orders):
            left = [one.deployment for one in orders[place:]]
            progress.expect(_expected_s(_read_finished(night, job.paths), left))
            what = f"{order.deployment.experiment.name} at {order.release.version}"
            progress.heading(f"trial {done + place + 1} of {total}: {what}")
            job.measure(order)
        return tuple(_read_finished(night, job.paths))


def _expected_s(finished: Iterable[Trial], left: list[Deployment]) -> float:
    # The night's own finished trials are the best guess; before the first, the configuration is.
    taken = [(trial.finished_at - trial.started_at).total_seconds() for trial in finished]
    return statistics.median(taken) * len(left) if taken else sum(map(planned_s, left))


def _read_finished(night: Night, paths: DataPaths) -> Iterator[Trial]:
    for planned in night.trials:
        if is_done(paths, planned.id):
            # A damaged bundle is refused loudly when it is appended; it must not stop a night.
            with suppress(BundleError):
                yield bundle.read(paths.trials / planned.id)[0]


def find_missing(night: Night, paths: DataPaths) -> tuple[PlannedTrial, ...]:
    """Return the planned trials without a bundle, in order."""
    return tuple(trial for trial in night.trials if not is_done(paths, trial.id))


def open_night(
    paths: DataPaths, catalog: Catalog, suite: Suite, now: datetime, *, is_to_be_reported: bool = False
) -> tuple[Night, bool]:
    """Resume the newest night if it is unfinished, young and of the same plan; else plan a new one.

    Returns the night and whether it is resumed. The new plan is on disk before this returns. A night
    that is to be reported is unfinished until `finish_night`; another one until its last trial.

    Raises:
        BundleError: a night's file is not one.
        UsageError: a night has begun later than `now`.

    """
    plan = plan_hash(catalog, suite)
    nights = read_nights(paths)
    if ahead := [night.id for night in nights if is_ahead(night.started_at, now)]:
        raise UsageError(
            f"of the nights in {paths.nights}, {len(ahead)} began later than now "
            f"({now:%Y-%m-%d %H:%M} UTC): {', '.join(list_some(ahead, 3))}. If this clock is wrong, "
            "set it. If it was wrong then, move their plans and bundles away, and make the history new "
            "without them: knickpoint history rebuild --drop-lost"
        )
    if nights:
        last = nights[-1]
        is_same = last.suite == suite.name and last.plan_sha256 == plan
        is_open = find_missing(last, paths) or (is_to_be_reported and _untold(paths, last.id).exists())
        if is_same and now - last.started_at < RESUMABLE_FOR and is_open:
            if is_to_be_reported:
                durable.atomic_write(_untold(paths, last.id), b"")
            return last, True
    night_id = next_id(paths, "", now, paths.nights.glob("*.json"))
    night = Night(
        id=night_id,
        suite=suite.name,
        plan_sha256=plan,
        started_at=now,
        trials=_plan_trials(suite, night_id, sum(night.suite == suite.name for night in nights)),
    )
    if is_to_be_reported:
        # First, so that no plan is without it. A mark without a plan means nothing.
        durable.atomic_write(_untold(paths, night_id), b"")
    durable.atomic_write(paths.nights / f"{night_id}.json", _NIGHT.dump_json(night, indent=1))
    return night, False


def finish_night(paths: DataPaths, night_id: str) -> None:
    """Keep on disk that a night was reported: the next one is a new night.

    Marks of nights before it go first: only the newest is ever resumed, so theirs would stay for good.
    """
    for mark in paths.nights.glob("*.untold"):
        if mark.stem != night_id:
            durable.remove(mark)
    durable.remove(_untold(paths, night_id))


def _untold(paths: DataPaths, night_id: str) -> Path:
    return paths.nights / f"{night_id}.untold"


def read_nights(paths: DataPaths) -> tuple[Night, ...]:
    """Read all nights, oldest first.

    Raises:
        BundleError: a file is not a night's plan.

    """
    nights = []
    for path in paths.nights.glob("*.json"):
        night = read_plan(path, _NIGHT, "a night")
        if night.id != path.stem:
            raise no_plan(path, "a night", ["id: a plan lies under the id of its night"])
        nights.append(night)
    return tuple(sorted(nights, key=lambda night: night.started_at))


def plan_hash(catalog: Catalog, suite: Suite) -> str:
    """Hash everything that decides what a night of this suite measures."""
    parts = [
        content_hash(part)
        for experiment in suite.experiments
        for part in contents(catalog.resolve(suite, experiment))
    ]
    return content_hash((suite, tuple(parts)))


def _plan_trials(suite: Suite, night: str, nights_before: int) -> tuple[PlannedTrial, ...]:
    # Every other night runs the releases the other way round, so that a release's place in the
    # night (a warmer host, a fuller disk) is not mistaken for the release.
    order = -1 if nights_before % 2 else 1
    pairs = [
        (experiment.name, version)
        for experiment in suite.experiments
        if nights_before % (experiment.sentinel_every_nights or 1) == 0
        for version in experiment.releases[::order]
    ]
    return tuple(
        PlannedTrial(
            id=TrialId(f"{night}.{place:02d}.{experiment}.{version}"),
            experiment=experiment,
            version=version,
        )
        for place, (experiment, version) in enumerate(pairs, start=1)
    )
