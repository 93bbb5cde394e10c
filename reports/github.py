"""GitHub: one pull request, its comments and the check runs of its head. An edge, over PyGithub.

Everything here may be done twice. Reading, editing and a rate limit are tried again as they are. A
request that creates something is not: a broken answer leaves open whether it was done, so after a pause
the state is read and planned again, and what was done after all is found.
"""

import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import github
import requests
from github.CheckRun import CheckRun
from github.GithubException import (
    BadAttributeException,
    GithubException,
    RateLimitExceededException,
)
from github.IssueComment import IssueComment
from github.PullRequest import PullRequest

from perf.errors import GitHubError
from reports.github_patience import TOO_MANY, AsksTooMuch, Patience, build_retry
from reports.markdown import clean
from reports.posting import (
    Check,
    Create,
    Edit,
    Existing,
    ExistingRun,
    Message,
    Minimise,
    Post,
    Step,
    Update,
    find_own,
    has_result,
    plan_check,
    plan_comment,
)

_T = TypeVar("_T")
# It would say each refusal a second time, if anything in the process has set logging up.
logging.getLogger("github").setLevel(logging.WARNING)
_MOST_NODES = 100
"""Nodes that GitHub's GraphQL takes in one query."""
_BROKEN = 500
_STRANGE = (
    *(AttributeError, LookupError, TypeError, ValueError, AssertionError),
    *(RuntimeError, BadAttributeException),
)
"""What PyGithub comes to when it reads a page of a proxy, or is sent to another host."""
_COMMENTING = "the token needs `pull-requests: write`"
_CHECKING = (
    "the token needs `checks: write`, and must be that of a GitHub App, as GITHUB_TOKEN is; or leave"
    " the check out with --no-check"
)
_FORKS = "A `pull_request` workflow of a fork never has it: comment from a `workflow_run` one"


class _Unsure(Exception):  # noqa: N818  a state, not an error yet
    """GitHub was told to create something, and it is open whether it did."""


class GitHubPullRequest:
    """A pull request on GitHub, as one token sees it."""

    def __init__(
        self,
        *,
        repo: str,
        number: int,
        token: str,
        api_url: str,
        author: str = "",
        patience: Patience | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Remember what to ask; `author` is the login under which the token writes, asked for if empty.

        `api_url` is that of the REST interface: https://api.github.com, or https://HOST/api/v3.
        """
        self._where = f"{repo}#{number}"
        self._repo, self._number, self._author = repo, number, author
        self._patience, self._sleep = patience or Patience(), sleep
        self._url = api_url
        self._hub = github.Github(
            auth=github.Auth.Token(token),
            base_url=api_url.rstrip("/"),
            user_agent="knickpoint",
            per_page=100,
            lazy=True,
            retry=build_retry(self._patience),
            seconds_between_requests=None,  # a dozen requests need no spacing; limits are obeyed
            seconds_between_writes=None,
        )
        self._found: PullRequest | None = None

    def head(self) -> str:
        """Give the commit at the head of the pull request.

        Raises:
            GitHubError: there is no such pull request for this token, or GitHub does not answer.

        """
        with self._explained("read the pull request", "the token needs `pull-requests: read`"):
            return self._pull().head.sha

    def tell(self, message: Message, say: Callable[[str], object], *, always: bool = False) -> bool:
        """Write, edit and minimise comments until the message is told; tell whether anything was done.

        Each step is said as soon as it is done: a later one may fail.

        Raises:
            GitHubError: GitHub refuses, or does not answer.

        """
        done: list[Step] = []

        def act() -> None:
            for step in self._plan(message, always=always):
                say(self._take(step))
                done.append(step)

        self._repeat(act, "comment on the pull request", _COMMENTING)
        return bool(done)

    def plan_telling(self, message: Message, *, always: bool = False) -> tuple[Step, ...]:
        """Say what `tell` would do, and do nothing."""
        return self._repeat(
            lambda: self._plan(message, always=always), "read the comments", _COMMENTING
        )

    def check(self, check: Check) -> str:
        """Create or update the check run; say what was done, nothing if all was.

        Raises:
            GitHubError: GitHub refuses, or does not answer.

        """
        return self._repeat(lambda: self._settle(check), "write the check run", _CHECKING)

    def has_result(self, check: Check) -> bool:
        """Tell whether a last resort comes too late.

        Raises:
            GitHubError: GitHub refuses, or does not answer.

        """
        return self._repeat(
            lambda: has_result([_as_run(one) for one in self._runs(check)], check),
            "read the check runs",
            "the token needs `checks: read`",
        )

    def plan_checking(self, check: Check) -> Create | Update | None:
        """Say what `check` would do, and do nothing."""
        return self._repeat(
            lambda: plan_check([_as_run(one) for one in self._runs(check)], check),
            "read the check runs",
            "the token needs `checks: read`",
        )

    def _pull(self) -> PullRequest:
        if self._found is None:
            found = self._hub.get_repo(self._repo).get_pull(self._number)
            found.complete()
            self._found = found
        return self._found

    def _plan(self, message: Message, *, always: bool) -> tuple[Step, ...]:
        self._comments: dict[int, IssueComment] = {
            one.id: one for one in self._pull().get_issue_comments()
        }
        existing = [
            Existing(id=one.id, author=_find_login(one), body=one.body or "")
            for one in self._comments.values()
        ]
        own = find_own(existing, message.name, self._find_author())
        return plan_comment(self._mark_minimised(own), message, always=always)

    def _find_author(self) -> str:
        """Ask who writes with this token; a workflow's token may not ask REST for its user."""
        if not self._author:
            self._author = str(self._query("query { viewer { login } }", {})["viewer"]["login"])
        return self._author

    def _mark_minimised(self, own: Sequence[Existing]) -> Sequence[Existing]:
        """Tell which are minimised already; REST does not say it."""
        if not own:
            return own
        of_node = {self._comments[one.id].node_id: one for one in own[-_MOST_NODES:]}
        data = self._query(
            "query($ids: [ID!]!) { nodes(ids: $ids) { ... on IssueComment { id isMinimized } } }",
            {"ids": list(of_node)},
        )
        minimised = {node["id"] for node in data["nodes"] if node and node["isMinimized"]}
        return [
            Existing(id=one.id, author=one.author, body=one.body, is_minimised=node in minimised)
            for node, one in of_node.items()
        ]

    def _query(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        with _unsure():
            _, answer = self._hub.requester.graphql_query(query, variables)
        data: dict[str, Any] = answer["data"]
        return data

    def _take(self, step: Step) -> str:
        match step:
            case Post(body=body):
                with _unsure():
                    made = self._pull().create_issue_comment(body)
                address, writer = _find_address(made), _find_login(made)
                if writer != self._author:
                    # Nothing would find it again: each run would write a new one.
                    raise GitHubError(
                        f"posted {address}, but as {clean(writer)}, not as"
                        f" {self._author}: give --author, or the next run will not find it"
                    )
                return f"posted {address}"
            case Edit(id=id_, body=body):
                self._comments[id_].edit(body)
                return f"edited {self._comments[id_].html_url}"
            case Minimise(id=id_):
                with _unsure():
                    self._comments[id_].minimize("OUTDATED")
                return f"minimised {self._comments[id_].html_url}"

    def _runs(self, check: Check) -> list[CheckRun]:
        commit = self._pull().base.repo.get_commit(check.sha)
        return list(commit.get_check_runs(check_name=check.title_of_run))

    def _settle(self, check: Check) -> str:
        runs = {one.id: one for one in self._runs(check)}
        output: dict[str, Any] = {"title": check.title, "summary": check.summary}
        done = {"conclusion": check.conclusion} if check.conclusion else {}
        fields: dict[str, Any] = {
            "status": "completed" if check.conclusion else "in_progress",
            "output": output,
            **done,
            **({"details_url": check.page_url} if check.page_url else {}),
        }
        match plan_check([_as_run(one) for one in runs.values()], check):
            case Create():
                with _unsure():
                    made = self._pull().base.repo.create_check_run(
                        check.title_of_run, check.sha, external_id=check.external_id, **fields
                    )
                return f"created the check run {_find_address(made)}"
            case Update(id=id_):
                runs[id_].edit(**fields)
                return f"updated the check run {runs[id_].html_url}"
            case None:
                return ""

    def _repeat(self, action: Callable[[], _T], doing: str, permission: str) -> _T:
        """Plan and act; where it is open what was done, wait and plan again."""
        why: BaseException | None = None
        for attempt in range(self._patience.tries):
            try:
                with self._explained(doing, permission):
                    return action()
            except _Unsure as error:
                why = error.__cause__
                self._sleep(self._patience.pause_s * 2**attempt)
        raise GitHubError(
            f"could not {doing} of {self._where}: GitHub did not answer {self._patience.tries} times"
            f" ({_describe(why)})"
        ) from why

    @contextmanager
    def _explained(self, doing: str, permission: str) -> Iterator[None]:
        """Turn what GitHub or the network says into one sentence."""
        what = f"could not {doing} of {self._where}: "
        try:
            yield
        except GithubException as error:
            raise GitHubError(what + self._explain(error, permission)) from error
        except requests.RequestException as error:
            raise GitHubError(
                f"{what}{self._url} cannot be reached ({type(error).__name__}); check --api-url and the"
                " network"
            ) from error
        except _STRANGE as error:
            raise GitHubError(
                f"{what}{self._url} did not answer as GitHub does ({type(error).__name__}); check"
                " --api-url: is it that of the REST interface, and no page to sign in?"
            ) from error

    def _explain(self, error: GithubException, permission: str) -> str:
        said = f"({error.status}: {_describe(error)})"
        if isinstance(error, RateLimitExceededException | AsksTooMuch) or error.status == TOO_MANY:
            return f"the rate limit of GitHub is used up {said}; try again later"
        if error.status >= _BROKEN:
            return f"GitHub failed {self._patience.tries} times {said}; try again later"
        match error.status:
            case 401:
                what, hint = "does not know the token", f"check GITHUB_TOKEN, a token of {self._url}"
            case 400 | 403:  # GraphQL has no status of its own for what it forbids; PyGithub says 400
                what, hint = "forbids it", f"{permission}. {_FORKS}"
            case 404:
                what, hint = "has no such thing", f"check --repo and --pr; {permission}"
            case _:
                what, hint = "does not take it", "is the commit one of that repository?"
        return f"GitHub {what} {said}: {hint}"


@contextmanager
def _unsure() -> Iterator[None]:
    """Mark what a POST leaves open: an error of the server, or a connection that broke."""
    try:
        yield
    except GithubException as error:
        if error.status < _BROKEN:
            raise
        raise _Unsure from error
    except (requests.ConnectionError, requests.Timeout) as error:
        raise _Unsure from error


def _describe(error: BaseException | None) -> str:
    """Say what GitHub said, in a line; never more, since others may have written it."""
    if isinstance(error, GithubException):
        data = error.data if isinstance(error.data, dict) else {}
        of_graphql = [one.get("message") for one in data.get("errors", []) if isinstance(one, dict)]
        said = data.get("message") or error.message or "; ".join(filter(None, of_graphql))
        return clean(str(said or "no reason given"), 200)
    return type(error).__name__


def _find_login(comment: IssueComment) -> str:
    """Give who wrote it; nobody if the account is gone, which PyGithub's types do not know of."""
    return getattr(comment.user, "login", "")


def _find_address(made: IssueComment | CheckRun) -> str:
    """Give the address of what was made; raise LookupError where the answer is of something else."""
    if not made.html_url:
        raise LookupError("html_url")
    return made.html_url


def _as_run(run: CheckRun) -> ExistingRun:
    return ExistingRun(
        id=run.id,
        external_id=run.external_id or "",
        conclusion=run.conclusion or None,
        title=run.output.title or "",
        summary=run.output.summary or "",
        page_url=run.details_url or "",
    )


def find_api_url(text: str) -> str:
    """Check the address of the interface; over plain HTTP the token would be seen by all.

    Raises:
        ValueError: it is no address, or one of another host over plain HTTP.

    """
    if re.fullmatch(r"https://[^\s/@]+(/[^\s@?#]*)?", text):
        return text
    if re.fullmatch(r"http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/[^\s@?#]*)?", text):
        return text
    raise ValueError(text)
