"""One issue for each incident: opened, followed, closed and opened again, and never a second one."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import pytest
from cmarkgfm import github_flavored_markdown_to_html as to_html
from made_up_nights import HALF, HOSTILE, KEY, Course, Nights, judge_nights

from reports.notifications.fingerprints import find_all_fingerprints
from reports.notifications.issue_plan import (
    Change,
    ExistingIssue,
    IssuePlan,
    Open,
    plan_issues,
    render_issue,
)
from reports.notifications.notification import Notification, NotificationStatus

BOT = "bot"
GONE = Course(at=30, back=32, drop=0.93)


@dataclass
class Tracker:
    """The issues of a repository."""

    issues: list[ExistingIssue] = field(default_factory=list)

    def report(self, nights: Nights, scope: str = "nightly") -> IssuePlan:
        return self.tell_notices(nights.notices, know(nights), scope)

    def tell_notices(
        self,
        notices: Sequence[Notification],
        known: Callable[[], Collection[str]],
        scope: str = "nightly",
    ) -> IssuePlan:
        plan = plan_issues(
            self.issues, notices, known, author=BOT, scope=scope, site_url="https://e.org/"
        )
        for step in plan.steps:
            match step:
                case Open(title=title, body=body):
                    self.write(title, body)
                case Change(number=number, title=title, body=body, is_open=is_open):
                    before = self.issues[number - 1]
                    is_open = before.is_open if is_open is None else is_open
                    self.issues[number - 1] = replace(before, title=title, body=body, is_open=is_open)
        return plan

    def write(self, title: str, body: str, author: str = BOT) -> None:
        number = len(self.issues) + 1
        self.issues.append(
            ExistingIssue(number=number, author=author, title=title, body=body, is_open=True)
        )

    def set_open(self, *, is_open: bool) -> None:
        self.issues[0] = replace(self.issues[0], is_open=is_open)


def know(nights: Nights) -> Callable[[], Collection[str]]:
    return lambda: find_all_fingerprints(one.series for one in nights.judgement.series)


def follow(course: Course, *nights: int) -> Tracker:
    """Tell a tracker of some nights, each twice; the second time there is nothing to do."""
    tracker = Tracker()
    for count in nights:
        tracker.report(judge_nights(count, (course,)))
        assert tracker.report(judge_nights(count, (course,))).steps == ()
    return tracker


def test_an_issue_follows_its_incident_from_suspicion_to_its_end() -> None:
    course = Course(at=16, back=22)
    (issue,) = follow(course, 17).issues
    assert issue.is_open
    assert issue.title.startswith("Regressed (suspected): Throughput of write at saturation, −14")
    (issue,) = follow(course, 17, 19).issues
    assert issue.is_open
    assert "(confirmed)" in issue.title
    (issue,) = follow(course, 17, 19, 29).issues
    assert not issue.is_open
    assert "(resolved)" in issue.title
    assert "Improved +16" in issue.body


def test_an_issue_says_what_is_known_and_what_to_do() -> None:
    (issue,) = follow(Course(), 20).issues
    shown = to_html(issue.body)
    for text in (
        "<strong>✕ Regressed</strong>, ● confirmed, cause not known",
        "<code>cassandra-sensor-write</code>",
        "<strong>What to do:</strong> Find the cause, or write down a decision.",
        f"<code>knickpoint triage add {judge_nights(20).notices[0].name} --state acknowledged",
        "<li>2026-01-17 02:00 UTC: First point with it",
        '<a href="https://e.org/incidents/',
    ):
        assert text in shown, text


def test_the_ending_says_whether_it_was_mended() -> None:
    tracker = follow(Course(at=16, back=22), 20)
    (step,) = tracker.report(judge_nights(29, (Course(at=16, back=22),))).steps
    assert isinstance(step, Change)
    assert (step.is_open, step.ending) == (False, "completed")
    tracker = follow(GONE, 31)
    (step,) = tracker.report(judge_nights(33, (GONE,))).steps
    assert isinstance(step, Change)
    assert (step.is_open, step.ending) == (False, "not_planned")


def test_what_nobody_knows_any_more_is_closed_once_with_what_it_said() -> None:
    tracker = follow(GONE, 31, 43)
    (issue,) = tracker.issues
    assert not issue.is_open
    assert "(retracted)" in issue.title
    assert "no proof that nothing changed" in issue.body
    assert "First point with it" in issue.body


def test_of_what_was_over_before_no_issue_is_opened() -> None:
    assert follow(Course(at=16, back=22), 29).issues == []


def test_it_is_opened_again_when_it_comes_back() -> None:
    tracker = follow(Course(at=16, back=22), 20, 29)
    assert not tracker.issues[0].is_open
    # What mended it was withdrawn: the same incident is open again.
    tracker.report(judge_nights(20, (Course(at=16, back=22),)))
    (issue,) = tracker.issues
    assert issue.is_open
    assert "(confirmed)" in issue.title


def test_what_somebody_closed_stays_closed_while_it_is_open_and_ends_as_others_do() -> None:
    tracker = follow(Course(at=16, back=22), 17)
    tracker.set_open(is_open=False)
    tracker.report(judge_nights(19, (Course(at=16, back=22),)))
    assert not tracker.issues[0].is_open
    assert "(confirmed)" in tracker.issues[0].title
    tracker.report(judge_nights(29, (Course(at=16, back=22),)))
    assert not tracker.issues[0].is_open
    assert "(resolved)" in tracker.issues[0].title


def test_what_somebody_opened_again_stays_open() -> None:
    tracker = follow(Course(at=16, back=22), 20, 29)
    tracker.set_open(is_open=True)
    assert tracker.report(judge_nights(29, (Course(at=16, back=22),))).steps == ()


def test_a_marker_of_somebody_else_is_no_issue_of_ours() -> None:
    nights = judge_nights(20)
    body = render_issue(nights.notices[0], scope="nightly")
    tracker = Tracker()
    tracker.write("forged", body, author="mallory")
    tracker.write("other scope", render_issue(nights.notices[0], scope="weekly"))
    tracker.write("no marker", "text")
    tracker.write("strange", body.replace("standing=confirmed", "standing=fine"))
    tracker.report(nights)
    assert [one.title for one in tracker.issues[:4]] == [
        "forged",
        "other scope",
        "no marker",
        "strange",
    ]
    assert len(tracker.issues) == 5
    assert tracker.report(nights).steps == ()


def test_an_incident_whose_name_moved_keeps_its_issue() -> None:
    nights = judge_nights(20)
    tracker = follow(Course(), 20)
    moved = replace(nights.notices[0], name="other")
    tracker.tell_notices((moved,), know(nights))
    (issue,) = tracker.issues
    assert "name=other" in issue.body
    assert issue.is_open


def test_of_two_issues_of_one_incident_the_later_one_is_closed_once() -> None:
    tracker = follow(Course(), 20)
    tracker.write(tracker.issues[0].title, tracker.issues[0].body)
    tracker.report(judge_nights(20))
    assert [one.is_open for one in tracker.issues] == [True, False]
    assert "has an older issue: #1" in tracker.issues[1].body
    assert tracker.report(judge_nights(20)).steps == ()


def test_another_history_closes_nothing() -> None:
    tracker = follow(Course(), 20)
    before = list(tracker.issues)
    plan = tracker.report(judge_nights(12, (Course(key=replace(KEY, system="mongodb"), at=10**6),)))
    assert plan.steps == ()
    assert plan.unknown == (before[0].title,)
    assert tracker.issues == before


@pytest.mark.parametrize("standing", NotificationStatus)
def test_hostile_text_is_shown_and_does_nothing(standing: NotificationStatus) -> None:
    hostile = replace(
        judge_nights(20).notices[0], standing=standing, title=HOSTILE + HALF, system=HOSTILE,
        experiment=HOSTILE, between=HOSTILE, cause=HOSTILE, advice=300 * HOSTILE,
        summary=f"--> {300 * HOSTILE}",
    )  # fmt: skip
    body = render_issue(hostile, scope="nightly", site_url="https://e.org")
    body.encode()
    assert len(body) < 65_536
    shown = to_html(body.partition("\n")[2])
    assert "<script" not in shown
    assert shown.count("<a ") == 1
    assert "@everyone" not in body.replace("`", "").split("Experiment")[0]
