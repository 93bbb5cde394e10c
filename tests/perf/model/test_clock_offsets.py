"""What two clocks differ by at least and at most, and how that is written and read."""

import pytest

from perf.model.clock_offsets import ClockOffset, list_apart, read_offsets
from perf.model.results import Fact


@pytest.mark.parametrize(
    ("offset", "least_ms", "most_ms"),
    [
        (ClockOffset(4.0, 1.5), 2.5, 5.5),
        (ClockOffset(-4.0, 1.5), 2.5, 5.5),
        (ClockOffset(1.0, 1.5), 0.0, 2.5),
    ],
)
def test_clocks_are_apart_by_at_least_and_at_most(
    offset: ClockOffset, least_ms: float, most_ms: float
) -> None:
    assert (offset.least_ms, offset.most_ms) == (least_ms, most_ms)


def test_each_two_hosts_are_compared_and_what_is_unsure_of_both_adds_up() -> None:
    known = {"a": ClockOffset(1.0, 0.25), "b": ClockOffset(-2.0, 0.5), "c": ClockOffset(0.0, 0.0)}
    found = {pair.hosts: pair.by for pair in list_apart(known)}
    assert found == {
        ("a", "b"): ClockOffset(3.0, 0.75),
        ("a", "c"): ClockOffset(1.0, 0.25),
        ("b", "c"): ClockOffset(-2.0, 0.5),
    }
    assert list_apart({"a": ClockOffset(1.0, 0.25)}) == ()


def test_a_fact_says_it_to_a_microsecond_and_an_unknown_one_says_nothing() -> None:
    facts = (
        ClockOffset(-12.3456, 0.0421).fact_of("load-1"),
        Fact(host="load-2", name="clock_offset_ms", value="unavailable"),
        Fact(host="load-1", name="kernel", value="6 ± 1"),
    )
    assert facts[0] == Fact(host="load-1", name="clock_offset_ms", value="-12.346 ± 0.042")
    assert ClockOffset(-0.0004, 0.0421).fact_of("load-1").value == "0.000 ± 0.042"
    assert read_offsets(facts) == {"load-1": ClockOffset(-12.346, 0.042)}
