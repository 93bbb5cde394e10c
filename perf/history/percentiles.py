"""Percentiles from stored histograms: always merged first, never averaged. Pure."""

from collections.abc import Sequence
from typing import Any

from hdrh.histogram import HdrHistogram

from perf.encoded import decode
from perf.errors import UsageError


def percentile_us(encoded: Sequence[str], percentile: float) -> int:
    """Give a percentile, in microseconds, of all that at least one histogram recorded together.

    `encoded` are HdrHistogram V2 histograms, compressed, base64. The value is at most 0.1 % above
    the exact one when the histograms keep three significant digits.

    Raises:
        UsageError: the percentile is not above 0 and up to 100.
        ValueError: a histogram cannot be decoded.

    """
    if not 0 < percentile <= 100:  # noqa: PLR2004  per cent
        raise UsageError(f"percentile {percentile} is out of range: it must be above 0 and up to 100")
    histograms = [decode(text) for text in encoded]
    merged = make_room(histograms)
    for histogram in histograms:
        merged.add(histogram)
    return int(merged.get_value_at_percentile(percentile))


def make_room(histograms: Sequence[Any]) -> Any:  # noqa: ANN401  hdrh ships no types
    """Give an empty histogram with the range and the precision for all values of at least one."""
    return HdrHistogram(
        min(histogram.lowest_trackable_value for histogram in histograms),
        max(histogram.highest_trackable_value for histogram in histograms),
        max(histogram.significant_figures for histogram in histograms),
    )
