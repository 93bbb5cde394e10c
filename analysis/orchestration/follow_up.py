"""What a night does about what it found, before anyone is told: measure suspects again, and bisect.

An edge: it measures through `comparing.run` and `bisecting.run`. What is worth minutes is chosen by
`suspects`, which is pure. Whatever is left out is said, with the command that makes up for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from analysis.bisecting.record import BisectionRecord
from analysis.comparing.results import ComparisonResult
from analysis.detection.verdict import Outcome
from analysis.judging.remeasurement import RemeasurementQuestion, compare_command
from analysis.judging.suspects import Suspect, choose_open, choose_traceable, is_final, traces
from analysis.orchestration import question as bisection_question
from analysis.orchestration.bisecting import read_bisections, run_bisection
from analysis.orchestration.comparing import Budget, read_results, run_comparison
from perf.config.catalog import Catalog, find_experiment_of
from perf.jobs.feasible import planned_s
from perf.jobs.side_by_side import Pairing, take_side
from perf.local.places import Places
from perf.local.progress import Progress
from perf.model.design import Experiment, Suite
from perf.model.errors import KnickpointError
from perf.model.nights import Night
from perf.model.results import TURNS, Purpose, Trial, TrialStatus
from perf.model.shown import format_duration
from perf.systems import registry

_FEWEST_BLOCKS = 2
"""Below that nothing can be decided: one block has no scatter between blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tonight:
    """The night whose findings are followed up, and what there is to measure with."""

    catalog: Catalog
    suite: Suite
    night: Night
    trials: tuple[Trial, ...]
    places: Places
    progress: Progress

    def trial_s(self, experiment: Experiment) -> float:
        """Say how long a trial takes: those of this night, else what the configuration says."""
        taken = [
            (trial.finished_at - trial.started_at).total_seconds()
            for trial in self.trials
            if trial.experiment == experiment.name and trial.status is TrialStatus.COMPLETED
        ]
        return median(taken) if taken else planned_s(self.catalog.resolve(self.suite, experiment))


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedUp:
    """What came of it, in a sentence each: what was found, what no time was left for, what failed.

    `has_measured` says that something was begun, so that there may be trials that nobody judged yet.
    """

    found: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    has_measured: bool = False


def confirm(suspects: Sequence[Suspect], tonight: Tonight) -> FollowedUp:
    """Measure provisional changes again, the most relevant first, while the suite's minutes last.

    What was measured for this night before it was interrupted counts, and is not measured again.

    Raises:
        InputError: the result of a comparison is not one.

    """
    if tonight.suite.remeasure_minutes is None:
        return FollowedUp()
    results = [
        one
        for one in read_results(tonight.places)
        if one.purpose is Purpose.CONFIRMATION and one.started_at >= tonight.night.started_at
    ]
    left_out, failed, has_measured = [], [], False
    for question in choose_open(suspects):
        experiment = find_experiment_of(tonight.catalog, tonight.suite, question.key)
        if experiment is None or any(_is_of(one, question, experiment) for one in results):
            continue
        left_s = tonight.suite.remeasure_minutes * 60 - sum(map(_spent_s, results))
        budget = _afford(left_s, experiment, tonight)
        command = compare_command(question, tonight.suite.name, experiment.name)
        if budget is None:
            left_out.append(f"{_name(question, experiment)}: {_say_left(left_s)}; run: {command}")
            continue
        has_measured = True
        try:
            results.append(_compare(question, experiment, budget, tonight, command))
        except KnickpointError as error:
            failed.append(f"{_name(question, experiment)}: {error}; again with: {command}")
    unmeasured = [one for one in results if one.outcome is Outcome.INVALID]
    return FollowedUp(
        found=tuple(_describe_comparison(one) for one in results if one not in unmeasured),
        left_out=tuple(left_out),
        failed=(*failed, *map(_describe_comparison, unmeasured)),
        has_measured=has_measured,
    )


def _is_of(result: ComparisonResult, question: RemeasurementQuestion, experiment: Experiment) -> bool:
    asked = experiment.name, question.baseline.version, question.candidate.version
    return (result.experiment, result.baseline.version, result.candidate.version) == asked


def _spent_s(result: ComparisonResult) -> float:
    return sum(trial.duration_s for trial in result.trials)


def _afford(left_s: float, experiment: Experiment, tonight: Tonight) -> Budget | None:
    """Give what so many seconds can measure; None where that would decide nothing."""
    blocks = int(left_s / tonight.trial_s(experiment) / TURNS)
    most = tonight.catalog.detection.comparison.trials // TURNS
    if blocks < _FEWEST_BLOCKS:
        return None
    return Budget(trials=min(blocks, most) * TURNS, minutes=left_s / 60)


def _compare(
    question: RemeasurementQuestion,
    experiment: Experiment,
    budget: Budget,
    tonight: Tonight,
    command: str,
) -> ComparisonResult:
    baseline, candidate = (
        take_side(tonight.catalog, tonight.suite, experiment.name, release.version)
        for release in (question.baseline, question.candidate)
    )
    pairing = Pairing(
        purpose=Purpose.CONFIRMATION,
        suite=tonight.suite.name,
        baseline=baseline,
        candidate=candidate,
    )
    return run_comparison(
        pairing,
        tonight.catalog.detection,
        budget,
        tonight.places,
        tonight.progress,
        trusted=question.measures,
        reproduce=command,
    )


def bisect(suspects: Sequence[Suspect], tonight: Tonight) -> FollowedUp:
    """Look for the release that brought each confirmed change, while the suite's minutes last.

    Only where releases lie between that were not measured, and once per change: what an earlier night
    found stays found. One that its budget ended goes on, and so does one that was interrupted.

    Raises:
        InputError: a saved bisection is none.

    """
    if tonight.suite.bisect is None or tonight.suite.bisect_minutes is None:
        return FollowedUp()
    since = tonight.night.started_at
    records = {one.id: one for one in read_bisections(tonight.places)}
    left_out, failed, has_measured = [], [], False
    for question in choose_traceable(suspects):
        experiment = find_experiment_of(tonight.catalog, tonight.suite, question.key)
        if experiment is None or not _has_gap(question):
            continue
        known = [one for one in records.values() if traces(one, question, experiment.name)]
        if any(is_final(one) or (one.found and one.started_at >= since) for one in known):
            continue
        begun = next((one for one in reversed(known) if one.found is None), None)
        asked = bisection_question.BisectionQuestion(
            catalog=tonight.catalog,
            suite=tonight.suite,
            experiment=experiment.name,
            measure=begun.measure if begun else question.measures[0],
            first=question.baseline.version,
            last=question.candidate.version,
        )
        spent = (one.minutes for one in records.values() if one != begun and one.updated_at >= since)
        left_s = (tonight.suite.bisect_minutes - sum(spent)) * 60
        earlier_s = begun.minutes * 60 if begun and begun.started_at < since else 0.0
        budget = _afford_bisection(left_s, earlier_s, experiment, tonight)
        if budget is None:
            left_out.append(f"{_name(question, experiment)}: {_say_left(left_s)}; run: {asked.command}")
            continue
        settings, places = tonight.catalog.detection, tonight.places
        has_measured = True
        try:
            record = run_bisection(asked, settings, budget, places, tonight.progress)
        except KnickpointError as error:
            failed.append(f"{_name(question, experiment)}: {error}; again with: {asked.command}")
        else:
            records[record.id] = record
    found = (one for one in records.values() if one.found and one.updated_at >= since)
    return FollowedUp(
        found=tuple(map(_describe_bisection, found)),
        left_out=tuple(left_out),
        failed=tuple(failed),
        has_measured=has_measured,
    )


def _has_gap(question: RemeasurementQuestion) -> bool:
    """Tell whether releases of the line lie between the two that were compared."""
    ends = question.baseline, question.candidate
    known = (release for release in registry.load(question.key.system).releases())
    return any(
        release.line == question.key.line and ends[0].ordinal < release.ordinal < ends[1].ordinal
        for release in known
    )


def _afford_bisection(
    left_s: float, earlier_s: float, experiment: Experiment, tonight: Tonight
) -> Budget | None:
    """Give what a bisection may take in all, with what it took on earlier nights."""
    trial_s = tonight.trial_s(experiment)
    if left_s < _FEWEST_BLOCKS * TURNS * trial_s:
        return None
    whole_s = left_s + earlier_s
    return Budget(trials=int(whole_s / trial_s), minutes=whole_s / 60)


def _name(question: RemeasurementQuestion, experiment: Experiment) -> str:
    return f"{experiment.name}, {question.baseline.version} to {question.candidate.version}"


def _say_left(left_s: float) -> str:
    return f"{format_duration(left_s)} left are too short for two blocks of {TURNS} trials"


def _describe_comparison(result: ComparisonResult) -> str:
    trials = f"{len(result.trials)} trials in turns, {format_duration(_spent_s(result))}"
    sides = f"{result.baseline.label} to {result.candidate.label}"
    return f"{result.experiment}, {sides}: {result.outcome}: {result.reason} ({trials}; {result.id})"


def _describe_bisection(record: BisectionRecord) -> str:
    span = f"{record.good.version} to {record.bad.version}"
    said = record.found.sentence if record.found else "not finished"
    return f"{record.experiment}, {span}: {said} ({record.id})"
