"""The command that tells GitHub: a comment on a pull request, and a check run on its head."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click

from analysis.comparing.results import MOST_BYTES, SCHEMA_VERSION, ComparisonFile, read_comparisons
from perf.errors import GitHubError, UsageError
from reports.comment import headline, render_comment
from reports.github import GitHubPullRequest, find_api_url
from reports.posting import NAME, Check, Create, Edit, Message, Minimise, Post, Update
from reports.posting import conclude_check as conclude
from reports.posting import start_check as start

_TOKENS = ("KNICKPOINT_GITHUB_TOKEN", "GITHUB_TOKEN")
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """What the options ask for, apart from what is told."""

    name: str
    sha: str
    page_url: str
    always: bool
    dry_run: bool
    has_check: bool


def _matching(pattern: re.Pattern[str], wanted: str) -> Callable[..., str]:
    def check(_context: click.Context, _option: click.Parameter, value: str) -> str:
        if value and not pattern.fullmatch(value):
            raise click.BadParameter(f"{value!r} is not {wanted}")
        return value

    return check


def _check_api_url(_context: click.Context, _option: click.Parameter, value: str) -> str:
    try:
        return find_api_url(value)
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r} is not https://HOST/PATH; over plain http only this machine is asked"
        ) from error


@click.command()
@click.option(
    "--comparison",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The comparison.json that `knickpoint candidate` or `knickpoint compare` wrote.",
)
@click.option("--start", "starts", is_flag=True, help="Only begin the check run: in progress.")
@click.option("--failed", metavar="TEXT", help="There is no result, because TEXT: say that it is us.")
@click.option(
    "--repo",
    required=True,
    metavar="OWNER/NAME",
    callback=_matching(re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+"), "OWNER/NAME"),
)
@click.option("--pr", required=True, type=click.IntRange(min=1), help="Number of the pull request.")
@click.option(
    "--sha",
    default="",
    callback=_matching(_SHA, "a full commit hash"),
    help="The commit that was to be measured, from the event. A result about another one is refused.",
)
@click.option(
    "--name",
    default="candidate",
    show_default=True,
    callback=_matching(NAME, "letters, digits, dots, dashes, at most 50"),
    help="One comment and one check run are kept for each name: name the suite.",
)
@click.option(
    "--page-url",
    default="",
    metavar="URL",
    callback=_matching(re.compile(r"https?://[!-~]{1,1000}"), "an address"),
    help="The page with all the details, linked from the comment and the check run.",
)
@click.option("--always", is_flag=True, help="Comment even if nothing changed.")
@click.option("--no-check", "has_check", flag_value=False, default=True, help="No check run.")
@click.option("--dry-run", is_flag=True, help="Print the comment and what would be done; do nothing.")
@click.option(
    "--author",
    default="",
    metavar="LOGIN",
    help="Login under which the token writes.  [default: GitHub is asked]",
)
@click.option(
    "--api-url",
    envvar="GITHUB_API_URL",
    default="https://api.github.com",
    show_default=True,
    callback=_check_api_url,
    help="GitHub's REST interface; of a GitHub Enterprise Server: https://HOST/api/v3.  "
    "[env: GITHUB_API_URL]",
)
def comment(
    *,
    comparison: Path | None,
    starts: bool,
    failed: str | None,
    repo: str,
    pr: int,
    author: str,
    api_url: str,
    **options: str | bool,
) -> None:
    """Tell a pull request on GitHub what a comparison came to.

    One comment per pull request and --name is kept up to date. If the state got worse, a new one is
    written, since an edit sends no mail, and the old one is minimised; if it stayed or got better, the
    comment is edited. If nothing changed and there is no comment yet, none is written (but for
    --always). The same result told twice changes nothing.

    A check run "knickpoint / NAME" on the commit says the same: in progress (--start), then success,
    failure, or neutral where we cannot tell. A failure of ours (--failed) is a failure that says so.

    The token comes from $KNICKPOINT_GITHUB_TOKEN or $GITHUB_TOKEN, with `pull-requests: write` and
    `checks: write`. With --dry-run a token is only used to read; without one, GitHub is not asked.

    \b
    knickpoint comment --start --repo example/configs --pr 7 --sha "$HEAD_SHA"
    knickpoint comment --comparison var/comparison.json --repo example/configs --pr 7 --sha "$HEAD_SHA"
    knickpoint comment --failed "the job ended early" --repo example/configs --pr 7 --sha "$HEAD_SHA"

    Exit code 0 once all is told, even a regression; 2 if the file is none or is about another commit; 3
    if GitHub did not take all of it: what it took is said first.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    if sum((comparison is not None, starts, failed is not None)) != 1:
        raise UsageError("give one of --comparison FILE, --start and --failed TEXT")
    telling = Telling(**options)  # type: ignore[arg-type]  # click checked each of them
    if starts and not telling.has_check:
        raise UsageError("--start begins a check run, --no-check wants none; leave one of them out")
    content = _read(comparison) if comparison else _fail(failed) if failed is not None else None
    if content:
        _check_commit(content, telling.sha)
    token = next((found for one in _TOKENS if (found := os.environ.get(one))), "")
    if not token and not telling.dry_run:
        raise UsageError(f"no token: set {' or '.join(_TOKENS)}; --dry-run prints without one")
    pull = (
        GitHubPullRequest(repo=repo, number=pr, token=token, api_url=api_url, author=author)
        if token
        else None
    )
    if pull is None:
        _print_alone(content, telling)
    else:
        _tell(pull, content, telling)


def _read(path: Path) -> ComparisonFile:
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    return read_comparisons(content, path)


def _fail(text: str) -> ComparisonFile:
    return ComparisonFile(
        schema_version=SCHEMA_VERSION,
        created_at=datetime.now(UTC),
        knickpoint=version("knickpoint"),
        problems=(text,),
    )


def _check_commit(content: ComparisonFile, sha: str) -> None:
    """Refuse a result about another commit than the one that was to be measured."""
    if sha and content.head and not sha.startswith(content.head.sha):
        raise UsageError(
            f"the comparison is about {content.head.sha}, not about {sha} (--sha): was the head of the"
            " pull request checked out, or the merge of it?"
        )


def _tell(pull: GitHubPullRequest, content: ComparisonFile | None, telling: Telling) -> None:
    head = pull.head()
    sha, may_check = choose_commit(content, telling.sha, head)
    if content is None:
        _do_all(pull, None, start(telling.name, sha, telling.page_url), telling)
        return
    message = _compose(content, telling, sha, head)
    check = conclude(content, message, headline(content), telling.page_url) if may_check else None
    if not may_check and telling.has_check:
        click.echo(
            f"no check run: the result is about {sha[:12]}, which is not the head of the pull request,"
            " and only --sha vouches for another commit",
            err=True,
        )
    _do_all(pull, message, check, telling)


def choose_commit(content: ComparisonFile | None, sha: str, head: str) -> tuple[str, bool]:
    """Give the commit that is told about, and whether it may get a check run.

    The file is from a job that may have run a stranger's code: by its word alone, only the head of the
    pull request gets one. Otherwise it could name any commit of the repository.
    """
    claimed = content.head.sha if content and content.head else head
    if sha or head.startswith(claimed):
        return sha or head, True
    return claimed, False


def _compose(content: ComparisonFile, telling: Telling, sha: str, head: str) -> Message:
    return Message(
        name=telling.name,
        outcome=content.outcome,
        sha=sha,
        head=head,
        text=render_comment(content, page_url=telling.page_url),
    )


def _do_all(
    pull: GitHubPullRequest, message: Message | None, check: Check | None, telling: Telling
) -> None:
    """Comment and check, each whatever becomes of the other; raise in the end what was refused."""
    tasks: list[Callable[[], None]] = []
    if message:
        tasks.append(lambda: _comment(pull, message, telling))
    if check and telling.has_check:
        tasks.append(lambda: _check(pull, check, telling))
    refused = []
    for task in tasks:
        try:
            task()
        except GitHubError as error:
            refused.append(str(error))
    if refused:
        raise GitHubError("\n".join(refused))


def _comment(pull: GitHubPullRequest, message: Message, telling: Telling) -> None:
    if telling.dry_run:
        click.echo(message.body)
        steps = pull.plan_telling(message, always=telling.always)
        _report([_describe(one) for one in steps] or ["written no comment"])
        return
    if not pull.tell(message, click.echo, always=telling.always):
        click.echo("no comment needs to be written")


def _check(pull: GitHubPullRequest, check: Check, telling: Telling) -> None:
    if telling.dry_run:
        plan = pull.plan_checking(check)
        _report([_describe_check(plan, check) if plan else "left the check run as it is"])
        return
    click.echo(pull.check(check) or "the check run says so already")


def _report(plan: Sequence[str]) -> None:
    """Say what a dry run would have done; the comment alone goes to standard output."""
    for line in plan:
        click.echo(f"would have {line}", err=True)


def _describe(step: Post | Edit | Minimise) -> str:
    match step:
        case Post():
            return "posted a new comment"
        case Edit(id=id_):
            return f"edited comment {id_}"
        case Minimise(id=id_):
            return f"minimised comment {id_}"


def _describe_check(plan: Create | Update, check: Check) -> str:
    verb = "created" if isinstance(plan, Create) else "updated"
    state = check.conclusion or "in progress"
    return f"{verb} the check run {check.title_of_run!r} as {state}: {check.title}"


def _print_alone(content: ComparisonFile | None, telling: Telling) -> None:
    """Print what can be said without asking GitHub."""
    check = start(telling.name, telling.sha, telling.page_url)
    if content:
        sha = telling.sha or (content.head.sha if content.head else "0" * 40)
        message = _compose(content, telling, sha, sha)
        click.echo(message.body)
        check = conclude(content, message, headline(content), telling.page_url)
    click.echo("There is no token, so GitHub was not asked what is there.", err=True)
    if telling.has_check:
        _report([_describe_check(Create(), check)])
