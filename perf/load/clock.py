"""The clock that an engine measures by."""

import time
from typing import Protocol

_CLOCK_TRIES = 9


class Clock(Protocol):
    """Seconds from the start of the first stage; negative before it."""

    def now(self) -> float:
        """Return the time."""
        ...

    def sleep_until(self, time_s: float) -> None:
        """Return at `time_s` or just after it; at once if that has passed."""
        ...


class MonotonicClock:
    """The real clock; a step of the host's time while it runs does not move it."""

    def __init__(self, start_at_s: float) -> None:
        """Count from `start_at_s` (Unix time)."""
        # Of several pairs of readings the closest is taken: between the two of a pair, this process
        # may have lost its core for milliseconds.
        self._origin = start_at_s - max(_wall_minus_monotonic_s() for _ in range(_CLOCK_TRIES))

    def now(self) -> float:
        """Return the time."""
        return time.perf_counter() - self._origin

    def sleep_until(self, time_s: float) -> None:
        """Sleep; this wakes about 0.1 ms late where a core is free."""
        while (rest_s := time_s - self.now()) > 0:
            time.sleep(rest_s)


def _wall_minus_monotonic_s() -> float:
    # The later of the two reads: a pause between them only ever makes the difference smaller.
    wall_s = time.time()
    return wall_s - time.perf_counter()
