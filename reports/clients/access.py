"""Who asks GitHub, at which address, and how patiently."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHubAccess:
    """How GitHub is asked: `author` is the login under which the token writes, asked for if empty.

    `api_url` is that of the REST interface: https://api.github.com, or https://HOST/api/v3.
    """

    token: str = field(repr=False)
    api_url: str
    author: str = ""
    patience: RetryPolicy = field(default_factory=RetryPolicy)
    sleep: Callable[[float], None] = time.sleep


def find_api_url(text: str) -> str:
    """Check the address of the interface; over plain HTTP the token would be seen by all.

    Raises:
        ValueError: it is no address, or one of another host over plain HTTP.

    """
    if re.fullmatch(r"https://[^\s/@]+(/[^\s@?#]*)?", text):
        return text
    if re.fullmatch(r"http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/[^\s@?#]*)?", text):
        return text
    raise ValueError(text)
