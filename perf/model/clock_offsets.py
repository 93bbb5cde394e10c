"""How far wall clocks of hosts are from that of the machine that measures, and from each other. Pure.

Engines of several hosts begin by their own clocks, so what these differ by, their windows lie apart.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from perf.model.facts import CLOCK_OFFSET
from perf.model.results import Fact

_GIVE_OR_TAKE = " ± "
_NUMBER = r"\d{1,15}(?:\.\d{1,9})?"
_SAID = re.compile(rf"(-?{_NUMBER}){_GIVE_OR_TAKE}({_NUMBER})", re.ASCII)


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How far a clock is ahead of another; it is surely no further from this than `uncertainty_ms`."""

    ms: float
    uncertainty_ms: float

    def __sub__(self, other: "ClockOffset") -> "ClockOffset":
        """Return how far this clock is ahead of the other; what is unsure of the two adds up."""
        return ClockOffset(self.ms - other.ms, self.uncertainty_ms + other.uncertainty_ms)

    @property
    def least_ms(self) -> float:
        """How far the two clocks are apart at least."""
        return max(0.0, abs(self.ms) - self.uncertainty_ms)

    @property
    def most_ms(self) -> float:
        """How far the two clocks are apart at most."""
        return abs(self.ms) + self.uncertainty_ms

    def fact_of(self, host: str) -> Fact:
        """Write it as a fact of a host."""
        ms = round(self.ms, 3) + 0.0  # of a little less than nothing, no "-0.000"
        value = f"{ms:.3f}{_GIVE_OR_TAKE}{self.uncertainty_ms:.3f}"
        return Fact(host=host, name=CLOCK_OFFSET, value=value)


@dataclass(frozen=True, slots=True)
class Apart:
    """What the clocks of two hosts differ by."""

    hosts: tuple[str, str]
    by: ClockOffset


def read_offsets(facts: Iterable[Fact]) -> Mapping[str, ClockOffset]:
    """Return the offsets among facts, by host; those that are not known are left out."""
    found = {}
    for fact in facts:
        # What another program calls so may be any text.
        if fact.name == CLOCK_OFFSET and (said := _SAID.fullmatch(fact.value)):
            found[fact.host] = ClockOffset(float(said[1]), float(said[2]))
    return found


def list_apart(offsets: Mapping[str, ClockOffset]) -> tuple[Apart, ...]:
    """Return what the clocks of each two hosts differ by."""
    pairs = combinations(offsets, 2)
    return tuple(Apart((one, other), offsets[one] - offsets[other]) for one, other in pairs)
