"""What is reported of an incident elsewhere than on the site: a notice, in words and with its times."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from analysis.detection.alerts import Alert, may_be
from analysis.detection.detection import ChangePoint, ChangeState, outcome_of
from analysis.detection.series import Point, Series
from analysis.detection.verdict import Outcome
from analysis.judging.description import say_reply
from analysis.judging.findings import may_be_older
from analysis.judging.incidents import Cause, Incident, name_place
from analysis.judging.judgement import JudgedSeries, Judgement
from analysis.orchestration.setting_words import NO_SETTINGS, ChangedSettings
from perf.model.metrics import DIAGNOSTICS, METRICS
from perf.model.results import SeriesKey, TrialHead, TrialId
from perf.model.rules import TriageState
from reports.notifications.fingerprints import find_alert_fingerprints, find_fingerprints
from reports.wording import links
from reports.wording.changes import (
    WITHDRAWN_FOR_NIGHTS,
    find_retracted,
    name_gap,
    name_incident,
    name_night,
    name_span,
    triage_words,
)
from reports.wording.incidents import describe_briefly, triage_command
from reports.wording.series_list import experiment_of
from reports.wording.wording import (
    CAUSE_BADGES,
    OUTCOME_BADGES,
    Badge,
    heading,
    night_words,
    percent,
    sentence,
    series_words,
)


class NotificationStatus(StrEnum):
    """How an incident stands with those who were notified of it."""

    PROVISIONAL = "provisional"
    CONFIRMED = "confirmed"
    RESOLVED = "mended"
    DECIDED = "decided"
    """Triaged: expected, fixed, of the testbed or ignored."""
    CLEARED = "cleared"
    """Nobody has to look, for another reason: trials in turns rule it out, or it is too small."""
    WITHDRAWN = "withdrawn"
    """Later points do not confirm it."""

    @property
    def is_open(self) -> bool:
        """Return whether somebody should look."""
        return self in {NotificationStatus.PROVISIONAL, NotificationStatus.CONFIRMED}


STANDING_BADGES = {
    NotificationStatus.PROVISIONAL: Badge(kind="unsure", symbol="?", word="Suspected"),
    NotificationStatus.CONFIRMED: Badge(kind="calm", symbol="●", word="Confirmed"),
    NotificationStatus.RESOLVED: Badge(kind="good", symbol="✓", word="Resolved"),
    NotificationStatus.DECIDED: Badge(kind="calm", symbol="✎", word="Decided"),
    NotificationStatus.CLEARED: Badge(kind="calm", symbol="○", word="Nothing to look at"),
    NotificationStatus.WITHDRAWN: Badge(kind="faded", symbol="↶", word="Retracted"),
}
_UNSEEN = "later points do not confirm it. That is no proof that nothing changed."
GONE = f"It is no longer seen: {_UNSEEN}"
_ADVICE = {
    NotificationStatus.PROVISIONAL: "Not certain yet: nothing has to be fixed before it is confirmed.",
    NotificationStatus.CONFIRMED: "Find the cause, or write down a decision.",
    NotificationStatus.RESOLVED: "Nothing to do: the level came back.",
    NotificationStatus.DECIDED: "Nothing to do: somebody has decided about it.",
    NotificationStatus.CLEARED: "Nothing to do.",
    NotificationStatus.WITHDRAWN: f"Nothing to do: {_UNSEEN}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOfStory:
    """Something that happened to an incident, and when."""

    at: datetime
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """An incident as it is reported elsewhere. All texts are plain: whoever writes them escapes them.

    `command` writes down a decision; empty where none is asked for. `page` is relative to the root of
    the site. `steps` are in the order of time, at least one. `handles` tell that it is the same
    incident, though its name moved: see `fingerprints`.
    """

    name: str
    standing: NotificationStatus
    outcome: Badge
    title: str
    system: str
    experiment: str
    between: str
    cause: str
    summary: str
    advice: str
    command: str
    page: str
    steps: tuple[StepOfStory, ...]
    handles: tuple[str, ...]

    @property
    def badge(self) -> Badge:
        """Say the standing in a word with its symbol."""
        return STANDING_BADGES[self.standing]

    @property
    def began_at(self) -> datetime:
        """Return when it was first to be seen."""
        return self.steps[0].at

    @property
    def changed_at(self) -> datetime:
        """Return when the last thing happened to it."""
        return self.steps[-1].at


def cause_words(notice: Notification) -> str:
    """Return what a notice is attributed to, as a part of a sentence; nothing where nobody asked."""
    if notice.cause == CAUSE_BADGES[Cause.UNKNOWN].word:
        return notice.cause.lower()
    return f"attributed to the {notice.cause.lower()}" if notice.cause else ""


def view_notifications(
    judgement: Judgement,
    by_id: Mapping[TrialId, TrialHead],
    settings: ChangedSettings = NO_SETTINGS,
) -> tuple[Notification, ...]:
    """Put all incidents into notices, then the changes that were withdrawn in the newest nights.

    `settings` are those that changed, by what they explain.
    """
    own = {one.series.key: one for one in judgement.series}
    known = tuple(
        _view(incident, own[incident.lead.series.key], by_id, settings)
        for incident in judgement.incidents
    )
    taken = {one.name for one in known}
    withdrawn = (
        _view_retracted(judged, alert, by_id)
        for judged in judgement.series
        for _, alert in find_retracted(judged, WITHDRAWN_FOR_NIGHTS)
    )
    gone = {one.name: one for one in withdrawn}
    return (*known, *(one for name, one in sorted(gone.items()) if name not in taken))


def stand(incident: Incident) -> NotificationStatus:
    """Describe how an incident stands. What is acknowledged goes on being looked at."""
    entry = incident.triage
    is_acknowledged = entry is not None and entry.state is TriageState.ACKNOWLEDGED
    if incident.is_news or (is_acknowledged and not incident.fixed_by):
        is_confirmed = incident.lead.state is ChangeState.CONFIRMED
        return NotificationStatus.CONFIRMED if is_confirmed else NotificationStatus.PROVISIONAL
    if entry is not None and not is_acknowledged:
        return NotificationStatus.DECIDED
    return NotificationStatus.RESOLVED if incident.fixed_by else NotificationStatus.CLEARED


def _view(
    incident: Incident,
    own: JudgedSeries,
    by_id: Mapping[TrialId, TrialHead],
    settings: ChangedSettings,
) -> Notification:
    lead, standing = incident.lead, stand(incident)
    decided = sentence(triage_words(incident.triage)) if incident.triage else ""
    return Notification(
        name=incident.name,
        standing=standing,
        outcome=OUTCOME_BADGES[lead.outcome],
        title=name_incident(incident),
        system=f"{lead.series.key.system} {lead.series.key.line}",
        experiment=by_id[lead.first_after.trial].experiment,
        between=name_gap(lead),
        cause=CAUSE_BADGES[incident.cause].word,
        summary=describe_briefly(incident, settings),
        advice=f"{_ADVICE[standing]} {decided}".strip(),
        command=triage_command(incident.name) if standing.is_open else "",
        page=links.incident_page(incident.name),
        steps=tuple(sorted(_describe_steps(incident, own), key=lambda step: step.at)),
        handles=find_fingerprints(incident),
    )


def _describe_steps(incident: Incident, own: JudgedSeries) -> Iterator[StepOfStory]:
    lead = incident.lead
    yield _describe_first(lead.first_after)
    alert = _find_alert(lead, own)
    if alert:
        yield from _describe_alert(alert, own.series)
    for change, reply in incident.replies:
        if change == lead:
            yield StepOfStory(at=reply.answer.finished_at, text=sentence(say_reply(reply)))
    for fix in incident.fixed_by:
        point = fix.first_after
        yield StepOfStory(
            at=point.started_at,
            text=f"{OUTCOME_BADGES[fix.outcome].word} {percent(fix.relative_change)}:"
            f" {series_words(fix.series.key)}, {point.release.version}, {name_night(point)}",
        )


def _describe_first(point: Point) -> StepOfStory:
    where = f"{point.release.version}, {name_night(point)}"
    return StepOfStory(at=point.started_at, text=f"First point with it: {where}")


def _find_alert(change: ChangePoint, own: JudgedSeries) -> Alert | None:
    rises = change.after > change.before
    at = {"earliest": change.earliest, "latest": change.latest}
    return next((one for one in own.alerts if may_be(one, rises=rises, **at)), None)


def _describe_alert(alert: Alert, series: Series) -> Iterator[StepOfStory]:
    nights = series.points.nights_in_order
    for number, reported in (
        (alert.provisional_at, "Reported as suspected"),
        (alert.confirmed_at, "Reported as confirmed"),
        (alert.withdrawn_at, "Retracted"),
    ):
        if number is not None and not may_be_older(series, number):
            times = [one.started_at for one in series.points.occasions if one.night == nights[number]]
            yield StepOfStory(at=max(times), text=f"{reported}: {night_words(nights[number])}")


def _view_retracted(
    judged: JudgedSeries, alert: Alert, by_id: Mapping[TrialId, TrialHead]
) -> Notification:
    key, points = judged.series.key, judged.series.points
    before, after = points[alert.index - 1], points[alert.index]
    outcome = _outcome_of(key, rises=alert.rises)
    moved = f"{heading(series_words(key))}, {percent(alert.relative_change)}"
    reported = sorted(
        (_describe_first(after), *_describe_alert(alert, judged.series)), key=lambda step: step.at
    )
    return Notification(
        name=name_place(key, outcome, before, after),
        standing=NotificationStatus.WITHDRAWN,
        outcome=OUTCOME_BADGES[outcome],
        title=moved,
        system=f"{key.system} {key.line}",
        experiment=experiment_of(judged, by_id),
        between=name_span(before, after),
        cause="",
        summary=sentence(f"{moved}, {name_span(before, after)}, was reported as {alert.state.word}"),
        advice=_ADVICE[NotificationStatus.WITHDRAWN],
        command="",
        page=f"{links.series_page(key)}#withdrawn",
        steps=tuple(reported),
        handles=find_alert_fingerprints(judged.series, alert, outcome),
    )


def _outcome_of(key: SeriesKey, *, rises: bool) -> Outcome:
    better = (METRICS | DIAGNOSTICS)[key.metric].better
    return outcome_of(better, 0.0, 1.0 if rises else -1.0)
