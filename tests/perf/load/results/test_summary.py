"""From what engines recorded to samples: what counts, what is merged, and what is left out."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from perf.load.results.outcome import LoadOutcome, WarmedUp
from perf.load.results.search import Found
from perf.load.results.summary import summarize
from perf.load.spec import EngineResult, Usage
from perf.model.design import ClosedLoop, Measurement, OpenLoop, SearchLoad, Workload
from perf.model.metrics import DIAGNOSTICS, METRICS
from perf.model.records import Operation, Sensor
from perf.model.results import Counter, Interval, LoadStep, Sample, StepOutcome
from perf.workloads.stages import Stage, plan_stages

CLOSED = ClosedLoop(kind="closed", in_flight=1)
OPEN = OpenLoop(kind="open", offered_load_ops_per_s=50.0, in_flight=8)
WORKLOAD = Workload(
    purpose="test",
    not_comparable="test",
    name="w",
    description="d",
    owner="o",
    source="s",
    records=Sensor(kind="sensor", devices=1, payload_bytes=200),
    operation=Operation.WRITE,
    consistency="one",
    preload_rows_per_device=0,
    preload_in_flight=1,
    operation_timeout_s=1.0,
    measurements=tuple(
        Measurement(
            name=name,
            load=load,
            warmup_s=1.0,
            warmup_cap_s=3.0,
            iteration_s=2.0,
            iterations=2,
        )
        for name, load in (("saturation", CLOSED), ("steady", OPEN))
    ),
    seed=1,
)
STAGES = plan_stages(WORKLOAD)


def report(iteration: int, phase: str = "saturation", **values: int) -> list[Counter]:
    return [
        Counter(phase=phase, operation="write", iteration=iteration, name=name, value=value)
        for name, value in values.items()
    ]


def find(made: Sequence[Sample]) -> dict[tuple[str, str, int | None], float]:
    """Look samples of one phase up; insist that none is there twice and each metric is a known one."""
    assert len({sample.phase for sample in made}) <= 1
    assert {sample.metric for sample in made} <= {*METRICS, *DIAGNOSTICS}
    found = {(one.metric, one.statistic, one.iteration): one.value for one in made}
    assert len(found) == len(made)
    return found


@pytest.fixture
def samples(make_interval: Callable[..., Interval]) -> dict[tuple[str, str, int | None], float]:
    times_us = {0: [900_000] * 50, 1: [1000] * 99, 2: [3000] * 99 + [50_000] * 2}
    outcome = LoadOutcome(
        intervals=tuple(
            make_interval(times, iteration=iteration, kind=kind)
            for iteration, times in times_us.items()
            for kind in ("response_time", "service_time")
        ),
        counters=tuple(
            counter
            for iteration, value in enumerate((1000, 99, 101))
            for counter in report(iteration, completed_in_window=value)
        ),
    )
    found = find(summarize(WORKLOAD, STAGES, outcome))
    assert len(found) == 3 * (1 + 2 * 8)
    return found


def test_throughput_is_what_completed_in_the_measured_windows(
    samples: dict[tuple[str, str, int | None], float],
) -> None:
    assert samples["throughput", "mean", 1] == 49.5
    assert samples["throughput", "mean", 2] == 50.5
    assert samples["throughput", "mean", None] == 50.0


def test_percentiles_over_all_iterations_come_from_the_merged_histogram(
    samples: dict[tuple[str, str, int | None], float],
) -> None:
    p99 = [samples["response_time", "p99", iteration] for iteration in (1, 2, None)]
    assert p99 == pytest.approx([1.0, 50.0, 3.0], rel=1e-3)  # their mean would be 25.5
    assert samples["service_time", "mean", None] == pytest.approx(2.48, rel=1e-3)
    assert samples["service_time", "p99.9", None] == pytest.approx(50.0, rel=1e-3)


def test_the_warm_up_is_in_no_sample(samples: dict[tuple[str, str, int | None], float]) -> None:
    assert samples["response_time", "max", None] == pytest.approx(50.0, rel=1e-3)


def test_a_phase_in_which_nothing_completed_has_a_throughput_and_no_times() -> None:
    outcome = LoadOutcome(
        counters=tuple(report(1, completed_in_window=0, completed=0)),
        results=(EngineResult(engine_index=0, counters=(), usages=(usage(1.0),)),),
    )
    made = summarize(replace(WORKLOAD, batch_rows=10), STAGES, outcome)
    assert [(one.metric, one.iteration, one.value) for one in made] == [
        ("throughput", None, 0.0),
        ("throughput", 1, 0.0),
    ]


def test_operations_per_dollar_are_those_of_an_hour_at_saturation() -> None:
    def per_dollar(phase: str, price: float | None) -> dict[int | None, float]:
        counters = (
            *report(1, phase, completed_in_window=100),
            *report(2, phase, completed_in_window=140),
        )
        outcome = LoadOutcome(counters=counters)
        made = summarize(WORKLOAD, STAGES, outcome, price_per_hour_usd=price)
        return {one.iteration: one.value for one in made if one.metric == "operations_per_dollar"}

    # 50 and 70 operations per second, and 1.50 dollars an hour.
    expected = {None: 144_000.0, 1: 120_000.0, 2: 168_000.0}
    assert per_dollar("saturation", 1.5) == pytest.approx(expected)
    # What an open loop completes, its schedule decides.
    assert per_dollar("steady", 1.5) == {}
    assert per_dollar("saturation", None) == {}


def test_no_load_gives_no_samples() -> None:
    assert summarize(WORKLOAD, STAGES, LoadOutcome()) == ()


def test_lateness_is_reported_of_open_loops_only(make_interval: Callable[..., Interval]) -> None:
    def lateness(phase: str) -> dict[str, float]:
        interval = make_interval([100] * 60 + [1500] * 40, phase=phase, kind="send_lateness")
        counters = tuple(report(1, phase, completed_in_window=100))
        outcome = LoadOutcome(intervals=(interval,), counters=counters)
        made = summarize(WORKLOAD, STAGES, outcome)
        return {
            one.statistic: one.value
            for one in made
            if one.metric == "send_lateness" and one.iteration is None
        }

    assert lateness("steady") == {"p50": 0.1, "p99": 1.5, "max": 1.5}
    assert lateness("saturation") == {}


def usage(cpu_s: float, iteration: int = 1) -> Usage:
    return Usage(phase="saturation", iteration=iteration, wall_s=2.0, cpu_s=cpu_s, waited_s=0.0)


def test_client_cpu_is_of_all_engines_per_completed_operation() -> None:
    results = tuple(
        EngineResult(
            engine_index=index,
            counters=(),
            usages=(usage(9.0, 0), usage(0.02), usage(0.03, 2)),
        )
        for index in range(2)
    )
    counters = (*report(1, completed_in_window=100), *report(2, completed_in_window=300))
    found = find(summarize(WORKLOAD, STAGES, LoadOutcome(counters=counters, results=results)))
    assert found["client_cpu", "mean", 1] == pytest.approx(400.0)
    assert found["client_cpu", "mean", 2] == pytest.approx(200.0)
    assert found["client_cpu", "mean", None] == pytest.approx(250.0)


def test_rows_are_counted_beside_batches() -> None:
    counters = tuple(report(1, completed_in_window=100, completed=110, rows=1100))
    outcome = LoadOutcome(counters=counters)
    found = find(summarize(replace(WORKLOAD, batch_rows=10), STAGES, outcome))
    assert found["throughput", "mean", None] == 50.0
    assert found["row_throughput", "mean", None] == 500.0
    assert ("row_throughput", "mean", None) not in find(summarize(WORKLOAD, STAGES, outcome))


def test_warm_ups_are_reported_each_and_on_average() -> None:
    warm_ups = tuple(
        WarmedUp(phase=phase, duration_s=duration_s, is_steady=True)
        for phase, duration_s in (("saturation", 1.5), ("steady", 9.0), ("saturation", 2.5))
    )
    counters = (*report(1, completed_in_window=1), *report(2, completed_in_window=1))
    outcome = LoadOutcome(counters=counters, warm_ups=warm_ups)
    found = find(summarize(WORKLOAD, STAGES, outcome))
    assert {key[2]: value for key, value in found.items() if key[0] == "warm_up"} == {
        None: 2.0,
        1: 1.5,
        2: 2.5,
    }


def step(phase: str, outcome: StepOutcome) -> LoadStep:
    return LoadStep(
        phase=phase,
        offered_load_ops_per_s=50.0,
        achieved_ops_per_s=50.0,
        response_time_p99_ms=1.0,
        send_lateness_p99_ms=0.1,
        client_cpu_share=0.1,
        outcome=outcome,
        text="",
    )


def test_only_steps_of_a_ladder_that_held_have_samples() -> None:
    outcomes = {
        "ladder-50": StepOutcome.HELD,
        "ladder-100": StepOutcome.MISSED,
        "ladder-200": StepOutcome.CLIENT_LIMITED,
    }
    stages = [
        Stage(phase=phase, load=OPEN, warmup_s=1.0, warmup_cap_s=1.0, iteration_s=2.0, iterations=(1,))
        for phase in outcomes
    ]
    counters = tuple(
        counter for phase in outcomes for counter in report(1, phase, completed_in_window=100)
    )
    steps = [step(phase, outcome) for phase, outcome in outcomes.items()]
    made = summarize(WORKLOAD, stages, LoadOutcome(counters=counters), steps)
    assert list(dict.fromkeys(one.phase for one in made)) == ["ladder-50"]


def test_a_search_gives_its_answer_and_no_sample_of_its_steps() -> None:
    search = SearchLoad(
        kind="search",
        lowest_ops_per_s=100.0,
        highest_ops_per_s=800.0,
        response_time_p99_objective_ms=20.0,
        resolution=0.05,
        confirmations=2,
        in_flight=32,
    )
    phase = replace(WORKLOAD.measurements[0], name="sought", load=search)
    workload = replace(WORKLOAD, measurements=(phase,))
    outcome = LoadOutcome(counters=tuple(report(1, "sought-01", completed_in_window=100)))
    found = Found(estimate=410.0, lower=400.0, upper=420.0, text="t")
    steps = [step("sought-01", StepOutcome.HELD)]
    made = summarize(workload, plan_stages(workload), outcome, steps, [(phase, found)])
    assert {(one.phase, one.operation) for one in made} == {("sought", "write")}
    assert find(made) == {
        ("highest_load", "estimate", None): 410.0,
        ("highest_load", "lower", None): 400.0,
        ("highest_load", "upper", None): 420.0,
    }
    open_ended = replace(found, estimate=None, upper=None)
    made = summarize(workload, (), outcome, steps, [(phase, open_ended)])
    assert [one.statistic for one in made] == ["lower"]


def test_metrics_are_counted_beside_the_rows_of_a_load() -> None:
    counters = tuple(
        replace(one, operation="load")
        for one in report(1, completed_in_window=4, completed=4, rows=3600)
    )
    workload = replace(WORKLOAD, operation=Operation.LOAD, batch_rows=900)
    found = find(summarize(workload, STAGES, LoadOutcome(counters=counters)))
    assert found["row_throughput", "mean", None] == 1800.0
    # 101 values in nine rows.
    assert found["metric_throughput", "mean", None] == pytest.approx(20_200.0)


def test_queries_have_times_and_no_throughput() -> None:
    counters = tuple(
        replace(one, operation="double-groupby-5")
        for one in report(1, completed_in_window=4, completed=4, rows=4)
    )
    workload = replace(WORKLOAD, operation=Operation.DOUBLE_GROUPBY_5, batch_rows=900)
    found = find(summarize(workload, STAGES, LoadOutcome(counters=counters)))
    assert not [metric for metric, _, _ in found if "throughput" in metric]
