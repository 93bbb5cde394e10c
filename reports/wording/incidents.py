"""How an incident is said on more than one page."""

import shlex
from collections.abc import Iterable, Iterator

from analysis.detection.detection import ChangeState
from analysis.judging.description import say_price, say_reply
from analysis.judging.incidents import Incident
from reports.wording.changes import (
    evidence_words,
    name_gap,
    name_incident,
    name_watch,
    say_explanation,
    triage_words,
    view_change_briefly,
)
from reports.wording.echoes import split_changes
from reports.wording.wording import (
    CAUSE_BADGES,
    MENDED_BADGE,
    OPEN_BADGE,
    OUTCOME_BADGES,
    STATE_BADGES,
    Badge,
    count,
    sentence,
    triage_badge,
)


def triage_command(name: str, state: str = "acknowledged") -> str:
    """Give the command that writes down what was decided about an incident, to be filled in."""
    return (
        f"knickpoint triage add {shlex.quote(name)} --state {state} "
        '--owner OWNER --note "WHY" --expires YYYY-MM-DD'
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
    doubt = f"{OUTCOME_BADGES[lead.outcome].word}? " if lead.state is ChangeState.PROVISIONAL else ""
    movement, *price = tell_movement(incident)
    mended = f"resolved {name_gap(incident.mended_by[0])}" if incident.mended_by else ""
    parts = (
        f"{doubt}{movement}",
        *price,
        mended,
        *(f"{name_watch(one.key)}: {evidence_words(one)}" for one in incident.evidence if one.follows),
        *(say_explanation(one, incident) for one in incident.explanations[:1]),
        triage_words(incident.triage) if incident.triage else "",
        *(say_reply(reply) for change, reply in incident.replies if change == lead),
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


def tell_movement(incident: Incident) -> tuple[str, ...]:
    """Say what moved, how many moved with it, and the price that did it, if one did."""
    movement = f"{view_change_briefly(incident.lead)}; {_count_further(incident)}"
    return (movement, *((say_price(incident.price_move),) if incident.price_move else ()))


def _count_further(incident: Incident) -> str:
    own, _ = split_changes(incident)
    further = len({one.series.key for one in own} - {incident.lead.series.key})
    if not further:
        return "no further series moved with it"
    return f"{count(further, 'further series', 'further series')} moved with it"


def tell_missing(incident: Incident) -> str:
    """Say what side by side is missing, of an incident that is news and not settled."""
    lead = incident.lead
    if incident.question:
        return "An interleaved comparison on the same hosts would settle it sooner than nights."
    is_within = lead.last_before.release == lead.first_after.release
    if incident.is_news and is_within and lead.state is ChangeState.PROVISIONAL:
        return "There are no two releases to compare here: only more nights can tell."
    return ""
