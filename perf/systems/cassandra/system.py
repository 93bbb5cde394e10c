"""Apache Cassandra: a ring with fixed tokens whose nodes all start at once.

A node's directory holds `release` and `java` (links), conf/, data/ and its other directories, native/,
system.log, gc.log and server.pid. Both forms of a release, the official archive and the set of
libraries from Maven, have their jars under lib/ and are started by the same command, so that they
compare.

Tokens: each node owns `num_tokens` of them (16, the default of every line here), computed so that all
ranges have one size and neighbours belong to different nodes. Every node is a seed, and seeds do not
wait for each other; this suits a fresh and empty ring only.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from io import StringIO
from itertools import takewhile
from pathlib import Path
from typing import ClassVar, TypeAlias

from pydantic import JsonValue
from ruamel.yaml import YAML

from perf.hosts.remote import (
    LocalHost,
    make_directory,
    remove_tree,
    write_text,
)
from perf.model.access import Access
from perf.model.errors import ConfigError, NotReady
from perf.model.results import Artifact, Fact, Release, Source
from perf.model.sources import DEV
from perf.releases import java
from perf.releases.origin import Origin
from perf.releases.versions import place_version
from perf.systems.cassandra import defaults
from perf.systems.cassandra.access import FAST_ACCOUNT, access_settings
from perf.systems.contract import (
    COMPACTION_PENDING_TASKS,
    COMPACTION_REMAINING_BYTES,
    Cluster,
    Node,
    NodeFigure,
    Sessions,
    System,
)
from perf.systems.cql import client as cql
from perf.systems.cql import layout as cql_layout
from perf.systems.cql.devops import CqlDevopsSession
from perf.systems.cql.keys import CqlKeyValueSession
from perf.systems.cql.place import CqlPlace
from perf.systems.cql.statements import CqlStatementSession
from perf.systems.processes import (
    Product,
    defaults_facts,
    java_facts,
    put_release,
    read_data,
    read_pauses,
    require_port,
)

NATIVE_PORT = 9042
STORAGE_PORT = 7000
_ARCHIVE = "https://archive.apache.org/dist/cassandra"
# One major version per line, so that a line is measured on one Java: 4.x does not support 17.
_JAVA_MAJOR = {"4.0": 11, "4.1": 11, "5.0": 17, "6.0": 17}
_SYNC_PERIODS = {"commitlog_sync_period", "commitlog_sync_period_in_ms"}
_BUSY_POOLS = ("CompactionExecutor", "MemtableFlushWriter", "MemtableReclaimMemory")

Settings: TypeAlias = dict[str, JsonValue]


class Cassandra(CqlPlace, Product):
    """The verbs of the contract, for one ring."""

    name: ClassVar[str] = "cassandra"
    sessions: ClassVar[Sessions] = Sessions(
        sensor=cql.CqlSession.connect,
        key_value=CqlKeyValueSession.connect,
        devops=CqlDevopsSession.connect,  # before 4.1, none of its queries can be asked
        statements=CqlStatementSession.connect_for,
        language="cql",
        native_engine=True,
    )
    # A clean shutdown flushes all tables, so nothing is left in the commit log.
    kept_dirs: ClassVar[tuple[str, ...]] = ("data",)
    unchanging: ClassVar[tuple[str, ...]] = cql_layout.UNCHANGING_FILES
    # Some end in a unit before 4.1. What compacts or flushes is none of them: it shapes files.
    serving: ClassVar[frozenset[str]] = frozenset(
        (
            *("concurrent_reads", "native_transport_max_threads", "disk_access_mode"),
            *("key_cache_size", "row_cache_size", "file_cache_size", "file_cache_enabled"),
            *("key_cache_size_in_mb", "row_cache_size_in_mb", "file_cache_size_in_mb"),
            *("column_index_cache_size", "column_index_cache_size_in_kb"),
        )
    )

    def releases(self) -> tuple[Release, ...]:
        """Return the releases of the packaged catalog."""
        found = []
        for line, entries in read_data(__package__, "releases.yaml").items():
            for entry in entries:
                version = entry["version"]
                _, ordinal = place_version(version) or (line, 0)
                found.append(
                    Release(
                        system=self.name,
                        version=version,
                        line=line,
                        ordinal=ordinal,
                        released_at=entry.get("released_at"),
                    )
                )
        return tuple(found)

    def origins(self, release: Release) -> tuple[Origin, ...]:
        """Return the official archive, then the release's set of libraries on Maven."""
        version = release.version
        archive = f"{_ARCHIVE}/{version}/apache-cassandra-{version}-bin.tar.gz"
        packaged = read_data(__package__, "releases.yaml").get(release.line, ())
        digest = next(
            (one.get("libraries_sha256", "") for one in packaged if one["version"] == version), ""
        )
        coordinate = f"org.apache.cassandra:cassandra-all:{version}"
        return (
            Origin(source=Source.ARCHIVE, location=archive, checksum=f"{archive}.sha512"),
            Origin(source=Source.MAVEN, location=coordinate, checksum=digest),
        )

    def install(self, node: Node, cluster: Cluster) -> None:
        """Link the node to a verified copy of the release and to a Java; bring what its host lacks."""
        make_directory(node.remote, node.work_dir)
        for name, target in (
            ("release", put_release(node, cluster)),
            ("java", _put_java(node, cluster)),
        ):
            node.remote.run(["ln", "-sfn", target, f"{node.work_dir}/{name}"])

    def configure(self, node: Node, cluster: Cluster) -> None:
        """Write conf/, and the directory for what native libraries unpack.

        Raises:
            ConfigError: the config sets what Knickpoint decides, or wants what the release has not.

        """
        _refuse_layout(cluster)
        conf = f"{node.work_dir}/conf"
        make_directory(node.remote, conf)
        make_directory(node.remote, f"{node.work_dir}/native")
        write_text(node.remote, f"{conf}/cassandra.yaml", render_config(node, cluster))
        write_text(node.remote, f"{conf}/logback.xml", _read_data("logback.xml"))

    def facts(self, cluster: Cluster) -> tuple[Fact, ...]:
        """Return the version of each node's Java, where defaults are from, and what is forced."""
        is_own = defaults.read_settings(cluster.artifact.location) is not None
        whose = (
            "the release's own conf/" if is_own else "in the release's code; JVM options Knickpoint's"
        )
        return (*java_facts(cluster, "java"), *defaults_facts(whose, list_laid_over(cluster)))

    def defaults(self, release: Release, artifact: Artifact) -> Mapping[str, str]:
        """Return the settings and JVM options that an artifact's own conf/ has."""
        return defaults.list_defaults(artifact.location, _java_major(release))

    def start(self, node: Node, cluster: Cluster) -> None:
        """Start the node's JVM."""
        self.run(node, java_command(node, cluster))

    def check(self, cluster: Cluster) -> None:
        """Ask, cheapest first: lives each process, is each port open, does each node see the others."""
        self.require_running(cluster.nodes)
        for node in cluster.nodes:
            require_port(node, NATIVE_PORT)
        for node, peers in cql.ask_each(cluster, NATIVE_PORT, "SELECT peer FROM system.peers_v2"):
            if len(peers) != len(cluster.nodes) - 1:
                why = f"sees {len(peers)} of its {len(cluster.nodes) - 1} peers"
                raise NotReady("start", node.name, why)

    def ports(self) -> tuple[int, ...]:
        """Return the ports of clients and of the other nodes."""
        return (NATIVE_PORT, STORAGE_PORT)

    def logs(self, node: Node) -> tuple[str, ...]:
        """Return all that the JVM prints, and its own log of garbage collections."""
        return (f"{node.work_dir}/system.log", _gc_log(node))

    def check_layout(self, layout: Mapping[str, JsonValue]) -> tuple[str, ...]:
        """Return what is wrong with a layout; the words are those of `perf.systems.cql.layout`."""
        return cql_layout.check_layout(layout)

    def check_access(self, access: Access) -> tuple[str, ...]:
        """Return nothing: servers ask for an account, or speak TLS, as `access` says."""
        return ()

    def settle(self, cluster: Cluster) -> None:
        """Return if no node flushes or compacts."""
        query = "SELECT name, active_tasks, pending_tasks FROM system_views.thread_pools"
        for node, rows in cql.ask_each(cluster, NATIVE_PORT, query):
            busy = [
                f"{name}: {active} active, {pending} pending"
                for name, active, pending in rows
                if name in _BUSY_POOLS and active + pending
            ]
            if busy:
                raise NotReady("settle", node.name, "; ".join(busy))

    def running_versions(self, cluster: Cluster) -> tuple[tuple[str, str], ...]:
        """Ask each node which release it runs."""
        answers = cql.ask_each(
            cluster,
            NATIVE_PORT,
            "SELECT release_version FROM system.local",
        )
        return tuple((node.name, rows[0][0]) for node, rows in answers)

    @contextmanager
    def open_telemetry(self, cluster: Cluster) -> Iterator[Callable[[], tuple[NodeFigure, ...]]]:
        """Connect to each node once; each call asks for its compactions and reads its log of pauses."""
        with cql.connect_each(cluster, NATIVE_PORT) as ask:
            yield lambda: (*_compaction_levels(ask), *read_pauses(cluster, _gc_log))


def _compaction_levels(ask: Callable[[str], cql.Answers]) -> Iterator[NodeFigure]:
    # Virtual tables, the same from 4.0 on: a node answers from memory, for itself alone.
    tasks = ask("SELECT total, progress, unit FROM system_views.sstable_tasks")
    for node, rows in tasks:
        remaining = sum(total - progress for total, progress, unit in rows if unit == "bytes")
        yield NodeFigure(node=node.name, name=COMPACTION_REMAINING_BYTES, value=remaining)
    query = "SELECT pending_tasks FROM system_views.thread_pools WHERE name = 'CompactionExecutor'"
    for node, rows in ask(query):
        pending = sum(count for (count,) in rows)
        yield NodeFigure(node=node.name, name=COMPACTION_PENDING_TASKS, value=pending)


def tokens(index: int, nodes: int, per_node: int) -> tuple[int, ...]:
    """Return the tokens of node `index`: every range of the ring has one size, owners take turns."""
    total = nodes * per_node
    return tuple(
        cql.FIRST_TOKEN + cql.RING * (2 * place + 1) // (2 * total)
        for place in range(index, total, nodes)
    )


def render_config(node: Node, cluster: Cluster) -> str:
    """Return the text of a node's cassandra.yaml.

    Raises:
        ConfigError: the config sets what Knickpoint decides.

    """
    forced = {key: value for key, (value, _) in defaults.FORCED_SETTINGS.items()}
    settings = _begin_with(cluster) | forced | dict(cluster.config.settings)
    for key in _find_idle_periods(settings, cluster):
        del settings[key]
    own = _own_settings(node, cluster, int(str(settings["num_tokens"])))
    if taken := sorted(own.keys() & cluster.config.settings.keys()):
        raise ConfigError(
            [
                f"system cassandra, config {cluster.config.name}, settings.{key}: comes from the "
                "topology and the testbed; remove it"
                for key in taken
            ]
        )
    text = StringIO()
    YAML(typ="safe", pure=True).dump(settings | own, text)
    return text.getvalue()


def _find_idle_periods(settings: Settings, cluster: Cluster) -> list[str]:
    """Return the periods of a way of syncing that is not used: Cassandra would refuse to start."""
    way = cluster.config.settings.get("commitlog_sync", settings.get("commitlog_sync"))
    idle = _SYNC_PERIODS & settings.keys() - cluster.config.settings.keys()
    return sorted(idle) if way != "periodic" else []


def list_laid_over(cluster: Cluster) -> dict[str, str]:
    """Return what is laid over a release's own settings and options, but the config's, with reasons."""
    settings = _begin_with(cluster)
    access = access_settings(cluster.nodes[0], cluster.config.access)
    idle = _find_idle_periods(settings, cluster)
    return {
        **defaults.list_forced(settings),
        **dict.fromkeys(access, "the config says how clients log in"),
        **dict.fromkeys(
            idle, "left out: Cassandra does not start with it and the config's commitlog_sync"
        ),
        **dict.fromkeys(cluster.testbed.jvm_options, "an option of the testbed"),
    }


def _begin_with(cluster: Cluster) -> Settings:
    """Return the release's own settings, or those without which its code does not start."""
    if (shipped := defaults.read_settings(cluster.artifact.location)) is not None:
        return shipped
    base: Settings = YAML(typ="safe", pure=True).load(_read_data("cassandra.yaml"))
    if rules_of(cluster.release.line) == "4.0":
        return base | {"commitlog_sync_period_in_ms": 10_000}
    return base | {"commitlog_sync_period": "10000ms"}


def rules_of(line: str) -> str:
    """Return the line by whose rules a release is started: `5.0` for `5.0-dev`, else the newest."""
    line = line.removesuffix(DEV).removesuffix("-")
    return line if line in _JAVA_MAJOR else max(_JAVA_MAJOR)


def _java_major(release: Release) -> int:
    return _JAVA_MAJOR[rules_of(release.line)]


def _refuse_layout(cluster: Cluster) -> None:
    """Refuse a compaction that came with a later line, before a server is started for it."""
    first, line = cql_layout.needs_line(cluster.config.layout), rules_of(cluster.release.line)
    if first is not None and tuple(map(int, line.split("."))) < tuple(map(int, first.split("."))):
        problem = (
            f"system cassandra, config {cluster.config.name}, layout.compaction: is "
            f"{cluster.config.layout['compaction']}, which came with {first}, but "
            f"{cluster.release.version} is of the line {line}; take a later release or another config"
        )
        raise ConfigError([problem])


def _own_settings(node: Node, cluster: Cluster, per_node: int) -> Settings:
    seeds = ",".join(peer.address for peer in cluster.nodes)
    own_tokens = tokens(node.index, len(cluster.nodes), per_node)
    return {
        "initial_token": ",".join(str(token) for token in own_tokens),
        "listen_address": node.address,
        "rpc_address": node.address,
        "native_transport_port": NATIVE_PORT,
        "storage_port": STORAGE_PORT,
        "seed_provider": [
            {
                "class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
                "parameters": [{"seeds": seeds}],
            }
        ],
        "data_file_directories": [f"{node.work_dir}/data"],
        "commitlog_directory": f"{node.work_dir}/commitlog",
        "saved_caches_directory": f"{node.work_dir}/saved_caches",
        "hints_directory": f"{node.work_dir}/hints",
        "cdc_raw_directory": f"{node.work_dir}/cdc_raw",
        **access_settings(node, cluster.config.access),
    }


def java_command(node: Node, cluster: Cluster) -> tuple[str, ...]:
    """Return the command line of a node; the options of testbed and then config come last and win.

    Nothing here uses JMX, so none of its ports is opened; Cassandra 4.0 calls that an error and starts.
    """
    home, config = node.work_dir, cluster.config
    heap = (f"-Xms{config.heap_mb}m", f"-Xmx{config.heap_mb}m") if config.heap_mb else ()
    return (
        f"{home}/java",
        *defaults.read_options(cluster.artifact.location, _java_major(cluster.release)),
        *defaults.FORCED_OPTIONS,
        *heap,
        f"-Djava.io.tmpdir={home}/native",
        f"-Djna.tmpdir={home}/native",
        f"-Dcassandra.config=file://{home}/conf/cassandra.yaml",
        f"-Dcassandra.storagedir={home}",
        f"-Dlogback.configurationFile=file://{home}/conf/logback.xml",
        *((FAST_ACCOUNT,) if config.access and config.access.username else ()),
        *cluster.testbed.jvm_options,
        *config.jvm_options,
        *("-cp", f"{home}/conf:{home}/release/lib/*"),
        "org.apache.cassandra.service.CassandraDaemon",
    )


def _gc_log(node: Node) -> str:
    return f"{node.work_dir}/gc.log"  # as jvm.options says; a JVM runs in its node's directory


def _put_java(node: Node, cluster: Cluster) -> str:
    """Return the path of a fitting `java` on the node's host: one search for all nodes there."""
    for other in takewhile(lambda one: one != node, cluster.nodes):
        if other.remote.name == node.remote.name:
            linked = node.remote.run(["readlink", f"{other.work_dir}/java"], check=False)
            if path := linked.stdout.strip():
                return path
    majors = (_java_major(cluster.release),)
    if found := java.search(node.remote, majors):
        return found.path
    fetched = java.fetch(majors, _say_nothing)
    own, target = (
        str(Path(fetched.path).parent.parent),
        f"{Path(node.work_dir).parent}/java/{fetched.version}",
    )
    if isinstance(node.remote, LocalHost):
        return fetched.path  # looked at just now
    for home in (own, target):
        if java.is_pinned(node.remote, home):
            return f"{home}/bin/java"
    remove_tree(node.remote, target)
    make_directory(node.remote, target)
    node.remote.put(Path(own), target)
    return f"{target}/bin/java"


def _say_nothing(_: str) -> None:
    pass


@cache
def _read_data(name: str) -> str:
    return files("perf.systems.cassandra").joinpath(name).read_text(encoding="utf-8")


SYSTEM: System = Cassandra()
