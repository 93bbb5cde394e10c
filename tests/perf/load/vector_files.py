"""What files of vectors have in common: how they are written, and how many values become one digest.

A vector file says what any engine must give for a seed; perf/load/native/tests reads them. A digest is
SHAKE-128 (FIPS 202), which every engine has for its pools anyway, over 8 octets for each number (lowest
first; IEEE bits of one with a fraction), and for each text its length as a number, then its octets.
"""

import hashlib
import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).parents[2] / "data/vectors"


def write_vectors(vectors: Mapping[str, Any]) -> str:
    """Return the text of a file: an object per line."""
    text = json.dumps(vectors, separators=(",", ":"))
    for begin in ('{"', '"judged"', '"choices"', '"scans"', '"ends"'):
        text = text.replace(f",{begin}", f",\n{begin}")
    return text + "\n"


def digest(said: Iterable[float | str | bytes]) -> str:
    """Return the digest of so many values, in hexadecimal digits."""
    state = hashlib.shake_128()
    for one in said:
        state.update(_octets(one))
    return state.hexdigest(16)


def bits(number: float) -> str:
    """Return the bits of a float in hexadecimal digits, which no parser rounds."""
    return struct.pack(">d", number).hex()


def _octets(one: float | str | bytes) -> bytes:
    match one:
        case int():
            return struct.pack("<Q", one)
        case float():
            return struct.pack("<d", one)
        case str():
            return _octets(one.encode())
        case bytes():
            return struct.pack("<Q", len(one)) + one
