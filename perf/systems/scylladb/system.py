"""ScyllaDB: a ring of any size, from the vendor's relocatable archive, without root.

A node's directory holds server/ (what the archive's own install.sh puts there), work/ (all data),
scylla.yaml, server.log and server.pid. scylla.yaml is the one that the release ships, because much of
what a new cluster does by default stands in it and not in the code (tablets, for example); over it come
the settings of the config, and over both what topology and testbed decide.

Seastar takes cores and memory by its command line alone: a config says them under `command_line`.
Outside of developer mode it wants to know what the disk can do: the file that the vendor's iotune
makes, once for each host, where its packages keep it (`IO_PROPERTIES`). Its sum is a fact of a trial.
The first node is the seed; the others join through it by themselves, all at once.

Clients are those of CQL, on `cassandra-driver`: see `perf.systems.cql.client`. The driver of ScyllaDB's
own that knows which core owns a row is not used. Both come as the Python package `cassandra`, so one
environment holds one of them; and it cost more CPU per operation where both were measured, without
shards to know of.
"""

import http.client
import json
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from pydantic import JsonValue
from ruamel.yaml import YAML

from perf.hosts.remote import make_directory, write_text
from perf.model.access import Access
from perf.model.errors import ConfigError, NotReady, ReleaseError, StepFailed
from perf.model.results import Artifact, Fact, Release, Source
from perf.model.shown import printable
from perf.releases.artifacts import copy_variable
from perf.releases.origin import Origin
from perf.systems.contract import (
    COMPACTION_PENDING_TASKS,
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
    install_archive,
    list_shipped,
    read_data,
    read_shipped,
    refuse_jvm,
    require_port,
)
from perf.systems.scylladb.access import access_settings

DOWNLOADS = "https://downloads.scylladb.com/downloads/scylla/relocatable"
NATIVE_PORT = 9042
SHARD_AWARE_PORT = 19_042
STORAGE_PORT = 7000
API_PORT = 10_000
METRICS_PORT = 9180
IO_PROPERTIES = "/etc/scylla.d/io_properties.yaml"
"""What iotune found out about a host's disk, if the operator ran it there."""
_LOOK_S = 15.0
_MOST_ANSWER_BYTES = 4 * 1024**2

Settings: TypeAlias = dict[str, JsonValue]

_ADDRESS = "the testbed's address of the node"
_PORT = "the port at which it is asked"
_APART = "a package's directories lie outside of the node's own"
# Settings that follow from topology and testbed, and why: no config may set them.
_OWNED: Mapping[str, str] = {
    "cluster_name": "servers of one trial belong together",
    "seed_provider": "the first node of the topology is the seed",
    "endpoint_snitch": "a topology has no racks",
    **dict.fromkeys(("listen_address", "rpc_address", "api_address", "prometheus_address"), _ADDRESS),
    **dict.fromkeys(("native_transport_port", "native_shard_aware_transport_port"), _PORT),
    **dict.fromkeys(("storage_port", "api_port", "prometheus_port"), _PORT),
    **dict.fromkeys(("workdir", "data_file_directories", "commitlog_directory"), _APART),
    **dict.fromkeys(("hints_directory", "view_hints_directory", "saved_caches_directory"), _APART),
    **dict.fromkeys(("api_ui_dir", "api_doc_dir", "maintenance_socket"), _APART),
}
_LOGGED = "all that a server says is printed, and kept with the trial"
_OPTIONS: Mapping[str, str] = {
    "--options-file": _APART,
    "--workdir": _APART,
    "--log-to-syslog": _LOGGED,
    "--log-to-stdout": _LOGGED,
}
"""Of the command line, on every node."""
# What a config may say for Seastar's command line, and how each is written there.
_COMMAND_LINE = ("smp", "memory", "overprovisioned")


class ScyllaDB(CqlPlace, Product):
    """The verbs of the contract, for one ring."""

    name: ClassVar[str] = "scylladb"
    sessions: ClassVar[Sessions] = Sessions(
        sensor=cql.CqlSession.connect,
        key_value=CqlKeyValueSession.connect,
        devops=CqlDevopsSession.connect,  # which queries a release takes, its server says
        statements=CqlStatementSession.connect_for,
        language="cql",
        native_engine=True,
    )
    # Its commit log lies there, too. How many shards there are (`smp`) shapes files, memory does not.
    kept_dirs: ClassVar[tuple[str, ...]] = ("work",)
    unchanging: ClassVar[tuple[str, ...]] = cql_layout.UNCHANGING_FILES
    serving: ClassVar[frozenset[str]] = frozenset(
        (
            *("command_line.memory", "command_line.overprovisioned"),
            *("enable_cache", "cache_index_pages", "index_cache_fraction"),
        )
    )

    def releases(self) -> tuple[Release, ...]:
        """Return the releases of the packaged catalogue."""
        return tuple(
            Release(system=self.name, version=f"{line}.{patch}", line=line, ordinal=patch)
            for line, patches in read_data(__package__, "releases.yaml").items()
            for patch in patches
        )

    def origins(self, release: Release) -> tuple[Origin, ...]:
        """Return the vendor's relocatable archive for this machine's processor.

        Servers of a testbed are expected to have the same.

        Raises:
            ReleaseError: the name of the archive, which holds a build, or its checksum is not known.

        """
        packaged = read_data(__package__, "releases.yaml").get(release.line, {})
        known = packaged.get(release.ordinal) or {}
        processor = platform.machine()
        digest = known.get("sha256", {}).get(processor)
        if digest is None:
            raise ReleaseError(
                f"ScyllaDB {release.version}: build and checksum of its archive for {processor} are "
                f"not known here; take it from {DOWNLOADS}/scylladb-{release.line}/ and set "
                f"{copy_variable(release)} to its path (see `knickpoint releases --help`), or choose "
                "another release"
            )
        archive = f"scylla-{release.version}-{known['build']}.{processor}.tar.gz"
        url = f"{DOWNLOADS}/scylladb-{release.line}/{archive}"
        return (Origin(source=Source.ARCHIVE, location=url, checksum=digest),)

    def install(self, node: Node, cluster: Cluster) -> None:
        """Run the release's own install.sh below the node's directory, unless that was done."""

        def install(release: str, server: str) -> str:
            script = self._find_installer(node, cluster, release)
            # Without root nothing lies outside of the prefix, and systemd has no part in it.
            options = ["--nonroot", "--without-systemd", "--prefix", server]
            node.remote.run(["bash", script, *options], timeout_s=300)
            return script

        install_archive(node, cluster, "bin/scylla", install)

    def configure(self, node: Node, cluster: Cluster) -> None:
        """Write scylla.yaml: the release's own, with the config's settings and ours over it.

        Raises:
            ConfigError: the config sets what Knickpoint decides, or what this system does not have.

        """
        if problems := _find_problems(cluster):
            raise ConfigError(problems)
        shipped = node.remote.run(["cat", f"{node.work_dir}/server/etc/scylla/scylla.yaml"]).stdout
        text = StringIO()
        YAML(typ="safe", pure=True).dump(_settings(node, cluster, shipped), text)
        make_directory(node.remote, f"{node.work_dir}/work")
        write_text(node.remote, f"{node.work_dir}/scylla.yaml", text.getvalue())

    def facts(self, cluster: Cluster) -> tuple[Fact, ...]:
        """Return what is laid over the release's scylla.yaml, and what is known of each disk: a sum."""
        return (
            *(
                Fact(host=node.name, name="io_properties", value=_sum_of_properties(node) or "none")
                for node in cluster.nodes
            ),
            *defaults_facts("the release's own scylla.yaml", {**_OWNED, **_OPTIONS}),
        )

    def defaults(self, release: Release, artifact: Artifact) -> Mapping[str, str]:
        """Return the settings of an archive's scylla.yaml."""
        # In the archive all lies below scylla/; who unpacked it may have left that directory out.
        for directory in ("scylla/conf", "conf"):
            found = read_shipped(Path(artifact.location, directory, "scylla.yaml"))
            if found is not None:
                return list_shipped("scylla.yaml", found)
        return {}

    def start(self, node: Node, cluster: Cluster) -> None:
        """Start the server."""
        if not self.is_running(node):
            tuned = _sum_of_properties(node) is not None
            self.run(node, server_command(node, cluster, has_io_properties=tuned))

    def check(self, cluster: Cluster) -> None:
        """Ask, cheapest first: lives each process, is each port open, does each see all as normal."""
        self.require_running(cluster.nodes)
        for node in cluster.nodes:
            require_port(node, NATIVE_PORT)
        # A virtual table: what `nodetool status` shows.
        query = "SELECT status, up FROM system.cluster_status"
        for node, rows in cql.ask_each(cluster, NATIVE_PORT, query):
            normal = sum(bool(up) and status == "NORMAL" for status, up in rows)
            if normal != len(cluster.nodes):
                why = f"sees {normal} of {len(cluster.nodes)} nodes up and normal"
                raise NotReady("start", node.name, why)

    def ports(self) -> tuple[int, ...]:
        """Return the ports of clients, of the other nodes, of the API and of metrics."""
        return (NATIVE_PORT, SHARD_AWARE_PORT, STORAGE_PORT, API_PORT, METRICS_PORT)

    def check_layout(self, layout: Mapping[str, JsonValue]) -> tuple[str, ...]:
        """Give what is wrong with a layout, in the words of `perf.systems.cql.layout`, without UCS."""
        return cql_layout.check_layout(layout, without=("UCS",), replicates=True)

    def check_access(self, access: Access) -> tuple[str, ...]:
        """Return nothing: servers ask for an account, or speak TLS, as `access` says."""
        return ()

    def settle(self, cluster: Cluster) -> None:
        """Return if no node compacts, or has a compaction to do."""
        for node in cluster.nodes:
            running, pending = _compactions(node)
            if running + pending:
                why = f"compactions: {running} running, {pending} pending"
                raise NotReady("settle", node.name, why)

    def running_versions(self, cluster: Cluster) -> tuple[tuple[str, str], ...]:
        """Ask each node which release it runs; what follows the release names its build."""
        answers = cql.ask_each(cluster, NATIVE_PORT, "SELECT version FROM system.versions")
        return tuple((node.name, rows[0][0].partition("-")[0]) for node, rows in answers)

    @contextmanager
    def open_telemetry(self, cluster: Cluster) -> Iterator[Callable[[], tuple[NodeFigure, ...]]]:
        """Yield what asks each node for its compactions. Without a JVM it has no pauses to tell of."""
        yield lambda: tuple(
            NodeFigure(
                node=node.name, name=COMPACTION_PENDING_TASKS, value=float(sum(_compactions(node)))
            )
            for node in cluster.nodes
        )

    @staticmethod
    def _find_installer(node: Node, cluster: Cluster, release: str) -> str:
        # In the archive all lies below scylla/; who unpacked it may have left that directory out.
        for script in (f"{release}/scylla/install.sh", f"{release}/install.sh"):
            if node.remote.run(["test", "-f", script], check=False).returncode == 0:
                return script
        why = f"{cluster.artifact.location} is no relocatable archive: it holds no install.sh"
        raise StepFailed("install", node.name, why)


def server_command(node: Node, cluster: Cluster, *, has_io_properties: bool = False) -> tuple[str, ...]:
    """Return the command line of a node."""
    home = node.work_dir
    said = _command_line(cluster)
    return (
        f"{home}/server/bin/scylla",
        *("--options-file", f"{home}/scylla.yaml"),
        *("--workdir", f"{home}/work"),
        *("--log-to-syslog", "0", "--log-to-stdout", "1"),
        *(("--io-properties-file", IO_PROPERTIES) if has_io_properties else ()),
        *(("--cpuset", ",".join(map(str, node.cores))) if node.cores else ()),
        *(("--smp", str(said["smp"])) if "smp" in said else ()),
        *(("--memory", str(said["memory"])) if "memory" in said else ()),
        *(("--overprovisioned",) if said.get("overprovisioned") else ()),
    )


def _settings(node: Node, cluster: Cluster, shipped: str) -> Settings:
    base: Settings = YAML(typ="safe", pure=True).load(shipped) or {}
    # The directories of a package lie outside of the node's own.
    kept = {name: value for name, value in base.items() if name not in _OWNED}
    config = {name: v for name, v in cluster.config.settings.items() if name != "command_line"}
    seeds: JsonValue = [{"seeds": cluster.nodes[0].address}]
    own: Settings = {
        "cluster_name": "knickpoint",
        "listen_address": node.address,
        "rpc_address": node.address,
        "api_address": node.address,
        "prometheus_address": node.address,
        "native_transport_port": NATIVE_PORT,
        "native_shard_aware_transport_port": SHARD_AWARE_PORT,
        "storage_port": STORAGE_PORT,
        "api_port": API_PORT,
        "prometheus_port": METRICS_PORT,
        "endpoint_snitch": "SimpleSnitch",
        "seed_provider": [
            {
                "class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
                "parameters": seeds,
            }
        ],
        "api_ui_dir": f"{node.work_dir}/server/swagger-ui/dist/",
        "api_doc_dir": f"{node.work_dir}/server/api/api-doc/",
        **access_settings(node, cluster.config.access),
    }
    return kept | config | own


def _command_line(cluster: Cluster) -> Mapping[str, JsonValue]:
    said = cluster.config.settings.get("command_line", {})
    return said if isinstance(said, Mapping) else {"": said}


def _sum_of_properties(node: Node) -> str | None:
    found = node.remote.run(["sha256sum", IO_PROPERTIES], check=False).stdout
    return found.split(" ", 1)[0][:12] or None


def _find_problems(cluster: Cluster) -> list[str]:
    config = cluster.config
    problems = [
        f"config {config.name}: settings.{name} follows from topology and testbed; remove it"
        for name in sorted(_OWNED.keys() & config.settings.keys())
    ]
    problems += [
        f"config {config.name}: settings.command_line.{name}: not known; there are "
        f"{', '.join(_COMMAND_LINE)}"
        for name in sorted(_command_line(cluster).keys() - set(_COMMAND_LINE))
    ]
    if "smp" in _command_line(cluster) and any(node.cores for node in cluster.nodes):
        problems.append(
            f"config {config.name}: settings.command_line.smp: testbed {cluster.testbed.name} says on "
            "which cores servers run, one shard on each; remove smp"
        )
    return problems + refuse_jvm(config, "settings.command_line.memory")


def _compactions(node: Node) -> tuple[int, int]:
    """Ask a node how many compactions it runs, and how many it thinks it has yet to do."""
    running = _ask(node, "/compaction_manager/compactions")
    pending = _ask(node, "/compaction_manager/metrics/pending_tasks")
    if not isinstance(running, list) or not isinstance(pending, int):
        what = f"{printable(repr(running))} and {printable(repr(pending))}"
        raise NotReady("look", node.name, f"its API returned no compactions, but {what}")
    return len(running), pending


def _ask(node: Node, path: str) -> Any:  # noqa: ANN401  JSON
    """Ask the node's REST API, which listens on its own address.

    Raises:
        NotReady: it does not answer, or not with JSON.

    """
    connection = http.client.HTTPConnection(node.address, API_PORT, timeout=_LOOK_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read(_MOST_ANSWER_BYTES)
        if answer.status != http.client.OK:
            raise NotReady("look", node.name, f"its API answers {path} with status {answer.status}")
        return json.loads(text)
    except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
        raise NotReady("look", node.name, f"its API: {type(error).__name__}: {error}") from error
    finally:
        connection.close()


SYSTEM: System = ScyllaDB()
