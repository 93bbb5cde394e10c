"""The command that tells GitHub: a comment on a pull request, and a check run on its head."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click

from analysis.comparing.results import MOST_BYTES, SCHEMA_VERSION, ComparisonFile, read_comparisons
from perf.local.plain_files import read_input
from perf.model.errors import GitHubError, InputError, UsageError
from reports.clients.comments import GitHubPullRequest
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
from reports.pull_requests.artifact import read_artifact
from reports.pull_requests.comment import render_comment
from reports.pull_requests.posting import (
    Check,
    Create,
    Message,
    conclude_check,
    describe_check,
    find_findings,
    start_check,
)
from reports.wording.markdown import MARKED_NAME, clean

_MOST_REASON = 300
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOptions:
    """What the options ask for, apart from what is reported on."""

    name: str
    sha: str
    site_url: str
    always: bool
    dry_run: bool
    has_check: bool


@click.command()
@click.option(
    "--comparison",
    type=click.Path(path_type=Path),
    help="The comparison.json that `knickpoint candidate` or `knickpoint compare` wrote.",
)
@click.option(
    "--artifact",
    type=click.Path(path_type=Path),
    metavar="ZIP",
    help="The same, in the zip of an artifact of GitHub; nothing else in it is read.",
)
@click.option("--start", "starts", is_flag=True, help="Only begin the check run: in progress.")
@click.option(
    "--failed",
    metavar="TEXT",
    help="Report a Knickpoint error, with TEXT as the reason, unless there is a result.",
)
@click.option(
    "--repo",
    required=True,
    metavar="OWNER/NAME",
    callback=matching(REPOSITORY, "OWNER/NAME"),
)
@click.option("--pr", required=True, type=click.IntRange(min=1), help="Number of the pull request.")
@click.option(
    "--sha",
    default="",
    callback=matching(_SHA, "a full commit hash"),
    help="The commit that was to be measured, from the event. A result about another one is refused.",
)
@click.option(
    "--name",
    default="candidate",
    show_default=True,
    callback=matching(MARKED_NAME, "letters, digits, dots, dashes, at most 50"),
    help="One comment and one check run are kept for each name: name the suite.",
)
@site_url_option(
    "Where the site is: the comment links the page of each comparison, the check run the site."
)
@click.option("--always", is_flag=True, help="Comment even if nothing changed.")
@click.option("--no-check", "has_check", flag_value=False, default=True, help="No check run.")
@click.option("--dry-run", is_flag=True, help="Print the comment and what would be done; do nothing.")
@author_option
@api_url_option
def comment(
    *,
    comparison: Path | None,
    artifact: Path | None,
    starts: bool,
    failed: str | None,
    repo: str,
    pr: int,
    author: str,
    api_url: str,
    **given: str | bool,
) -> None:
    """Write the result to its pull request on GitHub.

    One comment per pull request and --name is kept up to date. If the state got worse, a new one is
    written, since an edit sends no mail, and the old one is minimised; if it stayed or got better, the
    comment is edited. If nothing changed and there is no comment yet, none is written (but for
    --always). The same result written twice changes nothing.

    A check run "knickpoint / NAME" on the commit says the same: in progress (--start), then success,
    failure, or neutral for "cannot tell". --failed reports a Knickpoint error; it changes nothing where
    the check run has a result already. A file that is refused is reported like --failed, if --sha names
    the commit.

    The token comes from $KNICKPOINT_GITHUB_TOKEN or $GITHUB_TOKEN, with `pull-requests: write` and
    `checks: write`. With --dry-run a token is only used to read; without one, GitHub is not asked.

    \b
    knickpoint comment --start --repo example/configs --pr 7 --sha "$HEAD_SHA"
    knickpoint comment --comparison var/comparison.json --repo example/configs --pr 7 --sha "$HEAD_SHA"
    knickpoint comment --artifact comparison.zip --repo example/configs --pr 7 --sha "$HEAD_SHA"
    knickpoint comment --failed "the job ended early" --repo example/configs --pr 7 --sha "$HEAD_SHA"

    Exit code 0 once all is written, even a regression; 2 if the file is refused: none, or not about the
    commit; 3 if GitHub did not take all of it: what it took is said first.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    path = comparison or artifact
    if sum((comparison is not None, artifact is not None, starts, failed is not None)) != 1:
        raise UsageError("give one of --comparison FILE, --artifact ZIP, --start and --failed TEXT")
    options = CommentOptions(**given)  # type: ignore[arg-type]  # click checked each of them
    if starts and not options.has_check:
        raise UsageError("--start begins a check run, --no-check wants none; leave one of them out")
    find = read_access if options.dry_run else find_access
    access = find(api_url, author)
    pull = GitHubPullRequest(access, repo=repo, number=pr) if access else None
    if path:
        try:
            content = _accept(path, options.sha, is_zipped=artifact is not None)
        except (InputError, UsageError) as refusal:
            _describe_refusal(pull, refusal, options)
            raise
        _report(pull, content, options)
    else:
        _report(pull, None if starts else _fail(failed or ""), options, is_last_resort=not starts)


def _accept(path: Path, sha: str, *, is_zipped: bool) -> ComparisonFile:
    """Read the file, and refuse one that is not about the commit that was to be measured."""
    content = read_artifact(path) if is_zipped else read_input(path, MOST_BYTES)
    found = read_comparisons(content, path)
    if sha and not found.head:
        raise UsageError(
            f"the comparison names no commit, so nothing says that it is about {sha} (--sha); only"
            " `knickpoint candidate` writes one that does"
        )
    if sha and found.head and not sha.startswith(found.head.sha):
        raise UsageError(
            f"the comparison is about {found.head.sha}, not about {sha} (--sha): was the head of the"
            " pull request checked out, or the merge of it?"
        )
    return found


def _describe_refusal(
    pull: GitHubPullRequest | None, refusal: InputError | UsageError, options: CommentOptions
) -> None:
    """Let no check run wait for a result that was refused; without --sha nobody knows which one."""
    if pull is None or not options.sha:
        return
    # Of a file only what is wrong with it, not where it lay.
    why = "; ".join(refusal.problems) if isinstance(refusal, InputError) else str(refusal)
    text = clean(f"the result file was refused: {why}", _MOST_REASON)
    try:
        _report(pull, _fail(text), options, is_last_resort=True)
    except GitHubError as error:
        click.echo(str(error), err=True)


def _fail(text: str) -> ComparisonFile:
    return ComparisonFile(
        schema_version=SCHEMA_VERSION,
        created_at=datetime.now(UTC),
        knickpoint=version("knickpoint"),
        problems=(text,),
    )


def _report(
    pull: GitHubPullRequest | None,
    content: ComparisonFile | None,
    options: CommentOptions,
    *,
    is_last_resort: bool = False,
) -> None:
    if pull is None:
        _print_alone(content, options)
        return
    head = pull.head()
    if content is None:
        _do_all(pull, None, start_check(options.name, options.sha or head, options.site_url), options)
        return
    if is_last_resort:
        sha, missing = options.sha or head, ""
    else:
        sha, missing = choose_commit(content, options.sha, head)
    message = _compose(content, options, sha, head)
    if missing and options.has_check:
        click.echo(f"no check run: {missing}", err=True)
    check = conclude_check(content, message, options.site_url, is_last_resort=is_last_resort)
    if options.has_check and _comes_too_late(pull, check):
        click.echo("the check run has a result already: nothing is written")
        return
    _do_all(pull, message, None if missing else check, options)


def _comes_too_late(pull: GitHubPullRequest, check: Check) -> bool:
    try:
        return check.is_last_resort and pull.has_result(check)
    except GitHubError:  # whoever writes the check run is refused as well, and says so
        return False


def choose_commit(content: ComparisonFile, sha: str, head: str) -> tuple[str, str]:
    """Return the commit that is reported on, and why it gets no check run; nothing if it may get one.

    The file is from a job that may have run a stranger's code: by its word alone, only the head of the
    pull request gets one. Otherwise it could name any commit of the repository, or pass without any.
    """
    if sha:
        return sha, ""
    if content.head is None:
        return head, "the file names no commit, so nothing says that it is about this one"
    if head.startswith(content.head.sha):
        return head, ""
    return content.head.sha, (
        f"the result is about {content.head.sha[:12]}, which is not the head of the pull request, and"
        " only --sha allows another commit"
    )


def _compose(content: ComparisonFile, options: CommentOptions, sha: str, head: str) -> Message:
    return Message(
        name=options.name,
        outcome=content.outcome,
        sha=sha,
        head=head,
        findings=find_findings(content),
        text=render_comment(content, site_url=options.site_url),
    )


def _do_all(
    pull: GitHubPullRequest, message: Message | None, check: Check | None, options: CommentOptions
) -> None:
    """Comment and check, each whatever becomes of the other; raise in the end what was refused."""
    tasks: list[Callable[[], None]] = []
    if message:
        tasks.append(lambda: _comment(pull, message, options))
    if check and options.has_check:
        tasks.append(lambda: _check(pull, check, options))
    do_all(tasks)


def _comment(pull: GitHubPullRequest, message: Message, options: CommentOptions) -> None:
    if options.dry_run:
        click.echo(message.body)
    say = _say_planned if options.dry_run else click.echo
    if pull.report(message, say, always=options.always, is_dry=options.dry_run):
        return
    if options.dry_run:
        _say_planned("written no comment")
    else:
        click.echo("no comment needs to be written")


def _check(pull: GitHubPullRequest, check: Check, options: CommentOptions) -> None:
    done = pull.check(check, is_dry=options.dry_run)
    if options.dry_run:
        _say_planned(done or "left the check run as it is")
    else:
        click.echo(done or "the check run says so already")


def _say_planned(line: str) -> None:
    """Say what a dry run would have done; the comment alone goes to standard output."""
    click.echo(f"would have {line}", err=True)


def _print_alone(content: ComparisonFile | None, options: CommentOptions) -> None:
    """Print what can be said without asking GitHub."""
    check = start_check(options.name, options.sha, options.site_url)
    if content:
        sha = options.sha or (content.head.sha if content.head else "0" * 40)
        message = _compose(content, options, sha, sha)
        click.echo(message.body)
        check = conclude_check(content, message, options.site_url)
    click.echo("There is no token, so GitHub was not asked what is there.", err=True)
    if options.has_check:
        _say_planned(describe_check(Create(), check))
