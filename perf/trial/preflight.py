"""What is checked on all hosts of a trial: leftovers of other runs, fitness, access, full disks.

All shortfalls are reported at once. Host facts that must be equal from night to night (tuning) are
another matter and are proven elsewhere.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from perf.hosts import leftovers
from perf.hosts.fresh_disk import freshen
from perf.hosts.pinning import find_unpinnable
from perf.hosts.ports import find_taken
from perf.hosts.remote import Remote, make_directory
from perf.hosts.testbed import Client
from perf.hosts.tuning.readiness import check_readiness
from perf.load.own_program import check_program
from perf.load.programs import check_engines
from perf.local.progress import Progress
from perf.model.design import Deployment, Needs
from perf.model.errors import HostUnfit, StepFailed
from perf.model.results import Fact, Reason, Release
from perf.systems.contract import Cluster, Node, System, name_profile
from perf.systems.credentials import prove_access
from perf.trial.client_access import prove_on_clients
from perf.trial.placement import place_hosts

# Cassandra refuses to write into less than 50 MB by itself, and others are no better off.
_ROOM_MB = 100


def end_leftovers(cluster: Cluster, progress: Progress) -> None:
    """End what an interrupted run left running on any host of the cluster, servers and engines."""
    bases = {placed.remote.name: (placed.remote, placed.base_dir) for placed in cluster.places}
    for remote, base in bases.values():
        leftovers.end_leftovers(remote, base, cluster.testbed.limits.stop_s, progress)


def check_ahead(
    deployment: Deployment, system: System, releases: Iterable[Release], run_dir: Path
) -> None:
    """Insist on what all trials of a deployment will insist on, at these releases; change nothing.

    Raises:
        AccessError: as `check_access`.
        HostUnfit: as `check_fitness`, or hosts are not tuned and no switch of profiles helps.
        StepFailed: a host cannot be reached.

    """
    placed = place_hosts(deployment, run_dir)
    check_access(deployment, placed.clients)
    check_fitness(deployment, system, placed.nodes, placed.clients)
    for profile in sorted({name_profile(system, release) for release in releases}):
        check_readiness(deployment, profile, run_dir)


def check_fitness(
    deployment: Deployment, system: System, nodes: Iterable[Node], clients: Iterable[Client]
) -> None:
    """Insist that hosts can carry a trial, and that its engine is on each client.

    Servers that an interrupted run left behind hold ports and memory, until a trial ends them: while
    one of them runs, servers' hosts are not looked at.

    Raises:
        HostUnfit: with every shortfall and what to do about it.

    """
    nodes, clients = tuple(nodes), tuple(clients)
    if not any(map(system.is_running, nodes)):
        check_hosts(nodes, system.ports(), deployment.testbed.needs, clients)
    check_engines(deployment.engine, clients)
    if deployment.workload.program:
        check_program(deployment.workload.program, clients)


def check_access(deployment: Deployment, clients: Iterable[Client]) -> None:
    """Insist that the files of a config's `access` are there, here and on each client.

    Raises:
        AccessError: one is not, or others may use a secret.
        StepFailed: a host cannot be reached.

    """
    access = deployment.config.access
    prove_access(access)
    prove_on_clients(access, [client.remote for client in clients])


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
    free_mb, place = read_room(node.remote, node.work_dir)
    if free_mb >= needed_mb:
        return []
    where = f"{free_mb} MB free on {place}, {needed_mb} MB needed"
    return [f"{node.remote.name}: {where}; make room, or keep the data elsewhere (--data)"]


def freshen_disks(cluster: Cluster, progress: Progress) -> tuple[Fact, ...]:
    """Do to page cache and disk of each server host what the testbed's policy says; give facts.

    Raises:
        HostUnfit: a host does not let it be done.

    """
    policy = cluster.testbed.disk
    if policy is None:
        return ()
    facts: list[Fact] = []
    for node in {node.remote.name: node for node in cluster.nodes}.values():
        make_directory(node.remote, node.work_dir)
        found, said = freshen(node.remote, node.work_dir, policy)
        facts += found
        progress.report(f"{node.remote.name}: fresh disk: {'; '.join(said)}")
    return tuple(facts)


def find_full_disks(cluster: Cluster) -> tuple[Reason, ...]:
    """Return a reason for each disk of servers and engines that has hardly any room left.

    Programs tell of that in many ways.
    """
    places = {(node.remote.name, node.work_dir): node.remote for node in cluster.nodes}
    places |= {(one.remote.name, one.engines_dir): one.remote for one in cluster.clients}
    found: dict[str, Reason] = {}
    for (name, directory), remote in places.items():
        with suppress(StepFailed):  # what is out of reach is reported as that
            free_mb, place = read_room(remote, directory)
            if free_mb < _ROOM_MB:
                left = f"{name}: {free_mb} MB are left on {place}"
                text = f"{left}; make room, or keep the data elsewhere"
                found[text] = Reason(kind="disk-full", text=text)
    return tuple(found.values())


def read_room(remote: Remote, directory: str) -> tuple[int, str]:
    """Return the free MB of the file system of a directory, and where it is mounted."""
    # The directory may not exist yet: ask for its nearest existing parent.
    script = 'd=$1; while [ ! -e "$d" ]; do d=$(dirname "$d"); done; df -Pk "$d" | tail -n 1'
    fields = remote.run(["sh", "-c", script, "disk", directory]).stdout.split()
    return int(fields[3]) // 1024, fields[5]
