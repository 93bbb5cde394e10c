"""The command that tells people of incidents: a message to a chat channel, an issue on GitHub."""

import json
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import click

from perf.commands.options import configs_option, data_option
from perf.config.catalog import default_root, load_catalog
from perf.local import durable
from perf.local.paths import DataPaths
from perf.model.errors import HistoryError, UsageError
from reports.clients.issues import GitHubIssues, describe_change
from reports.clients.webhook import Webhook, read_address
from reports.commands.options import (
    REPOSITORY,
    api_url_option,
    author_option,
    do_all,
    find_access,
    matching,
    read_access,
    site_url_option,
)
from reports.notifications.events import SentLogUpdate, plan_events
from reports.notifications.fingerprints import find_all_fingerprints
from reports.notifications.issue_plan import (
    ExistingIssue,
    IssuePlan,
    Open,
    Step,
    plan_issues,
)
from reports.notifications.notification import Notification, view_notifications
from reports.notifications.notifications_file import read_notifications, write_notifications
from reports.notifications.sent_log import SentLog, open_sent_log
from reports.notifications.slack import MOST_ALONE, Message, render_digest, render_message
from reports.site.context import judge_state
from reports.wording.markdown import MARKED_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class _News:
    """What is known of all incidents, and where pages are."""

    notices: tuple[Notification, ...]
    find_known: Callable[[], Collection[str]]
    site_url: str


@click.command()
@data_option
@configs_option
@click.option(
    "--webhook", "to_webhook", is_flag=True, help="Write to the channel of $KNICKPOINT_WEBHOOK_URL."
)
@click.option(
    "--github-issues",
    "repo",
    default="",
    metavar="OWNER/NAME",
    callback=matching(REPOSITORY, "OWNER/NAME"),
    help="Keep an issue for each incident in this repository.",
)
@click.option(
    "--save",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Judge, and write all notifications, for --notices on another machine.",
)
@click.option(
    "--notices",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --github-issues: send what --save wrote; no history is needed.",
)
@site_url_option("Where the site is: messages and issues link the page of each incident.")
@click.option("--dry-run", is_flag=True, help="Print what would be sent; send nothing.")
@click.option(
    "--name",
    "scope",
    default="nightly",
    show_default=True,
    callback=matching(MARKED_NAME, "letters, digits, dots, dashes, at most 50"),
    help="Issues of another name are left alone: name the history, if two share a repository.",
)
@author_option
@api_url_option
def notify(
    *,
    data: Path,
    configs: Path | None,
    to_webhook: bool,
    repo: str,
    save: Path | None,
    notices: Path | None,
    site_url: str,
    dry_run: bool,
    scope: str,
    author: str,
    api_url: str,
) -> None:
    """Send what is new to a channel or GitHub issues.

    The history is judged as `knickpoint detect` judges it. An incident is several changes of one cause.

    --webhook sends a message when an incident is new, confirmed, resolved or retracted, and none twice:
    the sent log lies in the data directory, written after each message that was
    acknowledged. The address is a secret, so it comes from $KNICKPOINT_WEBHOOK_URL alone; it is that of
    a Slack incoming webhook, or of a server that understands its messages. More than ten are one.

    --github-issues opens an issue for each incident that somebody should look at, rewrites it when its
    state changes, closes it when the incident is resolved, retracted or decided in triage.yaml, and
    opens it again when it comes back. What somebody closed stays closed. Issues are found by a hidden
    marker and their author, so nothing on this machine has to be kept. The token comes from
    $KNICKPOINT_GITHUB_TOKEN or $GITHUB_TOKEN, with `issues: write`.

    --save and --notices part the machine that holds the history from the one that holds the token. The
    file between them is read as hostile data.

    \b
    knickpoint notify --webhook --dry-run
    knickpoint notify --webhook --site-url https://example.org/perf
    knickpoint notify --github-issues example/perf --site-url https://example.org/perf

    Exit code 0 once all is sent, even a regression; 2 on wrong usage or configuration; 3 if something
    could not be sent, or there is no history to judge.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    _check_whom(to_webhook=to_webhook, repo=repo, save=save, notices=notices)
    # What cannot work must be known before anything is reported.
    address = read_address(os.environ) if to_webhook and not dry_run else ""
    access = (read_access if dry_run else find_access)(api_url, author) if repo else None
    paths = DataPaths(data)
    if notices:  # judged by another machine
        found = read_notifications(notices)
        news = _News(notices=found.notices, find_known=lambda: found.known, site_url=site_url)
    else:
        news = _read_news(paths, configs or default_root(), site_url)
    if save:
        durable.atomic_write(save, write_notifications(news.notices, news.find_known()))
        click.echo(f"{len(news.notices)} to send: {save}")
    tasks: list[Callable[[], None]] = []
    if to_webhook:
        tasks.append(lambda: _describe_channel(paths, news, address, is_dry=dry_run))
    if repo:
        issues = GitHubIssues(access, repo) if access else None
        tasks.append(lambda: _describe_issues(issues, news, scope, is_dry=dry_run))
    do_all(tasks, before="not all was sent: ")


def _check_whom(*, to_webhook: bool, repo: str, save: Path | None, notices: Path | None) -> None:
    if not to_webhook and not repo and not save:
        raise UsageError("no destination: give --webhook, --github-issues OWNER/NAME or both")
    if notices and (save or to_webhook):
        raise UsageError("--notices goes with --github-issues alone: the channel needs a history")


def _read_news(paths: DataPaths, configs_root: Path, site_url: str) -> _News:
    """Judge the history. Raise HistoryError where there is nothing to report."""
    judged = judge_state(paths, load_catalog(configs_root), datetime.now(UTC).date())
    series = [one.series for one in judged.judgement.series]
    if not series:
        raise HistoryError(
            f"{paths.history} holds no series that is judged, so there is nothing to send; is --data"
            " the right directory?"
        )
    return _News(
        notices=view_notifications(
            judged.judgement, {one.id: one for one in judged.heads}, judged.settings
        ),
        find_known=cache(
            lambda: find_all_fingerprints(series)
        ),  # once, and only if asked: it takes seconds
        site_url=site_url,
    )


def _describe_channel(paths: DataPaths, news: _News, address: str, *, is_dry: bool) -> None:
    def plan(sent_log: SentLog) -> tuple[SentLogUpdate, ...]:
        found = plan_events(news.notices, sent_log.sent, news.find_known)
        _say_unknown(found.unknown)
        return found.updates

    if is_dry:
        batches = _in_batches(plan(SentLog(paths.sent_log)))
        for batch in batches:
            click.echo(json.dumps(_render(batch, news.site_url), indent=2, ensure_ascii=False))
        click.echo(f"would have sent {len(batches)} to the channel", err=True)
        return
    webhook = Webhook(address)
    with open_sent_log(paths.sent_log) as sent_log:
        updates = plan(sent_log)
        sent_log.write(*(one for one in updates if one.event is None))
        batches = _in_batches(updates)
        for batch in batches:
            webhook.send(_render(batch, news.site_url))
            sent_log.write(*batch)
            for one in batch:
                if one.event:
                    click.echo(f"sent to the channel: {one.event.kind}, {one.event.title}")
    if not batches:
        click.echo("the channel knows all already")


def _in_batches(updates: Sequence[SentLogUpdate]) -> list[list[SentLogUpdate]]:
    """Return what is reported in one message each."""
    due = [one for one in updates if one.event]
    if len(due) > MOST_ALONE:
        return [due]
    return [[one] for one in due]


def _render(batch: Sequence[SentLogUpdate], site_url: str) -> Message:
    events = [one.event for one in batch if one.event]
    if len(events) == 1:
        return render_message(events[0], site_url=site_url)
    return render_digest(events, site_url=site_url)


def _describe_issues(issues: GitHubIssues | None, news: _News, scope: str, *, is_dry: bool) -> None:
    def plan(existing: Sequence[ExistingIssue], author: str) -> IssuePlan:
        return plan_issues(
            existing, news.notices, news.find_known, author=author, scope=scope, site_url=news.site_url
        )

    if issues is None:
        _print_steps(plan((), "").steps)
        click.echo("There is no token, so GitHub was not asked what is there.", err=True)
        return
    made = issues.keep(plan, None if is_dry else click.echo)
    if is_dry:
        _print_steps(made.steps)
    elif not made.steps:
        click.echo("the issues say so already")
    _say_unknown(made.unknown)


def _print_steps(steps: Sequence[Step]) -> None:
    for step in steps:
        click.echo(f"{step.title}\n\n{step.body}")
        done = (
            "opened an issue" if isinstance(step, Open) else f"{describe_change(step)} #{step.number}"
        )
        click.echo(f"would have {done}", err=True)
    if not steps:
        click.echo("no issue would change", err=True)


def _say_unknown(titles: Sequence[str]) -> None:
    for title in titles:
        click.echo(
            f"Status unknown, so it is left as it is: {title}. It was reported for points"
            " that this history does not hold; is --data the right directory?",
            err=True,
        )
