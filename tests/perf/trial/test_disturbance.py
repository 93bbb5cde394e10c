"""What two looks say of a host: each way in which it is not left alone, and what is said of it."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from perf.hosts.usage import HostUsage
from perf.load.results.outcome import LoadOutcome
from perf.load.spec import EngineResult, Usage
from perf.model.design import Validity
from perf.trial.disturbance import find_disturbances, host_shares
from perf.trial.telemetry import Process, Snapshot, Window

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


def test_what_other_programs_used_is_reported_for_the_worst_window(make_window: MakeWindow) -> None:
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
def test_a_disturbance_is_reported_with_its_numbers(
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


def usage(**changes: float) -> HostUsage:
    base = HostUsage(
        host="server-1",
        at_s=100.0,
        cores=4,
        busy_s=50.0,
        steal_s=1.0,
        throttled_s=0.0,
        clock_offset_s=1000.0,
        sent_bytes=0,
    )
    return replace(base, **changes)  # type: ignore[arg-type]  # the floats of HostUsage


def process(cpu_s: float, node: str = "node-1", host: str = "server-1") -> Process:
    return Process(node=node, host=host, cpu_s=cpu_s, read_bytes=0, written_bytes=0)


def window(
    before: tuple[HostUsage, ...],
    after: tuple[HostUsage, ...],
    *processes: tuple[Process, ...],
) -> Window:
    started, ended = processes or ((), ())
    return Window(
        phase="steady",
        iterations=(1,),
        before=Snapshot(hosts=before, processes=started, levels=()),
        after=Snapshot(hosts=after, processes=ended, levels=()),
    )


def test_foreign_is_what_neither_servers_nor_engines_used() -> None:
    seen = window(
        (usage(),),
        (usage(at_s=110.0, busy_s=75.0, steal_s=3.0, throttled_s=0.5, clock_offset_s=999.8),),
        (process(5.0), process(7.0, "node-2"), process(1.0, "node-3", "server-2")),
        (process(11.0), process(10.0, "node-2"), process(90.0, "node-3", "server-2")),
    )
    (shares,) = host_shares(seen, {"server-1": 4.0, "client-1": 10.0})
    assert (shares.host, shares.seconds, shares.cores) == ("server-1", 10.0, 4)
    # 25 s busy, of which 6 + 3 by the servers here and 4 by engines.
    assert shares.foreign_cpu_share == pytest.approx(12 / 40)
    assert shares.steal_share == pytest.approx(2 / 40)
    assert shares.throttled_share == pytest.approx(0.05)
    assert shares.clock_step_ms == pytest.approx(200)


def test_ticks_that_miss_a_little_are_no_negative_share() -> None:
    seen = window((usage(),), (usage(at_s=101.0, busy_s=50.98),), (process(0.0),), (process(0.995),))
    (shares,) = host_shares(seen, {})
    assert shares.foreign_cpu_share == 0.0


def test_no_share_of_the_cores_is_above_one() -> None:
    seen = window((usage(),), (usage(at_s=101.0, busy_s=54.2, steal_s=5.1),))
    (shares,) = host_shares(seen, {})
    assert (shares.foreign_cpu_share, shares.steal_share) == (1.0, 1.0)


def test_a_host_that_one_look_missed_has_no_shares() -> None:
    later = usage(at_s=101.0)
    assert host_shares(window((), (later,)), {}) == ()
    assert host_shares(window((later,), ()), {}) == ()
    assert host_shares(window((later,), (usage(at_s=3.0),)), {}) == ()


def test_two_looks_at_one_moment_tell_no_shares() -> None:
    assert host_shares(window((usage(),), (usage(busy_s=90.0),)), {}) == ()
