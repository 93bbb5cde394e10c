"""Trials of the past that count as turns of a comparison: a question half answered is not asked anew.

Two kinds do. Trials of an earlier comparison of the same question took turns already. And a night that
measured both releases, everything else equal by hash, on the same hosts is a block of one trial each.
Only completed trials count, and only where what is said of them from the start is said of the side.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from perf.history import bundle
from perf.history.place import has_history
from perf.history.store import open_history
from perf.jobs.measuring import Job
from perf.jobs.plans import contents
from perf.jobs.side_by_side import (
    Artifacts,
    ComparisonPlan,
    Pairing,
    find_unfinished,
    question_hash,
    read_plans,
    read_turn,
)
from perf.local.places import Places
from perf.model.errors import BundleError, HistoryError
from perf.model.identity import named
from perf.model.results import SIDES, Purpose, SideName, Taken, Trial, TrialId, TrialStatus

PLANTED = "planted"
"""The kind of a remark that a trial was made to differ on purpose."""
MOST_NIGHTS = 8
"""Of the newest nights: each counts as a block, and what is older says less of how hosts are today."""
FIRST_BLOCK = 1001
"""Past blocks count from here, so that no block that is yet to be measured has the same number."""


def find_past_turns(
    job: Job, pairing: Pairing, artifacts: Artifacts, *, with_nights: bool = True
) -> tuple[Taken, ...]:
    """Find the turns that were taken before, oldest block first; without nights, those of comparisons.

    Those of a comparison that is about to be resumed are its own, and not among them. A damaged bundle
    is told of and left out.

    Raises:
        BundleError: the plan of a comparison is none.

    """
    question = question_hash(pairing, artifacts)
    resumed = find_unfinished(question, pairing, job.places, datetime.now(UTC))
    plans = [
        plan for plan in read_plans(job.places) if plan.question_sha256 == question and plan != resumed
    ]
    trials = _read_trials(job, pairing, plans)
    blocks = [
        *(_blocks_of_nights(pairing, artifacts, trials) if with_nights else ()),
        *(block for plan in plans for block in _blocks_of(plan, pairing, trials)),
    ]
    blocks.sort(key=_begin)
    return tuple(
        replace(turn, block=number)
        for number, block in enumerate(blocks, start=FIRST_BLOCK)
        for turn in block
    )


def has_trials(experiment: str, version: str, places: Places) -> bool:
    """Tell by their names alone whether there may be trials of a release that took turns before."""
    endings = (f".{experiment}.{version}", f".candidate.{version}")
    return any(path.name.endswith(endings) for path in bundle.find(places))


def _begin(block: Sequence[Taken]) -> tuple[datetime, TrialId]:
    return block[0].trial.started_at, block[0].trial.id


def _blocks_of(
    plan: ComparisonPlan, pairing: Pairing, trials: Sequence[Trial]
) -> Iterable[list[Taken]]:
    """Give the blocks of an earlier comparison, with those of their pairs that are whole."""
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
    """Give the newest nights that measured both sides, each as a block of one trial a side."""
    nights: defaultdict[str, dict[SideName, Taken]] = defaultdict(dict)
    for trial in trials:
        if trial.purpose is not Purpose.SCHEDULED or not trial.night:
            continue
        for side in SIDES:
            if _measured_it(trial, pairing, artifacts, side) and _says_the_same(trial, pairing, side):
                nights[trial.night].setdefault(side, Taken(block=0, side=side, trial=trial))
    both = [list(night.values()) for night in nights.values() if len(night) == len(SIDES)]
    return sorted(both, key=_begin)[-MOST_NIGHTS:]


def _measured_it(trial: Trial, pairing: Pairing, artifacts: Artifacts, name: SideName) -> bool:
    """Tell whether a trial measured exactly what a side is, by content and by the bytes installed."""
    hashes = (trial.topology, trial.testbed, trial.workload, trial.config)
    wanted = contents(pairing.side(name).deployment)
    return (
        trial.release == artifacts[name].release
        and trial.artifact is not None
        and trial.artifact.sha256 == artifacts[name].artifact.sha256
        and [one.sha256 for one in hashes] == [named(one).sha256 for one in wanted]
    )


def _says_the_same(trial: Trial, pairing: Pairing, name: SideName) -> bool:
    """Tell whether what is said of the side is said of the trial, and nothing was planted beside it."""
    said = set(pairing.side(name).remarks)
    planted = {remark for remark in trial.remarks if remark.kind == PLANTED}
    return said <= set(trial.remarks) and planted <= said


def _read_trials(job: Job, pairing: Pairing, plans: Sequence[ComparisonPlan]) -> tuple[Trial, ...]:
    """Read the completed trials that may count: bundles, and what only the history still holds.

    Which may is told by their names alone, so that a long history is not read as a whole.
    """
    bundled = {path.name for path in bundle.find(job.places)}
    names: list[str] = []
    trials: list[Trial] = []
    try:
        if has_history(job.places):
            with open_history(job.places.history, read_only=True) as history:
                versions = {pairing.side(name).version for name in SIDES}
                kept = {each for one in versions for each in history.find_trials(version=one)}
                names = _choose(bundled | kept, pairing, plans)
                trials += history.trials([TrialId(name) for name in names if name not in bundled])
    except HistoryError as error:
        # What was measured before only saves time; without it the comparison measures more.
        job.progress.tell(f"nothing of the history is reused: {error}")
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
        yield bundle.read(job.places.trials / name)[0]
    except BundleError as error:
        job.progress.tell(f"not reused: {error}")
