"""The issues of a repository on GitHub that we keep: one for each incident. An edge, over PyGithub.

All issues are read, page by page, and ours are found among them here: a listing that GitHub filters by
author comes back empty for some tokens, and then every run would write everything anew.
"""

from collections.abc import Callable, Sequence
from typing import Any

from github.Issue import Issue
from github.Repository import Repository

from reports.clients.access import GitHubAccess
from reports.clients.connection import ErrorHints, GitHubConnection, find_login, unsure
from reports.notifications.issue_plan import Change, ExistingIssue, IssuePlan, Open, Step

_WRITING = "the token needs `issues: write`"
_HINTS = ErrorHints(
    missing="check --github-issues",
    refused="are issues enabled in that repository?",
    forbidden="A `pull_request` workflow of a fork never has it",
)


class GitHubIssues:
    """The issues of one repository, as one token sees them; raises as its connection does."""

    def __init__(self, access: GitHubAccess, repo: str) -> None:
        """Remember what to ask."""
        self._connection = GitHubConnection(access, repo, _HINTS)
        self._repo: Repository = self._connection.hub.get_repo(repo)
        self._issues: dict[int, Issue] = {}

    def keep(
        self,
        plan: Callable[[Sequence[ExistingIssue], str], IssuePlan],
        say: Callable[[str], object] | None,
    ) -> IssuePlan:
        """Do what a plan makes of all issues and of our own login; give the last plan.

        Each step is said as soon as it is done: a later one may fail. Without `say` nothing is done.
        """

        def act() -> IssuePlan:
            existing = self._read()
            made = plan(existing, self._connection.find_author())
            if say:
                for step in made.steps:
                    say(self._take(step))
            return made

        if say is None:
            return self._connection.repeat(act, "read the issues", "the token needs `issues: read`")
        return self._connection.repeat(act, "write the issues", _WRITING)

    def _read(self) -> list[ExistingIssue]:
        self._issues = {
            one.number: one
            for one in self._repo.get_issues(state="all", sort="created", direction="asc")
            if not _is_pull_request(one)
        }
        return [
            ExistingIssue(
                number=one.number,
                author=find_login(one),
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
                return f"opened {self._connection.check_made(made)}"
            case Change(number=number, title=title, body=body, is_open=is_open, ending=ending):
                fields: dict[str, Any] = {"title": title, "body": body}
                if is_open is not None:
                    reason = "reopened" if is_open else ending
                    fields |= {"state": "open" if is_open else "closed", "state_reason": reason}
                self._issues[number].edit(**fields)
                return f"{describe_change(step)} {self._issues[number].html_url}"


def describe_change(step: Change) -> str:
    """Describe in a word what becomes of an issue."""
    return {None: "rewrote", True: "reopened", False: "closed"}[step.is_open]


def _is_pull_request(issue: Issue) -> bool:
    """Return whether it is a pull request, which GitHub lists among the issues.

    By its address, which is in the listing: the field that says so is missing for an issue, and to ask
    for it would be a request for each.
    """
    return "/pull/" in issue.html_url
