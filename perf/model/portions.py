"""Work in portions: together what is fast together, and no more than fits into memory. Pure."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def in_portions(
    items: Iterable[Item], weigh: Callable[[Item], int], most_bytes: int, most: float = math.inf
) -> Iterator[Sequence[Item]]:
    """Yield items in order, so many together at most, of so few bytes; a larger one is alone."""
    portion, size = list[Item](), 0
    for item in items:
        own = weigh(item)
        if portion and (len(portion) == most or size + own > most_bytes):
            yield portion
            portion, size = [], 0
        portion.append(item)
        size += own
    if portion:
        yield portion
