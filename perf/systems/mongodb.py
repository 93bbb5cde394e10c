"""MongoDB Community Server: stand-alone, or a replica set with one member on each node.

How the words of a workload map to MongoDB:

    consistency one      w: 1                     read concern local
    consistency quorum   w: majority              read concern majority
    consistency all      w: replication factor    read concern majority

Reads go to the primary, which is the first node: it has the higher priority, so it is the same host
from trial to trial. Journalling is the server's default. An operation is one attempt: retryable
writes and reads are off, so that no second attempt hides in a service time. The operation timeout
bounds the whole operation on the client, and the server gives up at the same moment.

Readings are in a time-series collection (`ts`, `device_id`, granularity seconds) with an index for
the latest readings of a device. A time-series collection has no unique index: a reading written
twice is stored twice, where Cassandra would overwrite it.
"""

import platform
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from importlib.resources import files
from io import StringIO
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import pymongo
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.datetime_ms import DatetimeMS
from pymongo.errors import CollectionInvalid, NetworkTimeout, OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern
from ruamel.yaml import YAML

from perf.design import Sensor
from perf.errors import ConfigError, NotReady, ReleaseError, StepFailed
from perf.model import Release, Source
from perf.releases import copy_variable
from perf.remote import make_directory, read_tail, remove_tree, running_pid, send_signal, write_text
from perf.systems.contract import Cluster, Node, Origin, SensorSession, System, Target
from perf.workloads.sensor import Reading

Document: TypeAlias = dict[str, Any]
Client: TypeAlias = pymongo.MongoClient[Document]

DOWNLOADS = "https://fastdl.mongodb.org/linux"
REPLICA_SET = DATABASE = "knickpoint"
COLLECTION = "readings"
_VALUES = (
    *("temperature", "humidity", "pressure", "vibration"),
    *("battery", "latitude", "longitude", "signal"),
)
_values_of = itemgetter(*_VALUES)
_MILLISECONDS: CodecOptions[Document] = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)
_PROBE_S = 2.0
_SLOW_S = 600.0
# The server's error codes: NotYetInitialized; MaxTimeMSExpired, WriteConcernTimeout, ExceededTimeLimit.
_NOT_INITIATED = 94
_TIMEOUTS = (50, 64, 262)

# Settings that follow from topology and testbed, by section: no config may set them.
_OWNED = {
    "net": ("bindIp", "bindIpAll", "port", "unixDomainSocket"),
    "storage": ("dbPath",),
    "replication": ("replSetName",),
    "processManagement": ("fork",),
    "systemLog": ("destination", "path"),
}


class MongoSession:
    """A client of a stand-alone server or a replica set."""

    def __init__(self, client: Client, target: Target) -> None:
        """Bind the collection of readings with the target's consistency."""
        write, read = _concerns(target)
        self._database = client.get_database(
            DATABASE, codec_options=_MILLISECONDS, write_concern=write, read_concern=read
        )
        self._readings = self._database[COLLECTION]

    def create_schema(self, records: Sensor) -> None:
        """Create the time-series collection and its index; do nothing if they exist."""
        series = {"timeField": "ts", "metaField": "device_id", "granularity": "seconds"}
        with pymongo.timeout(_SLOW_S):
            with suppress(CollectionInvalid):
                self._database.create_collection(COLLECTION, timeseries=series)
            self._readings.create_index([("device_id", pymongo.ASCENDING), ("ts", pymongo.DESCENDING)])

    def write(self, reading: Reading) -> None:
        """Insert one reading."""
        document: Document = {"ts": DatetimeMS(reading.ts_ms), "device_id": reading.device_id}
        document.update(zip(_VALUES, reading.values, strict=True))
        document["metadata"] = reading.metadata
        self._readings.insert_one(document)

    def read_latest(self, device_id: str, count: int) -> Sequence[Reading]:
        """Give the newest readings of a device, newest first, in one round trip."""
        found = self._readings.find(
            {"device_id": device_id},
            {"_id": False},
            sort=[("ts", pymongo.DESCENDING)],
            limit=count,
            batch_size=count,
        )
        return tuple(
            Reading(row["device_id"], int(row["ts"]), _values_of(row), bytes(row["metadata"]))
            for row in found
        )

    def count(self) -> int:
        """Count all readings by reading them; the collection's own statistics are estimates."""
        with pymongo.timeout(_SLOW_S):
            return self._readings.count_documents({})

    def classify(self, error: Exception) -> str:
        """Name the kind of an error.

        "timeouts" are operations that were sent and not answered in time. No server to send to is
        another kind of fault and keeps its own name.
        """
        late = isinstance(error, OperationFailure) and error.code in _TIMEOUTS
        if late or isinstance(error, NetworkTimeout):
            return "timeouts"
        return f"error:{type(error).__name__}"


class MongoDB:
    """The MongoDB system. `port` is the same on every node."""

    name: ClassVar[str] = "mongodb"

    def __init__(self, port: int = 27_017) -> None:
        """Keep the port that nodes listen on."""
        self._port = port

    def releases(self) -> tuple[Release, ...]:
        """Give the releases of the packaged catalogue."""
        return tuple(
            Release(
                system=self.name, version=f"{line}.{patch}", line=line, ordinal=patch, released_at=day
            )
            for line, patches in _read_data("releases").items()
            for patch, day in patches.items()
        )

    def origins(self, release: Release) -> tuple[Origin, ...]:
        """Give the vendor's archive for the Linux of this machine, with its published checksum.

        Servers of a testbed are expected to run the same Linux as the machine that measures.

        Raises:
            ReleaseError: the vendor publishes no build for this Linux.

        """
        host = _describe_host()
        patches = _read_data("builds").get(host, {}).get(release.line, {})
        builds = [build for first, build in patches.items() if first <= release.ordinal]
        if not builds:
            raise ReleaseError(
                f"MongoDB {release.version}: no official build is known for {host}; "
                f"choose a release that has one, or set {copy_variable(release)} to the path of a "
                "build that runs here (see `knickpoint releases --help`)"
            )
        url = f"{DOWNLOADS}/mongodb-linux-{platform.machine()}-{builds[-1]}-{release.version}.tgz"
        return (Origin(source=Source.ARCHIVE, location=url, checksum=f"{url}.sha256"),)

    def install(self, node: Node, cluster: Cluster) -> None:
        """Copy the unpacked build to the node, unless it is there."""
        marker, server = f"{node.work_dir}/artifact", f"{node.work_dir}/server"
        installed = node.remote.run(["cat", marker], check=False).stdout.strip()
        if installed == cluster.artifact.sha256:
            return
        remove_tree(node.remote, server)
        node.remote.put(Path(cluster.artifact.location), server)
        if node.remote.run(["test", "-x", f"{server}/bin/mongod"], check=False).returncode:
            why = f"{cluster.artifact.location} holds no program bin/mongod"
            raise StepFailed("install", node.name, why)
        write_text(node.remote, marker, f"{cluster.artifact.sha256}\n")

    def configure(self, node: Node, cluster: Cluster) -> None:
        """Write mongod.conf: what topology and testbed decide, with the config's settings added.

        Raises:
            ConfigError: the config sets what Knickpoint decides, or the topology is no replica set.

        """
        if problems := _find_problems(cluster):
            raise ConfigError(problems)
        base: Document = {
            # Members on one host have the same port, so a socket file named after it would clash.
            "net": {"bindIp": node.address, "port": self._port, "unixDomainSocket": {"enabled": False}},
            "storage": {"dbPath": f"{node.work_dir}/data"},
            "processManagement": {"fork": False},
        }
        if len(cluster.nodes) > 1:
            base["replication"] = {"replSetName": REPLICA_SET}
        text = StringIO()
        YAML(typ="safe", pure=True).dump(_merge(base, cluster.config.settings), text)
        make_directory(node.remote, f"{node.work_dir}/data")
        write_text(node.remote, f"{node.work_dir}/mongod.conf", text.getvalue())

    def start(self, node: Node, cluster: Cluster) -> None:
        """Start mongod, on the node's cores if it has any."""
        if self.is_running(node):
            return
        program = [f"{node.work_dir}/server/bin/mongod", "--config", f"{node.work_dir}/mongod.conf"]
        node.remote.start(
            node.pinned(program),
            pid_file=node.pid_file,
            log=self.logs(node)[0],
            cwd=node.work_dir,
            # As in the vendor's own service file: leaves rseq to the allocator's per-CPU caches.
            env={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"},
        )

    def bootstrap(self, cluster: Cluster) -> None:
        """Initiate the replica set from the first node; do nothing for one node, or if it is."""
        if len(cluster.nodes) == 1:
            return
        first = cluster.nodes[0]
        with self._probe(first) as client:
            try:
                client.admin.command("replSetGetStatus")
            except OperationFailure as error:
                if error.code != _NOT_INITIATED:
                    raise
                members = [self._member(node, 2 if node is first else 1) for node in cluster.nodes]
                client.admin.command("replSetInitiate", {"_id": REPLICA_SET, "members": members})

    def check(self, cluster: Cluster) -> None:
        """Require the first node to accept writes and all others to follow it."""
        for node in cluster.nodes:
            if not self.is_running(node):
                tail = read_tail(node.remote, self.logs(node)[0])
                raise StepFailed("start", node.name, "the server process ended", tail)
        for node in cluster.nodes:
            wanted = "Standalone"
            if len(cluster.nodes) > 1:
                wanted = "RSPrimary" if node is cluster.nodes[0] else "RSSecondary"
            with self._probe(node) as client:
                (server,) = client.topology_description.server_descriptions().values()
            if server.server_type_name != wanted:
                why = f"answers as {server.server_type_name}, to become {wanted}"
                raise NotReady("start", node.name, why)

    def running_versions(self, cluster: Cluster) -> tuple[tuple[str, str], ...]:
        """Ask each node for its version."""
        return tuple((node.name, self._ask_version(node)) for node in cluster.nodes)

    def is_running(self, node: Node) -> bool:
        """Say whether the node's server process lives."""
        return running_pid(node.remote, node.pid_file) is not None

    def stop(self, node: Node, *, force: bool) -> None:
        """Ask for a clean shutdown, or kill."""
        send_signal(node.remote, node.pid_file, signal.SIGKILL if force else signal.SIGTERM)

    def wipe(self, node: Node) -> None:
        """Remove the node's directory."""
        remove_tree(node.remote, node.work_dir)

    def ports(self) -> tuple[int, ...]:
        """Give the one port, for clients and members alike."""
        return (self._port,)

    def logs(self, node: Node) -> tuple[str, ...]:
        """Give the one log."""
        return (f"{node.work_dir}/server.log",)

    def target(self, cluster: Cluster, *, consistency: str, timeout_s: float) -> Target:
        """Give all members' addresses."""
        return Target.of(cluster, port=self._port, consistency=consistency, timeout_s=timeout_s)

    def connect(self, target: Target) -> AbstractContextManager[SensorSession]:
        """Connect a client; return when the server, or the primary, has answered."""
        return _session(target)

    @contextmanager
    def _probe(self, node: Node) -> Iterator[Client]:
        try:
            with _open((node.address,), self._port, _PROBE_S) as client:
                client.admin.command("ping")
                yield client
        except PyMongoError as error:
            raise NotReady("start", node.name, str(error)) from error

    def _member(self, node: Node, priority: int) -> Document:
        address = f"{node.address}:{self._port}"
        return {"_id": node.index, "host": address, "priority": priority}

    def _ask_version(self, node: Node) -> str:
        with self._probe(node) as client:
            return str(client.server_info()["version"])


def _open(addresses: Sequence[str], port: int, timeout_s: float) -> Client:
    # One address is spoken to as it is, whatever its role; several are the members of the set. The
    # pool has no limit of its own: how much is in flight is the engine's decision.
    alone = len(addresses) == 1
    timeout_ms = timeout_s * 1000
    return pymongo.MongoClient(
        list(addresses),
        port,
        directConnection=alone,
        replicaSet=None if alone else REPLICA_SET,
        retryWrites=False,
        retryReads=False,
        maxPoolSize=0,
        timeoutMS=timeout_ms,
        connectTimeoutMS=timeout_ms,
        serverSelectionTimeoutMS=timeout_ms,
        appname="knickpoint",
    )


@contextmanager
def _session(target: Target) -> Iterator[MongoSession]:
    with _open(target.addresses, target.port, target.timeout_s) as client:
        client.admin.command("ping")
        yield MongoSession(client, target)


def _concerns(target: Target) -> tuple[WriteConcern, ReadConcern]:
    return {
        "one": (WriteConcern(w=1), ReadConcern("local")),
        "quorum": (WriteConcern(w="majority"), ReadConcern("majority")),
        "all": (WriteConcern(w=target.replication_factor), ReadConcern("majority")),
    }[target.consistency]


@cache
def _read_data(name: str) -> Document:
    text = files("perf.systems").joinpath("data", "mongodb", f"{name}.yaml").read_text()
    data: Document = YAML(typ="safe", pure=True).load(text)
    return data


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
    if config.heap_mb is not None or config.jvm_options:
        problems.append(
            f"config {config.name}: heap_mb and jvm_options are for servers on a JVM; set "
            "settings.storage.wiredTiger.engineConfig.cacheSizeGB"
        )
    if topology.replication_factor != len(cluster.nodes):
        problems.append(
            f"topology {topology.name}: replication_factor is {topology.replication_factor}, but a "
            f"replica set keeps a copy on each of its {len(cluster.nodes)} nodes; make them equal"
        )
    return problems


def _sets(section: object, name: str) -> bool:
    # A section that is no mapping replaces the whole section, and with it what we put there.
    return name in section if isinstance(section, Mapping) else section is not None


def _merge(base: Document, settings: Mapping[str, Any]) -> Document:
    merged = dict(base)
    for name, value in settings.items():
        known = merged.get(name)
        both = isinstance(known, dict) and isinstance(value, Mapping)
        merged[name] = _merge(known or {}, value) if both else value
    return merged


SYSTEM: System = MongoDB()
