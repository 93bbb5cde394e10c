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

Each reason answers "significant?" and "relevant?" in words of their own. What could have been seen at
all is no part of it: `JudgedSeries.detectable` holds it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.detection import words
from analysis.detection.detection import ChangePoint, ChangeState
from analysis.detection.effects import compare_levels, compare_means, relative_change
from analysis.detection.noise import Noise, visible_effects
from analysis.detection.series import Points, Series
from analysis.detection.verdict import Outcome, Verdict
from perf.model.rules import Detection

_CONFIDENCE = 0.99
"""Of the intervals that show a series unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detectable:
    """The smallest relative step that so many nights after it show, four times in five."""

    nights: int
    relative_change: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRemark:
    """What is known of a change beside its series, each in words; empty where there is nothing.

    `set_aside` says why nobody has to look, `testbed` that the testbed made it, `waits` why it is not
    confirmed yet, `notes` what else a reader should know, one thing each.
    """

    set_aside: str = ""
    testbed: str = ""
    waits: str = ""
    notes: tuple[str, ...] = ()


NOTHING_KNOWN = ChangeRemark()


def detectable(noise: Noise | None, settings: Detection) -> tuple[Detectable, ...]:
    """Say what could be seen in a series of this noise, where anything could."""
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


def find_told(visible: Sequence[Detectable]) -> Detectable | None:
    """Give what the fewest nights that can confirm anything would show."""
    return next((one for one in visible if one.nights > 1), None)


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
        told = self._told(established) if established else None
        verdict = self._judge(told)
        if verdict.outcome is Outcome.REGRESSED:
            return verdict
        last = established[-1].index if established else 0
        suspects = [
            change for change in self.changes if change.index > last and change not in established
        ]
        suspect = min(suspects, key=lambda one: one.outcome is not Outcome.REGRESSED, default=None)
        return self._suspected(suspect) if suspect else verdict

    def _told(self, established: Sequence[ChangePoint]) -> ChangePoint:
        """Give the change that the verdict tells: the last, or a regression that still stands.

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

    def _judge(self, told: ChangePoint | None) -> Verdict:
        if told is None:
            return self._without_change(self.series.points)
        remark = self.remark(told)
        if remark.set_aside:
            since = self._without_change(self.series.points[told.index :])
            reason = f"{_found(told)}: {remark.set_aside}; since then, {since.reason}"
            return replace(since, reason=reason, change=told.index)
        if remark.testbed:
            reason = f"{_found(told)} is the testbed's, not the database's: {remark.testbed}"
            return _verdict_of(told, Outcome.UNDECIDED, reason, self.relevant)
        return self._after(told, remark)

    def _after(self, change: ChangePoint, remark: ChangeRemark) -> Verdict:
        """Judge the level that a confirmed change led to against the level before it."""
        before, after = self._sides(change)
        sizes = f"{words.points(len(before))} before, {len(after)} after"
        found = f"{_found(change)} ({words.p_value(change.p_value)}, {sizes}): significant"
        outcome, reason = (
            change.outcome,
            f"{found}, and relevant: {words.percent(self.relevant)} matter",
        )
        if abs(change.relative_change) < self.relevant:
            outcome, shown = self._equivalence(before, after)
            reason = (
                f"{found}, but smaller than the {words.percent(self.relevant)} that matter; {shown}"
            )
        verdict = _verdict_of(change, outcome, reason, self.relevant)
        return replace(verdict, notes=remark.notes)

    def _suspected(self, change: ChangePoint) -> Verdict:
        """Say that a change shows, and why it is not believed yet."""
        remark, needed = self.remark(change), self.settings.confirming_points
        before, after = self._sides(change)
        shows = f"{words.movement(change)} since {words.beginning(change)} shows, but"
        short = [
            f"only {words.points(len(side))} {name} it; {needed} needed"
            for side, name in ((after, "after"), (before, "before"))
            if len(side) < needed
        ]
        why = remark.waits or (short[0] if short else "is not confirmed yet: the evidence is too weak")
        testbed = (f"it looks like the testbed's: {remark.testbed}",) if remark.testbed else ()
        verdict = _verdict_of(change, Outcome.UNDECIDED, f"{shows} {why}", self.relevant)
        return replace(verdict, notes=(*testbed, *remark.notes), is_significant=None)

    def _sides(self, change: ChangePoint) -> tuple[Points, Points]:
        start = max((one.index for one in self.changes if one.index < change.index), default=0)
        points = self.series.points
        return (
            points[start : change.index],
            points[change.index : change.index + change.points_after],
        )

    def _without_change(self, points: Points) -> Verdict:
        """Compare the newest release, and at least the newest points that confirm, with all before."""
        needed = self.settings.confirming_points
        of_release = int(np.count_nonzero(points.releases == points.releases[-1]))
        split = len(points) - max(of_release, needed)
        if split < needed:  # one release only: its newest points against its older ones
            split = max(0, len(points) - needed)
        outcome, shown = self._equivalence(points[:split], points[split:])
        return Verdict(outcome=outcome, reason=f"no change found; {shown}", is_significant=False)

    def _equivalence(self, before: Points, after: Points) -> tuple[Outcome, str]:
        """Tell whether two groups are shown equivalent, and how that was seen."""
        if min(len(before), len(after)) < 2:  # noqa: PLR2004  a scatter needs two values
            return Outcome.UNDECIDED, "too few points to compare the newest with those before them"
        old, new = before.values, after.values
        effect = (
            compare_levels(old, new, _CONFIDENCE, self.noise)
            if self.noise
            else compare_means(old, new, _CONFIDENCE)
        )
        unchanged = effect.lies_within(self.relevant)
        # Nothing falls by more than all of it, however wide the interval is.
        low, high = (words.signed_percent(bound) for bound in (max(effect.low, -1.0), effect.high))
        shown = (
            f"the newest {words.points(len(after))} ({words.releases(after, self.series)}) differ from"
            f" the {len(before)} before by {low} to {high} ({words.percent(_CONFIDENCE)} interval),"
            f" {'within' if unchanged else 'which is not within'} ±{words.percent(self.relevant)}"
        )
        return (Outcome.UNCHANGED if unchanged else Outcome.UNDECIDED), shown


def _found(change: ChangePoint) -> str:
    return f"{words.movement(change)} {words.place(change)}"


def _verdict_of(change: ChangePoint, outcome: Outcome, reason: str, relevant: float) -> Verdict:
    return Verdict(
        outcome=outcome,
        reason=reason,
        change=change.index,
        relative_change=change.relative_change,
        p_value=change.p_value,
        is_significant=True,
        is_relevant=abs(change.relative_change) >= relevant,
    )
