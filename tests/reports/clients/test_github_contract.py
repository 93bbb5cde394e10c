"""The client held against GitHub's own description, by Prism: each path, method and body, both ways."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
import requests
from github_contract import find_faults, install, prism, read_examples
from github_server import HEAD, TOKEN, GitHub, serve
from made_up_nights import Course, Nights, judge_nights

from analysis.detection.verdict import Outcome
from reports.clients.access import GitHubAccess
from reports.clients.comments import GitHubPullRequest
from reports.clients.conversation import GitHubConversation
from reports.clients.issues import GitHubIssues
from reports.clients.workflow_runs import GitHubWorkflow
from reports.notifications.fingerprints import find_all_fingerprints
from reports.notifications.issue_plan import ExistingIssue, IssuePlan, plan_issues
from reports.notifications.night_watch import judge_nights as find_fresh
from reports.pull_requests.posting import Check, Message, start_check

pytestmark = pytest.mark.slow  # Prism starts four times, and is installed once
TRUSTED = {"Authorization": f"token {TOKEN}"}


@pytest.fixture(scope="module")
def place() -> Path:
    return install()


@pytest.fixture(scope="module")
def hub(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHub]:
    """Yield a GitHub behind Prism, whose answers are GitHub's own examples with our state in them."""
    log = tmp_path_factory.mktemp("prism") / "proxy.log"
    with serve(GitHub(examples=read_examples(place))) as state, prism(place, log, state.url) as url:
        state.url = url
        yield state


def message(outcome: Outcome) -> Message:
    return Message(name="candidate", outcome=outcome, sha=HEAD, head=HEAD, text=f"It is {outcome}.")


def plan(reported: Nights, existing: Sequence[ExistingIssue], author: str) -> IssuePlan:
    known = find_all_fingerprints(one.series for one in reported.judgement.series)
    return plan_issues(existing, reported.notices, lambda: known, author=author, scope="nightly")


@pytest.fixture
def reach() -> Callable[..., GitHubPullRequest]:
    def reach(url: str, repo: str = "example/configs", number: int = 7) -> GitHubPullRequest:
        return GitHubPullRequest(GitHubAccess(token=TOKEN, api_url=url), repo=repo, number=number)

    return reach


def test_all_that_the_client_asks_is_as_github_describes_it(
    place: Path, hub: GitHub, reach: Callable[..., GitHubPullRequest]
) -> None:
    for _ in range(101):  # a second page
        hub.write("me, too", "alice")
    pull = reach(hub.url)
    assert pull.head() == HEAD
    hub.write(message(Outcome.UNDECIDED).body)  # of a run at the same time
    for outcome in (Outcome.UNDECIDED, Outcome.REGRESSED, Outcome.IMPROVED, Outcome.INVALID):
        pull.report(message(outcome), print)
    start = start_check("candidate", HEAD, "https://example.org/page")
    assert pull.check(start).startswith("created")
    for conclusion in ("failure", "neutral", "success"):
        done = Check(
            name="candidate", sha=HEAD, conclusion=conclusion, title="Said", summary=f"{conclusion}."
        )
        assert pull.check(done).startswith("updated")
    assert [one for one in hub.shown if one != "me, too"] == [message(Outcome.INVALID).body]
    asked = {one.split()[0] + " " + one.rstrip("0123456789").rsplit("/", 1)[-1] for one in hub.asked}
    assert {"POST comments", "PATCH ", "POST check-runs", "GET check-runs", "POST graphql"} <= asked
    for word in ("viewer", "nodes(ids: $ids)", "minimizeComment"):
        assert word in str(hub.graphql)
    assert find_faults(place, sorted(set(hub.graphql))) == []
    assert find_faults(place, ["query { viewer { nothing_of_this_name } }"]) != []


def test_issues_are_kept_as_github_describes_them(hub: GitHub) -> None:
    for number in range(101):  # a second page
        hub.report("another", "text", "alice", is_pull=number % 2 == 0)
    issues = GitHubIssues(GitHubAccess(token=TOKEN, api_url=hub.url), "example/configs")
    said: list[str] = []
    for nights in (17, 17, 19, 29, 29, 20):
        reported = judge_nights(nights, (Course(at=16, back=22),))
        issues.keep(partial(plan, reported), said.append)
    assert [one.split()[0] for one in said] == ["opened", "rewrote", "closed", "reopened"]
    assert hub.issues[102]["state_reason"] == "reopened"
    url = f"{hub.url}/repos/example/configs/issues"
    for answer in (
        requests.patch(f"{url}/102", json={"state": "finished"}, headers=TRUSTED, timeout=10),
        requests.post(url, json={"body": "no title"}, headers=TRUSTED, timeout=10),
    ):
        assert answer.status_code == 422


def test_prism_refuses_what_github_would(hub: GitHub) -> None:
    runs = f"{hub.url}/repos/example/configs/check-runs"
    before = dict(hub.runs)
    for wrong in ({"name": "no commit"}, {"name": "x", "head_sha": HEAD, "status": "finished"}):
        answer = requests.post(runs, json=wrong, headers=TRUSTED, timeout=10)
        assert answer.status_code == 422
    assert requests.get(f"{hub.url}/never", headers=TRUSTED, timeout=10).status_code == 404
    assert hub.runs == before


def test_the_client_understands_the_answers_that_github_describes(
    place: Path, tmp_path: Path, reach: Callable[..., GitHubPullRequest]
) -> None:
    with prism(place, tmp_path / "mock.log") as url:
        pull = reach(url, "octocat/Hello-World", 1347)
        assert pull.head() == "6dcb09b5b57875f334f61aebed695e2e4193db5e"
        said: list[str] = []
        pull.report(message(Outcome.REGRESSED), said.append)
        assert [one.split()[0] for one in said] == ["posted"]
        assert pull.check(start_check("candidate", HEAD)).startswith("created")
        issues = GitHubIssues(
            GitHubAccess(token=TOKEN, api_url=url, author="octocat"), "octocat/Hello-World"
        )
        reported = judge_nights(17)
        issues.keep(partial(plan, reported), said.append)
        assert said[-1].startswith("opened ")


def test_a_comment_is_answered_and_a_workflow_started_as_github_describes_it(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # PyGithub asks for JSON by the name of a preview long past, which Prism cannot answer in.
    monkeypatch.setattr("github.Consts.mediaTypeReactionsPreview", "application/json")
    with prism(place, tmp_path / "mock.log") as url:
        conversation = GitHubConversation(
            GitHubAccess(token=TOKEN, api_url=url, author="octocat"),
            repo="octocat/Hello-World",
            number=1347,
            comment=1,
        )
        assert conversation.may_write("octocat")
        assert not conversation.is_accepted()  # the example is a heart
        conversation.accept()
        about = conversation.describe_pull()
        assert about == {
            "pull": "1347",
            "sha": "6dcb09b5b57875f334f61aebed695e2e4193db5e",
            "stranger": "false",
        }
        started = conversation.start("candidate.yml", {**about, "minutes": "30"})
        assert started is not None
        assert started.startswith("https://github.com/")
        assert conversation.reply("Started.", "<!-- mark -->").startswith("https://")
        dispatches = f"{url}/repos/octocat/Hello-World/actions/workflows/candidate.yml/dispatches"
        wrong = requests.post(dispatches, json={"inputs": {"pull": "7"}}, headers=TRUSTED, timeout=10)
        assert wrong.status_code == 422


def test_the_runs_of_a_workflow_are_read_as_github_describes_them(place: Path, tmp_path: Path) -> None:
    with prism(place, tmp_path / "mock.log") as url:
        workflow = GitHubWorkflow(
            GitHubAccess(token=TOKEN, api_url=url),
            repo="octocat/Hello-World",
            workflow="nightly.yml",
        )
        sight = workflow.look()
        assert (sight.state, sight.night) == ("active", None)
        finding = find_fresh(sight, datetime.now(UTC), 30)
        assert not finding.is_fresh
