"""What a night does before it reports: compare releases, measure suspects again, bisect, and profile.

An edge: it measures through `comparing` and `bisecting`. What is worth minutes is chosen by
`suspects`, which is pure. Whatever is left out is said, with the command that makes up for it.
"""

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeVar
from zlib import crc32

from analysis.bisecting.record import BisectionRecord
from analysis.comparing.blocks import Block
from analysis.comparing.description import describe_code
from analysis.comparing.profiles import ProfileComparison
from analysis.comparing.results import NEW, ComparisonResult
from analysis.comparing.sequential import InterimAnalysis, StoppingRule, look
from analysis.detection import words
from analysis.detection.verdict import Outcome
from analysis.judging.incidents import name_incident
from analysis.judging.remeasurement import RemeasurementQuestion, compare_command
from analysis.judging.suspected_changes import (
    SuspectedChange,
    choose_open,
    choose_traceable,
    is_final,
    traces,
)
from analysis.orchestration.bisecting import (
    BisectionQuestion,
    read_bisections,
    releases_between,
    run_bisection,
)
from analysis.orchestration.comparing import Budget, allow, read_results, run_comparison
from analysis.orchestration.explaining import BLOCKS, explain, read_profile_comparisons
from perf.config.catalog import find_experiment, find_experiment_of
from perf.history.store import open_history
from perf.jobs.feasible import planned_s
from perf.jobs.holding import hold
from perf.jobs.interleaving import Pairing, fetch_sides, find_past_turns, pair_methods, take_side
from perf.jobs.measuring import Job, order_point
from perf.jobs.night import find_new, read_nights
from perf.jobs.plans import is_done
from perf.model.design import Experiment, Suite
from perf.model.errors import KnickpointError
from perf.model.facts import METHOD
from perf.model.identity import named
from perf.model.metrics import METHOD_CPU
from perf.model.nights import Night
from perf.model.results import (
    SIDES,
    TURNS,
    Named,
    Purpose,
    Release,
    Trial,
    TrialHead,
    TrialId,
    TrialStatus,
)
from perf.model.shown import format_duration
from perf.trial.profiling import PROFILED

Answer = TypeVar("Answer")
_FEWEST_BLOCKS = 2
"""Below that nothing can be decided: one block has no scatter between blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentNight:
    """The night whose findings are followed up, and what there is to measure with."""

    job: Job
    suite: Suite
    night: Night
    trials: tuple[Trial, ...]

    def trial_s(self, experiment: Experiment) -> float:
        """Describe how long a trial takes: those of this night, else what the configuration says."""
        taken = [
            (trial.finished_at - trial.started_at).total_seconds()
            for trial in self.trials
            if trial.experiment == experiment.name and trial.status is TrialStatus.COMPLETED
        ]
        return median(taken) if taken else planned_s(self.job.catalog.resolve(self.suite, experiment))


@dataclass(slots=True)
class FollowedUp:
    """What came of it, in a sentence each: what was found, what no time was left for, what failed.

    `has_measured` says that something was begun, so that there may be trials that nobody judged yet.
    """

    found: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    has_measured: bool = False

    def attempt(
        self,
        what: str,
        command: str,
        left_s: float,
        trial_s: float,
        measure: Callable[[], Answer],
        *,
        fewest_blocks: int = _FEWEST_BLOCKS,
    ) -> Answer | None:
        """Measure if the seconds that are left are enough to decide anything; note where it is not.

        `command` makes up for it.
        """
        if left_s < fewest_blocks * TURNS * trial_s:
            blocks = words.counted(fewest_blocks, "block", "blocks")
            left = f"{format_duration(left_s)} left are too short for {blocks} of {TURNS} trials"
            self.left_out.append(f"{what}: {left}; run: {command}")
            return None
        self.has_measured = True
        try:
            return measure()
        except KnickpointError as error:
            self.failed.append(f"{what}: {error}; again with: {command}")
            return None


def compare_releases(tonight: CurrentNight) -> tuple[FollowedUp, tuple[ComparisonResult, ...]]:
    """Measure releases side by side: a new one and the one before it, then the first and the last.

    What is new is compared first, within `compare_minutes`, or else within `remeasure_minutes`; the
    ends of each experiment only within `compare_minutes`. Nights that measured both count as well, and
    so do the blocks of earlier nights: each night adds to what is known. Where there is time for it,
    the trials of this night are half of the first block.
    Returns what came of it, and the comparisons of this night; what was measured before the night was
    interrupted is not measured again.

    Raises:
        InputError: the result of a comparison is not one.

    """
    done, job, suite = FollowedUp(), tonight.job, tonight.suite
    minutes = suite.compare_minutes or suite.remeasure_minutes
    if minutes is None:
        return done, ()
    results = [one for one in _read_finished(tonight, Purpose.COMPARISON) if one.suite == suite.name]
    for experiment, first, last, is_new in _choose_pairs(tonight):
        if any(_compares(one, experiment, first, last) for one in results):
            continue
        left_s = minutes * 60 - sum(map(_spent_s, results))
        trial_s = tonight.trial_s(experiment)
        baseline, candidate = (
            take_side(job.catalog, suite, experiment.name, one) for one in (first, last)
        )
        pairing = Pairing(
            purpose=Purpose.COMPARISON,
            suite=suite.name,
            baseline=baseline,
            candidate=replace(candidate, label=f"{last}{NEW}") if is_new else candidate,
            # So that the order of turns differs from night to night, and a resumed night keeps its own.
            seed=crc32(tonight.night.id.encode()),
        )
        command = shlex.join(
            (
                *("knickpoint", "compare", "--suite", suite.name, "--experiment", experiment.name),
                *("--baseline", first, "--candidate", last),
            )
        )
        what = f"{experiment.name}, {first} and {last}"
        measure = partial(_compare_releases, tonight, pairing, left_s, trial_s, command)
        if result := done.attempt(what, command, left_s, trial_s, measure, fewest_blocks=1):
            results.append(result)
    return done, tuple(results)


def _choose_pairs(tonight: CurrentNight) -> Iterator[tuple[Experiment, str, str, bool]]:
    """Yield experiments with two releases to compare, and whether the second is new: those come first.

    New is what no night before this one measured, if it is the last of its line that nights know.
    """
    job, suite = tonight.job, tonight.suite
    before = [one for one in read_nights(job.paths) if one.started_at < tonight.night.started_at]
    before = [one for one in before if one.suite == suite.name]
    had = {one.version for night in before for one in night.trials}
    for experiment in suite.experiments:
        if experiment.sentinel_every_nights:
            continue
        releases = job.catalog.releases(experiment.system)
        known = [one for one in releases if one.version in had]
        for name, version in find_new(tonight.night.trials, before):
            if name == experiment.name:
                new = job.catalog.find_release(experiment.system, version)
                older = [one for one in known if one.line == new.line]
                if older and max(one.ordinal for one in older) < new.ordinal:
                    previous = max(
                        (one for one in releases if one.line == new.line and one.ordinal < new.ordinal),
                        key=lambda one: one.ordinal,
                    )
                    yield experiment, previous.version, version, True
    if suite.compare_minutes is None:
        return
    for experiment in suite.experiments:
        versions = experiment.versions
        if len(versions) > 1 and not experiment.sentinel_every_nights:
            yield experiment, versions[0], versions[-1], False


def _compare_releases(
    tonight: CurrentNight, pairing: Pairing, left_s: float, trial_s: float, command: str
) -> ComparisonResult:
    job = tonight.job
    turns = min(int(left_s / trial_s), job.catalog.detection.comparison.trials)
    opening = tonight.night.id if turns >= len(SIDES) + TURNS else ""
    prior = find_past_turns(job, pairing, fetch_sides(job, pairing), opening=opening)
    half = sum(one.block == 1 for one in prior)
    return run_comparison(
        job,
        pairing,
        Budget(trials=half + (turns - half) // TURNS * TURNS, minutes=left_s / 60),
        looker=_look_on,
        prior=prior,
        reproduce=command,
    )


def _look_on(blocks: Sequence[Block], rule: StoppingRule, seed: int) -> InterimAnalysis:
    """Look as any comparison does, but never give up: the next night adds to this one."""
    seen = look(blocks, rule, seed)
    is_used_up = len(blocks) >= rule.most_blocks
    return replace(seen, is_over=is_used_up) if seen.outcome is Outcome.UNDECIDED else seen


def profile_releases(tonight: CurrentNight) -> FollowedUp:
    """Measure each release of this night once more with a profiler, while `hint_minutes` last.

    What the code of the servers costs there are series of their own, for hints. What was measured
    before the night was interrupted is not measured again.
    """
    done, job, suite = FollowedUp(), tonight.job, tonight.suite
    left_s, without = (suite.hint_minutes or 0) * 60.0, set[str]()
    for trial in tonight.trials if suite.hint_minutes else ():
        system, version = trial.release.system, trial.release.version
        is_fit = (trial.purpose, trial.status) == (Purpose.SCHEDULED, TrialStatus.COMPLETED)
        name = TrialId(f"{trial.id}.profile")
        if not is_fit or system in without or is_done(job.paths, name):
            continue
        what = f"{trial.experiment} at {version}"
        experiment = find_experiment(suite, trial.experiment)
        if tonight.trial_s(experiment) > left_s:
            left = f"{format_duration(left_s)} left are too short for one more trial"
            done.left_out.append(f"{what}: {left}; give the suite more hint_minutes")
            continue
        deployment = job.catalog.resolve(suite, experiment)
        try:
            with hold(job.paths, job.progress, [deployment.testbed], f"the profile of {what}"):
                order = order_point(name, trial.night, deployment, job.fetch(system, version))
                profiled = job.measure(
                    replace(order, purpose=Purpose.PROFILE, remarks=(*order.remarks, PROFILED))
                )
        except KnickpointError as error:
            done.failed.append(f"{what}: {error}")
            break
        left_s -= (profiled.finished_at - profiled.started_at).total_seconds()
        if not any(sample.metric == METHOD_CPU.name for sample in profiled.samples):
            why = next((one.text for one in (*profiled.reasons, *profiled.remarks)), "no profile")
            done.left_out.append(f"{what}: {why}")
            without.add(system)
    return done


def confirm(suspects: Sequence[SuspectedChange], tonight: CurrentNight) -> FollowedUp:
    """Measure suspected changes again, the most relevant first, while the suite's minutes last.

    What was measured for this night before it was interrupted counts, and is not measured again.

    Raises:
        InputError: the result of a comparison is not one.

    """
    done, job, suite = FollowedUp(), tonight.job, tonight.suite
    if suite.remeasure_minutes is None:
        return done
    results = _read_finished(tonight, Purpose.CONFIRMATION)
    for question in choose_open(suspects):
        experiment = find_experiment_of(job.catalog, suite, question.key)
        first, last = question.baseline.version, question.candidate.version
        if experiment is None or any(_compares(one, experiment, first, last) for one in results):
            continue
        left_s = suite.remeasure_minutes * 60 - sum(map(_spent_s, results))
        command = compare_command(question, suite.name, experiment.name)
        measure = partial(_compare, question, experiment, left_s, tonight)
        what, trial_s = _name(question, experiment), tonight.trial_s(experiment)
        if result := done.attempt(what, command, left_s, trial_s, measure):
            results.append(result)
    for one in results:
        reported = done.failed if one.outcome is Outcome.INVALID else done.found
        reported.append(_describe_comparison(one))
    return done


def _read_finished(tonight: CurrentNight, purpose: Purpose) -> list[ComparisonResult]:
    """Read what comparisons of a purpose came to since the night began: they are not measured again."""
    results, since = read_results(tonight.job.paths), tonight.night.started_at
    return [one for one in results if one.purpose is purpose and one.started_at >= since]


def _compares(result: ComparisonResult, experiment: Experiment, first: str, last: str) -> bool:
    asked = experiment.name, first, last
    return (result.experiment, result.baseline.version, result.candidate.version) == asked


def _spent_s(result: ComparisonResult) -> float:
    """Return the seconds of its own trials."""
    return sum(trial.duration_s for trial in result.own_trials)


def _compare(
    question: RemeasurementQuestion, experiment: Experiment, left_s: float, tonight: CurrentNight
) -> ComparisonResult:
    job, suite = tonight.job, tonight.suite
    baseline, candidate = (
        take_side(job.catalog, suite, experiment.name, release.version)
        for release in (question.baseline, question.candidate)
    )
    pairing = Pairing(
        purpose=Purpose.CONFIRMATION, suite=suite.name, baseline=baseline, candidate=candidate
    )
    settings = job.catalog.detection
    blocks = min(int(left_s / tonight.trial_s(experiment)), settings.comparison.trials) // TURNS
    return run_comparison(
        job,
        pairing,
        Budget(trials=blocks * TURNS, minutes=left_s / 60),
        trusted=question.measures,
        reproduce=compare_command(question, suite.name, experiment.name),
    )


def bisect(suspects: Sequence[SuspectedChange], tonight: CurrentNight) -> FollowedUp:
    """Look for the release that brought each confirmed change, while the suite's minutes last.

    Only where releases lie between that were not measured, and once per change: what an earlier night
    found stays found. One that its budget ended goes on, and so does one that was interrupted.

    Raises:
        InputError: a saved bisection is none.

    """
    done, job, suite = FollowedUp(), tonight.job, tonight.suite
    if suite.bisect is None or suite.bisect_minutes is None:
        return done
    since = tonight.night.started_at
    records = {one.id: one for one in read_bisections(job.paths)}
    for question in choose_traceable(suspects):
        experiment = find_experiment_of(job.catalog, suite, question.key)
        if experiment is None or not _has_gap(question, job.catalog.releases(question.key.system)):
            continue
        known = [one for one in records.values() if traces(one, question, experiment.name)]
        if any(is_final(one) or (one.found and one.started_at >= since) for one in known):
            continue
        begun = next((one for one in reversed(known) if one.found is None), None)
        asked = BisectionQuestion(
            suite=suite,
            experiment=experiment,
            measure=begun.measure if begun else question.measures[0],
            releases=releases_between(
                job.catalog.releases(experiment.system),
                experiment.system,
                question.baseline.version,
                question.candidate.version,
            ),
        )
        spent = (one.minutes for one in records.values() if one != begun and one.updated_at >= since)
        left_s = (suite.bisect_minutes - sum(spent)) * 60
        # What it took on earlier nights is of its budget, but not of the minutes of this one.
        whole_s = left_s + (begun.minutes * 60 if begun and begun.started_at < since else 0.0)
        trial_s = tonight.trial_s(experiment)
        budget = Budget(trials=int(whole_s / trial_s), minutes=whole_s / 60)
        measure = partial(run_bisection, job, asked, budget)
        what = _name(question, experiment)
        if record := done.attempt(what, asked.command, left_s, trial_s, measure):
            records[record.id] = record
    found = (one for one in records.values() if one.found and one.updated_at >= since)
    done.found += map(_describe_bisection, found)
    return done


def compare_methods(
    heads: Sequence[TrialHead], tonight: CurrentNight, program: Path | None
) -> FollowedUp:
    """Measure one release of each system by the Knickpoint before as well, if the method changed.

    `heads` are all trials in order, `program` the executable of that installation; without it, what
    would tell is listed.

    Raises:
        HistoryError: the history cannot be read.
        InputError: the result of a comparison is not one.
        UsageError: `program` is no Knickpoint that runs.

    """
    done, job, suite = FollowedUp(), tonight.job, tonight.suite
    for trial, names in _find_other_methods(heads, tonight):
        experiment = find_experiment(suite, trial.experiment)
        version = trial.release.version
        what = f"{experiment.name}: since the night before, {', '.join(names)} of Knickpoint changed"
        sides = ("--baseline", version, "--candidate", version)
        asked = ("--suite", suite.name, "--experiment", experiment.name, *sides)
        command = shlex.join(("knickpoint", "compare", *asked, "--baseline-by", "PROGRAM"))
        if program is None:
            done.left_out.append(f"{what}; what that did to the numbers: {command}")
            continue
        side = take_side(job.catalog, suite, experiment.name, version)
        alike = Pairing(purpose=Purpose.COMPARISON, suite=suite.name, baseline=side, candidate=side)
        pairing, budget = pair_methods(alike, program), allow(job.catalog.detection)
        measure = partial(run_comparison, job, pairing, budget, reproduce=command)
        trial_s = tonight.trial_s(experiment)
        result = done.attempt(what, command, budget.minutes * 60, trial_s, measure)
        if result:
            done.found.append(_describe_comparison(result))
    return done


def _find_other_methods(
    heads: Sequence[TrialHead], tonight: CurrentNight
) -> Iterator[tuple[Trial, list[str]]]:
    """Yield a trial of each system that was measured otherwise than before, and what changed."""
    seen: set[str] = set()
    for trial in tonight.trials:
        system = trial.release.system
        if system in seen or trial.status is not TrialStatus.COMPLETED:
            continue
        before = [
            head.id
            for head in heads
            if head.night != trial.night
            and (head.purpose, head.status) == (Purpose.SCHEDULED, TrialStatus.COMPLETED)
            and (head.experiment, head.release.version) == (trial.experiment, trial.release.version)
        ][-1:]
        if not before:
            continue
        seen.add(system)
        with open_history(tonight.job.paths.history, read_only=True) as history:
            (older,) = history.trials(before)
        old, new = (
            {one.name: one.value for one in each.environment_before if one.name.startswith(METHOD)}
            for each in (older, trial)
        )
        if names := [name.removeprefix(METHOD) for name in new if old.get(name) != new[name]]:
            yield trial, names


def explain_regressions(suspects: Sequence[SuspectedChange], tonight: CurrentNight) -> FollowedUp:
    """Profile both sides of what regressed, while the suite's minutes last; each change once.

    These are the comparisons of this night that regressed, and then the confirmed changes: by the
    release that a bisection named, and the one before it, where there is one.

    Raises:
        InputError: the result of a comparison is not one, or the profiles of one are none.

    """
    done, job, suite = FollowedUp(), tonight.job, tonight.suite
    if suite.explain_minutes is None:
        return done
    known = list(read_profile_comparisons(job.paths))
    since, spent_s = tonight.night.started_at, 0.0
    for name, experiment, first, last in _choose_regressed(suspects, tonight):
        baseline, candidate = (
            take_side(job.catalog, suite, experiment.name, version) for version in (first, last)
        )
        asked = (experiment.name, first, last, named(baseline.deployment.config))
        if any(_profiled_sides(one) == asked for one in known):
            continue
        pairing = Pairing(
            purpose=Purpose.COMPARISON, suite=suite.name, baseline=baseline, candidate=candidate
        )
        trial_s = tonight.trial_s(experiment)
        found = done.attempt(
            f"{experiment.name}, {first} and {last}",
            shlex.join(("knickpoint", "explain", name)),
            suite.explain_minutes * 60 - spent_s,
            trial_s,
            partial(explain, job, pairing),
            fewest_blocks=BLOCKS,
        )
        if found:
            known.append(found)
            spent_s += len(found.trials) * trial_s
    done.found += (_describe_profiles(one) for one in known if one.measured_at >= since)
    return done


def _profiled_sides(one: ProfileComparison) -> tuple[str, str, str, Named]:
    return one.experiment, one.baseline.version, one.candidate.version, one.baseline.config


def _choose_regressed(
    suspects: Sequence[SuspectedChange], tonight: CurrentNight
) -> Iterator[tuple[str, Experiment, str, str]]:
    """Yield the name, the experiment and the two releases of what became worse.

    Where a bisection named a release, that one and the one before it stand for the ends.
    """
    job, suite, records = tonight.job, tonight.suite, read_bisections(tonight.job.paths)
    changes, traced = [], set()
    for question in choose_traceable(suspects):
        is_worse = question.changes[0].outcome is Outcome.REGRESSED
        found = find_experiment_of(job.catalog, suite, question.key)
        if found is None or not is_worse:
            continue
        name, first, last = name_incident(question.changes[0]), question.baseline, question.candidate
        for record in records:
            if record.culprit and traces(record, question, found.name):
                traced.add((found.name, question.baseline.version, question.candidate.version))
                name, first, last = record.id, record.culprit.predecessor, record.culprit.release
        changes.append((name, found, first.version, last.version))
    for purpose in (Purpose.COMPARISON, Purpose.CONFIRMATION):
        for one in _read_finished(tonight, purpose):
            ends = one.baseline.version, one.candidate.version
            is_ours = one.suite == suite.name and not one.method
            if one.outcome is Outcome.REGRESSED and is_ours and (one.experiment, *ends) not in traced:
                yield one.id, find_experiment(suite, one.experiment), *ends
    yield from changes


def _has_gap(question: RemeasurementQuestion, known: Sequence[Release]) -> bool:
    """Return whether releases of the line lie between the two that were compared."""
    ends = question.baseline, question.candidate
    return any(
        release.line == question.key.line and ends[0].ordinal < release.ordinal < ends[1].ordinal
        for release in known
    )


def _name(question: RemeasurementQuestion, experiment: Experiment) -> str:
    return f"{experiment.name}, {question.baseline.version} to {question.candidate.version}"


def _describe_comparison(result: ComparisonResult) -> str:
    trials = f"{len(result.trials)} interleaved trials, {format_duration(_spent_s(result))}"
    sides = f"{result.baseline.label} to {result.candidate.label}"
    return f"{result.experiment}, {sides}: {result.outcome}: {result.reason} ({trials}; {result.id})"


def _describe_profiles(one: ProfileComparison) -> str:
    sides = f"{one.baseline.version} to {one.candidate.version}"
    return f"{one.experiment}, {sides}: {describe_code(one)} ({one.id})"


def _describe_bisection(record: BisectionRecord) -> str:
    span = f"{record.good.version} to {record.bad.version}"
    said = record.found.sentence if record.found else "not finished"
    return f"{record.experiment}, {span}: {said} ({record.id})"
