"""Numbers in a shuffled order, each once, without a list of them; pure."""

from functools import lru_cache

from perf.workloads.splitmix import word

_ROUNDS = 3


def permute(place: int, size: int, order: int) -> int:
    """Return the number in [0, size) that stands at a place in [0, size) of an order, which is 64 bits.

    Steps that can each be undone permute the next power of two; what falls outside is permuted again.
    """
    bits = max((size - 1).bit_length(), 1)
    mask, half = (1 << bits) - 1, (bits + 1) // 2
    while True:
        for added, factor in _constants(order):
            place = (place + added) * factor & mask
            place ^= place >> half
        if place < size:
            return place


@lru_cache(maxsize=16)
def _constants(order: int) -> tuple[tuple[int, int], ...]:
    words = [word(order, place) for place in range(2 * _ROUNDS)]
    return tuple((added, factor | 1) for added, factor in zip(words[::2], words[1::2], strict=True))
