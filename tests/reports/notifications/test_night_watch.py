"""What the watchdog makes of runs: fresh or not, what stands in the way, and one issue meanwhile."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reports.notifications.issue_plan import Change, ExistingIssue, Open
from reports.notifications.night_watch import (
    NightRemark,
    NightRun,
    ReportedNight,
    Sight,
    WatchFinding,
    judge_nights,
    plan_issue,
    render_finding,
)

NOW = datetime(2026, 3, 9, 13, 43, tzinfo=UTC)
US, THEM = "github-actions[bot]", "mallory"


def ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


def made(number: int, hours: float, status: str = "completed", conclusion: str = "") -> NightRun:
    return NightRun(
        url=f"https://github.com/o/n/actions/runs/{number}",
        status=status,
        conclusion=conclusion or ("failure" if status == "completed" else ""),
        created_at=ago(hours),
        updated_at=ago(hours - 1),
    )


def see(*runs: NightRun, night_h: float | None = None, state: str = "active") -> WatchFinding:
    night = (
        None
        if night_h is None
        else ReportedNight(url="https://github.com/o/n/r/1", reported_at=ago(night_h))
    )
    return judge_nights(Sight(workflow="nightly.yml", state=state, runs=runs, night=night), NOW, 30)


def test_a_night_is_fresh_up_to_its_age_and_no_longer() -> None:
    assert see(night_h=30).is_fresh
    stale = see(made(2, 7), night_h=30.1)
    assert not stale.is_fresh
    assert "within 30 hours; the newest was reported 30 hours ago: https" in str(stale.sentence)


@pytest.mark.parametrize(
    ("runs", "state", "said"),
    [
        ((made(3, 26, "queued"),), "active", "a run waits for a runner"),
        (
            (made(4, 2, "queued"), made(3, 26, "queued")),
            "active",
            "a run (2 of them) waits for a runner",
        ),
        ((made(3, 5, "pending"),), "active", "waits for another run"),
        ((made(3, 5, "waiting"),), "active", "approval"),
        ((made(3, 5, "in_progress"),), "active", "is going on"),
        ((made(3, 5),), "active", "reported no night (failure)"),
        ((made(3, 5, conclusion="timed_out"),), "active", "(timed out)"),
        ((made(3, 40),), "active", "no run was started within 30 hours"),
        ((), "active", "no run was started within 30 hours"),
        ((made(3, 5),), "disabled_inactivity", "switched off (disabled_inactivity)"),
    ],
    ids=range(10),
)
def test_what_stands_in_the_way_is_told_apart(
    runs: tuple[NightRun, ...], state: str, said: str
) -> None:
    finding = see(*runs, night_h=60, state=state)
    assert not finding.is_fresh
    assert said in "\n".join(map(str, finding.remarks))


def test_a_queue_is_not_mistaken_for_a_failure() -> None:
    reported = "\n".join(map(str, see(made(3, 26, "queued"), night_h=60).remarks))
    assert "is its host up" in reported
    assert "asked for 26 hours ago: https://github.com/o/n/actions/runs/3" in reported
    assert "told no night" not in reported


def test_no_text_becomes_a_mention() -> None:
    finding = WatchFinding(workflow="nightly.yml", is_fresh=False, sentence=NightRemark("@all [x](y)"))
    assert "@all" not in render_finding(finding)
    assert r"\[x\]" in render_finding(finding)


def test_one_issue_is_open_while_nights_are_missing() -> None:
    missing, back = see(night_h=60), see(night_h=2)
    (opened,) = plan_issue(missing, [], US).steps
    assert isinstance(opened, Open)
    ours = ExistingIssue(number=3, author=US, title=opened.title, body=opened.body, is_open=True)
    forged = replace(ours, number=9, author=THEM)
    other = replace(ours, number=1, body=ours.body.replace("nightly.yml", "weekly.yml"))
    assert plan_issue(missing, [other, ours, forged], US).steps == ()
    (rewritten,) = plan_issue(see(night_h=90), [other, ours, forged], US).steps
    assert isinstance(rewritten, Change)
    assert (rewritten.number, rewritten.is_open) == (3, None)
    (closed,) = plan_issue(back, [other, ours, forged], US).steps
    assert isinstance(closed, Change)
    assert (closed.number, closed.is_open, closed.ending) == (3, False, "completed")
    done = replace(ours, body=closed.body, is_open=False)
    assert plan_issue(back, [done, forged], US).steps == ()
    (again,) = plan_issue(missing, [done, forged], US).steps
    assert isinstance(again, Change)
    assert (again.number, again.is_open) == (3, True)


def test_what_somebody_closed_stays_closed_until_nights_were_back() -> None:
    missing, back = see(night_h=60), see(night_h=2)
    (opened,) = plan_issue(missing, [], US).steps
    closed = ExistingIssue(number=3, author=US, title=opened.title, body=opened.body, is_open=False)
    assert plan_issue(missing, [closed], US).steps == ()
    (marked,) = plan_issue(back, [closed], US).steps
    assert isinstance(marked, Change)
    assert marked.is_open is None
    (again,) = plan_issue(missing, [replace(closed, body=marked.body)], US).steps
    assert isinstance(again, Change)
    assert again.is_open
