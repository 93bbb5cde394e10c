"""What servers and hosts did while a phase was measured: two looks, and what lies between them."""

from collections.abc import Mapping
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HostShares:
    """How a host was used by others than servers and engines in a window, `seconds` long.

    Foreign CPU time and steal are shares of all its cores; `throttled_share` is the time that a CPU
    quota held processes back, per second; `clock_step_ms` is how far the wall clock moved against
    the time since boot, in either direction.
    """

    host: str
    seconds: float
    cores: int
    foreign_cpu_share: float
    steal_share: float
    throttled_share: float
    clock_step_ms: float


def host_shares(window: Window, engine_cpu_s: Mapping[str, float]) -> tuple[HostShares, ...]:
    """Give the shares of each host that both looks saw; `engine_cpu_s` is by host name.

    The kernel counts a host's time in ticks and a process's exactly, so the difference of an idle
    host may fall below zero; it is 0 then.
    """
    befores = {usage.host: usage for usage in window.before.hosts}
    started_s = {(process.host, process.node): process.cpu_s for process in window.before.processes}
    found = []
    for after in window.after.hosts:
        before = befores.get(after.host)
        if before is None or after.at_s <= before.at_s:
            continue
        seconds = after.at_s - before.at_s
        servers_s = sum(
            process.cpu_s - started_s.get((process.host, process.node), 0.0)
            for process in window.after.processes
            if process.host == after.host
        )
        foreign_s = after.busy_s - before.busy_s - servers_s - engine_cpu_s.get(after.host, 0.0)
        found.append(
            HostShares(
                host=after.host,
                seconds=seconds,
                cores=after.cores,
                foreign_cpu_share=max(0.0, foreign_s) / (after.cores * seconds),
                steal_share=max(0.0, after.steal_s - before.steal_s) / (after.cores * seconds),
                throttled_share=max(0.0, after.throttled_s - before.throttled_s) / seconds,
                clock_step_ms=abs(after.clock_offset_s - before.clock_offset_s) * 1000,
            )
        )
    return tuple(found)
