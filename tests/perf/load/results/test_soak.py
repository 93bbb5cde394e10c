"""Drifts of the p99 over one long iteration: planted ones are found, noise is not called one."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from perf.load.histogram import encode_times
from perf.load.results.outcome import LoadOutcome
from perf.load.results.soak import (
    FEWEST_WINDOWS,
    LEAST_OPERATIONS,
    P99Drift,
    find_drift,
    fit_drift,
)
from perf.load.results.summary import summarize
from perf.model.design import Measurement, OpenLoop, Workload
from perf.model.metrics import RESPONSE_TIME_DRIFT
from perf.model.records import Operation, Sensor
from perf.model.results import Counter, Interval
from perf.workloads.stages import plan_stages

WINDOWS = 60
RUNS = 100
HOUR_S = 3600.0


def scatter(
    random: np.random.Generator, alike: float = 0.0, size: int = WINDOWS
) -> NDArray[np.float64]:
    """Make windows whose p99 scatters by 10 % about 5 ms; each resembles the one before by `alike`."""
    steps, row = random.normal(size=size + 100), np.zeros(size + 100)
    for place in range(1, row.size):
        row[place] = alike * row[place - 1] + steps[place] * np.sqrt(1 - alike**2)
    made: NDArray[np.float64] = 5.0 * np.exp(0.1 * row[100:])
    return made


def drifting(change: float, size: int = WINDOWS) -> NDArray[np.float64]:
    return np.asarray(1 + change * ((np.arange(size) + 0.5) / size - 0.5), dtype=np.float64)


def is_shown(drift: P99Drift) -> bool:
    return drift.lower > 0 or drift.upper < 0


def count_shown(alike: float, change: float) -> int:
    random = np.random.default_rng(7)
    rows = (scatter(random, alike) * drifting(change) for _ in range(RUNS))
    return sum(is_shown(fit_drift(range(WINDOWS), row, WINDOWS)) for row in rows)


# Of 100 runs; the rates that the docstring of the module states, and what chance adds to them.
@pytest.mark.parametrize(("alike", "most"), [(0.0, 8), (0.5, 14), (0.8, 16)])
def test_noise_is_seldom_called_a_drift(alike: float, most: int) -> None:
    assert count_shown(alike, 0.0) <= most


@pytest.mark.parametrize(
    ("alike", "change", "least"), [(0.0, 0.2, 90), (0.5, 0.5, 95), (0.0, -0.2, 90), (0.8, 1.0, 90)]
)
def test_a_planted_drift_is_shown(alike: float, change: float, least: int) -> None:
    assert count_shown(alike, change) >= least


def test_the_estimate_is_the_drift_that_was_planted() -> None:
    random = np.random.default_rng(3)
    found = [fit_drift(range(WINDOWS), scatter(random) * drifting(0.3), WINDOWS) for _ in range(RUNS)]
    assert np.median([one.estimate for one in found]) == pytest.approx(0.3, abs=0.02)
    inside = sum(one.lower <= 0.3 <= one.upper for one in found)
    assert inside >= 90


def test_a_line_without_noise_is_read_exactly() -> None:
    found = fit_drift(range(WINDOWS), drifting(0.5), WINDOWS)
    assert (found.estimate, found.lower, found.upper) == pytest.approx((0.5, 0.5, 0.5))


def test_spikes_are_no_drift() -> None:
    row = scatter(np.random.default_rng(1))
    row[[3, 20, 47, 52, 55, 58, 59]] *= 20  # most of them late
    assert not is_shown(fit_drift(range(WINDOWS), row, WINDOWS))


def test_windows_that_are_missing_do_not_bend_the_line() -> None:
    kept = [place for place in range(WINDOWS) if not 20 <= place < 40]
    found = fit_drift(kept, drifting(0.5)[kept], WINDOWS)
    assert found.estimate == pytest.approx(0.5, rel=0.05)


@pytest.fixture(scope="module")
def soak() -> tuple[Interval, ...]:
    """An hour of histograms of ten seconds each, whose times grow by a fifth; some are in two parts."""
    random, intervals = np.random.default_rng(5), []
    for place, growth in enumerate(drifting(0.2, 360)):
        times_us = (1000 * growth * np.exp(0.5 * random.normal(size=60))).astype(np.int64)
        for part in (times_us[:50], times_us[50:]) if place % 50 == 0 else (times_us,):
            encoded = encode_times(part)
            interval = Interval(
                phase="soak",
                operation="write",
                kind="response_time",
                iteration=1,
                start_s=1000.0 + 10 * place,
                length_s=10.0,
                max_us=encoded.max_us,
                encoded=encoded.text,
            )
            intervals.append(interval)
    return tuple(intervals)


def test_a_drift_is_found_in_histograms(soak: tuple[Interval, ...]) -> None:
    drift = find_drift(soak, 360 * 60, HOUR_S)
    assert drift is not None
    assert is_shown(drift)
    assert drift.estimate == pytest.approx(0.2, abs=0.07)


def test_other_times_are_left_out(soak: tuple[Interval, ...]) -> None:
    others = tuple(replace(one, kind="service_time") for one in reversed(soak))
    assert find_drift((*others, *soak), 360 * 60, HOUR_S) == find_drift(soak, 360 * 60, HOUR_S)
    assert find_drift(others, 360 * 60, HOUR_S) is None


def test_what_is_too_short_or_too_little_has_no_drift(soak: tuple[Interval, ...]) -> None:
    assert find_drift(soak, 360 * 60, 59.0) is None
    assert find_drift(soak, FEWEST_WINDOWS * LEAST_OPERATIONS - 1, HOUR_S) is None
    assert find_drift(soak[: len(soak) // 3], 360 * 60, HOUR_S) is None
    assert find_drift((), 360 * 60, HOUR_S) is None


WORKLOAD = Workload(
    name="soak",
    description="d",
    purpose="p",
    owner="o",
    source="s",
    not_comparable="n",
    records=Sensor(kind="sensor", devices=1, payload_bytes=200),
    operation=Operation.WRITE,
    consistency="one",
    preload_in_flight=1,
    operation_timeout_s=1.0,
    measurements=(
        Measurement(
            name="soak",
            load=OpenLoop(kind="open", offered_load_ops_per_s=6.0, in_flight=8),
            warmup_s=1.0,
            warmup_cap_s=1.0,
            iteration_s=HOUR_S,
            iterations=1,
            histogram_s=10,
        ),
    ),
    seed=1,
)


def test_a_soak_has_its_drift_among_its_samples(soak: tuple[Interval, ...]) -> None:
    counters = tuple(
        Counter(phase="soak", operation="write", iteration=1, name=name, value=360 * 60)
        for name in ("completed", "completed_in_window")
    )
    outcome = LoadOutcome(intervals=soak, counters=counters)
    found = {
        (one.statistic, one.iteration): one.value
        for one in summarize(WORKLOAD, plan_stages(WORKLOAD), outcome)
        if one.metric == RESPONSE_TIME_DRIFT.name
    }
    assert found.keys() == {(name, at) for name in ("estimate", "lower", "upper") for at in (None, 1)}
    assert found["estimate", None] == pytest.approx(20, abs=7)
    assert 0 < found["lower", 1] < found["estimate", 1] < found["upper", 1]
