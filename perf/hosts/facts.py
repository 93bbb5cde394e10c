"""Read what is true of a host: kernel, CPU, governor, memory, huge pages, limits, tool versions.

One shell command per host, so that it works the same here and over SSH. A fact that this host does
not have is recorded as "unavailable", never left out: absence is a fact too.
"""

from importlib.metadata import PackageNotFoundError, version

from perf.model import Fact
from perf.remote import Remote

UNAVAILABLE = "unavailable"
_DRIVERS = ("pymongo", "cassandra-driver", "hdrhistogram", "numpy")

# name → shell expression whose first line of output is the value
_QUESTIONS = {
    "kernel": "uname -r",
    "machine": "uname -m",
    "os": ". /etc/os-release; echo $PRETTY_NAME",
    "cpu_model": "sed -n 's/^model name[^:]*: //p' /proc/cpuinfo",
    "cpu_cores": "nproc",
    "cpu_governor": "cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "cpu_turbo_off": "cat /sys/devices/system/cpu/intel_pstate/no_turbo",
    "smt": "cat /sys/devices/system/cpu/smt/control",
    "memory_kb": "sed -n 's/^MemTotal: *\\([0-9]*\\).*/\\1/p' /proc/meminfo",
    "swap_kb": "sed -n 's/^SwapTotal: *\\([0-9]*\\).*/\\1/p' /proc/meminfo",
    "thp": "sed 's/.*\\[\\(.*\\)\\].*/\\1/' /sys/kernel/mm/transparent_hugepage/enabled",
    "swappiness": "cat /proc/sys/vm/swappiness",
    "max_map_count": "cat /proc/sys/vm/max_map_count",
    "numa_nodes": "ls -d /sys/devices/system/node/node* | wc -l",
    "clock_source": "cat /sys/devices/system/clocksource/clocksource0/current_clocksource",
    "load_average_1min": "cut -d' ' -f1 /proc/loadavg",
    "steal_ticks": "sed -n '1s/^cpu *//p' /proc/stat | cut -d' ' -f8",
    "boot_id": "cat /proc/sys/kernel/random/boot_id",
}
_SCRIPT = "\n".join(
    f"printf '%s\\t%s\\n' {name} \"$( {{ {expression}; }} 2>/dev/null | head -n 1)\""
    for name, expression in _QUESTIONS.items()
)


def read_facts(remote: Remote) -> tuple[Fact, ...]:
    """Read a host's facts, sorted as asked.

    Raises:
        StepFailed: the host cannot be reached.

    """
    answer = remote.run(["sh", "-c", _SCRIPT]).stdout
    pairs = (line.partition("\t") for line in answer.splitlines())
    return tuple(
        Fact(host=remote.name, name=name, value=value.strip() or UNAVAILABLE)
        for name, _, value in pairs
    )


def read_client_facts(host: str) -> tuple[Fact, ...]:
    """Give the versions of the drivers and of Knickpoint itself on the controlling machine."""
    return tuple(
        Fact(host=host, name=f"version:{package}", value=_package_version(package))
        for package in ("knickpoint", *_DRIVERS)
    )


def _package_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return UNAVAILABLE
