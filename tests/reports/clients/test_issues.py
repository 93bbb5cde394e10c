"""Issues against a GitHub in memory: once each, whatever breaks, and no token in any text."""

from collections.abc import Callable, Iterator, Sequence

import pytest
from github_server import BOT, TOKEN, Fault, GitHub, serve
from made_up_nights import Course, Nights, judge_nights

from perf.model.errors import GitHubError
from reports.clients.access import GitHubAccess, RetryPolicy
from reports.clients.issues import GitHubIssues
from reports.notifications.fingerprints import find_all_fingerprints
from reports.notifications.issue_plan import ExistingIssue, IssuePlan, plan_issues

QUICK = RetryPolicy(tries=3, pause_s=0.001, rate_limit_s=0.01, longest_s=5)
ISSUES = "/repos/example/configs/issues"
COURSES = (Course(at=16, back=22),)


@pytest.fixture
def hub() -> Iterator[GitHub]:
    with serve() as state:
        yield state


def reach(hub: GitHub, author: str = "", repo: str = "example/configs") -> GitHubIssues:
    return GitHubIssues(GitHubAccess(token=TOKEN, api_url=hub.url, author=author, patience=QUICK), repo)


def plan(nights: Nights) -> Callable[[Sequence[ExistingIssue], str], IssuePlan]:
    def of(existing: Sequence[ExistingIssue], author: str) -> IssuePlan:
        known = find_all_fingerprints(one.series for one in nights.judgement.series)
        return plan_issues(existing, nights.notices, lambda: known, author=author, scope="nightly")

    return of


def report(hub: GitHub, count: int) -> list[str]:
    nights, said = judge_nights(count, COURSES), list[str]()
    reach(hub).keep(plan(nights), said.append)
    return said


def test_an_issue_from_its_opening_to_its_end_and_back(hub: GitHub) -> None:
    hub.report("Something else", "text", "alice")
    assert report(hub, 17) == ["opened https://github.com/example/configs/issues/2"]
    assert report(hub, 17) == []
    assert report(hub, 19) == ["rewrote https://github.com/example/configs/issues/2"]
    assert report(hub, 29) == ["closed https://github.com/example/configs/issues/2"]
    assert (hub.issues[2]["state"], hub.issues[2]["state_reason"]) == ("closed", "completed")
    assert report(hub, 29) == []
    assert report(hub, 20) == ["reopened https://github.com/example/configs/issues/2"]
    assert (hub.issues[2]["state"], hub.issues[2]["state_reason"]) == ("open", "reopened")
    assert len(hub.issues) == 2
    assert hub.issues[1]["body"] == "text"


def test_ours_is_found_behind_many_others_and_among_pull_requests(hub: GitHub) -> None:
    for number in range(150):
        hub.report(f"{number}", "", "mallory", is_pull=number % 3 == 0)
    report(hub, 17)
    body = hub.issues[151]["body"]
    for number in range(60):
        hub.report(f"{number}", body, "mallory")
    hub.report("a pull request of ours that quotes it", body, BOT, is_pull=True)
    hub.asked.clear()
    assert report(hub, 17) == []
    assert hub.asked.count(f"GET {ISSUES}") == len([one for one in hub.asked if "GET" in one]) == 3
    assert report(hub, 19) == ["rewrote https://github.com/example/configs/issues/151"]


@pytest.mark.parametrize("status", [0, 500, 502])
@pytest.mark.parametrize("is_done", [True, False])
def test_a_broken_answer_never_doubles_an_issue(hub: GitHub, status: int, is_done: bool) -> None:  # noqa: FBT001
    hub.faults.append(Fault(method="POST", path=ISSUES, status=status, is_done=is_done))
    report(hub, 17)
    assert len(hub.issues) == 1
    assert report(hub, 17) == []


@pytest.mark.parametrize(("method", "path"), [("GET", ISSUES), ("PATCH", f"{ISSUES}/1")])
def test_reading_and_rewriting_are_tried_again(hub: GitHub, method: str, path: str) -> None:
    report(hub, 17)
    hub.faults += 2 * [Fault(method=method, path=path, status=502)]
    assert report(hub, 19) == ["rewrote https://github.com/example/configs/issues/1"]


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        (Fault(method="POST", path=ISSUES, status=403, message="Forbidden"), "`issues: write`"),
        (Fault(method="GET", path=ISSUES, status=404, message="Not Found"), "check --github-issues"),
        (Fault(method="POST", path=ISSUES, status=410, message="Disabled"), "are issues enabled"),
        (Fault(method="GET", path=ISSUES, status=401, message="Bad credentials"), "check GITHUB_TOKEN"),
        (Fault(method="GET", path=ISSUES, status=200, page="<html>Sign in</html>"), "check --api-url"),
    ],
    ids=lambda one: one.status if isinstance(one, Fault) else "",
)  # fmt: skip
def test_a_refusal_is_one_sentence_that_says_what_to_check(
    hub: GitHub, fault: Fault, hint: str
) -> None:
    hub.faults.append(fault)
    with pytest.raises(GitHubError) as caught:
        report(hub, 17)
    text = str(caught.value)
    assert hint in text
    assert "issues of example/configs" in text
    assert "\n" not in text
    assert TOKEN not in text + repr(caught.value)


def test_what_would_not_be_found_again_is_an_error(hub: GitHub) -> None:
    nights = judge_nights(17, COURSES)
    with pytest.raises(GitHubError, match=r"but as github-actions\[bot\], not as someone"):
        reach(hub, author="someone").keep(plan(nights), print)


def test_planning_writes_nothing(hub: GitHub) -> None:
    nights = judge_nights(17, COURSES)
    assert len(reach(hub).keep(plan(nights), None).steps) == 1
    assert hub.writes == []
