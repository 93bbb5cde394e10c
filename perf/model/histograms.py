"""Histograms as text, HdrHistogram V2, compressed, base64: decoded only if they are sound and small.

The library takes the text's own word for how much memory it needs: a few bytes may ask for gigabytes,
by what they unpack to or by the range that they claim. And sums that run over 2⁶³ damage its memory.

It makes room for 23 552 counts where a second of a trial has some hundred. Who has many histograms and
only asks of them takes `decode_sparse`: the same answers, for a small part of the time and the memory.
"""

import struct
import zlib
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from hdrh.codec import HdrCookieException, HdrLengthException
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

from perf.model.errors import UsageError
from perf.model.portions import in_portions

HIGHEST_US = 3_600_000_000
"""An hour: the highest value that a histogram may have room for."""
MOST_DIGITS = 4
MOST_COUNTERS = 320_000
"""What four digits need up to an hour; three need 23 552."""
_MOST_BYTES_EACH = 6
"""Of a packed count, which so is less than 2⁴¹: a million of them can be added."""
MOST_BYTES = _MOST_BYTES_EACH * MOST_COUNTERS

_HEAD = struct.Struct(">II")
_PAYLOAD = struct.Struct(">IIIIQQd")
_COMPRESSED, _COOKIE = 0x1C849314, 0x1C849313
_PORTION_BYTES = 1 << 18
"""Of packed counts that are read at once: 1.8 MB of them take 50 MB while they are read."""
_MOST_VALUES = 2**62
"""Of histograms that are asked together: sums of more would not be numbers any more."""
_LAST = 127
"""The highest byte that ends a number."""
# Of the bytes of numbers: 1 where the number goes on.
_GOES_ON = bytes([0] * 128 + [1] * 128)
_TOO_LONG = b"\1" * _MOST_BYTES_EACH
_UNSOUND = (
    *(Base64Error, zlib.error, IndexError, OverflowError, TypeError, ValueError),
    *(HdrCookieException, HdrLengthException),
)

Numbers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SparseHistograms:
    """Histograms as the places that counted something, and what they counted, one after another.

    Those of histogram i are `places[begins[i]:begins[i + 1]]`, rising. Its buckets double in width from
    one to the next and have 2^half_bits[i] places each, the first twice as many; unit_bits[i] are the
    low bits of a value that no place tells apart:
    https://github.com/HdrHistogram/HdrHistogram/blob/master/src/main/java/org/HdrHistogram/AbstractHistogram.java
    """

    places: Numbers
    counts: Numbers
    begins: Numbers
    half_bits: Numbers
    unit_bits: Numbers

    @property
    def totals(self) -> list[int]:
        """Return how many values each recorded."""
        return [*map(int, np.diff(_sum_up(self.counts)[self.begins]))]

    def values_us(self, percentiles: Sequence[float]) -> list[list[int]]:
        """Return of each histogram the values at percentiles as HdrHistogram does, in microseconds.

        They are at most 0.1 % above the exact ones where three significant digits were kept. Where
        nothing was recorded they are 0.
        """
        if not self.places.size:
            return [[0] * len(percentiles) for _ in self.half_bits]
        sums = _sum_up(self.counts)
        totals = np.diff(sums[self.begins])[:, None]
        exact = np.array(percentiles, dtype=float) * totals / 100 + 0.5
        ranks = np.clip(exact.astype(np.int64), 1, np.maximum(totals, 1))
        found = np.searchsorted(sums, sums[self.begins[:-1], None] + ranks) - 1
        steps, bits = _read_places(
            self.places[np.minimum(found, self.places.size - 1)],
            self.half_bits[:, None],
            self.unit_bits[:, None],
        )
        values = np.where(totals > 0, (steps + 1 << bits) - 1, 0)
        return cast("list[list[int]]", values.tolist())

    def merge(self) -> "SparseHistograms":
        """Return one histogram of the values of all, in the best precision of those that have any."""
        places, of_each = self.places, np.diff(self.begins)
        own = np.repeat(self.half_bits, of_each), np.repeat(self.unit_bits, of_each)
        half_bits = own[0].max(keepdims=True, initial=self.half_bits.min())
        unit_bits = own[1].min(keepdims=True, initial=self.unit_bits.max())
        if (own[0] != half_bits).any() or (own[1] != unit_bits).any():
            steps, bits = _read_places(places, *own)
            places = _find_places(steps << bits, half_bits, unit_bits)
        sums = np.zeros(int(places.max(initial=-1)) + 1, np.int64)
        np.add.at(sums, places, self.counts)
        found = np.flatnonzero(sums)
        return SparseHistograms(found, sums[found], np.array([0, found.size]), half_bits, unit_bits)


class _Packed(NamedTuple):
    """The counts of a histogram as they are written, and how many there may be."""

    counts: bytes
    half_bits: int
    unit_bits: int
    length: int


def decode(text: str, highest: int = HIGHEST_US) -> Any:  # noqa: ANN401  hdrh ships no types
    """Return the histogram that a text holds, which has room for values up to `highest` at most.

    Raises:
        ValueError: it is truncated, no such histogram, or larger than that.

    """
    try:
        _unpack(text, highest)
        return HdrHistogram.decode(text)
    except _UNSOUND as error:
        raise ValueError(f"the histogram cannot be decoded: {error}") from error


def decode_sparse(texts: Sequence[str]) -> SparseHistograms:
    """Return the histograms that at least one text holds, all with room for an hour at most.

    Raises:
        ValueError: one is truncated, no such histogram, or larger than that.

    """
    try:
        packed = (_unpack(text, HIGHEST_US) for text in texts)
        portions = in_portions(packed, lambda one: len(one.counts), _PORTION_BYTES)
        found = [_read_counts(portion) for portion in portions]
    except _UNSOUND as error:
        raise ValueError(f"the histogram cannot be decoded: {error}") from error
    counts = np.concatenate([one.counts for one in found])
    if counts.sum(dtype=float) > _MOST_VALUES:
        raise ValueError("the histogram cannot be decoded: it and others count more than 2⁶² values")
    return SparseHistograms(
        places=np.concatenate([one.places for one in found]),
        counts=counts,
        begins=_sum_up(np.concatenate([np.diff(one.begins) for one in found])),
        half_bits=np.concatenate([one.half_bits for one in found]),
        unit_bits=np.concatenate([one.unit_bits for one in found]),
    )


def _unpack(text: str, highest: int) -> _Packed:
    """Look at all that the library would believe of a text; raise any of `_UNSOUND`."""
    raw = b64decode(text, validate=True)
    cookie, length = _HEAD.unpack_from(raw.ljust(_HEAD.size, b"\0"))
    if cookie != _COMPRESSED or length != len(raw) - _HEAD.size:
        raise ValueError("truncated or not HdrHistogram V2")
    return _check(raw[_HEAD.size :], highest)


def _check(packed: bytes, most: int) -> _Packed:
    """Unpack so much and no more."""
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(packed, _PAYLOAD.size + MOST_BYTES + 1)
    if len(data) > _PAYLOAD.size + MOST_BYTES:
        raise ValueError(f"unpacked, its counts take more than {MOST_BYTES} bytes")
    if not unpacking.eof or unpacking.unused_data:
        raise ValueError("truncated, or something follows it")
    head = data[: _PAYLOAD.size].ljust(_PAYLOAD.size, b"\0")
    cookie, length, offset, digits, lowest, highest, _ = _PAYLOAD.unpack(head)
    counts = data[_PAYLOAD.size :]
    if cookie != _COOKIE or length != len(counts) or offset:
        raise ValueError("unpacked, it is truncated or not HdrHistogram V2")
    if not (1 <= digits <= MOST_DIGITS and 1 <= lowest <= highest // 2 and highest <= most):
        raise ValueError(
            f"it claims {digits} digits for values from {lowest} to {highest}; known are up to "
            f"{MOST_DIGITS} digits for values from 1 to {most}"
        )
    if _TOO_LONG in counts.translate(_GOES_ON):
        raise ValueError("a count is above 2⁴¹")
    half_bits, unit_bits = (2 * 10**digits - 1).bit_length() - 1, lowest.bit_length() - 1
    doublings = (highest >> half_bits + 1 + unit_bits).bit_length()
    return _Packed(counts, half_bits, unit_bits, doublings + 2 << half_bits)


def _read_counts(packed: Sequence[_Packed]) -> SparseHistograms:
    """Read the counts of all histograms at once.

    They are numbers of seven bits a byte, the lowest first, the sign in the last bit; a number below
    zero is how many counts in a row are 0.
    """
    if any(one.counts and one.counts[-1] > _LAST for one in packed):
        raise ValueError("unpacked, its last number is truncated")
    raw = np.frombuffer(b"".join(one.counts for one in packed), np.uint8)
    after = np.flatnonzero(raw <= _LAST) + 1
    if after.size > sum(one.length for one in packed):
        raise ValueError("it has more numbers than places")
    sizes = np.diff(after, prepend=0)
    shifts = 7 * (np.arange(raw.size) - np.repeat(after - sizes, sizes))
    bits = (raw & _LAST).astype(np.int64) << shifts
    folded = np.add.reduceat(bits, after - sizes) if raw.size else bits
    numbers = (folded >> 1) ^ -(folded & 1)
    # Of which histogram each number is, and how many places there are up to it in all of them.
    firsts = np.searchsorted(after, np.cumsum([0, *(len(one.counts) for one in packed)]), "right")
    owners = np.repeat(np.arange(len(packed)), np.diff(firsts))
    up_to = _sum_up(np.maximum(-numbers, 1))
    found = numbers > 0
    places = (up_to[1:] - up_to[firsts[owners]] - 1)[found]
    half_bits, unit_bits, lengths = np.array([one[1:] for one in packed]).T
    if (places >= lengths[owners[found]]).any():
        raise ValueError("it has more counts than its range")
    begins = np.searchsorted(owners[found], np.arange(len(packed) + 1))
    return SparseHistograms(places, numbers[found], begins, half_bits, unit_bits)


def _sum_up(numbers: Numbers) -> Numbers:
    """Return the sums of what is before each number, and of all."""
    return np.concatenate(([0], np.cumsum(numbers)))


def _read_places(places: Numbers, half_bits: Numbers, unit_bits: Numbers) -> tuple[Numbers, Numbers]:
    """Return the value counted at each place, in steps of its bucket, and the bits of such a step."""
    half = 1 << half_bits
    steps = np.where(places < half, places, (places & half - 1) + half)
    return steps, unit_bits + np.maximum((places >> half_bits) - 1, 0)


def _find_places(values_us: Numbers, half_bits: Numbers, unit_bits: Numbers) -> Numbers:
    """Return the places at which values, below 2⁵³, are counted."""
    # The exponent of a number is how many bits it has.
    bits = np.frexp(values_us.astype(float))[1].astype(np.int64)
    buckets = np.maximum(bits - unit_bits - half_bits - 1, 0)
    places: Numbers = (buckets << half_bits) + (values_us >> buckets + unit_bits)
    return places


def percentile_us(encoded: Sequence[str], percentile: float) -> int:
    """Return a percentile, in microseconds, of all that at least one histogram recorded together.

    `encoded` are HdrHistogram V2 histograms, compressed, base64. The value is at most 0.1 % above
    the exact one when the histograms keep three significant digits.

    Raises:
        UsageError: the percentile is not above 0 and up to 100.
        ValueError: a histogram cannot be decoded.

    """
    if not 0 < percentile <= 100:  # noqa: PLR2004  per cent
        raise UsageError(f"percentile {percentile} is out of range: it must be above 0 and up to 100")
    return decode_sparse(encoded).merge().values_us([percentile])[0][0]


def merge(histograms: Sequence[Any]) -> Any:  # noqa: ANN401  hdrh ships no types
    """Return all values of at least one histogram, in the widest range and best precision of them."""
    merged = HdrHistogram(
        min(histogram.lowest_trackable_value for histogram in histograms),
        max(histogram.highest_trackable_value for histogram in histograms),
        max(histogram.significant_figures for histogram in histograms),
    )
    for histogram in histograms:
        merged.add(histogram)
    return merged
