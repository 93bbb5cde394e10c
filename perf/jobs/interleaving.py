"""Two sides that take turns on the same hosts; a kill costs the trial that runs, and nothing else.

    <data>/comparisons/<id>/plan.json     what is compared, written before the first trial
    <data>/comparisons/<id>/result.json   what it came to; written by `analysis` once it is over

A side is a resolved deployment at one release. Sides take turns in blocks, ABBA or BAAB by a seed, so
that a host that grows slower or faster meanwhile harms both alike. Which trials are done follows from
their bundles, whose ids follow from the plan.

A question half answered is not asked anew: trials of the past count as turns, too. Those of an earlier
comparison of the same question took turns already. And a night that measured both releases, everything
else equal by hash, on the same hosts is a block of one trial each, or half of the block that follows at
once. Only completed trials count, and only those whose remarks are those of the side.
"""

import hashlib
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

from pydantic import AwareDatetime, TypeAdapter

from perf.config.catalog import Catalog, find_experiment
from perf.history import bundle
from perf.history.place import has_history
from perf.history.store import open_history
from perf.jobs.attaching import refuse_attached
from perf.jobs.measuring import Fetched, Job
from perf.jobs.other_knickpoint import ask_version, measure_by
from perf.jobs.plans import contents, is_done, next_id, no_plan, read_plan
from perf.local import durable
from perf.local.paths import DataPaths
from perf.model.design import Deployment, Suite
from perf.model.errors import BundleError, HistoryError
from perf.model.facts import find_dataset
from perf.model.identity import content_hash, named
from perf.model.results import SIDES, Purpose, Reason, SideName, Taken, Trial, TrialId, TrialStatus
from perf.model.scalars import STRICT, SafeId
from perf.trial.harness import Order

RESUMABLE_FOR = timedelta(hours=20)
"""After its last trial."""
PLAN, RESULT = "plan.json", "result.json"
_ORDERS: tuple[tuple[SideName, ...], ...] = (
    ("baseline", "candidate", "candidate", "baseline"),
    ("candidate", "baseline", "baseline", "candidate"),
)
_PAIRS: tuple[tuple[str, str, slice], ...] = (("1", "ab", slice(0, 2)), ("2", "cd", slice(2, 4)))
_TOGETHER = timedelta(minutes=30)
"""The two trials of a pair are no pair any more where an interruption parted them for longer."""
PLANTED = "planted"
"""The kind of a remark that a trial was made to differ on purpose."""
OTHER_KNICKPOINT = "other-knickpoint"
"""The kind of a remark that another installation measured a trial."""
MOST_NIGHTS = 8
"""Of the newest nights: each counts as a block, and what is older says less of how hosts are today."""
FIRST_BLOCK = 1001
"""Past blocks count from here, so that no block that is yet to be measured has the same number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a comparison. `label` names it to people, for example "5.0.9 with slow-disk".

    `program` is the one of another installation of Knickpoint that measures it; None is this one.
    """

    label: str
    version: str
    deployment: Deployment
    remarks: tuple[Reason, ...] = ()
    program: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """What is compared with what, why, and the seed that decides the order of turns."""

    purpose: Purpose
    suite: str
    baseline: Side
    candidate: Side
    seed: int = 1

    def side(self, name: SideName) -> Side:
        """Return a side by its name."""
        return self.baseline if name == "baseline" else self.candidate


Artifacts: TypeAlias = Mapping[SideName, Fetched]


def take_side(catalog: Catalog, suite: Suite, experiment: str, version: str, config: str = "") -> Side:
    """Return an experiment of a suite at a release, in its own config or in another one.

    Raises:
        UsageError: the suite has no such experiment, or there is no such config.

    """
    found = find_experiment(suite, experiment)
    chosen = replace(found, config=config) if config else found
    label = f"{version} with {config}" if config else version
    return Side(label=label, version=version, deployment=catalog.resolve(suite, chosen))


def pair_methods(pairing: Pairing, program: Path) -> Pairing:
    """Return a pairing whose baseline another installation of Knickpoint measures.

    Raises:
        UsageError: `program` is no Knickpoint that runs.

    """
    other, this = ask_version(program), version("knickpoint")
    # No path of this machine is kept; two installations of one version are two questions all the same.
    which = hashlib.sha256(str(program).encode()).hexdigest()[:6]
    text = f"measured by another installation of Knickpoint, {other} ({which})"
    before, after = pairing.baseline, pairing.candidate
    baseline = replace(
        before,
        label=f"{before.label} (Knickpoint {other} before)",
        program=program,
        remarks=(*before.remarks, Reason(kind=OTHER_KNICKPOINT, text=text)),
    )
    candidate = replace(after, label=f"{after.label} (Knickpoint {this} now)")
    return replace(pairing, baseline=baseline, candidate=candidate)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPlan:
    """A comparison on disk. Equal `question_sha256`, equal question: same deployments, same bytes."""

    __pydantic_config__ = STRICT
    id: SafeId
    question_sha256: str
    purpose: Purpose
    suite: str
    experiment: str
    baseline: str
    candidate: str
    seed: int
    started_at: AwareDatetime


_PLAN = TypeAdapter(ComparisonPlan)


def fetch_sides(job: Job, pairing: Pairing) -> Artifacts:
    """Fetch what both sides install, before anything is measured.

    Raises:
        ReleaseError: a release could be fetched from nowhere.
        UsageError: a release is unknown, or the testbed is attached.

    """
    sides = {name: pairing.side(name) for name in SIDES}
    for side in sides.values():
        refuse_attached(side.deployment.testbed)
    return {
        name: job.fetch(side.deployment.experiment.system, side.version) for name, side in sides.items()
    }


def question_hash(pairing: Pairing, artifacts: Artifacts) -> str:
    """Hash all that decides what a comparison measures; neither purpose nor seed nor labels."""
    return content_hash(
        tuple(
            content_hash(part)
            for name in SIDES
            for side in (pairing.side(name),)
            for part in (
                side.deployment.experiment.system,
                *contents(side.deployment),
                side.version,
                artifacts[name].artifact.sha256,
                tuple(remark.text for remark in side.remarks),
            )
        )
    )


def open_plan(
    pairing: Pairing, artifacts: Artifacts, paths: DataPaths, now: datetime
) -> tuple[ComparisonPlan, bool]:
    """Resume the newest unfinished plan of the same question, purpose and seed; else write a new one.

    Returns the plan and whether it is resumed. A new plan is on disk before this returns.

    Raises:
        BundleError: the file of a plan is not one.

    """
    question = question_hash(pairing, artifacts)
    if unfinished := find_unfinished(question, pairing, paths, now):
        return unfinished, True
    plan = ComparisonPlan(
        # A directory without plan and result is what a killed process left, and is used.
        id=next_id(paths, "cmp-", now, (path.parent for path in paths.comparisons.glob("*/*.json"))),
        question_sha256=question,
        purpose=pairing.purpose,
        suite=pairing.suite,
        experiment=pairing.baseline.deployment.experiment.name,
        baseline=pairing.baseline.label,
        candidate=pairing.candidate.label,
        seed=pairing.seed,
        started_at=now,
    )
    durable.atomic_write(paths.comparisons / plan.id / PLAN, _PLAN.dump_json(plan, indent=1))
    return plan, False


def find_unfinished(
    question: str, pairing: Pairing, paths: DataPaths, now: datetime
) -> ComparisonPlan | None:
    """Find the newest unfinished, young plan of a question, by its hash, with this purpose and seed.

    Raises:
        BundleError: the file of a plan is not one.

    """
    asked = question, pairing.purpose, pairing.seed
    for plan in reversed(read_plans(paths)):
        is_same = (plan.question_sha256, plan.purpose, plan.seed) == asked
        is_young = now - _last_sign(plan, paths) < RESUMABLE_FOR
        if is_same and is_young and not (paths.comparisons / plan.id / RESULT).exists():
            return plan
    return None


def _last_sign(plan: ComparisonPlan, paths: DataPaths) -> datetime:
    """Return when something last happened in a comparison."""
    kept = (path.stat().st_mtime for path in paths.trials.glob(f"{plan.id}.*"))
    return max((datetime.fromtimestamp(when, UTC) for when in kept), default=plan.started_at)


def read_turn(plan: ComparisonPlan, trial: TrialId) -> tuple[int, str, SideName] | None:
    """Read block, pair and side off the id of a trial; None if it is of another comparison."""
    found = re.match(rf"{re.escape(plan.id)}\.(\d+)([a-d])(r?)\.(baseline|candidate)\.", trial)
    if found is None:
        return None
    pair = next(pair for pair, letters, _ in _PAIRS if found[2] in letters)
    side = next(side for side in SIDES if side == found[4])
    return int(found[1]), f"{pair}{found[3]}", side


def read_plans(paths: DataPaths) -> tuple[ComparisonPlan, ...]:
    """Read the plans of all comparisons, oldest first.

    Raises:
        BundleError: a file is not a plan.

    """
    plans = []
    for path in paths.comparisons.glob(f"*/{PLAN}"):
        plan = read_plan(path, _PLAN, "a comparison")
        if plan.id != path.parent.name:
            raise no_plan(path, "a comparison", ["id: a plan lies in the directory of its id"])
        plans.append(plan)
    return tuple(sorted(plans, key=lambda plan: (plan.started_at, plan.id)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRun:
    """A comparison under way. `opening` is a pair, in its order, that is half of block 1 already."""

    plan: ComparisonPlan
    pairing: Pairing
    artifacts: Artifacts
    job: Job
    opening: tuple[Taken, ...] = ()

    def measure_block(self, block: int) -> Iterator[Taken]:
        """Measure what is missing of a block, counted from 1, and give each of its trials in turn.

        A block is two pairs, one of them in the opposite order. A pair with a trial that is invalid or
        failed is measured once more, whole and in its order, behind the others: a single trial that
        came later than its block would take the drift of the hosts for a difference. A caller that has
        seen enough may stop asking.

        Raises:
            HostUnfit: the hosts cannot carry any trial.

        """
        order = self._order(block)
        missing = _PAIRS
        if block == 1 and self.opening:
            sides = tuple(one.side for one in self.opening)
            order, missing = sides + sides[::-1], _PAIRS[1:]
        broken = []
        for pair, letters, span in missing:
            turns = tuple(zip(letters, order[span], strict=True))
            taken: list[Taken] = []
            for letter, side in turns:
                if taken and self._is_parted(taken[0].trial, self._name(side, block, letter)):
                    break
                trial = self._take_turn(side, block, letter)
                taken.append(Taken(block=block, pair=pair, side=side, trial=trial))
                yield taken[-1]
            if sum(one.trial.status is TrialStatus.COMPLETED for one in taken) < len(turns):
                broken.append((f"{pair}r", turns))
        for pair, turns in broken:
            for letter, side in turns:
                trial = self._take_turn(side, block, f"{letter}r")
                yield Taken(block=block, pair=pair, side=side, trial=trial)
                if trial.status is not TrialStatus.COMPLETED:
                    break  # the pair is lost, whatever the other side comes to

    def _order(self, block: int) -> Sequence[SideName]:
        """Draw the order of a block. Of kept data, the first trial is of the release that can make it.

        The later one reads what the earlier one made, but not the other way round.
        """
        if block == 1 and self.pairing.baseline.deployment.workload.dataset:
            places = [self.artifacts[name].release.ordinal for name in SIDES]
            return _ORDERS[places[0] > places[1]]
        return _ORDERS[random.Random(f"{self.plan.seed}.{block}").randrange(len(_ORDERS))]  # noqa: S311  an order, no secret

    def _name(self, side: SideName, block: int, letter: str) -> TrialId:
        return TrialId(f"{self.plan.id}.{block:02d}{letter}.{side}.{self.pairing.side(side).version}")

    def _is_parted(self, first: Trial, second: TrialId) -> bool:
        """Return whether the second trial of a pair is missing, and too late to be of the pair."""
        if is_done(self.job.paths, second):
            return False
        sealed_at = (self.job.paths.trials / first.id).stat().st_mtime
        return datetime.now(UTC) - datetime.fromtimestamp(sealed_at, UTC) > _TOGETHER

    def _take_turn(self, name: SideName, block: int, letter: str) -> Trial:
        side, fetched = self.pairing.side(name), self.artifacts[name]
        trial = self._name(name, block, letter)
        if is_done(self.job.paths, trial):
            return bundle.read(self.job.paths.trials / trial)[0]
        self.job.progress.heading(f"block {block}, turn {letter}: {name}, {side.label}")
        order = Order(
            trial=trial,
            night="",
            purpose=self.pairing.purpose,
            deployment=side.deployment,
            release=fetched.release,
            artifact=fetched.artifact,
            remarks=side.remarks,
        )
        if side.program is not None:
            return measure_by(side.program, order, self.plan.suite, self.job)
        return self.job.measure(order)


def find_past_turns(
    job: Job,
    pairing: Pairing,
    artifacts: Artifacts,
    *,
    with_nights: bool = True,
    opening: str = "",
) -> tuple[Taken, ...]:
    """Find the turns that were taken before, oldest block first; without nights, those of comparisons.

    Those of a comparison that is about to be resumed are its own, and not among them. The pair of the
    night `opening`, if it has just ended, is the first of block 1. A damaged bundle is left out, and
    reported.

    Raises:
        BundleError: the plan of a comparison is none.

    """
    question = question_hash(pairing, artifacts)
    now = datetime.now(UTC)
    resumed = find_unfinished(question, pairing, job.paths, now)
    plans = [
        plan for plan in read_plans(job.paths) if plan.question_sha256 == question and plan != resumed
    ]
    trials = _read_trials(job, pairing, plans)
    blocks = [
        *(_blocks_of_nights(pairing, artifacts, trials) if with_nights else ()),
        *(block for plan in plans for block in _blocks_of(plan, pairing, trials)),
    ]
    blocks.sort(key=_begin)
    begins_at = resumed.started_at if resumed else now
    return tuple(
        replace(turn, block=1, pair="1")
        if _opens(block, opening, begins_at)
        else replace(turn, block=number)
        for number, block in enumerate(blocks, start=FIRST_BLOCK)
        for turn in block
    )


def _opens(block: Sequence[Taken], night: str, begins_at: datetime) -> bool:
    """Return whether a block is the pair of a night that ended shortly before a comparison begins."""
    trials = [one.trial for one in block]
    return bool(night) and all(
        one.night == night and begins_at - one.finished_at < _TOGETHER for one in trials
    )


def has_trials(experiment: str, version: str, paths: DataPaths) -> bool:
    """Describe by their names alone whether there may be trials of a release that took turns before."""
    endings = (f".{experiment}.{version}", f".candidate.{version}")
    return any(path.name.endswith(endings) for path in bundle.find(paths))


def _begin(block: Sequence[Taken]) -> tuple[datetime, TrialId]:
    return block[0].trial.started_at, block[0].trial.id


def _blocks_of(
    plan: ComparisonPlan, pairing: Pairing, trials: Sequence[Trial]
) -> Iterable[list[Taken]]:
    """Return the blocks of an earlier comparison, with those of their pairs that are whole."""
    pairs: defaultdict[tuple[int, str], list[Taken]] = defaultdict(list)
    for trial in trials:
        if (turn := read_turn(plan, trial.id)) is None:
            continue
        block, pair, side = turn
        if _says_the_same(trial, pairing, side):
            pairs[block, pair].append(Taken(block=block, pair=pair, side=side, trial=trial))
    blocks: defaultdict[int, list[Taken]] = defaultdict(list)
    for (number, _), both in pairs.items():
        if {turn.side for turn in both} == set(SIDES):
            blocks[number] += both
    return blocks.values()


def _blocks_of_nights(
    pairing: Pairing, artifacts: Artifacts, trials: Sequence[Trial]
) -> Iterable[list[Taken]]:
    """Return the newest nights that measured both sides, each as a block of one trial a side.

    A night in which they started from different kept files compared these, too: it is left out.
    """
    nights: defaultdict[str, dict[SideName, Taken]] = defaultdict(dict)
    for trial in trials:
        if trial.purpose is not Purpose.SCHEDULED or not trial.night:
            continue
        for side in SIDES:
            if _measured_it(trial, pairing, artifacts, side) and _says_the_same(trial, pairing, side):
                nights[trial.night].setdefault(side, Taken(block=0, side=side, trial=trial))
    both = [list(night.values()) for night in nights.values() if len(night) == len(SIDES)]
    alike = [turns for turns in both if len({find_dataset(one.trial) for one in turns}) == 1]
    return sorted(alike, key=_begin)[-MOST_NIGHTS:]


def _measured_it(trial: Trial, pairing: Pairing, artifacts: Artifacts, name: SideName) -> bool:
    """Return whether a trial measured exactly what a side is, by content and by the bytes installed."""
    hashes = (trial.topology, trial.testbed, trial.workload, trial.config)
    wanted = contents(pairing.side(name).deployment)
    return (
        trial.release == artifacts[name].release
        and trial.artifact is not None
        and trial.artifact.sha256 == artifacts[name].artifact.sha256
        and [one.sha256 for one in hashes] == [named(one).sha256 for one in wanted]
    )


def _says_the_same(trial: Trial, pairing: Pairing, name: SideName) -> bool:
    """Return whether a trial has the remarks of its side, and nothing was planted beside it."""
    said = set(pairing.side(name).remarks)
    planted = {remark for remark in trial.remarks if remark.kind == PLANTED}
    return said <= set(trial.remarks) and planted <= said


def _read_trials(job: Job, pairing: Pairing, plans: Sequence[ComparisonPlan]) -> tuple[Trial, ...]:
    """Read the completed trials that may count: bundles, and what only the history still holds.

    Which may follows from their names alone, so that a long history is not read as a whole.
    """
    bundled = {path.name for path in bundle.find(job.paths)}
    names: list[str] = []
    trials: list[Trial] = []
    try:
        if has_history(job.paths):
            with open_history(job.paths.history, read_only=True) as history:
                versions = {pairing.side(name).version for name in SIDES}
                kept = {each for one in versions for each in history.find_trials(version=one)}
                names = _choose(bundled | kept, pairing, plans)
                trials += history.trials([TrialId(name) for name in names if name not in bundled])
    except HistoryError as error:
        # What was measured before only saves time; without it the comparison measures more.
        job.progress.report(f"nothing of the history is reused: {error}")
    for name in names or _choose(bundled, pairing, plans):
        if name in bundled:
            trials += _read_bundle(job, name)
    completed = (trial for trial in trials if trial.status is TrialStatus.COMPLETED)
    return tuple(sorted(completed, key=lambda trial: (trial.started_at, trial.id)))


def _choose(names: Iterable[str], pairing: Pairing, plans: Sequence[ComparisonPlan]) -> list[str]:
    """Choose the trials of these plans, and of the newest nights in which both sides have one."""
    turns = tuple(f"{plan.id}." for plan in plans)
    endings = {
        f".{pairing.side(name).deployment.experiment.name}.{pairing.side(name).version}"
        for name in SIDES
    }
    chosen, nights = [], defaultdict[str, dict[str, list[str]]](lambda: defaultdict(list))
    for name in sorted(names):
        if name.startswith(turns):
            chosen.append(name)
        for ending in endings:
            if name.endswith(ending):
                nights[name.partition(".")[0]][ending].append(name)
    both = [night for _, night in sorted(nights.items()) if len(night) == len(endings)]
    # Twice as many as count: some of their trials may not be completed, or of something else.
    newest = both[-2 * MOST_NIGHTS :]
    return [*chosen, *(name for night in newest for group in night.values() for name in group)]


def _read_bundle(job: Job, name: str) -> Iterator[Trial]:
    try:
        yield bundle.read(job.paths.trials / name)[0]
    except BundleError as error:
        job.progress.report(f"not reused: {error}")
