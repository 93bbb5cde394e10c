"""GitHub: a comment on a pull request, who wrote it, and our answer. An edge, over PyGithub.

What is created here may be asked for twice: a delivery of GitHub's can come again, and an answer of its
can break. A reaction that is there already is not made twice; an answer is found by its hidden mark and
by its author. Only a workflow that was told to start cannot be asked about, so that is never repeated.
"""

from collections.abc import Mapping

from github.GithubException import UnknownObjectException
from github.Repository import Repository

from reports.clients.access import GitHubAccess
from reports.clients.connection import ErrorHints, GitHubConnection, Unsure, find_login, unsure

_SEEN = "eyes"
_WRITERS = frozenset({"admin", "maintain", "write"})
_COMMENTING = "the token needs `pull-requests: write` and `issues: write`"
_STARTING = "the token needs `actions: write`"
_HINTS = ErrorHints(
    missing="check --repo, and that the workflow is on the default branch",
    refused="does the workflow take these inputs, by `workflow_dispatch`?",
    forbidden="A `pull_request` workflow of a fork never has it",
)


class GitHubConversation:
    """One comment on one pull request, as one token sees it; raises as its connection does."""

    def __init__(self, access: GitHubAccess, *, repo: str, number: int, comment: int) -> None:
        """Remember what to ask: the `number` of the pull request, the id of the `comment`."""
        self._connection = GitHubConnection(access, f"{repo}#{number}", _HINTS)
        self._repo: Repository = self._connection.hub.get_repo(repo)
        self._name, self._number = repo, number
        self._issue = self._repo.get_issue(number)
        self._comment = self._issue.get_comment(comment)

    def may_write(self, login: str) -> bool:
        """Ask whether somebody may write to the repository; what the event says is not enough."""
        with self._connection.explained("ask who may write", "the token needs `metadata: read`"):
            try:
                return self._repo.get_collaborator_permission(login) in _WRITERS
            except UnknownObjectException:  # nobody of that name any more
                return False

    def is_accepted(self) -> bool:
        """Return whether we have accepted the comment before: a reaction of ours is on it."""
        with self._connection.explained("read the reactions", "the token needs `issues: read`"):
            author = self._connection.find_author()
            return any(
                one.content == _SEEN and find_login(one) == author
                for one in self._comment.get_reactions()
            )

    def accept(self) -> None:
        """Show eyes on the comment; GitHub keeps one of each."""

        def act() -> None:
            with unsure():
                self._comment.create_reaction(_SEEN)

        self._connection.repeat(act, "react to the comment", _COMMENTING)

    def describe_pull(self) -> dict[str, str]:
        """Return number, head and origin of the pull request, as inputs of a workflow.

        It is a stranger's unless its head is on a branch of the repository itself.
        """
        with self._connection.explained(
            "read the pull request", "the token needs `pull-requests: read`"
        ):
            head = self._repo.get_pull(self._number).head
            # The repository of a head may be gone; PyGithub's types do not know of it.
            home = getattr(head.repo, "full_name", "")
            is_stranger = home.lower() != self._name.lower()
            return {
                "pull": f"{self._number}",
                "sha": head.sha,
                "stranger": "true" if is_stranger else "false",
            }

    def start(self, workflow: str, inputs: Mapping[str, str]) -> str | None:
        """Start a workflow of the default branch; give the address of its run.

        The address is empty where the server does not tell it, and None means that the answer broke:
        it may have been started or not.
        """
        with self._connection.explained(f"start {workflow}", _STARTING):
            branch = self._repo.default_branch
            try:
                with unsure():
                    made = self._repo.get_workflow(workflow).create_dispatch(
                        branch, dict(inputs), throw=True, return_run_details=True
                    )
            except Unsure:
                return None
            return str(getattr(made, "html_url", None) or "")

    def reply(self, body: str, mark: str) -> str:
        """Answer, unless an answer of ours bears the mark already; give its address, or nothing.

        The mark is a line that nobody sees, such as an HTML comment.
        """

        def act() -> str:
            author = self._connection.find_author()
            for one in self._issue.get_comments():
                if (one.body or "").startswith(mark) and find_login(one) == author:
                    return ""
            with unsure():
                made = self._issue.create_comment(f"{mark}\n{body}")
            return self._connection.check_made(made)

        return self._connection.repeat(act, "answer the comment", _COMMENTING)
