from collections.abc import Callable

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.load.histogram import (
    HIGHEST_US,
    encode,
    encode_times,
    make_histogram,
    merge,
    merge_equal_intervals,
    read_p99,
    summarize_times,
)
from perf.model.results import Interval

TIMES = st.lists(
    st.one_of(st.integers(0, 5000), st.integers(0, HIGHEST_US), st.integers(-1000, 2**50)),
    min_size=1,
    max_size=60,
)


def one_by_one(times_us: list[int]) -> HdrHistogram:
    histogram = make_histogram()
    for time_us in times_us:
        assert histogram.record_value(min(max(time_us, 0), HIGHEST_US))
    return histogram


@settings(deadline=None)
@given(TIMES)
def test_encoding_at_once_equals_record_value_for_each(times_us: list[int]) -> None:
    found = encode_times(np.array(times_us, dtype=np.int64))
    expected = one_by_one(times_us)
    assert found.text == encode(expected)
    assert found.max_us == expected.get_max_value()
    assert found.clamped == sum(not 0 <= time_us <= HIGHEST_US for time_us in times_us)


@settings(deadline=None)
@given(st.lists(TIMES, min_size=1, max_size=5))
def test_merging_equals_one_big_histogram(parts: list[list[int]]) -> None:
    intervals = tuple(
        Interval(
            phase="steady",
            operation="write",
            kind="response_time",
            iteration=1,
            start_s=1000.0,
            length_s=1.0,
            max_us=0,
            encoded=encode(one_by_one(part)),
        )
        for part in parts
    )
    whole = one_by_one([time_us for part in parts for time_us in part])
    assert encode(merge(intervals)) == encode(whole)
    (merged,) = merge_equal_intervals(intervals)
    assert encode(merge((merged,))) == encode(whole)
    assert merge(intervals).get_total_count() == sum(map(len, parts))


def test_only_equal_intervals_merge(make_interval: Callable[..., Interval]) -> None:
    first = make_interval([100, 200], start_s=10.0)
    again = make_interval([300], start_s=10.0)
    later = make_interval([400], start_s=11.0)
    other = make_interval([500], start_s=10.0, kind="service_time")
    merged = merge_equal_intervals([later, other, first, again])
    assert [(one.start_s, one.kind) for one in merged] == [
        (10.0, "response_time"),
        (10.0, "service_time"),
        (11.0, "response_time"),
    ]
    assert merge(merged[:1]).get_total_count() == 3
    assert merged[0].max_us == 300


def test_statistics_are_in_milliseconds() -> None:
    found = summarize_times(one_by_one(list(range(1000, 101_000, 1000))))  # 1 to 100 ms
    assert (found.p50, found.p99, found.p99_9) == pytest.approx((50.0, 99.0, 100.0), rel=1e-3)
    assert (found.p95, found.max, found.mean) == pytest.approx((95.0, 100.0, 50.5), rel=1e-3)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, HIGHEST_US), min_size=1, max_size=300))
def test_the_fast_p99_is_that_of_all_statistics(times_us: list[int]) -> None:
    histogram = one_by_one(times_us)
    assert read_p99(histogram) == summarize_times(histogram).p99
