import math
from collections.abc import Sequence

import pytest
from pydantic import JsonValue

from perf.model.errors import ConfigError
from perf.systems.null.behaviour import AnswerSchedule, Behaviour, read_behaviour


def _due_ms(behaviour: Behaviour, arrivals_ms: Sequence[float]) -> list[float]:
    line = AnswerSchedule(behaviour)
    return [round(line.decide(at_ms / 1000).due_s * 1000, 6) for at_ms in arrivals_ms]


def test_each_operation_takes_the_service_time() -> None:
    assert _due_ms(Behaviour(service_time_ms=2), [0, 0, 5]) == [2, 2, 7]


def test_each_nth_operation_is_slow() -> None:
    reported = Behaviour(service_time_ms=1, slow_every=3, slow_ms=20)
    assert _due_ms(reported, [0, 0, 0, 0, 0, 0]) == [1, 1, 20, 1, 1, 20]


def test_slots_bound_the_capacity_exactly() -> None:
    reported = Behaviour(service_time_ms=2, slots=4)
    due_ms = _due_ms(reported, [0.0] * 4000)
    assert due_ms[-1] == 4000 * 2 / 4
    assert due_ms[:5] == [2, 2, 2, 2, 4]


def test_a_slot_that_was_idle_starts_at_the_arrival() -> None:
    assert _due_ms(Behaviour(service_time_ms=2, slots=1), [0, 1, 10]) == [2, 4, 12]


def test_nothing_is_answered_in_a_stall_that_counts_from_the_first_operation() -> None:
    reported = Behaviour(service_time_ms=1, stall_at_s=2, stall_s=0.5)
    start = 10_000
    arrivals = [start, start + 1998, start + 1999, start + 2498, start + 2499]
    assert [due - start for due in _due_ms(reported, arrivals)] == [1, 1999, 2500, 2500, 2500]


def test_each_nth_operation_is_refused() -> None:
    line = AnswerSchedule(Behaviour(refuse_every=3))
    assert [line.decide(0.0).is_refused for _ in range(6)] == [False, False, True] * 2


def test_each_nth_operation_is_never_answered_and_its_slot_is_free_all_the_same() -> None:
    reported = Behaviour(service_time_ms=2, slots=1, never_answer_every=2)
    assert _due_ms(reported, [0, 0, 0, 0]) == [2, math.inf, 6, math.inf]


def test_settings_become_a_behaviour() -> None:
    found = read_behaviour({"service_time_ms": 2, "slots": 4}, "here")
    assert found == Behaviour(service_time_ms=2.0, slots=4)


def test_all_problems_of_settings_are_reported_at_once() -> None:
    wrong: dict[str, JsonValue] = {"service_time_ms": "2", "slots": 0, "colour": "red"}
    with pytest.raises(ConfigError) as refusal:
        read_behaviour(wrong, "null.yaml")
    assert len(refusal.value.problems) == 3
    for name, value in wrong.items():
        assert any(name in text and repr(value) in text for text in refusal.value.problems)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"slow_every": 5}, "slow_ms"),
        ({"stall_s": 0.5}, "stall_at_s"),
        ({"slots": 4}, "service_time_ms"),
        ({"wrong_every": 4}, "holds"),
        ({"holds": {"seed": 1, "devices": 97, "payload_bytes": 1000}}, "rows"),
    ],
)
def test_settings_that_mean_nothing_together_are_refused(
    settings: dict[str, JsonValue], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        read_behaviour(settings, "null.yaml")
