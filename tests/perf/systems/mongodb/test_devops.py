"""What the emulator of the contract suite does not know of MongoDB: the pipelines of its queries."""

from types import SimpleNamespace
from typing import Any

import pytest

from perf.model.records import Devops, Operation
from perf.systems.contract import Target
from perf.systems.mongodb.devops import DEFAULT_INDEXES, INDEXES, MongoDevopsSession
from perf.systems.mongodb.layout import DEVOPS_INDEXES
from perf.workloads.devops.queries import make_query

RECORDS = Devops(kind="devops", hosts=9, span_s=50_000)
TARGET = Target(
    system="mongodb",
    addresses=("127.0.0.1",),
    port=1,
    replication_factor=1,
    consistency="one",
    timeout_s=1.0,
)


class Client:
    """Keeps what it is asked to aggregate."""

    def __init__(self, wire_version: int) -> None:
        servers = {("127.0.0.1", 1): SimpleNamespace(max_wire_version=wire_version)}
        self.topology_description = SimpleNamespace(server_descriptions=lambda: servers)
        self.pipelines: list[list[dict[str, Any]]] = []

    def get_database(self, *_: object, **__: object) -> dict[str, Any]:
        def aggregate(pipeline: list[dict[str, Any]]) -> list[Any]:
            self.pipelines.append(pipeline)
            return []

        return {"point_data": SimpleNamespace(aggregate=aggregate)}


def ask(wire_version: int, operation: Operation) -> list[dict[str, Any]]:
    client = Client(wire_version)
    session = MongoDevopsSession(client, TARGET)  # type: ignore[arg-type]  # as much of one as it needs
    assert session.ask(make_query(RECORDS, 1, operation, 0)) == []
    (pipeline,) = client.pipelines
    return pipeline


def test_the_layout_knows_the_indexes_that_there_are() -> None:
    assert set(DEVOPS_INDEXES) == set(INDEXES) > set(DEFAULT_INDEXES)


def test_a_server_that_has_it_truncates_dates() -> None:
    match, group, order = ask(13, Operation.SINGLE_GROUPBY_5_8_1)
    assert set(match["$match"]) == {"measurement", "time", "tags.hostname"}
    assert len(match["$match"]["tags.hostname"]["$in"]) == 8
    assert group["$group"]["_id"] == {"$dateTrunc": {"date": "$time", "unit": "minute"}}
    assert group["$group"]["usage_iowait"] == {"$max": "$usage_iowait"}
    assert order == {"$sort": {"_id": 1}}


def test_means_are_by_hour_and_host() -> None:
    match, group, order = ask(25, Operation.DOUBLE_GROUPBY_ALL)
    assert set(match["$match"]) == {"measurement", "time"}
    assert group["$group"]["_id"] == {
        "time": {"$dateTrunc": {"date": "$time", "unit": "hour"}},
        "hostname": "$tags.hostname",
    }
    assert sum("$avg" in part for part in group["$group"].values()) == 10
    assert order == {"$sort": {"_id.time": 1, "_id.hostname": 1}}


@pytest.mark.parametrize("wire_version", [8, 12])
def test_an_older_server_gets_the_same_buckets_by_arithmetic(wire_version: int) -> None:
    _, group, _ = ask(wire_version, Operation.SINGLE_GROUPBY_1_1_1)
    assert group["$group"]["_id"] == {"$subtract": ["$time", {"$mod": [{"$toLong": "$time"}, 60_000]}]}
