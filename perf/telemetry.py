"""What servers and hosts did while a phase was measured: two looks, and the samples between them."""

from dataclasses import dataclass

from perf.hosts.usage import HostUsage
from perf.systems.contract import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One look at a server process. `host` is the name of its host, as in `HostUsage`."""

    node: str
    host: str
    cpu_s: float
    read_bytes: int
    written_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """All that was seen at one moment, on every host and node."""

    hosts: tuple[HostUsage, ...]
    processes: tuple[Process, ...]
    levels: tuple[Level, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The looks at the beginning and the end of the iterations of one stage of a load."""

    phase: str
    iterations: tuple[int, ...]
    before: Look
    after: Look
