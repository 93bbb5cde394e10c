"""Do the clocks of several client hosts agree? Read before a load and after it, and judged.

Engines of several hosts over SSH begin at the same time by their own wall clocks. With one client host,
or on one machine, there is one clock, and nothing is asked.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perf.hosts.remote import SshHost
from perf.hosts.testbed import Client
from perf.hosts.wall_clock import find_epoch_ns, read_clock_offset
from perf.model.clock_offsets import list_apart, read_offsets
from perf.model.errors import StepFailed
from perf.model.facts import CLOCK_OFFSET, UNAVAILABLE
from perf.model.results import Fact, Reason

_UNKNOWN = "clock-offset-unknown"


@dataclass(frozen=True, slots=True)
class Clocks:
    """What was read of the clocks of client hosts at one moment, and what could not be."""

    facts: tuple[Fact, ...] = ()
    remarks: tuple[Reason, ...] = ()


def read_clocks(clients: Sequence[Client], when: str) -> Clocks:
    """Read the wall clock of each client host, if there are several over SSH."""
    hosts = [(one.remote, one.host.python) for one in clients if isinstance(one.remote, SshHost)]
    if len(hosts) < 2:  # noqa: PLR2004  nobody to differ from
        return Clocks()
    facts: list[Fact] = []
    remarks: list[Reason] = []
    epoch_ns = find_epoch_ns()
    for remote, python in hosts:
        try:
            facts.append(read_clock_offset(remote, python, epoch_ns).fact_of(remote.name))
        except StepFailed as failure:
            facts.append(Fact(host=remote.name, name=CLOCK_OFFSET, value=UNAVAILABLE))
            text = f"{remote.name}: its clock could not be read {when}: {failure.sentence}"
            remarks.append(Reason(kind=_UNKNOWN, text=text))
    return Clocks(tuple(facts), tuple(remarks))


def judge_clocks(
    facts: Iterable[Fact], when: str, limit_ms: float | None
) -> tuple[tuple[Reason, ...], tuple[Reason, ...]]:
    """Return a reason if two clocks are surely too far apart, and else a remark if they may be."""
    pairs = list_apart(read_offsets(facts))
    if not pairs or limit_ms is None:
        return (), ()
    surest = max(pairs, key=lambda pair: pair.by.least_ms)
    if surest.by.least_ms > limit_ms:
        first, second = surest.hosts if surest.by.ms > 0 else reversed(surest.hosts)
        text = (
            f"{when} the clock of {first} was ahead of that of {second} by {abs(surest.by.ms):.3f} ms "
            f"(± {surest.by.uncertainty_ms:.3f} ms), and their engines' windows lay as far apart; the "
            f"limit is {limit_ms:g} ms"
        )
        return (Reason(kind="clock-offset", text=text),), ()
    widest = max(pairs, key=lambda pair: pair.by.most_ms)
    if widest.by.most_ms <= limit_ms:
        return (), ()
    text = (
        f"{when} the clocks of {' and '.join(widest.hosts)} were {abs(widest.by.ms):.3f} ms apart, "
        f"± {widest.by.uncertainty_ms:.3f} ms: whether that is within the limit of {limit_ms:g} ms is "
        "not known"
    )
    return (), (Reason(kind=_UNKNOWN, text=text),)
