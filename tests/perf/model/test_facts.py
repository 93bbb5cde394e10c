"""Which facts may move while a trial runs, and what is said of those that may not."""

import pytest

from perf.model.facts import find_drift
from perf.model.results import Fact, Reason

FACTS = {
    "kernel": "6.1.0",
    "cpu_governor": "performance",
    "cpu_quota": "none",
    "load_average_1min": "0.12",
    "steal_ticks": "17",
    "thermal_throttle_count": "3",
    "version:java": 'openjdk version "17.0.9"',
}


def drift(name: str, value: str) -> tuple[Reason, ...]:
    return find_drift(facts(FACTS), facts(FACTS | {name: value}))


def facts(values: dict[str, str], host: str = "server-1") -> tuple[Fact, ...]:
    return tuple(Fact(host=host, name=name, value=value) for name, value in values.items())


def test_a_host_that_stayed_the_same_is_not_doubted() -> None:
    assert find_drift(facts(FACTS), facts(FACTS)) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [("load_average_1min", "4.00"), ("steal_ticks", "99"), ("clock_offset_ms", "0.1 ± 0.2")],
)
def test_what_goes_on_may_move(name: str, value: str) -> None:
    assert drift(name, value) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [("cpu_governor", "powersave"), ("cpu_quota", "1.5"), ("version:java", "17.0.10")],
)
def test_a_fact_that_changed_is_reported_with_both_values(name: str, value: str) -> None:
    text = f"server-1: {name} was {FACTS[name]} before the trial and {value} after it"
    assert drift(name, value) == (Reason(kind="host-drifted", text=text),)


def test_a_cpu_that_was_slowed_by_heat_is_reported() -> None:
    text = "server-1: its CPU was slowed by heat; thermal_throttle_count went from 3 to 12 in the trial"
    assert drift("thermal_throttle_count", "12") == (Reason(kind="cpu-overheated", text=text),)


def test_a_count_that_began_anew_is_no_heat() -> None:
    (reason,) = drift("thermal_throttle_count", "0")
    assert reason.kind == "host-drifted"


def test_a_fact_that_is_there_at_one_end_only_is_reported() -> None:
    fewer = {name: value for name, value in FACTS.items() if name != "kernel"}
    (lost,) = find_drift(facts(FACTS), facts(fewer))
    assert lost.text == "server-1: kernel was 6.1.0 before the trial and not read after it"
    (gained,) = find_drift(facts(fewer), facts(FACTS))
    assert gained.text == "server-1: kernel was not read before the trial and 6.1.0 after it"


def test_hosts_are_compared_each_with_itself() -> None:
    before = facts(FACTS) + facts(FACTS | {"kernel": "6.2.0"}, "server-2")
    after = facts(FACTS) + facts(FACTS | {"kernel": "6.3.0"}, "server-2")
    (reason,) = find_drift(before, after)
    assert reason.text == "server-2: kernel was 6.2.0 before the trial and 6.3.0 after it"
