"""The webhook: patient, within its time, and silent about its address."""

import logging
import traceback
from collections.abc import Iterator

import pytest
from channel_server import PATH, Channel, Fault, serve

from perf.model.errors import UsageError, WebhookError
from reports.clients.webhook import VARIABLE, Webhook, WebhookRetries, read_address

MESSAGE = {"text": "It is slower.", "blocks": []}
SECRETS = (PATH, *PATH.strip("/").split("/")[1:])


@pytest.fixture
def channel() -> Iterator[Channel]:
    with serve() as state:
        yield state


class Clock:
    """Time that passes in pauses only."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def read(self) -> float:
        return self.now

    def sleep(self, pause_s: float) -> None:
        self.pauses.append(pause_s)
        self.now += pause_s


def reach(address: str, clock: Clock, **patience: float) -> Webhook:
    return Webhook(
        address,
        patience=WebhookRetries(tries=4, answer_s=0.5, **patience),  # type: ignore[arg-type]
        sleep=clock.sleep,
        clock=clock.read,
    )


def refuse(webhook: Webhook) -> str:
    """Return the text of the refusal; nothing of it, nor of a traceback, tells the address."""
    with pytest.raises(WebhookError) as caught:
        webhook.send(MESSAGE)
    whole = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(webhook)
    for secret in SECRETS:
        assert secret not in whole
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_message_is_sent_and_the_next_one_a_second_later(channel: Channel) -> None:
    clock = Clock()
    webhook = reach(channel.url, clock)
    for _ in range(3):
        webhook.send(MESSAGE)
    assert channel.heard == 3 * [MESSAGE]
    assert clock.pauses == [1.0, 1.0]


def test_too_many_are_waited_out_as_long_as_the_server_says(channel: Channel) -> None:
    clock = Clock()
    channel.faults += [Fault(status=429, headers={"Retry-After": "30"}), Fault(status=429)]
    reach(channel.url, clock).send(MESSAGE)
    assert channel.heard == [MESSAGE]
    assert clock.pauses == [30.0, 2.0]


@pytest.mark.parametrize("asked", ["", "soon", "nan", "inf", "-1"])
def test_a_pause_that_is_no_number_is_ours(channel: Channel, asked: str) -> None:
    clock = Clock()
    channel.faults.append(Fault(status=503, headers={"Retry-After": asked}))
    reach(channel.url, clock).send(MESSAGE)
    assert clock.pauses == [1.0]


def test_pauses_grow_and_the_tries_end(channel: Channel) -> None:
    clock = Clock()
    channel.faults += 9 * [Fault(status=500, text="rollup_error")]
    assert "in 4 tries: it failed (500)" in refuse(reach(channel.url, clock))
    assert clock.pauses == [1.0, 2.0, 4.0]
    assert channel.heard == []


def test_a_pause_beyond_the_time_limit_ends_it_at_once(channel: Channel) -> None:
    clock = Clock()
    channel.faults.append(Fault(status=429, headers={"Retry-After": "3600"}))
    assert "within 60 s" in refuse(reach(channel.url, clock, limit_s=60.0))
    assert clock.pauses == []


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=400, text=f"invalid_payload at {PATH} of x7secretx7"),
        Fault(status=403, text="action_prohibited"),
        Fault(status=404, text="no_service"),
        Fault(status=410, text="channel_is_archived"),
        Fault(status=302, headers={"Location": "https://elsewhere.example/"}),
        Fault(status=200, text="<!doctype html><HTML>Sign in</HTML>"),
    ],
    ids=lambda fault: str(fault.status),
)
def test_a_refusal_is_not_tried_again_and_says_what_to_check(channel: Channel, fault: Fault) -> None:
    channel.faults.append(fault)
    assert VARIABLE in refuse(reach(channel.url, Clock()))
    assert channel.asked == 1


def test_an_answer_that_breaks_off_counts_as_not_reported(channel: Channel) -> None:
    channel.faults.append(Fault(status=0))
    assert "may have taken it or not" in refuse(reach(channel.url, Clock()))
    assert channel.asked == 1


def test_a_server_that_is_not_there_is_tried_again() -> None:
    clock = Clock()
    assert "no connection" in refuse(reach(f"http://127.0.0.1:9{PATH}", clock))
    assert len(clock.pauses) == 3


def test_a_connection_that_cannot_be_made_secure_says_what_to_check(channel: Channel) -> None:
    clock = Clock()  # the channel speaks no TLS
    said = refuse(reach(channel.url.replace("http://", "https://"), clock))
    assert "no secure connection" in said
    assert "certificate" in said
    assert clock.pauses == []


def test_no_log_shows_the_address(channel: Channel, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    channel.faults.append(Fault(status=500))
    reach(channel.url, Clock()).send(MESSAGE)
    assert not any(secret in caplog.text for secret in SECRETS)


def test_the_address_is_read_from_the_environment_and_never_said() -> None:
    good = f"https://hooks.slack.com{PATH}"
    assert read_address({VARIABLE: f" {good}\n"}) == good
    with pytest.raises(UsageError, match=f"set {VARIABLE}"):
        read_address({})
    for bad in (
        f"http://hooks.slack.com{PATH}",
        f"https://user@hooks.slack.com{PATH}",
        f"hooks.slack.com{PATH}",
        f"https://hooks.slack.com{PATH} x",
        "https://hooks.slack.com",
    ):
        with pytest.raises(UsageError, match=r"not shown") as caught:
            read_address({VARIABLE: bad})
        assert "secret/" not in str(caught.value).lower()
        assert PATH not in str(caught.value)
