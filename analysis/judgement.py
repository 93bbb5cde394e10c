"""Judge a whole history at once: observations in, one judged series per key out. Pure.

The verdict of a series speaks of its newest established level: the newest segment between changes
with at least `confirming_points` points.

- The change into that level is confirmed and at least `relevant_change`: regressed or improved,
  however old. A regression also outlives smaller changes after it, while they do not undo it.
- It is smaller, or no change was found: unchanged if the 99 % interval of the difference lies within
  ± `relevant_change`, else undecided. Finding no change shows nothing by itself.
- A change that is not confirmed, before or after that level: undecided, unless a regression stands.
- The newest trial is invalid or failed: undecided, unless a regression stands.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from analysis import words
from analysis.alerts import Alert
from analysis.comparison import compare_means, relative_change
from analysis.detection import ChangePoint, Detector, Drift, SpreadChange, State, find_changes
from analysis.incidents import Incident
from analysis.noise import Noise
from analysis.series import Point, Series, build_series, position
from analysis.verdict import WORST_FIRST, Outcome, Verdict, merge
from perf.design import Detection, TriageEntry
from perf.metrics import DIAGNOSTICS, METRICS
from perf.model import Circumstance, Observation, SeriesKey, TrialStatus

_CONFIDENCE = 0.99
"""Of the intervals that show a series unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detectable:
    """The smallest relative step that so many nights after it show, four times in five."""

    nights: int
    relative_change: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSeries:
    """A series with its change points (ascending by index) and its verdict today.

    A series without points (its every trial is invalid or failed) is judged too: invalid. `noise`,
    `drifts` and `spreads` are what the detector saw beside the changes, `detectable` what it could have
    seen after 1, 3 and 10 nights. `alerts` are the changes of the last nights as each night saw them,
    those that were withdrawn among them.
    """

    series: Series
    change_points: tuple[ChangePoint, ...]
    verdict: Verdict
    noise: Noise | None = None
    detectable: tuple[Detectable, ...] = ()
    drifts: tuple[Drift, ...] = ()
    spreads: tuple[SpreadChange, ...] = ()
    alerts: tuple[Alert, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All series, ascending by key, and the verdict over them in words.

    `incidents` join the changes by cause, news first, then the largest. `watched` are the canaries and
    sentinels, read by the same detector; no verdict of theirs counts. `expected_false_alarms` is how
    many confirmed changes noise alone brings about in one night of so many series.
    """

    series: tuple[JudgedSeries, ...]
    verdict: Verdict
    incidents: tuple[Incident, ...] = ()
    watched: tuple[JudgedSeries, ...] = ()
    expected_false_alarms: float = 0.0


def judge(
    observations: Iterable[Observation],
    settings: Detection,
    detector: Detector,
    *,
    watched: Iterable[Observation] = (),
    circumstances: Iterable[Circumstance] = (),
    triage: Sequence[TriageEntry] = (),
    today: date | None = None,
) -> Judgement:
    """Judge the series that `settings.judged` names. Raises ValueError as `build_series` does.

    Diagnostics explain a result, so no verdict rests on them. Any other metric that `judged` does not
    name is not left out in silence: its series are judged invalid.
    """
    observations = tuple(one for one in observations if _is_judged(one.key, settings))
    unusable = _newest_unusable(observations)
    judged = tuple(
        _judge_series(series, unusable.get(series.key), settings, detector)
        for series in build_series(observations)
    )
    return Judgement(series=judged, verdict=_overall(judged, settings))


def _is_judged(key: SeriesKey, settings: Detection) -> bool:
    if key.metric in DIAGNOSTICS:
        return False
    return key.metric not in settings.judged or key.statistic in settings.judged[key.metric]


def _newest_unusable(observations: Iterable[Observation]) -> dict[SeriesKey, Observation]:
    """Give, by key, the last observation in series order where its trial was not completed."""
    newest: dict[SeriesKey, Observation] = {}
    for observation in observations:
        known = newest.get(observation.key)
        if known is None or position(known) < position(observation):
            newest[observation.key] = observation
    return {
        key: observation
        for key, observation in newest.items()
        if observation.status is not TrialStatus.COMPLETED
    }


def _judge_series(
    series: Series, unusable: Observation | None, settings: Detection, detector: Detector
) -> JudgedSeries:
    refusal = _refusal(series, settings)
    reading = None if refusal else detector.read([point.value for point in series.points])
    changes = find_changes(series, reading, detector.name) if reading else ()
    verdict = refusal or _verdict(series, changes, settings)
    if unusable and verdict.outcome in (Outcome.IMPROVED, Outcome.UNCHANGED):
        reason = (
            f"{verdict.outcome} up to its last valid point, but the newest trial,"
            f" {unusable.trial} of {unusable.release.version}, is {unusable.status}"
        )
        verdict = Verdict(outcome=Outcome.UNDECIDED, reason=reason)
    return JudgedSeries(series=series, change_points=changes, verdict=verdict)


def _refusal(series: Series, settings: Detection) -> Verdict | None:
    """Say why a series cannot be searched for changes at all, if so."""
    metric, count = series.key.metric, len(series.points)
    if metric not in METRICS or metric not in settings.relevant_change:
        reason = f"no relevant change is configured for metric {metric}, so nothing can be judged"
        return Verdict(outcome=Outcome.INVALID, reason=reason)
    if count == 0:
        reason = "no valid trial: every trial of this series is invalid or failed"
        return Verdict(outcome=Outcome.INVALID, reason=reason)
    if count < settings.minimum_points:
        reason = f"{count} of at least {settings.minimum_points} points: too few to judge"
        return Verdict(outcome=Outcome.UNDECIDED, reason=reason)
    return None


def _verdict(series: Series, changes: Sequence[ChangePoint], settings: Detection) -> Verdict:
    """Judge the newest established level; see the top of this module."""
    relevant = settings.relevant_change[series.key.metric]
    needed = settings.confirming_points
    bounds = (0, *(change.index for change in changes), len(series.points))
    segments = [series.points[start:end] for start, end in pairwise(bounds)]
    newest = max((i for i, level in enumerate(segments) if len(level) >= needed), default=0)
    if newest == 0:
        verdict = _without_change(series, relevant, needed)
    elif changes[newest - 1].state is State.PROVISIONAL:
        verdict = _unconfirmed(changes[newest - 1], "before", len(segments[newest - 1]), needed)
    else:
        told = _telling_change(changes[:newest], relevant)
        verdict = _after_change(changes[told], segments[told], segments[told + 1], relevant)
    if newest < len(changes) and verdict.outcome is not Outcome.REGRESSED:
        return _unconfirmed(changes[newest], "after", changes[newest].points_after, needed)
    return verdict


def _telling_change(changes: Sequence[ChangePoint], relevant: float) -> int:
    """Give the index of the change that the verdict tells: the last, or a regression that still stands.

    The last change stands aside if it is not relevant, the newest relevant one is a regression, and
    the last level is still worse by a relevant amount than the level before that regression.
    """
    last = len(changes) - 1
    for index in range(last, -1, -1):
        change = changes[index]
        if change.state is State.CONFIRMED and abs(change.relative_change) >= relevant:
            since = relative_change(change.before, changes[last].after)
            worse = abs(since) >= relevant and (since > 0) is (change.relative_change > 0)
            return index if change.outcome is Outcome.REGRESSED and worse else last
    return last


def _unconfirmed(change: ChangePoint, side: str, count: int, needed: int) -> Verdict:
    """Say that a change shows but that too few points lie on one side of it."""
    reason = (
        f"{words.movement(change)} since {change.first_after.release.version} shows,"
        f" but only {words.points(count)} {side} it; {needed} needed"
    )
    return Verdict(
        outcome=Outcome.UNDECIDED,
        reason=reason,
        relative_change=change.relative_change,
        p_value=change.p_value,
    )


def _after_change(
    change: ChangePoint, before: Sequence[Point], after: Sequence[Point], relevant: float
) -> Verdict:
    """Judge the level that a confirmed change led to against the level before it."""
    found = (
        f"{words.movement(change)} {words.place(change)} ({words.p_value(change.p_value)},"
        f" {words.points(len(before))} before, {len(after)} after)"
    )
    if abs(change.relative_change) < relevant:
        outcome, shown = _equivalence(before, after, relevant)
        reason = (
            f"{found}: significant, but smaller than the {words.percent(relevant)} that matter; {shown}"
        )
    else:
        outcome, reason = change.outcome, found
    if change.last_before.release == change.first_after.release:
        reason += "; no release lies between, so look at the host and the configuration first"
    return Verdict(
        outcome=outcome,
        reason=reason,
        relative_change=change.relative_change,
        p_value=change.p_value,
    )


def _without_change(series: Series, relevant: float, needed: int) -> Verdict:
    """Compare the newest release, and at least the newest `needed` points, with all before them."""
    release = series.points[-1].release
    of_release = sum(point.release == release for point in series.points)
    split = len(series.points) - max(of_release, needed)
    if split < needed:  # one release only: its newest points against its older ones
        split = len(series.points) - needed
    before, after = series.points[:split], series.points[split:]
    outcome, shown = _equivalence(before, after, relevant)
    return Verdict(outcome=outcome, reason=f"no change found; {shown}")


def _equivalence(
    before: Sequence[Point], after: Sequence[Point], relevant: float
) -> tuple[Outcome, str]:
    """Tell whether two groups are shown equivalent within ± `relevant`, and how that was seen."""
    if min(len(before), len(after)) < 2:  # noqa: PLR2004  a scatter needs two values
        return Outcome.UNDECIDED, "too few points to compare the newest with those before them"
    effect = compare_means(
        [point.value for point in before], [point.value for point in after], _CONFIDENCE
    )
    unchanged = effect.lies_within(relevant)
    low, high = (words.signed_percent(bound) for bound in (effect.low, effect.high))
    shown = (
        f"the newest {words.points(len(after))} ({words.releases(after)}) differ from the"
        f" {len(before)} before by {low} to {high} ({words.percent(_CONFIDENCE)} interval),"
        f" {'within' if unchanged else 'which is not within'} ±{words.percent(relevant)}"
    )
    return (Outcome.UNCHANGED if unchanged else Outcome.UNDECIDED), shown


def _overall(judged: Sequence[JudgedSeries], settings: Detection) -> Verdict:
    """Merge the verdicts of all series and say how many came to what."""
    if not judged:
        reason = "Nothing to judge: the history holds no measured series yet"
        return Verdict(outcome=Outcome.UNDECIDED, reason=reason)
    counts = Counter(one.verdict.outcome for one in judged)
    merged = merge(counts)
    said = ", ".join(f"{counts[outcome]} {outcome}" for outcome in WORST_FIRST if counts[outcome])
    reason = f"{_HEADLINES[merged]}: of {words.counted(len(judged), 'series', 'series')}, {said}"
    short = [one.series for one in judged if 0 < len(one.series.points) < settings.minimum_points]
    if short:
        reason += f"; {_shortage(short, settings.minimum_points)}"
    return Verdict(outcome=merged, reason=reason)


_HEADLINES = {
    Outcome.REGRESSED: "Regressed",
    Outcome.INVALID: "Cannot tell",
    Outcome.UNDECIDED: "Cannot tell yet",
    Outcome.IMPROVED: "Improved",
    Outcome.UNCHANGED: "Unchanged",
}


def _shortage(short: Sequence[Series], minimum: int) -> str:
    """Say how many series have too few points, and about how many nights cure it.

    A night measures each release of a suite once, so a series has been measured on about as many
    nights as its most-measured release has points, and gains a point per release each night.
    """
    nights, missing = 0, 0
    for series in short:
        of_release = Counter(point.release for point in series.points)
        nights = max(nights, *of_release.values())
        missing = max(missing, math.ceil((minimum - len(series.points)) / len(of_release)))
    have = "1 has" if len(short) == 1 else f"{len(short)} have"
    return (
        f"{have} fewer than {minimum} points"
        f" ({words.counted(nights, 'night', 'nights')} so far, about {missing} more needed)"
    )
