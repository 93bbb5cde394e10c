"""The command that tells people of incidents: a message to a chat channel, an issue on GitHub."""

import json
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import click

from analysis.judging.judgement import Judgement
from perf.commands.options import configs_option, data_option
from perf.config.catalog import default_root, load_catalog
from perf.local import durable
from perf.local.places import Places
from perf.model.errors import GitHubError, HistoryError, KnickpointError, UsageError, WebhookError
from reports.clients.issues import GitHubIssues, describe_change
from reports.clients.webhook import Webhook, read_address
from reports.commands.options import (
    REPOSITORY,
    TOKENS,
    api_url_option,
    author_option,
    find_token,
    matching,
    site_url_option,
)
from reports.notifications.events import IncidentEvent, SentLogUpdate, plan_events
from reports.notifications.fingerprints import find_all_handles
from reports.notifications.issue_plan import SCOPE, Open, Step, plan_issues
from reports.notifications.notice import Notice, view_notices
from reports.notifications.notices_file import read_notices, write_notices
from reports.notifications.sent_log import Ledger, open_ledger
from reports.notifications.slack import MOST_ALONE, Message, render_digest, render_message
from reports.site.context import judge_state


@dataclass(frozen=True, slots=True, kw_only=True)
class _News:
    """What is known of all incidents, and where pages are."""

    notices: tuple[Notice, ...]
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
    help="Judge, and write all that there is to tell, for --notices on another machine.",
)
@click.option(
    "--notices",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --github-issues: tell what --save wrote; no history is needed.",
)
@site_url_option("Where the site is: messages and issues link the page of each incident.")
@click.option("--dry-run", is_flag=True, help="Print what would be told; tell nobody.")
@click.option(
    "--name",
    "scope",
    default="nightly",
    show_default=True,
    callback=matching(SCOPE, "letters, digits, dots, dashes, at most 50"),
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
    """Tell people what happened to incidents: in a chat channel, and as issues on GitHub.

    The history is judged as `knickpoint detect` judges it. An incident is several changes of one cause.

    --webhook sends a message when an incident is new, confirmed, mended or withdrawn, and none twice:
    what was told is kept in told.json in the data directory, written after each message that was
    acknowledged. The address is a secret, so it comes from $KNICKPOINT_WEBHOOK_URL alone; it is that of
    a Slack incoming webhook, or of a server that understands its messages. More than ten are one.

    --github-issues opens an issue for each incident that somebody should look at, rewrites it when its
    state changes, closes it when the incident is mended, withdrawn or decided in triage.yaml, and opens
    it again when it comes back. What somebody closed stays closed. Our issues are found by a hidden
    marker and their author, so nothing on this machine has to be kept. The token comes from
    $KNICKPOINT_GITHUB_TOKEN or $GITHUB_TOKEN, with `issues: write`.

    --save and --notices part the machine that holds the history from the one that holds the token. The
    file between them is read as hostile data.

    \b
    knickpoint notify --webhook --dry-run
    knickpoint notify --webhook --site-url https://example.org/perf
    knickpoint notify --github-issues example/perf --site-url https://example.org/perf

    Exit code 0 once all is told, even a regression; 2 on wrong usage or configuration; 3 if something
    could not be told, or there is no history to judge.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    _check_whom(to_webhook=to_webhook, repo=repo, save=save, notices=notices)
    # What cannot work must be known before anything is told.
    address = read_address(os.environ) if to_webhook and not dry_run else ""
    token = find_token() if repo else ""
    if repo and not token and not dry_run:
        raise UsageError(f"no token: set {' or '.join(TOKENS)}; --dry-run prints without one")
    places = Places(data)
    news = _find_news(notices, places, configs or default_root(), site_url)
    if save:
        durable.write(save, write_notices(news.notices, news.find_known()))
        click.echo(f"{len(news.notices)} to tell: {save}")
    tasks: list[Callable[[], None]] = []
    if to_webhook:
        tasks.append(lambda: _tell_channel(places, news, address, is_dry=dry_run))
    if repo and token:
        issues = GitHubIssues(repo=repo, token=token, api_url=api_url, author=author)
        tasks.append(lambda: _tell_issues(issues, news, scope, is_dry=dry_run))
    elif repo:
        tasks.append(lambda: _print_issues(news, scope))
    _do_all(tasks)


def _check_whom(*, to_webhook: bool, repo: str, save: Path | None, notices: Path | None) -> None:
    if not to_webhook and not repo and not save:
        raise UsageError("nobody is to be told: give --webhook, --github-issues OWNER/NAME or both")
    if notices and (save or to_webhook):
        raise UsageError(
            "--notices goes with --github-issues alone: the channel is told from a history"
        )


def _do_all(tasks: Sequence[Callable[[], None]]) -> None:
    """Tell each, whatever becomes of the others; raise in the end what failed."""
    failed: list[KnickpointError] = []
    for task in tasks:
        try:
            task()
        except (GitHubError, WebhookError) as error:
            failed.append(error)
    if failed:
        raise type(failed[0])("\n".join(f"not all was told: {error}" for error in failed))


def _read_news(places: Places, configs_root: Path, site_url: str) -> _News:
    """Judge the history. Raises HistoryError where there is nothing that could be told of."""
    judged = judge_state(places, load_catalog(configs_root), datetime.now(UTC).date())
    if not judged.judgement.series:
        raise HistoryError(
            f"{places.history} holds no series that is judged, so nothing can be told of it; is --data"
            " the right directory?"
        )
    by_id = {one.id: one for one in judged.heads}
    return _News(
        notices=view_notices(judged.judgement, by_id),
        find_known=_remember_handles(judged.judgement),
        site_url=site_url,
    )


def _find_news(notices: Path | None, places: Places, configs_root: Path, site_url: str) -> _News:
    """Take over what another machine judged, or judge."""
    if not notices:
        return _read_news(places, configs_root, site_url)
    found = read_notices(notices)
    return _News(notices=found.notices, find_known=lambda: found.known, site_url=site_url)


def _remember_handles(judgement: Judgement) -> Callable[[], Collection[str]]:
    """Give what finds all handles, once, and only if it is asked: it takes seconds."""
    return cache(lambda: find_all_handles(one.series for one in judgement.series))


def _tell_channel(places: Places, news: _News, address: str, *, is_dry: bool) -> None:
    if is_dry:
        _print_messages(Ledger(places.told), news)
        return
    webhook = Webhook(address)
    with open_ledger(places.told) as ledger:
        plan = plan_events(news.notices, ledger.told, news.find_known)
        _say_unknown(plan.unknown)
        ledger.write(*(one for one in plan.updates if one.event is None))
        told = 0
        for batch in _in_batches(plan.updates):
            webhook.send(_render([one.event for one in batch if one.event], news.site_url))
            ledger.write(*batch)
            told += len(batch)
            for one in batch:
                if one.event:
                    click.echo(f"told the channel: {one.event.kind}, {one.event.title}")
    if not told:
        click.echo("the channel knows all already")


def _in_batches(updates: Sequence[SentLogUpdate]) -> list[list[SentLogUpdate]]:
    """Give what is told in one message each."""
    due = [one for one in updates if one.event]
    return [[one] for one in due] if len(due) <= MOST_ALONE else [due]


def _render(events: Sequence[IncidentEvent], site_url: str) -> Message:
    if len(events) == 1:
        return render_message(events[0], site_url=site_url)
    return render_digest(events, site_url=site_url)


def _print_messages(ledger: Ledger, news: _News) -> None:
    plan = plan_events(news.notices, ledger.told, news.find_known)
    _say_unknown(plan.unknown)
    batches = _in_batches(plan.updates)
    for batch in batches:
        message = _render([one.event for one in batch if one.event], news.site_url)
        click.echo(json.dumps(message, indent=2, ensure_ascii=False))
    click.echo(f"would have sent {len(batches)} to the channel", err=True)


def _tell_issues(issues: GitHubIssues, news: _News, scope: str, *, is_dry: bool) -> None:
    if is_dry:
        plan = issues.plan_telling(news.notices, news.find_known, scope=scope, site_url=news.site_url)
        _print_steps(plan.steps)
    else:
        plan = issues.tell(
            news.notices, news.find_known, click.echo, scope=scope, site_url=news.site_url
        )
        if not plan.steps:
            click.echo("the issues say so already")
    _say_unknown(plan.unknown)


def _print_issues(news: _News, scope: str) -> None:
    """Print what can be said without asking GitHub."""
    plan = plan_issues(
        (), news.notices, news.find_known, author="", scope=scope, site_url=news.site_url
    )
    _print_steps(plan.steps)
    click.echo("There is no token, so GitHub was not asked what is there.", err=True)


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
            f"Cannot tell how this stands now, so it is left as it is: {title}. It was told of points"
            " that this history does not hold; is --data the right directory?",
            err=True,
        )
