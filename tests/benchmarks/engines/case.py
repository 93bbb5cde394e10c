"""What all clients of a comparison are asked to do, and what is told of each run."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from perf.model.records import Operation, Sensor
from perf.systems.contract import Target

RECORDS = Sensor(kind="sensor", devices=1000, payload_bytes=1024)
PRELOADED = 20 * RECORDS.devices
# Virtual machines, and the server, compile what is used often, and have done most of that after this.
WARM_UP_S = 6.0
MEASURED_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What each client is asked to do. `rate` is in operations per second; None: all it can."""

    operation: Operation
    rate: float | None
    in_flight: int

    @property
    def name(self) -> str:
        """Say it in words."""
        load = f"{self.rate:g}/s" if self.rate else "saturation"
        return f"{self.operation.value}, {load}, {self.in_flight} in flight"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one run of one client cost and did; lateness (p50, p99, max) and service time in ms."""

    cpu_us: float
    achieved: float
    late_ms: tuple[float, float, float] | None
    service_ms: tuple[float, float] | None
    """p50 and p99; None where the client times something else."""
    failed: int


Client = Callable[[Case, Target, int], Figures]
"""Runs a case against a server; the number is the first row that a write may write."""

# Reads come first: what they must find is what was preloaded, and nothing that was written later.
CASES = tuple(
    Case(operation=operation, rate=rate, in_flight=64)
    for operation in (Operation.READ_LATEST, Operation.WRITE)
    for rate in (5000.0, None)
)


def choose(cases: Sequence[Case], words: Sequence[str] | None) -> tuple[Case, ...]:
    """Return the cases that have one of the words in their name; all of them if there are none."""
    return tuple(case for case in cases if words is None or any(word in case.name for word in words))


def spread(values: Sequence[float], form: str) -> str:
    """Return the median, and the range; a dash if there is nothing."""
    if not values:
        return "–"
    least, most = min(values), max(values)
    return f"{statistics.median(values):{form}} ({least:{form}} to {most:{form}})"


def write_table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table, with an empty line before it."""
    rows = (head, ("---",) * len(head), *lines)
    return "\n" + "".join(f"| {' | '.join(cells)} |\n" for cells in rows)
