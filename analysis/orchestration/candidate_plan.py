"""What to measure of a proposed change of the configuration, and how it is written down."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import version

from analysis.comparing.results import (
    SCHEMA_VERSION,
    ComparisonFile,
    ExperimentChange,
    KnobValues,
    Revision,
)
from analysis.orchestration.comparing import Budget
from perf.config import difference
from perf.config.difference import ConfigDifference, Touched, hash_deployment
from perf.config.revisions import SHORT, RevisionRange
from perf.jobs.feasible import planned_s
from perf.jobs.side_by_side import Pairing, Side
from perf.model.design import Deployment
from perf.model.errors import UsageError
from perf.model.results import TURNS, Purpose
from perf.model.rules import Detection
from perf.releases.artifacts import find_release
from perf.systems import registry

MOST_MEASURED = 90
"""Experiments of one candidate: what the file of its comparisons holds."""
_MOST_KNOBS = 499
_MOST_VALUE = 600
_MOST_LINE = 1900
_MOST_SENTENCES = 99


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
    """What a change comes to before anything is measured. `settings` are the rules of base."""

    base: Revision
    head: Revision
    settings: Detection
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
    found: ConfigDifference, span: RevisionRange, settings: Detection, release: str = ""
) -> CandidatePlan:
    """Plan a comparison for each experiment that differs, at `release` or the newest that it lists.

    Experiments that are the same at base, and the same at head, are measured once.

    Raises:
        UsageError: a system has no such release, or too many experiments differ.

    """
    planned: dict[object, Planned] = {}
    for one in found.touched:
        if one.base is None or one.head is None or one.why_not:
            continue
        each = _plan(one, one.base, one.head, span, release)
        sides = (each.pairing.baseline, each.pairing.candidate)
        same = tuple((side.version, hash_deployment(side.deployment)) for side in sides)
        if same in planned:
            also = (*planned[same].also, (one.suite, one.experiment))
            planned[same] = replace(planned[same], also=also)
        else:
            planned[same] = each
    if len(planned) > MOST_MEASURED or len(found.touched) > _MOST_KNOBS:
        raise UsageError(
            f"{len(found.touched)} experiments differ, and {len(planned)} of them can be measured; at"
            f" most {MOST_MEASURED} fit into one comparison. Choose some with --suite"
        )
    return CandidatePlan(
        base=Revision(ref=span.base, sha=span.merge_base),
        head=Revision(ref=span.head, sha=span.head_tip),
        settings=settings,
        planned=tuple(planned.values()),
        changes=tuple(_record_change(one) for one in found.touched),
        total=found.total,
        notes=(*_note_merge_base(span), *_note_same(planned.values()), *found.notes),
    )


def share_out(plan: CandidatePlan, trials: int | None, minutes: float | None) -> Allowance:
    """Give the budget; what is not said is what the rules allow each comparison.

    Raises:
        UsageError: the trials are too few for one block of each comparison.

    """
    count, usual = len(plan.planned), plan.settings.comparison
    if trials is not None and trials < TURNS * count:
        raise UsageError(
            f"--trials {trials} is too few: {count} experiments need {TURNS} each, which makes"
            f" {TURNS * count}; or choose some with --suite"
        )
    return Allowance(
        total=Budget(
            trials=usual.trials * count if trials is None else trials,
            minutes=usual.minutes * count if minutes is None else minutes,
        ),
        each=Budget(
            trials=usual.trials if trials is None else trials,
            minutes=usual.minutes if minutes is None else minutes,
        ),
    )


def record_candidate(
    plan: CandidatePlan, now: datetime, problems: Sequence[str] = ()
) -> ComparisonFile:
    """Give the file of a candidate of which nothing was measured."""
    return ComparisonFile(
        schema_version=SCHEMA_VERSION,
        created_at=now,
        knickpoint=version("knickpoint"),
        base=plan.base,
        head=plan.head,
        changes=plan.changes,
        problems=bound(problems),
        notes=bound(plan.notes),
    )


def cut(text: str) -> str:
    """Bound a sentence to what the file of comparisons takes."""
    return text if len(text) <= _MOST_LINE else f"{text[:_MOST_LINE]} …"


def bound(sentences: Sequence[str]) -> tuple[str, ...]:
    """Bound sentences in length and number to what the file of comparisons takes."""
    shown = tuple(cut(sentence) for sentence in sentences[:_MOST_SENTENCES])
    more = len(sentences) - len(shown)
    return (*shown, f"… and {more} more") if more else shown


def _plan(
    one: Touched, base: Deployment, head: Deployment, span: RevisionRange, release: str
) -> Planned:
    system = registry.load(head.experiment.system)
    known = [each.version for each in system.releases()]
    chosen = release or max(head.experiment.releases, key=known.index)
    find_release(system, chosen)
    # Equal but for the config, so that a rename does not tell the two sides apart. The testbed is that
    # of base: its hash leaves out how SSH reaches the hosts, and no change is measured its own way.
    head = replace(head, testbed=base.testbed)
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
            f" {span.base_tip[:SHORT]}, and what was changed there since is on neither side"
        )


def _note_same(planned: Iterable[Planned]) -> Iterator[str]:
    for one in planned:
        if one.also:
            name = one.pairing.candidate.deployment.experiment.name
            others = ", ".join(f"{experiment} of suite {suite}" for suite, experiment in one.also)
            which = f"{name} of suite {one.pairing.suite}"
            yield f"{which} is measured once for all that are the same: {others}"


def _record_change(one: Touched) -> ExperimentChange:
    knobs = tuple(record_knob(knob) for knob in one.knobs[:_MOST_KNOBS])
    more = len(one.knobs) - len(knobs)
    rest = (KnobValues(path=f"… and {more} more", before="", after=""),) if more else ()
    return ExperimentChange(
        suite=one.suite, experiment=one.experiment, knobs=(*knobs, *rest), text=cut(one.why_not)
    )


def record_knob(knob: difference.Knob) -> KnobValues:
    """Give a knob as the file has it, with values of bounded length."""
    return KnobValues(path=cut(knob.path), before=_cut_value(knob.before), after=_cut_value(knob.after))


def _cut_value(text: str) -> str:
    """Bound a value; two that differ behind the cut still differ."""
    if len(text) <= _MOST_VALUE:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"{text[:_MOST_VALUE]}… ({len(text)} characters, SHA-256 {digest})"
