"""Were the hosts left alone while a load was measured? Reasons with numbers. Pure.

What servers and engines use themselves is no disturbance.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perf.load.results.outcome import LoadOutcome
from perf.model.design import Validity
from perf.model.results import Reason
from perf.trial.telemetry import Window


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


@dataclass(frozen=True, slots=True)
class Measured:
    """How far a host or a client was from what is asked of it: beside the limit, and in words."""

    kind: str
    value: float
    limit: float
    text: str


def find_worst(found: Iterable[Measured]) -> Iterator[Reason]:
    """Yield the worst of each kind of what is above its limit."""
    worst: dict[str, Measured] = {}
    for one in found:
        known = worst.get(one.kind)
        if one.value > one.limit and (known is None or one.value > known.value):
            worst[one.kind] = one
    for one in worst.values():
        yield Reason(kind=one.kind, text=one.text)


def find_disturbances(
    outcome: LoadOutcome, windows: Sequence[Window], limits: Validity, phase: str | None = None
) -> Iterator[Reason]:
    """Compare the hosts with their limits in a phase, or in all; give the worst window of each kind."""
    for one in dict.fromkeys(window.phase for window in windows):
        if phase not in {None, one}:
            continue
        yield from find_worst(
            found
            for window in windows
            if window.phase == one
            for shares in host_shares(window, _engine_cpu_s(window, outcome))
            for found in _disturbances(shares, window, limits)
        )


def host_shares(window: Window, engine_cpu_s: Mapping[str, float]) -> tuple[HostShares, ...]:
    """Return the shares of each host that both looks saw; `engine_cpu_s` is by host name.

    The kernel counts a host's time in ticks and a process's exactly, so a share of the cores may come
    out a little below zero or above one; it is 0 or 1 then.
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
                foreign_cpu_share=_share_of_cores(foreign_s, after.cores * seconds),
                steal_share=_share_of_cores(after.steal_s - before.steal_s, after.cores * seconds),
                throttled_share=max(0.0, after.throttled_s - before.throttled_s) / seconds,
                clock_step_ms=abs(after.clock_offset_s - before.clock_offset_s) * 1000,
            )
        )
    return tuple(found)


def _share_of_cores(cpu_s: float, available_s: float) -> float:
    return min(1.0, max(0.0, cpu_s / available_s))


def _engine_cpu_s(window: Window, outcome: LoadOutcome) -> Mapping[str, float]:
    """Return the CPU time that engines used within a window, by host.

    Engines say what they used in their iterations; the looks lie a little outside of these, so their
    use is carried on at the same rate to the edges of the window.
    """
    used_s: dict[str, float] = {}
    befores = {usage.host: usage.at_s for usage in window.before.hosts}
    seconds = {
        usage.host: usage.at_s - befores.get(usage.host, usage.at_s) for usage in window.after.hosts
    }
    for result in outcome.results:
        if result.engine_index >= len(outcome.engine_hosts):
            continue
        host = outcome.engine_hosts[result.engine_index]
        own = [
            usage
            for usage in result.usages
            if usage.phase == window.phase and usage.iteration in window.iterations
        ]
        wall_s = sum(usage.wall_s for usage in own)
        if wall_s:
            share = sum(usage.cpu_s for usage in own) / wall_s
            used_s[host] = used_s.get(host, 0.0) + share * seconds.get(host, 0.0)
    return used_s


def _disturbances(shares: HostShares, window: Window, limits: Validity) -> Iterator[Measured]:
    numbers = ", ".join(map(str, window.iterations))
    when = f"while {window.phase} was measured (iteration {numbers}, {shares.seconds:.1f} s)"
    for kind, what, value, limit in (
        ("host-busy", "other programs used", shares.foreign_cpu_share, limits.max_foreign_cpu_share),
        ("host-stolen", "a hypervisor withheld", shares.steal_share, limits.max_steal_share),
    ):
        text = (
            f"{shares.host}: {what} {value * shares.cores:.2f} of {shares.cores} cores {when}: "
            f"{percent(value)}; the limit is {percent(limit)}"
        )
        yield Measured(kind, value, limit, text)
    throttled, limit = shares.throttled_share, limits.max_throttled_share
    text = (
        f"{shares.host}: a CPU quota held processes back {throttled * shares.seconds:.2f} s "
        f"{when}: {percent(throttled)}; the limit is {percent(limit)}"
    )
    yield Measured("host-throttled", throttled, limit, text)
    step_ms, limit = shares.clock_step_ms, limits.max_clock_step_ms
    text = (
        f"{shares.host}: the wall clock moved by {step_ms:.1f} ms against the time since boot {when}; "
        f"the limit is {limit:g} ms"
    )
    yield Measured("clock-stepped", step_ms, limit, text)


def percent(share: float) -> str:
    """Say a share with three digits, so that a small one above a limit of zero is not shown as zero."""
    return f"{share * 100:.3g}%"
