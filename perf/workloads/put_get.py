"""The put/get workload: one value under each key, after the report "MongoDB vs. Cassandra Benchmarks".

The report puts ten million values under keys of 32 bytes, gets them, puts values of other sizes in
their place, and so on, phase by phase. It draws the size of a value as `random.nextInt(range) + base`
from a "value seed" and fills it with random ASCII. Here a value's size and contents are a function of
(seed, value seed, index), so whoever gets it knows what must come. Sizes are uniform from
least_value_bytes to least_value_bytes + value_bytes_range − 1, as in the report, but not in the order
of java.util.Random, which depends on how the report's threads took turns.

What the report leaves open, and what is done here:

    what a key is              hexadecimal digits of a hash of the index, so that neighbours by index
                               are strangers in the order of keys
    which keys a phase asks    each key once; more operations than keys begin another pass
    in which order             a put in that of the index; a get, and a put-get, in one drawn anew from
                               the seed for each phase and pass
    what a PutGet is           one operation: put the value of a new seed, then get it, of the same key

Contents are slices of a pool that SHAKE-128 (FIPS 202) draws from the seed, in the 64 characters of
base64; SplitMix64 points where a slice begins. To make a value takes about 2 µs, a key as much.
"""

import base64
import hashlib
from functools import lru_cache

from perf.model.records import Answer, PutGet, Values
from perf.workloads.permutation import permute
from perf.workloads.splitmix import GAMMA, MASK, mix, stream, word

# Slices of a pool of this size rarely overlap within one compression block of a database.
_PLACES = 4 << 20
_PLACE_SHIFT = 64 - 22

# Counters of different purposes never meet; each run of engines has an order of its own.
_KEY_STREAM, _VALUE_STREAM, _ORDER_STREAM = 60, 61, 62


def key_name(records: PutGet, seed: int, index: int) -> str:
    """Return the key of an index: no two have the same."""
    state = word(stream(seed, _KEY_STREAM), index)  # a permutation of 64 bits
    digits = f"{state:016x}"
    while len(digits) < records.key_bytes:
        state = mix((state + GAMMA) & MASK)
        digits += f"{state:016x}"
    return digits[: records.key_bytes]


def make_value(records: PutGet, seed: int, value_seed: int, index: int) -> bytes:
    """Compute the value that a value seed puts under the key of an index."""
    state = word(stream(value_seed, _VALUE_STREAM), index)
    size = records.least_value_bytes + (state * records.value_bytes_range >> 64)
    begin = mix((state + GAMMA) & MASK) >> _PLACE_SHIFT
    longest = records.least_value_bytes + records.value_bytes_range - 1
    return _pool(seed, longest)[begin : begin + size]


def check_value(
    records: PutGet, seed: int, value_seed: int, index: int, values: Values | None
) -> Answer:
    """Judge what was got under the key of an index, where the values of a value seed are stored.

    NOT_FOUND: there is none. WRONG_DATA: anything but that value, even if it was there once.
    """
    if values is None:
        return Answer.NOT_FOUND
    if len(values) == 1 and values[0] == make_value(records, seed, value_seed, index):
        return Answer.COMPLETED
    return Answer.WRONG_DATA


def choose_put(records: PutGet, number: int) -> int:
    """Choose the index that put number `number` of a phase is about: all in order."""
    return number % records.keys


def choose_get(records: PutGet, seed: int, run: int, number: int) -> int:
    """Choose the index that get number `number` of a phase asks for: each once, in a drawn order.

    The order is one of run number `run` of engines, and of this pass over all keys.
    """
    turn, place = divmod(number, records.keys)
    order = mix((stream(seed, _ORDER_STREAM + run) + turn * GAMMA) & MASK)
    return permute(place, records.keys, order)


@lru_cache(maxsize=2)
def _pool(seed: int, longest: int) -> bytes:
    pool = _draw_pool(seed)
    return pool + pool[:longest]  # so that a slice may begin anywhere


@lru_cache(maxsize=2)
def _draw_pool(seed: int) -> bytes:
    drawn = hashlib.shake_128(b"knickpoint put-get values %d" % seed).digest(_PLACES // 4 * 3)
    return base64.b64encode(drawn)
