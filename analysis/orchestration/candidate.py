"""What a proposed change of the configuration does: each comparison of its plan, within one budget.

An edge: it measures through `run`.
"""

import statistics
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeAlias

from analysis.comparing.results import Attribution, ComparisonFile, ComparisonResult
from analysis.detection.verdict import Outcome
from analysis.orchestration.candidate_plan import (
    Allowance,
    CandidatePlan,
    Planned,
    bound,
    cut,
    record_candidate,
    record_knob,
)
from analysis.orchestration.comparing import Budget, read_results, run_comparison
from perf.config import difference
from perf.config.revisions import SHORT
from perf.jobs.holding import hold
from perf.jobs.side_by_side import RESUMABLE_FOR, Pairing, fetch_sides, find_unfinished, question_hash
from perf.local.places import Places
from perf.local.progress import Progress
from perf.model.errors import KnickpointError, MeasureError
from perf.model.results import TURNS

_LEAST_TO_ATTRIBUTE = 2 * TURNS
"""Trials below which leaving a knob out would show nothing."""
_MOST_ATTRIBUTED = 150

Save: TypeAlias = Callable[[ComparisonFile], None]


def run_candidate(
    plan: CandidatePlan,
    allowed: Allowance,
    places: Places,
    progress: Progress,
    save: Save,
    *,
    attributes: bool = False,
    told: Collection[str] = (),
    reproduce: str = "",
) -> ComparisonFile:
    """Measure what is planned, and save after each comparison what is known by then.

    What a comparison leaves over goes to the next. With `attributes`, each knob of a config that
    regressed or improved by several is left out by itself, as far as the budget goes. A comparison of
    this question that the same command, `reproduce`, finished a short while ago, and that nobody was
    `told` of, is not repeated: another command may allow more, or judge by other rules.
    What could not be measured is a problem of the result, and stops nothing else; what the budget has
    no room for is not compared, and a knob of which nothing is found out is a note.
    """
    run = _Run(
        plan=plan,
        places=places,
        progress=progress,
        save=save,
        told=told,
        reproduce=reproduce,
        left=allowed.total,
        each=allowed.each,
    )
    sides = (side for one in plan.planned for side in (one.pairing.baseline, one.pairing.candidate))
    testbeds = [side.deployment.testbed for side in sides]
    try:
        with hold(places, progress, testbeds, f"candidate {plan.head.sha[:SHORT]}"):
            run.compare()
            if attributes:
                run.attribute()
    except MeasureError as error:
        run.problems.append(cut(f"nothing could be measured: {error}"))
        progress.tell(run.problems[-1])
    return run.content()


@dataclass(slots=True, kw_only=True)
class _Run:
    """A candidate under way: what is left of its budget, and what is known so far."""

    plan: CandidatePlan
    places: Places
    progress: Progress
    save: Save
    told: Collection[str]
    reproduce: str
    left: Budget
    each: Budget
    results: list[tuple[Planned, ComparisonResult]] = field(default_factory=list)
    attributions: list[Attribution] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unmeasured: dict[tuple[str, str], str] = field(default_factory=dict)
    """Why an experiment of a suite was not measured, though it could have been."""

    def compare(self) -> None:
        planned = self.plan.planned
        for place, one in enumerate(planned):
            missing = len(planned) - place
            self._save(f"{missing} of {len(planned)} experiments are not measured yet")
            self.progress.heading(f"experiment {place + 1} of {len(planned)}: {_name(one.pairing)}")
            budget = self._share(missing)
            if budget.trials < TURNS or budget.minutes <= 0:
                why = f"not measured: {_tell_spent(budget)} were left of the budget"
                for name in ((one.pairing.suite, _experiment(one.pairing)), *one.also):
                    self.unmeasured[name] = why
                self.progress.tell(f"{_name(one.pairing)} is {why}")
                continue
            try:
                self.results.append((one, self._answer(one.pairing, budget)))
            except KnickpointError as error:
                # Also a wrong use: it is known only now, and others are still to be measured.
                self.problems.append(cut(f"{_name(one.pairing)} could not be measured: {error}"))
                self.progress.tell(self.problems[-1])

    def attribute(self) -> None:
        moved = (Outcome.REGRESSED, Outcome.IMPROVED)
        jobs = [
            (knob, one, result)
            for one, result in self.results
            if result.outcome in moved and len(one.knobs) > 1
            for knob in one.knobs
        ]
        for place, (knob, one, result) in enumerate(jobs):
            missing = len(jobs) - place
            budget = self._share_for_knobs(min(missing, _MOST_ATTRIBUTED), _trial_s(result))
            if budget is None or place >= _MOST_ATTRIBUTED:
                self.notes.append(
                    f"not attributed: {knob.path} of {_name(one.pairing)}, since the budget is used up"
                )
                continue
            self._save(f"{missing} of {len(jobs)} changes are not attributed yet")
            self.progress.heading(f"what {knob.path} does in {_name(one.pairing)}")
            try:
                answer = self._answer(_leave_out(knob, one.pairing), budget)
            except KnickpointError as error:
                # What was asked first is answered; that stays so.
                self.notes.append(cut(f"not attributed: {knob.path} of {_name(one.pairing)}: {error}"))
                self.progress.tell(self.notes[-1])
            else:
                self.attributions.append(Attribution(knob=record_knob(knob), comparison=answer))

    def content(self, problem: str = "") -> ComparisonFile:
        content = record_candidate(
            self.plan, datetime.now(UTC), (*([problem] if problem else []), *self.problems)
        )
        return replace(
            content,
            changes=tuple(
                replace(one, text=one.text or self.unmeasured.get((one.suite, one.experiment), ""))
                for one in content.changes
            ),
            comparisons=tuple(result for _, result in self.results),
            attributions=tuple(self.attributions),
            notes=bound((*self.plan.notes, *self.notes)),
        )

    def _save(self, what: str) -> None:
        # A kill from here on leaves a file that says what it lacks.
        why = "the run was cut short, or still goes on; the same command goes on from there"
        self.save(self.content(f"{what}: {why}"))

    def _share(self, among: int) -> Budget:
        return Budget(
            trials=min(self.each.trials, self.left.trials // among),
            minutes=min(self.each.minutes, self.left.minutes / among),
        )

    def _share_for_knobs(self, knobs: int, trial_s: float) -> Budget | None:
        """Share out what is left among as many knobs as it is enough for; None if for none."""
        least_minutes = _LEAST_TO_ATTRIBUTE * trial_s / 60
        room = min(self.left.trials // _LEAST_TO_ATTRIBUTE, int(self.left.minutes / least_minutes))
        return self._share(min(knobs, room)) if room > 0 else None

    def _answer(self, pairing: Pairing, budget: Budget) -> ComparisonResult:
        result = self._find(pairing) or run_comparison(
            pairing,
            self.plan.settings,
            budget,
            self.places,
            self.progress,
            reproduce=cut(self.reproduce),
        )
        seconds = sum(trial.duration_s for trial in result.trials)
        self.left = Budget(
            trials=max(0, self.left.trials - len(result.trials)),
            minutes=self.left.minutes - seconds / 60,
        )
        return result

    def _find(self, pairing: Pairing) -> ComparisonResult | None:
        """Give an answer to this question that a run found that was cut short later."""
        question, now = question_hash(pairing, fetch_sides(pairing, self.progress)), datetime.now(UTC)
        if find_unfinished(question, pairing.purpose, self.places, now):
            return None
        for result in reversed(read_results(self.places)):
            is_same = result.question_sha256 == question and result.purpose is pairing.purpose
            is_news = now - result.finished_at < RESUMABLE_FOR and result.id not in self.told
            # The command names both revisions, and so the rules of base, and the budget.
            is_asked_alike = result.command == cut(self.reproduce)
            if is_same and is_news and is_asked_alike and result.outcome is not Outcome.INVALID:
                self.progress.tell(f"{result.id} answered it already: {result.outcome}")
                return replace(
                    result,
                    suite=pairing.suite,
                    experiment=pairing.candidate.deployment.experiment.name,
                    baseline=replace(result.baseline, label=pairing.baseline.label),
                    candidate=replace(result.candidate, label=pairing.candidate.label),
                )
        return None


def _leave_out(knob: difference.Knob, pairing: Pairing) -> Pairing:
    """Give head without one knob against head."""
    base, head = pairing.baseline.deployment, pairing.candidate.deployment
    without = replace(head, config=difference.leave_out(knob, head.config, base.config))
    label = cut(f"{pairing.candidate.label} without {knob.path}")
    return replace(pairing, baseline=replace(pairing.candidate, label=label, deployment=without))


def _name(pairing: Pairing) -> str:
    return f"{_experiment(pairing)} of suite {pairing.suite} at {pairing.candidate.version}"


def _experiment(pairing: Pairing) -> str:
    return pairing.candidate.deployment.experiment.name


def _tell_spent(budget: Budget) -> str:
    return "no minutes" if budget.minutes <= 0 else f"too few trials for a block of {TURNS}"


def _trial_s(result: ComparisonResult) -> float:
    return statistics.median(trial.duration_s for trial in result.trials)
