"""What is told of an incident: one row on the front page, and a page with all that is known of it."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.alerts import may_be
from analysis.bisecting.record import BisectionRecord
from analysis.detection import ChangePoint, State
from analysis.drift import Evidence, is_canary
from analysis.findings import may_be_older
from analysis.incidents import Incident
from analysis.judgement import JudgedSeries
from analysis.remeasurement import say
from analysis.series import nights_of
from perf.model import SeriesKey, TrialHead, TrialId
from reports.view import links
from reports.view.changes import (
    TYPICAL,
    count_silent,
    evidence_words,
    explanation_words,
    name_gap,
    name_incident,
    name_night,
    name_watch,
    triage_words,
    view_change_briefly,
)
from reports.view.sensitivity import view_sensitivity
from reports.view.turns import MakingSure, tell_missing, view_making_sure
from reports.view.wording import (
    CAUSE_BADGES,
    MENDED_BADGE,
    NOTHING,
    OPEN_BADGE,
    OUTCOME_BADGES,
    STATE_BADGES,
    Badge,
    count,
    join_caveats,
    moment,
    night_words,
    percent,
    probability,
    quantity,
    sentence,
    series_words,
    triage_badge,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRow:
    """One change of an incident; `page` leads to its series."""

    title: str
    experiment: str
    page: str
    between: str
    before: str
    after: str
    change: str
    p_value: str
    outcome: Badge
    state: Badge


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow:
    """What one canary or sentinel says; `page` leads to its series."""

    name: str
    page: str
    moved: Badge
    change: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationRow:
    """A circumstance that changed at the same place."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One step of an incident's story; `page` is empty where no page says more."""

    when: str
    what: str
    page: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentView:
    """All that is told of an incident."""

    page: str
    name: str
    title: str
    experiment: str
    summary: str
    sensitivity: str
    badges: tuple[Badge, ...]
    outcome: Badge
    series: str
    between: str
    members: tuple[MemberRow, ...]
    mended_by: tuple[MemberRow, ...]
    evidence: tuple[EvidenceRow, ...]
    others: tuple[EvidenceRow, ...]
    others_title: str
    explanations: tuple[ExplanationRow, ...]
    timeline: tuple[Event, ...]
    triage: str
    sure: MakingSure
    command: str
    caveat: str


_NO_SUITES: Mapping[str, str] = {}
_MOVED = Badge(kind="unsure", symbol="≠", word="Moved with it")
_CALM = Badge(kind="good", symbol="=", word="Did not move")
_SILENT = Badge(kind="calm", symbol="?", word="Cannot tell yet")


def view_incident(
    incident: Incident,
    judged: Mapping[SeriesKey, JudgedSeries],
    trials: Mapping[TrialId, TrialHead],
    caveats: Mapping[str, str],
    *,
    suites: Mapping[str, str] = _NO_SUITES,
    bisections: Sequence[BisectionRecord] = (),
) -> IncidentView:
    """Put an incident into words.

    `judged` holds all series, `trials` all trials, `suites` one suite for each experiment, and
    `bisections` all that were begun.
    """
    lead = incident.lead
    ends = (lead.last_before.trial, lead.first_after.trial)
    own = judged[lead.series.key]
    experiment = trials[lead.first_after.trial].experiment
    others = [one for one in incident.evidence if not _tells_most(one)]
    return IncidentView(
        page=links.incident_page(incident.name),
        name=incident.name,
        title=name_incident(incident),
        experiment=experiment,
        summary=" ".join(map(sentence, (_tell_movement(incident), *_tell_price(incident)))),
        sensitivity=view_sensitivity(own).text,
        badges=view_badges(incident),
        outcome=OUTCOME_BADGES[lead.outcome],
        series=count(len({one.series.key for one in incident.changes}), "series", "series"),
        between=name_gap(lead),
        members=_view_members(incident.changes, trials),
        mended_by=_view_members(incident.mended_by, trials),
        evidence=tuple(_view_evidence(one) for one in incident.evidence if _tells_most(one)),
        others=tuple(_view_evidence(one) for one in others),
        others_title=f"Other statistics of the canaries: {count_silent(others)}",
        explanations=tuple(
            ExplanationRow(name=one.name, before=one.before or NOTHING, after=one.after or NOTHING)
            for one in incident.explanations
        ),
        timeline=_tell_story(incident, own),
        triage=sentence(triage_words(incident.triage)) if incident.triage else "",
        sure=view_making_sure(incident, own, experiment, suites.get(experiment, ""), bisections),
        command=triage_command(incident.name),
        caveat=join_caveats({trials[trial].testbed.name for trial in ends}, caveats),
    )


def triage_command(name: str, state: str = "acknowledged") -> str:
    """Give the command that writes down what was decided about an incident, to be filled in."""
    return (
        f"knickpoint triage add {shlex.quote(name)} --state {state} "
        '--owner OWNER --note "WHY" --expires YYYY-MM-DD'
    )


def _tells_most(evidence: Evidence) -> bool:
    is_typical = not is_canary(evidence.key) or evidence.key.statistic == TYPICAL
    return is_typical or evidence.follows


def _view_evidence(evidence: Evidence) -> EvidenceRow:
    moved = _MOVED if evidence.follows else _CALM if evidence.can_tell else _SILENT
    return EvidenceRow(
        name=name_watch(evidence.key),
        page=links.series_page(evidence.key),
        moved=moved,
        change=percent(evidence.relative_change) if evidence.can_tell else NOTHING,
        text=sentence(evidence_words(evidence)),
    )


def view_badges(incident: Incident) -> tuple[Badge, ...]:
    """Give state, cause, mending and triage of an incident at a glance."""
    return (
        STATE_BADGES[incident.lead.state],
        CAUSE_BADGES[incident.cause],
        MENDED_BADGE if incident.mended_by else OPEN_BADGE,
        *((triage_badge(incident.triage),) if incident.triage else ()),
    )


def tell_briefly(incident: Incident) -> str:
    """Say an incident in one line: what moved, what moved with it, what is known and what to do."""
    lead = incident.lead
    doubt = f"{OUTCOME_BADGES[lead.outcome].word}? " if lead.state is State.PROVISIONAL else ""
    mended = f"mended {name_gap(incident.mended_by[0])}" if incident.mended_by else ""
    parts = (
        f"{doubt}{_tell_movement(incident)}",
        *_tell_price(incident),
        mended,
        *(f"{name_watch(one.key)}: {evidence_words(one)}" for one in incident.evidence if one.follows),
        *(f"may explain it too: {explanation_words(one)}" for one in incident.explanations[:1]),
        triage_words(incident.triage) if incident.triage else "",
        *(say(reply) for change, reply in incident.replies if change == lead),
        tell_missing(incident),
    )
    return " ".join(sentence(part) for part in parts if part)


def list_news(incidents: Iterable[Incident]) -> Iterator[str]:
    """Say each incident that is news in one line, for the terminal."""
    for incident in incidents:
        if incident.is_news:
            told = ", ".join(badge.word.lower() for badge in view_badges(incident))
            name = f"{incident.name} ({told}): {name_incident(incident)}"
            yield f"Incident {name}. {tell_briefly(incident)}"


def _tell_movement(incident: Incident) -> str:
    return f"{view_change_briefly(incident.lead)}; {_count_further(incident)}"


def _tell_price(incident: Incident) -> tuple[str, ...]:
    return (incident.price_move.text,) if incident.price_move else ()


def _count_further(incident: Incident) -> str:
    further = len({one.series.key for one in incident.changes} - {incident.lead.series.key})
    if not further:
        return "no further series moved with it"
    return f"{count(further, 'further series', 'further series')} moved with it"


def _view_members(
    changes: Sequence[ChangePoint], trials: Mapping[TrialId, TrialHead]
) -> tuple[MemberRow, ...]:
    return tuple(
        MemberRow(
            title=series_words(change.series.key),
            experiment=trials[change.first_after.trial].experiment,
            page=links.series_page(change.series.key),
            between=name_gap(change),
            before=quantity(change.before, change.series.key.metric),
            after=quantity(change.after, change.series.key.metric),
            change=percent(change.relative_change),
            p_value=probability(change.p_value),
            outcome=OUTCOME_BADGES[change.outcome],
            state=STATE_BADGES[change.state],
        )
        for change in changes
    )


def _tell_story(incident: Incident, lead: JudgedSeries) -> tuple[Event, ...]:
    """Tell an incident from the last point without it to its mending."""
    change = incident.lead
    return (
        Event(
            when=name_night(change.last_before),
            what=f"Last point without it, {change.last_before.release.version}",
            page=links.trial_page(change.last_before.trial),
        ),
        Event(
            when=name_night(change.first_after),
            what=f"First point with it, {change.first_after.release.version}",
            page=links.trial_page(change.first_after.trial),
        ),
        *_tell_alert(incident, lead),
        *(
            Event(
                when=moment(reply.answer.finished_at).text,
                what=sentence(say(reply)),
                page=links.comparison_page(reply.answer.comparison),
            )
            for told, reply in incident.replies
            if told == change
        ),
        *(
            Event(
                when=name_night(one.first_after),
                what=f"{OUTCOME_BADGES[one.outcome].word} {percent(one.relative_change)}: "
                f"{series_words(one.series.key)}, {one.first_after.release.version}",
                page=links.trial_page(one.first_after.trial),
            )
            for one in incident.mended_by
        ),
    )


def _tell_alert(incident: Incident, lead: JudgedSeries) -> Iterator[Event]:
    """Tell on which nights the change of the lead was seen, as far back as the nights were replayed."""
    change, nights = incident.lead, nights_of(lead.series)
    at = {"earliest": change.earliest, "latest": change.latest}
    rises = change.after > change.before
    alert = next((one for one in lead.alerts if may_be(one, rises=rises, **at)), None)
    if alert is None:
        return
    for night, told in (
        (alert.provisional_at, "Told as provisional"),
        (alert.confirmed_at, "Told as confirmed"),
    ):
        if night is not None and not may_be_older(lead.series, night):
            yield Event(when=night_words(nights[night]), what=told)
