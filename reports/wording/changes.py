"""What was seen in a series, in words: steps with their place, drifts, changes of scatter, alerts."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.comparing.results import NEW
from analysis.detection import words
from analysis.detection.alerts import Alert
from analysis.detection.detection import ChangePoint, ChangeState
from analysis.detection.effects import relative_change
from analysis.detection.selection import is_by_ranks
from analysis.detection.series import Point
from analysis.judging.description import say_evidence, say_price, say_silence
from analysis.judging.drift import WatchEvidence, is_canary
from analysis.judging.explanations import Explanation
from analysis.judging.findings import may_be_older
from analysis.judging.incidents import Cause, Incident
from analysis.judging.judgement import JudgedSeries
from analysis.orchestration.setting_words import NO_SETTINGS, ChangedSettings, say_settings
from perf.model.night_names import night_span
from perf.model.results import SeriesKey
from perf.model.rules import Detection, TriageEntry
from reports.wording import links
from reports.wording.wording import (
    CAUSE_BADGES,
    DRIFT_BADGE,
    NOTHING,
    OUTCOME_BADGES,
    SCATTER_BADGE,
    STATE_BADGES,
    Badge,
    count,
    heading,
    night_words,
    number,
    percent,
    plain_percent,
    probability,
    quantity,
    sentence,
    series_words,
    times,
)

WITHDRAWN_FOR_NIGHTS = 7
"""Whoever was notified of a change hears that it is gone, also after a week away."""
TYPICAL = "p50"
"""The statistic of a canary that says most; the others say how far its rounds lay apart."""
_DIGEST = re.compile(r"[0-9a-f]{8,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """One change point.

    `index` is the number of the first point after it, which lies from `earliest` to `latest`. `notes`
    are what may explain it and what the testbed's own series say; `incident` is the page of its
    incident, if it belongs to one.
    """

    index: int
    earliest: int
    latest: int
    between: str
    located: str
    before: str
    after: str
    change: str
    label: str
    p_value: str
    relevant: str
    threshold: str
    outcome: Badge
    state: Badge
    points_after: str
    page_before: str
    page_after: str
    cause: Badge | None = None
    incident: str = ""
    incident_title: str = ""
    triage: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """One drift: from point number `first` to `last`, from level to level."""

    first: int
    last: int
    low: float
    high: float
    badge: Badge
    between: str
    change: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterRow:
    """One change of the scatter, from point number `index` on."""

    index: int
    badge: Badge
    between: str
    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetractedRow:
    """One alert that was reported and is no longer seen."""

    between: str
    change: str
    state: Badge
    reported: str
    withdrawn: str


def view_changes(
    judged: JudgedSeries,
    incidents: Mapping[tuple[SeriesKey, int], Incident],
    settings: Detection,
    changed: ChangedSettings = NO_SETTINGS,
) -> tuple[ChangeRow, ...]:
    """Put the change points of a series into words, ascending; `changed` are settings that did."""
    key = judged.series.key
    return tuple(
        _view_change(
            change, judged.change_points, incidents.get((key, change.index)), settings, changed
        )
        for change in judged.change_points
    )


def by_change(incidents: Iterable[Incident]) -> Mapping[tuple[SeriesKey, int], Incident]:
    """Return, by series and index of each change, the incident of which it is a change or the fix."""
    return {
        (change.series.key, change.index): incident
        for incident in incidents
        for change in (*incident.changes, *incident.fixed_by)
    }


def say_probability(change: ChangePoint, changes: Iterable[ChangePoint], settings: Detection) -> str:
    """Write the p-value of one of the changes of a series, and of which criterion it is, if by ranks.

    Of both criteria, that of the size and that of the ranks, the weaker one's is reported.
    """
    places = [one.index for one in changes]
    start = max((at for at in places if at < change.index), default=0)
    end = min((at for at in places if at > change.index), default=len(change.series.points))
    values = np.asarray(change.series.points.values)
    sides = values[start : change.index], values[change.index : end]
    by = " by ranks" if is_by_ranks(change.p_value, *sides, settings.window_points) else ""
    return f"{probability(change.p_value)}{by}"


def _view_change(
    change: ChangePoint,
    changes: Sequence[ChangePoint],
    incident: Incident | None,
    settings: Detection,
    changed: ChangedSettings,
) -> ChangeRow:
    metric = change.series.key.metric
    relevant, threshold = _describe_relevance(change, settings)
    doubt = " ?" if change.state is ChangeState.PROVISIONAL else ""
    return ChangeRow(
        index=change.index + 1,
        earliest=change.earliest + 1,
        latest=change.latest + 1,
        between=name_gap(change),
        located=_locate(change),
        before=quantity(change.before, metric),
        after=quantity(change.after, metric),
        change=percent(change.relative_change),
        label=f"{OUTCOME_BADGES[change.outcome].symbol} {percent(change.relative_change)}{doubt}",
        p_value=say_probability(change, changes, settings),
        relevant=relevant,
        threshold=threshold,
        outcome=OUTCOME_BADGES[change.outcome],
        state=STATE_BADGES[change.state],
        points_after=f"{count(change.points_after, 'point')} after it",
        page_before=links.trial_page(change.last_before.trial),
        page_after=links.trial_page(change.first_after.trial),
        cause=CAUSE_BADGES[incident.cause] if incident else None,
        incident=links.incident_page(incident.name) if incident else "",
        incident_title=name_incident(incident) if incident else "",
        triage=triage_words(incident.triage) if incident and incident.triage else "",
        notes=_explain(incident, changed) if incident else (),
    )


def _explain(incident: Incident, changed: ChangedSettings) -> tuple[str, ...]:
    """Return what else may explain a change, then what the testbed's own series say."""
    decisive = [one for one in incident.evidence if one.follows or not is_canary(one.key)]
    silent = [one for one in incident.evidence if one not in decisive]
    return (
        *((sentence(say_price(incident.price_move)),) if incident.price_move else ()),
        *(sentence(say_explanation(one, incident, changed)) for one in incident.explanations),
        *(sentence(f"{name_watch(one.key)}: {evidence_words(one)}") for one in decisive),
        *((f"Canaries: {count_silent(silent)}.",) if silent else ()),
    )


def say_explanation(
    one: Explanation, incident: Incident, changed: ChangedSettings = NO_SETTINGS
) -> str:
    """Describe what else changed, as the cause where an incident is attributed to it."""
    is_cause = incident.cause is Cause.CONFIGURATION
    said = explanation_words(one, changed)
    return f"attributed to a change of {said}" if is_cause else f"may explain it too: {said}"


def name_watch(key: SeriesKey) -> str:
    """Name a canary, or a sentinel with its release."""
    name = series_words(key)
    return heading(name) if is_canary(key) else f"Sentinel {key.system} {key.line}, {name}"


def evidence_words(evidence: WatchEvidence) -> str:
    """Describe what a canary or a sentinel tells, without its name."""
    return say_evidence(evidence) if evidence.change else say_silence(evidence)


def count_silent(evidence: Sequence[WatchEvidence]) -> str:
    """Describe how many did not move, and how many cannot tell."""
    still = sum(one.is_decisive for one in evidence)
    short = len(evidence) - still
    return f"{still:,} of {len(evidence):,} did not move that far" + (
        f", {short:,} cannot tell yet" if short else ""
    )


def name_incident(incident: Incident) -> str:
    """Name an incident by its lead: what moved, and by how much."""
    lead = incident.lead
    return f"{heading(series_words(lead.series.key))}, {percent(lead.relative_change)}"


def explanation_words(explanation: Explanation, changed: ChangedSettings = NO_SETTINGS) -> str:
    """Describe what changed together with a series, by settings and values where these are known.

    Where they are not, hashes tell nobody anything, so the name stands alone.
    """
    if knobs := changed.get(explanation):
        return say_settings(knobs)
    if any(_DIGEST.fullmatch(one) for one in (explanation.before, explanation.after)):
        return explanation.name
    return f"{explanation.name}, {explanation.before or NOTHING} → {explanation.after or NOTHING}"


def triage_words(entry: TriageEntry) -> str:
    """Describe what was decided, by whom, and until when."""
    until = f", until {entry.expires:%Y-%m-%d}" if entry.expires else ""
    fixed = f" in {entry.fixed_in}" if entry.fixed_in else ""
    return f"{entry.state}{fixed} by {entry.owner}{until}: {entry.note}"


def _describe_relevance(change: ChangePoint, settings: Detection) -> tuple[str, str]:
    """Return whether a change is large enough to act on, and from where on one is."""
    relevant = settings.relevant_change.get(change.series.key.metric)
    if relevant is None:
        return NOTHING, "no rule says"
    word = "yes" if abs(change.relative_change) >= relevant else "no"
    return word, f"{plain_percent(relevant)} matter"


def name_gap(change: ChangePoint) -> str:
    """Describe between which releases a change lies, or within one of them since which night.

    A release that the newest night measured for the first time is said to be new.
    """
    if change.last_before.release.version != change.first_after.release.version:
        return f"{name_span(change.last_before, change.first_after)}{_mark_new(change)}"
    return f"within {change.first_after.release.version}, since {name_night(change.first_after)}"


def _mark_new(change: ChangePoint) -> str:
    """Mark a change that begins with a release which the newest night, and none before it, measured."""
    version, columns = change.first_after.release.version, change.series.points.columns
    if change.index + 1 < len(columns):
        # Nearly always the next point is of another night of it, and nothing else need be asked.
        beside = columns.occasion(change.index + 1)
        if beside.release.version == version and beside.night != change.first_after.night:
            return ""
    nights = [night for night in change.series.points.nights_in_order if night]
    had = {one.night for one in change.series.points.occasions if one.release.version == version}
    return NEW if len(nights) > 1 and had == {nights[-1]} else ""


def name_span(before: Point, after: Point) -> str:
    """Describe from which point to which: by release where they differ, else by night."""
    if before.release.version != after.release.version:
        return f"{before.release.version} → {after.release.version}"
    ends = (before.night, after.night)
    if all(ends):
        return f"within {after.release.version}, night {night_span(*ends, '→')}"
    return f"within {after.release.version}, {name_night(before)} → {name_night(after)}"


def name_night(point: Point) -> str:
    """Name the night of a point, or its day where it was measured in none."""
    return night_words(point.night) if point.night else words.night(point)


def name_beginning(change: ChangePoint) -> str:
    """Describe since when a change is there: since which release, or within one since which night."""
    after = change.first_after
    if change.last_before.release == after.release:
        return name_night(after)
    return f"{after.release.version}{_mark_new(change)}"


def _locate(change: ChangePoint) -> str:
    """Describe how well the place of a change is known."""
    points = change.series.points
    if change.earliest >= change.latest:
        return "no other point fits"
    span = name_span(points[max(change.earliest - 1, 0)], points[min(change.latest, len(points) - 1)])
    return f"one of {change.latest - change.earliest + 1:,} places, {span}"


def view_change_briefly(change: ChangePoint) -> str:
    """Say a change in one line: before → after, how much, and where."""
    metric = change.series.key.metric
    values = f"{number(change.before)} → {quantity(change.after, metric)}"
    return f"{values} ({percent(change.relative_change)}), {name_gap(change)}"


def view_slopes(judged: JudgedSeries) -> tuple[Slope, ...]:
    """Put the drifts of a series into words: a slow movement has no place, so it is no step."""
    points, metric = judged.series.points, judged.series.key.metric
    return tuple(
        Slope(
            first=drift.first + 1,
            last=drift.last + 1,
            low=drift.before,
            high=drift.after,
            badge=DRIFT_BADGE,
            between=name_span(points[drift.first], points[drift.last]),
            change=percent(relative_change(drift.before, drift.after)),
            text=f"{number(drift.before)} → {quantity(drift.after, metric)} "
            f"over {count(drift.last - drift.first + 1, 'point')}",
        )
        for drift in judged.drifts
    )


def view_scatter(judged: JudgedSeries) -> tuple[ScatterRow, ...]:
    """Put the changes of scatter of a series into words: the level need not have moved."""
    points, metric = judged.series.points, judged.series.key.metric
    return tuple(
        ScatterRow(
            index=change.index + 1,
            badge=SCATTER_BADGE,
            between=name_span(points[change.index - 1], points[change.index]),
            label=f"scatter {times(change.before, change.after)}",
            text=f"one point scatters by {quantity(change.after, metric)} instead of "
            f"{quantity(change.before, metric)} ({probability(change.p_value)})",
        )
        for change in judged.spreads
    )


def find_retracted(judged: JudgedSeries, newest_nights: int | None) -> tuple[tuple[int, Alert], ...]:
    """Return the alerts that are no longer seen, each after the number of the night since when.

    With `newest_nights` only those that were withdrawn in so many of the newest nights.
    """
    gone = [(one.withdrawn_at, one) for one in judged.alerts if one.withdrawn_at is not None]
    if not gone or newest_nights is None:  # then no night has to be counted
        return tuple(gone)
    since = len(judged.series.points.nights_in_order) - newest_nights
    return tuple(one for one in gone if one[0] >= since)


def view_retracted(
    judged: JudgedSeries, *, newest_nights: int | None = None
) -> tuple[RetractedRow, ...]:
    """Put the alerts of a series that are no longer seen into words, the newest first."""
    gone = find_retracted(judged, newest_nights)
    if not gone:
        return ()
    points, nights = judged.series.points, judged.series.points.nights_in_order
    return tuple(
        RetractedRow(
            between=name_span(points[alert.index - 1], points[alert.index]),
            change=percent(alert.relative_change),
            state=STATE_BADGES[alert.state],
            reported=f"{'by' if may_be_older(judged.series, alert.reported_at) else 'in'} "
            f"{night_words(nights[alert.reported_at])}",
            withdrawn=night_words(nights[withdrawn_at]),
        )
        for withdrawn_at, alert in sorted(gone, key=lambda item: -item[0])
    )
