"""Each rule that makes a trial invalid or a step client-limited: what breaks it, and what is said."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from budget import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.load.results.outcome import LoadOutcome
from perf.load.spec import EngineResult, Usage
from perf.model.design import ClosedLoop, OpenLoop, SimpleLoad, Validity
from perf.model.results import Counter, Interval, LoadStep, Reason, StepOutcome
from perf.trial.telemetry import Window
from perf.trial.validity import find_faults, find_lost_time, judge_step
from perf.workloads.stages import Stage

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
CLOSED = ClosedLoop(kind="closed", in_flight=4)
OPEN = OpenLoop(kind="open", offered_load_ops_per_s=50.0, in_flight=8)

MakeInterval = Callable[..., Interval]
MakeWindow = Callable[..., Window]


def stage(phase: str = "steady", iteration: int = 1, load: SimpleLoad = OPEN) -> Stage:
    return Stage(
        phase=phase,
        load=load,
        warmup_s=1.0,
        warmup_cap_s=4.0,
        iteration_s=2.0,
        iterations=(iteration,),
    )


def count(iteration: int = 1, phase: str = "steady", **values: int) -> list[Counter]:
    """Count; whatever was attempted was sent in time, unless it is said."""
    values = {"sent_in_window": values.get("attempted", 0), **values}
    return [
        Counter(
            phase=phase, operation="write", iteration=iteration, name=name.replace("__", ":"), value=n
        )
        for name, n in values.items()
    ]


def used(
    cpu_s: float = 0.4,
    waited_s: float = 0.0,
    *,
    phase: str = "steady",
    iteration: int = 1,
    engine: int = 0,
) -> EngineResult:
    usage = Usage(phase=phase, iteration=iteration, wall_s=2.0, cpu_s=cpu_s, waited_s=waited_s)
    return EngineResult(engine_index=engine, counters=(), usages=(usage,))


def faults_of(
    counters: Sequence[Counter],
    *stages: Stage,
    windows: Sequence[Window] = (),
    **parts: Any,  # noqa: ANN401  the fields of LoadOutcome, checked by it
) -> tuple[Reason, ...]:
    outcome = LoadOutcome(counters=tuple(counters), **parts)
    return find_faults(stages or (stage(),), outcome, windows, LIMITS)


def test_a_clean_trial_has_no_fault(make_interval: MakeInterval, make_window: MakeWindow) -> None:
    intervals = tuple(
        make_interval(values, phase="steady", kind=kind)
        for kind, values in (("response_time", [20_000] * 100), ("send_lateness", [1000] * 100))
    )
    counters = count(attempted=100, completed=100, held=30)
    assert faults_of(counters, intervals=intervals, results=(used(),), windows=[make_window()]) == ()


def test_errors_up_to_the_limit_are_borne_and_above_it_named_with_numbers() -> None:
    assert faults_of(count(attempted=100, completed=99, timeouts=1)) == ()
    counters = count(attempted=50, completed=48, timeouts=1, error__unavailable=1)
    (reason,) = faults_of([*counters, *count(2, attempted=50, completed=49, timeouts=1)])
    assert reason.kind == "errors-above-limit"
    assert reason.text == (
        "steady, write: 3% of 100 operations (2 × timeouts, 1 × unavailable); the limit is 1%"
    )


def test_a_closed_loop_that_mostly_waited_in_vain_is_reported_however_much_it_had_completed() -> None:
    def reported(timeouts: int, load: SimpleLoad) -> list[Reason]:
        counters = count(attempted=10_000, completed=10_000 - timeouts, timeouts=timeouts)
        outcome = LoadOutcome(counters=tuple(counters), results=(used(),))
        return list(find_lost_time([stage(load=load)], outcome, timeout_s=0.5))

    # Four slots for two seconds: a quarter of their time is four timeouts of half a second.
    assert reported(4, CLOSED) == []
    (reason,) = reported(5, CLOSED)
    assert reason.kind == "errors-above-limit"
    assert reason.text == (
        "steady, write: 5 timeouts of 0.5 s took 31.2% of the time of the client's 4 slots; "
        "the limit is 25%"
    )
    assert reported(5, OPEN) == []  # its other operations were sent all the same


def test_one_wrong_row_is_a_fault_where_none_is_allowed() -> None:
    (reason,) = faults_of(count(attempted=100_000, completed=99_999, wrong_data=1))
    assert reason.kind == "misses-above-limit"
    assert reason.text == "steady, write: 0.001% of 100000 operations (1 × wrong_data); the limit is 0%"


@pytest.mark.parametrize("phase", ["ladder-200", "sought-03"])
def test_a_wrong_row_in_a_step_spoils_the_trial_and_an_error_does_not(phase: str) -> None:
    clean = count(attempted=100, completed=100)
    errors = count(phase=phase, attempted=100, completed=10, timeouts=50, error__overloaded=40)
    assert faults_of([*clean, *errors]) == ()
    lost = [
        *count(1, phase, attempted=1000, completed=999, not_found=1),
        *count(2, phase, attempted=1000, completed=999, wrong_data=1),
    ]
    (reason,) = faults_of([*clean, *errors, *lost])
    assert reason.kind == "misses-above-limit"
    assert reason.text == (
        f"{phase}, write: 0.0952% of 2100 operations (1 × not_found, 1 × wrong_data); the limit is 0%"
    )


def test_no_completed_operation_is_a_fault_with_the_first_error() -> None:
    result = EngineResult(engine_index=0, counters=(), usages=(), examples=("timeout: too slow",))
    (reason,) = faults_of(count(attempted=10, completed=0, timeouts=10), results=(result,))
    assert reason.text == (
        "steady, write: none of 10 operations completed; the first: timeout: too slow"
    )


def test_a_phase_that_left_no_trace_is_a_fault() -> None:
    (reason,) = faults_of([])
    assert reason.kind == "nothing-completed"
    assert reason.text == "steady: none of 0 operations completed; the engines recorded nothing of it"


def test_warm_up_is_not_judged_and_phases_are_judged_apart() -> None:
    faults = faults_of(
        [
            *count(0, attempted=10, completed=1, timeouts=9),
            *count(1, attempted=1000, completed=1000),
            *count(1, phase="saturation", attempted=10, completed=8, timeouts=2),
        ],
        stage(),
        stage("saturation"),
    )
    assert [fault.text.partition(",")[0] for fault in faults] == ["saturation"]


def test_load_that_was_not_offered_says_who_fell_behind() -> None:
    counters = count(attempted=100, completed=100, sent_in_window=80, held=60)
    (reason,) = faults_of(counters, results=(used(cpu_s=0.5),))
    assert reason.kind == "load-not-offered"
    assert reason.text == (
        "steady, write: 80 of 100 operations were sent in time (80%); the limit is 99%; the server "
        "fell behind, or in_flight is too small for this load: 60 operations (60%) waited for one of "
        "the client's slots; the busiest engine used 0.25 of a core"
    )
    (reason,) = faults_of(count(attempted=100, completed=100, sent_in_window=80, held=2))
    assert "; the client fell behind: 2 operations (2%) waited" in reason.text


def test_a_stall_of_the_server_at_the_end_of_a_window_is_the_servers() -> None:
    (reason,) = faults_of(count(attempted=600, completed=600, sent_in_window=564, held=36))
    assert "the server fell behind" in reason.text


def test_a_closed_loop_has_no_load_to_offer_and_no_lateness(make_interval: MakeInterval) -> None:
    late = make_interval([90_000] * 9, phase="full", kind="send_lateness")
    times = make_interval([10_000] * 9, phase="full")
    counters = count(phase="full", attempted=100, completed=100, sent_in_window=50)
    assert faults_of(counters, stage("full", load=CLOSED), intervals=(late, times)) == ()


def test_a_late_client_is_a_fault_measured_on_merged_histograms(make_interval: MakeInterval) -> None:
    # By engine, the share is 0.12 and nothing: their mean would be below the limit.
    intervals = tuple(
        make_interval(values, phase="steady", kind=kind)
        for late_us in (240, 0)
        for kind, values in (("response_time", [2000] * 100), ("send_lateness", [late_us] * 100))
    )
    (reason,) = faults_of(count(attempted=200, completed=200), intervals=intervals)
    assert reason.kind == "client-late"
    assert reason.text == (
        "steady, write, iteration 1: the client sent late by 0.24 ms at p99, which is 0.12 of the p99 "
        "of response time (2.00 ms); the limit is 0.1"
    )


def test_one_iteration_in_which_the_client_fell_behind_is_not_hidden_by_the_others(
    make_interval: MakeInterval,
) -> None:
    # Two late sends of 300 are beyond the p99 of all; the other shares would be a third of the limit.
    late_us = {1: [0] * 100, 2: [0] * 98 + [5000] * 2, 3: [0] * 99 + [9000]}
    intervals = tuple(
        make_interval(values, phase="steady", kind=kind, iteration=iteration)
        for iteration, late in late_us.items()
        for kind, values in (("response_time", [10_000] * 100), ("send_lateness", late))
    )
    counters = [one for i in late_us for one in count(i, attempted=100, completed=100)]
    results = (
        used(0.2),
        used(1.8, 0.1, iteration=2, engine=1),
        used(1.7, 1.4, iteration=3, engine=1),
        used(0.2, 1.2, iteration=3, engine=2),
    )
    stages = [stage(iteration=i) for i in late_us]
    busy, late, starved = faults_of(counters, *stages, intervals=intervals, results=results)
    assert [one.kind for one in (busy, late, starved)] == [
        "client-busy",
        "client-late",
        "client-starved",
    ]
    assert busy.text.startswith("steady, write, iteration 2: engine 1 used 0.90 s of CPU per second")
    assert late.text.startswith("steady, write, iteration 2: the client sent late by 5.00 ms at p99")
    assert starved.text.startswith("steady, write, iteration 3: threads of engine 1 waited 0.70 s")


def test_the_busiest_and_the_most_starved_engine_are_named() -> None:
    results = (used(0.2, 1.4), used(1.8, 0.1, engine=1))
    busy, starved = faults_of(count(attempted=100, completed=100), results=results)
    assert (busy.kind, starved.kind) == ("client-busy", "client-starved")
    assert busy.text == (
        "steady, write, iteration 1: engine 1 used 0.90 s of CPU per second over 2.0 s; "
        "the limit is 0.8"
    )
    assert starved.text == (
        "steady, write, iteration 1: threads of engine 0 waited 0.70 s for a core per second over "
        "2.0 s; the limit is 0.5"
    )


def test_what_an_engine_used_in_warm_ups_and_other_phases_is_no_fault() -> None:
    results = (used(2.0, 2.0, iteration=0), used(2.0, 2.0, phase="other"))
    assert faults_of(count(attempted=100, completed=100), results=results) == ()


def test_iterations_that_disagree_are_a_fault_with_their_values(make_interval: MakeInterval) -> None:
    completed = {1: 100, 2: 110, 3: 130}
    counters = [
        counter
        for iteration, n in completed.items()
        for counter in count(iteration, phase="full", attempted=n, completed=n, completed_in_window=n)
    ]
    stages = [stage("full", iteration, CLOSED) for iteration in completed]
    (reason,) = faults_of(counters, *stages)
    assert reason.kind == "not-steady"
    assert reason.text == (
        "full, write: throughput of the iterations is 50, 55, 65 ops/s, 15 ops/s apart; "
        "the limit is 0.2 of their median, 55 ops/s"
    )
    # An open loop completes what it was asked to, so it is its response time that tells.
    intervals = tuple(
        make_interval([us] * 9, phase="full", iteration=iteration)
        for iteration, us in ((1, 1000), (2, 1000), (3, 1300))
    )
    open_stages = [stage("full", iteration) for iteration in completed]
    (reason,) = faults_of(counters, *open_stages, intervals=intervals)
    assert reason.text.startswith("full, write: median response time of the iterations is 1, 1, 1.3 ms")


def test_iterations_of_which_most_completed_nothing_disagree() -> None:
    stages = [stage("full", iteration, CLOSED) for iteration in (1, 2, 3)]
    counters = [
        counter
        for iteration, n in ((1, 0), (2, 0), (3, 50))
        for counter in count(iteration, phase="full", completed=n, completed_in_window=n)
    ]
    assert [reason.kind for reason in faults_of(counters, *stages)] == ["not-steady"]


def test_a_disturbed_host_spoils_a_step_of_a_search_too(make_window: MakeWindow) -> None:
    windows = [make_window(phase="sought-01", steal_s=1.0)]
    faults = faults_of(count(attempted=100, completed=100), windows=windows)
    assert [fault.kind for fault in faults] == ["host-stolen"]


@pytest.fixture
def judge(make_interval: MakeInterval) -> Callable[..., LoadStep]:
    """Return `judge(response_us, lateness_us, objective_ms, engine, windows, **counts)`."""

    def judge_one(
        response_us: int = 10_000,
        lateness_us: int = 100,
        objective_ms: float | None = None,
        engine: EngineResult | None = None,
        windows: Sequence[Window] = (),
        **counts: int,
    ) -> LoadStep:
        outcome = LoadOutcome(
            intervals=tuple(
                make_interval([value] * 100, phase="steady", kind=kind)
                for kind, value in (("response_time", response_us), ("send_lateness", lateness_us))
                if value
            ),
            counters=tuple(count(1, "steady", **{"attempted": 100, "completed": 100, **counts})),
            results=(engine or used(),),
        )
        return judge_step([stage()], outcome, windows, LIMITS, objective_ms)

    return judge_one


def test_a_step_that_held_says_by_what(judge: Callable[..., LoadStep]) -> None:
    assert judge(2000, objective_ms=20.0) == LoadStep(
        phase="steady",
        offered_load_ops_per_s=50.0,
        achieved_ops_per_s=50.0,
        response_time_p99_ms=2.0,
        send_lateness_p99_ms=0.1,
        client_cpu_share=0.2,
        outcome=StepOutcome.HELD,
        text="50.0 ops/s were sent; p99 of response time is 2.00 ms; the objective is 20 ms",
    )
    assert judge(2000).text == "50.0 ops/s were sent; p99 of response time is 2.00 ms"


def test_a_missed_objective_is_the_systems(judge: Callable[..., LoadStep]) -> None:
    step = judge(response_us=30_000, objective_ms=20.0)
    assert step.outcome is StepOutcome.MISSED
    assert step.text.startswith("p99 of response time is 30.0")
    assert judge(response_us=30_000).outcome is StepOutcome.HELD


@pytest.mark.parametrize("objective_ms", [None, 1000.0])
def test_errors_misses_and_held_operations_are_the_systems(
    judge: Callable[..., LoadStep], objective_ms: float | None
) -> None:
    for counts in (
        {"completed": 90, "timeouts": 10},
        {"completed": 99, "wrong_data": 1},
        {"sent_in_window": 90, "held": 80},
    ):
        assert judge(objective_ms=objective_ms, **counts).outcome is StepOutcome.MISSED
    step = judge(response_us=0, lateness_us=0, completed=0, timeouts=100)
    assert (step.outcome, step.response_time_p99_ms) == (StepOutcome.MISSED, None)


def test_an_overloaded_server_is_not_the_clients_fault(judge: Callable[..., LoadStep]) -> None:
    step = judge(
        response_us=5_000_000, lateness_us=400_000, objective_ms=20.0, sent_in_window=60, held=95
    )
    assert step.outcome is StepOutcome.MISSED


@pytest.mark.parametrize(
    ("client", "said"),
    [
        ({"lateness_us": 5000}, "sent late by 5.00 ms"),
        ({"engine": used(1.9)}, "0.95 s of CPU per second"),
        ({"engine": used(0.1, 1.5)}, "waited 0.75 s for a core"),
        ({"sent_in_window": 80, "held": 1}, "the client fell behind"),
    ],
    ids=["late", "busy", "starved", "not offered"],
)
def test_a_client_that_fell_behind_limits_the_step(
    judge: Callable[..., LoadStep], client: dict[str, int], said: str
) -> None:
    assert judge(**client).outcome is StepOutcome.CLIENT_LIMITED
    step = judge(response_us=30_000, objective_ms=20.0, **client)
    assert step.outcome is StepOutcome.CLIENT_LIMITED
    assert said in step.text
    assert "the objective is 20 ms" in step.text


def test_a_load_that_met_its_objective_in_full_held_although_the_client_was_late(
    judge: Callable[..., LoadStep],
) -> None:
    assert judge(lateness_us=5000, objective_ms=20.0).outcome is StepOutcome.HELD
    limited = judge(lateness_us=5000, objective_ms=20.0, sent_in_window=80)
    assert limited.outcome is StepOutcome.CLIENT_LIMITED


def test_a_missed_step_says_that_its_host_was_disturbed(
    judge: Callable[..., LoadStep], make_window: MakeWindow
) -> None:
    windows = [make_window(phase="other", steal_s=9.0), make_window(steal_s=0.4)]
    step = judge(response_us=30_000, objective_ms=20.0, windows=windows)
    assert step.text.endswith(
        "; box: a hypervisor withheld 0.10 of 2 cores while steady was measured "
        "(iteration 1, 4.0 s): 5%; the limit is 0%"
    )
    assert "hypervisor" not in judge(objective_ms=20.0, windows=windows).text


def test_a_step_of_which_nothing_was_recorded_says_nothing_of_the_system() -> None:
    step = judge_step([stage()], LoadOutcome(), (), LIMITS, 20.0)
    assert (step.outcome, step.text) == (StepOutcome.CLIENT_LIMITED, "of 50 ops/s none was sent")


@pytest.mark.parametrize("stages", [(), (stage(load=CLOSED),), (stage(), stage("other"))])
def test_only_one_open_loop_makes_a_step(stages: tuple[Stage, ...]) -> None:
    with pytest.raises(ValueError, match="a step is one phase with an open loop"):
        judge_step(stages, LoadOutcome(), (), LIMITS, None)


@settings(max_examples=tries(15, sample=5))
@given(
    completed=st.integers(0, 1000), failed=st.integers(0, 1000), sent=st.integers(0, 2000),
    held=st.integers(0, 2000),
)  # fmt: skip
def test_a_step_holds_exactly_where_a_plain_phase_has_no_fault(
    make_interval: MakeInterval, completed: int, failed: int, sent: int, held: int
) -> None:
    counts = {"attempted": completed + failed, "completed": completed, "timeouts": failed}
    outcome = LoadOutcome(
        intervals=(make_interval([1000], phase="steady"),) if completed else (),
        counters=tuple(count(1, "steady", **counts, sent_in_window=sent, held=held)),
    )
    faults = find_faults([stage()], outcome, (), LIMITS)
    step = judge_step([stage()], outcome, (), LIMITS, None)
    assert (step.outcome is StepOutcome.HELD) == (not faults)
    assert step.text
    if step.outcome is StepOutcome.CLIENT_LIMITED:
        assert sent + held < completed + failed
