"""What goes wrong with hosts over SSH in the middle of a trial: each has its reason and its end."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from budget import cases

from .conftest import HOSTS, Lab
from .trials import Trials, await_that

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
NOTICED_S = 300.0
"""Each step may have to find out once more that a host is silent."""
TRIAL_S = 600.0
SERVER_ENDED = "{}: ending 2 processes that an interrupted run left behind"
"""A server, and the sampler that watches it."""


@pytest.fixture
def trials(lab: Lab, tmp_path: Path) -> Iterator[Trials]:
    found = Trials(lab, tmp_path)
    try:
        yield found
    finally:
        found.stop()
        lab.do("up")


def check_that_the_next_completes(trials: Trials) -> None:
    trial = trials.end(trials.begin("seconds"), TRIAL_S, 0)
    assert trial["status"] == "completed", trial["reasons"]
    await_that(lambda: trials.is_clean_after(*HOSTS), 5, "nothing is left")


def test_a_host_is_cut_off(lab: Lab, trials: Trials) -> None:
    running = trials.measure()
    lab.do("cut", "db-2")
    trial = trials.end(running, NOTICED_S, 3)
    assert trial["status"] == "failed"
    kinds = [reason["kind"] for reason in trial["reasons"]]
    assert kinds == ["ssh-failed", "clean-up-failed"], trial["reasons"]
    assert all("db-2" in reason["text"] for reason in trial["reasons"])
    assert trials.logs() == ["db-1-server.log", "db-3-server.log"]
    assert trials.is_clean_after("db-1", "db-3", "load-1"), "the others are cleaned"
    assert len(lab.ours("db-2")["db-2"]) == 1, "nobody could end it"
    lab.do("mend", "db-2")
    check_that_the_next_completes(trials)
    assert SERVER_ENDED.format("db-2") in trials.log.read_text()


def test_the_client_host_is_cut_off(lab: Lab, trials: Trials) -> None:
    running = trials.measure()
    lab.do("cut", "load-1")
    trial = trials.end(running, NOTICED_S, 3)
    assert trial["status"] == "failed"
    assert trial["reasons"][0]["kind"] == "ssh-failed"
    assert "load-1" in trial["reasons"][0]["text"]
    assert trials.is_clean_after("db-1", "db-2", "db-3")
    assert trials.logs() == [f"db-{number}-server.log" for number in (1, 2, 3)]
    lab.do("mend", "load-1")
    check_that_the_next_completes(trials)


def test_a_host_loses_its_power(lab: Lab, trials: Trials) -> None:
    running = trials.measure()
    lab.do("off", "db-3")
    trial = trials.end(running, NOTICED_S, 3)
    assert trial["status"] == "failed"
    assert trial["reasons"][0]["kind"] == "ssh-failed"
    assert "db-3" in trial["reasons"][0]["text"]
    assert trials.logs() == ["db-1-server.log", "db-2-server.log"]
    assert trials.is_clean_after("db-1", "db-2", "load-1")
    lab.do("up")
    check_that_the_next_completes(trials)


SIDES = [("here", "db-1"), ("there", "load-1"), ("here", "load-1"), ("there", "db-1")]


@pytest.mark.parametrize(("side", "host"), cases(SIDES, SIDES[1:2]))
def test_sessions_that_die_cost_nothing(lab: Lab, trials: Trials, host: str, side: str) -> None:
    running = trials.measure()
    address = f"root@10.77.0.{11 if host == 'db-1' else 21}"

    def sessions() -> list[int]:
        if side == "there":  # the log-in processes of sshd, but not sshd itself
            return lab.processes(host, "sshd: root")
        return trials.ssh_of(running.pid, to=address)

    for _ in range(2):
        await_that(lambda: bool(sessions()), 10, "a session")
        for pid in sessions():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(8)  # what is lost once is tried again; what is lost twice in a row is lost
    trial = trials.end(running, TRIAL_S, 0)
    assert trial["status"] == "completed", trial["reasons"]
    await_that(lambda: trials.is_clean_after(*HOSTS), 5, "nothing is left")


def test_an_interrupted_trial_leaves_nothing(trials: Trials) -> None:
    running = trials.measure()
    running.send_signal(signal.SIGINT)
    trials.end(running, 60, 130)
    await_that(lambda: trials.is_clean_after(*HOSTS), 5, "nothing is left")


def test_what_a_killed_run_left_is_ended_by_the_next(lab: Lab, trials: Trials) -> None:
    running = trials.measure()
    left = lab.ours()
    running.kill()
    running.wait(10)
    await_that(lambda: not trials.ssh_of(running.pid), 5, "its connections end with it")
    assert lab.ours() == left, "on hosts over SSH, processes go on"
    assert trials.end(trials.begin("seconds"), TRIAL_S, 0)["status"] == "completed"
    assert not [pid for pids in left.values() for pid in pids if Path(f"/proc/{pid}").exists()]
    assert all(SERVER_ENDED.format(host) in trials.log.read_text() for host in HOSTS[:3])
    assert "load-1: ending 1 processes" in trials.log.read_text(), "the engine"


@pytest.mark.real
def test_a_ring_loses_a_host(lab: Lab, tmp_path: Path) -> None:
    trials = Trials(lab, tmp_path, "cassandra", "5.0.9", is_hasty=False)
    try:
        running = trials.measure()
        lab.do("cut", "db-2")
        trial = trials.end(running, NOTICED_S + 60, 3)
        assert trial["status"] == "failed"
        assert "db-2" in trial["reasons"][0]["text"], trial["reasons"]
        assert "db-1-system.log" in trials.logs()
        assert trials.is_clean_after("db-1", "db-3", "load-1")
        lab.do("mend", "db-2")
        second = trials.begin("half-a-minute")
        log = trials.log
        await_that(lambda: "install cassandra" in log.read_text(), NOTICED_S, "what comes after it")
        assert SERVER_ENDED.format("db-2") in log.read_text()
        # That the next completes is shown above; rings that are interrupted, in tests/perf/jobs.
        second.send_signal(signal.SIGINT)
        trials.end(second, 120, 130)
        await_that(lambda: trials.is_clean_after(*HOSTS), 5, "nothing is left")
    finally:
        trials.stop()
        lab.do("up")


def test_a_host_that_is_out_of_reach_is_reported_before_anything_starts(
    lab: Lab, trials: Trials
) -> None:
    lab.do("cut", "db-2")
    with pytest.raises(AssertionError, match="db-2"):
        trials.measure()
    assert trials.running[0].wait(NOTICED_S) == 3
    assert trials.is_clean_after("db-1", "db-3", "load-1")
    assert "Traceback" not in trials.log.read_text()
