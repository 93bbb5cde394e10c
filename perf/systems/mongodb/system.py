"""MongoDB Community Server: stand-alone, a replica set with one member on each node, or sharded.

The client side is in `perf.systems.mongodb.client`, what only sharded clusters have in
`perf.systems.mongodb.shards`. The primary, to which reads go, is the first node of a set: it has the
higher priority, so it is the same host from trial to trial. Journalling is the server's default.
"""

import math
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from io import StringIO
from typing import ClassVar

from pydantic import JsonValue
from pymongo.errors import PyMongoError
from ruamel.yaml import YAML

from perf.hosts.remote import make_directory, write_text
from perf.model.access import Access
from perf.model.design import Topology
from perf.model.errors import ConfigError, NotReady, ReleaseError, StepFailed
from perf.model.results import Fact, Release, Source
from perf.model.sources import DEV
from perf.releases.artifacts import copy_variable
from perf.releases.origin import Origin
from perf.systems.contract import (
    UNWRITTEN_BYTES,
    Cluster,
    Node,
    NodeFigure,
    ServerPart,
    Sessions,
    System,
    Target,
)
from perf.systems.mongodb import layout as mongo_layout
from perf.systems.mongodb import shards as mongo_shards
from perf.systems.mongodb.access import tls_settings
from perf.systems.mongodb.client import (
    REPLICA_SET,
    Client,
    Document,
    MongoSession,
    await_answer,
    open_client,
)
from perf.systems.mongodb.devops import MongoDevopsSession
from perf.systems.mongodb.keys import MongoKeyValueSession
from perf.systems.mongodb.statements import MongoStatementSession
from perf.systems.processes import (
    ServerProcess,
    defaults_facts,
    install_archive,
    read_data,
    refuse_jvm,
)

DOWNLOADS = "https://fastdl.mongodb.org/linux"
_FIRST_WITH_HUGE_PAGES = 8
_PROBE_S = 2.0
_LOOK_S = 15.0
_UNWRITTEN = "tracked dirty bytes in the cache"

# What is laid over the defaults of the release, which are in its code, and why.
_FORCED: Mapping[str, str] = {
    "net.bindIp": "the testbed's address of the node",
    "net.port": "the port that clients and members are given",
    "net.unixDomainSocket": "its file is named after the port, which members on one host share",
    "processManagement.fork": "the process is watched by its own pid",
    "storage.dbPath": "nodes keep to directories of their own",
    "replication.replSetName": "the topology's members are a set",
    "sharding.clusterRole": "the topology's shards",
    "sharding.configDB": "the topology's shards",
}

# Settings that follow from topology and testbed, by section: no config may set them.
_OWNED = {
    "net": ("bindIp", "bindIpAll", "port", "unixDomainSocket", "tls"),
    "storage": ("dbPath",),
    "replication": ("replSetName",),
    "sharding": ("clusterRole", "configDB"),
    "processManagement": ("fork",),
    "systemLog": ("destination", "path"),
}


class MongoDB(ServerProcess):
    """The MongoDB system. `port` is the same on every node."""

    name: ClassVar[str] = "mongodb"
    sessions: ClassVar[Sessions] = Sessions(
        sensor=MongoSession.connect,
        key_value=MongoKeyValueSession.connect,
        devops=MongoDevopsSession.connect,
        statements=MongoStatementSession.connect_for,
        language="mongodb",
        native_engine=True,
    )
    # A clean shutdown ends with a checkpoint. WiredTiger changes its files in place: all are copied.
    kept_dirs: ClassVar[tuple[str, ...]] = ("data",)
    unchanging: ClassVar[tuple[str, ...]] = ()
    serving: ClassVar[frozenset[str]] = frozenset(
        (
            "storage.wiredTiger.engineConfig.cacheSizeGB",
            "setParameter.wiredTigerConcurrentReadTransactions",
            "net.maxIncomingConnections",
        )
    )

    def __init__(self, port: int = 27_017) -> None:
        """Keep the port that nodes listen on."""
        self._port = port

    def releases(self) -> tuple[Release, ...]:
        """Return the releases of the packaged catalogue."""
        return tuple(
            Release(
                system=self.name, version=f"{line}.{patch}", line=line, ordinal=patch, released_at=day
            )
            for line, patches in read_data(__package__, "releases.yaml").items()
            for patch, day in patches.items()
        )

    def origins(self, release: Release) -> tuple[Origin, ...]:
        """Return the vendor's archive for the Linux of this machine, with its published checksum.

        Servers of a testbed are expected to run the same Linux as the machine that measures.

        Raises:
            ReleaseError: the vendor publishes no build for this Linux.

        """
        host = _describe_host()
        patches = read_data(__package__, "builds.yaml").get(host, {}).get(release.line, {})
        builds = [build for first, build in patches.items() if first <= release.ordinal]
        if not builds:
            raise ReleaseError(
                f"MongoDB {release.version}: no official build is known for {host}; "
                f"choose a release that has one, or set {copy_variable(release)} to the path of a "
                "build that runs here (see `knickpoint releases --help`)"
            )
        url = f"{DOWNLOADS}/mongodb-linux-{platform.machine()}-{builds[-1]}-{release.version}.tgz"
        return (Origin(source=Source.ARCHIVE, location=url, checksum=f"{url}.sha256"),)

    def tuning(self, release: Release) -> str:
        """Return the tuning profile of server hosts: 8.0 turned the advice on huge pages round."""
        # Builds of commits are newer than any release.
        major = math.inf if release.line.endswith(DEV) else int(release.version.partition(".")[0])
        return "mongodb-thp-on" if major >= _FIRST_WITH_HUGE_PAGES else "mongodb-thp-off"

    def parts(self, topology: Topology) -> tuple[tuple[ServerPart, ...], ...]:
        """Return the servers of each host of a sharded cluster."""
        return mongo_shards.place(topology, self._port)

    def install(self, node: Node, cluster: Cluster) -> None:
        """Link the node to the unpacked build, unless it is."""
        install_archive(node, cluster, f"bin/{_program(node)}")

    def configure(self, node: Node, cluster: Cluster) -> None:
        """Write the server's configuration: the config's settings in what topology and testbed decide.

        Raises:
            ConfigError: the config sets what Knickpoint decides, or does not fit the topology.

        """
        if problems := _find_problems(cluster):
            raise ConfigError(problems)
        text, yaml = StringIO(), YAML(typ="safe", pure=True)
        yaml.default_flow_style = False  # where a colon in a host's name would need quotes
        yaml.dump(self._settings(node, cluster), text)
        make_directory(node.remote, f"{node.work_dir}/data")
        write_text(node.remote, f"{node.work_dir}/{_program(node)}.conf", text.getvalue())

    def facts(self, cluster: Cluster) -> tuple[Fact, ...]:
        """Return what is laid over the defaults, which an archive has in its code alone."""
        written = [self._settings(node, cluster) for node in cluster.nodes]
        forced = {"GLIBC_TUNABLES": "as in the vendor's own service file: leaves rseq to its caches"}
        for key, why in _FORCED.items():
            section, _, name = key.partition(".")
            if any(_sets(settings.get(section), name) for settings in written):
                forced[key] = why
        if cluster.topology.shards is not None:
            forced["cacheSizeGB of config servers"] = (
                "they hold little, and take no memory of the others"
            )
        return defaults_facts("in the release's code", forced)

    def _settings(self, node: Node, cluster: Cluster) -> Document:
        base: Document = {
            # Members on one host have the same port, so a socket file named after it would clash.
            "net": {
                "bindIp": node.address,
                "port": self._port_of(node),
                "unixDomainSocket": {"enabled": False},
                **tls_settings(node, cluster.config.access),
            },
            "processManagement": {"fork": False},
        }
        data = {"storage": {"dbPath": f"{node.work_dir}/data"}}
        if node.part is None:
            base |= data
            if len(cluster.nodes) > 1:
                base["replication"] = {"replSetName": REPLICA_SET}
            return mongo_shards.merge(base, cluster.config.settings)
        return mongo_shards.configure(node.part, cluster, base, data)

    def start(self, node: Node, cluster: Cluster) -> None:
        """Start the server, on the node's cores if it has any; routers are started by `bootstrap`."""
        if node.part is None or node.part.group != mongo_shards.ROUTER:
            self._start(node)

    def _start(self, node: Node) -> None:
        name = _program(node)
        program = [f"{node.work_dir}/server/bin/{name}", "--config", f"{node.work_dir}/{name}.conf"]
        self.run(node, program, {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"})

    def bootstrap(self, cluster: Cluster) -> None:
        """Initiate the replica set from the first node, or join the shards; do nothing for one node."""
        if cluster.topology.shards is not None:
            mongo_shards.bootstrap(cluster, self._prober(cluster), self._start)
        elif len(cluster.nodes) > 1:
            members = [
                (f"{node.address}:{self._port}", 1 if place else 2)
                for place, node in enumerate(cluster.nodes)
            ]
            mongo_shards.initiate(REPLICA_SET, members, self._prober(cluster)(cluster.nodes[0]))

    def check(self, cluster: Cluster) -> None:
        """Require the first node of each set to accept writes, and all others to follow it."""
        self.require_running(cluster.nodes)
        if cluster.topology.shards is not None:
            mongo_shards.check(cluster, self._prober(cluster))
            return
        for node in cluster.nodes:
            wanted = "Standalone"
            if len(cluster.nodes) > 1:
                wanted = "RSPrimary" if node is cluster.nodes[0] else "RSSecondary"
            mongo_shards.require_role(node, wanted, self._prober(cluster))

    def running_versions(self, cluster: Cluster) -> tuple[tuple[str, str], ...]:
        """Ask each node for its version."""
        return tuple((node.name, self._ask_version(node, cluster)) for node in cluster.nodes)

    def ports(self) -> tuple[int, ...]:
        """Return the one port, for clients and members alike."""
        return (self._port,)

    def target(self, cluster: Cluster, *, consistency: str, timeout_s: float) -> Target:
        """Return all members' addresses, or those of the routers."""
        said = super().target(cluster, consistency=consistency, timeout_s=timeout_s)
        if cluster.topology.shards is None:
            return said
        addresses = tuple(node.address for node in mongo_shards.routers(cluster))
        return replace(said, addresses=addresses, routers=True)

    def check_layout(self, layout: Mapping[str, JsonValue]) -> tuple[str, ...]:
        """Return what is wrong with a layout; the words are those of `perf.systems.mongodb.layout`."""
        return mongo_layout.check_layout(layout)

    def check_access(self, access: Access) -> tuple[str, ...]:
        """Refuse an account: nobody creates one in a server that starts from nothing."""
        if access.username is None:
            return ()
        what = "is for servers with accounts, and those that are started here have none; remove it"
        return (f"username: {what}, and what says where its password is",)

    @contextmanager
    def open_telemetry(self, cluster: Cluster) -> Iterator[Callable[[], tuple[NodeFigure, ...]]]:
        """Connect to each node once; each call asks WiredTiger what it has yet to write.

        A server has no pauses to tell of, and compacts only when it is told to.
        """
        with ExitStack() as clients:
            members = tuple(
                (
                    node,
                    clients.enter_context(
                        open_client(
                            (node.address,), self._port_of(node), _LOOK_S, cluster.config.access
                        )
                    ),
                )
                for node in cluster.nodes
                if _program(node) == "mongod"
            )
            yield lambda: tuple(_unwritten(node, client) for node, client in members)

    @contextmanager
    def _probe(self, access: Access | None, node: Node) -> Iterator[Client]:
        where = (node.address,), self._port_of(node)
        try:
            with open_client(*where, _PROBE_S, access) as client:
                await_answer(client, *where, access)
                yield client
        except PyMongoError as error:
            raise NotReady("start", node.name, str(error)) from error

    def _port_of(self, node: Node) -> int:
        return node.part.port if node.part else self._port

    def _prober(self, cluster: Cluster) -> mongo_shards.Probe:
        return partial(self._probe, cluster.config.access)

    def _ask_version(self, node: Node, cluster: Cluster) -> str:
        with self._probe(cluster.config.access, node) as client:
            return str(client.server_info()["version"])


def _program(node: Node) -> str:
    return "mongos" if node.part and node.part.group == mongo_shards.ROUTER else "mongod"


def _unwritten(node: Node, client: Client) -> NodeFigure:
    sections = {"repl": 0, "metrics": 0, "locks": 0, "tcmalloc": 0}  # left out, to cost little
    try:
        status = client.admin.command({"serverStatus": 1, **sections})
    except PyMongoError as error:
        raise NotReady("look", node.name, str(error)) from error
    try:
        unwritten = float(status["wiredTiger"]["cache"][_UNWRITTEN])
    except (KeyError, TypeError, ValueError) as error:
        why = f"its serverStatus has no wiredTiger.cache.{_UNWRITTEN!r}"
        raise StepFailed("look", node.name, why) from error
    return NodeFigure(node=node.name, name=UNWRITTEN_BYTES, value=unwritten)


def _describe_host() -> str:
    try:
        about = platform.freedesktop_os_release()
    except OSError:
        return f"unknown {platform.machine()}"
    family, version = about["ID"], about.get("VERSION_ID", "")
    if "rhel" in (family, *about.get("ID_LIKE", "").split()):
        family, version = "rhel", version.partition(".")[0]
    return f"{family}-{version} {platform.machine()}"


def _find_problems(cluster: Cluster) -> list[str]:
    config, topology = cluster.config, cluster.topology
    problems = [
        f"config {config.name}: settings.{section}.{name} follows from topology and testbed; remove it"
        for section, names in _OWNED.items()
        for name in names
        if _sets(config.settings.get(section), name)
    ]
    problems += refuse_jvm(config, "settings.storage.wiredTiger.engineConfig.cacheSizeGB")
    if topology.shards is not None:
        problems += mongo_shards.find_problems(cluster)
    elif topology.replication_factor != len(cluster.nodes):
        problems.append(
            f"topology {topology.name}: replication_factor is {topology.replication_factor}, but a "
            f"replica set keeps a copy on each of its {len(cluster.nodes)} nodes; make them equal"
        )
    return problems


def _sets(section: object, name: str) -> bool:
    # A section that is no mapping replaces the whole section, and with it what we put there.
    return name in section if isinstance(section, Mapping) else section is not None


SYSTEM: System = MongoDB()
