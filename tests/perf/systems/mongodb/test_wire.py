"""What MongoDB's client and its checks say on the wire, against members that answer as reported.

A member here is a script, not a server: it shows what would be asked of a real one, and how we take
each answer.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace

import bson
import pytest
from mongo_script import SILENCE, Document, Script, serve_scripts
from pymongo.errors import AutoReconnect, ServerSelectionTimeoutError

from perf.hosts.remote import LocalHost
from perf.model.design import SystemConfig, Testbed, Topology
from perf.model.errors import NotReady, StepFailed
from perf.model.records import Sensor, Stored
from perf.model.results import Artifact, Source
from perf.systems.contract import UNWRITTEN_BYTES, Cluster, Node
from perf.systems.mongodb.system import MongoDB
from perf.systems.sessions import SensorSession
from perf.workloads.sensor import SensorReading

ADDRESSES = ("127.0.0.31", "127.0.0.32", "127.0.0.33")
READING = SensorReading("d1", 1_700_000_000_123, (0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5), b"\x00\xff")
RECORDS = Sensor(kind="sensor", devices=1, payload_bytes=1000)
STAND_ALONE: Document = {"isWritablePrimary": True, "ismaster": True}
GHOST: Document = {"ismaster": False, "isreplicaset": True}


def _member(role: str, port: int) -> Document:
    hosts = [f"{address}:{port}" for address in ADDRESSES]
    base = {
        "setName": "knickpoint",
        "setVersion": 1,
        "hosts": hosts,
        "ismaster": False,
        "secondary": False,
    }
    return (
        base | {"primary": {"ismaster": True}, "secondary": {"secondary": True}, "starting": {}}[role]
    )


class Deployed(MongoDB):
    """MongoDB whose server processes all run; they are the scripts."""

    def is_running(self, node: Node) -> bool:
        """Say yes."""
        return True


@dataclass(frozen=True, slots=True)
class Members:
    """Scripts that serve, one per node, and the cluster that they are."""

    system: MongoDB
    cluster: Cluster
    scripts: tuple[Script, ...]

    def connect(
        self, consistency: str = "quorum", timeout_s: float = 5.0
    ) -> AbstractContextManager[SensorSession]:
        """Connect a client."""
        target = self.system.target(self.cluster, consistency=consistency, timeout_s=timeout_s)
        return self.system.sessions.sensor(target)


def _cluster(system: MongoDB, servers: int, testbed: Testbed) -> Cluster:
    return Cluster(
        release=system.releases()[-1],
        artifact=Artifact(source=Source.PATH, sha256="ab" * 32),
        nodes=tuple(
            Node(name=f"s{index + 1}", index=index, address=address, remote=LocalHost(), work_dir="-")
            for index, address in enumerate(ADDRESSES[:servers])
        ),
        topology=Topology(name="test", description="test", servers=servers, replication_factor=servers),
        testbed=testbed,
        config=SystemConfig(system="mongodb", name="test", description="test"),
    )


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind((ADDRESSES[0], 0))
        number: int = probe.getsockname()[1]
        return number


@pytest.fixture
def serve(port: int, make_testbed: Callable[..., Testbed]) -> Iterator[Callable[..., Members]]:
    """Return `serve(*scripts)`: members that answer until the test ends."""
    with ExitStack() as serving:

        def begin(*scripts: Script) -> Members:
            places = [(address, port) for address in ADDRESSES]
            serving.enter_context(serve_scripts(dict(zip(places, scripts, strict=False))))
            system = Deployed(port)
            return Members(system, _cluster(system, len(scripts), make_testbed()), scripts)

        yield begin


Serve = Callable[..., Members]


def _set(*roles: str, port: int) -> list[Script]:
    return [Script(_member(role, port)) for role in roles]


def test_bootstrap_initiates_the_set_once_from_the_first_node(serve: Serve, port: int) -> None:
    fresh: Document = {"ok": 0, "code": 94, "codeName": "NotYetInitialized", "errmsg": "no config"}
    members = serve(*(Script(GHOST, {"replSetGetStatus": fresh}) for _ in ADDRESSES))
    members.system.bootstrap(members.cluster)
    first, *others = members.scripts
    (initiated,) = first.named("replSetInitiate")
    assert initiated["replSetInitiate"] == {
        "_id": "knickpoint",
        "members": [
            {"_id": 0, "host": f"127.0.0.31:{port}", "priority": 2},
            {"_id": 1, "host": f"127.0.0.32:{port}", "priority": 1},
            {"_id": 2, "host": f"127.0.0.33:{port}", "priority": 1},
        ],
    }
    first.answers["replSetGetStatus"] = {"ok": 1}
    members.system.bootstrap(members.cluster)
    assert len(first.named("replSetInitiate")) == 1
    assert not any(other.asked for other in others)


def test_bootstrap_waits_for_members_that_do_not_answer_yet(serve: Serve) -> None:
    unreached: Document = {"ok": 0, "code": 74, "codeName": "NodeNotFound", "errmsg": "no s2"}
    fresh: Document = {"ok": 0, "code": 94, "codeName": "NotYetInitialized", "errmsg": "no config"}
    first = Script(GHOST, {"replSetGetStatus": fresh, "replSetInitiate": unreached})
    members = serve(first, Script(GHOST), Script(GHOST))
    with pytest.raises(NotReady, match="s1: no s2"):
        members.system.bootstrap(members.cluster)


def test_bootstrap_initiates_no_set_whose_state_is_unknown(serve: Serve) -> None:
    refused: Document = {"ok": 0, "code": 13, "codeName": "Unauthorized", "errmsg": "not allowed"}
    members = serve(*(Script(GHOST, {"replSetGetStatus": refused}) for _ in ADDRESSES))
    with pytest.raises(NotReady, match="s1: not allowed"):
        members.system.bootstrap(members.cluster)
    assert not members.scripts[0].named("replSetInitiate")


def test_one_node_is_not_bootstrapped(serve: Serve) -> None:
    members = serve(Script(STAND_ALONE))
    members.system.bootstrap(members.cluster)
    assert not members.scripts[0].asked


def test_set_serves_when_the_first_node_leads_and_all_follow(serve: Serve, port: int) -> None:
    members = serve(*_set("primary", "secondary", "secondary", port=port))
    members.system.check(members.cluster)


@pytest.mark.parametrize(
    ("roles", "who"),
    [
        (("secondary", "primary", "secondary"), "s1"),
        (("primary", "secondary", "starting"), "s3"),
    ],
)
def test_set_does_not_serve_yet(serve: Serve, port: int, roles: tuple[str, ...], who: str) -> None:
    members = serve(*_set(*roles, port=port))
    with pytest.raises(NotReady) as refusal:
        members.system.check(members.cluster)
    assert refusal.value.node == who


def test_stand_alone_server_serves(serve: Serve) -> None:
    members = serve(Script(STAND_ALONE))
    members.system.check(members.cluster)


@pytest.mark.keeps("wrong-release-is-refused")
def test_versions_are_asked_of_each_node(serve: Serve, port: int) -> None:
    scripts = _set("primary", "secondary", "secondary", port=port)
    for place, script in enumerate(scripts):
        script.answers["buildInfo"] = script.answers["buildinfo"] = {"ok": 1, "version": f"8.0.{place}"}
    members = serve(*scripts)
    found = members.system.running_versions(members.cluster)
    assert found == (("s1", "8.0.0"), ("s2", "8.0.1"), ("s3", "8.0.2"))


@pytest.mark.parametrize(
    ("consistency", "write", "read"),
    [("one", 1, "local"), ("quorum", "majority", "majority"), ("all", 3, "majority")],
)
def test_consistency_is_spoken_to_the_primary(
    serve: Serve, port: int, consistency: str, write: str | int, read: str
) -> None:
    members = serve(*_set("primary", "secondary", "secondary", port=port))
    primary, *others = members.scripts
    primary.answers["find"] = {"ok": 1, "cursor": {"id": bson.Int64(0), "ns": "k.r", "firstBatch": []}}
    with members.connect(consistency) as session:
        session.write([READING])
        assert session.read_latest("d1", 7) == ()
    (insert,), (find,) = primary.named("insert"), primary.named("find")
    assert insert["writeConcern"]["w"] == write
    assert find["readConcern"] == {"level": read}
    assert not any(other.named("insert") or other.named("find") for other in others)


def test_operation_is_one_attempt_with_one_time_limit(serve: Serve, port: int) -> None:
    members = serve(*_set("primary", "secondary", "secondary", port=port))
    primary = members.scripts[0]
    primary.answers["insert"] = None
    with members.connect() as session:
        with pytest.raises(AutoReconnect) as failure:
            session.write([READING])
        assert session.classify(failure.value) == "error:AutoReconnect"
    (insert,) = primary.named("insert")
    assert "txnNumber" not in insert
    assert 0 < insert["maxTimeMS"] <= 5000


def test_reading_is_a_document_of_exact_values(serve: Serve) -> None:
    members = serve(Script(STAND_ALONE))
    with members.connect() as session:
        session.write([READING])
    ((document,),) = [asked["documents"] for asked in members.scripts[0].named("insert")]
    assert bson.encode({"ts": document["ts"]}) == bson.encode({"ts": bson.DatetimeMS(READING.ts_ms)})
    values = [value for value in document.values() if isinstance(value, float)]
    assert values == list(READING.values)
    assert (document["device_id"], document["metadata"]) == ("d1", b"\x00\xff")


def test_schema_is_a_time_series_collection_with_an_index_for_the_latest(serve: Serve) -> None:
    none: Document = {"ok": 1, "cursor": {"id": bson.Int64(0), "ns": "k.r", "firstBatch": []}}
    members = serve(Script(STAND_ALONE, {"listCollections": none}))
    with members.connect() as session:
        session.create_schema(RECORDS)
    (created,) = members.scripts[0].named("create")
    (indexed,) = members.scripts[0].named("createIndexes")
    assert created["timeseries"] == {
        "timeField": "ts",
        "metaField": "device_id",
        "granularity": "seconds",
    }
    assert list(indexed["indexes"][0]["key"].items()) == [("device_id", 1), ("ts", -1)]


@pytest.mark.parametrize(
    ("layout", "series"),
    [
        ({"collection": "plain"}, None),
        (
            {"collection": "time-series", "granularity": "hours"},
            {"timeField": "ts", "metaField": "device_id", "granularity": "hours"},
        ),
    ],
    ids=["plain", "hours"],
)
def test_a_layout_decides_the_kind_of_collection_and_not_its_index(
    serve: Serve, layout: Document, series: Document | None
) -> None:
    none: Document = {"ok": 1, "cursor": {"id": bson.Int64(0), "ns": "k.r", "firstBatch": []}}
    members = serve(Script(STAND_ALONE, {"listCollections": none}))
    target = members.system.target(members.cluster, consistency="quorum", timeout_s=5.0)
    with members.system.sessions.sensor(replace(target, layout=layout)) as session:
        session.create_schema(RECORDS)
    (created,) = members.scripts[0].named("create")
    (indexed,) = members.scripts[0].named("createIndexes")
    assert created.get("timeseries") == series
    assert list(indexed["indexes"][0]["key"].items()) == [("device_id", 1), ("ts", -1)]


def test_batch_is_one_command_in_any_order(serve: Serve) -> None:
    batch = [replace(READING, ts_ms=READING.ts_ms + place) for place in range(3)]
    members = serve(Script(STAND_ALONE, {"insert": {"ok": 1, "n": 3}}))
    with members.connect() as session:
        session.write(batch)
    (asked,) = members.scripts[0].named("insert")
    assert [int(document["ts"].timestamp() * 1000) for document in asked["documents"]] == [
        reading.ts_ms for reading in batch
    ]
    assert asked["ordered"] is False


def test_what_is_stored_is_read_back_and_may_take_longer_than_an_operation(serve: Serve) -> None:
    names = ("temperature", "humidity", "pressure", "vibration", "battery", "latitude", "longitude")
    values = dict(zip((*names, "signal"), READING.values, strict=True))
    rows = [
        {"ts": bson.DatetimeMS(place), "device_id": "d1", **values, "metadata": bytes(place)}
        for place in (12, 30)
    ]
    found = {"id": bson.Int64(0), "ns": "k.r", "firstBatch": rows}
    members = serve(Script(STAND_ALONE, {"find": {"ok": 1, "cursor": found}}))
    with members.connect(timeout_s=1.0) as session:
        assert session.stored() == Stored(rows=2, payload_bytes=2 * (16 + 8 + 64) + 42)
    (asked,) = members.scripts[0].named("find")
    assert asked["maxTimeMS"] > 60_000


def _status(dirty_bytes: int) -> Document:
    return {"ok": 1, "wiredTiger": {"cache": {"tracked dirty bytes in the cache": dirty_bytes}}}


def test_each_member_says_what_it_has_yet_to_write(serve: Serve, port: int) -> None:
    scripts = _set("primary", "secondary", "secondary", port=port)
    for place, script in enumerate(scripts):
        script.answers["serverStatus"] = _status(place * 1000)
    members = serve(*scripts)
    with members.system.open_telemetry(members.cluster) as read_levels:
        first = read_levels()
        scripts[0].answers["serverStatus"] = _status(bson.Int64(1 << 40))
        second = read_levels()
    assert [(level.node, level.name, level.value) for level in first] == [
        ("s1", UNWRITTEN_BYTES, 0.0),
        ("s2", UNWRITTEN_BYTES, 1000.0),
        ("s3", UNWRITTEN_BYTES, 2000.0),
    ]
    assert second[0].value == 1 << 40
    asked = scripts[0].named("serverStatus")
    assert len(asked) == 2
    assert asked[0]["metrics"] == 0


def test_a_member_that_cannot_say_is_named(serve: Serve) -> None:
    script = Script(STAND_ALONE, {"serverStatus": {"ok": 1, "wiredTiger": {}}})
    members = serve(script)
    with members.system.open_telemetry(members.cluster) as read_levels:
        with pytest.raises(StepFailed, match=r"look failed on s1: .*tracked dirty bytes"):
            read_levels()
        script.answers["serverStatus"] = None
        with pytest.raises(NotReady, match="look failed on s1"):
            read_levels()


def test_members_of_another_set_are_not_taken_for_ours(serve: Serve, port: int) -> None:
    members = serve(*(Script(_member("primary", port) | {"setName": "other"}) for _ in ADDRESSES))
    with pytest.raises(ServerSelectionTimeoutError), members.connect(timeout_s=0.3):
        pass


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (SILENCE, "timeouts"),
        ({"ok": 0, "code": 50, "codeName": "MaxTimeMSExpired", "errmsg": "-"}, "timeouts"),
        ({"ok": 1, "n": 1, "writeConcernError": {"code": 64, "errmsg": "-"}}, "timeouts"),
        (
            {"ok": 0, "code": 10107, "codeName": "NotWritablePrimary", "errmsg": "-"},
            "error:NotPrimaryError",
        ),
        ({"ok": 0, "code": 13, "codeName": "Unauthorized", "errmsg": "-"}, "error:OperationFailure"),
    ],
)
def test_errors_are_named(serve: Serve, answer: Document, kind: str) -> None:
    members = serve(Script(STAND_ALONE, {"insert": answer}))
    with members.connect(timeout_s=0.5) as session:
        with pytest.raises(Exception) as failure:  # noqa: PT011  any of the driver's
            session.write([READING])
        assert session.classify(failure.value) == kind
