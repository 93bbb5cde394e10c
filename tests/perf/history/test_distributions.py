"""Spectra and courses of planted values: known levels, known seconds, and no other percentile."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perf.history.distributions import distribute, list_percentiles
from perf.history.store import append_all, open_history
from perf.local.paths import DataPaths
from perf.model.histograms import percentile_us
from perf.model.results import Interval, Trial, TrialId

MakeInterval = Callable[..., Interval]


def test_levels_halve_the_way_to_all_and_hold_the_usual_percentiles() -> None:
    levels = list_percentiles(1_000_000)
    assert levels[:6] == (10.0, 20.0, 30.0, 40.0, 50.0, 55.0)
    assert {75.0, 77.5, 87.5, 90.0, 95.0, 99.0, 99.9, 99.99} <= set(levels)
    assert levels[-1] == 100
    assert list(levels) == sorted(set(levels))
    assert 60 <= len(list_percentiles(10_000)) <= 80
    # Finer than one value in a million, a million values tell nothing apart but the slowest.
    assert 99.9998 < levels[-2] < 99.99995


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, (100.0,)), (2, (10.0, 20.0, 30.0, 40.0, 50.0, 100.0))],
)
def test_few_values_have_few_levels(count: int, expected: tuple[float, ...]) -> None:
    assert list_percentiles(count) == expected


def test_a_planted_distribution_is_given_back(make_interval: MakeInterval) -> None:
    # 10 000 operations: 1 to 990 µs evenly, but the slowest hundredth takes 50 ms and one 900 ms.
    usual = [1 + number % 990 for number in range(9900)]
    intervals = [
        make_interval(usual[:4000], start_s=10.0),
        make_interval(usual[4000:] + [50_000] * 99, start_s=11.0),
        make_interval([900_000], start_s=12.0, iteration=2),
        make_interval([1] * 5000, start_s=5.0, iteration=0),  # the warm-up counts nowhere
    ]
    spectrum = distribute(intervals).spectrum
    at = {level.percentile: level.value_us for level in spectrum.levels}
    assert spectrum.count == 10_000
    assert at[50.0] == 500
    assert at[99.0] == 990
    assert at[99.9] == pytest.approx(50_000, rel=0.001)
    assert at[100.0] == pytest.approx(900_000, rel=0.001)
    values = [level.value_us for level in spectrum.levels]
    assert values == sorted(values)
    encoded = [interval.encoded for interval in intervals[:3]]
    assert values == [percentile_us(encoded, level.percentile) for level in spectrum.levels]


def test_the_course_shows_each_second(make_interval: MakeInterval) -> None:
    second = make_interval([1000] * 98 + [2000, 3000], start_s=1000.0)
    intervals = [
        replace(second, iteration=2, start_s=1007.5),
        make_interval([7000] * 50, start_s=1001.0, length_s=0.5),
        second,
        make_interval([4], start_s=1003.0),
        make_interval([], start_s=1004.0),
    ]
    course = distribute(intervals).course
    assert [(one.iteration, one.at_s, one.count) for one in course] == [
        (1, 0.0, 100),
        (1, 1.0, 50),
        (1, 3.0, 1),
        (2, 0.0, 100),
    ]
    first, half, *_ = course
    assert (first.p50_us, first.p99_us) == (1000, 2000)
    assert first.max_us == pytest.approx(3000, rel=0.001)
    assert (first.ops_per_s, half.ops_per_s) == (100, 100)


def test_histograms_of_other_range_and_precision_are_merged(make_interval: MakeInterval) -> None:
    from hdrh.histogram import HdrHistogram  # noqa: PLC0415  only this test makes one itself

    wide = HdrHistogram(1, 3_600_000_000, 2)
    wide.record_value(600_000_000, 3)
    found = distribute(
        [make_interval([1000]), make_interval([1], start_s=0.0, encoded=wide.encode().decode())]
    )
    assert found.spectrum.count == 4
    assert found.spectrum.levels[-1].value_us == pytest.approx(600_000_000, rel=0.01)


@pytest.mark.parametrize("changes", [{"iteration": 0}, {"encoded": "HISTFAAA"}])
def test_nothing_measured_has_no_distribution(
    make_interval: MakeInterval, changes: dict[str, object]
) -> None:
    with pytest.raises(ValueError, match=r"no distribution|cannot be decoded"):
        distribute([make_interval([1], **changes)])


def test_the_history_gives_recordings_of_the_trials_asked_for(
    paths: DataPaths,
    make_bundle: Callable[..., Path],
    make_trial: Callable[..., Trial],
    make_interval: MakeInterval,
) -> None:
    intervals = (
        make_interval([9], iteration=0),
        make_interval([2], start_s=8.0, iteration=2),
        make_interval([1], start_s=7.0),
        make_interval([3], phase="steady", operation="read"),
        make_interval([4], kind="service_time"),
    )
    for name in ("a", "b", "c"):
        make_bundle(make_trial(id=TrialId(name)), intervals)
    append_all(paths, lambda _: None)
    with open_history(paths.history, read_only=True) as history:
        found = history.recordings([TrialId("c"), TrialId("a"), TrialId("unknown")], "response_time")
        assert history.recordings([], "response_time") == ()
    assert [(one.trial, one.phase, one.operation, one.kind) for one in found] == [
        (trial, phase, operation, "response_time")
        for trial in ("a", "c")
        for phase, operation in (("saturation", "write"), ("steady", "read"))
    ]
    assert found[0].intervals == (intervals[2], intervals[1])
    assert found[1].intervals == (intervals[3],)
