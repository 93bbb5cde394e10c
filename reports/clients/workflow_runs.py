"""GitHub: the runs of one workflow, and which of them reported a night. An edge, over PyGithub."""

from collections.abc import Sequence
from itertools import islice

from github.Workflow import Workflow
from github.WorkflowRun import WorkflowRun

from reports.clients.access import GitHubAccess
from reports.clients.connection import ErrorHints, GitHubConnection
from reports.notifications.night_watch import EVENT, NIGHT, NightRun, ReportedNight, Sight

_READING = "the token needs `actions: read`"
_MOST_RUNS = 50
_TELLS = frozenset({"success", "failure"})
"""How a run may end that reported a night: a regression fails it."""
_HINTS = ErrorHints(missing="check --repo and --workflow", refused="check --repo and --workflow")


class GitHubWorkflow:
    """A workflow on the default branch, as one token sees it."""

    def __init__(self, access: GitHubAccess, *, repo: str, workflow: str) -> None:
        """Remember what to ask; `workflow` is the name of its file."""
        self._connection = GitHubConnection(access, f"{repo}, {workflow}", _HINTS)
        self._name = workflow
        self._repo = self._connection.hub.get_repo(repo)

    def look(self) -> Sight:
        """Read its state, the newest runs of its schedule and the newest night of these."""
        with self._connection.explained("read the runs", _READING):
            workflow: Workflow = self._repo.get_workflow(self._name)
            listed = workflow.get_runs(branch=self._repo.default_branch, event=EVENT)
            runs = [one for one in islice(listed, _MOST_RUNS) if one.event == EVENT]
            return Sight(
                workflow=self._name,
                state=workflow.state,
                runs=tuple(_as_run(one) for one in runs),
                night=_find_night(runs),
            )


def _find_night(runs: Sequence[WorkflowRun]) -> ReportedNight | None:
    for run in runs:
        if run.status == "completed" and run.conclusion in _TELLS:
            for one in run.get_artifacts():
                if one.name.startswith(NIGHT):
                    return ReportedNight(url=run.html_url, reported_at=one.created_at)
    return None


def _as_run(run: WorkflowRun) -> NightRun:
    return NightRun(
        url=run.html_url,
        status=run.status,
        conclusion=run.conclusion or "",
        created_at=run.created_at,
        updated_at=run.updated_at,
    )
