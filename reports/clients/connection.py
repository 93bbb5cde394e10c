"""A connection to GitHub for one token: what is asked again, and refusals in a sentence. Over PyGithub.

Everything here may be done twice. Reading, editing and a rate limit are tried again as they are. A
request that creates something is not: a broken answer leaves open whether it was done, so after a pause
the state is read and planned again, and what was done after all is found.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, TypeAlias, TypeVar

import github
import requests
import urllib3
from github.GithubException import (
    BadAttributeException,
    GithubException,
    RateLimitExceededException,
)
from github.Issue import Issue
from github.IssueComment import IssueComment
from github.Reaction import Reaction
from urllib3 import BaseHTTPResponse
from urllib3.connectionpool import ConnectionPool

from perf.model.errors import GitHubError
from reports.clients.access import GitHubAccess, RetryPolicy
from reports.wording.markdown import clean

_LOG = logging.getLogger(__name__)
_FORBIDDEN, TOO_MANY = 403, 429


class AsksTooMuch(GithubException):
    """GitHub asks for a longer pause than anybody wants to wait."""

    def __init__(self, status: int, longest_s: float) -> None:
        """Say what was asked for."""
        super().__init__(status, message=f"it asks for a pause of more than {longest_s:g} s")


class Retry(github.GithubRetry):
    """PyGithub's rules, but what creates is tried again only where GitHub says that it was not done."""

    _NOT_DONE: ClassVar[frozenset[int]] = frozenset({_FORBIDDEN, TOO_MANY})

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:  # noqa: FBT001, FBT002
        """Return whether it may be sent again."""
        if method == "POST":
            return status_code in self._NOT_DONE
        return super().is_retry(method, status_code, has_retry_after)

    def increment(  # type: ignore[override]  # PyGithub narrows its parent's in the same way
        self,
        method: str | None = None,
        url: str | None = None,
        response: BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> urllib3.Retry:
        """End at once where the pause that is asked for is too long; a shorter one would be no use."""
        asked_s = self.get_retry_after(response) if response else None
        longest_s = self.max_rate_limit_wait
        if response and asked_s and longest_s is not None and asked_s > longest_s:
            raise AsksTooMuch(response.status, longest_s)
        return super().increment(method, url, response, error, _pool, _stacktrace)  # type: ignore[arg-type]

    def sleep(self, response: BaseHTTPResponse | None = None) -> None:
        """Say so first: it may take a minute."""
        answer = f"GitHub answered {response.status}" if response else "GitHub did not answer"
        _LOG.warning("%s; waiting, then trying again", answer)
        super().sleep(response)

    def get_backoff_time(self) -> float:
        """Wait after 429 as after 403: both mean a secondary rate limit."""
        limited = bool(self.history) and self.history[-1].status == TOO_MANY
        return max(super().get_backoff_time(), self.secondary_rate_wait if limited else 0.0)


def build_retry(patience: RetryPolicy) -> Retry:
    """Return the rules to PyGithub."""
    return Retry(
        total=patience.tries - 1,
        raise_on_status=False,  # PyGithub reads the last answer, and says more than "too many"
        backoff_factor=patience.pause_s,
        backoff_max=patience.longest_s,
        secondary_rate_wait=patience.rate_limit_s,
        max_rate_limit_wait=patience.longest_s,
        status_forcelist=[TOO_MANY, *range(500, 600)],
        allowed_methods={"GET", "PATCH"},
    )


_T = TypeVar("_T")
Written: TypeAlias = Issue | IssueComment
# It would say each refusal a second time, if anything in the process has set logging up.
logging.getLogger("github").setLevel(logging.WARNING)
_BROKEN = 500
_STRANGE = (
    *(AttributeError, LookupError, TypeError, ValueError, AssertionError),
    *(RuntimeError, BadAttributeException),
)
"""What PyGithub comes to when it reads a page of a proxy, or is sent to another host."""


class Unsure(Exception):  # noqa: N818  a state, not an error yet
    """GitHub was told to create something, and it is open whether it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorHints:
    """What to check where GitHub has no such thing, forbids it or does not take it."""

    missing: str
    refused: str
    forbidden: str = ""


class GitHubConnection:
    """GitHub as one token sees it; `where` is what it is asked about, for the sentences of errors.

    All that asks through it raises GitHubError where GitHub refuses, or does not answer.
    """

    def __init__(self, access: GitHubAccess, where: str, hints: ErrorHints) -> None:
        """Remember what to ask."""
        self._where, self._hints, self._author = where, hints, access.author
        self._patience, self._sleep, self._url = access.patience, access.sleep, access.api_url
        self.hub = github.Github(
            auth=github.Auth.Token(access.token),
            base_url=access.api_url.rstrip("/"),
            user_agent="knickpoint",
            per_page=100,
            lazy=True,
            retry=build_retry(self._patience),
            seconds_between_requests=None,  # a dozen requests need no spacing; limits are obeyed
            seconds_between_writes=None,
        )

    def find_author(self) -> str:
        """Ask who writes with this token; a workflow's token may not ask REST for its user."""
        if not self._author:
            self._author = str(self.query("query { viewer { login } }", {})["viewer"]["login"])
        return self._author

    def query(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        """Ask GraphQL; raise Unsure where the answer broke."""
        with unsure():
            _, answer = self.hub.requester.graphql_query(query, variables)
        data: dict[str, Any] = answer["data"]
        return data

    def check_made(self, made: Written) -> str:
        """Return the address of what was written; of another login, nothing would find it again.

        Raises:
            LookupError: what answered is of something else.

        """
        address, writer = made.html_url, find_login(made)
        if not address:
            raise LookupError("html_url")
        if writer != self._author:
            raise GitHubError(
                f"posted {address}, but as {clean(writer)}, not as"
                f" {self._author}: give --author, or the next run will not find it"
            )
        return address

    def repeat(self, action: Callable[[], _T], doing: str, permission: str) -> _T:
        """Plan and act; where it is open what was done, wait and plan again."""
        why: BaseException | None = None
        for attempt in range(self._patience.tries):
            try:
                with self.explained(doing, permission):
                    return action()
            except Unsure as error:
                why = error.__cause__
                self._sleep(self._patience.pause_s * 2**attempt)
        raise GitHubError(
            f"could not {doing} of {self._where}: GitHub did not answer {self._patience.tries} times"
            f" ({_describe(why)})"
        ) from why

    @contextmanager
    def explained(self, doing: str, permission: str) -> Iterator[None]:
        """Turn what GitHub or the network says into one sentence."""
        what = f"could not {doing} of {self._where}: "
        try:
            yield
        except GithubException as error:
            raise GitHubError(what + self._explain(error, permission)) from error
        except requests.RequestException as error:
            raise GitHubError(
                f"{what}{self._url} cannot be reached ({type(error).__name__}); check --api-url and the"
                " network"
            ) from error
        except _STRANGE as error:
            raise GitHubError(
                f"{what}{self._url} did not answer as GitHub does ({type(error).__name__}); check"
                " --api-url: is it that of the REST interface, and no page to sign in?"
            ) from error

    def _explain(self, error: GithubException, permission: str) -> str:
        said = f"({error.status}: {_describe(error)})"
        if isinstance(error, RateLimitExceededException | AsksTooMuch) or error.status == TOO_MANY:
            return f"the rate limit of GitHub is used up {said}; try again later"
        if error.status >= _BROKEN:
            return f"GitHub failed {self._patience.tries} times {said}; try again later"
        match error.status:
            case 401:
                what, hint = "does not know the token", f"check GITHUB_TOKEN, a token of {self._url}"
            case 400 | 403:  # GraphQL has no status of its own for what it forbids; PyGithub says 400
                what, hint = "forbids it", f"{permission}. {self._hints.forbidden}".rstrip(". ")
            case 404:
                what, hint = "has no such thing", f"{self._hints.missing}; {permission}"
            case _:
                what, hint = "does not take it", self._hints.refused
        return f"GitHub {what} {said}: {hint}"


def find_login(made: Written | Reaction) -> str:
    """Return who wrote it; nobody if the account is gone, which PyGithub's types do not know of."""
    return getattr(made.user, "login", "")


@contextmanager
def unsure() -> Iterator[None]:
    """Mark what a POST leaves open: an error of the server, or a connection that broke."""
    try:
        yield
    except GithubException as error:
        if error.status < _BROKEN:
            raise
        raise Unsure from error
    except (requests.ConnectionError, requests.Timeout) as error:
        raise Unsure from error


def _describe(error: BaseException | None) -> str:
    """Describe what GitHub said, in a line; never more, since others may have written it."""
    if isinstance(error, GithubException):
        data = error.data if isinstance(error.data, dict) else {}
        of_graphql = [one.get("message") for one in data.get("errors", []) if isinstance(one, dict)]
        said = data.get("message") or error.message or "; ".join(filter(None, of_graphql))
        return clean(str(said or "no reason given"), 200)
    return type(error).__name__
