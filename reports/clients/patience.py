"""How long to bear with GitHub: which requests are sent again, after which pause, and when it ends."""

import logging
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar

import github
import urllib3
from github.GithubException import GithubException
from urllib3 import BaseHTTPResponse
from urllib3.connectionpool import ConnectionPool

_LOG = logging.getLogger(__name__)
_FORBIDDEN, TOO_MANY = 403, 429


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often to try, and how long to wait in between.

    The n-th pause is `pause_s` · 2ⁿ; after a secondary rate limit it is what GitHub asks for, or
    `rate_limit_s`, as its documentation wants. Where GitHub asks for more than `longest_s`, it ends.
    """

    tries: int = 5
    pause_s: float = 1.0
    rate_limit_s: float = 60.0
    longest_s: int = 300


class AsksTooMuch(GithubException):
    """GitHub asks for a longer pause than anybody wants to wait."""

    def __init__(self, status: int, longest_s: float) -> None:
        """Say what was asked for."""
        super().__init__(status, message=f"it asks for a pause of more than {longest_s:g} s")


class Retry(github.GithubRetry):
    """PyGithub's rules, but what creates is tried again only where GitHub says that it was not done."""

    _NOT_DONE: ClassVar[frozenset[int]] = frozenset({_FORBIDDEN, TOO_MANY})

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:  # noqa: FBT001, FBT002
        """Tell whether it may be sent again."""
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
    """Give the rules to PyGithub."""
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
