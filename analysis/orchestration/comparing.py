"""A side-by-side comparison from the first trial to its verdict: measure a block, look, go on or stop.

An edge: it measures through `perf.jobs.interleaving` and keeps the result beside the plan. What is
judged is pure: `turns`, `paired` and `sequential`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from analysis.comparing.blocks import Measure
from analysis.comparing.description import describe_looks
from analysis.comparing.diagnostics import compare_diagnostics
from analysis.comparing.logs import Lines, compare_logs, count_lines
from analysis.comparing.results import (
    LONGEST,
    MOST_BYTES,
    MOST_DEFAULTS,
    ComparisonResult,
    KnobValues,
    LogDifference,
    SideRecord,
    TrialRecord,
    read_result,
    write_result,
)
from analysis.comparing.sequential import look
from analysis.comparing.turns import (
    Inquiry,
    Looker,
    choose_trusted,
    conclude,
    doubt_losses,
    is_over,
    judge_measures,
)
from analysis.detection import words
from analysis.detection.verdict import Outcome
from perf.history.bundle import LOGS
from perf.jobs.feasible import planned_s
from perf.jobs.holding import hold
from perf.jobs.interleaving import (
    RESULT,
    Artifacts,
    ComparisonRun,
    Pairing,
    Side,
    fetch_sides,
    open_plan,
)
from perf.jobs.measuring import Job
from perf.local import durable
from perf.local.paths import DataPaths
from perf.local.plain_files import read_json
from perf.model.errors import InputError, UsageError
from perf.model.facts import METHOD, VERSION, find_dataset
from perf.model.identity import named
from perf.model.results import SIDES, TURNS, SideName, Taken, Trial, TrialStatus
from perf.model.rules import Detection
from perf.systems import registry
from perf.systems.contract import ShipsDefaults
from perf.workloads.stages import ladder_phases

T = TypeVar("T")
_HOPELESS = 2
"""Trials of one side that failed, before one completed: a third would fail as well."""
_MOST_LOGGED = 16 * 1024**2
"""Characters that are read of one log."""
_BARREN = 2
"""Blocks without one completed trial of a side: hosts that are unfit for so long stay so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that a comparison may take: trials of both sides together, and minutes of trials."""

    trials: int
    minutes: float

    def after(self, trials: int, seconds: float) -> "Budget":
        """Return what is left after so many trials that took so long."""
        return Budget(trials=max(0, self.trials - trials), minutes=self.minutes - seconds / 60)

    def share(self, among: int) -> "Budget":
        """Return the part of each of several comparisons."""
        return Budget(trials=self.trials // among, minutes=self.minutes / among)

    def within(self, other: "Budget") -> "Budget":
        """Return what this budget and another one allow both."""
        trials, minutes = min(self.trials, other.trials), min(self.minutes, other.minutes)
        return Budget(trials=trials, minutes=minutes)

    def count(self, trial_s: float) -> int:
        """Return how many trials of this length, in seconds, fit."""
        return max(0, min(self.trials, int(self.minutes * 60 / trial_s)))


def allow(
    settings: Detection, trials: int | None = None, minutes: float | None = None, times: int = 1
) -> Budget:
    """Return what was asked for; of what was not said, what the rules allow so many comparisons."""
    usual = settings.comparison
    return Budget(trials=trials or times * usual.trials, minutes=minutes or times * usual.minutes)


def read_results(paths: DataPaths) -> tuple[ComparisonResult, ...]:
    """Return what all finished comparisons of a data directory came to, oldest first.

    Raises:
        InputError: a result is not one.

    """
    found = read_saved(paths.comparisons.glob(f"*/{RESULT}"), read_result)
    return tuple(sorted(found, key=lambda one: (one.started_at, one.id)))


def read_saved(files: Iterable[Path], read: Callable[[bytes, Path], T]) -> Iterator[T]:
    """Read files that were kept beside their trials.

    Raises:
        InputError: one of them cannot be read; says what to do about it.

    """
    for path in files:
        try:
            yield read(read_json(path, MOST_BYTES), path)
        except (InputError, OSError) as error:
            why = error.problems if isinstance(error, InputError) else (f"{error.strerror}",)
            hint = f"move {path.parent} away, its trials are kept"
            raise InputError(path, (*why, hint)) from error


def run_comparison(
    job: Job,
    pairing: Pairing,
    budget: Budget,
    *,
    trusted: Sequence[Measure] = (),
    looker: Looker = look,
    prior: Sequence[Taken] = (),
    reproduce: str = "",
) -> ComparisonResult:
    """Measure two sides in turns until it is decided or the budget is used up, and keep the result.

    A comparison of the same question that was cut short is resumed. `trusted` are the measures that
    decide; without them those of `settings.comparison`. `prior` are trials that took turns before and
    count as well, in blocks of other numbers than those from 1 on; a pair of block 1 is half of it, and
    is not measured again. `reproduce` is the command that asks the same again.

    Raises:
        BundleError: the plan of a comparison cannot be read.
        MeasureError: another job measures here or on these hosts, or they cannot carry any trial.
        ReleaseError: a release could be fetched from nowhere.
        UsageError: a release is unknown, or no measure can be trusted.

    """
    inquiry = inquire(job, pairing, budget, trusted=trusted, looker=looker, prior=prior)
    sides = pairing.baseline, pairing.candidate
    purpose = f"a comparison of {sides[1].label} with {sides[0].label}"
    with hold(job.paths, job.progress, [side.deployment.testbed for side in sides], purpose):
        artifacts = fetch_sides(job, pairing)
        plan, is_resumed = open_plan(pairing, artifacts, job.paths, datetime.now(UTC))
        how = "resumed" if is_resumed else "new"
        job.progress.heading(f"comparison {plan.id} ({how}): {sides[0].label} against {sides[1].label}")
        opening = tuple(one for one in prior if one.block == 1)
        course = ComparisonRun(
            plan=plan, pairing=pairing, artifacts=artifacts, job=job, opening=opening
        )
        taken, ended = _take_turns(course, inquiry, budget, prior)
        result = _conclude(course, inquiry, (*prior, *taken), ended, reproduce)
        durable.atomic_write(job.paths.comparisons / plan.id / RESULT, write_result(result))
    return result


def inquire(
    job: Job,
    pairing: Pairing,
    budget: Budget,
    *,
    trusted: Sequence[Measure],
    looker: Looker,
    prior: Sequence[Taken],
) -> Inquiry:
    """Return how the turns of a comparison are judged.

    Raises:
        UsageError: no measure can be trusted.

    """
    workload, settings = pairing.baseline.deployment.workload, job.catalog.detection
    trusted = tuple(dict.fromkeys(trusted)) or choose_trusted(workload, settings)
    if not trusted:
        kinds = ", ".join(sorted({part.load.kind for part in workload.measurements}))
        raise UsageError(
            f"nothing of workload {workload.name} can decide a comparison: comparison.trusted in"
            f" detection.yaml names no metric for its loads ({kinds}); add one, or name a measure"
        )
    return Inquiry(
        settings=settings,
        trusted=trusted,
        may_lack=frozenset(ladder_phases(workload)),
        most_blocks=max(1, budget.trials // TURNS) + len({one.block for one in prior}),
        seed=pairing.seed,
        looker=looker,
    )


def _conclude(
    course: ComparisonRun, inquiry: Inquiry, taken: Sequence[Taken], ended: str, reproduce: str
) -> ComparisonResult:
    plan, pairing = course.plan, course.pairing
    measures = judge_measures(taken, inquiry)
    outcome, reason = conclude(measures)
    outcome, reason = doubt_losses(taken, outcome, reason, measures)
    if hopeless := _find_hopeless(taken):
        outcome, reason = Outcome.INVALID, _explain_hopeless(pairing, taken, hopeless)
    return ComparisonResult(
        id=plan.id,
        purpose=pairing.purpose,
        suite=pairing.suite,
        experiment=plan.experiment,
        system=pairing.baseline.deployment.experiment.system,
        baseline=record_side(pairing.baseline, course.artifacts, "baseline"),
        candidate=record_side(pairing.candidate, course.artifacts, "candidate"),
        seed=plan.seed,
        question_sha256=plan.question_sha256,
        outcome=outcome,
        reason=cut(reason),
        ended=cut(ended),
        measures=measures,
        trials=tuple(map(_record_trial, taken)),
        started_at=plan.started_at,
        finished_at=max(one.trial.finished_at for one in taken),
        command=reproduce,
        caveat=pairing.baseline.deployment.testbed.caveat,
        remarks=(*_remarks(pairing), *_doubt_files(taken)),
        diagnostics=compare_diagnostics(taken),
        defaults=_compare_defaults(course),
        method=_compare_methods(taken) if pairing.baseline.program else (),
        logs=_compare_logs(course.job.paths, taken),
    )


def _compare_logs(paths: DataPaths, taken: Sequence[Taken]) -> tuple[LogDifference, ...] | None:
    """Return what servers logged on one side only; trials whose bundles are gone have no say."""
    trials: dict[SideName, list[Lines]] = {side: [] for side in SIDES}
    for one in taken:
        logs = sorted((paths.trials / one.trial.id / LOGS).glob("*.log"))
        if one.trial.status is TrialStatus.COMPLETED and logs:
            trials[one.side].append(sum(map(_count_log, logs), Counter()))
    return compare_logs(trials)


def _count_log(path: Path) -> Lines:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return count_lines(file.read(_MOST_LOGGED).splitlines())
    except OSError:
        return Counter()


def _compare_methods(taken: Sequence[Taken]) -> tuple[KnobValues, ...]:
    """Return the digests and versions with which both sides were measured, where they differ."""
    before, after = (
        {
            fact.name: fact.value
            for one in taken
            if one.side == side
            for fact in one.trial.environment_before
            if fact.name.startswith((METHOD, VERSION))
        }
        for side in SIDES
    )
    return tuple(
        KnobValues(path=cut(name), before=cut(before.get(name, "")), after=cut(after.get(name, "")))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    )[:100]


def _compare_defaults(course: ComparisonRun) -> tuple[KnobValues, ...]:
    """Return what the files of both artifacts set differently, or that only one brings such files."""
    system = registry.load(course.pairing.baseline.deployment.experiment.system)
    if not isinstance(system, ShipsDefaults):
        return ()
    fetched = (course.artifacts[side] for side in SIDES)
    before, after = (system.defaults(one.release, one.artifact) for one in fetched)
    if bool(before) != bool(after):
        whose = ("in files that it ships" if one else "in its code" for one in (before, after))
        return (KnobValues(path="defaults", before=next(whose), after=next(whose)),)
    differ = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
    return tuple(
        KnobValues(
            path=cut(key),
            key=cut(key.partition(": ")[2]),
            before=cut(before.get(key, "")),
            after=cut(after.get(key, "")),
        )
        for key in differ[:MOST_DEFAULTS]
    )


def _take_turns(
    course: ComparisonRun, inquiry: Inquiry, budget: Budget, prior: Sequence[Taken]
) -> tuple[list[Taken], str]:
    """Measure block by block; give the trials, and why there are no more."""
    taken: list[Taken] = []
    if prior and is_over(prior, inquiry):
        return taken, "decided by what was measured before"
    ended, said, block = "", "", 0
    while not ended:
        block += 1
        _expect(course, taken, budget)
        for one in course.measure_block(block):
            taken.append(one)
            if hopeless := _find_hopeless(taken):
                who = "neither side could" if len(hopeless) > 1 else f"the {hopeless[0]} could not"
                return taken, f"{who} be measured"
        blocks = words.counted(block, "block", "blocks")
        said = f"after {blocks}, {words.counted(len(taken), 'trial', 'trials')}"
        for line in describe_looks(judge_measures((*prior, *taken), inquiry)):
            course.job.progress.report(f"{said}: {line}")
        ended = _find_end(taken, prior, inquiry, budget, block)
    return taken, f"{ended} {said}"


def _find_end(
    taken: Sequence[Taken], prior: Sequence[Taken], inquiry: Inquiry, budget: Budget, blocks: int
) -> str:
    """Describe why no further block is measured; nothing if one is."""
    spent_s = _seconds(taken)
    is_used_up = len(taken) + TURNS > budget.trials
    if blocks >= _BARREN and (barren := _find_barren(taken)):
        return f"no trial of the {barren} completed"
    if is_over((*prior, *taken), inquiry):
        outcome, _ = conclude(judge_measures((*prior, *taken), inquiry))
        if outcome is not Outcome.UNDECIDED:
            return "decided"
        if not is_used_up:
            return "given up, since what was left of the budget would not decide it,"
    if is_used_up:
        return f"the budget of {words.counted(budget.trials, 'trial', 'trials')} was used up"
    if spent_s * (1 + TURNS / len(taken)) > budget.minutes * 60:
        return f"the {budget.minutes:g} minutes allow no further block"
    return ""


def _expect(course: ComparisonRun, taken: Sequence[Taken], budget: Budget) -> None:
    deployment = course.pairing.baseline.deployment
    each_s = _seconds(taken) / len(taken) if taken else planned_s(deployment)
    left = budget.after(len(taken), _seconds(taken))
    half = 0 if taken else len(course.opening)
    turns = half + max(TURNS, (left.trials - half) // TURNS * TURNS)
    course.job.progress.expect(min(turns * each_s, max(left.minutes * 60, TURNS * each_s)))


def _seconds(taken: Sequence[Taken]) -> float:
    return sum(_duration_s(one.trial) for one in taken)


def _duration_s(trial: Trial) -> float:
    return (trial.finished_at - trial.started_at).total_seconds()


def _find_hopeless(taken: Sequence[Taken]) -> tuple[SideName, ...]:
    """Name the sides of which nothing can be measured.

    One side alone is blamed only where a trial of the other completed on the same hosts.
    """
    statuses = {side: [one.trial.status for one in taken if one.side == side] for side in SIDES}
    measured = {side for side in SIDES if TrialStatus.COMPLETED in statuses[side]}
    failed = tuple(
        side
        for side in SIDES
        if side not in measured and statuses[side].count(TrialStatus.FAILED) >= _HOPELESS
    )
    return failed if measured or len(failed) == len(SIDES) else ()


def _find_barren(taken: Sequence[Taken]) -> SideName | None:
    """Return a side none of whose trials completed."""
    measured = {one.side for one in taken if one.trial.status is TrialStatus.COMPLETED}
    return next((side for side in SIDES if side not in measured), None)


def _explain_hopeless(pairing: Pairing, taken: Sequence[Taken], hopeless: Sequence[SideName]) -> str:
    who = (
        "neither side"
        if len(hopeless) > 1
        else f"the {hopeless[0]}, {pairing.side(hopeless[0]).label},"
    )
    last = {one.side: one.trial for one in taken if one.trial.status is TrialStatus.FAILED}
    why = dict.fromkeys(reason.text for side in hopeless for reason in last[side].reasons)
    return f"{who} could {'' if len(hopeless) > 1 else 'not '}be measured: {'; '.join(why)}"


def cut(text: str) -> str:
    """Keep a text as short as `results` reads it."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]} …"


def record_side(side: Side, artifacts: Artifacts, name: SideName) -> SideRecord:
    """Return what a side was, by names and hashes."""
    deployment = side.deployment
    return SideRecord(
        label=side.label,
        version=side.version,
        config=named(deployment.config),
        topology=named(deployment.topology),
        testbed=named(deployment.testbed),
        workload=named(deployment.workload),
        artifact_sha256=artifacts[name].artifact.sha256,
    )


def _record_trial(one: Taken) -> TrialRecord:
    return TrialRecord(
        id=one.trial.id,
        side=one.side,
        block=one.block,
        status=one.trial.status,
        duration_s=_duration_s(one.trial),
        reasons=one.trial.reasons,
    )


def _remarks(pairing: Pairing) -> tuple[str, ...]:
    said = (
        f"{name}: {remark.text}"
        for name, side in (("baseline", pairing.baseline), ("candidate", pairing.candidate))
        for remark in side.remarks
    )
    return tuple(map(cut, dict.fromkeys(said)))


def _doubt_files(taken: Sequence[Taken]) -> tuple[str, ...]:
    """Return a remark if both sides of pairs that count started from different kept files."""
    pairs: defaultdict[tuple[int, str], list[Trial]] = defaultdict(list)
    for one in taken:
        if one.trial.status is TrialStatus.COMPLETED:
            pairs[one.block, one.pair].append(one.trial)
    whole = [pair for pair in pairs.values() if len(pair) == len(SIDES)]
    unlike = [pair for pair in whole if find_dataset(pair[0]) != find_dataset(pair[1])]
    if not unlike:
        return ()
    which = " and ".join(find_dataset(trial) or "rows of its own" for trial in unlike[-1])
    text = f"the sides started from different files in {len(unlike)} of {len(whole)} pairs: {which}"
    return (cut(text),)
