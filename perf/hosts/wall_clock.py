"""How far a host's wall clock is from this machine's: asked several times over one connection.

As time services do it: the answer is taken for one of the middle of its round trip, so it is wrong by
half of that at most, whichever way was the slower one. The quickest of several round trips says most.
"""

import time
from collections.abc import Sequence
from typing import Protocol

from perf.hosts.remote import RoundTrip
from perf.model.clock_offsets import ClockOffset
from perf.model.errors import StepFailed
from perf.model.shown import printable

ROUND_TRIPS = 20
_PROGRAM = "import sys, time\nfor _ in sys.stdin: print(time.time_ns(), flush=True)"
_NS_PER_MS = 1e6


class Askable(Protocol):
    """A host with programs that answer."""

    @property
    def name(self) -> str:
        """As messages call it."""

    def ask(self, argv: Sequence[str], times: int) -> tuple[RoundTrip, ...]:
        """Ask a program so often."""


def find_epoch_ns() -> int:
    """Return the moment, in Unix time, from which this machine's monotonic clock counts.

    Offsets against one such moment compare, whatever becomes of this machine's wall clock meanwhile.
    """
    return time.time_ns() - time.monotonic_ns()


def read_clock_offset(remote: Askable, python: str, epoch_ns: int) -> ClockOffset:
    """Return how far a host's wall clock is ahead of this machine's monotonic clock after `epoch_ns`.

    Raises:
        StepFailed: the host cannot be reached, or has no such Python.

    """
    quickest = min(remote.ask([python, "-c", _PROGRAM], ROUND_TRIPS), key=_length_ns)
    try:
        said_ns = int(quickest.answer)
    except ValueError as error:
        why = f"{python} printed something else than the time: {printable(quickest.answer)}"
        raise StepFailed("clock", remote.name, why) from error
    middle_ns = (quickest.asked_ns + quickest.answered_ns) // 2
    return ClockOffset(
        ms=(said_ns - epoch_ns - middle_ns) / _NS_PER_MS,
        uncertainty_ms=_length_ns(quickest) / 2 / _NS_PER_MS,
    )


def _length_ns(trip: RoundTrip) -> int:
    return trip.answered_ns - trip.asked_ns
