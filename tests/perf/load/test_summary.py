from collections.abc import Callable

import pytest

from perf.design import ClosedLoop, Measurement, Operation, Sensor, Workload
from perf.load.engines import LoadOutcome
from perf.load.summary import summarize
from perf.model import Counter, Interval, Sample

WORKLOAD = Workload(
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
            load=ClosedLoop(kind="closed", in_flight=1),
            warmup_s=1.0,
            iteration_s=2.0,
            iterations=2,
        )
        for name in ("saturation", "never-run")
    ),
    seed=1,
)


def window(iteration: int, value: int) -> Counter:
    return Counter(
        phase="saturation",
        operation="write",
        iteration=iteration,
        name="completed_in_window",
        value=value,
    )


@pytest.fixture
def samples(make_interval: Callable[..., Interval]) -> dict[tuple[str, str, int | None], float]:
    times_us = {0: [900_000] * 50, 1: [1000] * 99, 2: [3000] * 99 + [50_000] * 2}
    outcome = LoadOutcome(
        intervals=tuple(
            make_interval(times, iteration=iteration, kind=kind)
            for iteration, times in times_us.items()
            for kind in ("response_time", "service_time")
        ),
        counters=(window(0, 1000), window(1, 99), window(2, 101)),
    )
    made: tuple[Sample, ...] = summarize(WORKLOAD, outcome)
    assert {(one.phase, one.operation) for one in made} == {("saturation", "write")}
    found = {(one.metric, one.statistic, one.iteration): one.value for one in made}
    assert len(found) == len(made) == 3 * (1 + 2 * 6)
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


def test_the_warm_up_is_in_no_sample(samples: dict[tuple[str, str, int | None], float]) -> None:
    assert samples["response_time", "max", None] == pytest.approx(50.0, rel=1e-3)


def test_a_phase_in_which_nothing_completed_has_a_throughput_and_no_times() -> None:
    made = summarize(WORKLOAD, LoadOutcome(counters=(window(1, 0),)))
    assert [(one.metric, one.iteration, one.value) for one in made] == [
        ("throughput", None, 0.0),
        ("throughput", 1, 0.0),
    ]


def test_no_load_gives_no_samples() -> None:
    assert summarize(WORKLOAD, LoadOutcome()) == ()
