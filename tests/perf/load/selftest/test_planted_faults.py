"""Engines with planted faults: the self-test must fail, and at the check that the fault is about.

Other checks may say "cannot tell" on a busy machine, but none of them may fail.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perf.load.selftest.finding import CheckOutcome, SelftestFinding
from perf.load.selftest.scenarios import (
    LoadProfile,
    Scenario,
    run_counters,
    run_loops,
    run_merge,
    run_pause,
    run_stall,
    run_until_reported,
)
from perf.load.selftest.stand import Stand
from perf.model.errors import StepFailed

pytestmark = [pytest.mark.alone, pytest.mark.slow]

FAULTY = Path(__file__).parents[3] / "peers" / "faulty_engine.py"
SHORT = LoadProfile(warmup_s=0.25, measured_s=1.0)
# What is overdue is sent in a part of the next warm-up.
SHORT_STAGES = LoadProfile(warmup_s=0.5, measured_s=1.0)

Run = Callable[[Stand, LoadProfile], tuple[SelftestFinding, ...]]


def _failures(run: Run, directory: Path, planted: set[str], *faults: str) -> set[str]:
    """Run with these faults until all checks in `planted` are reported; give those that failed."""
    stand = Stand(directory=directory, engine=(sys.executable, str(FAULTY), ",".join(faults)))

    def run_for_planted(stand: Stand, profile: LoadProfile) -> tuple[SelftestFinding, ...]:
        findings = run(stand, profile)
        assert planted <= {one.check for one in findings}
        hidden = (
            one for one in findings if one.check in planted and one.outcome is CheckOutcome.CANNOT_TELL
        )
        return tuple(hidden) or findings

    scenario = Scenario(title=", ".join(faults), run=run_for_planted)
    profile = SHORT_STAGES if run is run_loops else SHORT
    findings = run_until_reported(scenario, stand, profile, print)
    return {one.check for one in findings if one.outcome is CheckOutcome.FAILED}


def test_a_schedule_that_falls_behind(tmp_path: Path) -> None:
    planted = {"even: operations attempted", "even: arrivals drift from the schedule by"}
    failed = _failures(run_loops, tmp_path, planted, "slow_schedule")
    assert planted <= failed
    assert failed <= planted | {
        "even: arrivals in the worst second",
        "even: middle half of gaps spreads over",
        "Poisson: arrivals",
        "operations that the server saw, attempted",
    }


def test_wrong_arrivals_flattered_service_times_and_a_greedy_loop(tmp_path: Path) -> None:
    planted = {
        "Poisson: middle half of gaps spreads over",
        "p99.5",
        "most operations in flight",
    }
    faults = ("never_poisson", "flattered_service", "greedy_loop")
    failed = _failures(run_loops, tmp_path, planted, *faults)
    assert planted <= failed <= planted | {"p50"}


@pytest.mark.parametrize("fault", ["coordinated_omission", "skipped_starts"])
def test_a_stall_that_hides_from_the_response_time(fault: str, tmp_path: Path) -> None:
    planted = {"response times above 100 ms", "response times above 250 ms"}
    assert _failures(run_stall, tmp_path, planted, fault) == planted


def test_a_pause_of_the_client_that_is_booked_as_the_servers(tmp_path: Path) -> None:
    planted = {
        "send lateness above 100 ms",
        "send lateness above 250 ms",
        "operations held, as if by the server",
    }
    assert _failures(run_pause, tmp_path, planted, "blameless_client") == planted


def test_engines_that_share_operations_or_lose_what_they_measured(tmp_path: Path) -> None:
    planted = {
        "operations completed, with a response time in a log",
        "operations attempted, each with rows of its own at a server",
    }
    assert _failures(run_merge, tmp_path, planted, "same_numbers", "lost_intervals") == planted


def test_errors_that_count_twice_leave_fewer_than_none_to_time_out(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match=r"timeouts of write in counters is no count: -\d"):
        _failures(run_counters, tmp_path, set(), "double_count")
