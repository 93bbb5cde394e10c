"""Is there a fresh night, and if not, what stands in its way? From the runs of a workflow. Pure.

A night is there once its run kept an artifact `night-…`: the workflow does so only when the night was
reported to its end, whether or not it found a regression. How the run ended says less: a regression
fails it, and a run that measured nothing may be seen in its log alone.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reports.notifications.issue_plan import Change, ExistingIssue, IssuePlan, Open, Step
from reports.wording.markdown import code, escape
from reports.wording.wording import count, duration

NIGHT = "night-"
"""What the name of a night's artifact begins with."""
WORKFLOW = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,90}\.ya?ml")
EVENT = "schedule"
"""What starts the runs that count: one by hand may measure any suite, so it proves no night."""
_MISSING, _BACK = "missing", "back"
_MARKER = re.compile(
    rf"<!-- knickpoint-watchdog:(?P<workflow>{WORKFLOW.pattern}) state=(?P<state>missing|back) -->"
)
_WAITING = {
    "queued": "waits for a runner: is its host up, and does its service run?",
    "pending": "waits for another run to leave the testbed.",
    "waiting": "waits for somebody's approval.",
    "requested": "was asked for, and GitHub has not begun it.",
    "in_progress": "is going on.",
}
"""What a run that has not ended does, by the status that GitHub gives it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRun:
    """A run of the workflow; `conclusion` is empty until it has ended."""

    url: str
    status: str
    conclusion: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedNight:
    """A night that was reported: the page of its run, and when it kept the artifact."""

    url: str
    reported_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What GitHub shows of a workflow: its state, its runs (newest first), its newest night."""

    workflow: str
    state: str
    runs: tuple[NightRun, ...]
    night: ReportedNight | None


@dataclass(frozen=True, slots=True)
class NightRemark:
    """A sentence, and the page that shows it, if any."""

    text: str
    url: str = ""

    def __str__(self) -> str:
        """Write it for a terminal."""
        return f"{self.text} {self.url}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchFinding:
    """What there is to say: whether a night is fresh, the sentence, and what stands in the way."""

    workflow: str
    is_fresh: bool
    sentence: NightRemark
    remarks: tuple[NightRemark, ...] = ()


def judge_nights(sight: Sight, now: datetime, most_hours: int) -> WatchFinding:
    """Return whether the newest night is fresh; if none is, say all that explains it."""
    night, name = sight.night, sight.workflow
    if night and now - night.reported_at <= timedelta(hours=most_hours):
        sentence = NightRemark(
            f"the newest night of {name} is {duration(now - night.reported_at)} old:", night.url
        )
        return WatchFinding(workflow=name, is_fresh=True, sentence=sentence)
    last = (
        NightRemark(f"the newest was reported {duration(now - night.reported_at)} ago:", night.url)
        if night
        else NightRemark(f"none of the {count(len(sight.runs), 'run')} that are known reported any")
    )
    text = f"no night of {name} was reported within {most_hours} hours; {last.text}"
    return WatchFinding(
        workflow=name,
        is_fresh=False,
        sentence=NightRemark(text, last.url),
        remarks=tuple(_explain(sight, now, most_hours)),
    )


def _explain(sight: Sight, now: datetime, most_hours: int) -> Iterator[NightRemark]:
    if sight.state != "active":
        yield NightRemark(
            f"the workflow is switched off ({sight.state}); GitHub does that by itself after 60 days"
            " without a commit. Enable it on the page of Actions."
        )
    for status, what in _WAITING.items():
        found = [one for one in sight.runs if one.status == status]
        if found:
            oldest = min(found, key=lambda one: one.created_at)
            more = f" ({len(found)} of them)" if len(found) > 1 else ""
            age = duration(now - oldest.created_at)
            yield NightRemark(f"a run{more} {what} The oldest was asked for {age} ago:", oldest.url)
    ended = next((one for one in sight.runs if one.conclusion), None)
    if ended and (sight.night is None or ended.url != sight.night.url):
        age, how = duration(now - ended.updated_at), ended.conclusion.replace("_", " ")
        why = f"the newest run that ended, {age} ago, reported no night ({how}); its log says why:"
        yield NightRemark(why, ended.url)
    if not any(now - one.created_at <= timedelta(hours=most_hours) for one in sight.runs):
        yield NightRemark(
            f"no run was started within {most_hours} hours: does its schedule still stand?"
        )


def render_finding(finding: WatchFinding) -> str:
    """Write it as Markdown: the sentence, then what stands in the way."""
    lines = [_markdown(finding.sentence), ""]
    lines += [f"- {_markdown(one)}" for one in finding.remarks]
    return "\n".join(lines).rstrip() + "\n"


def _markdown(remark: NightRemark) -> str:
    return f"{escape(remark.text)} {f'<{remark.url}>' if remark.url else ''}".rstrip()


def plan_issue(finding: WatchFinding, existing: Sequence[ExistingIssue], author: str) -> IssuePlan:
    """Describe what to do about our issue: one is open as long as nights are missing.

    What somebody closed meanwhile stays closed until nights have been back.
    """
    return IssuePlan(steps=tuple(_plan_steps(finding, existing, author)))


def _plan_steps(
    finding: WatchFinding, existing: Sequence[ExistingIssue], author: str
) -> Iterator[Step]:
    ours = [
        (one, found["state"])
        for one in existing
        if one.author == author
        and (found := _MARKER.match(one.body))
        and found["workflow"] == finding.workflow
    ]
    title = f"No fresh night of {finding.workflow}"
    body = _write_body(finding)
    if finding.is_fresh:
        for one, state in ours:
            if one.is_open or state == _MISSING:
                is_open = False if one.is_open else None
                yield Change(number=one.number, title=title, body=body, is_open=is_open)
        return
    if not ours:
        yield Open(title=title, body=body)
        return
    # One that is open before all others, then the newest.
    newest, state = max(ours, key=lambda one: (one[0].is_open, one[0].number))
    if newest.is_open and newest.body != body:
        yield Change(number=newest.number, title=title, body=body)
    elif not newest.is_open and state != _MISSING:
        yield Change(number=newest.number, title=title, body=body, is_open=True)


def _write_body(finding: WatchFinding) -> str:
    state = _BACK if finding.is_fresh else _MISSING
    marker = f"<!-- knickpoint-watchdog:{finding.workflow} state={state} -->"
    by = f"Written by {code('knickpoint watchdog')}"
    foot = (
        f"{by}: nights are back."
        if finding.is_fresh
        else f"{by}, which closes this once they are back."
    )
    return f"{marker}\n{render_finding(finding)}\n{foot}\n"
