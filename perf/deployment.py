"""Place a deployment on its testbed: nodes with addresses, hosts and directories of their own."""

from pathlib import Path

from perf.design import Deployment, Host, Testbed
from perf.errors import ConfigError
from perf.model import Artifact, Release
from perf.remote import LocalHost, Remote, SshHost
from perf.systems import registry
from perf.systems.contract import Cluster, Node, Part, RunsParts


def open_host(testbed: Testbed, host: Host) -> Remote:
    """Give the remote of a host; nothing is connected before it is used.

    Hosts of a local testbed are one machine, so they share one name.
    """
    if testbed.transport == "local":
        return LocalHost()
    options = ("-F", testbed.ssh_config) if testbed.ssh_config else ()
    return SshHost(host.name, host.address, host.user, host.port, options)


def place_nodes(deployment: Deployment, run_dir: Path) -> tuple[Node, ...]:
    """Lay the topology's servers on the testbed's server hosts, in their order.

    `run_dir` holds the node directories of a local testbed that names no `node_dir`. The configuration
    was checked to have enough hosts. With shards, a host has several nodes, as the system says.

    Raises:
        ConfigError: the topology has shards, and the system cannot be deployed in them.

    """
    testbed = deployment.testbed
    servers = [host for host in testbed.hosts if host.role == "server"]
    placed: list[tuple[Host, Part | None]] = []
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


def _parts(deployment: Deployment) -> tuple[tuple[Part | None, ...], ...]:
    """Give what runs on each server host: one server that does all, or parts."""
    topology, name = deployment.topology, deployment.experiment.system
    if topology.shards is None:
        return ((None,),) * topology.servers
    system = registry.load(name)
    if isinstance(system, RunsParts):
        return system.parts(topology)
    raise ConfigError(
        [f"topology {topology.name}: system {name} is not deployed in shards; remove shards"]
    )


def price_per_hour_usd(testbed: Testbed, servers: int) -> float | None:
    """Give what the hosts of so many servers cost in an hour; None where the testbed states no price.

    Hosts of clients are not counted: they are the instrument. In use, the load comes from applications
    that are there anyway, and a faster generator must not make a database look dearer.
    """
    hosts = [host for host in testbed.hosts if host.role == "server"][:servers]
    prices = [host.price_per_hour_usd for host in hosts if host.price_per_hour_usd is not None]
    return sum(prices) if prices and len(prices) == len(hosts) else None


def place(deployment: Deployment, release: Release, artifact: Artifact, run_dir: Path) -> Cluster:
    """Give the cluster that a trial of this release deploys."""
    return Cluster(
        release=release,
        artifact=artifact,
        nodes=place_nodes(deployment, run_dir),
        topology=deployment.topology,
        testbed=deployment.testbed,
        config=deployment.config,
    )


def base_dir(testbed: Testbed, host: Host, run_dir: Path) -> str:
    """Give where files of a host's nodes and engines belong: `run_dir` on a local testbed."""
    return str(run_dir.absolute()) if testbed.transport == "local" else host.work_dir


def client_hosts(testbed: Testbed, count: int) -> tuple[tuple[Host, Remote], ...]:
    """Give the first `count` client hosts of a testbed with their remotes."""
    clients = [host for host in testbed.hosts if host.role == "client"]
    return tuple((host, open_host(testbed, host)) for host in clients[:count])
