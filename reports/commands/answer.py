"""The command that answers `/knickpoint …` in a comment on a pull request, and may start a workflow."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click
from pydantic import Field, TypeAdapter, ValidationError

from perf.local.plain_files import read_input, read_json
from perf.model.errors import GitHubError, InputError, UsageError
from reports.clients.conversation import GitHubConversation
from reports.commands.options import (
    REPOSITORY,
    api_url_option,
    author_option,
    find_access,
    matching,
)
from reports.pull_requests.asking import (
    CANDIDATE,
    MOST_MINUTES,
    Asked,
    Help,
    Limits,
    Mistake,
    Start,
    read_asked,
    say_failed,
    say_refused,
    say_started,
    say_unsure,
    say_usage,
)

_MOST_BYTES = 5_000_000
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _User:
    login: str
    type: str = "User"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comment:
    id: Annotated[int, Field(gt=0, lt=2**63)]
    body: str | None = None
    user: _User | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Issue:
    number: Annotated[int, Field(gt=0, lt=2**31)]
    state: str
    pull_request: dict[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repository:
    full_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentEvent:
    """What is read of GitHub's `issue_comment` event; all else in it is ignored."""

    action: str
    issue: _Issue
    comment: _Comment
    repository: _Repository


_EVENT = TypeAdapter(CommentEvent)


@click.command()
@click.option(
    "--event",
    "event_path",
    required=True,
    envvar="GITHUB_EVENT_PATH",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The `issue_comment` event, as GitHub writes it.  [env: GITHUB_EVENT_PATH]",
)
@click.option(
    "--repo",
    required=True,
    envvar="GITHUB_REPOSITORY",
    metavar="OWNER/NAME",
    callback=matching(REPOSITORY, "OWNER/NAME"),
    help="Where the pull request is.  [env: GITHUB_REPOSITORY]",
)
@click.option(
    "--measure-minutes",
    type=click.IntRange(1, MOST_MINUTES),
    default=240,
    show_default=True,
    help="Most minutes of trials that `measure` may ask for, and what it gets if it names none.",
)
@click.option(
    "--bisect-minutes",
    type=click.IntRange(1, MOST_MINUTES),
    default=480,
    show_default=True,
    help="The same of `bisect`.",
)
@click.option(
    "--server-url",
    envvar="GITHUB_SERVER_URL",
    default="https://github.com",
    show_default=True,
    metavar="URL",
    callback=matching(re.compile(r"https?://[A-Za-z0-9.:/\[\]-]{1,200}"), "an address"),
    help="Where people see the runs.  [env: GITHUB_SERVER_URL]",
)
@click.option("--dry-run", is_flag=True, help="Say what would be started, and ask GitHub nothing.")
@author_option
@api_url_option
def answer(
    *,
    event_path: Path,
    repo: str,
    measure_minutes: int,
    bisect_minutes: int,
    server_url: str,
    dry_run: bool,
    author: str,
    api_url: str,
) -> None:
    """Do what a /knickpoint comment asks for.

    The author must be allowed to write to the repository.

    \b
    /knickpoint measure [--suite SUITE] [--minutes N] [--attribute]
    /knickpoint bisect INCIDENT [--suite SUITE] [--minutes N]
    /knickpoint bisect SYSTEM FIRST..LAST --experiment EXPERIMENT --metric METRIC …
    /knickpoint help

    Only the first line of a new comment on an open pull request counts; anything else is ignored, and
    so are bots. GitHub is asked whether the author may write to the repository; who may not gets one
    polite refusal on each pull request. measure starts candidate.yml for the commit that is the head
    then, bisect starts bisect.yml, both on the default branch. Eyes on the comment mean that it is
    accepted, and a comment that has them is not acted on again; the answer says what was started, how
    long it takes at most and where to see it.

    \b
    knickpoint answer                                              in a workflow on issue_comment
    knickpoint answer --event event.json --repo example/configs --dry-run

    The token comes from $KNICKPOINT_GITHUB_TOKEN or $GITHUB_TOKEN, with `actions: write`,
    `issues: write` and `pull-requests: write`.

    Exit code 0 once it is answered or ignored; 2 if the file is no such event; 3 if GitHub does not
    start it or does not take the answer.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    event = _read_event(event_path)
    if event.repository.full_name.lower() != repo.lower():
        raise UsageError(f"the event is not one of {repo} (--repo); is it that of another workflow?")
    limits = Limits(measure=measure_minutes, bisect=bisect_minutes)
    asked = read_asked(event.comment.body or "", limits)
    if asked is None or not _find_person(event):
        click.echo("no command in a new comment on an open pull request: nothing to do")
        return
    if dry_run:
        click.echo(_describe(asked))
        return
    conversation = GitHubConversation(
        find_access(api_url, author, "; --dry-run does without one"),
        repo=repo,
        number=event.issue.number,
        comment=event.comment.id,
    )
    _answer(conversation, asked, event, f"{server_url.rstrip('/')}/{repo}/actions/workflows")


def _answer(
    conversation: GitHubConversation, asked: Asked, event: CommentEvent, workflows_url: str
) -> None:
    login = _find_person(event)
    mark = f"<!-- knickpoint:answer to={event.comment.id} -->"
    if not conversation.may_write(login):
        _say(conversation.reply(say_refused(login), f"<!-- knickpoint:refused login={login} -->"))
    elif isinstance(asked, Start):
        _start(conversation, asked, mark, workflows_url)
    else:
        why = asked.why if isinstance(asked, Mistake) else ""
        _say(conversation.reply(say_usage(why), mark))


def _read_event(path: Path) -> CommentEvent:
    """Read what a stranger had a hand in: the size first, then the shape.

    Raises:
        InputError: it cannot be read, is too large, or is no such event.

    """
    content = read_input(path, _MOST_BYTES, read_json)
    try:
        return _EVENT.validate_json(content)
    except ValidationError as error:
        where = ".".join(map(str, error.errors(include_input=False)[0]["loc"])) or "its form"
        problem = f"no `issue_comment` event: {where} is missing or wrong; does the workflow run on it?"
        raise InputError(path, [problem]) from error


def _find_person(event: CommentEvent) -> str:
    """Return who wrote a new comment on an open pull request; nothing if it is not that."""
    user = event.comment.user
    is_new = event.action == "created" and event.issue.state == "open"
    if not is_new or event.issue.pull_request is None or user is None or user.type != "User":
        return ""
    return user.login if _LOGIN.fullmatch(user.login) else ""


def _start(conversation: GitHubConversation, asked: Start, mark: str, workflows_url: str) -> None:
    """Accept, start, answer, in this order: what is accepted is never started twice.

    Raises:
        GitHubError: it was not started, or nobody knows; the comment is answered all the same.

    """
    if conversation.is_accepted():
        click.echo("this comment was accepted before: nothing to do")
        return
    conversation.accept()
    runs_url = f"{workflows_url}/{asked.workflow}"
    try:
        # What the pull request is comes from GitHub, not from the comment.
        about = conversation.describe_pull() if asked.workflow == CANDIDATE else {}
        run_url = conversation.start(asked.workflow, {**asked.inputs, **about})
    except GitHubError as error:
        _answer_failure(conversation, say_failed(asked, "GitHub refuses; the log says why"), mark)
        raise GitHubError(f"nothing was started: {error}") from error
    if run_url is None:
        _answer_failure(conversation, say_unsure(asked, runs_url), mark)
        raise GitHubError(f"GitHub did not say whether it started {asked.workflow}: look at {runs_url}")
    click.echo(f"started {asked.workflow}: {run_url or runs_url}")
    _say(conversation.reply(say_started(asked, runs_url, run_url), mark))


def _answer_failure(conversation: GitHubConversation, body: str, mark: str) -> None:
    try:
        _say(conversation.reply(body, mark))
    except GitHubError as error:
        click.echo(str(error), err=True)


def _say(address: str) -> None:
    click.echo(f"answered {address}" if address else "answered before: nothing to do")


def _describe(asked: Asked) -> str:
    match asked:
        case Start(workflow=workflow, inputs=inputs, what=what):
            listed = "".join(f"\n  {key}: {value}" for key, value in inputs.items())
            return f"would start {workflow}, if its author may: {what}{listed}"
        case Mistake(why=why):
            return f"would answer with the usage: {why}"
        case Help():
            return "would answer with the usage"
