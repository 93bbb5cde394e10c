"""How busy a host has been: CPU time, steal, throttling, clock. One command per look."""

from collections import defaultdict
from dataclasses import dataclass

from perf.hosts.cgroups import DEFINE_CPU_GROUPS
from perf.hosts.remote import Remote, run_repeatable
from perf.model.errors import StepFailed
from perf.model.shown import printable


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUsage:
    """One look at a host. Totals only ever grow; two looks make a window.

    `at_s` is the time since boot, read together with the CPU times. `busy_s` is the CPU time of
    everything over all cores (user, nice, system, interrupts), without steal; `throttled_s` the time
    that a CPU quota held processes back, summed over cores (0 where there is no quota);
    `clock_offset_s` the wall clock minus the time since boot, to about 10 ms. `sent_bytes` is what the
    host sent on all its interfaces, loopback too: servers on one machine talk to each other through
    it, servers on several machines hardly do.
    """

    host: str
    at_s: float
    cores: int
    busy_s: float
    steal_s: float
    throttled_s: float
    clock_offset_s: float
    sent_bytes: int


# The quota that holds a process back may be that of any group around it. An interface that lies on
# another (a bond, a bridge, a VLAN) counts the same bytes once more. Cores are those that /proc/stat is
# about, whatever this process may use of them.
_SCRIPT = (
    DEFINE_CPU_GROUPS
    + r"""
# Nothing is started between these two: a share is CPU time per time, of one and the same moment.
read -r line </proc/stat && read -r up _ </proc/uptime && echo "stat $line" && echo "at $up"
echo "ticks $(getconf CLK_TCK)"
echo "cores $(getconf _NPROCESSORS_ONLN)"
cpu_groups | while read -r group; do
  [ -r "$group/cpu.stat" ] && while read -r key value; do
    case $key in throttled_*) echo "$key $value" ;; esac
  done <"$group/cpu.stat"
done
for link in /sys/class/net/*/lower_*; do
  [ -e "$link" ] && link=${link%/*} && echo "layered ${link##*/}"
done
sed 's/^ */network /' /proc/net/dev
for _ in 1 2 3 4 5; do
  read -r up _ </proc/uptime && date "+clock $up %s.%N"
done
"""
)
_IN_SECONDS = {"throttled_usec": 1e-6, "throttled_time": 1e-9}


def read_usage(remote: Remote) -> HostUsage:
    """Look at a host once.

    Raises:
        StepFailed: the host cannot be reached, or does not say what every Linux host says.

    """
    answer = run_repeatable(remote, ["sh", "-c", _SCRIPT], check=False)
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for line in answer.stdout.splitlines():
        key, _, value = line.partition(" ")
        lines[key].append(value)
    try:
        return _parse(remote.name, lines)
    except (IndexError, ValueError, ZeroDivisionError) as error:
        why = f"its use of CPU, network and clock cannot be read from /proc: {error}; it printed: "
        raise StepFailed(
            "look", remote.name, why + printable(answer.stdout + answer.stderr, 500)
        ) from error


def _parse(host: str, lines: defaultdict[str, list[str]]) -> HostUsage:
    # cpu  user nice system idle iowait irq softirq steal guest guest_nice; user holds guest
    ticks = [int(field) for field in lines["stat"][0].split()[1:]]
    per_second = int(lines["ticks"][0])
    clocks = [tuple(map(float, line.split())) for line in lines["clock"]]
    return HostUsage(
        host=host,
        at_s=float(lines["at"][0]),
        cores=int(lines["cores"][0]),
        busy_s=(sum(ticks[:3]) + sum(ticks[5:7])) / per_second,
        steal_s=ticks[7] / per_second,
        throttled_s=_throttled_s(lines),
        # The wall clock is read a moment after the time since boot, which has steps of 10 ms: each
        # difference is too large by up to that, so the smallest of several is the best.
        clock_offset_s=min(wall_s - up_s for up_s, wall_s in clocks),
        sent_bytes=_sent_bytes(lines),
    )


def _throttled_s(lines: defaultdict[str, list[str]]) -> float:
    found = (int(value) * unit for key, unit in _IN_SECONDS.items() for value in lines[key])
    return max(found, default=0.0)


def _sent_bytes(lines: defaultdict[str, list[str]]) -> int:
    total = 0
    for line in lines["network"]:
        name, colon, figures = line.partition(":")
        if colon and name not in lines["layered"]:
            total += int(figures.split()[8])
    return total
