"""What is checked on all hosts of a trial: leftovers of other runs, fitness, access, full disks."""

from collections.abc import Iterable
from contextlib import suppress

from perf.hosts import leftovers
from perf.hosts.testbed import Client
from perf.load.programs import check_engines
from perf.local.progress import Progress
from perf.model.design import Deployment
from perf.model.errors import StepFailed
from perf.model.results import Reason
from perf.systems.contract import Cluster, Node, System
from perf.systems.credentials import prove_access
from perf.trial.client_access import prove_on_clients
from perf.trial.host_checks import check_hosts, find_full_disk


def end_leftovers(cluster: Cluster, progress: Progress) -> None:
    """End what an interrupted run left running on any host of the cluster, servers and engines."""
    bases = {placed.remote.name: (placed.remote, placed.base_dir) for placed in cluster.places}
    for remote, base in bases.values():
        leftovers.end_leftovers(remote, base, cluster.testbed.limits.stop_s, progress)


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


def check_access(deployment: Deployment, clients: Iterable[Client]) -> None:
    """Insist that the files of a config's `access` are there, here and on each client.

    Raises:
        AccessError: one is not, or others may use a secret.
        StepFailed: a host cannot be reached.

    """
    access = deployment.config.access
    prove_access(access)
    prove_on_clients(access, [client.remote for client in clients])


def find_full_disks(cluster: Cluster) -> tuple[Reason, ...]:
    """Return a reason for each disk of servers and engines that has hardly any room left."""
    places = {(node.remote.name, node.work_dir): node.remote for node in cluster.nodes}
    places |= {(one.remote.name, one.engines_dir): one.remote for one in cluster.clients}
    found: list[str | None] = []
    for (_, directory), remote in places.items():
        with suppress(StepFailed):  # what is out of reach is told as that
            found.append(find_full_disk(remote, directory))
    return tuple(Reason(kind="disk-full", text=text) for text in dict.fromkeys(found) if text)
