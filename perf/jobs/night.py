"""The files of nights: what a suite plans to measure is on disk before the first trial starts.

A trial's id follows from its night and its place in the plan, so that an interrupted night is
resumed by measuring exactly the trials whose bundles are missing: none lost, none doubled. Where
several labs share a history, the lab is part of the night's id.

    <data>/nights/<id>.json       the plan
    <data>/nights/<id>.untold     there until all has been told: until then the night is resumed
"""

from datetime import datetime, timedelta
from pathlib import Path

from pydantic import TypeAdapter

from perf.config.catalog import Catalog
from perf.jobs.plans import next_id, no_plan, read_plan
from perf.local import durable
from perf.local.places import Places
from perf.model.design import Suite
from perf.model.identity import content_hash
from perf.model.nights import Night, PlannedTrial
from perf.model.results import TrialId

RESUMABLE_FOR = timedelta(hours=20)


_NIGHT = TypeAdapter(Night)


def find_missing(night: Night, places: Places) -> tuple[PlannedTrial, ...]:
    """Return the planned trials without a bundle, in order."""
    return tuple(trial for trial in night.trials if not (places.trials / trial.id).is_dir())


def open_night(
    places: Places, catalog: Catalog, suite: Suite, now: datetime, *, is_to_be_told: bool = False
) -> tuple[Night, bool]:
    """Resume the newest night if it is unfinished, young and of the same plan; else plan a new one.

    Returns the night and whether it is resumed. The new plan is on disk before this returns. A night
    that is to be told is unfinished until `finish_night`; another one until its last trial.

    Raises:
        BundleError: a night's file is not one.

    """
    plan = plan_hash(catalog, suite)
    nights = read_nights(places)
    if nights:
        last = nights[-1]
        is_same = last.suite == suite.name and last.plan_sha256 == plan
        is_open = find_missing(last, places) or (is_to_be_told and _untold(places, last.id).exists())
        if is_same and now - last.started_at < RESUMABLE_FOR and is_open:
            if is_to_be_told:
                durable.write(_untold(places, last.id), b"")
            return last, True
    night_id = next_id(places, "", now, places.nights.glob("*.json"))
    night = Night(
        id=night_id,
        suite=suite.name,
        plan_sha256=plan,
        started_at=now,
        trials=_plan_trials(suite, night_id, sum(night.suite == suite.name for night in nights)),
    )
    if is_to_be_told:
        # First, so that no plan is without it. A mark without a plan means nothing.
        durable.write(_untold(places, night_id), b"")
    durable.write(places.nights / f"{night_id}.json", _NIGHT.dump_json(night, indent=1))
    return night, False


def finish_night(places: Places, night_id: str) -> None:
    """Keep on disk that a night was told: the next one is a new night.

    Marks of nights before it go first: only the newest is ever resumed, so theirs would stay for good.
    """
    for mark in places.nights.glob("*.untold"):
        if mark.stem != night_id:
            durable.remove(mark)
    durable.remove(_untold(places, night_id))


def _untold(places: Places, night_id: str) -> Path:
    return places.nights / f"{night_id}.untold"


def read_nights(places: Places) -> tuple[Night, ...]:
    """Read all nights, oldest first.

    Raises:
        BundleError: a file is not a night's plan.

    """
    nights = []
    for path in places.nights.glob("*.json"):
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
        for resolved in [catalog.resolve(suite, experiment)]
        for part in (resolved.topology, resolved.testbed, resolved.workload, resolved.config)
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
