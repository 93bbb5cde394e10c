"""Each way in which a host is not left alone, with what is said of it."""

from collections.abc import Callable, Sequence

import pytest

from perf.design import Validity
from perf.load.disturbance import find_disturbances
from perf.load.engines import LoadOutcome
from perf.load.spec import EngineResult, Usage
from perf.telemetry import Window

MakeWindow = Callable[..., Window]
LIMITS = Validity(
    max_error_share=0.01,
    max_miss_share=0.0,
    min_achieved_share=0.99,
    max_lateness_share=0.1,
    max_client_cpu_share=0.8,
    max_client_wait_share=0.5,
    max_iteration_spread=0.2,
    max_foreign_cpu_share=0.25,
    max_steal_share=0.0,
    max_throttled_share=0.1,
    max_clock_step_ms=5.0,
)


def used(*cpu_s: float, host: str = "box") -> LoadOutcome:
    """Make an engine that used so much CPU time in iterations 1, 2 … of 2 s each."""
    usages = tuple(
        Usage(phase="steady", iteration=iteration, wall_s=2.0, cpu_s=one_s, waited_s=0.0)
        for iteration, one_s in enumerate(cpu_s, start=1)
    )
    result = EngineResult(engine_index=0, counters=(), usages=usages)
    return LoadOutcome(results=(result,), engine_hosts=(host,))


def kinds(outcome: LoadOutcome, windows: Sequence[Window]) -> list[str]:
    return [reason.kind for reason in find_disturbances(outcome, windows, LIMITS)]


def test_what_other_programs_used_is_told_for_the_worst_window(make_window: MakeWindow) -> None:
    # 4 s on 2 cores: the servers used 2 s; the engine 0.5 s in 2 s, so 1 s in 4 s; a hog the rest.
    windows = [make_window(1, busy_s=6.8, server_s=2.0), make_window(2, busy_s=5.5, server_s=2.0)]
    (reason,) = find_disturbances(used(0.5, 0.5), windows, LIMITS)
    assert reason.kind == "host-busy"
    assert reason.text == (
        "box: other programs used 0.95 of 2 cores while steady was measured (iteration 1, 4.0 s): "
        "47.5%; the limit is 25%"
    )


def test_only_engines_of_the_same_host_and_window_are_no_strangers(make_window: MakeWindow) -> None:
    assert kinds(used(0.5), [make_window(busy_s=2.4)]) == []
    assert kinds(used(0.5, host="client"), [make_window(busy_s=2.4)]) == ["host-busy"]
    assert kinds(used(0.5), [make_window(2, busy_s=2.4)]) == ["host-busy"]
    assert kinds(used(0.5), [make_window(phase="full", busy_s=2.4)]) == ["host-busy"]


@pytest.mark.parametrize(
    ("changes", "kind", "what", "much"),
    [
        (
            {"steal_s": 0.0004},
            "host-stolen",
            "a hypervisor withheld 0.00 of 2 cores",
            ": 0.005%; the limit is 0%",
        ),
        (
            {"throttled_s": 0.5},
            "host-throttled",
            "a CPU quota held processes back 0.50 s",
            ": 12.5%; the limit is 10%",
        ),
        (
            {"clock_s": -0.0075},
            "clock-stepped",
            "the wall clock moved by 7.5 ms against the time since boot",
            "; the limit is 5 ms",
        ),
    ],
    ids=["steal", "throttling", "clock"],
)
def test_a_disturbance_is_told_with_its_numbers(
    make_window: MakeWindow,
    changes: dict[str, float],
    kind: str,
    what: str,
    much: str,
) -> None:
    (reason,) = find_disturbances(LoadOutcome(), [make_window(**changes)], LIMITS)
    text = f"box: {what} while steady was measured (iteration 1, 4.0 s){much}"
    assert (reason.kind, reason.text) == (kind, text)


def test_each_phase_has_one_reason_of_a_kind_and_can_be_asked_for_alone(
    make_window: MakeWindow,
) -> None:
    windows = [make_window(phase=phase, steal_s=1.0) for phase in ("steady", "steady", "full")]
    assert kinds(LoadOutcome(), windows) == ["host-stolen"] * 2
    (reason,) = find_disturbances(LoadOutcome(), windows, LIMITS, "full")
    assert "while full was measured" in reason.text
