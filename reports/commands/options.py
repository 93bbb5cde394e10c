"""The options and the token of the commands that tell GitHub."""

import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import click

from perf.model.errors import GitHubError, KnickpointError, UsageError, WebhookError
from reports.clients.access import GitHubAccess, find_api_url

TOKENS = ("KNICKPOINT_GITHUB_TOKEN", "GITHUB_TOKEN")
REPOSITORY = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+")


def matching(pattern: re.Pattern[str], wanted: str) -> Callable[..., str]:
    """Return what refuses a value that is not as a pattern says; an empty one passes."""

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


def site_url_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return --site-url, explained by `text`."""
    return click.option(
        "--site-url",
        default="",
        metavar="URL",
        callback=matching(re.compile(r"https?://[!-~]{1,1000}"), "https://HOST/PATH"),
        help=text,
    )


def author_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --author, the login under which the token writes."""
    return click.option(
        "--author",
        default="",
        metavar="LOGIN",
        help="Login under which the token writes.  [default: GitHub is asked]",
    )(command)


def api_url_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --api-url, the address of GitHub's REST interface."""
    return click.option(
        "--api-url",
        envvar="GITHUB_API_URL",
        default="https://api.github.com",
        show_default=True,
        callback=_check_api_url,
        help="GitHub's REST interface; of a GitHub Enterprise Server: https://HOST/api/v3.  "
        "[env: GITHUB_API_URL]",
    )(command)


def read_access(api_url: str, author: str) -> GitHubAccess | None:
    """Return the access by the token of the environment, without the line end of a file of secrets.

    Raises:
        UsageError: what is there cannot be a token.

    """
    name, token = next(
        ((one, found) for one in TOKENS if (found := os.environ.get(one, "").strip())), ("", "")
    )
    if token and not re.fullmatch(r"[!-~]+", token):
        raise UsageError(f"{name} is no token: it holds blanks or signs that none has; copy it again")
    return GitHubAccess(token=token, api_url=api_url, author=author) if token else None


def find_access(
    api_url: str, author: str, advice: str = "; --dry-run prints without one"
) -> GitHubAccess:
    """Return the access by the token of the environment; `advice` follows where there is none.

    Raises:
        UsageError: there is no token, or what is there cannot be one.

    """
    if access := read_access(api_url, author):
        return access
    raise UsageError(f"no token: set {' or '.join(TOKENS)}{advice}")


def do_all(tasks: Sequence[Callable[[], None]], before: str = "") -> None:
    """Tell each, whatever becomes of the others; raise in the end what failed, `before` each."""
    failed: list[KnickpointError] = []
    for task in tasks:
        try:
            task()
        except (GitHubError, WebhookError) as error:
            failed.append(error)
    if failed:
        raise type(failed[0])("\n".join(f"{before}{error}" for error in failed))
