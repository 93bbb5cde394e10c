"""What a proposed change of the configuration does: what to compare, each comparison within one budget.

An edge: it measures through `comparing`.
"""

import hashlib
import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TypeAlias

from analysis.comparing.profiles import find_code
from analysis.comparing.results import (
    SCHEMA_VERSION,
    Attribution,
    ComparisonFile,
    ComparisonResult,
    ExperimentChange,
    KnobValues,
    Revision,
)
from analysis.detection.verdict import Outcome
from analysis.orchestration.comparing import Budget, allow, cut, read_results, run_comparison
from analysis.orchestration.explaining import BLOCKS, explain, read_profile_comparisons
from analysis.orchestration.setting_words import setting_name
from perf.config import difference
from perf.config.catalog import Catalog
from perf.config.difference import ConfigDifference, Touched, hash_deployment
from perf.config.revisions import SHORT, TO_DO, RevisionRange
from perf.jobs.attaching import refuse_attached
from perf.jobs.feasible import planned_s
from perf.jobs.holding import hold
from perf.jobs.interleaving import (
    RESUMABLE_FOR,
    Pairing,
    Side,
    fetch_sides,
    find_unfinished,
    question_hash,
)
from perf.jobs.measuring import Job
from perf.model.design import Deployment, Suite
from perf.model.errors import KnickpointError, MeasureError, UsageError
from perf.model.results import TURNS, Purpose
from perf.model.rules import Detection
from perf.model.sources import Build

MOST_MEASURED = 90
"""Experiments of one candidate: what the file of its comparisons holds."""
_MOST_KNOBS = 500
_MOST_VALUE = 600
_MOST_SENTENCES = 99
_LEAST_TO_ATTRIBUTE = 2 * TURNS
"""Trials below which leaving a knob out would show nothing."""
_MOST_ATTRIBUTED = 150

Save: TypeAlias = Callable[[ComparisonFile], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One comparison to be made, the knobs of its config, and about how long a trial takes."""

    pairing: Pairing
    knobs: tuple[difference.Knob, ...]
    trial_s: float
    also: tuple[tuple[str, str], ...] = ()
    """Suites and experiments that measure the very same, under whatever names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatePlan:
    """What a change comes to before anything is measured."""

    base: Revision | None
    head: Revision | None
    planned: tuple[Planned, ...]
    changes: tuple[ExperimentChange, ...]
    total: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The most that all comparisons may take together, and that each may take by itself."""

    total: Budget
    each: Budget


def plan_candidate(
    found: ConfigDifference, span: RevisionRange, catalog: Catalog, testbed: str, release: str = ""
) -> CandidatePlan:
    """Plan a comparison for each experiment that differs, at `release` or the newest that it lists.

    `catalog` knows the releases. All are measured on `testbed`, by its limits, whatever the revisions
    say of it. Experiments that are the same at base, and the same at head, are measured once.

    Raises:
        UsageError: a system has no such release, too many experiments are to be measured, or the
            testbed is attached.

    """
    planned: dict[object, Planned] = {}
    host = catalog.testbed(testbed)
    refuse_attached(host)
    for one in found.touched:
        if one.base is None or one.head is None or one.why_not:
            continue
        base, head = (replace(side, testbed=host) for side in (one.base, one.head))
        chosen = release or catalog.newest(head.experiment.system, head.experiment.versions)
        catalog.find_release(head.experiment.system, chosen)
        each = _plan(one, base, head, span, chosen)
        sides = (each.pairing.baseline, each.pairing.candidate)
        same = tuple((side.version, hash_deployment(side.deployment)) for side in sides)
        if same in planned:
            also = (*planned[same].also, (one.suite, one.experiment))
            planned[same] = replace(planned[same], also=also)
        else:
            planned[same] = each
    if len(planned) > MOST_MEASURED:
        raise UsageError(
            f"{len(planned)} experiments are to be measured, and at most {MOST_MEASURED} fit into one"
            f" comparison; choose suites with --suite, or {TO_DO}"
        )
    return CandidatePlan(
        base=Revision(ref=span.base, sha=span.merge_base),
        head=Revision(ref=span.head, sha=span.head_tip),
        planned=tuple(planned.values()),
        changes=tuple(_record_change(one) for one in found.touched),
        total=found.total,
        notes=(*_note_merge_base(span), *_note_same(planned.values()), *found.notes),
    )


def plan_builds(
    catalog: Catalog, suites: Iterable[Suite], baseline: Build, head: Build
) -> CandidatePlan:
    """Plan a comparison of two builds in each experiment of the suites, configured alike; no sentinel.

    Raises:
        UsageError: an experiment measures another system, or there is none.

    """
    planned: dict[str, Planned] = {}
    total = 0
    for suite in suites:
        for experiment in suite.experiments:
            if experiment.sentinel_every_nights:
                continue
            if experiment.system != head.release.system:
                raise UsageError(
                    f"{experiment.name} of suite {suite.name} measures {experiment.system}, not"
                    f" {head.release.system}; choose suites of one database with --suite"
                )
            total += 1
            deployment = catalog.resolve(suite, experiment)
            sides = (
                Side(label=one.release.version, version=one.release.version, deployment=deployment)
                for one in (baseline, head)
            )
            before, after = sides
            one = Planned(
                pairing=Pairing(
                    purpose=Purpose.CANDIDATE, suite=suite.name, baseline=before, candidate=after
                ),
                knobs=(),
                trial_s=planned_s(deployment),
            )
            same, also = hash_deployment(deployment), (suite.name, experiment.name)
            known = planned.get(same)
            planned[same] = replace(known, also=(*known.also, also)) if known else one
    if not planned:
        raise UsageError("there is no experiment to measure; name a suite that has one with --suite")
    return CandidatePlan(
        base=_name_build(baseline),
        head=_name_build(head),
        planned=tuple(planned.values()),
        changes=(),
        total=total,
        notes=tuple(_note_same(planned.values())),
    )


def _name_build(build: Build) -> Revision | None:
    """Return what a build is; None of a release, which its version names."""
    sha = build.commit or build.checksum
    return Revision(ref=build.release.version, sha=sha) if sha else None


def share_out(
    plan: CandidatePlan, settings: Detection, trials: int | None, minutes: float | None
) -> Allowance:
    """Return the budget; what is not said is what the rules allow each comparison.

    Raises:
        UsageError: the trials are too few for one block of each comparison.

    """
    count = len(plan.planned)
    if trials is not None and trials < TURNS * count:
        raise UsageError(
            f"--trials {trials} is too few: {count} experiments need {TURNS} each, which makes"
            f" {TURNS * count}; or choose some with --suite"
        )
    return Allowance(
        total=allow(settings, trials, minutes, times=count), each=allow(settings, trials, minutes)
    )


def record_candidate(plan: CandidatePlan, problems: Sequence[str] = ()) -> ComparisonFile:
    """Return the file of a candidate of which nothing was measured."""
    return ComparisonFile(
        schema_version=SCHEMA_VERSION,
        created_at=datetime.now(UTC),
        knickpoint=version("knickpoint"),
        base=plan.base,
        head=plan.head,
        changes=plan.changes,
        problems=bound(problems),
        notes=bound(plan.notes),
    )


def bound(sentences: Sequence[str]) -> tuple[str, ...]:
    """Bound sentences in length and number to what the file of comparisons takes."""
    shown = tuple(cut(sentence) for sentence in sentences[:_MOST_SENTENCES])
    more = len(sentences) - len(shown)
    return (*shown, f"… and {more} more") if more else shown


def _plan(
    one: Touched, base: Deployment, head: Deployment, span: RevisionRange, chosen: str
) -> Planned:
    # Equal but for the config, so that a rename does not tell the two sides apart.
    before = replace(head, config=base.config)
    return Planned(
        pairing=Pairing(
            purpose=Purpose.CANDIDATE,
            suite=one.suite,
            baseline=Side(label=f"base {span.merge_base[:SHORT]}", version=chosen, deployment=before),
            candidate=Side(label=f"head {span.head_tip[:SHORT]}", version=chosen, deployment=head),
        ),
        knobs=one.knobs,
        trial_s=planned_s(head),
    )


def _note_merge_base(span: RevisionRange) -> Iterator[str]:
    if span.merge_base != span.base_tip:
        yield (
            f"compared is where the two parted, {span.merge_base[:SHORT]}: {span.base} has moved on to"
            f" {span.base_tip[:SHORT]}, and what was changed there since is on neither side, but for"
            " testbeds and rules: they are those of today"
        )


def _note_same(planned: Iterable[Planned]) -> Iterator[str]:
    for one in planned:
        if one.also:
            others = ", ".join(f"{experiment} of suite {suite}" for suite, experiment in one.also)
            which = f"{_experiment(one.pairing)} of suite {one.pairing.suite}"
            yield f"{which} is measured once for all that are the same: {others}"


def _record_change(one: Touched) -> ExperimentChange:
    knobs = tuple(record_knob(knob) for knob in one.knobs[:_MOST_KNOBS])
    return ExperimentChange(
        suite=one.suite,
        experiment=one.experiment,
        knobs=knobs,
        unlisted=len(one.knobs) - len(knobs),
        text=cut(one.why_not),
    )


def record_knob(knob: difference.Knob) -> KnobValues:
    """Return a knob as the file has it, with values of bounded length."""
    return KnobValues(
        path=cut(knob.path),
        key=setting_name(knob),
        before=_cut_value(knob.before),
        after=_cut_value(knob.after),
    )


def _cut_value(text: str) -> str:
    """Bound a value; two that differ behind the cut still differ."""
    if len(text) <= _MOST_VALUE:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"{text[:_MOST_VALUE]}… ({len(text)} characters, SHA-256 {digest})"


def run_candidate(
    job: Job,
    plan: CandidatePlan,
    allowed: Allowance,
    save: Save,
    *,
    attributes: bool = False,
    reported: Collection[str] = (),
    reproduce: str = "",
) -> ComparisonFile:
    """Measure what is planned, and save after each comparison what is known by then.

    What a comparison leaves over goes to the next. Both sides of one that regressed are profiled, as
    far as the budget and `explain_minutes` of its suite go. With `attributes`, each knob of a config
    that regressed or improved by several is left out by itself, as far as the budget goes. A comparison
    of this question that the same command, `reproduce`, finished a short while ago, and that is not
    among `reported`, is not repeated: another command may allow more, or judge by other rules.
    What could not be measured is a problem of the result, and stops nothing else; what the budget has
    no room for is not compared, and a knob of which nothing is found out is a note.
    """
    run = _CandidateRun(
        job=job,
        plan=plan,
        save=save,
        reported=reported,
        reproduce=cut(reproduce),
        left=allowed.total,
        each=allowed.each,
    )
    # Both sides run on one testbed.
    testbeds = [one.pairing.baseline.deployment.testbed for one in plan.planned]
    what = plan.head.sha[:SHORT] if plan.head else plan.planned[0].pairing.candidate.label
    try:
        with hold(job.paths, job.progress, testbeds, f"candidate {what}"):
            run.compare()
            run.explain()
            if attributes:
                run.attribute()
    except MeasureError as error:
        run.note(run.problems, f"nothing could be measured: {error}")
    return run.content()


@dataclass(slots=True, kw_only=True)
class _CandidateRun:
    """A candidate under way: what is left of its budget, and what is known so far."""

    job: Job
    plan: CandidatePlan
    save: Save
    reported: Collection[str]
    reproduce: str
    left: Budget
    each: Budget
    results: list[tuple[Planned, ComparisonResult]] = field(default_factory=list)
    attributions: list[Attribution] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unmeasured: dict[tuple[str, str], str] = field(default_factory=dict)
    """Why an experiment of a suite was not measured, though it could have been."""

    def note(self, where: list[str], text: str) -> None:
        where.append(cut(text))
        self.job.progress.report(where[-1])

    def compare(self) -> None:
        planned = self.plan.planned
        for place, one in enumerate(planned):
            missing, name = len(planned) - place, _name(one.pairing)
            self._save(f"{missing} of {len(planned)} experiments are not measured yet")
            self.job.progress.heading(f"experiment {place + 1} of {len(planned)}: {name}")
            budget = self.left.share(missing).within(self.each)
            if budget.trials < TURNS or budget.minutes <= 0:
                few = f"too few trials for a block of {TURNS}" if budget.minutes > 0 else "no minutes"
                why = f"not measured: {few} were left of the budget"
                for each in ((one.pairing.suite, _experiment(one.pairing)), *one.also):
                    self.unmeasured[each] = why
                self.job.progress.report(f"{name} is {why}")
                if not self.plan.changes:
                    self.note(self.problems, f"{name} is {why}")
                continue
            try:
                self.results.append((one, self._answer(one.pairing, budget)))
            except KnickpointError as error:
                # Also a wrong use: it is known only now, and others are still to be measured.
                self.note(self.problems, f"{name} could not be measured: {error}")

    def explain(self) -> None:
        """Profile both sides of what regressed, to name the code."""
        known, spent_s = read_profile_comparisons(self.job.paths), defaultdict[str, float](float)
        for place, (one, result) in enumerate(self.results):
            suite = self.job.catalog.suites.get(one.pairing.suite)
            if result.outcome is not Outcome.REGRESSED or not suite or not suite.explain_minutes:
                continue
            found = next((each for each in reversed(known) if each.is_of(result)), None)
            if found is None:
                trial_s = statistics.median(trial.duration_s for trial in result.trials)
                minutes = suite.explain_minutes - spent_s[suite.name] / 60
                left = self.left.within(Budget(trials=self.left.trials, minutes=minutes))
                if left.count(trial_s) < BLOCKS * TURNS:
                    self.notes.append(
                        f"not profiled: {_name(one.pairing)}, since the budget is used up"
                    )
                    continue
                self._save(f"the code that made {_name(one.pairing)} slower is not named yet")
                try:
                    found = explain(self.job, one.pairing)
                except KnickpointError as error:
                    # What was asked first is answered; that stays so.
                    self.note(self.notes, f"not profiled: {_name(one.pairing)}: {error}")
                    continue
                took_s = len(found.trials) * trial_s
                spent_s[suite.name] += took_s
                self.left = self.left.after(len(found.trials), took_s)
            self.results[place] = (one, replace(result, code=find_code(found)))

    def attribute(self) -> None:
        moved = (Outcome.REGRESSED, Outcome.IMPROVED)
        jobs = [
            (knob, one.pairing, result)
            for one, result in self.results
            if result.outcome in moved and len(one.knobs) > 1
            for knob in one.knobs
        ]
        for place, (knob, pairing, result) in enumerate(jobs):
            missing, name = len(jobs) - place, _name(pairing)
            trial_s = statistics.median(trial.duration_s for trial in result.trials)
            # Shared out among as many knobs as it is enough for.
            room = self.left.count(trial_s) // _LEAST_TO_ATTRIBUTE
            if not room or place >= _MOST_ATTRIBUTED:
                self.notes.append(f"not attributed: {knob.path} of {name}, since the budget is used up")
                continue
            budget = self.left.share(min(missing, _MOST_ATTRIBUTED, room)).within(self.each)
            self._save(f"{missing} of {len(jobs)} changes are not attributed yet")
            self.job.progress.heading(f"what {knob.path} does in {name}")
            try:
                answer = self._answer(_leave_out(knob, pairing), budget)
            except KnickpointError as error:
                # What was asked first is answered; that stays so.
                self.note(self.notes, f"not attributed: {knob.path} of {name}: {error}")
            else:
                self.attributions.append(Attribution(knob=record_knob(knob), comparison=answer))

    def content(self, problem: str = "") -> ComparisonFile:
        known = record_candidate(self.plan, (*([problem] if problem else []), *self.problems))
        return replace(
            known,
            changes=tuple(
                replace(one, text=one.text or self.unmeasured.get((one.suite, one.experiment), ""))
                for one in known.changes
            ),
            comparisons=tuple(result for _, result in self.results),
            attributions=tuple(self.attributions),
            notes=bound((*self.plan.notes, *self.notes)),
        )

    def _save(self, what: str) -> None:
        # A kill from here on leaves a file that says what it lacks.
        why = "the run was cut short, or still goes on; the same command goes on from there"
        self.save(self.content(f"{what}: {why}"))

    def _answer(self, pairing: Pairing, budget: Budget) -> ComparisonResult:
        result = self._find(pairing) or run_comparison(
            self.job, pairing, budget, reproduce=self.reproduce
        )
        seconds = sum(trial.duration_s for trial in result.trials)
        self.left = self.left.after(len(result.trials), seconds)
        return result

    def _find(self, pairing: Pairing) -> ComparisonResult | None:
        """Return an answer to this question that a run found that was cut short later."""
        question, now = question_hash(pairing, fetch_sides(self.job, pairing)), datetime.now(UTC)
        if find_unfinished(question, pairing, self.job.paths, now):
            return None
        for result in reversed(read_results(self.job.paths)):
            is_same = result.question_sha256 == question and result.purpose is pairing.purpose
            is_news = now - result.finished_at < RESUMABLE_FOR and result.id not in self.reported
            # The command names both revisions, and so the rules of base, and the budget.
            is_asked_alike = result.command == self.reproduce
            if is_same and is_news and is_asked_alike and result.outcome is not Outcome.INVALID:
                self.job.progress.report(f"{result.id} answered it already: {result.outcome}")
                return replace(
                    result,
                    suite=pairing.suite,
                    experiment=_experiment(pairing),
                    baseline=replace(result.baseline, label=pairing.baseline.label),
                    candidate=replace(result.candidate, label=pairing.candidate.label),
                )
        return None


def _leave_out(knob: difference.Knob, pairing: Pairing) -> Pairing:
    """Return head without one knob against head."""
    base, head = pairing.baseline.deployment, pairing.candidate.deployment
    without = replace(head, config=difference.leave_out(knob, head.config, base.config))
    label = cut(f"{pairing.candidate.label} without {knob.path}")
    return replace(pairing, baseline=replace(pairing.candidate, label=label, deployment=without))


def _name(pairing: Pairing) -> str:
    return f"{_experiment(pairing)} of suite {pairing.suite} at {pairing.candidate.version}"


def _experiment(pairing: Pairing) -> str:
    return pairing.candidate.deployment.experiment.name
