"""Which record an operation is about, as YCSB core chooses it; pure, and every choice by counter.

Source: the generators of YCSB core 0.17.0 (package site.ycsb.generator, CoreWorkload.nextKeynum). The
zipfian algorithm is that of J. Gray et al., "Quickly Generating Billion-Record Synthetic Databases",
SIGMOD 1994. `tests/perf/workloads/test_ycsb_core.py` compares constants, keys and distributions with
YCSB core itself.

A chooser gives the *index* of a record among those that are known to be stored, from the oldest; choice
number n is a function of (seed, n) and of how many records are known by then. Kept from YCSB, because
published figures were made with it:

- zipfian is *scrambled*: a rank is drawn from a fixed space of 10¹⁰ ranks and hashed into the key
  range, so that the skew does not depend on the number of records. Two ranks may meet on one record.
- The key range of the scrambled zipfian is one record wider than what is stored, and where a workload
  inserts, wider by twice the inserts to be expected; what is not known yet is drawn again.
- latest never chooses the very first record; and when records are added, its zeta follows them while
  its `items` (in eta) stays what it was at the start.

Left out: YCSB cuts chosen numbers and the size of the hot set to 31 bits, by which a published data set
of 10¹⁰ records was read in its first fifth only. Its master, after 0.17.0, draws ranks from 10¹⁶ with
the zeta of 10¹⁰; the release is what is followed here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Protocol

from perf.model.records import Operation, OperationName, Ycsb
from perf.workloads.splitmix import GAMMA, MASK, UNIT, mix, word

THETA = 0.99
"""The exponent: rank number r (from 1) is chosen in proportion to r^-THETA."""
SCRAMBLED_RANKS = 10_000_000_000 + 1
"""The ranks of the scrambled zipfian: 0 to 10¹⁰, both included, as its constructor has it."""
SCRAMBLED_ZETA = 26.46902820178302
"""zeta(10¹⁰, THETA), as YCSB has precomputed it."""

_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3
_SIGN = 1 << 63
# From here on, the tail of the sum is known to better than a float can say.
_SUMMED = 64


def hash_number(number: int) -> int:
    """Return YCSB's hash of a number: FNV over its eight octets, lowest first, without the sign.

    It is FNV-1a (xor, then multiply), by G. Fowler, L. C. Noll and K.-P. Vo, in 64 bits.
    """
    state = _FNV_OFFSET
    for octet in number.to_bytes(8, "little"):
        state = ((state ^ octet) * _FNV_PRIME) & MASK
    return state if state < _SIGN else (1 << 64) - state


def zeta(items: int, theta: float = THETA) -> float:
    """Return the sum of r^-theta for r from 1 to `items`, to about 14 digits, in constant time.

    By Euler and Maclaurin: what lies between two far ends of the sum is an integral, half of both ends,
    and corrections by the first and the third derivative.
    """
    if items <= _SUMMED:
        return _sum(items, theta)
    return _sum(_SUMMED, theta) - _tail(_SUMMED, theta) + _tail(items, theta)


@dataclass(frozen=True, slots=True)
class Zipfian:
    """Ranks from 0, the smaller the likelier, over `items` ranks whose zeta is `zeta_items`."""

    items: int
    zeta_items: float
    theta: float = THETA

    def rank(self, unit: float, items: int | None = None, zeta_items: float | None = None) -> int:
        """Return the rank that a float in [0, 1) chooses, over `items` ranks, where they have grown."""
        total = self.zeta_items if zeta_items is None else zeta_items
        scaled = unit * total
        if scaled < 1.0:
            return 0
        second: float = 0.5**self.theta
        if scaled < 1.0 + second:
            return 1
        eta = (1 - (2.0 / self.items) ** (1 - self.theta)) / (1 - (1.0 + second) / total)
        spread: float = (eta * unit - eta + 1) ** (1.0 / (1.0 - self.theta))
        count = self.items if items is None else items
        # Next to 1, and where two or three ranks have grown, the formula reaches beyond the last.
        return min(int(count * spread), count - 1)


class Chooser(Protocol):
    """A request distribution."""

    def choose(self, stream: int, number: int, known: int) -> int:
        """Make choice `number` of a stream: which of `known` records, from 0, the oldest."""
        ...


@dataclass(frozen=True, slots=True)
class Uniform:
    """Each of the first `records` records alike; what is inserted later is never chosen."""

    records: int

    def choose(self, stream: int, number: int, known: int) -> int:
        """Choose."""
        return _below(self.records, word(stream, number))


@dataclass(frozen=True, slots=True)
class Hotspot:
    """A part of the first `records` records gets most operations; uniform inside and outside of it."""

    records: int
    data_fraction: float
    operation_fraction: float

    def choose(self, stream: int, number: int, known: int) -> int:
        """Choose."""
        hot = int(self.records * self.data_fraction)
        state = word(stream, number)
        is_hot = (_next(state, 1) >> 11) * UNIT < self.operation_fraction
        # A hot set that is empty or everything leaves one answer only; YCSB would divide by zero.
        if hot and (is_hot or hot == self.records):
            return _below(hot, _next(state, 2))
        return hot + _below(self.records - hot, _next(state, 2))


@dataclass(frozen=True, slots=True)
class ScrambledZipfian:
    """Few records get most operations, strewn over a key range `widened` by the inserts to come."""

    records: int
    widened: int = 0
    ranks: Zipfian = Zipfian(SCRAMBLED_RANKS, SCRAMBLED_ZETA)

    def choose(self, stream: int, number: int, known: int) -> int:
        """Choose; draw again what is not known yet."""
        state, draw = word(stream, number), 0
        while True:
            draw += 1
            index = self.place(self.ranks.rank((_next(state, draw) >> 11) * UNIT))
            if index < known:
                return index

    def place(self, rank: int) -> int:
        """Return the index in the key range on which a rank falls."""
        return hash_number(rank) % (self.records + self.widened + 1)


@dataclass(frozen=True, slots=True)
class Latest:
    """The youngest record is the likeliest, by zipfian over the distance from it."""

    records: int

    def choose(self, stream: int, number: int, known: int) -> int:
        """Choose."""
        last = known - 1
        if last < 1:
            return 0
        distances = _latest_ranks(self.records)
        return last - distances.rank((word(stream, number) >> 11) * UNIT, last, _zeta_known(last))


def make_chooser(records: Ycsb, *, stored: int, insert_share: float, engine_count: int) -> Chooser:
    """Return the chooser of one engine, where `stored` records are there before the first operation.

    `insert_share` is the share of inserts among all operations. How many inserts to expect, which
    widens the zipfian's key range, YCSB reads from its property operationcount, even where a run ends
    by time. So it is a parameter here as well, and each of several engines expects its share of them.
    """
    match records.request_distribution:
        case "uniform":
            return Uniform(stored)
        case "hotspot":
            return Hotspot(stored, records.hotspot_data_fraction, records.hotspot_operation_fraction)
        case "latest":
            return Latest(stored)
        case "zipfian":
            operations = records.operation_count or records.record_count
            return ScrambledZipfian(stored, int(operations * insert_share * 2 / engine_count))


def insert_share(mix: Mapping[OperationName, float]) -> float:
    """Return the share of inserts in a mix of weights."""
    # From left to right: Python 3.12 has a sum() that corrects what is lost, and choices would differ.
    *_, total = accumulate(mix.values())
    return mix.get(Operation.INSERT, 0.0) / total


def _below(limit: int, bits: int) -> int:
    """Return a number in [0, limit) from 64 random bits; their bias is below limit / 2⁶⁴."""
    return bits * limit >> 64


def _next(state: int, place: int) -> int:
    """Return a further random word of a choice; `state` is its first."""
    return mix((state + place * GAMMA) & MASK)


@lru_cache(maxsize=4)
def _latest_ranks(records: int) -> Zipfian:
    items = max(records - 1, 1)
    return Zipfian(items, zeta(items))


@lru_cache(maxsize=4)
def _zeta_known(items: int) -> float:
    return zeta(items)


@lru_cache(maxsize=4)
def _sum(items: int, theta: float) -> float:
    return math.fsum(rank**-theta for rank in range(1, items + 1))


def _tail(items: int, theta: float) -> float:
    end = float(items)
    term: float = end**-theta
    third = theta * (theta + 1) * (theta + 2) * term / (720 * end**3)
    return end * term / (1 - theta) + term / 2 - theta * term / (12 * end) + third
