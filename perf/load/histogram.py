"""HdrHistogram as Knickpoint uses it: times in whole microseconds, up to one hour, three digits.

Merging adds counts and is exact; a percentile is always read from a merged histogram, never
averaged. This module is the only one in `load` that knows the histogram library's insides.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

from perf.model.histograms import HIGHEST_US, decode
from perf.model.results import Interval

_DIGITS = 3

# hdrh ships no types; this name says what an Any is.
Histogram = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What a histogram says, in milliseconds; at most 0.1 % above the exact values."""

    p50: float
    p90: float
    p95: float
    p99: float
    p99_5: float
    p99_9: float
    max: float
    mean: float


def make_histogram() -> Histogram:
    """Return an empty histogram."""
    return HdrHistogram(1, HIGHEST_US, _DIGITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """A histogram as text, the highest of its times, and how many of them were out of range."""

    text: str
    max_us: int
    clamped: int


def encode_times(times_us: NDArray[np.int64]) -> Encoded:
    """Record times, at least one, and encode them.

    Times outside [0, HIGHEST_US] are recorded at the nearer end, never dropped.
    """
    histogram = make_histogram()
    kept_us = np.clip(times_us, 0, HIGHEST_US)
    values, counts = np.unique(kept_us, return_counts=True)
    for value, count in zip(values, counts, strict=True):
        histogram.record_value(int(value), int(count))
    clamped = int(np.count_nonzero(kept_us != times_us))
    return Encoded(text=encode(histogram), max_us=histogram.get_max_value(), clamped=clamped)


def encode(histogram: Histogram) -> str:
    """Return a histogram as HdrHistogram V2, compressed, base64."""
    text: bytes = histogram.encode()
    return text.decode("ascii")


def merge(intervals: Iterable[Interval]) -> Histogram:
    """Add the histograms of intervals; raise ValueError if one is broken."""
    merged = make_histogram()
    for interval in intervals:
        merged.add(decode(interval.encoded))
    return merged


def merge_equal_intervals(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Merge intervals that differ in their histogram only, and sort all by time."""
    groups: defaultdict[Interval, list[Interval]] = defaultdict(list)
    for interval in intervals:
        groups[replace(interval, max_us=0, encoded="")].append(interval)
    merged = []
    for bare, group in groups.items():
        if len(group) == 1:
            merged += group
            continue
        total = merge(group)
        merged.append(replace(bare, max_us=total.get_max_value(), encoded=encode(total)))
    return tuple(sorted(merged, key=lambda one: (one.start_s, one.phase, one.operation, one.kind)))


def summarize_times(histogram: Histogram) -> Statistics:
    """Read the usual statistics from a histogram that is not empty."""
    at = histogram.get_percentile_to_value_dict([50.0, 90.0, 95.0, 99.0, 99.5, 99.9])
    return Statistics(
        p50=at[50.0] / 1000,
        p90=at[90.0] / 1000,
        p95=at[95.0] / 1000,
        p99=at[99.0] / 1000,
        p99_5=at[99.5] / 1000,
        p99_9=at[99.9] / 1000,
        max=histogram.get_max_value() / 1000,
        mean=histogram.get_mean_value() / 1000,
    )


def read_p99(histogram: Histogram) -> float:
    """Read the p99 alone, in milliseconds, from a histogram that is not empty: much the faster way."""
    counts = np.cumsum(np.frombuffer(histogram.counts, dtype=np.uint64))
    place = int(np.searchsorted(counts, histogram.get_target_count_at_percentile(99.0)))
    value_us: int = histogram.get_value_from_index(place)
    highest_us: int = histogram.get_highest_equivalent_value(value_us)
    return highest_us / 1000
