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

from perf.model import Interval

HIGHEST_US = 3_600_000_000
_DIGITS = 3
_HALF_BITS = 10  # of the sub-buckets that three digits need: 2 · 10³ fits into 2 · 2^10
_FULL_MASK = (2 << _HALF_BITS) - 1

# hdrh ships no types; this name says what an Any is.
Histogram = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What a histogram says, in milliseconds; at most 0.1 % above the exact values."""

    p50: float
    p95: float
    p99: float
    p99_9: float
    max: float
    mean: float


def make_histogram() -> Histogram:
    """Give an empty histogram."""
    return HdrHistogram(1, HIGHEST_US, _DIGITS)


def record(times_us: NDArray[np.int64]) -> tuple[Histogram, int]:
    """Record times into a fresh histogram, with the same counts as record_value for each of them.

    Times outside [0, HIGHEST_US] are recorded at the nearer end, never dropped; gives their number too.
    """
    histogram = make_histogram()
    if not times_us.size:
        return histogram, 0
    kept = np.clip(times_us, 0, HIGHEST_US)
    # The index of HdrHistogram: the bucket is the power of two above the value (frexp gives the bit
    # length, exact below 2^53), the sub-bucket its leading bits.
    bucket = np.frexp((kept | _FULL_MASK).astype(np.float64))[1].astype(np.int64) - (_HALF_BITS + 1)
    index = (bucket << _HALF_BITS) + (kept >> bucket)
    counts = np.frombuffer(histogram.counts, dtype=np.uint64)
    counts += np.bincount(index, minlength=counts.size).astype(np.uint64)
    histogram.total_count = int(kept.size)
    histogram.min_value = int(kept.min())
    histogram.max_value = int(kept.max())
    return histogram, int(np.count_nonzero(kept != times_us))


def encode(histogram: Histogram) -> str:
    """Give a histogram as HdrHistogram V2, compressed, base64."""
    text: bytes = histogram.encode()
    return text.decode("ascii")


def merge(intervals: Iterable[Interval]) -> Histogram:
    """Add the histograms of intervals."""
    merged = make_histogram()
    for interval in intervals:
        merged.decode_and_add(interval.encoded)
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
    at = histogram.get_percentile_to_value_dict([50.0, 95.0, 99.0, 99.9])
    return Statistics(
        p50=at[50.0] / 1000,
        p95=at[95.0] / 1000,
        p99=at[99.0] / 1000,
        p99_9=at[99.9] / 1000,
        max=histogram.get_max_value() / 1000,
        mean=histogram.get_mean_value() / 1000,
    )
