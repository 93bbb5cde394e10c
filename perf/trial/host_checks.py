"""Can the hosts carry the trial? Memory, disk, ports and cores, checked before anything is started.

All shortfalls are reported at once. Host facts that must be equal from night to night (tuning) are
another matter and are proven elsewhere.
"""

from collections.abc import Iterable

from perf.hosts.pinning import find_unpinnable
from perf.hosts.ports import find_taken
from perf.hosts.remote import Remote
from perf.hosts.testbed import Client
from perf.model.design import Needs
from perf.model.errors import HostUnfit
from perf.systems.contract import Node

# Cassandra refuses to write into less than 50 MB by itself, and others are no better off.
_ROOM_MB = 100


def check_hosts(
    nodes: Iterable[Node],
    ports: Iterable[int],
    needs: Needs,
    clients: Iterable[Client] = (),
) -> None:
    """Check memory, disk and ports of all nodes, and what nodes and clients are to be pinned to.

    `needs` is for the whole cluster; it is shared out evenly over the nodes, and nodes on one host
    add up.

    Raises:
        HostUnfit: with every shortfall and what to do about it.

    """
    nodes = tuple(nodes)
    hosts: dict[str, list[Node]] = {}
    for node in nodes:
        hosts.setdefault(node.remote.name, []).append(node)
    problems: list[str] = []
    for placed in hosts.values():
        share = len(placed) / len(nodes)
        problems += _check_memory(placed[0].remote, round(needs.memory_mb * share))
        problems += _check_disk(placed[0], round(needs.disk_mb * share))
    names = {node.address: node.name for node in nodes}
    # A port that only one part of a cluster uses is looked at on all hosts: they may change places.
    wanted = {*ports, *(node.part.port for node in nodes if node.part)}
    problems += [
        f"{names[address]}: port {port} on {address} is in use{holder}; "
        f"stop that process, then run the same command again"
        for (address, port), holder in find_taken(names, sorted(wanted)).items()
    ]
    for node in nodes:
        problems += find_unpinnable(node.remote, node.cores, node.numa_node)
    for client in clients:
        problems += find_unpinnable(client.remote, client.host.cores, client.host.numa_node)
    if problems:
        raise HostUnfit("this testbed cannot carry the trial:\n  " + "\n  ".join(problems))


def _check_memory(remote: Remote, needed_mb: int) -> list[str]:
    pattern = "s/^MemAvailable: *\\([0-9]*\\).*/\\1/p"
    available_mb = int(remote.run(["sed", "-n", pattern, "/proc/meminfo"]).stdout) // 1024
    if available_mb >= needed_mb:
        return []
    found = f"{available_mb} MB of memory available, {needed_mb} MB needed"
    return [f"{remote.name}: {found}; end other programs"]


def _check_disk(node: Node, needed_mb: int) -> list[str]:
    free_mb, place = _read_room(node.remote, node.work_dir)
    if free_mb >= needed_mb:
        return []
    where = f"{free_mb} MB free on {place}, {needed_mb} MB needed"
    return [f"{node.remote.name}: {where}; make room, or keep the data elsewhere (--data)"]


def find_full_disk(remote: Remote, directory: str) -> str | None:
    """Say of a directory's disk that it has hardly any room left, which programs tell in many ways.

    Raises:
        StepFailed: its host cannot be asked.

    """
    free_mb, place = _read_room(remote, directory)
    if free_mb >= _ROOM_MB:
        return None
    return f"{remote.name}: {free_mb} MB are left on {place}; make room, or keep the data elsewhere"


def _read_room(remote: Remote, directory: str) -> tuple[int, str]:
    """Give the free MB of the file system of a directory, and where it is mounted."""
    # The directory may not exist yet: ask for its nearest existing parent.
    script = 'd=$1; while [ ! -e "$d" ]; do d=$(dirname "$d"); done; df -Pk "$d" | tail -n 1'
    fields = remote.run(["sh", "-c", script, "disk", directory]).stdout.split()
    return int(fields[3]) // 1024, fields[5]
