"""What needs attention: each thing that somebody should look at, in one line, the worst first."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from analysis.detection.detection import ChangeState
from analysis.detection.verdict import Outcome
from analysis.judging.incidents import Cause, Incident
from analysis.judging.judgement import Judgement
from analysis.orchestration.setting_words import NO_SETTINGS, ChangedSettings
from perf.model.nights import Night
from perf.model.results import SeriesKey, TrialHead, TrialId, TrialStatus
from perf.model.rules import TriageEntry
from reports.wording import links
from reports.wording.changes import WITHDRAWN_FOR_NIGHTS, triage_words, view_retracted
from reports.wording.incidents import describe_briefly, view_state
from reports.wording.series_list import experiment_of
from reports.wording.series_resets import describe_reset, find_chain, split_workload
from reports.wording.wording import (
    BEGINS_BADGE,
    EXPIRED_BADGE,
    LEFT_OUT_BADGE,
    MISSING_BADGE,
    OUTCOME_BADGES,
    RETRACTED_BADGE,
    STATUS_BADGES,
    Badge,
    count,
    first_sentence,
    heading,
    night_words,
    one_sentence,
    sentence,
    series_words,
)

_NEXT = {
    TrialStatus.FAILED: "Open the trial: its log says where it stopped.",
    TrialStatus.INVALID: "Open the trial: it says which limit was passed, and by how much.",
}


HOST_REASONS = {
    "host-busy": "because other programs used the CPU",
    "host-stolen": "because a hypervisor gave CPU time to others",
    "host-throttled": "because a CPU quota held processes back",
    "clock-stepped": "because a clock was set while they ran",
    "clock-offset": "because clocks of client hosts were too far apart",
}
"""By kind of reason what the hosts did to trials; any other kind says nothing of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A bundle on disk that the history does not hold; `fault` is empty if it can be read."""

    name: str
    fault: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """One thing that somebody should look at; `page` is empty where no page says more.

    `todo` says what to do next. It is faded where nobody has to do anything (any more).
    """

    badge: Badge
    subject: str
    page: str
    text: str
    more: tuple[Badge, ...] = ()
    todo: str = ""
    is_faded: bool = False


def is_trouble(trial: TrialHead) -> bool:
    """Return whether a trial gave no result."""
    return trial.status is not TrialStatus.COMPLETED


def view_left_out(left_out: Sequence[LeftOut]) -> tuple[Attention, ...]:
    """Report each bundle that the history lacks and cannot take, then all the others at once."""
    sound = [one.name for one in left_out if not one.fault]
    others = f" and {len(sound) - 1:,} more" if len(sound) > 1 else ""
    rest = Attention(
        badge=LEFT_OUT_BADGE,
        subject="".join((*sound[:1], others)),
        page="",
        text="Sound, but not appended yet: run `knickpoint append`, then `knickpoint report`.",
    )
    return (
        *(
            Attention(badge=LEFT_OUT_BADGE, subject=one.name, page="", text=one_sentence(one.fault))
            for one in left_out
            if one.fault
        ),
        *((rest,) if sound else ()),
    )


def first_reason(trial: TrialHead) -> str:
    """Describe why a trial gave no result: the first reason, and how many more there are.

    What the hosts did comes first: it may have made a client late and iterations differ.
    """
    reasons = sorted(trial.reasons, key=lambda one: one.kind not in HOST_REASONS)
    first = first_sentence(reasons[0].text if reasons else "")
    more = len(trial.reasons) - 1
    return f"{first} ({count(more, 'more reason')})" if more > 0 else first


def view_troubles(recent: Iterable[TrialHead]) -> tuple[Attention, ...]:
    """Describe of each trial that gave no result, failed ones first."""
    troubled = [trial for trial in recent if is_trouble(trial)]
    return tuple(
        Attention(
            badge=STATUS_BADGES[trial.status],
            subject=f"{trial.experiment} at {trial.release.version}",
            page=links.trial_page(trial.id),
            text=first_reason(trial),
            todo=_NEXT[trial.status],
        )
        for trial in sorted(troubled, key=lambda trial: trial.status is not TrialStatus.FAILED)
    )


def view_missing(plan: Night | None, by_id: Mapping[TrialId, TrialHead]) -> tuple[Attention, ...]:
    """Describe of each trial that was planned and never came."""
    return tuple(
        Attention(
            badge=MISSING_BADGE,
            subject=f"{planned.experiment} at {planned.version}",
            page="",
            text=f"Planned for {night_words(plan.id)}, but no trial has come of it so far.",
            todo="See where the night stopped; started again within 20 hours, it goes on from there.",
        )
        for planned in (plan.trials if plan else ())
        if plan and planned.id not in by_id
    )


def view_incidents(
    incidents: Iterable[Incident],
    by_id: Mapping[TrialId, TrialHead],
    settings: ChangedSettings = NO_SETTINGS,
) -> tuple[Attention, ...]:
    """Describe of each incident in one row, confirmed regressions first, then as they are ordered.

    `settings` are those that changed, by what they explain.
    """
    return tuple(
        Attention(
            badge=OUTCOME_BADGES[incident.lead.outcome],
            subject=f"{by_id[incident.lead.first_after.trial].experiment}: "
            f"{series_words(incident.lead.series.key)}",
            page=links.incident_page(incident.name),
            text=describe_briefly(incident, settings),
            more=(view_state(incident, by_id),),
            is_faded=not incident.is_news,
        )
        for incident in sorted(incidents, key=_urgency)
    )


def _urgency(incident: Incident) -> tuple[bool, ...]:
    lead = incident.lead
    return (
        not incident.is_news,
        incident.cause is Cause.TESTBED,
        lead.outcome is not Outcome.REGRESSED,
        lead.state is not ChangeState.CONFIRMED,
    )


def view_withdrawals(judgement: Judgement, by_id: Mapping[TrialId, TrialHead]) -> tuple[Attention, ...]:
    """Describe of each alert that was withdrawn lately, so that nobody goes on looking for it."""
    return tuple(
        Attention(
            badge=RETRACTED_BADGE,
            subject=f"{experiment_of(judged, by_id)}: {series_words(judged.series.key)}",
            page=f"{links.series_page(judged.series.key)}#withdrawn",
            text=f"Reported as {row.state.word.lower()} {row.reported} ({row.change}, {row.between}), "
            f"retracted in {row.withdrawn}: later points do not confirm it.",
            is_faded=True,
        )
        for judged in judgement.series
        for row in view_retracted(judged, newest_nights=WITHDRAWN_FOR_NIGHTS)
    )


def view_series_resets(judgement: Judgement, tonight: Iterable[TrialHead]) -> tuple[Attention, ...]:
    """Tell once of each changed workload whose first trial came tonight: its series begin anew."""
    trials = {trial.id for trial in tonight}
    judged = {one.series.key: one for one in judgement.series}
    begun: dict[tuple[str, str], list[SeriesKey]] = {}
    chain = find_chain(one.series for one in judged.values())
    for key, before in chain.before.items():
        first = min(judged[key].series.points, key=lambda point: point.started_at)
        if first.trial in trials:
            begun.setdefault((before.workload, key.workload), []).append(key)
    return tuple(
        Attention(
            badge=BEGINS_BADGE,
            subject=split_workload(keys[0])[0],
            page=links.series_page(keys[0]),
            text=f"{heading(describe_reset(chain.before[keys[0]], keys[0]))} "
            f"{count(len(keys), 'series', 'series')} {'begins' if len(keys) == 1 else 'begin'} anew; "
            "until they have points enough, it is not known whether the database changed with it.",
        )
        for keys in begun.values()
    )


def view_expired(triage: Iterable[TriageEntry], today: date) -> tuple[Attention, ...]:
    """Describe of each triage entry that no longer holds: what it covered is reported again."""
    return tuple(
        Attention(
            badge=EXPIRED_BADGE,
            subject=entry.name,
            page="",
            text=f"{sentence(triage_words(entry))}",
            todo="Renew it or take it out of triage.yaml.",
        )
        for entry in triage
        if entry.expires is not None and entry.expires < today
    )
