"""Engines with planted faults: the self-test must fail, and at the check that the fault is about.

Other checks may say "cannot tell" on a busy machine, but none of them may fail.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from perf.selftest.finding import Finding, Outcome
from perf.selftest.scenarios import Profile, run_counters, run_loops, run_merge, run_stall
from perf.selftest.stand import Stand

FAULTY = Path(__file__).parents[2] / "peers" / "faulty_engine.py"
SHORT = Profile(warmup_s=0.5, measured_s=1.0)

Run = Callable[[Stand, Profile], Iterable[Finding]]


def _failures(run: Run, directory: Path, *faults: str) -> tuple[set[str], set[str]]:
    """Run with these faults; give the checks that are not fine, and those that failed."""
    stand = Stand(directory=directory, program=(str(FAULTY), ",".join(faults)))
    findings = tuple(run(stand, SHORT))
    doubted = {one.check for one in findings if one.outcome is not Outcome.OK}
    return doubted, {one.check for one in findings if one.outcome is Outcome.FAILED}


def test_a_schedule_that_falls_behind(tmp_path: Path) -> None:
    doubted, failed = _failures(run_loops, tmp_path, "slow_schedule")
    drift = {"even: operations attempted", "even: arrivals drift from the schedule by"}
    assert drift <= doubted
    assert failed <= drift | {"even: arrivals in the worst second", "Poisson: arrivals"}


def test_wrong_arrivals_flattered_service_times_and_a_greedy_loop(tmp_path: Path) -> None:
    faults = ("never_poisson", "flattered_service", "greedy_loop")
    doubted, failed = _failures(run_loops, tmp_path, *faults)
    expected = {
        "Poisson: middle half of gaps spreads over",
        "p50",
        "p99.5",
        "most operations in flight",
    }
    assert expected <= doubted
    assert failed <= expected


@pytest.mark.parametrize("fault", ["coordinated_omission", "skipped_starts"])
def test_a_stall_that_hides_from_the_response_time(fault: str, tmp_path: Path) -> None:
    doubted, failed = _failures(run_stall, tmp_path, fault)
    expected = {"response times above 100 ms", "response times above 250 ms"}
    assert expected <= doubted
    assert failed <= expected


def test_engines_that_share_operations_or_lose_what_they_measured(tmp_path: Path) -> None:
    doubted, failed = _failures(run_merge, tmp_path, "same_numbers", "lost_intervals")
    expected = {
        "operations completed, with a response time in a log",
        "operations attempted, each with rows of its own at a server",
    }
    assert failed == doubted == expected


def test_errors_that_count_twice(tmp_path: Path) -> None:
    doubted, failed = _failures(run_counters, tmp_path, "double_count")
    assert {"operations that ended as error:Refused"} <= failed
    assert "operations that ended as completed" not in failed | doubted
