"""One link of a trial's hosts fails, and SSH to all of them goes on: what the trial comes to."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .conftest import HOSTS, Lab
from .trials import Trials, await_that

pytestmark = [pytest.mark.long, pytest.mark.longest, pytest.mark.timeout(900)]
TRIAL_S = 150.0
ADDRESSES = {"db-1": "10.77.0.11", "db-2": "10.77.0.12", "load-1": "10.77.0.21"}


@contextmanager
def dropped(lab: Lab, here: str, there: str) -> Iterator[None]:
    """Let nothing more from one host reach another; all else goes on."""
    route = ["ip", "route", "add", "blackhole", f"{ADDRESSES[there]}/32"]
    inside = ["nsenter", "-t", str(lab.first_process(here)), "-n"]
    subprocess.run([*inside, *route], check=True)
    try:
        yield
    finally:
        subprocess.run([*inside, "ip", "route", "del", *route[3:]], check=True)


@pytest.fixture
def trials(lab: Lab, tmp_path: Path) -> Iterator[Trials]:
    found = Trials(lab, tmp_path)
    try:
        yield found
    finally:
        found.stop()


def check_that_the_next_completes(trials: Trials) -> None:
    trial = trials.end(trials.measure(), TRIAL_S, 0)
    assert trial["status"] == "completed", trial["reasons"]
    await_that(lambda: trials.is_clean_after(*HOSTS), 5, "nothing is left")


@pytest.mark.keeps("cut-link-is-told")
@pytest.mark.parametrize(("here", "there"), [("load-1", "db-2"), ("db-2", "load-1")])
def test_a_client_that_no_longer_reaches_a_server(
    lab: Lab, trials: Trials, figures: dict[str, object], here: str, there: str
) -> None:
    """Few operations fail, since each keeps its slot; so it is their time that is told."""
    running = trials.measure()
    with dropped(lab, here, there):
        trial = trials.end(running, TRIAL_S, 3)
    assert trial["status"] == "invalid", trial["reasons"]
    told = [one["text"] for one in trial["reasons"] if one["kind"] == "errors-above-limit"]
    assert told, trial["reasons"]
    share = re.search(r"took ([\d.]+)% of the time", told[-1])
    assert share, told
    figures["time lost to timeouts"] = f"{share[1]} %"
    assert trials.is_clean_after(*HOSTS)
    check_that_the_next_completes(trials)
