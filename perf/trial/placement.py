"""Place a deployment on its testbed: nodes and clients with hosts and directories of their own."""

from dataclasses import dataclass
from pathlib import Path

from perf.hosts.testbed import Client, base_dir, open_host, place_clients
from perf.model.design import Deployment, Host
from perf.model.errors import ConfigError
from perf.model.results import Artifact, Release
from perf.systems import registry
from perf.systems.contract import Cluster, Node, RunsParts, ServerPart


def place_nodes(deployment: Deployment, run_dir: Path) -> tuple[Node, ...]:
    """Lay the topology's servers on the testbed's server hosts, in their order.

    `run_dir` holds the node directories of a local testbed that names no `node_dir`. The configuration
    was checked to have enough hosts. With shards, a host has several nodes, as the system says. An
    attached cluster has none: its servers are somebody else's.

    Raises:
        ConfigError: the topology has shards, and the system cannot be deployed in them.

    """
    testbed = deployment.testbed
    if testbed.attached:
        return ()
    servers = [host for host in testbed.hosts if host.role == "server"]
    placed: list[tuple[Host, ServerPart | None]] = []
    for host, parts in zip(servers, _parts(deployment), strict=False):
        placed += ((host, part) for part in parts)
    nodes = []
    for index, (host, part) in enumerate(placed):
        name = f"{host.name}-{part.name}" if part else host.name
        base = testbed.node_dir or base_dir(testbed, host, run_dir)
        node = Node(
            name=name,
            index=index,
            address=host.address,
            remote=open_host(testbed, host),
            work_dir=f"{base}/{deployment.experiment.system}/{name}",
            cores=host.cores,
            numa_node=host.numa_node,
            part=part,
        )
        nodes.append(node)
    return tuple(nodes)


def _parts(deployment: Deployment) -> tuple[tuple[ServerPart | None, ...], ...]:
    """Return what runs on each server host: one server that does all, or parts."""
    topology, name = deployment.topology, deployment.experiment.system
    if topology.shards is None:
        return ((None,),) * topology.servers
    system = registry.load(name)
    if isinstance(system, RunsParts):
        return system.parts(topology)
    raise ConfigError(
        [f"topology {topology.name}: system {name} is not deployed in shards; remove shards"]
    )


@dataclass(frozen=True, slots=True)
class PlacedHosts:
    """Where servers and load of a deployment run, at whichever release."""

    nodes: tuple[Node, ...]
    clients: tuple[Client, ...]


def place_hosts(deployment: Deployment, run_dir: Path) -> PlacedHosts:
    """Return the nodes and clients of a deployment; nothing is connected.

    Raises:
        ConfigError: as `place_nodes`.

    """
    count = deployment.topology.clients
    return PlacedHosts(
        nodes=place_nodes(deployment, run_dir),
        clients=place_clients(deployment.testbed, count, run_dir),
    )


def place(deployment: Deployment, release: Release, artifact: Artifact, run_dir: Path) -> Cluster:
    """Return the cluster that a trial of this release deploys."""
    placed = place_hosts(deployment, run_dir)
    return Cluster(
        release=release,
        artifact=artifact,
        nodes=placed.nodes,
        clients=placed.clients,
        topology=deployment.topology,
        testbed=deployment.testbed,
        config=deployment.config,
    )
