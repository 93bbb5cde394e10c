"""SplitMix64 by counter: a random word is a pure function of a stream and a place in it.

Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014; reference code by S. Vigna,
prng.di.unimi.it/splitmix64.c. Word number n of a stream is `mix(stream + (n + 1) · GAMMA)`.
"""

from functools import lru_cache

MASK = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15
UNIT = 2.0**-53
"""What the upper 53 bits of a word are multiplied by to make a float in [0, 1)."""


def mix(state: int) -> int:
    """Return the word of a state; both are 64 bits, without sign."""
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
    return state ^ (state >> 31)


@lru_cache(maxsize=64)
def stream(seed: int, purpose: int) -> int:
    """Return the stream of a purpose: counters of different purposes never meet."""
    return mix((mix((seed + GAMMA) & MASK) + purpose * GAMMA) & MASK)


def word(stream: int, place: int) -> int:
    """Return word number `place` of a stream, from 0."""
    return mix((stream + (place + 1) * GAMMA) & MASK)


def unit(stream: int, place: int) -> float:
    """Return word number `place` of a stream as a float in [0, 1)."""
    return (word(stream, place) >> 11) * UNIT
