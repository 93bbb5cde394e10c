"""A sharded cluster of MongoDB on a few hosts: where its servers go, and how they are joined.

A topology with `shards` is laid on its server hosts like this. Shard number i has its first copy, which
leads, on host i, and the others on the hosts behind it, in a circle. The config servers are a replica
set of three, or of one where a shard keeps one copy or there are fewer than three hosts, on the last
hosts, which have the least to carry. Each host has a router (mongos): clients spread over all of them.

Servers on one host tell each other apart by port, and each has a directory of its own:

    27017  router         27019  config server         27020, 27021 …  a member of shard 1, 2 …

The order is that of the manual, "Deploy a Self-Managed Sharded Cluster": config servers, shards, their
replica sets, routers, addShard. Each collection is then sharded by the hash of what the workload asks
it by, whose chunks the server spreads over all shards before the first row. The balancer stays on.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from pymongo.database import Database
from pymongo.errors import OperationFailure

from perf.model.design import Topology
from perf.model.errors import NotReady
from perf.systems.contract import Cluster, Node, ServerPart

CONFIG, ROUTER = "config", "router"
CONFIG_CACHE_GB = 0.25
"""The cache of a config server, the smallest there is: it holds a few chunks' places."""

_CONFIG_SERVERS = 3
_CONFIG_PORT, _FIRST_SHARD_PORT = 2, 3  # behind that of routers
_NOT_INITIATED = 94  # the server's error code NotYetInitialized

Probe = Callable[[Node], AbstractContextManager[Any]]
"""Connects to one server alone, and raises NotReady where it does not answer."""


def place(topology: Topology, port: int) -> tuple[tuple[ServerPart, ...], ...]:
    """Return the servers of each host, in the order of the hosts; routers listen on `port`.

    A topology without shards has none.
    """
    servers, copies = topology.servers, topology.replication_factor
    hosts: list[list[ServerPart]] = [[] for _ in range(servers)]
    if topology.shards is None:
        return tuple(map(tuple, hosts))
    members = _CONFIG_SERVERS if copies > 1 and servers >= _CONFIG_SERVERS else 1
    for member in range(members):
        part = ServerPart(name=CONFIG, group=CONFIG, port=port + _CONFIG_PORT, leads=member == 0)
        hosts[servers - 1 - member].append(part)
    for shard in range(topology.shards):
        name, at = f"shard-{shard + 1}", port + _FIRST_SHARD_PORT + shard
        for copy in range(copies):
            part = ServerPart(name=name, group=name, port=at, leads=copy == 0)
            hosts[(shard + copy) % servers].append(part)
    for host in hosts:
        host.append(ServerPart(name=ROUTER, group=ROUTER, port=port, leads=False))
    return tuple(map(tuple, hosts))


def find_problems(cluster: Cluster) -> list[str]:
    """Return why a sharded topology cannot be deployed in a config."""
    topology, config = cluster.topology, cluster.config
    if _said_cache_gb(config.settings) is not None:
        return []
    why = (
        f"config {config.name}: in topology {topology.name} several members share a host, and each "
        "would take half of its memory; set settings.storage.wiredTiger.engineConfig.cacheSizeGB, "
        "which is for each of them"
    )
    return [why]


def configure(
    part: ServerPart,
    cluster: Cluster,
    base: Mapping[str, Any],
    data: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the configuration of one server: `base`, its role, its share of the config's settings.

    A router takes what is about its network and its log alone, and a config server the least cache.
    """
    settings = cluster.config.settings
    if part.group == ROUTER:
        servers = connection_string(CONFIG, groups(cluster)[CONFIG])
        its = {name: settings[name] for name in ("net", "systemLog") if name in settings}
        return merge({**base, "sharding": {"configDB": servers}}, its)
    role = "configsvr" if part.group == CONFIG else "shardsvr"
    own = {"sharding": {"clusterRole": role}, "replication": {"replSetName": part.group}}
    merged = merge({**base, **data, **own}, settings)
    if part.group == CONFIG:
        least = {"storage": {"wiredTiger": {"engineConfig": {"cacheSizeGB": CONFIG_CACHE_GB}}}}
        merged = merge(merged, least)
    return merged


def merge(base: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with the settings in it, section by section: they win."""
    merged = dict(base)
    for name, value in settings.items():
        known = merged.get(name)
        both = isinstance(known, dict) and isinstance(value, Mapping)
        merged[name] = merge(known or {}, value) if both else value
    return merged


def part_of(node: Node) -> ServerPart:
    """Return what a node of a sharded cluster is for."""
    if node.part is None:
        raise ValueError(f"{node.name} is no part of a sharded cluster")
    return node.part


def groups(cluster: Cluster) -> Mapping[str, tuple[Node, ...]]:
    """Return the members of each replica set, who leads first; the config servers are the first set."""
    found: dict[str, list[Node]] = {CONFIG: []}
    for node in cluster.nodes:
        if part_of(node).group != ROUTER:
            found.setdefault(part_of(node).group, []).append(node)
    return {
        name: tuple(sorted(of, key=lambda node: not part_of(node).leads)) for name, of in found.items()
    }


def routers(cluster: Cluster) -> tuple[Node, ...]:
    """Return the routers, one on each host."""
    return tuple(node for node in cluster.nodes if part_of(node).group == ROUTER)


def connection_string(name: str, members: Sequence[Node]) -> str:
    """Name a replica set as `mongos --configdb` and addShard take it: set/host:port,host:port."""
    return f"{name}/" + ",".join(f"{node.address}:{part_of(node).port}" for node in members)


def initiate(name: str, members: Sequence[tuple[str, int]], probe: AbstractContextManager[Any]) -> None:
    """Initiate a replica set from its first member, unless it is. `members` are (host:port, priority).

    Raises:
        NotReady: that member, or one that is asked to vote, does not answer yet.
        OperationFailure: the state of the set is not known.

    """
    with probe as client:
        try:
            client.admin.command("replSetGetStatus")
        except OperationFailure as error:
            if error.code != _NOT_INITIATED:
                raise
            listed = [
                {"_id": number, "host": host, "priority": priority}
                for number, (host, priority) in enumerate(members)
            ]
            asked: dict[str, Any] = {"_id": name, "members": listed}
            if name == CONFIG:
                asked["configsvr"] = True
            client.admin.command("replSetInitiate", asked)


def bootstrap(cluster: Cluster, probe: Probe, start: Callable[[Node], None]) -> None:
    """Join the servers of a cluster; what is done already is not done again.

    Raises:
        NotReady: a step has to wait for what the one before began.

    """
    sets = groups(cluster)
    for name, nodes in sets.items():
        hosts = [
            (f"{node.address}:{part_of(node).port}", 2 - (place > 0))
            for place, node in enumerate(nodes)
        ]
        initiate(name, hosts, probe(nodes[0]))
    for nodes in sets.values():
        require_role(nodes[0], "RSPrimary", probe)
    for router in routers(cluster):
        start(router)  # not before: it asks the config servers which shards there are
    with probe(routers(cluster)[0]) as client:
        for name in _missing_shards(cluster, client):
            client.admin.command("addShard", connection_string(name, sets[name]), name=name)


def check(cluster: Cluster, probe: Probe) -> None:
    """Require each set to have the leader that was chosen, and each router to know all shards."""
    for nodes in groups(cluster).values():
        for node in nodes:
            require_role(node, "RSPrimary" if node is nodes[0] else "RSSecondary", probe)
    for router in routers(cluster):
        require_role(router, "Mongos", probe)
        with probe(router) as client:
            if missing := _missing_shards(cluster, client):
                raise NotReady("start", router.name, f"does not know {', '.join(missing)} yet")


def require_role(node: Node, wanted: str, probe: Probe) -> None:
    """Raise NotReady unless a server answers as what it is to be, in the driver's words."""
    with probe(node) as client:
        (server,) = client.topology_description.server_descriptions().values()
    if server.server_type_name != wanted:
        why = f"answers as {server.server_type_name}, to become {wanted}"
        raise NotReady("start", node.name, why)


def shard(database: Database[dict[str, Any]], collection: str, field: str) -> None:
    """Shard a collection by the hash of a field; do nothing if it is sharded, or without routers."""
    client = database.client
    if client.is_mongos:
        client.admin.command("enableSharding", database.name)  # from 6.0 on it is by itself
        key = {field: "hashed"}
        client.admin.command("shardCollection", f"{database.name}.{collection}", key=key)


def _said_cache_gb(settings: Mapping[str, Any]) -> object:
    found: Any = settings
    for name in ("storage", "wiredTiger", "engineConfig", "cacheSizeGB"):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _missing_shards(cluster: Cluster, client: Any) -> list[str]:  # noqa: ANN401  a client, or a script
    known = {shard["_id"] for shard in client.admin.command("listShards")["shards"]}
    return [name for name in groups(cluster) if name not in {CONFIG, *known}]
