"""An incoming webhook: one message at a time, with patience. An edge, over HTTP.

The address is a secret, since whoever has it can write: it comes from the environment, and no error, no
log line and no file holds it. A 429 or a failure of the server is tried again after a pause; so is a
connection that was never made. Where the answer to a message broke off, it may have been taken: it
counts as not sent, and the next run sends it again rather than never.
"""

import logging
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests

from perf.model.errors import UsageError, WebhookError
from reports.wording.markdown import clean

VARIABLE = "KNICKPOINT_WEBHOOK_URL"
# At DEBUG it would log the path of each request, which is the secret.
logging.getLogger("urllib3").setLevel(logging.INFO)
_ADDRESS = re.compile(
    r"https://[A-Za-z0-9.-]+(:\d+)?/[!-~]+|http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?/[!-~]*"
)
_TOO_MANY, _BROKEN = 429, 500
_MOST_SAID = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRetries:
    """How often to try one message, and for how long all of them together.

    The n-th pause is `pause_s` · 2ⁿ, or what the server asks for. `spacing_s` lies between messages:
    Slack takes one a second.
    """

    tries: int = 5
    pause_s: float = 1.0
    spacing_s: float = 1.0
    limit_s: float = 180.0
    connect_s: float = 5.0
    answer_s: float = 20.0


class Webhook:
    """A channel behind a webhook. Its representation does not tell the address."""

    def __init__(
        self,
        address: str,
        *,
        patience: WebhookRetries | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Remember where to send; the time limit begins now."""
        self._address = address
        self._patience = patience or WebhookRetries()
        self._sleep, self._clock = sleep, clock
        self._ends = clock() + self._patience.limit_s
        self._is_first = True

    def __repr__(self) -> str:
        """Hide the address."""
        return "Webhook(…)"

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; return once it was acknowledged.

        Raises:
            WebhookError: it was not acknowledged, or there is no time left.

        """
        if not self._is_first:
            self._wait(self._patience.spacing_s, "the pause between messages")
        self._is_first = False
        why, asked_s = self._try(message)
        for attempt in range(self._patience.tries - 1):
            if not why:
                return
            self._wait(asked_s or self._patience.pause_s * 2**attempt, why)
            why, asked_s = self._try(message)
        if why:
            raise WebhookError(f"the webhook did not take it in {self._patience.tries} tries: {why}")

    def _try(self, message: Mapping[str, Any]) -> tuple[str, float]:
        """Send once; give why to try again and the pause asked for, nothing where it was taken."""
        patience = self._patience
        try:
            answer = requests.post(
                self._address,
                json=message,
                timeout=(patience.connect_s, patience.answer_s),
                allow_redirects=False,
            )
        except requests.ConnectTimeout:
            return "no connection was made in time", 0.0
        except (requests.exceptions.SSLError, requests.exceptions.ProxyError):
            raise WebhookError(
                "no secure connection to the webhook could be made; check its certificate, the proxy"
                f" and {VARIABLE}; it counts as not sent, and is sent again next time"
            ) from None
        except requests.ConnectionError as error:
            # From None here and below: the address is part of what the library says.
            if "NewConnectionError" in repr(error) or "NameResolutionError" in repr(error):
                return "no connection could be made", 0.0
            raise WebhookError(_OPEN.format(why="the connection broke")) from None
        except requests.Timeout:
            raise WebhookError(_OPEN.format(why="no answer came in time")) from None
        except requests.RequestException as error:
            name = type(error).__name__
            raise WebhookError(f"the webhook cannot be used ({name}); check {VARIABLE}") from None
        if answer.status_code == _TOO_MANY:
            return "it asks for fewer messages (429)", _read_pause(answer)
        if answer.status_code >= _BROKEN:
            return f"it failed ({answer.status_code})", _read_pause(answer)
        self._check(answer)
        return "", 0.0

    def _check(self, answer: requests.Response) -> None:
        """Refuse each answer that is no acknowledgement."""
        said = self._redact(answer.text)
        if not answer.ok or answer.is_redirect:
            raise WebhookError(
                f"the webhook refuses it ({answer.status_code}: {said or 'no reason given'});"
                f" check {VARIABLE}, and that its channel is still there"
            )
        if "<html" in answer.text[:1000].lower():
            raise WebhookError(
                f"what answered is a page, and no webhook; check {VARIABLE} and the proxy"
            )

    def _wait(self, pause_s: float, why: str) -> None:
        if self._clock() + pause_s > self._ends:
            raise WebhookError(
                f"the webhook did not take all within {self._patience.limit_s:g} s: {why}; what is left"
                " is sent next time"
            )
        self._sleep(pause_s)

    def _redact(self, text: str) -> str:
        """Return what a server said, in a short line, without any part of the address."""
        parts = urlsplit(self._address)
        for secret in (self._address, parts.path, *parts.path.split("/"), parts.query):
            if secret.strip("/"):
                text = text.replace(secret, "…")
        return clean(text, _MOST_SAID)


_OPEN = (
    "the webhook may have taken it or not ({why}); it counts as not sent, and is sent again next time"
)


def _read_pause(answer: requests.Response) -> float:
    """Return the seconds that a server asks for; 0 where it says nothing that is a number."""
    try:
        asked_s = float(answer.headers.get("Retry-After", ""))
    except ValueError:
        return 0.0
    return asked_s if math.isfinite(asked_s) and asked_s > 0 else 0.0


def read_address(environment: Mapping[str, str]) -> str:
    """Read the address of the webhook.

    Raises:
        UsageError: there is none, or it is none; the text does not tell it.

    """
    address = environment.get(VARIABLE, "").strip()
    if not address:
        raise UsageError(
            f"there is no webhook: set {VARIABLE} to the address of an incoming webhook; --dry-run"
            " prints without one"
        )
    if not _ADDRESS.fullmatch(address):
        raise UsageError(
            f"{VARIABLE} holds no address that can be used: https://HOST/PATH, over plain http to this"
            " machine only; it is not shown here, since it is a secret"
        )
    return address
