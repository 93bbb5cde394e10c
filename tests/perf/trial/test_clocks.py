"""Clocks of several client hosts: whose are read, what is doubted, and what is only unsure."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perf.hosts.remote import LocalHost, SshHost
from perf.hosts.testbed import Client
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.clock_offsets import ClockOffset
from perf.model.design import Host
from perf.model.errors import Unreachable
from perf.model.results import Fact, TrialStatus
from perf.systems.fake import system as fake
from perf.trial import clocks, harness
from perf.trial.clocks import Clocks, judge_clocks, read_clocks
from perf.trial.harness import run_trial

from .test_harness import make_order

OFFSETS = {"load-1": ClockOffset(0.0, 0.1), "load-2": ClockOffset(30.0, 0.2)}


def client(name: str, *, is_far: bool = True) -> Client:
    host = Host(name=name, address="192.0.2.1", role="client", python=f"/opt/{name}/python")
    return Client(host, SshHost(name, host.address) if is_far else LocalHost(), "/work")


def facts(**ms: tuple[float, float]) -> tuple[Fact, ...]:
    return tuple(ClockOffset(*of).fact_of(host.replace("_", "-")) for host, of in ms.items())


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    """Answer for hosts as planted; give what was asked, and against which moment."""
    asked: list[tuple[str, str, int]] = []

    def answer(remote: SshHost, python: str, epoch_ns: int) -> ClockOffset:
        asked.append((remote.name, python, epoch_ns))
        if remote.name not in OFFSETS:
            raise Unreachable("ssh", remote.name, "no route")
        return OFFSETS[remote.name]

    monkeypatch.setattr(clocks, "read_clock_offset", answer)
    return asked


def test_one_client_host_or_one_machine_is_not_asked(read: list[Any]) -> None:
    assert read_clocks([client("load-1")], "before the load") == Clocks()
    here = [client(name, is_far=False) for name in OFFSETS]
    assert read_clocks(here, "before the load") == Clocks()
    assert read == []


def test_several_are_read_against_one_moment_and_kept_as_facts(read: list[Any]) -> None:
    found = read_clocks([client(name) for name in OFFSETS], "before the load")
    assert found == Clocks(facts(load_1=(0.0, 0.1), load_2=(30.0, 0.2)), ())
    assert [each[:2] for each in read] == [(name, f"/opt/{name}/python") for name in OFFSETS]
    assert len({epoch_ns for _, _, epoch_ns in read}) == 1


@pytest.mark.usefixtures("read")
def test_one_that_cannot_be_read_is_a_fact_and_a_remark() -> None:
    found = read_clocks([client("load-1"), client("load-3")], "after the load")
    assert found.facts[1] == Fact(host="load-3", name="clock_offset_ms", value="unavailable")
    (remark,) = found.remarks
    assert remark.kind == "clock-offset-unknown"
    assert "load-3" in remark.text
    assert "after the load" in remark.text
    assert judge_clocks(found.facts, "after the load", 5.0) == ((), ())


@pytest.mark.parametrize(
    ("read_ms", "words"),
    [
        (
            {"load_1": (0.0, 0.1), "load_2": (5.5, 0.2)},
            ("of load-2 was ahead of that of load-1", "5.500"),
        ),
        (
            {"load_1": (9.0, 0.1), "load_2": (1.0, 0.2)},
            ("of load-1 was ahead of that of load-2", "8.000"),
        ),
        (
            {"load_1": (0.0, 0.1), "load_2": (1.0, 0.1), "load_3": (-4.9, 0.1)},
            ("of load-2 was ahead of that of load-3", "5.900 ms (± 0.200 ms)"),
        ),
    ],
    ids=["second", "first", "of-three"],
)
def test_clocks_that_were_surely_too_far_apart_are_a_reason(
    read_ms: Mapping[str, tuple[float, float]], words: Sequence[str]
) -> None:
    (reason,), remarks = judge_clocks(facts(**read_ms), "before the load", 5.0)
    assert reason.kind == "clock-offset"
    assert all(word in reason.text for word in ("before the load", *words)), reason.text
    assert "the limit is 5 ms" in reason.text
    assert remarks == ()


def test_clocks_that_may_have_been_are_a_remark() -> None:
    unsure = facts(load_1=(0.0, 2.0), load_2=(6.0, 2.0))
    reasons, (remark,) = judge_clocks(unsure, "after the load", 5.0)
    assert reasons == ()
    assert remark.kind == "clock-offset-unknown"
    assert (
        "after the load the clocks of load-1 and load-2 were 6.000 ms apart, ± 4.000 ms" in remark.text
    )


def test_clocks_within_the_limit_and_trials_without_any_are_left_alone() -> None:
    near = facts(load_1=(0.0, 0.1), load_2=(3.0, 0.1))
    for known in (near, (), near[:1]):
        assert judge_clocks(known, "before the load", 5.0) == ((), ())


@pytest.mark.slow
@pytest.mark.usefixtures("fake_ports")
def test_a_trial_whose_clocks_are_within_the_limit_keeps_how_far_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = Clocks(tuple(offset.fact_of(host) for host, offset in OFFSETS.items()))
    monkeypatch.setattr(harness, "read_clocks", lambda *_: apart)
    order = make_order("fake-blink", {})
    testbed = order.deployment.testbed
    testbed = replace(testbed, validity=replace(testbed.validity, max_clock_offset_ms=50.0))
    order = replace(order, deployment=replace(order.deployment, testbed=testbed))
    trial = run_trial(order, fake.Fake(), DataPaths(tmp_path), Progress(io.StringIO()))
    assert (trial.status, trial.reasons) == (TrialStatus.COMPLETED, ())
    for environment in (trial.environment_before, trial.environment_after):
        assert set(apart.facts) <= set(environment)
