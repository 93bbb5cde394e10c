"""A lease on a host: never two holders, never robbed while it lives, whatever comes in which order."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from budget import tries
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from perf.hosts import lease_file
from perf.hosts.lease_file import LEASE, answer, decide

JOBS = st.sampled_from(("a", "b", "c"))
SPANS_S = st.sampled_from((1.0, 60.0, 3600.0))
NOBODY = {"holder": None, "ended": []}


def introduce(job: str) -> dict[str, str]:
    return {
        "token": job,
        "owner": f"{job}@machine",
        "purpose": f"job {job}",
        "process": f"kernel/{job}/1",
    }


def take(job: str, for_s: float = 60.0, gone: str = "") -> dict[str, Any]:
    return {"ask": "take", "by": introduce(job), "for_s": for_s, "gone": gone}


class Host(RuleBasedStateMachine):
    """One host, three jobs, a person who breaks leases, and two clocks of which one may be set."""

    @initialize()
    def begin(self) -> None:
        self.lease: Any = dict(NOBODY)
        self.now: Any = {"unix_s": 1.8e9, "since_boot_s": 100.0, "boot": "first"}
        self.owner: str | None = None
        self.until_s = 0.0

    def ask(self, **request: Any) -> Any:  # noqa: ANN401  JSON
        changed, said = decide(self.lease, request, self.now)
        # All that is kept goes through a file.
        self.lease = json.loads(json.dumps(self.lease if changed is None else changed))
        assert lease_file.find_fault({"format": 1, **self.lease}) == ""
        return said

    @rule(job=JOBS, for_s=SPANS_S, gone=st.sampled_from(("", "a", "b", "c")))
    def take(self, job: str, for_s: float, gone: str) -> None:
        is_free = self.owner in {None, job, gone} or self.now["since_boot_s"] >= self.until_s
        said = self.ask(**take(job, for_s, gone))
        assert (said["state"] == "held") is is_free
        if is_free:
            self.owner, self.until_s = job, self.now["since_boot_s"] + for_s
        else:
            assert said["holder"]["token"] == self.owner
            assert said["left_s"] == pytest.approx(self.until_s - self.now["since_boot_s"])

    @rule(job=JOBS, for_s=SPANS_S)
    def renew(self, job: str, for_s: float) -> None:
        said = self.ask(ask="renew", token=job, for_s=for_s)
        assert (said["state"] == "held") is (job == self.owner)
        if job == self.owner:
            self.until_s = self.now["since_boot_s"] + for_s

    @rule(job=JOBS)
    def release(self, job: str) -> None:
        said = self.ask(ask="release", token=job)
        assert (said["state"] == "free") is (job == self.owner)
        if job == self.owner:
            self.owner = None

    @rule(seen=JOBS)
    def break_what_was_seen(self, seen: str) -> None:
        is_there = seen == self.owner
        assert (self.ask(ask="break", by="x@y", token=seen)["state"] == "free") is is_there
        if is_there:
            self.owner = None
            lost = self.ask(ask="check", token=seen)
            assert (lost["ended"]["how"], lost["ended"]["by"]) == ("broken", "x@y")

    @rule(seconds=st.sampled_from((0.5, 59.0, 4000.0)))
    def wait(self, seconds: float) -> None:
        self.now["unix_s"] += seconds
        self.now["since_boot_s"] += seconds

    @rule(seconds=st.sampled_from((-86400.0, 86400.0)))
    def set_the_clock(self, seconds: float) -> None:
        self.now["unix_s"] += seconds

    @invariant()
    def one_job_holds_the_host_or_none(self) -> None:
        holding = [job for job in "abc" if self.ask(ask="check", token=job)["state"] == "held"]
        assert holding == ([self.owner] if self.owner else [])


TestHost = Host.TestCase
TestHost.settings = settings(max_examples=tries(60), stateful_step_count=25)


def test_a_host_that_was_booted_anew_goes_by_the_clock_on_the_wall() -> None:
    now = {"unix_s": 1000.0, "since_boot_s": 500.0, "boot": "first"}
    lease, _ = decide(NOBODY, take("a", for_s=60.0), now)
    later = {"unix_s": 1030.0, "since_boot_s": 5.0, "boot": "second"}
    _, said = decide(lease, take("b"), later)
    assert (said["state"], said["left_s"]) == ("refused", 30.0)
    _, said = decide(lease, take("b"), {**later, "unix_s": 1061.0})
    assert said["state"] == "held"
    # A clock that went back must not make a lease longer than it was granted.
    _, said = decide(lease, {"ask": "show"}, {**later, "unix_s": 0.0})
    assert said["left_s"] == 60.0


def test_only_the_last_few_ends_are_remembered() -> None:
    lease: Any = NOBODY
    now = {"unix_s": 1000.0, "since_boot_s": 500.0, "boot": "first"}
    for number in range(20):
        lease, _ = decide(lease, take(f"job-{number}"), now)
        lease, _ = decide(lease, {"ask": "release", "token": f"job-{number}"}, now)
    assert [one["token"] for one in lease["ended"]] == [f"job-{number}" for number in range(12, 20)]


def test_of_jobs_that_ask_at_the_same_time_one_gets_it(tmp_path: Path) -> None:
    jobs = [f"job-{number}" for number in range(6)]
    together = threading.Barrier(len(jobs))

    def ask(place: tuple[Path, str]) -> str:
        together.wait(30)
        return str(answer(place[0], take(place[1]))["state"])

    with ThreadPoolExecutor(len(jobs)) as pool:
        for number in range(20):
            host = tmp_path / f"host-{number}"
            said = list(pool.map(ask, [(host, job) for job in jobs]))
            assert sorted(said) == ["held", *["refused"] * 5]


def test_to_look_at_a_host_changes_nothing_there(tmp_path: Path) -> None:
    assert answer(tmp_path / "none", {"ask": "show"})["state"] == "free"
    assert not (tmp_path / "none").exists()


def test_what_nobody_may_ask_ends_no_lease() -> None:
    now = {"unix_s": 1.8e9, "since_boot_s": 100.0, "boot": "first"}
    lease, _ = decide(NOBODY, take("a"), now)
    with pytest.raises(KeyError, match="relaese"):
        decide(lease, {"ask": "relaese", "token": "a"}, now)


def change(lease: dict[str, Any]) -> dict[str, Any]:
    return {**lease, "holder": {**lease["holder"], "expires_s": "soon"}}


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda _: "", "it is not JSON"),
        (lambda lease: json.dumps(lease)[:40], "it is not JSON"),
        (lambda _: "[]", "it is not a lease"),
        (lambda lease: json.dumps({**lease, "format": 2}), "it is of format 2, not 1; another"),
        (lambda lease: json.dumps(change(lease)), "its 'expires_s' is missing or wrong"),
        (lambda lease: json.dumps({**lease, "ended": ["x"]}), "its 'token' is missing or wrong"),
    ],
)
def test_a_file_that_is_no_lease_is_nobodys_until_it_is_broken(
    tmp_path: Path, damage: Callable[[dict[str, Any]], str], why: str
) -> None:
    assert answer(tmp_path, take("a"))["state"] == "held"
    (tmp_path / LEASE).write_text(damage(json.loads((tmp_path / LEASE).read_text())))
    before = (tmp_path / LEASE).read_text()
    said = [answer(tmp_path, ask) for ask in (take("b"), {"ask": "show"}, {"ask": "renew"})]
    assert {one["state"] for one in said} == {"corrupt"}
    assert why in said[0]["why"]
    other = {"ask": "break", "by": "x@y", "token": "another state of it"}
    assert answer(tmp_path, other)["state"] == "corrupt"
    assert (tmp_path / LEASE).read_text() == before
    assert answer(tmp_path, {**other, "token": said[0]["seen"]})["state"] == "free"
    assert answer(tmp_path, take("b"))["state"] == "held"


def test_it_is_a_program_of_the_standard_library(tmp_path: Path) -> None:
    program = Path(lease_file.__file__).read_text()
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-", str(tmp_path), json.dumps(take("a"))],
        input=program,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {"state": "held", "over": None}
    assert answer(tmp_path, {"ask": "show"})["holder"]["owner"] == "a@machine"
