"""Why two sides differ: two more blocks of trials with a profiler attached, after the verdict.

An edge: it measures through `perf.jobs.interleaving`. What the profiles say is computed by
`analysis.comparing.profiles`, which is pure. No verdict rests on these trials.

    <data>/comparisons/<id>/profiles.json   what it came to, beside the plan of its trials
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from analysis.bisecting.record import BisectionRecord
from analysis.comparing.profiles import (
    KINDS,
    Profile,
    ProfileComparison,
    ProfileDifference,
    compare_profiles,
    read_profile_comparison,
    write_profile_comparison,
)
from analysis.comparing.results import ComparisonResult
from analysis.orchestration.comparing import read_saved, record_side
from perf.history.bundle import PROFILES
from perf.jobs.holding import hold
from perf.jobs.interleaving import ComparisonRun, Pairing, fetch_sides, open_plan, take_side
from perf.jobs.measuring import Job
from perf.local import durable
from perf.local.paths import DataPaths
from perf.local.plain_files import read_plain
from perf.model.errors import UsageError
from perf.model.identity import named
from perf.model.results import SIDES, Purpose, Taken, TrialStatus
from perf.model.stacks import UNSEEN, Stacks, read_stacks
from perf.trial.profiling import (
    ALLOCATED_BYTES,
    CPU_INTERVAL_US,
    PROFILED,
    ProfiledTime,
    find_rate,
    missed_looks,
    read_times,
)

PROFILES_FILE = "profiles.json"
BLOCKS = 2
"""Of two trials a side it could hardly be said how they scatter."""
_MOST_PACKED, _MOST_TEXT = 16 * 1024**2, 256 * 1024**2


def read_profile_comparisons(paths: DataPaths) -> tuple[ProfileComparison, ...]:
    """Return all profiles that were compared in a data directory, oldest first.

    Raises:
        InputError: one of them is none.

    """
    found = read_saved(paths.comparisons.glob(f"*/{PROFILES_FILE}"), read_profile_comparison)
    return tuple(sorted(found, key=lambda one: (one.measured_at, one.id)))


def pair_again(job: Job, result: ComparisonResult) -> Pairing:
    """Return the pairing of a comparison that was measured here, to be measured again.

    Raises:
        UsageError: its configuration is no longer what it was.

    """
    suite = job.catalog.suite(result.suite)
    sides = []
    for record in (result.baseline, result.candidate):
        side = take_side(job.catalog, suite, result.experiment, record.version, record.config.name)
        now, then = side.deployment, record
        pairs = (
            (named(now.config), then.config),
            (named(now.workload), then.workload),
            (named(now.topology), then.topology),
        )
        if changed := [new.name for new, old in pairs if new != old]:
            raise UsageError(
                f"{', '.join(changed)} changed since comparison {result.id}, or stood only in the"
                " revision that it compared; run with --configs of that revision, or compare again"
            )
        sides.append(replace(side, label=record.label))
    return Pairing(purpose=Purpose.COMPARISON, suite=suite.name, baseline=sides[0], candidate=sides[1])


def pair_culprit(job: Job, record: BisectionRecord) -> Pairing:
    """Return the pairing of the release that a bisection named, and the measured one before it.

    Raises:
        UsageError: it named none, or what it measured is no longer configured.

    """
    step, suite = record.culprit, job.catalog.suite(record.suite)
    if step is None:
        raise UsageError(f"bisection {record.id} named no release; give a comparison or an incident")
    before, after = (
        take_side(job.catalog, suite, record.experiment, release.version)
        for release in (step.predecessor, step.release)
    )
    return Pairing(purpose=Purpose.COMPARISON, suite=suite.name, baseline=before, candidate=after)


def explain(job: Job, pairing: Pairing) -> ProfileComparison:
    """Measure two blocks with a profiler attached, and keep what it says.

    One that was cut short is resumed.

    Raises:
        MeasureError: another job measures here or on these hosts, or they cannot carry any trial.
        ReleaseError: a release could be fetched from nowhere.

    """
    pairing = replace(
        pairing,
        baseline=replace(pairing.baseline, remarks=(*pairing.baseline.remarks, PROFILED)),
        candidate=replace(pairing.candidate, remarks=(*pairing.candidate.remarks, PROFILED)),
    )
    labels = f"{pairing.candidate.label} with {pairing.baseline.label}"
    testbeds = [pairing.side(side).deployment.testbed for side in SIDES]
    with hold(job.paths, job.progress, testbeds, f"profiles of {labels}"):
        artifacts = fetch_sides(job, pairing)
        plan, is_resumed = open_plan(pairing, artifacts, job.paths, datetime.now(UTC))
        how = "resumed" if is_resumed else "new"
        job.progress.heading(f"profiles {plan.id} ({how}): {labels}")
        course = ComparisonRun(plan=plan, pairing=pairing, artifacts=artifacts, job=job)
        taken = [one for block in range(1, BLOCKS + 1) for one in course.measure_block(block)]
        found = ProfileComparison(
            id=plan.id,
            experiment=plan.experiment,
            baseline=record_side(pairing.baseline, artifacts, "baseline"),
            candidate=record_side(pairing.candidate, artifacts, "candidate"),
            measured_at=max(one.trial.finished_at for one in taken),
            trials=tuple(one.trial.id for one in taken),
            differences=tuple(_compare(job.paths, taken)),
            gaps=tuple(_find_gaps(taken)),
        )
        durable.atomic_write(
            job.paths.comparisons / plan.id / PROFILES_FILE, write_profile_comparison(found)
        )
    return found


def _find_gaps(taken: Sequence[Taken]) -> Iterator[str]:
    """Yield why profiles are missing, each once."""
    said = [
        reason.text
        for one in taken
        for reason in (*one.trial.reasons, *one.trial.remarks)
        if one.trial.status is not TrialStatus.COMPLETED or reason.kind == "profile-missing"
        if reason != PROFILED
    ]
    yield from list(dict.fromkeys(said))[:20]


def _compare(paths: DataPaths, taken: Sequence[Taken]) -> Iterator[ProfileDifference]:
    profiled = [
        (one, times)
        for one in taken
        if one.trial.status is TrialStatus.COMPLETED
        if (times := read_times(paths.trials / one.trial.id))
    ]
    for phase in dict.fromkeys(phase for _, times in profiled for phase in times):
        for kind in KINDS:
            profiles = [
                found
                for one, times in profiled
                if phase in times
                for found in _read(paths, one, phase, kind, times[phase])
            ]
            if difference := compare_profiles(phase, kind, profiles):
                yield difference


def _read(paths: DataPaths, one: Taken, phase: str, kind: str, time: ProfiledTime) -> Iterator[Profile]:
    """Yield the profile of a trial if it has one."""
    stacks = _read_stacks(paths.trials / one.trial.id / PROFILES / f"{phase}-{kind}.collapsed.gz", kind)
    total, operations = sum(stacks.values()), find_rate(one.trial.samples, phase) * time.seconds
    if total and operations:
        if kind == "alloc":
            grain = ALLOCATED_BYTES / operations
            yield Profile(side=one.side, stacks=stacks, unit=1 / operations, grain=grain)
            return
        missed, unit = missed_looks(time, total), CPU_INTERVAL_US / operations
        yield Profile(side=one.side, stacks={**stacks, UNSEEN: missed}, unit=unit, grain=unit)


def _read_stacks(path: Path, kind: str) -> Stacks:
    try:
        packed = read_plain(path, _MOST_PACKED)
        unpacked = zlib.decompressobj(wbits=31).decompress(packed, _MOST_TEXT)
    except (OSError, zlib.error):
        return {}
    return read_stacks(unpacked.decode(errors="replace"), kind)
