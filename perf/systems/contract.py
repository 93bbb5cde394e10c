"""What a database offers to Knickpoint. A folder per database; the harness owns everything else.

A system contains no sleep, no clock, no retry, no thread and no print: the harness owns order, time
limits, polling, verification and timing, so that every system is treated alike. Every verb is
idempotent. Failures raise one of `perf.model.errors`, with node and step. Optional abilities are
protocols of their own (`BootstrapsOnce`, `Settles`); the harness asks and falls back.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

from pydantic import JsonValue

from perf.hosts.pinning import pin
from perf.hosts.remote import LocalHost, Remote
from perf.hosts.testbed import Client
from perf.hosts.tuning.profiles import SERVER
from perf.model.access import Access
from perf.model.design import SystemConfig, Testbed, Topology
from perf.model.errors import UsageError
from perf.model.records import Devops, PutGet, Records, Sensor, Ycsb
from perf.model.results import Artifact, Fact, Release
from perf.model.statements import Statements
from perf.releases.origin import Origin
from perf.systems.sessions import DevopsSession, KeyValueSession, SensorSession, StatementSession


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPart:
    """What one of several servers on a host is for: see `RunsParts`.

    Those of one `group` belong together, as copies of each other or as equals; one of them may lead.
    """

    name: str
    group: str
    port: int
    leads: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One server of a cluster: a host, an address, and a directory that belongs to it alone."""

    name: str
    index: int
    address: str
    remote: Remote
    work_dir: str
    cores: tuple[int, ...] = ()
    numa_node: int | None = None
    part: ServerPart | None = None
    """Where a host runs several servers; absent: it is the only one, and does all."""

    @property
    def pid_file(self) -> str:
        """The file that holds the server's process id while it lives."""
        return f"{self.work_dir}/server.pid"

    @property
    def base_dir(self) -> str:
        """The directory of all that Knickpoint keeps on the node's host."""
        return str(Path(self.work_dir).parents[1])

    def pinned(self, command: Sequence[str]) -> tuple[str, ...]:
        """Return the command as it runs on the node's cores and memory, if the testbed names any."""
        return pin(command, self.cores, self.numa_node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Everything a system must know to deploy one release on a set of nodes."""

    release: Release
    artifact: Artifact
    nodes: tuple[Node, ...]
    clients: tuple[Client, ...] = ()
    topology: Topology
    testbed: Testbed
    config: SystemConfig

    @property
    def spoken_to(self) -> "tuple[Node, ...]":
        """All servers that clients may ask: the nodes, or of an attached cluster its servers."""
        if not self.testbed.attached:
            return self.nodes
        servers = [host for host in self.testbed.hosts if host.role == "server"]
        return tuple(
            Node(name=host.name, index=n, address=host.address, remote=LocalHost(), work_dir="")
            for n, host in enumerate(servers[: self.topology.servers])
        )

    @property
    def places(self) -> tuple[Node | Client, ...]:
        """All that lies on a host: nodes, then clients."""
        return (*self.nodes, *self.clients)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where and how a client connects; plain data that travels to engine processes as JSON."""

    system: str
    addresses: tuple[str, ...]
    port: int
    replication_factor: int
    consistency: str
    timeout_s: float
    layout: Mapping[str, JsonValue] = field(default_factory=dict)
    """How tables are laid out: `SystemConfig.layout`."""
    routers: bool = False
    """The addresses are of routers, each of which answers for the whole cluster."""
    access: Access | None = None
    """How a client logs in, and what it trusts: `SystemConfig.access`."""

    @classmethod
    def of(cls, cluster: Cluster, *, port: int, consistency: str, timeout_s: float) -> Self:
        """Describe a cluster whose nodes are all spoken to, on one port."""
        attached = cluster.testbed.attached
        return cls(
            system=cluster.release.system,
            addresses=tuple(node.address for node in cluster.spoken_to),
            port=(attached and attached.port) or port,
            replication_factor=cluster.topology.replication_factor,
            consistency=consistency,
            timeout_s=timeout_s,
            layout=cluster.config.layout,
            access=cluster.config.access,
        )


Opened = TypeVar("Opened")
Connect: TypeAlias = Callable[[Target], AbstractContextManager[Opened]]
"""Connects a client, and closes it at the end; changes no data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """What a system can be asked: how a client of each data model connects, and who else is one.

    The only place that says so: configs, engines, `conformance` and the contract suite ask here.
    """

    sensor: Connect[SensorSession]
    key_value: Connect[KeyValueSession] | None = None
    devops: Connect[DevopsSession] | None = None
    statements: Callable[[Statements, Target], AbstractContextManager[StatementSession]] | None = None
    language: str = ""
    """What statements are written in; nothing where there is no session for them."""
    native_engine: bool = False
    """The native engine has clients of the same data models (`perf/load/native`), commands left out."""

    def find(self, records: Records) -> Connect[Any] | None:
        """Return how a client of the data model that records are of connects; None if there is none."""
        match records:
            case Sensor():
                return self.sensor
            case PutGet() | Ycsb():
                return self.key_value
            case Devops():
                return self.devops
            case Statements(language=self.language) if self.statements:
                return partial(self.statements, records)
            case Statements():
                return None


class System(Protocol):
    """A database product. Verbs are listed in the order in which the harness calls them."""

    name: ClassVar[str]
    sessions: ClassVar[Sessions]

    def releases(self) -> tuple[Release, ...]:
        """Return the known releases, oldest first within each line."""
        ...

    def origins(self, release: Release) -> tuple[Origin, ...]:
        """Return the places from which the release's artifact may be fetched, best first."""
        ...

    def install(self, node: Node, cluster: Cluster) -> None:
        """Put the release's files on the node; return quickly if they are there."""
        ...

    def configure(self, node: Node, cluster: Cluster) -> None:
        """Write the node's configuration files from topology, testbed and config."""
        ...

    def start(self, node: Node, cluster: Cluster) -> None:
        """Start the server process and return at once."""
        ...

    def check(self, cluster: Cluster) -> None:
        """Return if the whole cluster serves; else raise NotReady saying who does not and why."""
        ...

    def is_running(self, node: Node) -> bool:
        """Return whether the node's server process lives."""
        ...

    def stop(self, node: Node, *, force: bool) -> None:
        """Ask the server process to end, or kill it; return at once."""
        ...

    def wipe(self, node: Node) -> None:
        """Remove everything that a trial left in the node's directory. The process is gone."""
        ...

    def ports(self) -> tuple[int, ...]:
        """Return the TCP ports that a node listens on at its own address."""
        ...

    def logs(self, node: Node) -> tuple[str, ...]:
        """Return the paths of the node's log files, the most informative first."""
        ...

    def target(self, cluster: Cluster, *, consistency: str, timeout_s: float) -> Target:
        """Return what a client needs to connect."""
        ...


def open_session(system: System, target: Target, records: Records) -> AbstractContextManager[Any]:
    """Connect a client of the data model that records are of.

    Raises:
        UsageError: the system has no sessions of it.

    """
    if connect := system.sessions.find(records):
        return connect(target)
    raise UsageError(f"{system.name} cannot be asked workloads with records of kind {records.kind}")


@runtime_checkable
class FakeSystem(Protocol):
    """A part of Knickpoint that it is tested with: no database, and not listed as one."""

    loses_rows: ClassVar[str]
    """Why nothing that was written can be read back; empty if it can."""
    forgets: ClassVar[str]
    """Why nothing that was written is there after a restart."""


@runtime_checkable
class ChecksLayout(Protocol):
    """A system whose configs may say how tables are laid out."""

    def check_layout(self, layout: Mapping[str, JsonValue]) -> tuple[str, ...]:
        """Return what is wrong with a layout, each as "key: what, what next"; nothing is connected."""
        ...


@runtime_checkable
class ChecksAccess(Protocol):
    """A system whose servers can ask clients for an account, or speak TLS."""

    def check_access(self, access: Access) -> tuple[str, ...]:
        """Return what its servers cannot do, each as "key: what, what next"; nothing is connected."""
        ...


@runtime_checkable
class RunsParts(Protocol):
    """A system that runs several servers on one host, for topologies with shards."""

    def parts(self, topology: Topology) -> tuple[tuple[ServerPart, ...], ...]:
        """Return the servers of each server host, in the order of the hosts."""
        ...


@runtime_checkable
class Attaches(Protocol):
    """A system that can be measured on a cluster which somebody else runs, in a place of its own there.

    `owner` is who measures: an id, and after it words for people. A place bears it, and who has
    another id does not drop it.
    """

    def make_place(self, target: Target, owner: str) -> None:
        """Make the place for a trial's tables anew, dropping one that the same owner left.

        Raises StepFailed, and changes nothing, where it is there and is not the owner's.
        """
        ...

    def drop_place(self, target: Target, owner: str) -> None:
        """Drop the place and all that is in it if it is the owner's; leave another one alone."""
        ...


@runtime_checkable
class BootstrapsOnce(Protocol):
    """A system whose nodes must be joined once after they all run (a replica set)."""

    def bootstrap(self, cluster: Cluster) -> None:
        """Join the nodes; do nothing if they are joined; raise NotReady to be asked again."""
        ...


@runtime_checkable
class Settles(Protocol):
    """A system that can say whether its background work (compaction) is idle."""

    def settle(self, cluster: Cluster) -> None:
        """Return if background work is idle; else raise NotReady with what is pending."""
        ...


@runtime_checkable
class KeepsData(Protocol):
    """A system whose stopped nodes leave all that they stored in files, from which others can start.

    A later release of the line can read them; the process ends only once all of it is in them.
    """

    kept_dirs: ClassVar[tuple[str, ...]]
    """The directories of a node, below its own, that hold it."""
    unchanging: ClassVar[tuple[str, ...]]
    """Patterns of names of files that are never changed once written, but removed: links will do."""
    serving: ClassVar[frozenset[str]]
    """Settings of its configuration file, by their dotted ways, that say how files are read."""


@runtime_checkable
class KnowsVersion(Protocol):
    """A system that can ask its nodes which release they really run."""

    def running_versions(self, cluster: Cluster) -> tuple[tuple[str, str], ...]:
        """Return (node name, version) for each node of a serving cluster."""
        ...


@runtime_checkable
class WantsTuning(Protocol):
    """A system whose releases ask for server hosts of a tuning of their own."""

    def tuning(self, release: Release) -> str:
        """Return the name of the tuning profile (infra/tuning/) that a release is to run under."""
        ...


@runtime_checkable
class ShipsDefaults(Protocol):
    """A system whose artifacts may bring default settings in files, which a trial begins with."""

    def defaults(self, release: Release, artifact: Artifact) -> Mapping[str, str]:
        """Return what these files set, each by file and key, as JSON; nothing where there are none."""
        ...


@runtime_checkable
class ReportsFacts(Protocol):
    """A system with facts of its own that can move a number, for example its Java runtime."""

    def facts(self, cluster: Cluster) -> tuple[Fact, ...]:
        """Return the facts of each installed node."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFigure:
    """One figure that a node reports of itself. Names that end in _total only ever grow."""

    node: str
    name: str
    value: float


GC_PAUSE_S = "gc_pause_s_total"
COMPACTION_REMAINING_BYTES = "compaction_remaining_bytes"
COMPACTION_PENDING_TASKS = "compaction_pending_tasks"
UNWRITTEN_BYTES = "unwritten_bytes"


@runtime_checkable
class ReportsTelemetry(Protocol):
    """A system whose nodes can be asked for figures of their own while they are under load."""

    def open_telemetry(
        self, cluster: Cluster
    ) -> AbstractContextManager[Callable[[], tuple[NodeFigure, ...]]]:
        """Connect once; each call of what comes back asks every node, and costs them little."""
        ...


def name_profile(system: System, release: Release) -> str:
    """Return the profile that servers of a release are to run under."""
    return system.tuning(release) if isinstance(system, WantsTuning) else SERVER
