"""A bisection from its first probe to its answer: ask for the next step, compare, save, go on.

An edge: each probe is a side-by-side comparison of a release with the known good end. What to probe and
what was found is decided by `bisection`, which is pure.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from analysis.bisecting.bisection import LEAST, Probe
from analysis.bisecting.chances import ReleaseLevel
from analysis.bisecting.probing import (
    LevelSpan,
    Probed,
    ReleaseStatus,
    level,
    probe_look,
    read_probe,
    stand,
)
from analysis.bisecting.record import (
    BISECTION,
    BisectionRecord,
    ProbeRecord,
    read_bisection,
    write_bisection,
)
from analysis.comparing.results import MOST_BYTES, ComparisonResult
from analysis.comparing.turns import Inquiry, is_over
from analysis.detection import words
from analysis.detection.verdict import Outcome
from analysis.orchestration.comparing import Budget, run_comparison
from analysis.orchestration.question import BisectionQuestion
from perf.config.catalog import find_experiment
from perf.history.place import start_of_ids
from perf.jobs.holding import hold
from perf.jobs.past_turns import find_past_turns, has_trials
from perf.jobs.side_by_side import Pairing, Side, fetch_sides, take_side
from perf.local import durable
from perf.local.places import Places
from perf.local.plain_files import read_plain
from perf.local.progress import Progress
from perf.model.errors import InputError, MeasureError, ReleaseError
from perf.model.identity import content_hash
from perf.model.results import TURNS, Purpose, Release, SideName, Taken, TrialStatus
from perf.model.rules import Detection
from perf.releases import artifacts as releases
from perf.systems import registry

RESUMABLE_FOR = timedelta(days=14)
"""An older unfinished bisection is begun anew; its trials are found again all the same."""
_TRIED = 2
"""Trials of a release that did not complete, and no other did: it is skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """A bisection under way: its sides by version, and all that measuring needs."""

    sides: Mapping[str, Side]
    settings: Detection
    budget: Budget
    places: Places
    progress: Progress


def read_bisections(places: Places) -> tuple[BisectionRecord, ...]:
    """Give all bisections of a data directory, finished or not, oldest first.

    Raises:
        InputError: a file is not one.

    """
    found = []
    for path in places.bisections.glob(f"*/{BISECTION}"):
        try:
            content = read_plain(path, MOST_BYTES)
        except OSError as error:
            hint = f"move {path.parent} away, its trials are kept"
            raise InputError(path, [f"{error.strerror}", hint]) from error
        found.append(read_bisection(content, path))
    return tuple(sorted(found, key=lambda one: (one.started_at, one.id)))


def run_bisection(
    question: BisectionQuestion, settings: Detection, budget: Budget, places: Places, progress: Progress
) -> BisectionRecord:
    """Probe release after release until the culprit is found, or nothing more can be said.

    Each probe is saved as soon as it is over; a bisection of the same question that was cut short is
    resumed, also in the middle of a probe. What was measured before counts and is not measured again.
    `budget` holds for the whole bisection; a probe takes at most `settings.comparison.trials`. No other
    process measures here meanwhile, not between two probes either.

    Raises:
        InputError: a saved bisection is none.
        MeasureError: the known good end cannot be measured, the hosts cannot carry any trial, or
            another process measures here.
        ReleaseError: the known good end could be fetched from nowhere.
        UsageError: the releases are no range.

    """
    sides = _take_sides(question)
    search = _Search(sides=sides, settings=settings, budget=budget, places=places, progress=progress)
    testbed = question.catalog.testbeds[question.suite.testbed]
    purpose = f"a bisection of {question.experiment}, {question.first} to {question.last}"
    with hold(places, progress, [testbed], purpose):
        record = _open(question, search)
        while record.found is None:
            step = record.next_step(_trials_left(record, search))
            if isinstance(step, Probe):
                probe = _measure(_prefer_known(step, record, search), record, search)
                record = replace(record, probes=(*record.probes, probe))
                record = replace(record, remarks=_remarks(record, search))
            else:
                record = replace(record, found=step)
            record = _save(record, places)
    return record


def _take_sides(question: BisectionQuestion) -> dict[str, Side]:
    return {
        release.version: take_side(
            question.catalog, question.suite, question.experiment, release.version
        )
        for release in question.releases
    }


def _open(question: BisectionQuestion, search: _Search) -> BisectionRecord:
    """Resume the newest unfinished, young bisection of the same question; else begin and save one."""
    now = datetime.now(UTC)
    fresh = _plan(question, search, now)
    for known in reversed(read_bisections(search.places)):
        is_same = known.question_sha256 == fresh.question_sha256
        if is_same and known.found is None and now - known.started_at < RESUMABLE_FOR:
            record = replace(known, most_trials=fresh.most_trials, most_minutes=fresh.most_minutes)
            how = f"resumed, {words.counted(len(known.probes), 'probe is', 'probes are')} done"
            break
    else:
        record, how = fresh, "new"
    search.progress.heading(
        f"bisection {record.id} ({how}): {record.measure} of {record.experiment},"
        f" {record.good.version} to {record.bad.version}"
    )
    return _save(record, search.places)


def _plan(question: BisectionQuestion, search: _Search, now: datetime) -> BisectionRecord:
    experiment = find_experiment(question.suite, question.experiment)
    span = question.releases
    start = start_of_ids(search.places, "bis-", now)
    numbers = [
        # A directory without a record is what a killed process left, and is used.
        re.match(rf"{re.escape(start)}-(\d+)$", path.parent.name)
        for path in search.places.bisections.glob(f"*/{BISECTION}")
    ]
    number = 1 + max((int(found[1]) for found in numbers if found), default=0)
    return BisectionRecord(
        id=f"{start}-{number}",
        question_sha256=_hash(question, span, search),
        purpose=Purpose.BISECTION,
        suite=question.suite.name,
        experiment=experiment.name,
        system=experiment.system,
        measure=question.measure,
        releases=span,
        most_trials=search.budget.trials,
        most_minutes=search.budget.minutes,
        trials_per_probe=search.settings.comparison.trials,
        started_at=now,
        updated_at=now,
        command=question.command,
        caveat=search.sides[question.first].deployment.testbed.caveat,
    )


def _hash(question: BisectionQuestion, span: Sequence[Release], search: _Search) -> str:
    """Hash all that decides what is measured and asked; not the budget, so that more may be given."""
    system = registry.load(span[0].system)
    # All probes are held against it, so that its bytes must be there, and stay the same.
    good = releases.fetch(system, span[0], tell=search.progress.tell)
    sides = (search.sides[release.version] for release in span)
    parts = tuple(
        content_hash(part)
        for side in sides
        for deployment in (side.deployment,)
        for part in (
            side.version,
            tuple(remark.text for remark in side.remarks),
            *(deployment.topology, deployment.testbed, deployment.workload, deployment.config),
        )
    )
    return content_hash((*parts, span[0].system, str(question.measure), good.sha256))


def _save(record: BisectionRecord, places: Places) -> BisectionRecord:
    record = replace(record, updated_at=datetime.now(UTC))
    durable.write(places.bisections / record.id / BISECTION, write_bisection(record))
    return record


def _trials_left(record: BisectionRecord, search: _Search) -> int:
    """Give how many more trials the budget allows by number and by time."""
    measured = len(record.measured)
    left = search.budget.trials - measured
    minutes_left = search.budget.minutes - record.minutes
    if measured:
        left = min(left, int(minutes_left / (record.minutes / measured)))
    return left if minutes_left > 0 else 0


def _pair(version: str, record: BisectionRecord, search: _Search) -> Pairing:
    return Pairing(
        purpose=record.purpose,
        suite=record.suite,
        baseline=search.sides[record.good.version],
        candidate=search.sides[version],
    )


def _prefer_known(step: Probe, record: BisectionRecord, search: _Search) -> Probe:
    """Take a release that teaches as well, and whose earlier trials tell where it stands, instead."""
    for release in (step.release, *step.others) if step.others else ():
        if not has_trials(record.experiment, release.version, search.places):
            continue
        pairing = _pair(release.version, record, search)
        try:
            prior = _find_prior(pairing, record, search)
        except ReleaseError:
            continue
        if prior and is_over(prior, _inquiry(step, record, search, prior)):
            if release == step.release:
                return step
            reason = "what was measured before tells where it stands"
            return replace(step, release=release, reason=reason)
    return step


def _find_prior(pairing: Pairing, record: BisectionRecord, search: _Search) -> tuple[Taken, ...]:
    """Find what was measured before. Nights that made the bad end suspect have no second vote on it."""
    artifacts = fetch_sides(pairing, search.progress)
    now, is_bad_end = datetime.now(UTC), pairing.candidate.version == record.bad.version
    return find_past_turns(
        pairing, artifacts, search.places, now, search.progress, with_nights=not is_bad_end
    )


def _inquiry(step: Probe, record: BisectionRecord, search: _Search, prior: Sequence[Taken]) -> Inquiry:
    """Give what `run_comparison` will ask of these turns."""
    trials = _budget(record, search).trials
    return Inquiry(
        settings=search.settings,
        trusted=(record.measure,),
        most_blocks=max(1, trials // TURNS) + len({one.block for one in prior}),
        seed=_pair(step.release.version, record, search).seed,
        looker=partial(probe_look, full_change=step.full_change),
    )


def _budget(record: BisectionRecord, search: _Search) -> Budget:
    """Give what one probe may take."""
    return Budget(
        trials=min(record.trials_per_probe, search.budget.trials - len(record.measured)),
        minutes=min(search.settings.comparison.minutes, search.budget.minutes - record.minutes),
    )


def _measure(step: Probe, record: BisectionRecord, search: _Search) -> ProbeRecord:
    """Compare a release with the known good end; resumes a comparison that was cut short."""
    version = step.release.version
    pairing = _pair(version, record, search)
    search.progress.heading(f"probe {len(record.probes) + 1}: {version}: {step.reason}")
    try:
        prior = _find_prior(pairing, record, search)
    except ReleaseError as error:
        return ProbeRecord(
            asked=step.reason,
            probed=Probed(release=step.release, reason=f"it cannot be fetched: {error}"),
            standing=ReleaseStatus.SKIPPED,
        )
    result = run_comparison(
        pairing,
        search.settings,
        _budget(record, search),
        search.places,
        search.progress,
        trusted=(record.measure,),
        looker=partial(probe_look, full_change=step.full_change),
        prior=prior,
        reproduce=_compare_command(version, record),
    )
    probe = _read(step, result, record)
    rest = _trials_left(replace(record, probes=(*record.probes, probe)), search)
    if probe.outcome is Outcome.UNDECIDED and probe.probed.estimate is None and rest < LEAST:
        # The budget ended it before it could teach anything, so nothing is wrong with the release.
        return replace(probe, standing=ReleaseStatus.UNDECIDED)
    return probe


def _compare_command(version: str, record: BisectionRecord) -> str:
    options = ("--suite", record.suite, "--experiment", record.experiment)
    sides = ("--baseline", record.good.version, "--candidate", version)
    return shlex.join(("knickpoint", "compare", *options, *sides, "--measure", str(record.measure)))


def _read(step: Probe, result: ComparisonResult, record: BisectionRecord) -> ProbeRecord:
    if _cannot_be_measured(result, "baseline"):
        raise MeasureError(
            f"the known good end {record.good.version} cannot be measured, so nothing can be held"
            f" against it: {_why(result, 'baseline')}\nMend that (its trials are in the data directory)"
            ", or begin with another release; the same command goes on from here"
        )
    probed = read_probe(step.release, result, record.measure)
    found = next((one for one in result.measures if one.measure == record.measure), None)
    standing = None
    if _cannot_be_measured(result, "candidate"):
        standing = ReleaseStatus.SKIPPED
        why = _why(result, "candidate")
        probed = Probed(release=step.release, trials=probed.trials, reason=why)
    elif probed.estimate is None or probed.effect is None:
        # Both were measured: their values have no ratio, or they are too few, and no more are allowed.
        standing = ReleaseStatus.SKIPPED
        probed = replace(probed, reason=f"{probed.reason} ({result.ended})")
    elif step.full_change is not None and step.release != record.bad:
        standing = stand(probed, step.full_change)
    lower, upper = _name_levels(step.full_change, record)
    return ProbeRecord(
        asked=step.reason,
        probed=probed,
        standing=standing,
        lower=lower,
        upper=upper,
        comparison=result.id,
        outcome=found.outcome if found else Outcome.INVALID,
        before=found.before if found else None,
        after=found.after if found else None,
        trials=result.trials,
    )


def _name_levels(span: LevelSpan | None, record: BisectionRecord) -> tuple[str, str]:
    """Name the two releases between whose levels a probe is read: the ends, unless there are steps."""
    if span is None:
        return "", ""
    names = {level(one.probed): one.probed.release.version for one in record.probes}
    names[ReleaseLevel()] = record.good.version
    return names[span.lower], names[span.upper]


def _cannot_be_measured(result: ComparisonResult, side: SideName) -> bool:
    """Tell whether a side was tried twice in this comparison, and never completed a trial.

    Trials of a release from before stay what they are; the good end is needed now.
    """
    trials = [one for one in result.trials if one.side == side]
    own = [one for one in trials if one.id.startswith(f"{result.id}.")]
    counted = own if side == "baseline" else trials
    is_measured = any(one.status is TrialStatus.COMPLETED for one in counted)
    return len(own) >= _TRIED and not is_measured


def _why(result: ComparisonResult, side: SideName) -> str:
    """Say why the last trial of a side did not complete."""
    *_, last = (one for one in result.trials if one.side == side)
    return "; ".join(reason.text for reason in last.reasons) or result.reason


def _remarks(record: BisectionRecord, search: _Search) -> tuple[str, ...]:
    """Say what was said of the trials of the releases that were probed, each once."""
    probed = {record.good, *(one.probed.release for one in record.probes)}
    said: dict[str, list[str]] = {}
    for release in record.releases:
        for remark in search.sides[release.version].remarks if release in probed else ():
            said.setdefault(remark.text, []).append(release.version)
    return tuple(f"{', '.join(versions)}: {text}" for text, versions in said.items())
