"""A bisection from its question to its answer: ask for the next step, compare, save, go on.

An edge: each probe is a side-by-side comparison of a release with the known good end. What to probe and
what was found is decided by `bisection`, which is pure.
"""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from analysis.bisecting.bisection import LEAST, Probe
from analysis.bisecting.probing import (
    LevelSpan,
    Probed,
    ReleaseLevel,
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
from analysis.comparing.blocks import Measure
from analysis.comparing.results import ComparisonResult, TrialRecord
from analysis.comparing.turns import is_over
from analysis.detection import words
from analysis.detection.verdict import Outcome
from analysis.orchestration.comparing import Budget, allow, inquire, read_saved, run_comparison
from perf.jobs.holding import hold
from perf.jobs.interleaving import Pairing, Side, fetch_sides, find_past_turns, has_trials, take_side
from perf.jobs.measuring import Job
from perf.jobs.plans import contents, next_id
from perf.local import durable
from perf.local.paths import DataPaths
from perf.model.design import Experiment, Suite
from perf.model.errors import MeasureError, ReleaseError, UsageError
from perf.model.identity import content_hash
from perf.model.results import Purpose, Release, SideName, Taken, TrialStatus
from perf.releases.artifacts import choose_release

RESUMABLE_FOR = timedelta(days=14)
"""An older unfinished bisection is begun anew; its trials are found again all the same."""
_TRIED = 2
"""Trials of a release that did not complete, and no other did: it is skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionQuestion:
    """Which release, after `first` and up to `last`, changed a measure of an experiment of a suite.

    `trials` and `minutes` are what was said of the budget, if anything; the command repeats it.
    """

    suite: Suite
    experiment: Experiment
    measure: Measure
    releases: tuple[Release, ...]
    trials: int | None = None
    minutes: float | None = None

    @property
    def first(self) -> str:
        """The known good end."""
        return self.releases[0].version

    @property
    def last(self) -> str:
        """The known bad end."""
        return self.releases[-1].version

    @property
    def command(self) -> str:
        """Return the command line that asks it."""
        return shlex.join(
            (
                *("knickpoint", "bisect", self.experiment.system, f"{self.first}..{self.last}"),
                *("--suite", self.suite.name, "--experiment", self.experiment.name),
                *("--metric", str(self.measure)),
                *(("--trials", str(self.trials)) if self.trials else ()),
                *(("--minutes", f"{self.minutes:g}") if self.minutes else ()),
            )
        )


def releases_between(
    known: Iterable[Release], system: str, first: str, last: str
) -> tuple[Release, ...]:
    """Return the releases of a line from the first to the last, both included, in order.

    `known` are those of the system.

    Raises:
        UsageError: a release is unknown, the two are of different lines, or the first is not before
            the last.

    """
    known = tuple(known)
    good, bad = (choose_release(system, version, known) for version in (first, last))
    if good.line != bad.line:
        raise UsageError(
            f"{first} is of line {good.line} and {last} of line {bad.line}: only releases of one line"
            " have an order. To compare two of different lines: knickpoint compare"
        )
    if good.ordinal >= bad.ordinal:
        raise UsageError(
            f"{first} is not before {last}: give the known good end first, then the known bad one;"
            f" the order is that of: knickpoint releases {system}"
        )
    within = (
        release
        for release in known
        if release.line == good.line and good.ordinal <= release.ordinal <= bad.ordinal
    )
    return tuple(sorted(within, key=lambda release: release.ordinal))


def read_bisections(paths: DataPaths) -> tuple[BisectionRecord, ...]:
    """Return all bisections of a data directory, finished or not, oldest first.

    Raises:
        InputError: a file is not one.

    """
    found = read_saved(paths.bisections.glob(f"*/{BISECTION}"), read_bisection)
    return tuple(sorted(found, key=lambda one: (one.started_at, one.id)))


def run_bisection(job: Job, question: BisectionQuestion, budget: Budget) -> BisectionRecord:
    """Probe release after release until the culprit is found, or nothing more can be said.

    Each probe is saved as soon as it is over; a bisection of the same question that was cut short is
    resumed, also in the middle of a probe. What was measured before counts and is not measured again.
    `budget` holds for the whole bisection; a probe takes at most `comparison.trials` of the rules. No
    other process measures here meanwhile, not between two probes either.

    Raises:
        InputError: a saved bisection is none.
        MeasureError: the known good end cannot be measured, the hosts cannot carry any trial, or
            another process measures here.
        ReleaseError: the known good end could be fetched from nowhere.
        UsageError: the releases are no range.

    """
    suite, experiment = question.suite, question.experiment.name
    sides = {
        release.version: take_side(job.catalog, suite, experiment, release.version)
        for release in question.releases
    }
    testbed = job.catalog.testbed(suite.testbed)
    purpose = f"a bisection of {experiment}, {question.first} to {question.last}"
    with hold(job.paths, job.progress, [testbed], purpose):
        run = _BisectionRun(
            job=job, sides=sides, budget=budget, record=_open(job, question, sides, budget)
        )
        run.save()
        while run.record.found is None:
            step = run.record.next_step(run.trials_left())
            if isinstance(step, Probe):
                run.add(run.measure(run.prefer_known(step)))
            else:
                run.record = replace(run.record, found=step)
            run.save()
    return run.record


def _open(
    job: Job, question: BisectionQuestion, sides: Mapping[str, Side], budget: Budget
) -> BisectionRecord:
    """Resume the newest unfinished, young bisection of the same question; else begin one."""
    now, asked = datetime.now(UTC), _hash(job, question, sides)
    for known in reversed(read_bisections(job.paths)):
        is_open = known.found is None and now - known.started_at < RESUMABLE_FOR
        if is_open and known.question_sha256 == asked:
            record = replace(known, most_trials=budget.trials, most_minutes=budget.minutes)
            how = f"resumed, {words.counted(len(known.probes), 'probe is', 'probes are')} done"
            break
    else:
        # A directory without a record is what a killed process left, and is used.
        saved = (path.parent for path in job.paths.bisections.glob(f"*/{BISECTION}"))
        how, record = (
            "new",
            BisectionRecord(
                id=next_id(job.paths, "bis-", now, saved),
                question_sha256=asked,
                purpose=Purpose.BISECTION,
                suite=question.suite.name,
                experiment=question.experiment.name,
                system=question.experiment.system,
                measure=question.measure,
                releases=question.releases,
                most_trials=budget.trials,
                most_minutes=budget.minutes,
                trials_per_probe=job.catalog.detection.comparison.trials,
                started_at=now,
                updated_at=now,
                command=question.command,
                caveat=sides[question.first].deployment.testbed.caveat,
            ),
        )
    job.progress.heading(
        f"bisection {record.id} ({how}): {record.measure} of {record.experiment},"
        f" {record.good.version} to {record.bad.version}"
    )
    return record


def _hash(job: Job, question: BisectionQuestion, sides: Mapping[str, Side]) -> str:
    """Hash all that decides what is measured and asked; not the budget, so that more may be given."""
    system = question.experiment.system
    # All probes are held against it, so that its bytes must be there, and stay the same.
    good = job.fetch(system, question.first).artifact
    parts = (
        content_hash(part)
        for side in sides.values()
        for part in (
            side.version,
            tuple(remark.text for remark in side.remarks),
            *contents(side.deployment),
        )
    )
    return content_hash((*parts, system, str(question.measure), good.sha256))


@dataclass(slots=True, kw_only=True)
class _BisectionRun:
    """A bisection under way: its sides by version, what it may take, and what is known so far."""

    job: Job
    sides: Mapping[str, Side]
    budget: Budget
    record: BisectionRecord

    def save(self) -> None:
        self.record = replace(self.record, updated_at=datetime.now(UTC))
        path = self.job.paths.bisections / self.record.id / BISECTION
        durable.atomic_write(path, write_bisection(self.record))

    def add(self, probe: ProbeRecord) -> None:
        """Add a probe, and what was said of the trials of all that was probed, each once."""
        self.record = replace(self.record, probes=(*self.record.probes, probe))
        probed = {self.record.good, *(one.probed.release for one in self.record.probes)}
        said: dict[str, list[str]] = {}
        for release in self.record.releases:
            for remark in self.sides[release.version].remarks if release in probed else ():
                said.setdefault(remark.text, []).append(release.version)
        remarks = tuple(f"{', '.join(versions)}: {text}" for text, versions in said.items())
        self.record = replace(self.record, remarks=remarks)

    def trials_left(self, *further: TrialRecord) -> int:
        """Say how many more trials the budget allows by number and by time, after `further` ones."""
        measured = (*self.record.measured, *further)
        taken_s = sum(trial.duration_s for trial in measured)
        left = self.budget.after(len(measured), taken_s)
        return left.count(taken_s / len(measured)) if measured else left.trials

    def of_probe(self) -> Budget:
        """Describe what one probe may take."""
        left = self.budget.after(len(self.record.measured), self.record.minutes * 60)
        return left.within(allow(self.job.catalog.detection, trials=self.record.trials_per_probe))

    def pair(self, version: str) -> Pairing:
        return Pairing(
            purpose=self.record.purpose,
            suite=self.record.suite,
            baseline=self.sides[self.record.good.version],
            candidate=self.sides[version],
        )

    def find_prior(self, pairing: Pairing) -> tuple[Taken, ...]:
        """Find what was measured before. Nights that made the bad end suspect do not count for it."""
        is_bad_end = pairing.candidate.version == self.record.bad.version
        artifacts = fetch_sides(self.job, pairing)
        return find_past_turns(self.job, pairing, artifacts, with_nights=not is_bad_end)

    def prefer_known(self, step: Probe) -> Probe:
        """Take a release that teaches as well, and whose trials tell where it stands, instead."""
        for release in (step.release, *step.others) if step.others else ():
            if not has_trials(self.record.experiment, release.version, self.job.paths):
                continue
            pairing = self.pair(release.version)
            try:
                prior = self.find_prior(pairing)
            except ReleaseError:
                continue
            inquiry = inquire(
                self.job,
                pairing,
                self.of_probe(),
                trusted=(self.record.measure,),
                looker=partial(probe_look, full_change=step.full_change),
                prior=prior,
            )
            if prior and is_over(prior, inquiry):
                if release == step.release:
                    return step
                reason = "earlier trials already place it"
                return replace(step, release=release, reason=reason)
        return step

    def measure(self, step: Probe) -> ProbeRecord:
        """Compare a release with the known good end; resumes a comparison that was cut short."""
        version, number = step.release.version, len(self.record.probes) + 1
        pairing = self.pair(version)
        self.job.progress.heading(f"probe {number}: {version}: {step.reason}")
        try:
            prior = self.find_prior(pairing)
        except ReleaseError as error:
            return ProbeRecord(
                asked=step.reason,
                probed=Probed(release=step.release, reason=f"it cannot be fetched: {error}"),
                standing=ReleaseStatus.SKIPPED,
            )
        result = run_comparison(
            self.job,
            pairing,
            self.of_probe(),
            trusted=(self.record.measure,),
            looker=partial(probe_look, full_change=step.full_change),
            prior=prior,
            reproduce=_compare_command(version, self.record),
        )
        probe = _read(step, result, self.record)
        is_cut_short = self.trials_left(*probe.measured) < LEAST
        if is_cut_short and probe.outcome is Outcome.UNDECIDED and probe.probed.estimate is None:
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
    """Return whether a side was tried twice in this comparison, and never completed a trial.

    Trials of a release from before stay what they are; the good end is needed now.
    """
    own = [one for one in result.own_trials if one.side == side]
    counted = own if side == "baseline" else [one for one in result.trials if one.side == side]
    is_measured = any(one.status is TrialStatus.COMPLETED for one in counted)
    return len(own) >= _TRIED and not is_measured


def _why(result: ComparisonResult, side: SideName) -> str:
    """Describe why the last trial of a side did not complete."""
    *_, last = (one for one in result.trials if one.side == side)
    return "; ".join(reason.text for reason in last.reasons) or result.reason
