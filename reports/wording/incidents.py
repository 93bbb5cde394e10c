"""How an incident is said on more than one page."""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile

from analysis.detection.detection import ChangePoint, ChangeState
from analysis.judging.description import say_price, say_reply
from analysis.judging.echoes import split_changes
from analysis.judging.incidents import Cause, Incident
from analysis.orchestration.setting_words import NO_SETTINGS, ChangedSettings
from perf.model.results import TrialHead, TrialId, TrialStatus
from reports.wording.changes import (
    evidence_words,
    name_gap,
    name_incident,
    name_watch,
    say_explanation,
    triage_words,
    view_change_briefly,
)
from reports.wording.wording import (
    OUTCOME_BADGES,
    STATE_BADGES,
    Badge,
    count,
    night_name,
    sentence,
)

_CAUSES = {
    Cause.DATABASE: "database",
    Cause.CONFIGURATION: "config change",
    Cause.TESTBED: "testbed",
    Cause.UNKNOWN: "cause unknown",
}
_MOST_COMMON = 2
"""Nights in which several databases moved."""


def triage_command(name: str, state: str = "acknowledged") -> str:
    """Return the command that writes down what was decided about an incident, to be filled in."""
    return (
        f"knickpoint triage add {shlex.quote(name)} --state {state} "
        '--owner OWNER --note "WHY" --expires YYYY-MM-DD'
    )


def view_state(incident: Incident, by_id: Mapping[TrialId, TrialHead]) -> Badge:
    """Describe how an incident stands in one line, with the symbol of how sure it is."""
    badge = STATE_BADGES[incident.lead.state]
    return Badge(kind=badge.kind, symbol=badge.symbol, word=say_state(incident, by_id))


def say_state(incident: Incident, by_id: Mapping[TrialId, TrialHead]) -> str:
    """Describe in one line how sure it is, what made it, whether it is there, what was decided."""
    return " · ".join(
        (
            STATE_BADGES[incident.lead.state].word,
            _CAUSES[incident.cause],
            "fixed" if incident.fixed_by else _say_presence(incident, by_id),
            *((incident.triage.state.value,) if incident.triage else ()),
        )
    )


def _say_presence(incident: Incident, by_id: Mapping[TrialId, TrialHead]) -> str:
    """State that a change is still there; where no newer night can tell, in which it was seen last.

    `by_id` is in the order of the trials' starts.
    """
    newest = incident.lead.series.points.newest()
    experiment = by_id[newest.trial].experiment
    since = takewhile(lambda one: one.started_at > newest.started_at, reversed([*by_id.values()]))
    later = [
        head.status
        for head in since
        if head.experiment == experiment and head.night not in {"", newest.night}
    ]
    if not newest.night or not later or TrialStatus.COMPLETED in later:
        return "still there"
    return f"still there on {night_name(newest.night)}, the last valid night"


def describe_briefly(incident: Incident, settings: ChangedSettings = NO_SETTINGS) -> str:
    """Say an incident in one line: what moved, what moved with it, what is known and what to do.

    `settings` are those that changed, by what they explain.
    """
    lead = incident.lead
    doubt = f"{OUTCOME_BADGES[lead.outcome].word}? " if lead.state is ChangeState.PROVISIONAL else ""
    movement, *price = describe_movement(incident)
    resolved = f"resolved {name_gap(incident.fixed_by[0])}" if incident.fixed_by else ""
    parts = (
        f"{doubt}{movement}",
        *price,
        resolved,
        *(f"{name_watch(one.key)}: {evidence_words(one)}" for one in incident.evidence if one.follows),
        *(say_explanation(one, incident, settings) for one in incident.explanations[:1]),
        triage_words(incident.triage) if incident.triage else "",
        *(say_reply(reply) for change, reply in incident.replies if change == lead),
        describe_missing(incident),
    )
    return " ".join(sentence(part) for part in parts if part)


def list_news(
    incidents: Iterable[Incident],
    by_id: Mapping[TrialId, TrialHead],
    settings: ChangedSettings = NO_SETTINGS,
) -> Iterator[str]:
    """Say each incident that is news in one line, for the terminal."""
    for incident in incidents:
        if incident.is_news:
            state = say_state(incident, by_id)
            name = f"{incident.name} ({state[:1].lower()}{state[1:]}): {name_incident(incident)}"
            yield f"Incident {name}. {describe_briefly(incident, settings)}"


def say_common_moves(incidents: Iterable[Incident], of: Incident | None = None) -> str:
    """Describe in which of the newest nights several databases moved on one testbed; empty if in none.

    With `of` only the nights in which this incident moved.
    """
    moved: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for incident in incidents:
        for change in incident.changes if incident.is_news else ():
            moved[_when_and_where(change)].add(change.series.key.system)
    asked = moved if of is None else {_when_and_where(change) for change in of.changes}
    nights = [
        (night_name(place[0]), len(systems))
        for place, systems in sorted(moved.items(), reverse=True)
        if place[0] and len(systems) > 1 and place in asked
    ]
    if not nights:
        return ""
    (newest, many), *older = nights[:_MOST_COMMON]
    others = "".join(f", and {number} in {night}" for night, number in older)
    return f"{many} databases moved in the same night, {newest}{others}: look at the testbed first."


def _when_and_where(change: ChangePoint) -> tuple[str, str]:
    return change.first_after.night, change.series.key.testbed_class


def describe_movement(incident: Incident) -> tuple[str, ...]:
    """Describe what moved, how many moved with it, and the price that did it, if one did."""
    movement = f"{view_change_briefly(incident.lead)}; {_count_further(incident)}"
    return (movement, *((say_price(incident.price_move),) if incident.price_move else ()))


def _count_further(incident: Incident) -> str:
    own, _ = split_changes(incident)
    further = len({one.series.key for one in own} - {incident.lead.series.key})
    if not further:
        return "no further series moved with it"
    return f"{count(further, 'further series', 'further series')} moved with it"


def describe_missing(incident: Incident) -> str:
    """Describe what side by side is missing, of an incident that is news and not settled."""
    lead = incident.lead
    if incident.question:
        return "An interleaved comparison on the same hosts would settle it sooner than nights."
    is_within = lead.last_before.release == lead.first_after.release
    if incident.is_news and is_within and lead.state is ChangeState.PROVISIONAL:
        return "There are no two releases to compare here: only more nights can decide."
    return ""
