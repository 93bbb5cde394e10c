"""Read what is true of a host: kernel, CPU, governor, memory, huge pages, limits, tool versions.

One shell command per host, so that it works the same here and over SSH. A fact that this host does
not have is recorded as "unavailable", never left out: absence is a fact too.
"""

import json

from perf.hosts.cgroups import DEFINE_CPU_GROUPS
from perf.hosts.remote import Remote, run_repeatable
from perf.model.errors import StepFailed
from perf.model.facts import (
    BOOT_ID,
    LOAD_AVERAGE,
    MEMORY_KB,
    STEAL_TICKS,
    THERMAL_THROTTLE_COUNT,
    UNAVAILABLE,
)
from perf.model.results import Fact
from perf.model.shown import printable

_LONGEST = 1000
"""Characters of a fact."""
_PACKAGES = ("knickpoint", "pymongo", "cassandra-driver", "hdrhistogram", "numpy")

# name → shell expression whose first line of output is the value
_QUESTIONS = {
    "kernel": "uname -r",
    "machine": "uname -m",
    "os": ". /etc/os-release; echo $PRETTY_NAME",
    "cpu_model": "sed -n 's/^model name[^:]*: //p' /proc/cpuinfo",
    "cpu_microcode": "sed -n 's/^microcode[^:]*: //p' /proc/cpuinfo",
    "cpu_cores": "nproc",
    # In cores, the least of all groups around the processes.
    "cpu_quota": (
        "cpu_groups | while read -r group; do "
        'cat "$group/cpu.max" || paste -d" " "$group/cpu.cfs_quota_us" "$group/cpu.cfs_period_us"; '
        "done | awk '$1 + 0 > 0 { cores = $1 / $2; if (!least || cores < least) least = cores } "
        'END { print (least ? least : "none") }\''
    ),
    "cpu_highest_khz": "cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq",
    "cpu_governor": "cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "cpu_turbo_off": "cat /sys/devices/system/cpu/intel_pstate/no_turbo",
    "smt": "cat /sys/devices/system/cpu/smt/control",
    MEMORY_KB: "sed -n 's/^MemTotal: *\\([0-9]*\\).*/\\1/p' /proc/meminfo",
    "swap_kb": "sed -n 's/^SwapTotal: *\\([0-9]*\\).*/\\1/p' /proc/meminfo",
    "thp": "sed 's/.*\\[\\(.*\\)\\].*/\\1/' /sys/kernel/mm/transparent_hugepage/enabled",
    "swappiness": "cat /proc/sys/vm/swappiness",
    "max_map_count": "cat /proc/sys/vm/max_map_count",
    "numa_nodes": "ls -d /sys/devices/system/node/node* | wc -l",
    "clock_source": "cat /sys/devices/system/clocksource/clocksource0/current_clocksource",
    LOAD_AVERAGE: "cut -d' ' -f1 /proc/loadavg",
    THERMAL_THROTTLE_COUNT: (
        "cat /sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count | "
        "awk '{ sum += $1 } END { if (NR) print sum }'"
    ),
    STEAL_TICKS: "sed -n '1s/^cpu *//p' /proc/stat | cut -d' ' -f8",
    BOOT_ID: "cat /proc/sys/kernel/random/boot_id",
}
_SCRIPT = DEFINE_CPU_GROUPS + "\n".join(
    f"printf '%s\\t%s\\n' {name} \"$( {{ {expression}; }} 2>/dev/null | head -n 1)\""
    for name, expression in _QUESTIONS.items()
)

_VERSIONS = """
import json, platform, sys
from importlib.metadata import PackageNotFoundError, version

def version_of(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return ""

found = {package: version_of(package) for package in sys.argv[1:]}
print(json.dumps({"python": platform.python_version()} | found))
"""


def read_facts(remote: Remote) -> tuple[Fact, ...]:
    """Read a host's facts, sorted as asked.

    Raises:
        StepFailed: the host cannot be reached.

    """
    answer = run_repeatable(remote, ["sh", "-c", _SCRIPT]).stdout
    pairs = (line.partition("\t") for line in answer.splitlines())
    return tuple(
        Fact(
            host=remote.name,
            name=printable(name),
            value=printable(value.strip(), _LONGEST) or UNAVAILABLE,
        )
        for name, _, value in pairs
    )


def read_client_facts(remote: Remote, python: str) -> tuple[Fact, ...]:
    """Read the versions of what drives the load on a client host, from the Python that runs engines.

    Raises:
        StepFailed: the host cannot be reached, or has no such Python.

    """
    answer = run_repeatable(remote, [python, "-c", _VERSIONS, *_PACKAGES]).stdout
    try:
        found = {str(name): str(value or UNAVAILABLE) for name, value in json.loads(answer).items()}
    except (ValueError, AttributeError, RecursionError) as error:
        why = f"{python} printed something else than versions: {printable(answer)}"
        raise StepFailed("facts", remote.name, why) from error
    return tuple(
        Fact(host=remote.name, name=f"version:{name}", value=value) for name, value in found.items()
    )
