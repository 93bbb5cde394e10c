"""What a sparse histogram answers is what HdrHistogram itself answers, for any range and precision."""

from collections.abc import Sequence
from typing import Any

import pytest
from budget import tries
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.model.histograms import HIGHEST_US, decode, decode_sparse, merge

PERCENTILES = (0.001, 10.0, 50.0, 90.0, 99.0, 99.9, 99.999, 100.0)


@st.composite
def recorded(draw: st.DrawFn) -> Any:  # noqa: ANN401  hdrh ships no types
    """Draw a histogram, which may be empty."""
    lowest = draw(st.sampled_from((1, 2, 3, 1000, 2**20)))
    highest = draw(st.integers(2 * lowest, HIGHEST_US))
    histogram = HdrHistogram(lowest, highest, draw(st.integers(1, 4)))
    for value, count in draw(
        st.lists(st.tuples(st.integers(0, highest), st.integers(1, 2**40)), max_size=20)
    ):
        histogram.record_value(value, count)
    return histogram


def to_text(histogram: Any) -> str:  # noqa: ANN401  hdrh ships no types
    """Return a histogram as it is stored."""
    text: bytes = histogram.encode()
    return text.decode()


def ask(whole: Any) -> tuple[int, list[int]]:  # noqa: ANN401  hdrh ships no types
    """Return how many values the library counts, and those at the percentiles."""
    return whole.total_count, [whole.get_value_at_percentile(one) for one in PERCENTILES]


@settings(max_examples=tries(200), deadline=None, derandomize=True)
@given(st.lists(recorded(), min_size=1, max_size=4), st.sampled_from((0, 30, 1 << 18)))
def test_sparse_histograms_answer_as_the_library(histograms: Sequence[Any], portion: int) -> None:
    texts = [*map(to_text, histograms)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("perf.model.histograms._PORTION_BYTES", portion)
        sparse = decode_sparse(texts)
    whole = [*map(decode, texts)]
    answers = zip(sparse.totals, sparse.values_us(PERCENTILES), strict=True)
    assert [*answers] == [*map(ask, whole)]
    # The library takes its precision from a histogram without a value, too.
    whole = [one for one in whole if one.total_count] or whole
    merged = sparse.merge()
    assert (merged.totals[0], merged.values_us(PERCENTILES)[0]) == ask(merge(whole))


@pytest.mark.parametrize("lowest", [2**bits + more for bits in range(31) for more in (0, 1)])
def test_a_count_at_the_highest_place_is_read(lowest: int) -> None:
    histogram = HdrHistogram(lowest, HIGHEST_US, 3)
    histogram.record_value(HIGHEST_US)
    assert decode_sparse([to_text(histogram)]).values_us([100]) == [[histogram.get_max_value()]]


def test_counts_beyond_any_trial_are_ranked_or_refused() -> None:
    histogram = HdrHistogram(1, HIGHEST_US, 4)
    for value in range(1, 32_001):
        histogram.record_value(value, 2**41 - 1)
    text = to_text(histogram)
    ((low, middle, high),) = decode_sparse([text]).values_us([1, 50, 100])
    assert (low, middle, high) == (320, 16_000, 32_000)
    with pytest.raises(ValueError, match="cannot be decoded"):
        decode_sparse([text] * 100)
