"""A night: what a suite plans to measure is on disk before the first trial starts, then measured.

A trial's id follows from its night and its place in the plan, so that an interrupted night is
resumed by measuring exactly the trials whose bundles are missing: none lost, none doubled. Where
several labs share a history, the lab is part of the night's id.

    <data>/nights/<id>.json       the plan
    <data>/nights/<id>.untold     there until all has been reported: until then the night is resumed
    <data>/known-nights.json      all plans as they were read last, so that no other file is opened
"""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import TypeAdapter

from perf.config.catalog import Catalog
from perf.history import bundle
from perf.jobs.feasible import check_load_time, planned_s
from perf.jobs.holding import hold
from perf.jobs.measuring import Fetched, FetchedAll, Job, explain, order_point
from perf.jobs.plans import contents, is_done, next_id, no_plan, read_plan
from perf.local import durable
from perf.local.paths import DataPaths
from perf.local.plain_files import read_plain
from perf.model.design import Deployment, Suite
from perf.model.errors import BundleError, ReleaseError, UsageError
from perf.model.identity import content_hash
from perf.model.nights import Chosen, Night, PlannedTrial, is_ahead
from perf.model.results import Artifact, Source, Trial, TrialId
from perf.model.shown import list_some
from perf.systems import registry
from perf.trial.harness import Order, seal_unfetched
from perf.trial.preflight import check_ahead

RESUMABLE_FOR = timedelta(hours=20)
_NIGHT = TypeAdapter(Night)
_KNOWN = TypeAdapter(dict[str, Night], config={"strict": True})
_MOST_KNOWN_BYTES = 256 * 2**20


def fetch_suite(job: Job, suite: Suite) -> FetchedAll:
    """Fetch what a night of the suite installs, before hosts are held for it."""
    return job.fetch_all((one.system, version) for one in suite.experiments for version in one.versions)


def measure_night(
    job: Job, suite: Suite, fetched: FetchedAll | None = None, *, is_to_be_reported: bool = False
) -> tuple[Trial, ...]:
    """Measure what is missing of the suite's night; give all of the night's trials.

    `fetched` is what `fetch_suite` gave. A release that could not be fetched costs its own trials: they
    failed. A night that is to be reported stays unfinished, and is resumed, until `finish_night`.

    Raises:
        MeasureError: another process measures here, or the hosts cannot carry any trial.
        ReleaseError: no release of the night could be fetched.
        UsageError: what is to be stored, or a counted phase, can never be done within its time limit,
            or no rule of the suite chose a release.

    """
    if not any(one.versions for one in suite.experiments):
        raise UsageError(
            f"suite {suite.name} chooses no release; ask the sources: knickpoint releases --refresh"
        )
    deployments = {one.name: job.catalog.resolve(suite, one) for one in suite.experiments}
    for deployment in deployments.values():
        check_load_time(deployment)
    testbed, progress = job.catalog.testbed(suite.testbed), job.progress
    with hold(job.paths, progress, [testbed], f"the trials of suite {suite.name}"):
        # Before the night is planned and anything is downloaded. Each trial checks again.
        for deployment in deployments.values():
            system, listed = deployment.experiment.system, deployment.experiment.versions
            releases = [job.catalog.find_release(system, version) for version in listed]
            check_ahead(deployment, registry.load(system), releases, job.paths.run)
        night, is_resumed = open_night(
            job.paths, job.catalog, suite, datetime.now(UTC), is_to_be_reported=is_to_be_reported
        )
        missing, total = find_missing(night, job.paths), len(night.trials)
        done = total - len(missing)
        how = f"resumed, {done} of {total} trials are done" if is_resumed else "new"
        progress.heading(f"night {night.id} of suite {night.suite}: {total} trials ({how})")
        orders = _order_all(job, night.id, missing, deployments, fetched or {})
        for place, order in enumerate(orders):
            left = [one.deployment for one in orders[place:]]
            progress.expect(_expected_s(_read_finished(night, job.paths), left))
            what = f"{order.deployment.experiment.name} at {order.release.version}"
            progress.heading(f"trial {total - len(left) + 1} of {total}: {what}")
            job.measure(order)
        return tuple(_read_finished(night, job.paths))


def _order_all(
    job: Job,
    night: str,
    missing: Sequence[PlannedTrial],
    deployments: Mapping[str, Deployment],
    fetched: FetchedAll,
) -> list[Order]:
    """Return the orders of the trials whose releases could be fetched; the others have failed.

    Everything is fetched before anything is measured: no download runs beside a measurement.
    """
    wanted = {one: (deployments[one.experiment].experiment.system, one.version) for one in missing}
    known = {**fetched, **job.fetch_all(key for key in wanted.values() if key not in fetched)}
    orders, unfetched = [], []
    for one, key in wanted.items():
        found = known[key]
        if isinstance(found, Fetched):
            orders.append(order_point(one.id, night, deployments[one.experiment], found))
        else:
            nothing = Artifact(source=Source.ARCHIVE, sha256="")
            lost = Fetched(release=job.catalog.find_release(*key), artifact=nothing)
            order = order_point(one.id, night, deployments[one.experiment], lost)
            unfetched.append((order, str(found)))
    if unfetched and not orders:
        raise ReleaseError("\n".join(dict.fromkeys(why for _, why in unfetched)))
    for order, why in unfetched:
        job.progress.report(explain(seal_unfetched(order, why, job.paths), job.paths))
    return orders


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
    nights = read_nights(paths)
    if ahead := [night.id for night in nights if is_ahead(night.started_at, now)]:
        raise UsageError(
            f"of the nights in {paths.nights}, {len(ahead)} began later than now "
            f"({now:%Y-%m-%d %H:%M} UTC): {', '.join(list_some(ahead, 3))}. If this clock is wrong, "
            "set it. If it was wrong then, move their plans and bundles away, and make the history new "
            "without them: knickpoint history rebuild --drop-lost"
        )
    if last := _find_open(paths, catalog, suite, now, is_to_be_reported=is_to_be_reported):
        if is_to_be_reported:
            durable.atomic_write(_untold(paths, last.id), b"")
        return last, True
    night_id = next_id(paths, "", now, paths.nights.glob("*.json"))
    night = Night(
        id=night_id,
        suite=suite.name,
        plan_sha256=plan_hash(catalog, suite),
        started_at=now,
        trials=_plan_trials(suite, night_id, [night for night in nights if night.suite == suite.name]),
        chosen=tuple(
            Chosen(
                experiment=one.name,
                rules=catalog.selectors.get((suite.name, one.name), one.releases),
                versions=one.versions,
            )
            for one in suite.experiments
        ),
    )
    if is_to_be_reported:
        # First, so that no plan is without it. A mark without a plan means nothing.
        durable.atomic_write(_untold(paths, night_id), b"")
    durable.atomic_write(paths.nights / f"{night_id}.json", _NIGHT.dump_json(night, indent=1))
    return night, False


def will_resume(job: Job, suite: Suite) -> bool:
    """Return whether a night of this suite that is to be reported would be resumed now.

    Raises:
        BundleError: a night's file is not one.

    """
    now = datetime.now(UTC)
    return _find_open(job.paths, job.catalog, suite, now, is_to_be_reported=True) is not None


def _find_open(
    paths: DataPaths, catalog: Catalog, suite: Suite, now: datetime, *, is_to_be_reported: bool
) -> Night | None:
    nights = read_nights(paths)
    if not nights:
        return None
    last = nights[-1]
    is_same = last.suite == suite.name and last.plan_sha256 == plan_hash(catalog, suite)
    is_open = find_missing(last, paths) or (is_to_be_reported and _untold(paths, last.id).exists())
    return last if is_same and now - last.started_at < RESUMABLE_FOR and is_open else None


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
    """Read all nights, oldest first; of plans that are as they were last, none is opened.

    Raises:
        BundleError: a file is not a night's plan.

    """
    known: dict[str, Night] = {}
    with suppress(OSError, ValueError):
        known = _KNOWN.validate_json(read_plain(paths.known_nights, _MOST_KNOWN_BYTES))
    found = {}
    for path in paths.nights.glob("*.json"):
        about = path.lstat()
        state = f"{path.name} {about.st_size} {about.st_mtime_ns}"
        found[state] = known.get(state) or _read_night(path)
    if found.keys() != known.keys():
        with suppress(OSError):
            durable.atomic_write(paths.known_nights, _KNOWN.dump_json(found))
    return tuple(sorted(found.values(), key=lambda night: night.started_at))


def _read_night(path: Path) -> Night:
    night = read_plan(path, _NIGHT, "a night")
    if night.id != path.stem:
        raise no_plan(path, "a night", ["id: a plan lies under the id of its night"])
    return night


def plan_hash(catalog: Catalog, suite: Suite) -> str:
    """Hash everything that decides what a night of this suite measures."""
    parts = [
        content_hash(part)
        for experiment in suite.experiments
        for part in contents(catalog.resolve(suite, experiment))
    ]
    return content_hash((suite, tuple(parts)))


def find_new(night: Sequence[PlannedTrial], before: Iterable[Night]) -> tuple[tuple[str, str], ...]:
    """Return which experiment and version of a night no night before it had, where there was one.

    A release that was there in the first night of an experiment is no news.
    """
    had: dict[str, set[str]] = {}
    for known in before:
        for one in known.trials:
            had.setdefault(one.experiment, set()).add(one.version)
    return tuple(
        dict.fromkeys(
            (one.experiment, one.version)
            for one in night
            if one.version not in had.get(one.experiment, {one.version})
        )
    )


def _plan_trials(suite: Suite, night: str, before: Sequence[Night]) -> tuple[PlannedTrial, ...]:
    # Every other night runs the releases the other way round, so that a release's place in the
    # night (a warmer host, a fuller disk) is not mistaken for the release. What is new comes first.
    order = -1 if len(before) % 2 else 1
    planned = [
        PlannedTrial(id="-", experiment=experiment.name, version=version)
        for experiment in suite.experiments
        if len(before) % (experiment.sentinel_every_nights or 1) == 0
        for version in experiment.versions[::order]
    ]
    new = set(find_new(planned, before))
    planned.sort(key=lambda one: (one.experiment, one.version) not in new)
    return tuple(
        replace(one, id=TrialId(f"{night}.{place:02d}.{one.experiment}.{one.version}"))
        for place, one in enumerate(planned, start=1)
    )
