"""The issues of a repository on GitHub that we keep: one for each incident. An edge, over PyGithub.

All issues are read, page by page, and ours are found among them here: a listing that GitHub filters by
author comes back empty for some tokens, and then every run would write everything anew.
"""

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from github.Issue import Issue
from github.Repository import Repository

from reports.clients.connection import ErrorHints, GitHubConnection, unsure
from reports.clients.patience import RetryPolicy
from reports.notifications.issue_plan import Change, ExistingIssue, IssuePlan, Open, Step, plan_issues
from reports.notifications.notice import Notice

_WRITING = "the token needs `issues: write`"
_HINTS = ErrorHints(
    missing="check --github-issues",
    refused="are issues enabled in that repository?",
    forbidden="A `pull_request` workflow of a fork never has it",
)


class GitHubIssues:
    """The issues of one repository, as one token sees them."""

    def __init__(
        self,
        *,
        repo: str,
        token: str,
        api_url: str,
        author: str = "",
        patience: RetryPolicy | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Remember what to ask; `author` is the login under which the token writes, asked for if empty.

        `api_url` is that of the REST interface: https://api.github.com, or https://HOST/api/v3.
        """
        self._name = repo
        self._connection = GitHubConnection(
            where=repo,
            token=token,
            api_url=api_url,
            hints=_HINTS,
            author=author,
            patience=patience,
            sleep=sleep,
        )
        self._repo: Repository = self._connection.hub.get_repo(repo)
        self._issues: dict[int, Issue] = {}

    def tell(
        self,
        notices: Sequence[Notice],
        find_known: Callable[[], Collection[str]],
        say: Callable[[str], object],
        *,
        scope: str,
        site_url: str = "",
    ) -> IssuePlan:
        """Open, rewrite and close issues until all is told; give the last plan.

        Each step is said as soon as it is done: a later one may fail.

        Raises:
            GitHubError: GitHub refuses, or does not answer.

        """

        def act() -> IssuePlan:
            plan = self._plan(notices, find_known, scope, site_url)
            for step in plan.steps:
                say(self._take(step))
            return plan

        return self._connection.repeat(act, "write the issues", _WRITING)

    def keep(
        self,
        plan: Callable[[Sequence[ExistingIssue], str], Sequence[Step]],
        say: Callable[[str], object],
    ) -> None:
        """Do what a plan makes of all issues and of our own login, until there is nothing left to do.

        Raises:
            GitHubError: GitHub refuses, or does not answer.

        """

        def act() -> None:
            existing = self._read()
            for step in plan(existing, self._connection.find_author()):
                say(self._take(step))

        self._connection.repeat(act, "write the issues", _WRITING)

    def plan_telling(
        self,
        notices: Sequence[Notice],
        find_known: Callable[[], Collection[str]],
        *,
        scope: str,
        site_url: str = "",
    ) -> IssuePlan:
        """Say what `tell` would do, and do nothing."""
        return self._connection.repeat(
            lambda: self._plan(notices, find_known, scope, site_url),
            "read the issues",
            "the token needs `issues: read`",
        )

    def _plan(
        self,
        notices: Sequence[Notice],
        find_known: Callable[[], Collection[str]],
        scope: str,
        site_url: str,
    ) -> IssuePlan:
        existing = self._read()
        author = self._connection.find_author()
        return plan_issues(existing, notices, find_known, author=author, scope=scope, site_url=site_url)

    def _read(self) -> list[ExistingIssue]:
        self._issues = {
            one.number: one
            for one in self._repo.get_issues(state="all", sort="created", direction="asc")
            if not _is_pull_request(one)
        }
        return [
            ExistingIssue(
                number=one.number,
                author=_find_login(one),
                title=one.title,
                body=one.body or "",
                is_open=one.state == "open",
            )
            for one in self._issues.values()
        ]

    def _take(self, step: Step) -> str:
        match step:
            case Open(title=title, body=body):
                with unsure():
                    made = self._repo.create_issue(title=title, body=body)
                address = made.html_url
                if not address:
                    raise LookupError("html_url")
                self._connection.check_writer(_find_login(made), address)
                return f"opened {address}"
            case Change(number=number, title=title, body=body, is_open=is_open, ending=ending):
                fields: dict[str, Any] = {"title": title, "body": body}
                if is_open is not None:
                    reason = "reopened" if is_open else ending
                    fields |= {"state": "open" if is_open else "closed", "state_reason": reason}
                self._issues[number].edit(**fields)
                return f"{describe_change(step)} {self._issues[number].html_url}"


def describe_change(step: Change) -> str:
    """Say in a word what becomes of an issue."""
    return {None: "rewrote", True: "reopened", False: "closed"}[step.is_open]


def _is_pull_request(issue: Issue) -> bool:
    """Tell whether it is a pull request, which GitHub lists among the issues.

    By its address, which is in the listing: the field that says so is missing for an issue, and to ask
    for it would be a request for each.
    """
    return "/pull/" in issue.html_url


def _find_login(issue: Issue) -> str:
    """Give who wrote it; nobody if the account is gone, which PyGithub's types do not know of."""
    return getattr(issue.user, "login", "")
