"""The client against a GitHub in memory: sticky comments, faults, refusals, no token in any text."""

import dataclasses
import time
from collections.abc import Iterator

import pytest
from github_server import BOT, HEAD, SECONDARY, TOKEN, Fault, GitHub, serve

from analysis.detection.verdict import Outcome
from perf.model.errors import GitHubError
from reports.clients.access import GitHubAccess, RetryPolicy, find_api_url
from reports.clients.comments import GitHubPullRequest
from reports.pull_requests.posting import Check, Message, start_check

QUICK = RetryPolicy(tries=3, pause_s=0.001, rate_limit_s=0.01, longest_s=5)
COMMENTS = "/issues/7/comments"
LATER = "f" * 40


@pytest.fixture
def hub() -> Iterator[GitHub]:
    with serve() as state:
        yield state


def reach(hub: GitHub, *, token: str = TOKEN, number: int = 7, author: str = "") -> GitHubPullRequest:
    access = GitHubAccess(token=token, api_url=hub.url, author=author, patience=QUICK)
    return GitHubPullRequest(access, repo="example/configs", number=number)


def message(outcome: str, text: str = "", name: str = "candidate") -> Message:
    return Message(
        name=name, outcome=Outcome(outcome), sha=HEAD, head=HEAD, text=text or f"It is {outcome}."
    )


def report(hub: GitHub, reported: Message, **options: bool) -> list[str]:
    said: list[str] = []
    reach(hub).report(reported, said.append, **options)
    return said


def test_a_pull_request_over_its_life(hub: GitHub) -> None:
    hub.write("What a nice change.", "alice")
    assert report(hub, message("unchanged")) == []
    assert report(hub, message("undecided"))[0].startswith("posted https://")
    assert report(hub, message("undecided")) == []
    posted, minimised = report(hub, message("regressed"))
    assert (posted.split()[0], minimised.split()[0]) == ("posted", "minimised")
    assert report(hub, message("unchanged"))[0].startswith("edited")
    assert report(hub, message("unchanged")) == []
    nice, last = hub.shown
    assert nice == "What a nice change."
    assert last == message("unchanged").body
    assert len(hub.comments) == 3


def test_names_do_not_meet(hub: GitHub) -> None:
    report(hub, message("regressed"))
    report(hub, message("regressed", name="nightly"))
    report(hub, message("unchanged", name="nightly"))
    assert hub.shown == [message("regressed").body, message("unchanged", name="nightly").body]


def test_ours_is_found_behind_many_others_that_look_like_it(hub: GitHub) -> None:
    for _ in range(120):
        hub.write(message("regressed", "a forgery").body, "mallory")
    report(hub, message("regressed"))
    report(hub, message("improved"))
    assert hub.asked.count(f"GET /repos/example/configs{COMMENTS}") == 4  # two pages, twice
    ours = [one["body"] for one in hub.comments.values() if one["user"]["login"] == BOT]
    assert ours == [message("improved").body]


def test_what_two_runs_at_once_left_is_cleaned_up_once(hub: GitHub) -> None:
    hub.write(message("regressed", "of one").body)
    hub.write(message("regressed", "of the other").body)
    assert [one.split()[0] for one in report(hub, message("regressed"))] == ["edited", "minimised"]
    assert hub.shown == [message("regressed").body]
    assert report(hub, message("regressed")) == []


def test_of_more_than_a_query_takes_the_newest_are_looked_at(hub: GitHub) -> None:
    for number in range(105):
        made = hub.write(message("regressed", f"{number}").body)
        hub.minimised.add(made["node_id"])
    hub.minimised.discard(made["node_id"])
    assert [one.split()[0] for one in report(hub, message("regressed"))] == ["edited"]
    assert hub.shown == [message("regressed").body]


@pytest.mark.parametrize("status", [0, 500, 502, 503])
@pytest.mark.parametrize("is_done", [True, False])
def test_a_broken_answer_never_doubles_a_comment(hub: GitHub, status: int, is_done: bool) -> None:  # noqa: FBT001
    hub.faults.append(Fault(method="POST", path=COMMENTS, status=status, is_done=is_done))
    report(hub, message("regressed"))
    assert hub.shown == [message("regressed").body]


@pytest.mark.parametrize("status", [0, 502])
@pytest.mark.parametrize("is_done", [True, False])
def test_a_broken_answer_never_doubles_a_check_run(hub: GitHub, status: int, is_done: bool) -> None:  # noqa: FBT001
    hub.faults.append(Fault(method="POST", path="/check-runs", status=status, is_done=is_done))
    reach(hub).check(start_check("candidate", HEAD))
    assert [one["status"] for one in hub.runs.values()] == ["in_progress"]


@pytest.mark.parametrize(
    ("status", "text", "headers"),
    [
        (403, SECONDARY, {}),
        (403, SECONDARY, {"Retry-After": "0"}),
        (429, SECONDARY, {}),
        (429, "", {"Retry-After": "0"}),
    ],
)
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/pulls/7"), ("POST", COMMENTS), ("POST", "/graphql")]
)
def test_a_secondary_rate_limit_is_waited_out(
    hub: GitHub, method: str, path: str, status: int, text: str, headers: dict[str, str]
) -> None:
    hub.faults += 2 * [Fault(method=method, path=path, status=status, message=text, headers=headers)]
    report(hub, message("regressed"))
    assert hub.shown == [message("regressed").body]
    assert hub.faults == []


def test_a_limit_without_a_time_is_waited_out_as_long_as_github_wants(
    hub: GitHub, caplog: pytest.LogCaptureFixture
) -> None:
    for status in (403, 429):
        hub.faults.append(Fault(method="GET", path="/pulls/7", status=status, message=SECONDARY))
        patience = dataclasses.replace(QUICK, rate_limit_s=0.1)
        access = GitHubAccess(token=TOKEN, api_url=hub.url, patience=patience)
        pull = GitHubPullRequest(access, repo="example/configs", number=7)
        before = time.monotonic()
        assert pull.head() == HEAD
        assert time.monotonic() - before >= 0.1
        assert caplog.messages.pop() == f"GitHub answered {status}; waiting, then trying again"


@pytest.mark.parametrize(("method", "path"), [("GET", COMMENTS), ("PATCH", "/issues/comments/")])
def test_reading_and_editing_are_tried_again(hub: GitHub, method: str, path: str) -> None:
    hub.write(message("regressed", "before").body)
    hub.faults += 2 * [Fault(method=method, path=path, status=502)]
    report(hub, message("regressed"))
    assert hub.shown == [message("regressed").body]


def test_pauses_grow_and_the_tries_end(hub: GitHub) -> None:
    hub.faults += 9 * [Fault(method="POST", path=COMMENTS, status=502)]
    pauses: list[float] = []
    access = GitHubAccess(token=TOKEN, api_url=hub.url, patience=QUICK, sleep=pauses.append)
    pull = GitHubPullRequest(access, repo="example/configs", number=7)
    with pytest.raises(GitHubError, match=r"did not answer 3 times \(Server Error\)"):
        pull.report(message("regressed"), print)
    assert pauses == [0.001, 0.002, 0.004]
    assert len([one for one in hub.writes if one.endswith(COMMENTS)]) == 3


REFUSALS = {
    401: (
        Fault(method="GET", path="/pulls/7", status=401, message="Bad credentials"),
        "check GITHUB_TOKEN",
    ),
    403: (
        Fault(
            method="POST", path=COMMENTS, status=403, message="Resource not accessible by integration"
        ),
        "`pull-requests: write`",
    ),
    404: (
        Fault(method="GET", path="/pulls/7", status=404, message="Not Found"),
        "check --repo and --pr",
    ),
    422: (
        Fault(method="POST", path=COMMENTS, status=422, message="Validation Failed"),
        "does not take it",
    ),
    429: (
        Fault(
            method="GET",
            path="/pulls/7",
            status=403,
            message="API rate limit exceeded for installation",
            headers={"X-RateLimit-Reset": "99999999999"},
        ),
        "rate limit of GitHub is used up",
    ),
}


@pytest.mark.parametrize("status", REFUSALS)
def test_a_refusal_is_one_sentence_that_says_what_to_check(hub: GitHub, status: int) -> None:
    fault, hint = REFUSALS[status]
    hub.faults.append(fault)
    with pytest.raises(GitHubError) as caught:
        report(hub, message("regressed"))
    text = str(caught.value)
    assert hint in text
    assert "example/configs#7" in text
    assert "\n" not in text
    assert TOKEN not in repr(caught.value) + text


@pytest.mark.parametrize(
    "fault",
    [
        Fault(method="GET", path="/pulls/7", status=200, page="<html>Sign in</html>"),
        Fault(method="GET", path="/pulls/7", status=200, page="{ is no JSON"),
        Fault(method="GET", path="/pulls/7", status=200, page=""),
        Fault(method="GET", path=COMMENTS, status=200, page="<html>Sign in</html>"),
        Fault(method="POST", path=COMMENTS, status=200, page="<html>Sign in</html>"),
        Fault(method="POST", path="/graphql", status=200, page="<html>Sign in</html>"),
        Fault(
            method="GET",
            path="/pulls/7",
            status=301,
            headers={"Location": "https://elsewhere.example/x"},
        ),
        Fault(
            method="GET",
            path="/pulls/7",
            status=302,
            page="",
            headers={"Location": "https://sso.example/"},
        ),
    ],
    ids=lambda fault: f"{fault.method} {fault.path} {fault.status} {fault.page}",
)
def test_what_is_no_github_is_said_to_be_none(hub: GitHub, fault: Fault) -> None:
    hub.faults.append(fault)
    with pytest.raises(GitHubError, match=r"did not answer as GitHub does .*check --api-url") as caught:
        report(hub, message("regressed"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("status", [403, 429])
def test_a_pause_that_is_too_long_ends_it_at_once(hub: GitHub, status: int) -> None:
    for method, path in (("GET", "/pulls/7"), ("POST", COMMENTS)):
        hub.faults.append(
            Fault(method=method, path=path, status=status, headers={"Retry-After": "3600"})
        )
        before = time.monotonic()
        with pytest.raises(GitHubError, match=r"asks for a pause of more than 5 s\); try again later"):
            report(hub, message("regressed"))
        assert time.monotonic() - before < QUICK.longest_s
        assert hub.shown == []


def test_what_somebody_minimised_is_not_edited(hub: GitHub) -> None:
    report(hub, message("regressed", "at first"))
    hub.minimised.update(one["node_id"] for one in hub.comments.values())
    assert [one.split()[0] for one in report(hub, message("regressed", "and again"))] == ["posted"]
    assert hub.shown == [message("regressed", "and again").body]


def test_a_finding_stays_visible_until_it_is_judged_again(hub: GitHub) -> None:
    report(hub, message("regressed"))
    assert [one.split()[0] for one in report(hub, message("invalid"))] == ["posted"]
    assert report(hub, message("invalid")) == []
    assert hub.shown == [message("regressed").body, message("invalid").body]
    report(hub, message("unchanged"))
    assert hub.shown == [message("unchanged").body]


def test_a_refused_check_run_says_which_permission_is_missing(hub: GitHub) -> None:
    refusal = "Resource not accessible by integration"
    hub.faults.append(Fault(method="POST", path="/check-runs", status=403, message=refusal))
    with pytest.raises(GitHubError, match=r"`checks: write`.*--no-check"):
        reach(hub).check(start_check("candidate", HEAD))


def test_wrong_token_wrong_number_and_no_server_are_told_apart(hub: GitHub) -> None:
    with pytest.raises(GitHubError, match="does not know the token") as caught:
        reach(hub, token="another-secret").head()  # noqa: S106
    assert "another-secret" not in str(caught.value)
    with pytest.raises(GitHubError, match="no such thing"):
        reach(hub, number=8).head()
    with pytest.raises(GitHubError, match="cannot be reached"):
        reach(dataclasses.replace(hub, url="http://127.0.0.1:9")).head()


def test_a_comment_that_would_not_be_found_again_is_an_error(hub: GitHub) -> None:
    with pytest.raises(
        GitHubError, match=r"but as github-actions\[bot\], not as someone: give --author"
    ):
        reach(hub, author="someone").report(message("regressed"), print)


def test_a_check_run_from_its_start_to_its_end(hub: GitHub) -> None:
    start = start_check("candidate", HEAD, "https://example.org/run")
    done = Check(
        name="candidate", sha=HEAD, conclusion="neutral", title="Cannot tell", summary="Too noisy.\n"
    )
    assert reach(hub).check(start).startswith("created")
    assert reach(hub).check(start) == ""
    assert reach(hub).check(done).startswith("updated")
    (run,) = hub.runs.values()
    assert (run["name"], run["head_sha"]) == ("knickpoint / candidate", HEAD)
    assert (run["status"], run["conclusion"]) == ("completed", "neutral")
    assert run["output"]["title"] == "Cannot tell"


def test_planning_writes_nothing(hub: GitHub) -> None:
    pull = reach(hub)
    said: list[str] = []
    assert pull.report(message("regressed"), said.append, is_dry=True)
    assert said == ["posted a new comment"]
    assert pull.check(start_check("candidate", HEAD), is_dry=True).startswith("created")
    assert hub.writes == []


def test_a_token_goes_over_https_or_stays_on_this_machine() -> None:
    for good in ("https://api.github.com", "https://git.example.org/api/v3", "http://127.0.0.1:4010"):
        assert find_api_url(good) == good
    for bad in (
        "http://api.github.com",
        "http://127.0.0.1.example.org",
        "https://a@b.org",
        "ftp://x",
        "",
    ):
        with pytest.raises(ValueError, match=r".*"):
            find_api_url(bad)
