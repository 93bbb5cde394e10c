"""How a series stands: one verdict, from the changes that were found in it and what is known of each.

The verdict speaks of the newest established level: the one after the last change that is confirmed, or
that somebody has set aside.

- The change into that level is confirmed and at least `relevant_change`: regressed or improved, however
  old. A regression also outlives smaller changes after it, while they do not undo it.
- It is smaller, or no change was found: unchanged if the 99 % interval of the difference lies within
  ± `relevant_change`, else undecided. Finding no change shows nothing by itself.
- It was set aside (by triage, or since all points after it were imported): the points since then are
  judged as if there were no others.
- It is the testbed's: undecided, with the evidence.
- A later change that is not confirmed: undecided, unless a regression stands.

A verdict answers "significant?" and "relevant?" apart. What could have been seen at all is no part of
it: `JudgedSeries.detectable` holds it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, TypeAlias

import numpy as np

from analysis.detection.detection import ChangePoint, ChangeState
from analysis.detection.effects import Effect, compare_levels, compare_means, relative_change
from analysis.detection.noise import Noise, visible_effects
from analysis.detection.series import Point, Points, Series
from analysis.detection.verdict import Outcome
from analysis.judging.drift import WatchEvidence
from analysis.judging.explanations import Explanation, PriceMove
from analysis.judging.remeasurement import Reply
from perf.model.results import Observation, Purpose
from perf.model.rules import Detection, TriageEntry

_CONFIDENCE = 0.99
"""Of the intervals that show a series unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detectable:
    """The smallest relative step that so many nights after it show, four times in five."""

    nights: int
    relative_change: float


class VerdictBasis(StrEnum):
    """What a verdict rests on."""

    NO_RULE = "no rule"
    """No relevant change is configured for the metric."""
    NO_TRIAL = "no trial"
    """Every trial of the series is invalid or failed."""
    FEW_POINTS = "few points"
    NO_CHANGE = "no change"
    """Only the newest points are compared with those before them."""
    CHANGE = "change"
    """A confirmed change."""
    SUSPICION = "suspicion"
    """A change that shows, but is not confirmed."""
    SET_ASIDE = "set aside"
    """The points since a change that was triaged or imported, compared as if there were no others."""
    TESTBED = "testbed"
    """A change that the testbed made."""
    NEWEST_LOST = "newest lost"
    """The newest trial gave no value, so what came before says too little."""
    WATCH = "watch"
    """A canary or a sentinel: it is not judged."""


class WithinRelease(StrEnum):
    """What is known of a change with no release between its sides, where nothing explains it."""

    NOTHING_CHANGED = "nothing changed"
    """Nothing that is recorded of the trials changed there."""
    NOTHING_RECORDED = "nothing recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class FalseDiscovery:
    """A change of tonight that chance alone may make among all series: its p-value among so many.

    Up to `believed` it would have been confirmed.
    """

    p_value: float
    series: int
    believed: float


Known: TypeAlias = (
    PriceMove
    | Reply
    | WatchEvidence
    | FalseDiscovery
    | WithinRelease
    | TriageEntry
    | tuple[Explanation, ...]
)
"""One thing that is known of a change; a triage entry is that whose fix it undoes, explanations are
what else changed there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRemark:
    """What is known of a change beside its series; empty where there is nothing.

    `set_aside` says why nobody has to look: by triage, or since all after it was imported. `testbed`
    shows that the testbed made it, `waits` is why it is not confirmed yet, `notes` what else a reader
    should know.
    """

    set_aside: TriageEntry | Literal[Purpose.IMPORTED] | None = None
    testbed: tuple[Known, ...] = ()
    waits: tuple[Known, ...] = ()
    notes: tuple[Known, ...] = ()


NOTHING_KNOWN = ChangeRemark()


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence:
    """The newest points, from `first` to `last`, held against `before` points before them."""

    effect: Effect
    before: int
    after: int
    first: Point
    last: Point
    is_shown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """An outcome with what it rests on, as fields; `description` puts it into words.

    `change` is the change that it is about, `sides` count the points of the levels before and after
    it, `remark` is what else is known of it. `relative_change` is (after - before) / before, signed as
    measured, not by direction. Whether the change is significant (more than this series' own scatter)
    and whether it is relevant (large enough to act on, from `relevant_change` on) are two questions;
    None where one cannot be answered. `needed` points make a series or a change one that can be judged.
    `newest` is the observation of the newest trial where that is lost, `so_far` the outcome without it.
    """

    outcome: Outcome
    basis: VerdictBasis
    change: ChangePoint | None = None
    sides: tuple[int, int] = (0, 0)
    remark: ChangeRemark = NOTHING_KNOWN
    relative_change: float | None = None
    p_value: float | None = None
    is_significant: bool | None = None
    is_relevant: bool | None = None
    relevant_change: float = 0.0
    equivalence: Equivalence | None = None
    needed: int = 0
    newest: Observation | None = None
    so_far: Outcome | None = None


def detectable(noise: Noise | None, settings: Detection) -> tuple[Detectable, ...]:
    """Describe what could be seen in a series of this noise, where anything could."""
    effects = visible_effects(noise, settings)
    return tuple(Detectable(nights=nights, relative_change=effects[nights]) for nights in effects)


def stand(
    series: Series,
    changes: Sequence[ChangePoint],
    settings: Detection,
    remarks: Mapping[int, ChangeRemark],
    noise: Noise | None,
) -> Verdict:
    """Judge the newest established level of a series; `remarks` are by index of the change."""
    level = _Level(series=series, changes=changes, settings=settings, remarks=remarks, noise=noise)
    return level.judge()


def find_reported(visible: Sequence[Detectable]) -> Detectable | None:
    """Return what the fewest nights that can confirm anything would show."""
    return next(iter(list_confirmable(visible)), None)


def list_confirmable(visible: Sequence[Detectable]) -> tuple[Detectable, ...]:
    """Return what nights would confirm: a single one can only raise a suspicion."""
    return tuple(one for one in visible if one.nights > 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """The newest established level of a series, and all it is judged by."""

    series: Series
    changes: Sequence[ChangePoint]
    settings: Detection
    remarks: Mapping[int, ChangeRemark]
    noise: Noise | None

    @property
    def relevant(self) -> float:
        return self.settings.relevant_change[self.series.key.metric]

    def remark(self, change: ChangePoint) -> ChangeRemark:
        return self.remarks.get(change.index, NOTHING_KNOWN)

    def judge(self) -> Verdict:
        established = [
            change
            for change in self.changes
            if change.state is ChangeState.CONFIRMED or self.remark(change).set_aside
        ]
        reported = self._find_reported(established) if established else None
        verdict = self._judge(reported)
        if verdict.outcome is Outcome.REGRESSED:
            return verdict
        last = established[-1].index if established else 0
        suspects = [
            change for change in self.changes if change.index > last and change not in established
        ]
        suspect = min(suspects, key=lambda one: one.outcome is not Outcome.REGRESSED, default=None)
        return self._suspected(suspect) if suspect else verdict

    def _find_reported(self, established: Sequence[ChangePoint]) -> ChangePoint:
        """Return the change that the verdict tells: the last, or a regression that still stands.

        The last stands aside if it is not relevant, the newest relevant one is a regression, and the
        last level is still worse by a relevant amount than the level before that regression. What is
        set aside or the testbed's is passed over.
        """
        last = established[-1]
        for change in reversed(established):
            remark = self.remark(change)
            if remark.set_aside or remark.testbed or abs(change.relative_change) < self.relevant:
                continue
            since = relative_change(change.before, last.after)
            worse = abs(since) >= self.relevant and (since > 0) is (change.relative_change > 0)
            return change if change.outcome is Outcome.REGRESSED and worse else last
        return last

    def _judge(self, reported: ChangePoint | None) -> Verdict:
        if reported is None:
            return self._without_change(self.series.points)
        remark = self.remark(reported)
        if remark.set_aside:
            since = self._without_change(self.series.points[reported.index :])
            return replace(since, basis=VerdictBasis.SET_ASIDE, change=reported, remark=remark)
        if remark.testbed:
            return replace(self._about(reported), outcome=Outcome.UNDECIDED, basis=VerdictBasis.TESTBED)
        verdict = self._about(reported)
        if verdict.is_relevant:
            return verdict
        # Too small to matter: its two levels are held against each other.
        before, after = verdict.sides
        points, place = self.series.points, reported.index
        return self._compare(verdict, points[place - before : place], points[place : place + after])

    def _suspected(self, change: ChangePoint) -> Verdict:
        """Return the verdict on a change that shows, and is not believed yet."""
        return replace(
            self._about(change),
            outcome=Outcome.UNDECIDED,
            basis=VerdictBasis.SUSPICION,
            needed=self.settings.confirming_points,
            is_significant=None,
        )

    def _about(self, change: ChangePoint) -> Verdict:
        """Return the verdict on the level that a confirmed and relevant change led to."""
        start = max((one.index for one in self.changes if one.index < change.index), default=0)
        return Verdict(
            outcome=change.outcome,
            basis=VerdictBasis.CHANGE,
            change=change,
            sides=(change.index - start, change.points_after),
            remark=self.remark(change),
            relative_change=change.relative_change,
            p_value=change.p_value,
            is_significant=True,
            is_relevant=abs(change.relative_change) >= self.relevant,
            relevant_change=self.relevant,
        )

    def _without_change(self, points: Points) -> Verdict:
        """Compare the newest release, and at least the newest points that confirm, with all before."""
        needed = self.settings.confirming_points
        of_release = int(np.count_nonzero(points.releases == points.releases[-1]))
        split = len(points) - max(of_release, needed)
        if split < needed:  # one release only: its newest points against its older ones
            split = max(0, len(points) - needed)
        verdict = Verdict(
            outcome=Outcome.UNDECIDED,
            basis=VerdictBasis.NO_CHANGE,
            is_significant=False,
            relevant_change=self.relevant,
        )
        return self._compare(verdict, points[:split], points[split:])

    def _compare(self, verdict: Verdict, before: Points, after: Points) -> Verdict:
        """Add to a verdict whether two groups are shown equivalent; undecided if not."""
        if min(len(before), len(after)) < 2:  # noqa: PLR2004  a scatter needs two values
            return replace(verdict, outcome=Outcome.UNDECIDED)
        old, new = before.values, after.values
        effect = (
            compare_levels(old, new, _CONFIDENCE, self.noise)
            if self.noise
            else compare_means(old, new, _CONFIDENCE)
        )
        is_shown = effect.lies_within(self.relevant)
        return replace(
            verdict,
            outcome=Outcome.UNCHANGED if is_shown else Outcome.UNDECIDED,
            equivalence=Equivalence(
                effect=effect,
                before=len(before),
                after=len(after),
                first=after[0],
                last=after[-1],
                is_shown=is_shown,
            ),
        )
