"""How busy a host has been: CPU time, steal, throttling, clock. One command per look."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUsage:
    """One look at a host. Totals only ever grow; two looks make a window.

    `busy_s` is the CPU time of everything over all cores (user, nice, system, interrupts), without
    steal; `throttled_s` the time that a CPU quota held processes back (0 where there is no quota);
    `clock_offset_s` the wall clock minus the time since boot; `sent_bytes` what left the host.
    """

    host: str
    at_s: float
    cores: int
    busy_s: float
    steal_s: float
    throttled_s: float
    clock_offset_s: float
    sent_bytes: int
