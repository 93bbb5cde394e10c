"""Two sides that take turns on the same hosts; a kill costs the trial that runs, and nothing else.

    <data>/comparisons/<id>/plan.json     what is compared, written before the first trial
    <data>/comparisons/<id>/result.json   what it came to; written by `analysis` once it is over

A side is a resolved deployment at one release. Sides take turns in blocks, ABBA or BAAB by a seed, so
that a host that grows slower or faster meanwhile harms both alike. Which trials are done follows from
their bundles, whose ids follow from the plan.
"""

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from pydantic import AwareDatetime, TypeAdapter

from perf.config.catalog import Catalog, find_experiment
from perf.history import bundle
from perf.jobs.measuring import Fetched, Job
from perf.jobs.plans import contents, is_done, next_id, no_plan, read_plan
from perf.local import durable
from perf.local.places import Places
from perf.model.design import Deployment, Suite
from perf.model.identity import content_hash
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
_PAIRS = (("1", "ab", slice(0, 2)), ("2", "cd", slice(2, 4)))
_TOGETHER = timedelta(minutes=30)
"""The two trials of a pair are no pair any more where an interruption parted them for longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a comparison. `label` names it to people, for example "5.0.9 with slow-disk"."""

    label: str
    version: str
    deployment: Deployment
    remarks: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """What is compared with what, why, and the seed that decides the order of turns."""

    purpose: Purpose
    suite: str
    baseline: Side
    candidate: Side
    seed: int = 1

    def side(self, name: SideName) -> Side:
        """Give a side by its name."""
        return self.baseline if name == "baseline" else self.candidate


Artifacts: TypeAlias = Mapping[SideName, Fetched]


def take_side(catalog: Catalog, suite: Suite, experiment: str, version: str, config: str = "") -> Side:
    """Give an experiment of a suite at a release, in its own config or in another one.

    Raises:
        UsageError: the suite has no such experiment, or there is no such config.

    """
    found = find_experiment(suite, experiment)
    chosen = replace(found, config=config) if config else found
    label = f"{version} with {config}" if config else version
    return Side(label=label, version=version, deployment=catalog.resolve(suite, chosen))


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
        UsageError: a release is unknown.

    """
    sides = {name: pairing.side(name) for name in SIDES}
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
    pairing: Pairing, artifacts: Artifacts, places: Places, now: datetime
) -> tuple[ComparisonPlan, bool]:
    """Resume the newest unfinished plan of the same question, purpose and seed; else write a new one.

    Returns the plan and whether it is resumed. A new plan is on disk before this returns.

    Raises:
        BundleError: the file of a plan is not one.

    """
    question = question_hash(pairing, artifacts)
    if unfinished := find_unfinished(question, pairing, places, now):
        return unfinished, True
    plan = ComparisonPlan(
        # A directory without plan and result is what a killed process left, and is used.
        id=next_id(places, "cmp-", now, (path.parent for path in places.comparisons.glob("*/*.json"))),
        question_sha256=question,
        purpose=pairing.purpose,
        suite=pairing.suite,
        experiment=pairing.baseline.deployment.experiment.name,
        baseline=pairing.baseline.label,
        candidate=pairing.candidate.label,
        seed=pairing.seed,
        started_at=now,
    )
    durable.write(places.comparisons / plan.id / PLAN, _PLAN.dump_json(plan, indent=1))
    return plan, False


def find_unfinished(
    question: str, pairing: Pairing, places: Places, now: datetime
) -> ComparisonPlan | None:
    """Find the newest unfinished, young plan of a question, by its hash, with this purpose and seed.

    Raises:
        BundleError: the file of a plan is not one.

    """
    asked = question, pairing.purpose, pairing.seed
    for plan in reversed(read_plans(places)):
        is_same = (plan.question_sha256, plan.purpose, plan.seed) == asked
        is_young = now - _last_sign(plan, places) < RESUMABLE_FOR
        if is_same and is_young and not (places.comparisons / plan.id / RESULT).exists():
            return plan
    return None


def _last_sign(plan: ComparisonPlan, places: Places) -> datetime:
    """Give when something last happened in a comparison."""
    kept = (path.stat().st_mtime for path in places.trials.glob(f"{plan.id}.*"))
    return max((datetime.fromtimestamp(when, UTC) for when in kept), default=plan.started_at)


def read_turn(plan: ComparisonPlan, trial: TrialId) -> tuple[int, str, SideName] | None:
    """Read block, pair and side off the id of a trial; None if it is of another comparison."""
    found = re.match(rf"{re.escape(plan.id)}\.(\d+)([a-d])(r?)\.(baseline|candidate)\.", trial)
    if found is None:
        return None
    pair = next(pair for pair, letters, _ in _PAIRS if found[2] in letters)
    side = next(side for side in SIDES if side == found[4])
    return int(found[1]), f"{pair}{found[3]}", side


def read_plans(places: Places) -> tuple[ComparisonPlan, ...]:
    """Read the plans of all comparisons, oldest first.

    Raises:
        BundleError: a file is not a plan.

    """
    plans = []
    for path in places.comparisons.glob(f"*/{PLAN}"):
        plan = read_plan(path, _PLAN, "a comparison")
        if plan.id != path.parent.name:
            raise no_plan(path, "a comparison", ["id: a plan lies in the directory of its id"])
        plans.append(plan)
    return tuple(sorted(plans, key=lambda plan: (plan.started_at, plan.id)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRun:
    """A comparison under way."""

    plan: ComparisonPlan
    pairing: Pairing
    artifacts: Artifacts
    job: Job

    def measure_block(self, block: int) -> Iterator[Taken]:
        """Measure what is missing of a block, counted from 1, and give each of its trials in turn.

        A block is two pairs, one of them in the opposite order. A pair with a trial that is invalid or
        failed is measured once more, whole and in its order, behind the others: a single trial that
        came later than its block would take the drift of the hosts for a difference. A caller that has
        seen enough may stop asking.

        Raises:
            HostUnfit: the hosts cannot carry any trial.

        """
        order = _ORDERS[random.Random(f"{self.plan.seed}.{block}").randrange(len(_ORDERS))]  # noqa: S311  an order, no secret
        broken = []
        for pair, letters, places in _PAIRS:
            turns = tuple(zip(letters, order[places], strict=True))
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

    def _name(self, side: SideName, block: int, letter: str) -> TrialId:
        return TrialId(f"{self.plan.id}.{block:02d}{letter}.{side}.{self.pairing.side(side).version}")

    def _is_parted(self, first: Trial, second: TrialId) -> bool:
        """Tell whether the second trial of a pair is missing, and too late by now to be of the pair."""
        if is_done(self.job.places, second):
            return False
        sealed_at = (self.job.places.trials / first.id).stat().st_mtime
        return datetime.now(UTC) - datetime.fromtimestamp(sealed_at, UTC) > _TOGETHER

    def _take_turn(self, name: SideName, block: int, letter: str) -> Trial:
        side, fetched = self.pairing.side(name), self.artifacts[name]
        trial = self._name(name, block, letter)
        if is_done(self.job.places, trial):
            return bundle.read(self.job.places.trials / trial)[0]
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
        return self.job.measure(order)
