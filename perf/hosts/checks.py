"""Can the hosts carry the trial? Memory, disk and ports, checked before anything is started.

All shortfalls are reported at once. Host facts that must be equal from night to night (tuning) are
another matter and are proven elsewhere.
"""

import contextlib
import socket
from collections.abc import Iterable

import psutil

from perf.design import Needs
from perf.errors import HostUnfit
from perf.remote import LocalHost, Remote
from perf.systems.contract import Node

_CONNECT_S = 0.5


def check_hosts(nodes: Iterable[Node], ports: Iterable[int], needs: Needs) -> None:
    """Check memory, disk and ports of all nodes.

    `needs` is for the whole cluster; it is shared out evenly over the nodes, and nodes on one host
    add up.

    Raises:
        HostUnfit: with every shortfall and what to do about it.

    """
    nodes, ports = tuple(nodes), tuple(ports)
    hosts: dict[str, list[Node]] = {}
    for node in nodes:
        hosts.setdefault(node.remote.name, []).append(node)
    problems: list[str] = []
    for placed in hosts.values():
        share = len(placed) / len(nodes)
        problems += _check_memory(placed[0].remote, round(needs.memory_mb * share))
        problems += _check_disk(placed[0], round(needs.disk_mb * share))
    for node in nodes:
        problems += [_describe(node, port) for port in ports if _is_taken(node.address, port)]
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
    # The directory may not exist yet: ask for its nearest existing parent.
    script = 'd=$1; while [ ! -e "$d" ]; do d=$(dirname "$d"); done; df -Pk "$d" | tail -n 1'
    fields = node.remote.run(["sh", "-c", script, "disk", node.work_dir]).stdout.split()
    free_mb = int(fields[3]) // 1024
    if free_mb >= needed_mb:
        return []
    where = f"{free_mb} MB free on {fields[5]}, {needed_mb} MB needed"
    return [f"{node.remote.name}: {where}; make room, or keep the data elsewhere (--data)"]


def _is_taken(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=_CONNECT_S).close()
    except OSError:
        return False
    return True


def _describe(node: Node, port: int) -> str:
    holder = _holder(node, port)
    return (
        f"{node.name}: port {port} on {node.address} is in use{holder}; "
        "stop that process, then run the same command again"
    )


def _holder(node: Node, port: int) -> str:
    if not isinstance(node.remote, LocalHost):
        return ""
    with contextlib.suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            at = connection.laddr
            if connection.status == psutil.CONN_LISTEN and at and at.port == port and connection.pid:
                process = psutil.Process(connection.pid)
                return f" by pid {process.pid} ({process.name()})"
    return ""
