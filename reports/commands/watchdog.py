"""The command that shouts when no fresh night came, wherever the night itself is silent."""

import os
from datetime import UTC, datetime
from functools import partial

import click

from perf.model.errors import GitHubError, MeasureError
from reports.clients.issues import GitHubIssues
from reports.clients.workflow_runs import GitHubWorkflow
from reports.commands.options import (
    REPOSITORY,
    api_url_option,
    author_option,
    find_access,
    matching,
)
from reports.notifications.night_watch import WORKFLOW, judge_nights, plan_issue, render_finding
from reports.notifications.summary_file import append_summary
from reports.wording.markdown import clean, escape

_MOST_SHOUTED = 1000


@click.command()
@click.option(
    "--repo",
    required=True,
    envvar="GITHUB_REPOSITORY",
    metavar="OWNER/NAME",
    callback=matching(REPOSITORY, "OWNER/NAME"),
    help="Where the workflow runs.  [env: GITHUB_REPOSITORY]",
)
@click.option(
    "--workflow",
    default="nightly.yml",
    show_default=True,
    metavar="FILE",
    callback=matching(WORKFLOW, "the name of a workflow's file, such as nightly.yml"),
    help="The workflow that measures nights.",
)
@click.option(
    "--max-age-hours",
    type=click.IntRange(1, 10_000),
    default=30,
    show_default=True,
    help="How old the newest night may be.",
)
@click.option(
    "--issue", "keeps_issue", is_flag=True, help="Keep an issue open while nights are missing."
)
@author_option
@api_url_option
def watchdog(
    *,
    repo: str,
    workflow: str,
    max_age_hours: int,
    keeps_issue: bool,
    author: str,
    api_url: str,
) -> None:
    """Alert when no recent night has been reported.

    Says what stands in the way.

    Run it anywhere but on the hosts that measure, for example on GitHub's: what it watches may be what
    is down. A night counts once a run on the default branch, by schedule or by hand, has kept an
    artifact night-…: that is done only when the night was reported completely, regression or not.

    It distinguishes a run that waits for a runner from one that failed, one that waits for the testbed
    or for an approval, one that is going on, and a schedule that GitHub has switched off.

    With --issue one issue is open as long as nights are missing, and closed when they are back; who
    closes it is not asked again for this gap. In a job of GitHub Actions it is in the
    summary and an error of the job as well.

    \b
    knickpoint watchdog --repo example/configs --workflow nightly.yml --max-age-hours 30
    knickpoint watchdog --repo example/configs --issue

    The token comes from $KNICKPOINT_GITHUB_TOKEN or $GITHUB_TOKEN, with `actions: read`, and
    `issues: write` for --issue.

    Exit code 0 if a night is fresh; 2 on wrong usage; 3 if none is, or if GitHub does not say.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    access = find_access(api_url, author, advice="")
    try:
        sight = GitHubWorkflow(access, repo=repo, workflow=workflow).look()
    except GitHubError as error:
        # Not to know is no better than to know that there is none.
        _shout(f"it is unknown whether there was a night: {error}", "")
        raise
    finding = judge_nights(sight, datetime.now(UTC), max_age_hours)
    if not finding.is_fresh:
        _shout(str(finding.sentence), render_finding(finding))
    for one in (finding.sentence, *finding.remarks):
        click.echo(str(one))
    if keeps_issue:
        GitHubIssues(access, repo).keep(partial(plan_issue, finding), click.echo)
    if not finding.is_fresh:
        raise MeasureError(str(finding.sentence))


def _shout(sentence: str, markdown: str) -> None:
    """Say it where GitHub Actions shows it; elsewhere the error that follows is enough."""
    shown = clean(sentence, _MOST_SHOUTED)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        # As GitHub's own toolkit escapes what a command of a workflow says.
        click.echo(f"::error title=No fresh night::{shown.replace('%', '%25')}")
    append_summary(lambda _: f"## ❌ No fresh night\n\n{markdown or escape(shown)}\n")
