"""How much is tried: little in `make test`, more in `make test-all`, most in `make reliability`."""

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
EFFORT = float(os.environ.get("KNICKPOINT_EFFORT") or 0)
"""The share of the full effort that tests of reliability make, from 0 to 1."""
SAMPLE = 20


def tries(full: int, sample: int = SAMPLE) -> int:
    """Return how many examples a property is tried with: all with any effort, else a sample of them."""
    return full if EFFORT else min(full, sample)


def cases(full: Sequence[T], sample: Sequence[T]) -> Sequence[T]:
    """Return what a test is parametrized by: all cases with full effort, else a sample of them."""
    return full if EFFORT >= 1 else sample
