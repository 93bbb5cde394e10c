"""Pin processes to cores and to the memory of a NUMA node; see that it can be, and later that it is.

Cores alone need `taskset`. A NUMA node needs `numactl`: memory is bound to the node, strictly, so that
a process that does not fit fails instead of being slow; its cores are those of the node if none are
named. Both replace themselves by the program, so that it keeps their process id.
"""

from collections.abc import Iterator, Sequence

from perf.hosts.remote import Remote
from perf.model.errors import StepFailed
from perf.model.results import Fact

PINNED_CORES, MEMORY_POLICY = "pinned_cores", "memory_policy"
"""Facts of each pinned node: what the kernel says of its running process."""

# A process may be allowed cores that are not there, or off.
_ASK = r"""
echo "online $(cat /sys/devices/system/cpu/online)"
echo "allowed $(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)"
echo "nodes $(cat /sys/devices/system/node/has_memory 2>/dev/null)"
echo "of_node $(cat "/sys/devices/system/node/node$1/cpulist" 2>/dev/null)"
for program in taskset numactl; do command -v $program >/dev/null && echo "$program found"; done
:
"""
# The cpuset of a process (Mems_allowed_list) says nothing of its policy, which numactl sets. The cores
# are those of all threads together: a server may pin each of its threads to one of them by itself.
_READ = r"""
lists=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$1/task"/*/status 2>/dev/null | sort -u)
[ -n "$lists" ] || exit 1
echo $lists | tr ' ' ,
read -r _ policy _ <"/proc/$1/numa_maps" && echo "$policy"
:
"""


def pin(command: Sequence[str], cores: Sequence[int], numa_node: int | None) -> tuple[str, ...]:
    """Return the command as it runs on these cores and in this node's memory; as it is, if neither."""
    listed = ",".join(map(str, cores))
    if numa_node is not None:
        where = f"--physcpubind={listed}" if listed else f"--cpunodebind={numa_node}"
        return ("numactl", f"--membind={numa_node}", where, *command)
    return ("taskset", "-c", listed, *command) if listed else tuple(command)


def find_unpinnable(remote: Remote, cores: Sequence[int], numa_node: int | None) -> tuple[str, ...]:
    """Say what a host lacks of what its processes are to be pinned to; where that is none, ask nothing.

    Raises:
        StepFailed: the host cannot be reached.

    """
    if not cores and numa_node is None:
        return ()
    node = "" if numa_node is None else str(numa_node)
    lines = remote.run(["sh", "-c", _ASK, "pinning", node]).stdout.splitlines()
    found = dict(line.partition(" ")[::2] for line in lines)
    return tuple(f"{remote.name}: {why}" for why in _complain(found, cores, numa_node))


def _complain(found: dict[str, str], cores: Sequence[int], numa_node: int | None) -> Iterator[str]:
    program = "taskset" if numa_node is None else "numactl"
    if program not in found:
        package = "util-linux" if program == "taskset" else "numactl"
        yield f"{program} is missing, which pins processes; install the package {package}"
    usable = read_list(found["online"]) & read_list(found["allowed"])
    if absent := sorted(set(cores) - usable):
        yield (
            f"it has no core {_join(absent)} that we may use, but {_join(sorted(usable))}; "
            "name others under cores in the testbed"
        )
    if numa_node is None:
        return
    if numa_node not in read_list(found["nodes"]):
        nodes = found["nodes"] or "no NUMA nodes at all"
        yield f"it has no memory on NUMA node {numa_node}, but on {nodes}; change or remove numa_node"
    elif foreign := sorted(set(cores) & usable - read_list(found["of_node"])):
        yield (
            f"core {_join(foreign)} is not of NUMA node {numa_node}, whose cores are "
            f"{found['of_node']}: all memory would be remote; change cores or numa_node"
        )


def prove_pinning(
    remote: Remote, name: str, pid: int, cores: Sequence[int], numa_node: int | None
) -> tuple[Fact, ...]:
    """Read back from the kernel what a running process is pinned to, and give it as facts of `name`.

    Raises:
        StepFailed: it is not what was asked for, or the process is gone.

    """
    lines = remote.run(["sh", "-c", _READ, "pinning", str(pid)]).stdout.splitlines()
    on, policy = lines[0], (*lines[1:], "unknown")[0]
    if cores and read_list(on) != set(cores):
        why = f"its process runs on cores {on}, but was to be pinned to {_join(sorted(cores))}"
        raise StepFailed("pinning", name, why)
    facts = [Fact(host=name, name=PINNED_CORES, value=on)]
    if numa_node is not None:
        mode, _, nodes = policy.partition(":")
        if not mode.startswith("bind") or read_list(nodes) != {numa_node}:
            why = f"the memory policy of its process is {policy}, not bind:{numa_node}"
            raise StepFailed("pinning", name, why)
        facts.append(Fact(host=name, name=MEMORY_POLICY, value=policy))
    return tuple(facts)


def read_list(text: str) -> set[int]:
    """Read a list as the kernel writes it: "0-3,8" is 0, 1, 2, 3 and 8."""
    spans = (part.partition("-") for part in text.split(",") if part.strip())
    return {number for first, _, last in spans for number in range(int(first), int(last or first) + 1)}


def _join(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
