"""How far a planted clock is ahead is found, to within what is said to be unsure."""

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from perf.hosts.remote import RoundTrip, SshHost
from perf.hosts.wall_clock import ROUND_TRIPS, find_epoch_ns, read_clock_offset
from perf.model.errors import StepFailed

NS_PER_MS = 1_000_000
EPOCH_NS = 1_764_000_000_000_000_000


@dataclass
class FarHost:
    """A host whose clock is ahead, at the end of a way that takes its time in each direction."""

    ahead_ms: float
    delays_ms: Sequence[tuple[float, float]]
    """There and back, of one round trip after the other."""
    name: str = "load-2"

    def ask(self, argv: Sequence[str], times: int) -> tuple[RoundTrip, ...]:
        assert argv[0] == "python3"
        found, now_ms = [], 5000.0
        for number in range(times):
            there_ms, back_ms = self.delays_ms[number % len(self.delays_ms)]
            said_ns = EPOCH_NS + round((now_ms + there_ms + self.ahead_ms) * NS_PER_MS)
            end_ms = now_ms + there_ms + back_ms
            asked_ns, answered_ns = round(now_ms * NS_PER_MS), round(end_ms * NS_PER_MS)
            found.append(RoundTrip(asked_ns, str(said_ns), answered_ns))
            now_ms = end_ms
        return tuple(found)


@pytest.mark.parametrize("ahead_ms", [0.0, 40.0, -3_600_000.0])
def test_where_both_ways_take_as_long_it_is_found_exactly(ahead_ms: float) -> None:
    found = read_clock_offset(FarHost(ahead_ms, [(0.25, 0.25)]), "python3", EPOCH_NS)
    assert found.ms == pytest.approx(ahead_ms, abs=0.001)
    assert found.uncertainty_ms == 0.25


@pytest.mark.parametrize("delays_ms", [(3.0, 0.0), (0.0, 3.0), (2.5, 0.5)])
def test_where_one_way_takes_longer_it_is_within_what_is_unsure(
    delays_ms: tuple[float, float],
) -> None:
    found = read_clock_offset(FarHost(-7.5, [delays_ms]), "python3", EPOCH_NS)
    assert found.uncertainty_ms == 1.5
    assert found.ms == pytest.approx(-7.5 + (delays_ms[0] - delays_ms[1]) / 2, abs=0.001)
    assert abs(found.ms - -7.5) <= found.uncertainty_ms + 0.001


def test_the_quickest_round_trip_counts() -> None:
    host = FarHost(10.0, [(80.0, 1.0), (1.0, 200.0), (0.25, 0.5), (5.0, 0.25)])
    found = read_clock_offset(host, "python3", EPOCH_NS)
    assert found.ms == pytest.approx(9.875, abs=0.001)
    assert found.uncertainty_ms == 0.375


def test_delays_of_every_kind_lead_to_no_false_certainty() -> None:
    draw = random.Random(7)  # noqa: S311  planted delays
    for _ in range(200):
        ahead_ms = draw.uniform(-500, 500)
        delays = [(draw.expovariate(2), draw.expovariate(0.5)) for _ in range(ROUND_TRIPS)]
        found = read_clock_offset(FarHost(ahead_ms, delays), "python3", EPOCH_NS)
        assert abs(found.ms - ahead_ms) <= found.uncertainty_ms + 0.001
        assert found.uncertainty_ms <= max(map(sum, delays)) / 2


def test_what_is_no_time_fails_with_the_host() -> None:
    class Chatty(FarHost):
        def ask(self, argv: Sequence[str], times: int) -> tuple[RoundTrip, ...]:
            return (RoundTrip(1, "welcome to load-2", 2),)

    with pytest.raises(StepFailed, match=r"clock failed on load-2: .*welcome to load-2"):
        read_clock_offset(Chatty(0.0, []), "python3", EPOCH_NS)


@pytest.mark.slow
def test_over_ssh_the_clock_of_this_machine_is_its_own(sshd: SshHost) -> None:
    found = read_clock_offset(sshd, sys.executable, find_epoch_ns())
    # The two clocks of which the epoch is made are read one after the other.
    assert found.least_ms < 5.0
    assert 0 < found.uncertainty_ms < 1000.0
