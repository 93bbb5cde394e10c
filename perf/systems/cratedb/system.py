"""CrateDB: one node or a cluster whose nodes all start at once, from the official archive.

The client side is in `perf.systems.cratedb.client` and beside it. A node's directory holds server/ (the
archive, which brings its own Java), conf/crate.yml (the release's own with the config's settings and
ours over it), conf/log4j2.properties (the release's own), data/, logs/, tmp/, gc/gc.log, server.log and
server.pid. Every node may become master, and all are named as those that elect the first one; this
suits a fresh and empty cluster only.

CrateDB refuses to run as root, and, where it listens on more than loopback, on a host that fails its
bootstrap checks: the tuning profile `cratedb` is made to pass them. It reports no merges of its
segments before 6.0, so nothing here claims to know when they are done.
"""

import hashlib
import platform
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import ClassVar

from pydantic import JsonValue
from ruamel.yaml import YAML

from perf.hosts.remote import make_directory, write_text
from perf.model.design import flatten_settings
from perf.model.errors import ConfigError, NotReady, ReleaseError
from perf.model.results import Artifact, Fact, Release, Source
from perf.releases.artifacts import copy_variable
from perf.releases.origin import Origin
from perf.systems.contract import (
    UNWRITTEN_BYTES,
    Cluster,
    Node,
    NodeFigure,
    Sessions,
    System,
)
from perf.systems.cratedb import client as crate
from perf.systems.cratedb.devops import CrateDevopsSession
from perf.systems.cratedb.keys import CrateKeyValueSession
from perf.systems.cratedb.sensor import CrateSensorSession
from perf.systems.cratedb.statements import CrateStatementSession
from perf.systems.processes import (
    Product,
    defaults_facts,
    install_archive,
    java_facts,
    list_shipped,
    read_data,
    read_pauses,
    read_shipped,
)

HTTP_PORT = 4200
TRANSPORT_PORT = 4300
POSTGRES_PORT = 5432
DOWNLOADS = "https://cdn.crate.io/downloads/releases/cratedb"
SIGNER = "90C23FC6585BC0717F8FBFC37FAAE51A06F6EAEB"
"""The key that signs the archives; the vendor's own container images check them against it."""

_PLATFORMS = {"x86_64": "x64_linux", "aarch64": "aarch64_linux"}
_SCRIPTS = ("bin/crate", "bin/crate.in.sh")
_ADDRESS = "the testbed's address of the node"
_PORT = "the port that clients and the other nodes are given"
_APART = "nodes keep to directories of their own"
_NAMED = "all nodes of the topology elect the first master"
_FORCED: Mapping[str, str] = {
    "cluster.name": "servers of one trial belong together",
    "node.name": _NAMED,
    "discovery.seed_hosts": _NAMED,
    "cluster.initial_master_nodes": _NAMED,
    "network.host": _ADDRESS,
    **dict.fromkeys(("http.port", "transport.tcp.port", "psql.port"), _PORT),
    **dict.fromkeys(("path.conf", "path.data", "path.logs"), _APART),
    "auth.host_based.enabled": "clients come without an account",
    "udc.enabled": "a host that measures calls nobody: not the vendor either",
    "CRATE_JAVA_OPTS: -Djava.io.tmpdir": _APART,
    "CRATE_GC_LOG_DIR": "pauses are read from this log",
    "CRATE_GC_LOG_FILES": "one file, so that its pauses add up over the whole life",
    "CRATE_HEAP_DUMP_PATH": _APART,
}
"""What is laid over a release's own settings, and why."""
_PROBE_S = 2.0
_LOOK_S = 15.0
_INCOMPLETE = "SELECT table_name FROM sys.health WHERE health <> 'GREEN'"
_UNCOMMITTED = (
    "SELECT node['name'], sum(translog_stats['uncommitted_size']) FROM sys.shards GROUP BY node['name']"
)


class CrateDB(Product):
    """The verbs of the contract, for one cluster. The port of HTTP is the same on every node."""

    name: ClassVar[str] = "cratedb"
    sessions: ClassVar[Sessions] = Sessions(
        sensor=CrateSensorSession.connect,
        key_value=CrateKeyValueSession.connect,
        devops=CrateDevopsSession.connect,
        statements=CrateStatementSession.connect_for,
        language="sql",
    )
    # Translogs and the state of the cluster lie there, too. Of Lucene's files, all of a segment begin
    # with an underscore, and are written once.
    kept_dirs: ClassVar[tuple[str, ...]] = ("data",)
    unchanging: ClassVar[tuple[str, ...]] = ("_*.*",)
    serving: ClassVar[frozenset[str]] = frozenset(
        (
            *("thread_pool.search.type", "thread_pool.search.size", "thread_pool.search.queue_size"),
            *("indices.breaker.query.limit", "node.store.allow_mmap"),
        )
    )

    def __init__(self, http_port: int = HTTP_PORT) -> None:
        """Keep the port that clients connect to."""
        self._http_port = http_port

    def releases(self) -> tuple[Release, ...]:
        """Return the releases of the packaged catalogue."""
        return tuple(
            Release(system=self.name, version=version, line=line, ordinal=ordinal, released_at=day)
            for line, versions in read_data(__package__, "releases.yaml").items()
            for ordinal, (version, day) in enumerate(versions.items())
        )

    def origins(self, release: Release) -> tuple[Origin, ...]:
        """Return the official archive for a machine like this one; it is signed, and has no checksum.

        Raises:
            ReleaseError: the vendor publishes none for this machine.

        """
        machine = platform.machine()
        if machine not in _PLATFORMS:
            raise ReleaseError(
                f"CrateDB {release.version}: no official archive is known for {machine}; set "
                f"{copy_variable(release)} to the path of a build that runs here"
            )
        url = f"{DOWNLOADS}/{_PLATFORMS[machine]}/crate-{release.version}.tar.gz"
        return (Origin(source=Source.ARCHIVE, location=url, checksum=f"{url}.asc", signer=SIGNER),)

    def install(self, node: Node, cluster: Cluster) -> None:
        """Link the node to the unpacked archive, unless it is."""
        install_archive(node, cluster, "bin/crate")

    def configure(self, node: Node, cluster: Cluster) -> None:
        """Write conf/, and make the directories that a node expects to be there.

        Raises:
            ConfigError: the config sets what Knickpoint decides.

        """
        text = render_config(node, cluster, self._http_port)
        for name in ("conf", "data", "logs", "gc", "tmp"):
            make_directory(node.remote, f"{node.work_dir}/{name}")
        write_text(node.remote, f"{node.work_dir}/conf/crate.yml", text)
        logging = "config/log4j2.properties"
        node.remote.run(["cp", f"{node.work_dir}/server/{logging}", f"{node.work_dir}/conf/"])

    def facts(self, cluster: Cluster) -> tuple[Fact, ...]:
        """Return the version of each archive's own Java, and what is laid over its settings."""
        return (
            *java_facts(cluster, "server/jdk/bin/java"),
            *defaults_facts("the release's own crate.yml and start scripts", _FORCED),
        )

    def defaults(self, release: Release, artifact: Artifact) -> Mapping[str, str]:
        """Return the settings of an archive's crate.yml, and digests of what starts its JVM.

        The JVM's options stand in these scripts, which are programs: that they differ is all we read.
        """
        scripts = (path for name in _SCRIPTS if (path := Path(artifact.location, name)).is_file())
        return {
            **list_shipped("crate.yml", _shipped(artifact)),
            **{
                f"bin: {path.name}": f"sha256 {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"
                for path in scripts
            },
        }

    def start(self, node: Node, cluster: Cluster) -> None:
        """Start the node with the vendor's own script, on the node's cores if it has any."""
        program = [f"{node.work_dir}/server/bin/crate", f"-Cpath.conf={node.work_dir}/conf"]
        self.run(node, program, environment(node, cluster))

    def check(self, cluster: Cluster) -> None:
        """Require each node to answer, and to see all nodes of the cluster, and all copies of all rows.

        There are tables where the cluster starts from files, and after a load.
        """
        self.require_running(cluster.nodes)
        names = {node.name for node in cluster.nodes}
        for node in cluster.nodes:
            with self._asking((node,), _PROBE_S, "start") as client:
                seen = {row[0] for row in client.ask("SELECT name FROM sys.nodes")}
            if seen != names:
                why = f"sees {', '.join(sorted(seen))}, but {', '.join(sorted(names))} were deployed"
                raise NotReady("start", node.name, why)
        with self._asking(cluster.nodes[:1], _PROBE_S, "start") as client:
            incomplete = {table for (table,) in client.ask(_INCOMPLETE)}
        if incomplete:
            why = f"lacks copies of rows of {', '.join(sorted(incomplete))}"
            raise NotReady("start", cluster.nodes[0].name, why)

    def running_versions(self, cluster: Cluster) -> tuple[tuple[str, str], ...]:
        """Ask for the version of each node."""
        with self._asking(cluster.nodes[:1], _PROBE_S, "ask") as client:
            found = client.ask("SELECT name, version['number'] FROM sys.nodes ORDER BY name")
        return tuple((name, version) for name, version in found)

    def ports(self) -> tuple[int, ...]:
        """Return the ports of HTTP, of the other nodes, and of the PostgreSQL protocol."""
        return (self._http_port, TRANSPORT_PORT, POSTGRES_PORT)

    def logs(self, node: Node) -> tuple[str, ...]:
        """Return all that the server prints, and its JVM's own log of garbage collections."""
        return (f"{node.work_dir}/server.log", _gc_log(node))

    def check_layout(self, layout: Mapping[str, JsonValue]) -> tuple[str, ...]:
        """Return what is wrong with a layout, each as "key: what, what next"."""
        return crate.check_layout(layout)

    @contextmanager
    def open_telemetry(self, cluster: Cluster) -> Iterator[Callable[[], tuple[NodeFigure, ...]]]:
        """Connect once; each call sends one statement to one node, and reads each log of pauses.

        What a node has yet to write is the part of its translog that is not yet in committed segments.
        """
        with self._asking(cluster.nodes[:1], _LOOK_S, "look") as client:
            yield lambda: (
                *_uncommitted_levels(client, cluster),
                *read_pauses(cluster, _gc_log),
            )

    @contextmanager
    def _asking(self, nodes: tuple[Node, ...], limit_s: float, step: str) -> Iterator[crate.SqlClient]:
        client = crate.SqlClient([node.address for node in nodes], self._http_port, limit_s)
        try:
            yield client
        except crate.FAILURES as error:
            raise NotReady(step, nodes[0].name, str(error)) from error
        finally:
            client.close()


def render_config(node: Node, cluster: Cluster, http_port: int) -> str:
    """Return the text of a node's crate.yml, one dotted setting a line.

    Raises:
        ConfigError: the config sets what Knickpoint decides.

    """
    config = dict(flatten_settings(cluster.config.settings))
    own = _own_settings(node, cluster, http_port)
    taken = [
        f"system cratedb, config {cluster.config.name}, settings.{way}: comes from the topology and "
        "the testbed; remove it"
        for way in sorted(config)
        if any(way == key or key.startswith(f"{way}.") for key in own)
    ]
    if taken:
        raise ConfigError(taken)
    text = StringIO()
    writer = YAML(typ="safe", pure=True)
    # A list on one line would hold addresses with a colon, which YAML 1.1 reads as something else.
    writer.default_flow_style = False
    writer.dump(_shipped(cluster.artifact) | config | own, text)
    return text.getvalue()


def _shipped(artifact: Artifact) -> dict[str, JsonValue]:
    """Return the settings of an archive's crate.yml, by their dotted ways."""
    return dict(flatten_settings(read_shipped(Path(artifact.location, "config/crate.yml")) or {}))


def _own_settings(node: Node, cluster: Cluster, http_port: int) -> dict[str, JsonValue]:
    return {
        "cluster.name": "knickpoint",
        "node.name": node.name,
        "network.host": node.address,
        "http.port": http_port,
        "transport.tcp.port": TRANSPORT_PORT,
        "psql.port": POSTGRES_PORT,
        "path.data": f"{node.work_dir}/data",
        "path.logs": f"{node.work_dir}/logs",
        "discovery.seed_hosts": [f"{peer.address}:{TRANSPORT_PORT}" for peer in cluster.nodes],
        "cluster.initial_master_nodes": [peer.name for peer in cluster.nodes],
        "auth.host_based.enabled": False,
        "udc.enabled": False,
    }


def environment(node: Node, cluster: Cluster) -> dict[str, str]:
    """Return the variables that the vendor's script reads; options of testbed and then config win."""
    config = cluster.config
    options = (
        f"-Djava.io.tmpdir={node.work_dir}/tmp",  # noqa: S108  the node's own
        *cluster.testbed.jvm_options,
        *config.jvm_options,
    )
    heap = {"CRATE_HEAP_SIZE": f"{config.heap_mb}m"} if config.heap_mb else {}
    return {
        **heap,
        # The script's shell reads this a second time, hence the quotes.
        "CRATE_JAVA_OPTS": shlex.join(options),
        "CRATE_GC_LOG_DIR": f"{node.work_dir}/gc",
        "CRATE_GC_LOG_FILES": "0",
        "CRATE_HEAP_DUMP_PATH": node.work_dir,
    }


def _uncommitted_levels(client: crate.SqlClient, cluster: Cluster) -> Iterator[NodeFigure]:
    try:
        found = {name: float(size or 0) for name, size in client.ask(_UNCOMMITTED)}
    except (crate.FAILURES, TypeError, ValueError) as error:
        raise NotReady("look", cluster.nodes[0].name, str(error)) from error
    for node in cluster.nodes:
        # A node without a shard has nothing to write.
        yield NodeFigure(node=node.name, name=UNWRITTEN_BYTES, value=found.get(node.name, 0.0))


def _gc_log(node: Node) -> str:
    return f"{node.work_dir}/gc/gc.log"


SYSTEM: System = CrateDB()
