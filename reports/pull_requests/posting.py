"""What to do about the comment and the check run, from what is there and what is to be reported. Pure.

One comment is kept per pull request and name ("sticky"). It is found by a marker in its first line, and
by its author: anybody can write the marker. An edit sends no mail, so a state that got worse, or a
finding that was not reported yet, becomes a new comment, and the old one is minimised; the same or a
better state is edited in place. What could not be judged says nothing about a finding: that one stays
visible.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from analysis.comparing.results import ComparisonFile, ComparisonResult
from analysis.detection.verdict import Outcome
from reports.wording.markdown import MARKED_NAME, clean, first_line
from reports.wording.summary import (
    CANNOT_TELL_BADGE,
    FAILED_BADGE,
    headline,
    summarize_result,
)

_MARKER = re.compile(
    rf"<!-- knickpoint:(?P<name>{MARKED_NAME.pattern}) state=(?P<state>[a-z]+)"
    r" sha=(?P<sha>[0-9a-f]{7,64}) findings=(?P<findings>[0-9a-f.]*)"
    r" content=(?P<content>[0-9a-f]{16}) -->"
)
_BROKEN = "broken"
"""The state of a head that does not run: invalid as a comparison, and something to act on."""
_MOST_FINDINGS = 200
"""So many are told apart in a marker; GitHub's limit for a comment leaves 5,000 characters for it."""
_TITLE_LENGTH = 200
_ACTED_ON = 3
_SEVERITY = {
    Outcome.UNCHANGED.value: 0,
    Outcome.IMPROVED.value: 0,
    Outcome.UNDECIDED.value: 1,
    Outcome.INVALID.value: 2,
    Outcome.REGRESSED.value: _ACTED_ON,
    _BROKEN: _ACTED_ON,
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
    """What is to be reported: `text` (Markdown) about the commit `sha`, under a name.

    `head` is the head of the pull request now; where it is another commit, the comment says so.
    `findings` names each thing that somebody must act on, as `find_findings` does.
    """

    name: str
    outcome: Outcome
    sha: str
    head: str
    text: str
    findings: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """Return the outcome, or that head does not run."""
        is_broken = self.outcome is Outcome.INVALID and self.findings
        return _BROKEN if is_broken else self.outcome.value

    @property
    def body(self) -> str:
        """Return the comment as it is sent: the marker, a warning if the head moved on, the text."""
        warning = (
            ""
            if self.sha == self.head
            else f"> **About an older commit:** this is about {self.sha[:12]}; the head of the pull"
            f" request is {self.head[:12]} by now.\n\n"
        )
        text = f"{warning}{self.text}"
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        reported = ".".join(_shorten(self.findings))
        return (
            f"<!-- knickpoint:{self.name} state={self.state} sha={self.sha} findings={reported}"
            f" content={digest} -->\n{text}"
        )


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


def describe(step: Step) -> str:
    """Describe what a step does, in the past."""
    match step:
        case Post():
            return "posted a new comment"
        case Edit(id=id_):
            return f"edited comment {id_}"
        case Minimise(id=id_):
            return f"minimised comment {id_}"


def find_own(comments: Sequence[Existing], name: str, author: str) -> tuple[Existing, ...]:
    """Return the comments under this name that `author` wrote, oldest first."""
    written = (one for one in comments if one.author == author)
    named = (one for one in written if _read_marker(one.body).get("name") == name)
    return tuple(sorted(named, key=lambda one: one.id))


def plan_comment(
    own: Sequence[Existing], message: Message, *, always: bool = False
) -> tuple[Step, ...]:
    """Describe what to do, given our comments under this name, oldest first; nothing if all is said.

    The newest comment is kept, all others are minimised: two runs at the same time may have left two.
    Only while the newest cannot judge does the last finding before it stay visible, too. What somebody
    minimised is not edited, as nobody would see it. A result about an older commit does not replace one
    about the head.
    """
    visible = [one for one in own if not one.is_minimised]
    reported = _read_marker(own[-1].body) if own else {}
    is_reported = bool(own) and first_line(own[-1].body) == first_line(message.body)
    if is_reported or reported.get("sha") == message.head != message.sha:
        earlier = [one for one in visible if one is not own[-1]]
        return _fold(earlier, keep_finding=reported.get("state") == Outcome.INVALID)
    if not visible:
        silent = message.outcome is Outcome.UNCHANGED and not always
        return () if silent else (Post(body=message.body),)
    newest = visible[-1]
    is_unknown = message.state == Outcome.INVALID
    if _is_news(message, newest) or (is_unknown and _severity(newest) == _ACTED_ON):
        return (Post(body=message.body), *_fold(visible, keep_finding=is_unknown))
    return (Edit(id=newest.id, body=message.body), *_fold(visible[:-1], keep_finding=is_unknown))


def _fold(visible: Sequence[Existing], *, keep_finding: bool) -> tuple[Minimise, ...]:
    """Minimise all, but for the last one that reported something to act on, if that is to stay."""
    findings = [one for one in visible if keep_finding and _severity(one) == _ACTED_ON]
    return tuple(Minimise(id=one.id) for one in visible if one not in findings[-1:])


def _is_news(message: Message, before: Existing) -> bool:
    reported = set(_read_marker(before.body).get("findings", "").split("."))
    is_found = not set(_shorten(message.findings)) <= reported
    return is_found or _SEVERITY[message.state] > _severity(before)


def find_findings(content: ComparisonFile) -> tuple[str, ...]:
    """Name what must be acted on: each measure that regressed, each experiment that does not run."""
    return tuple(each for one in content.comparisons for each in _find_findings(one))


def _find_findings(result: ComparisonResult) -> Iterator[str]:
    where = f"{result.suite} {result.experiment}"
    if result.outcome is Outcome.REGRESSED:
        yield where
        regressed = (one for one in result.measures if one.is_trusted and one.outcome is result.outcome)
        yield from (f"{where} {one.measure}" for one in regressed)
    if summarize_result(result).badge == FAILED_BADGE:
        yield f"{where} does not run"


def _shorten(findings: Sequence[str]) -> list[str]:
    """Return each as a short hash; of too many, one of all of them, so that any other set is news."""
    texts = sorted(set(findings))
    reported = texts if len(texts) <= _MOST_FINDINGS else ["\n".join(texts)]
    return sorted(hashlib.sha256(one.encode()).hexdigest()[:8] for one in reported)


def _read_marker(body: str) -> dict[str, str]:
    """Return what the marker says; nothing if it is none."""
    found = _MARKER.fullmatch(first_line(body))
    return found.groupdict() if found else {}


def _severity(comment: Existing) -> int:
    return _SEVERITY.get(_read_marker(comment.body).get("state", ""), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check run as it is, or as it should be. `conclusion` is None while it is in progress.

    `title` is plain text, `summary` Markdown. A last resort says that there will be no result, and so
    it never takes the place of one.
    """

    name: str
    sha: str
    conclusion: Conclusion | None
    title: str
    summary: str
    page_url: str = ""
    is_last_resort: bool = False

    @property
    def title_of_run(self) -> str:
        """Return the name under which GitHub lists it, and a branch protection requires it."""
        return f"knickpoint / {self.name}"

    @property
    def external_id(self) -> str:
        """Return the mark by which it is found again."""
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
class CheckUpdate:
    """Rewrite a check run."""

    id: int


def plan_check(runs: Sequence[ExistingRun], check: Check) -> Create | CheckUpdate | None:
    """Describe what to do, given the check runs of that name on the commit; None if nothing.

    A start never touches a run that is finished: measured again, the commit gets a run of its own, as
    GitHub does it for a job that runs again. Nor does a last resort: there is a result.
    """
    newest = _find_newest(runs, check)
    if newest is None:
        return Create()
    if check.conclusion is None:
        return None if newest.conclusion is None else Create()
    is_reported = _says(newest, check) or has_result(runs, check)
    return None if is_reported else CheckUpdate(newest.id)


def describe_check(plan: Create | CheckUpdate | None, check: Check) -> str:
    """Describe what a plan does, in the past; nothing if it does nothing."""
    if plan is None:
        return ""
    verb = "created" if isinstance(plan, Create) else "updated"
    state = check.conclusion or "in progress"
    return f"{verb} the check run {check.title_of_run!r} as {state}: {check.title}"


def has_result(runs: Sequence[ExistingRun], check: Check) -> bool:
    """Return whether a last resort comes too late: the newest run of that name says something else."""
    newest = _find_newest(runs, check)
    is_finished = newest is not None and newest.conclusion is not None and not _says(newest, check)
    return is_finished and check.is_last_resort


def _find_newest(runs: Sequence[ExistingRun], check: Check) -> ExistingRun | None:
    own = (one for one in runs if one.external_id == check.external_id)
    return max(own, key=lambda one: one.id, default=None)


def _says(run: ExistingRun, check: Check) -> bool:
    wanted = (check.conclusion, check.title, check.summary.strip())
    there = (run.conclusion, run.title, run.summary.strip())
    # Where we name no page, GitHub names one of its own.
    return there == wanted and check.page_url in {"", run.page_url}


def start_check(name: str, sha: str, page_url: str = "") -> Check:
    """Return the check run of a comparison that is being measured."""
    return Check(
        name=name,
        sha=sha,
        conclusion=None,
        title="Measuring",
        summary="Trials of base and head are interleaved. The result will appear here.",
        page_url=page_url,
    )


def conclude_check(
    content: ComparisonFile,
    message: Message,
    page_url: str = "",
    *,
    is_last_resort: bool = False,
) -> Check:
    """Return the check run of a result: its title is the verdict in a sentence.

    Undecided is neutral, which GitHub counts as passed: so the title says that we cannot tell. A
    failure of ours is a failure, and says that it is ours.
    """
    return Check(
        name=message.name,
        sha=message.sha,
        conclusion=_conclude(content.outcome),
        title=_entitle(content),
        summary=message.text,
        page_url=page_url,
        is_last_resort=is_last_resort,
    )


def _conclude(outcome: Outcome) -> Conclusion:
    match outcome:
        case Outcome.UNCHANGED | Outcome.IMPROVED:
            return "success"
        case Outcome.UNDECIDED:
            return "neutral"
        case Outcome.INVALID | Outcome.REGRESSED:
            return "failure"


def _entitle(content: ComparisonFile) -> str:
    # With results beside the problem, the sentence weighs both.
    if content.problems and not content.comparisons:
        return f"Knickpoint failed: {clean(content.problems[0], _TITLE_LENGTH)}"
    # Undecided counts as passed, so the title must not sound like it.
    is_undecided = content.outcome is Outcome.UNDECIDED
    return clean(headline(content, CANNOT_TELL_BADGE if is_undecided else None), _TITLE_LENGTH)
