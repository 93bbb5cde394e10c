"""Two sides that take turns on the same hosts; a kill costs the trial that runs, and nothing else.

    <data>/comparisons/<id>/plan.json     what is compared, written before the first trial
    <data>/comparisons/<id>/result.json   what it came to; written by `analysis` once it is over

A side is a resolved deployment at one release. Sides take turns in blocks, ABBA or BAAB by a seed, so
that a host that grows slower or faster meanwhile harms both alike. Which trials are done follows from
their bundles, whose ids follow from the plan.
"""

import os
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeAlias

from pydantic import TypeAdapter, ValidationError

from perf import releases
from perf.config import Catalog, content_hash
from perf.design import STRICT, Deployment, Suite
from perf.errors import BundleError, HostUnfit
from perf.harness import Order, run_trial
from perf.history import bundle
from perf.measuring import explain, find_experiment
from perf.model import Artifact, Purpose, Reason, Release, SideName, Trial, TrialId, TrialStatus
from perf.places import Places
from perf.progress import Progress
from perf.systems import registry

RESUMABLE_FOR = timedelta(hours=20)
TURNS = 4
"""Trials of a block."""
PLAN, RESULT = "plan.json", "result.json"
_SIDES: tuple[SideName, ...] = ("baseline", "candidate")
_ORDERS: tuple[tuple[SideName, ...], ...] = (
    ("baseline", "candidate", "candidate", "baseline"),
    ("candidate", "baseline", "baseline", "candidate"),
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A side's release and the bytes to install."""

    release: Release
    artifact: Artifact


def take_side(catalog: Catalog, suite: Suite, experiment: str, version: str, config: str = "") -> Side:
    """Give an experiment of a suite at a release, in its own config or in another one.

    Raises:
        UsageError: the suite has no such experiment, or there is no such config.

    """
    found = find_experiment(suite, experiment)
    chosen = replace(found, config=config) if config else found
    label = f"{version} with {config}" if config else version
    return Side(label=label, version=version, deployment=catalog.resolve(suite, chosen))


Artifacts: TypeAlias = Mapping[SideName, Fetched]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A comparison on disk. Equal `question_sha256`, equal question: same deployments, same bytes."""

    __pydantic_config__ = STRICT
    id: str
    question_sha256: str
    purpose: Purpose
    suite: str
    experiment: str
    baseline: str
    candidate: str
    seed: int
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A trial that took its turn."""

    block: int
    side: SideName
    trial: Trial


_PLAN = TypeAdapter(Plan)


def fetch_sides(pairing: Pairing, progress: Progress) -> Artifacts:
    """Fetch what both sides install, before anything is measured.

    Raises:
        ReleaseError: a release could be fetched from nowhere.
        UsageError: a release is unknown.

    """
    fetched: dict[SideName, Fetched] = {}
    for name in _SIDES:
        side = pairing.side(name)
        system = registry.load(side.deployment.experiment.system)
        release = releases.find_release(system, side.version)
        artifact = releases.fetch(system, release, tell=progress.tell)
        fetched[name] = Fetched(release=release, artifact=artifact)
    return fetched


def question_hash(pairing: Pairing, artifacts: Artifacts) -> str:
    """Hash all that decides what a comparison measures; neither purpose nor seed nor labels."""
    return content_hash(
        tuple(
            content_hash(part)
            for name in _SIDES
            for side in (pairing.side(name),)
            for part in (
                *_parts(side.deployment),
                side.version,
                artifacts[name].artifact.sha256,
                tuple(remark.text for remark in side.remarks),
            )
        )
    )


def _parts(deployment: Deployment) -> tuple[object, ...]:
    return (
        deployment.experiment.system,
        deployment.topology,
        deployment.testbed,
        deployment.workload,
        deployment.config,
    )


def open_plan(
    pairing: Pairing, artifacts: Artifacts, places: Places, now: datetime
) -> tuple[Plan, bool]:
    """Resume the newest unfinished, young plan of the same question and purpose; else write a new one.

    Returns the plan and whether it is resumed. A new plan is on disk before this returns.

    Raises:
        BundleError: the file of a plan is not one.

    """
    question = question_hash(pairing, artifacts)
    if (unfinished := find_unfinished(question, pairing.purpose, places, now)) is not None:
        return unfinished, True
    plan = Plan(
        id=_next_id(places, f"cmp-{now:%Y-%m-%d}"),
        question_sha256=question,
        purpose=pairing.purpose,
        suite=pairing.suite,
        experiment=pairing.baseline.deployment.experiment.name,
        baseline=pairing.baseline.label,
        candidate=pairing.candidate.label,
        seed=pairing.seed,
        started_at=now,
    )
    write_durably(places.comparisons / plan.id / PLAN, _PLAN.dump_json(plan, indent=1))
    return plan, False


def find_unfinished(question: str, purpose: Purpose, places: Places, now: datetime) -> Plan | None:
    """Find the newest unfinished, young plan of a question, by its hash, and a purpose.

    Raises:
        BundleError: the file of a plan is not one.

    """
    for plan in reversed(read_plans(places)):
        is_same = plan.question_sha256 == question and plan.purpose is purpose
        is_young = now - plan.started_at < RESUMABLE_FOR
        if is_same and is_young and not (places.comparisons / plan.id / RESULT).exists():
            return plan
    return None


def read_plans(places: Places) -> tuple[Plan, ...]:
    """Read the plans of all comparisons, oldest first.

    Raises:
        BundleError: a file is not a plan.

    """
    plans = []
    for path in places.comparisons.glob(f"*/{PLAN}"):
        try:
            plans.append(_PLAN.validate_json(path.read_bytes()))
        except ValidationError as error:
            raise BundleError(
                f"{path} is not the plan of a comparison ({error.error_count()} problems, the first: "
                f"{error.errors()[0]['msg']}); move it away, its trials are kept"
            ) from error
    return tuple(sorted(plans, key=lambda plan: (plan.started_at, plan.id)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A comparison under way."""

    plan: Plan
    pairing: Pairing
    artifacts: Artifacts
    places: Places
    progress: Progress

    def measure_block(self, block: int) -> Iterator[Taken]:
        """Measure what is missing of a block, counted from 1, and give each of its trials in turn.

        A trial that is invalid or failed gets one more turn, behind the others. A caller that has seen
        enough may stop asking.

        Raises:
            HostUnfit: the hosts cannot carry any trial.

        """
        order = _ORDERS[random.Random(f"{self.plan.seed}.{block}").randrange(len(_ORDERS))]  # noqa: S311  an order, no secret
        again: list[tuple[str, SideName]] = []
        for letter, side in zip("abcd", order, strict=True):
            trial = self._take_turn(side, block, letter)
            yield Taken(block=block, side=side, trial=trial)
            if trial.status is not TrialStatus.COMPLETED:
                again.append((letter, side))
        for letter, side in again:
            yield Taken(block=block, side=side, trial=self._take_turn(side, block, f"{letter}r"))

    def has_begun(self, block: int) -> bool:
        """Tell whether a bundle of this block is there already, from a run that was cut short."""
        return any(self.places.trials.glob(f"{self.plan.id}.{block:02d}*"))

    def _take_turn(self, name: SideName, block: int, letter: str) -> Trial:
        side, fetched = self.pairing.side(name), self.artifacts[name]
        trial_id = TrialId(f"{self.plan.id}.{block:02d}{letter}.{name}.{side.version}")
        if (self.places.trials / trial_id).is_dir():
            return bundle.read(self.places.trials / trial_id)[0]
        self.progress.heading(f"block {block}, turn {letter}: {name}, {side.label}")
        order = Order(
            trial=trial_id,
            night="",
            purpose=self.pairing.purpose,
            deployment=side.deployment,
            release=fetched.release,
            artifact=fetched.artifact,
            remarks=side.remarks,
        )
        system = registry.load(side.deployment.experiment.system)
        try:
            trial = run_trial(order, system, self.places, self.progress)
        except HostUnfit as problem:
            hint = "finished trials are kept; the same command resumes here"
            raise HostUnfit(f"{problem}\n{hint}") from problem
        self.progress.tell(explain(trial, self.places))
        return trial


def _next_id(places: Places, start: str) -> str:
    # Bundles count too: a plan that was lost or moved away must not lend its trials to a new one.
    known = (*places.comparisons.glob(f"{start}-*"), *places.trials.glob(f"{start}-*"))
    numbers = [re.match(rf"{re.escape(start)}-(\d+)", path.name) for path in known]
    return f"{start}-{1 + max((int(found[1]) for found in numbers if found), default=0)}"


def write_durably(path: Path, content: bytes) -> None:
    """Write a file beside its place, bring it to the disk and move it there in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    with fresh.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
