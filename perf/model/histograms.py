"""Histograms as text, HdrHistogram V2, compressed, base64: decoded only if they are sound and small.

The library takes the text's own word for how much memory it needs: a few bytes may ask for gigabytes,
by what they unpack to or by the range that they claim. And sums that run over 2⁶³ damage its memory.
"""

import struct
import zlib
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Sequence
from typing import Any

from hdrh.codec import HdrCookieException, HdrLengthException
from hdrh.histogram import HdrHistogram

from perf.model.errors import UsageError

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
# Of the bytes of numbers: 1 where the number goes on.
_GOES_ON = bytes([0] * 128 + [1] * 128)
_TOO_LONG = b"\1" * _MOST_BYTES_EACH


def decode(text: str, highest: int = HIGHEST_US) -> Any:  # noqa: ANN401  hdrh ships no types
    """Return the histogram that a text holds, which has room for values up to `highest` at most.

    Raises:
        ValueError: it is truncated, no such histogram, or larger than that.

    """
    try:
        raw = b64decode(text, validate=True)
        cookie, length = _HEAD.unpack_from(raw.ljust(_HEAD.size, b"\0"))
        if cookie != _COMPRESSED or length != len(raw) - _HEAD.size:
            raise ValueError("truncated or not HdrHistogram V2")
        _check(raw[_HEAD.size :], highest)
        return HdrHistogram.decode(text)
    except (
        *(Base64Error, zlib.error, IndexError, OverflowError, TypeError, ValueError),
        *(HdrCookieException, HdrLengthException),
    ) as error:
        raise ValueError(f"the histogram cannot be decoded: {error}") from error


def _check(packed: bytes, most: int) -> None:
    """Unpack so much and no more, and look at what the library would believe."""
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
    return int(merge([decode(text) for text in encoded]).get_value_at_percentile(percentile))


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
