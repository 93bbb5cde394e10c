"""How much is tried where more would show more: a sample, or all of it where that is asked for."""

import os

IN_FULL = os.environ.get("KNICKPOINT_TESTS_IN_FULL") == "1"
"""`make test-all` asks for it."""
SAMPLE = 20


def tries(full: int, sample: int = SAMPLE) -> int:
    """Return how many examples a property is tried with: `full` or, by default, a sample of them."""
    return full if IN_FULL else min(full, sample)
