"""GitHub: one pull request, its comments and the check runs of its head. An edge, over PyGithub."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from github.CheckRun import CheckRun
from github.IssueComment import IssueComment
from github.PullRequest import PullRequest

from reports.clients.access import GitHubAccess
from reports.clients.connection import ErrorHints, GitHubConnection, find_login, unsure
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
    describe,
    describe_check,
    find_own,
    has_result,
    plan_check,
    plan_comment,
)

_T = TypeVar("_T")
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
    """A pull request on GitHub, as one token sees it; raises GitHubError as the connection does."""

    def __init__(self, access: GitHubAccess, *, repo: str, number: int) -> None:
        """Remember what to ask."""
        self._repo, self._number = repo, number
        self._connection = GitHubConnection(access, f"{repo}#{number}", _HINTS)
        self._found: PullRequest | None = None

    def head(self) -> str:
        """Return the commit at the head of the pull request."""
        with self._connection.explained(
            "read the pull request", "the token needs `pull-requests: read`"
        ):
            return self._pull().head.sha

    def report(
        self,
        message: Message,
        say: Callable[[str], object],
        *,
        always: bool = False,
        is_dry: bool = False,
    ) -> bool:
        """Write, edit and minimise comments until the message is there; return whether any was.

        Each step is said as soon as it is done: a later one may fail. A dry run only says them.
        """
        done: list[Step] = []

        def act() -> None:
            for step in self._plan(message, always=always):
                say(describe(step) if is_dry else self._take(step))
                done.append(step)

        what = "read the comments" if is_dry else "comment on the pull request"
        self._connection.repeat(act, what, _COMMENTING)
        return bool(done)

    def check(self, check: Check, *, is_dry: bool = False) -> str:
        """Create or update the check run; say what was done, nothing if all was."""
        if is_dry:
            return self._read(check, lambda runs: describe_check(plan_check(runs, check), check))
        return self._connection.repeat(lambda: self._settle(check), "write the check run", _CHECKING)

    def has_result(self, check: Check) -> bool:
        """Return whether a last resort comes too late."""
        return self._read(check, lambda runs: has_result(runs, check))

    def _read(self, check: Check, use: Callable[[list[ExistingRun]], _T]) -> _T:
        return self._connection.repeat(
            lambda: use([_as_run(one) for one in self._runs(check)]),
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
            Existing(id=one.id, author=find_login(one), body=one.body or "")
            for one in self._comments.values()
        ]
        own = find_own(existing, message.name, self._connection.find_author())
        return plan_comment(self._mark_minimised(own), message, always=always)

    def _mark_minimised(self, own: Sequence[Existing]) -> Sequence[Existing]:
        """Describe which are minimised already; REST does not say it."""
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
                return f"posted {self._connection.check_made(made)}"
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
                if not made.html_url:
                    raise LookupError("html_url")
                return f"created the check run {made.html_url}"
            case CheckUpdate(id=id_):
                runs[id_].edit(**fields)
                return f"updated the check run {runs[id_].html_url}"
            case None:
                return ""


def _as_run(run: CheckRun) -> ExistingRun:
    return ExistingRun(
        id=run.id,
        external_id=run.external_id or "",
        conclusion=run.conclusion or None,
        title=run.output.title or "",
        summary=run.output.summary or "",
        page_url=run.details_url or "",
    )
