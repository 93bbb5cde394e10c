"""A sharded cluster of MongoDB: where servers go, what they are reported, and in which order.

Servers are scripts that keep to the manual: a member knows no set before replSetInitiate, a router no
shard before addShard. What is asked of them is compared with the commands as they are documented.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import bson
import pytest
from mongo_script import Document, Script, serve_scripts
from ruamel.yaml import YAML

from perf.config.catalog import default_root, load_catalog
from perf.hosts.remote import LocalHost
from perf.model.design import Deployment, SystemConfig, Testbed, Topology
from perf.model.errors import ConfigError, NotReady, StepFailed
from perf.model.records import Sensor
from perf.model.results import Artifact, Source
from perf.systems.contract import Cluster, Node
from perf.systems.mongodb import shards as mongo_shards
from perf.systems.mongodb.system import MongoDB
from perf.trial import placement as deployment

CACHE = {"storage": {"wiredTiger": {"engineConfig": {"cacheSizeGB": 1}}}}
NOT_YET: Document = {"ok": 0, "code": 94, "codeName": "NotYetInitialized", "errmsg": "no config"}


def _topology(servers: int, shards: int, copies: int) -> Topology:
    return Topology(
        name="test", description="test", servers=servers, shards=shards, replication_factor=copies
    )


@pytest.mark.parametrize(
    ("servers", "shards", "copies", "hosts"),
    [
        # The published report: three hosts, two shards, one copy.
        (3, 2, 1, ("shard-1* router", "shard-2* router", "config* router")),
        (
            3,
            3,
            3,
            (
                "config shard-1* shard-2 shard-3 router",
                "config shard-1 shard-2* shard-3 router",
                "config* shard-1 shard-2 shard-3* router",
            ),
        ),
        (1, 2, 1, ("config* shard-1* shard-2* router",)),
        (2, 2, 2, ("shard-1* shard-2 router", "config* shard-1 shard-2* router")),
    ],
)
def test_members_go_round_the_hosts(
    servers: int, shards: int, copies: int, hosts: tuple[str, ...]
) -> None:
    placed = mongo_shards.place(_topology(servers, shards, copies), 27_017)
    said = tuple(" ".join(part.name + "*" * part.leads for part in host) for host in placed)
    assert said == hosts
    for host in placed:
        assert len({part.port for part in host}) == len(host)
    assert {part.port for host in placed for part in host if part.name == "router"} == {27_017}


def test_a_host_of_a_testbed_has_a_node_for_each_part(
    tmp_path: Path,
) -> None:
    catalog = load_catalog(default_root())
    suite = catalog.suite("quickstart")
    given = catalog.resolve(suite, suite.experiments[0])
    experiment = replace(given.experiment, system="mongodb")
    sharded = replace(given, experiment=experiment, topology=_topology(2, 1, 1))
    nodes = deployment.place_nodes(sharded, tmp_path)
    names = ["node-1-shard-1", "node-1-router", "node-2-config", "node-2-router"]
    assert [node.name for node in nodes] == names
    assert [node.index for node in nodes] == [0, 1, 2, 3]
    assert [node.address for node in nodes] == ["127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.2"]
    # As `perf.hosts.leftovers` looks for the processes of interrupted runs.
    assert nodes[0].pid_file == f"{tmp_path}/mongodb/node-1-shard-1/server.pid"
    _require_refusal(replace(sharded, experiment=replace(experiment, system="fake")), tmp_path)


def _require_refusal(sharded: Deployment, run_dir: Path) -> None:
    with pytest.raises(ConfigError, match="system fake is not deployed in shards"):
        deployment.place_nodes(sharded, run_dir)


@dataclass(slots=True)
class Member(Script):
    """A member that takes replSetInitiate; the others of its set hear of it."""

    others: list["Member"] = field(default_factory=list)
    known: list[str] = field(default_factory=list)

    def answer(self, asked: Document) -> Document | None:
        """Answer as a member does."""
        command = next(iter(asked))
        if command == "replSetInitiate":
            for number, member in enumerate((self, *self.others)):
                member.become("primary" if number == 0 else "secondary", asked[command])
        return Script.answer(self, asked)

    def become(self, role: str, said: Document) -> None:
        """Take a role in a set."""
        del self.answers["replSetGetStatus"]
        hosts = [member["host"] for member in said["members"]]
        self.hello = {
            "setName": said["_id"],
            "setVersion": 1,
            "hosts": hosts,
            "ismaster": role == "primary",
            "secondary": role == "secondary",
        }


@dataclass(slots=True)
class Router(Script):
    """A router: it knows the shards that it was notified of, and so do its equals."""

    shards: list[str] = field(default_factory=list)

    def answer(self, asked: Document) -> Document | None:
        """Answer as a router does."""
        command = next(iter(asked))
        if command == "addShard":
            self.shards.append(asked["name"])
        self.answers["listShards"] = {"ok": 1, "shards": [{"_id": name} for name in self.shards]}
        return Script.answer(self, asked)


class Deployed(MongoDB):
    """MongoDB whose processes are scripts: a router answers once it was started."""

    def __init__(self, port: int, serving: ExitStack) -> None:
        """Begin with nothing that runs."""
        super().__init__(port)
        self.serving, self.scripts, self.started = serving, {}, []  # type: ignore[var-annotated]

    def is_running(self, node: Node) -> bool:
        """Return whether it was started."""
        return node.name in self.started

    def _start(self, node: Node) -> None:
        if not self.is_running(node):
            assert node.part is not None
            self.started.append(node.name)
            place = (node.address, node.part.port)
            self.serving.enter_context(serve_scripts({place: self.scripts[node.name]}))


@dataclass(frozen=True, slots=True)
class Sharded:
    """A cluster whose servers are scripts, by name of their node."""

    system: Deployed
    cluster: Cluster

    def start(self) -> None:
        """Start all that `start` starts."""
        for node in self.cluster.nodes:
            self.system.start(node, self.cluster)

    def asked(self, command: str) -> list[Document]:
        """Return what all servers were asked of one command."""
        kept = ("_id", "configsvr", "members", "name", "key", command)
        scripts = self.system.scripts.values()
        found = [one for script in scripts for one in script.named(command)]
        return [{name: one[name] for name in kept if name in one} for one in found]


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.71", 0))
        number: int = probe.getsockname()[1]
        return number if number < 65_000 else 20_000 + number % 1000


@pytest.fixture
def deploy(
    port: int, tmp_path: Path, make_testbed: Callable[..., Testbed]
) -> Iterator[Callable[..., Sharded]]:
    """Return `deploy(servers, shards, copies, **settings)`: a cluster; no verb has been called."""
    with ExitStack() as serving:

        def make(servers: int, shards: int, copies: int, **settings: Any) -> Sharded:  # noqa: ANN401
            system, topology = Deployed(port, serving), _topology(servers, shards, copies)
            parts = [(host, part) for host, of in enumerate(system.parts(topology)) for part in of]
            nodes = tuple(
                Node(
                    name=f"s{host + 1}-{part.name}",
                    index=index,
                    address=f"127.0.0.{71 + host}",
                    remote=LocalHost(),
                    work_dir=str(tmp_path / f"s{host + 1}-{part.name}"),
                    part=part,
                )
                for index, (host, part) in enumerate(parts)
            )
            _script(system, nodes)
            cluster = Cluster(
                release=system.releases()[-1],
                artifact=Artifact(source=Source.PATH, sha256="ab" * 32),
                nodes=nodes,
                topology=topology,
                testbed=make_testbed(),
                config=SystemConfig(
                    system="mongodb", name="tuned", description="test", settings=CACHE | settings
                ),
            )
            return Sharded(system, cluster)

        yield make


def _script(system: Deployed, nodes: tuple[Node, ...]) -> None:
    none = {"ok": 1, "cursor": {"id": bson.Int64(0), "ns": "k.r", "firstBatch": []}}
    sets: dict[str, list[Member]] = {}
    shards: list[str] = []
    for node in nodes:
        assert node.part is not None
        if node.part.name == "router":
            hello = {"msg": "isdbgrid", "ismaster": True}
            system.scripts[node.name] = Router(hello, {"listCollections": none}, shards=shards)
        else:
            hello = {"ismaster": False, "isreplicaset": True}
            member = Member(hello, {"replSetGetStatus": NOT_YET, "listCollections": none})
            sets.setdefault(node.part.group, []).append(member)
            system.scripts[node.name] = member
    for members in sets.values():
        for member in members:
            member.others = [other for other in members if other is not member]


def _conf(sharded: Sharded, name: str) -> dict[str, Any]:
    node = next(node for node in sharded.cluster.nodes if node.name == name)
    Path(node.work_dir).mkdir()
    sharded.system.configure(node, sharded.cluster)
    (path,) = Path(node.work_dir).glob("*.conf")
    conf: dict[str, Any] = YAML(typ="safe").load(path)
    return {"file": path.name} | conf


def test_each_server_is_configured_for_its_role(
    deploy: Callable[..., Sharded], port: int, tmp_path: Path
) -> None:
    said = {"net": {"maxIncomingConnections": 500}, "setParameter": {"syncdelay": 30}}
    sharded = deploy(3, 2, 1, **said)
    net = {"port": port, "unixDomainSocket": {"enabled": False}, "maxIncomingConnections": 500}
    assert _conf(sharded, "s1-router") == {
        "file": "mongos.conf",
        "net": {"bindIp": "127.0.0.71", **net},
        "processManagement": {"fork": False},
        "sharding": {"configDB": f"config/127.0.0.73:{port + 2}"},
    }
    shard = _conf(sharded, "s2-shard-2")
    assert shard["sharding"] == {"clusterRole": "shardsvr"}
    assert shard["replication"] == {"replSetName": "shard-2"}
    assert shard["net"] == {"bindIp": "127.0.0.72", **net, "port": port + 4}
    assert shard["storage"] == {"dbPath": f"{tmp_path}/s2-shard-2/data", **CACHE["storage"]}
    assert shard["setParameter"] == {"syncdelay": 30}
    servers = _conf(sharded, "s3-config")
    assert servers["sharding"] == {"clusterRole": "configsvr"}
    assert servers["replication"] == {"replSetName": "config"}
    assert servers["storage"]["wiredTiger"]["engineConfig"]["cacheSizeGB"] == 0.25
    facts = {fact.name for fact in sharded.system.facts(sharded.cluster)}
    assert {
        "forced:sharding.configDB",
        "forced:sharding.clusterRole",
        "forced:replication.replSetName",
        "forced:cacheSizeGB of config servers",
    } <= facts


def test_members_that_share_a_host_are_reported_their_cache(deploy: Callable[..., Sharded]) -> None:
    sharded = deploy(1, 1, 1, storage={"directoryPerDB": True})
    with pytest.raises(ConfigError, match=r"cacheSizeGB, which is for each of them"):
        _conf(sharded, "s1-router")
    sharded = deploy(1, 1, 1, sharding={"clusterRole": "shardsvr"})
    with pytest.raises(ConfigError, match=r"settings\.sharding\.clusterRole follows from topology"):
        _conf(sharded, "s1-config")


def _join(sharded: Sharded) -> None:
    """Ask again as the harness does, a few times."""
    for _ in range(5):
        try:
            sharded.system.bootstrap(sharded.cluster)
        except NotReady:
            continue
        return
    pytest.fail("not joined after 5 rounds")


def test_the_cluster_is_joined_as_the_manual_says(deploy: Callable[..., Sharded], port: int) -> None:
    sharded = deploy(3, 2, 2)
    sharded.start()
    # Routers only once the config servers are a set.
    assert not any("router" in name for name in sharded.system.started)
    _join(sharded)
    member = "127.0.0.{}:{}".format
    assert sharded.asked("replSetInitiate") == [
        {"replSetInitiate": asked}
        for asked in (
            {
                "_id": "shard-1",
                "members": [
                    {"_id": 0, "host": member(71, port + 3), "priority": 2},
                    {"_id": 1, "host": member(72, port + 3), "priority": 1},
                ],
            },
            {
                "_id": "shard-2",
                "members": [
                    {"_id": 0, "host": member(72, port + 4), "priority": 2},
                    {"_id": 1, "host": member(73, port + 4), "priority": 1},
                ],
            },
            {
                "_id": "config",
                "members": [
                    {"_id": 0, "host": member(73, port + 2), "priority": 2},
                    {"_id": 1, "host": member(71, port + 2), "priority": 1},
                    {"_id": 2, "host": member(72, port + 2), "priority": 1},
                ],
                "configsvr": True,
            },
        )
    ]
    assert sharded.asked("addShard") == [
        {"addShard": f"shard-1/{member(71, port + 3)},{member(72, port + 3)}", "name": "shard-1"},
        {"addShard": f"shard-2/{member(72, port + 4)},{member(73, port + 4)}", "name": "shard-2"},
    ]
    sharded.system.check(sharded.cluster)


def test_what_is_joined_is_not_joined_again(deploy: Callable[..., Sharded]) -> None:
    sharded = deploy(3, 2, 1)
    sharded.start()
    _join(sharded)
    before = [len(sharded.asked(command)) for command in ("replSetInitiate", "addShard")]
    started = list(sharded.system.started)
    sharded.system.bootstrap(sharded.cluster)
    sharded.start()
    assert [len(sharded.asked(command)) for command in ("replSetInitiate", "addShard")] == before
    assert before == [3, 2]
    assert sharded.system.started == started


def test_a_cluster_that_lacks_a_shard_does_not_serve(deploy: Callable[..., Sharded]) -> None:
    sharded = deploy(3, 2, 1)
    with pytest.raises(StepFailed, match="s1-shard-1"):
        sharded.system.check(sharded.cluster)
    sharded.start()
    _join(sharded)
    sharded.system.check(sharded.cluster)
    router = sharded.system.scripts["s2-router"]
    router.shards.remove("shard-2")
    with pytest.raises(NotReady, match="s1-router: does not know shard-2 yet"):
        sharded.system.check(sharded.cluster)


def test_clients_go_through_the_routers_and_shard_what_they_create(
    deploy: Callable[..., Sharded], port: int
) -> None:
    sharded = deploy(3, 2, 1)
    sharded.start()
    _join(sharded)
    target = sharded.system.target(sharded.cluster, consistency="quorum", timeout_s=5.0)
    assert (target.addresses, target.port) == (("127.0.0.71", "127.0.0.72", "127.0.0.73"), port)
    with sharded.system.sessions.sensor(target) as session:
        session.create_schema(Sensor(kind="sensor", devices=1, payload_bytes=1000))
    assert sharded.asked("enableSharding") == [{"enableSharding": "knickpoint"}]
    key = {"device_id": "hashed"}
    assert sharded.asked("shardCollection") == [{"shardCollection": "knickpoint.readings", "key": key}]


def test_a_set_without_routers_shards_nothing(deploy: Callable[..., Sharded]) -> None:
    sharded = deploy(1, 1, 1)
    sharded.start()
    _join(sharded)
    target = sharded.system.target(sharded.cluster, consistency="one", timeout_s=5.0)
    member = replace(target, port=mongo_shards.part_of(sharded.cluster.nodes[1]).port, routers=False)
    with sharded.system.sessions.sensor(member) as session:
        session.create_schema(Sensor(kind="sensor", devices=1, payload_bytes=1000))
    assert not sharded.asked("shardCollection")


def test_telemetry_and_versions_ask_each_server_at_its_own_port(
    deploy: Callable[..., Sharded],
) -> None:
    sharded = deploy(3, 2, 1)
    sharded.start()
    _join(sharded)
    version = sharded.cluster.release.version
    for number, script in enumerate(sharded.system.scripts.values()):
        cache = {"tracked dirty bytes in the cache": number}
        script.answers["serverStatus"] = {"ok": 1, "wiredTiger": {"cache": cache}}
        script.answers["buildInfo"] = script.answers["buildinfo"] = {"ok": 1, "version": version}
    with sharded.system.open_telemetry(sharded.cluster) as look:
        said = {level.node: level.value for level in look()}
    assert said == {"s1-shard-1": 0.0, "s2-shard-2": 2.0, "s3-config": 4.0}
    running = dict(sharded.system.running_versions(sharded.cluster))
    assert running == {node.name: version for node in sharded.cluster.nodes}
