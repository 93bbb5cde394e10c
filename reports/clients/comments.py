"""GitHub: one pull request, its comments and the check runs of its head. An edge, over PyGithub."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from github.CheckRun import CheckRun
from github.IssueComment import IssueComment
from github.PullRequest import PullRequest

from reports.clients.connection import ErrorHints, GitHubConnection, unsure
from reports.clients.patience import RetryPolicy
from reports.pull_requests.posting import (
    Check,
    CheckUpdate,
    Create,
    Edit,
    Existing,
    ExistingRun,
    Message,
    Minimise,
    Post,
    Step,
    find_own,
    has_result,
    plan_check,
    plan_comment,
)

_MOST_NODES = 100
"""Nodes that GitHub's GraphQL takes in one query."""
_COMMENTING = "the token needs `pull-requests: write`"
_CHECKING = (
    "the token needs `checks: write`, and must be that of a GitHub App, as GITHUB_TOKEN is; or leave"
    " the check out with --no-check"
)
_HINTS = ErrorHints(
    missing="check --repo and --pr",
    refused="is the commit one of that repository?",
    forbidden="A `pull_request` workflow of a fork never has it: comment from a `workflow_run` one",
)


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
        patience: RetryPolicy | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Remember what to ask; `author` is the login under which the token writes, asked for if empty.

        `api_url` is that of the REST interface: https://api.github.com, or https://HOST/api/v3.
        """
        self._repo, self._number = repo, number
        self._connection = GitHubConnection(
            where=f"{repo}#{number}",
            token=token,
            api_url=api_url,
            hints=_HINTS,
            author=author,
            patience=patience,
            sleep=sleep,
        )
        self._found: PullRequest | None = None

    def head(self) -> str:
        """Give the commit at the head of the pull request.

        Raises:
            GitHubError: there is no such pull request for this token, or GitHub does not answer.

        """
        with self._connection.explained(
            "read the pull request", "the token needs `pull-requests: read`"
        ):
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

        self._connection.repeat(act, "comment on the pull request", _COMMENTING)
        return bool(done)

    def plan_telling(self, message: Message, *, always: bool = False) -> tuple[Step, ...]:
        """Say what `tell` would do, and do nothing."""
        return self._connection.repeat(
            lambda: self._plan(message, always=always), "read the comments", _COMMENTING
        )

    def check(self, check: Check) -> str:
        """Create or update the check run; say what was done, nothing if all was.

        Raises:
            GitHubError: GitHub refuses, or does not answer.

        """
        return self._connection.repeat(lambda: self._settle(check), "write the check run", _CHECKING)

    def has_result(self, check: Check) -> bool:
        """Tell whether a last resort comes too late.

        Raises:
            GitHubError: GitHub refuses, or does not answer.

        """
        return self._connection.repeat(
            lambda: has_result([_as_run(one) for one in self._runs(check)], check),
            "read the check runs",
            "the token needs `checks: read`",
        )

    def plan_checking(self, check: Check) -> Create | CheckUpdate | None:
        """Say what `check` would do, and do nothing."""
        return self._connection.repeat(
            lambda: plan_check([_as_run(one) for one in self._runs(check)], check),
            "read the check runs",
            "the token needs `checks: read`",
        )

    def _pull(self) -> PullRequest:
        if self._found is None:
            found = self._connection.hub.get_repo(self._repo).get_pull(self._number)
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
        own = find_own(existing, message.name, self._connection.find_author())
        return plan_comment(self._mark_minimised(own), message, always=always)

    def _mark_minimised(self, own: Sequence[Existing]) -> Sequence[Existing]:
        """Tell which are minimised already; REST does not say it."""
        if not own:
            return own
        of_node = {self._comments[one.id].node_id: one for one in own[-_MOST_NODES:]}
        data = self._connection.query(
            "query($ids: [ID!]!) { nodes(ids: $ids) { ... on IssueComment { id isMinimized } } }",
            {"ids": list(of_node)},
        )
        minimised = {node["id"] for node in data["nodes"] if node and node["isMinimized"]}
        return [
            Existing(id=one.id, author=one.author, body=one.body, is_minimised=node in minimised)
            for node, one in of_node.items()
        ]

    def _take(self, step: Step) -> str:
        match step:
            case Post(body=body):
                with unsure():
                    made = self._pull().create_issue_comment(body)
                address = _find_address(made)
                self._connection.check_writer(_find_login(made), address)
                return f"posted {address}"
            case Edit(id=id_, body=body):
                self._comments[id_].edit(body)
                return f"edited {self._comments[id_].html_url}"
            case Minimise(id=id_):
                with unsure():
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
                with unsure():
                    made = self._pull().base.repo.create_check_run(
                        check.title_of_run, check.sha, external_id=check.external_id, **fields
                    )
                return f"created the check run {_find_address(made)}"
            case CheckUpdate(id=id_):
                runs[id_].edit(**fields)
                return f"updated the check run {runs[id_].html_url}"
            case None:
                return ""


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
