"""Events: what of each incident is to be reported now, given what was reported before. Pure.

An incident is reported when it first shows, when it is confirmed, when it is resolved and when it is
withdrawn; and again where it comes back after one of the last two. Nothing else is an event: what
somebody decides in triage.yaml needs no message, and what was confirmed does not become new again
because one night doubts it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from reports.notifications.fingerprints import match_names
from reports.notifications.notification import Notification, NotificationStatus


class EventKind(StrEnum):
    """What happened to an incident."""

    NEW = "new"
    CONFIRMED = "confirmed"
    RESOLVED = "mended"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedIncident:
    """What was reported last of an incident, with its title and its handles at that time."""

    standing: NotificationStatus
    title: str
    handles: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentEvent:
    """What happened to an incident. `notice` is None where the judgement no longer knows of it."""

    kind: EventKind
    title: str
    notice: Notification | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SentLogUpdate:
    """What to write down of an incident, once its event has been reported; None: that is at once.

    `before` is the name under which it was reported so far, empty if it was not.
    """

    name: str
    before: str
    sent: ReportedIncident
    event: IncidentEvent | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationPlan:
    """All updates in the order of the notices; `unknown` are titles of which nothing can be said.

    Those were reported of points that the history does not hold (any more): it may be another history.
    """

    updates: tuple[SentLogUpdate, ...]
    unknown: tuple[str, ...]


def plan_events(
    notices: Sequence[Notification],
    sent: Mapping[str, ReportedIncident],
    find_known: Callable[[], Collection[str]],
) -> NotificationPlan:
    """Plan what to report. `find_known` gives every handle that a change in the history can have."""
    same = match_names(
        {name: one.handles for name, one in sent.items()},
        [(one.name, one.handles) for one in notices],
    )
    updates = [
        update
        for notice in notices
        if (update := _follow(notice, same.get(notice.name, ""), sent)) is not None
    ]
    gone = {
        name: one for name, one in sent.items() if name not in same.values() and one.standing.is_open
    }
    known = find_known() if gone else ()
    current = {handle for notice in notices for handle in notice.handles}
    updates += _withdraw(gone, known, current)
    return NotificationPlan(
        updates=tuple(updates),
        unknown=tuple(one.title for one in gone.values() if not _is_held(one, known)),
    )


def _follow(
    notice: Notification, before: str, sent: Mapping[str, ReportedIncident]
) -> SentLogUpdate | None:
    """Return what a notice adds to what was reported of it; None where nothing was and nothing is."""
    last = sent[before].standing if before else None
    if last is None and not notice.standing.is_open:
        return None
    is_doubt = (
        last is NotificationStatus.CONFIRMED and notice.standing is NotificationStatus.PROVISIONAL
    )
    standing = NotificationStatus.CONFIRMED if is_doubt else notice.standing
    kind = None if standing is last else _find_kind(standing, last)
    return SentLogUpdate(
        name=notice.name,
        before=before,
        sent=ReportedIncident(standing=standing, title=notice.title, handles=notice.handles),
        event=IncidentEvent(kind=kind, title=notice.title, notice=notice) if kind else None,
    )


def _find_kind(standing: NotificationStatus, last: NotificationStatus | None) -> EventKind | None:
    was_open = last is not None and last.is_open
    match standing:
        case NotificationStatus.PROVISIONAL:
            return EventKind.NEW
        case NotificationStatus.CONFIRMED:
            return EventKind.CONFIRMED
        case NotificationStatus.RESOLVED:
            return EventKind.RESOLVED if was_open else None
        case NotificationStatus.WITHDRAWN | NotificationStatus.CLEARED:
            return EventKind.WITHDRAWN if was_open else None
        case NotificationStatus.DECIDED:
            return None


def _withdraw(
    gone: Mapping[str, ReportedIncident], known: Collection[str], current: Collection[str]
) -> Iterator[SentLogUpdate]:
    """Withdraw what is no longer seen, unless it is reported as a part of another incident now."""
    for name, one in gone.items():
        if not _is_held(one, known):
            continue
        is_joined = not set(one.handles).isdisjoint(current)
        sent = ReportedIncident(
            standing=NotificationStatus.WITHDRAWN, title=one.title, handles=one.handles
        )
        event = IncidentEvent(kind=EventKind.WITHDRAWN, title=one.title, notice=None)
        yield SentLogUpdate(name=name, before=name, sent=sent, event=None if is_joined else event)


def _is_held(one: ReportedIncident, known: Collection[str]) -> bool:
    return any(handle in known for handle in one.handles)
