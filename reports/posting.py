"""What to do about the comment and the check run, from what is there and what is to be told. Pure.

One comment is kept per pull request and name ("sticky"). It is found by a marker in its first line, and
by its author: anybody can write the marker. An edit sends no mail, so a state that got worse becomes a
new comment, and the old one is minimised; the same or a better state is edited in place.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from analysis.comparing.results import ComparisonFile
from analysis.verdict import Outcome
from reports.markdown import clean

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,49}")
"""What a name may be: it stands in an HTML comment, and must not be able to end it."""
_MARKER = re.compile(
    rf"<!-- knickpoint:(?P<name>{NAME.pattern}) state=(?P<state>[a-z]+)"
    r" sha=(?P<sha>[0-9a-f]{7,64}) content=(?P<content>[0-9a-f]{16}) -->"
)
_TITLE_LENGTH = 200
_SEVERITY = {
    Outcome.UNCHANGED: 0,
    Outcome.IMPROVED: 0,
    Outcome.UNDECIDED: 1,
    Outcome.INVALID: 2,
    Outcome.REGRESSED: 3,
}
"""Worse is news. An improvement is none here: nobody has to act, and an edit tells it."""

Conclusion: TypeAlias = Literal["success", "neutral", "failure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """A comment on the pull request. `id` grows with time."""

    id: int
    author: str
    body: str
    is_minimised: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is to be told: `text` (Markdown) about the commit `sha`, under a name.

    `head` is the head of the pull request now; where it is another commit, the comment says so.
    """

    name: str
    outcome: Outcome
    sha: str
    head: str
    text: str

    @property
    def body(self) -> str:
        """Give the comment as it is sent: the marker, a warning if the head moved on, the text."""
        warning = (
            ""
            if self.sha == self.head
            else f"> **About an older commit:** this is about {self.sha[:12]}; the head of the pull"
            f" request is {self.head[:12]} by now.\n\n"
        )
        text = f"{warning}{self.text}"
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        marker = f"<!-- knickpoint:{self.name} state={self.outcome} sha={self.sha} content={digest} -->"
        return f"{marker}\n{text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """Write a new comment: subscribers get a mail."""

    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Rewrite a comment in place: no mail."""

    id: int
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimise:
    """Fold a comment away as outdated."""

    id: int


Step: TypeAlias = Post | Edit | Minimise


def find_own(comments: Sequence[Existing], name: str, author: str) -> tuple[Existing, ...]:
    """Give the comments under this name that `author` wrote, oldest first."""
    written = (one for one in comments if one.author == author)
    named = (one for one in written if (_read_marker(one.body) or {}).get("name") == name)
    return tuple(sorted(named, key=lambda one: one.id))


def plan_comment(
    own: Sequence[Existing], message: Message, *, always: bool = False
) -> tuple[Step, ...]:
    """Say what to do, given our comments under this name, oldest first; nothing if all is told.

    The newest comment is kept, all others are minimised: two runs at the same time may have left two.
    A result about an older commit does not replace one about the head.
    """
    if not own:
        silent = message.outcome is Outcome.UNCHANGED and not always
        return () if silent else (Post(body=message.body),)
    newest = own[-1]
    old = tuple(Minimise(id=one.id) for one in own[:-1] if not one.is_minimised)
    told = _read_marker(newest.body) or {}
    if told.get("sha") == message.head != message.sha or _first_line(newest.body) == _first_line(
        message.body
    ):
        return old
    if _SEVERITY[message.outcome] > _severity(told.get("state", "")):
        return (Post(body=message.body), *old, Minimise(id=newest.id))
    return (Edit(id=newest.id, body=message.body), *old)


def _first_line(body: str) -> str:
    return body.partition("\n")[0].strip()


def _read_marker(body: str) -> dict[str, str] | None:
    found = _MARKER.fullmatch(_first_line(body))
    return found.groupdict() if found else None


def _severity(state: str) -> int:
    return _SEVERITY[Outcome(state)] if state in set(Outcome) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check run as it is, or as it should be. `conclusion` is None while it is in progress.

    `title` is plain text, `summary` Markdown.
    """

    name: str
    sha: str
    conclusion: Conclusion | None
    title: str
    summary: str
    page_url: str = ""

    @property
    def title_of_run(self) -> str:
        """Give the name under which GitHub lists it, and a branch protection requires it."""
        return f"knickpoint / {self.name}"

    @property
    def external_id(self) -> str:
        """Give the mark by which it is found again."""
        return f"knickpoint:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingRun:
    """A check run that GitHub has on the commit."""

    id: int
    external_id: str
    conclusion: str | None
    title: str
    summary: str
    page_url: str = ""


@dataclass(frozen=True, slots=True)
class Create:
    """Make a check run."""


@dataclass(frozen=True, slots=True)
class Update:
    """Rewrite a check run."""

    id: int


def plan_check(runs: Sequence[ExistingRun], check: Check) -> Create | Update | None:
    """Say what to do, given the check runs of that name on the commit; None if nothing.

    A start never touches a run that is finished: measured again, the commit gets a run of its own, as
    GitHub does it for a job that runs again.
    """
    own = [one for one in runs if one.external_id == check.external_id]
    newest = max(own, key=lambda one: one.id, default=None)
    if newest is None:
        return Create()
    if check.conclusion is None:
        return None if newest.conclusion is None else Create()
    wanted = (check.conclusion, check.title, check.summary.strip())
    there = (newest.conclusion, newest.title, newest.summary.strip())
    # Where we name no page, GitHub names one of its own.
    is_told = there == wanted and check.page_url in {"", newest.page_url}
    return None if is_told else Update(newest.id)


def start_check(name: str, sha: str, page_url: str = "") -> Check:
    """Give the check run of a comparison that is being measured."""
    return Check(
        name=name,
        sha=sha,
        conclusion=None,
        title="Measuring",
        summary="Base and head are measured side by side. The result will stand here.",
        page_url=page_url,
    )


def conclude_check(
    content: ComparisonFile, message: Message, headline: str, page_url: str = ""
) -> Check:
    """Give the check run of a result: its title is the verdict in a sentence.

    Undecided is neutral, which GitHub counts as passed: so the title says that we cannot tell. A
    failure of ours is a failure, and says that it is ours.
    """
    return Check(
        name=message.name,
        sha=message.sha,
        conclusion=_conclude(content.outcome),
        title=_entitle(content, headline),
        summary=message.text,
        page_url=page_url,
    )


def _conclude(outcome: Outcome) -> Conclusion:
    match outcome:
        case Outcome.UNCHANGED | Outcome.IMPROVED:
            return "success"
        case Outcome.UNDECIDED:
            return "neutral"
        case Outcome.INVALID | Outcome.REGRESSED:
            return "failure"


def _entitle(content: ComparisonFile, headline: str) -> str:
    sentence = clean(headline, _TITLE_LENGTH)
    if content.outcome is Outcome.INVALID and content.problems:
        return f"Knickpoint itself failed: {clean(content.problems[0], _TITLE_LENGTH)}"
    if content.outcome is Outcome.UNDECIDED and not sentence.lower().startswith("cannot tell"):
        return f"Cannot tell: {sentence}"
    return sentence
