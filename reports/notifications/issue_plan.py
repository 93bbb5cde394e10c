"""What to do about the issues of a repository, from what is there and what is to be reported. Pure.

There is one issue for each incident. It is found by a marker in its first line and by its author, as
anybody can write the marker; so GitHub itself remembers what was said, and a lost file doubles nothing.
The marker holds the handles of the incident: its name may move, and it stays the same issue.

An issue that somebody closed stays closed while its incident stays open: that is a decision. One that
we closed is opened again when its incident comes back.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from reports.notifications.fingerprints import match_names
from reports.notifications.notification import (
    GONE,
    STANDING_BADGES,
    Notification,
    NotificationStatus,
    cause_words,
)
from reports.wording.markdown import MARKED_NAME, block, clean, code, escape, first_line
from reports.wording.wording import moment

_MARKER = re.compile(
    rf"<!-- knickpoint-incident:(?P<scope>{MARKED_NAME.pattern}) name=(?P<name>[A-Za-z0-9._-]{{1,64}})"
    r" standing=(?P<standing>[a-z]+) handles=(?P<handles>[0-9a-f.]*)"
    r" content=(?P<content>[0-9a-f]{16}) -->"
)
_MOST_TITLE = 200
"""GitHub takes 256."""
_MOST_TEXT = 4000
_MOST_STEPS = 40
_NOT_PLANNED = frozenset(
    {NotificationStatus.DECIDED, NotificationStatus.CLEARED, NotificationStatus.WITHDRAWN}
)
_JOINED = "It is reported with another incident now, in an issue of its own."
_TWICE = (
    "The same incident has an older issue: {number}. This one is closed, so that it is reported once."
)

Ending: TypeAlias = Literal["completed", "not_planned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingIssue:
    """An issue of the repository. `number` grows with time."""

    number: int
    author: str
    title: str
    body: str
    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Write a new issue."""

    title: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Rewrite an issue. `is_open` is None where it is left open or closed, as it is."""

    number: int
    title: str
    body: str
    is_open: bool | None = None
    ending: Ending = "completed"


Step: TypeAlias = Open | Change


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuePlan:
    """All steps; `unknown` are titles of open issues about which nothing can be said."""

    steps: tuple[Step, ...]
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Own:
    """An issue of ours with what its marker says."""

    issue: ExistingIssue
    name: str
    standing: NotificationStatus
    handles: tuple[str, ...]


def plan_issues(
    existing: Sequence[ExistingIssue],
    notices: Sequence[Notification],
    find_known: Callable[[], Collection[str]],
    *,
    author: str,
    scope: str,
    site_url: str = "",
) -> IssuePlan:
    """Describe what to do, given all issues of the repository; nothing for what is reported already.

    `find_known` gives every handle that a change in the history can have: of an issue about other
    points, which may be of another history, nothing is said.
    """
    own, repeated = _find_own(existing, author, scope)
    same = match_names(
        {name: one.handles for name, one in own.items()}, [(one.name, one.handles) for one in notices]
    )
    steps: list[Step] = []
    for notice in notices:
        before = own.get(same.get(notice.name, ""))
        steps += _follow(notice, before, scope, site_url)
    left = [one for name, one in own.items() if name not in same.values() and one.standing.is_open]
    known = find_known() if left else ()
    current = {handle for notice in notices for handle in notice.handles}
    held = [one for one in left if any(handle in known for handle in one.handles)]
    steps += (_withdraw(one, current, scope) for one in held)
    steps += (_close_repeated(one, first, scope) for one, first in repeated if one.issue.is_open)
    return IssuePlan(
        steps=tuple(steps),
        unknown=tuple(one.issue.title for one in left if one not in held and one.issue.is_open),
    )


def _find_own(
    existing: Sequence[ExistingIssue], author: str, scope: str
) -> tuple[Mapping[str, _Own], Sequence[tuple[_Own, _Own]]]:
    """Return our issues by incident, the oldest of each, and the others with the one they repeat."""
    own: dict[str, _Own] = {}
    repeated = []
    for issue in sorted(existing, key=lambda one: one.number):
        marker = _MARKER.match(first_line(issue.body))
        if issue.author != author or marker is None or marker["scope"] != scope:
            continue
        if marker["standing"] not in set(NotificationStatus):
            continue
        handles = tuple(filter(None, marker["handles"].split(".")))
        one = _Own(issue, marker["name"], NotificationStatus(marker["standing"]), handles)
        if one.name in own:
            repeated.append((one, own[one.name]))
        else:
            own[one.name] = one
    return own, repeated


def _follow(notice: Notification, before: _Own | None, scope: str, site_url: str) -> Iterator[Step]:
    standing = notice.standing
    if before is None:
        if standing.is_open:
            body = render_issue(notice, scope=scope, site_url=site_url)
            yield Open(title=name_issue(notice), body=body)
        return
    title, body = name_issue(notice), render_issue(notice, scope=scope, site_url=site_url)
    is_reported = first_line(body) == first_line(before.issue.body) and title == before.issue.title
    is_open: bool | None = None
    if standing.is_open and not before.standing.is_open and not before.issue.is_open:
        is_open = True
    if not standing.is_open and before.standing.is_open and before.issue.is_open:
        is_open = False
    if not is_reported or is_open is not None:
        yield Change(
            number=before.issue.number,
            title=title,
            body=body,
            is_open=is_open,
            ending="not_planned" if standing in _NOT_PLANNED else "completed",
        )


def _withdraw(one: _Own, current: Collection[str], scope: str) -> Change:
    """Close the issue of what is no longer seen; what it said stays below."""
    is_joined = not set(one.handles).isdisjoint(current)
    said = f"{escape(_JOINED if is_joined else GONE)}\n\n{_below_first_line(one.issue.body)}"
    body = _mark(said, one.name, NotificationStatus.WITHDRAWN, one.handles, scope)
    return _close(one, body)


def _close_repeated(one: _Own, first: _Own, scope: str) -> Change:
    said = f"{_TWICE.format(number=f'#{first.issue.number}')}\n\n{_below_first_line(one.issue.body)}"
    # Under a name of its own, so that it is not found as the issue of the incident again.
    return _close(
        one, _mark(said, f"{one.name}.{one.issue.number}", NotificationStatus.WITHDRAWN, (), scope)
    )


def _close(one: _Own, body: str) -> Change:
    is_open = False if one.issue.is_open else None
    title = one.issue.title
    for standing in (NotificationStatus.PROVISIONAL, NotificationStatus.CONFIRMED):
        word = STANDING_BADGES[standing].word.lower()
        title = title.replace(
            f"({word})", f"({STANDING_BADGES[NotificationStatus.WITHDRAWN].word.lower()})"
        )
    return Change(
        number=one.issue.number, title=title, body=body, is_open=is_open, ending="not_planned"
    )


def name_issue(notice: Notification) -> str:
    """Return the title of an issue: plain text, in which GitHub reads no markup."""
    return clean(
        f"{notice.outcome.word} ({notice.badge.word.lower()}): {notice.title}"
        f" – {notice.system}, {notice.between}",
        _MOST_TITLE,
    )


def render_issue(notice: Notification, *, scope: str, site_url: str = "") -> str:
    """Write the body of an issue: the marker, how it stands, what is known, what to do, its story."""
    cause = f", {escape(cause_words(notice))}" if notice.cause else ""
    page = f"\n[Page of the incident]({site_url.rstrip('/')}/{notice.page})\n" if site_url else ""
    command = f"{block(notice.command)}\n\n" if notice.command else ""
    steps = "\n".join(
        f"- {moment(step.at).text}: {escape(step.text, _MOST_TEXT)}"
        for step in notice.steps[-_MOST_STEPS:]
    )
    text = (
        f"**{notice.outcome.symbol} {notice.outcome.word}**, {notice.badge.symbol}"
        f" {notice.badge.word.lower()}{cause}\n\n"
        f"{escape(notice.summary, _MOST_TEXT)}\n\n"
        f"Experiment {code(notice.experiment, _MOST_TITLE)}"
        f" of {code(notice.system, _MOST_TITLE)}\n{page}\n"
        f"**What to do:** {escape(notice.advice, _MOST_TEXT)}\n\n{command}"
        f"**History**\n\n{steps}\n\n"
        f"<sub>Incident {code(notice.name)}. Knickpoint keeps this text up to date and writes over"
        " changes to it; comments stay.</sub>\n"
    )
    return _mark(text, notice.name, notice.standing, notice.handles, scope)


def _mark(
    text: str, name: str, standing: NotificationStatus, handles: Sequence[str], scope: str
) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return (
        f"<!-- knickpoint-incident:{scope} name={name} standing={standing}"
        f" handles={'.'.join(handles)} content={digest} -->\n{text}"
    )


def _below_first_line(body: str) -> str:
    return body.partition("\n")[2].strip()
