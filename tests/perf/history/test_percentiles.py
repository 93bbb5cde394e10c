"""Percentiles that are asked of a history, from histograms that are merged first."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import pytest

from perf.history.store import History, append_all, open_history
from perf.local.paths import DataPaths
from perf.model.errors import HistoryError, UsageError
from perf.model.results import Interval, Named, Trial, TrialId


def silent(_text: str) -> None:
    """Swallow progress."""


def ask(
    history: History,
    trials: Sequence[TrialId],
    percentile: float = 99.0,
    *,
    phase: str = "saturation",
    iteration: int | None = None,
) -> float:
    """Return a percentile of the response time of writes, in milliseconds."""
    return history.percentile(
        trials,
        phase=phase,
        operation="write",
        kind="response_time",
        percentile=percentile,
        iteration=iteration,
    )


def test_any_percentile_comes_from_merged_histograms(
    paths: DataPaths,
    make_bundle: Callable[..., Path],
    make_trial: Callable[..., Trial],
    make_interval: Callable[..., Interval],
) -> None:
    generator = random.Random(5)  # noqa: S311  test data
    # Seconds of very different size and level: an average of their percentiles would be far off.
    seconds = [
        [int(generator.lognormvariate(6 + second, 1)) + 1 for _ in range(20 * 4**second)]
        for second in range(5)
    ]
    trials = [make_trial(id=TrialId(name)) for name in ("a", "b")]
    warm_up = make_interval([59_000_000], iteration=0)
    other_kind = make_interval([58_000_000], kind="service_time")
    for trial, mine in zip(trials, (seconds[::2], seconds[1::2]), strict=True):
        intervals = [make_interval(values, start_s=float(i)) for i, values in enumerate(mine)]
        make_bundle(trial, (warm_up, *intervals, other_kind))
    append_all(paths, silent)
    values = sorted(value for second in seconds for value in second)
    with open_history(paths.history, read_only=True) as history:
        for percentile in (0.1, 50.0, 99.0, 99.9, 99.99, 100.0):
            exact_ms = values[max(int(percentile / 100 * len(values) + 0.5), 1) - 1] / 1000
            got_ms = ask(history, [trial.id for trial in trials], percentile)
            assert exact_ms <= got_ms <= exact_ms * 1.001 + 0.001, percentile


def test_a_percentile_of_one_iteration(
    paths: DataPaths, make_bundle: Callable[..., Path], make_interval: Callable[..., Interval]
) -> None:
    trial = make_bundle(
        intervals=[make_interval([1000], iteration=1), make_interval([2000], iteration=2)]
    ).name
    append_all(paths, silent)
    with open_history(paths.history, read_only=True) as history:
        for iteration, expected_ms in ((1, 1.0), (2, 2.0), (None, 2.0)):
            got_ms = ask(history, [TrialId(trial)], iteration=iteration)
            assert got_ms == pytest.approx(expected_ms, rel=0.001)


def test_histograms_of_different_range_and_precision_merge(
    paths: DataPaths, make_bundle: Callable[..., Path], make_interval: Callable[..., Interval]
) -> None:
    from hdrh.histogram import HdrHistogram  # noqa: PLC0415  only this test makes one itself

    wide = HdrHistogram(1, 3_600_000_000, 2)
    wide.record_value(600_000_000)
    intervals = [make_interval([1000]), make_interval([1], encoded=wide.encode().decode())]
    trial = TrialId(make_bundle(intervals=intervals).name)
    append_all(paths, silent)
    with open_history(paths.history, read_only=True) as history:
        low, high = (ask(history, [trial], p) for p in (50.0, 100.0))
    assert low == pytest.approx(1.0, rel=0.01)
    assert high == pytest.approx(600_000, rel=0.01)


@pytest.mark.parametrize(
    ("phase", "iteration", "percentile", "message"),
    [
        ("steady", None, 99.0, r"no response_time histogram .* there is: saturation/write"),
        ("saturation", 9, 99.0, "iteration 9"),
        ("saturation", None, 0.0, "out of range"),
        ("saturation", None, 100.1, "out of range"),
        ("saturation", None, float("nan"), "out of range"),
    ],
)
def test_a_percentile_that_cannot_be_given_is_refused(
    filled_once: DataPaths, phase: str, iteration: int | None, percentile: float, message: str
) -> None:
    with (
        open_history(filled_once.history, read_only=True) as history,
        pytest.raises(UsageError, match=message),
    ):
        ask(history, [TrialId("trial-3")], percentile, phase=phase, iteration=iteration)


def test_a_percentile_of_no_known_trial_is_refused(filled_once: DataPaths) -> None:
    with open_history(filled_once.history, read_only=True) as history:
        with pytest.raises(UsageError, match="no such trial in the history: absent"):
            ask(history, [TrialId("trial-3"), TrialId("absent")])
        with pytest.raises(UsageError, match="no trial: no response_time"):
            ask(history, [])


def test_trials_that_measured_different_things_are_not_merged(
    paths: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    workload = Named(name="sensor-write", sha256="ffffffffffff")
    trials = [make_trial(id=TrialId("a")), make_trial(id=TrialId("b"), workload=workload)]
    for trial in trials:
        make_bundle(trial)
    append_all(paths, silent)
    ids: Sequence[TrialId] = [trial.id for trial in trials]
    with (
        open_history(paths.history, read_only=True) as history,
        pytest.raises(UsageError, match=r"differ in workload_sha256 \(0123456789ab, ffffffffffff\)"),
    ):
        ask(history, ids)


def test_a_damaged_histogram_is_reported_as_such(
    paths: DataPaths, make_bundle: Callable[..., Path]
) -> None:
    trial = TrialId(make_bundle().name)
    append_all(paths, silent)
    for encoded in ("", "nonsense", "HISTFAAAACF42pNpmSzMwMDAxAABzFCaEUoz2X+AsAB="):
        with duckdb.connect(paths.history) as connection:
            connection.execute("UPDATE histograms SET encoded = ?", [encoded])
        with (
            open_history(paths.history, read_only=True) as history,
            pytest.raises(HistoryError, match="history rebuild"),
        ):
            ask(history, [trial])
