"""The devops workload in MongoDB: one document per row, all tables in one collection, as in TSBS.

After the mode "document-per-event" with a time-series collection in MongoDB's own fork of TSBS, and
its pipelines: `{measurement, time, <fields>, tags: {hostname, …}}`, `timeField` time, `metaField`
tags. Its granularity is stated, seconds, the server's default. `layout` of a system config decides

    collection   time-series (default), or plain
    indexes      a list of: time ({time: 1}), hostname-time ({tags.hostname: 1, time: -1});
                 by default time alone

Buckets are made by `$dateTrunc`, which came with MongoDB 5.0 (wire version 13), as time-series
collections did; an older server, and the emulator of the tests, gets the same buckets by arithmetic.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import pymongo
from bson.datetime_ms import DatetimeMS
from pymongo.errors import CollectionInvalid

from perf.model.records import Devops, Operation, Stored
from perf.systems.contract import Target
from perf.systems.mongodb.client import Client, DatabaseSession, Document
from perf.systems.mongodb.layout import collection_options
from perf.systems.mongodb.shards import shard
from perf.workloads.devops.queries import QUERIES
from perf.workloads.devops.rows import DevopsRow, Group, Query
from perf.workloads.devops.tables import TABLES, TAGS

INDEXES = {
    "time": [("time", pymongo.ASCENDING)],
    "hostname-time": [("tags.hostname", pymongo.ASCENDING), ("time", pymongo.DESCENDING)],
}
"""The indexes of the devops workload, by the words of a layout."""
DEFAULT_INDEXES = ("time",)

_COLLECTION = "point_data"
_SLOW_S = 4 * 3600.0  # a server may read a thousand million documents to count them
_VALUE_BYTES = 8
_WIRE_VERSION_5_0 = 13
_NAMES = {table: tuple(field.name for field in fields) for table, fields in TABLES.items()}
_UNIT = {60_000: "minute", 3_600_000: "hour"}
_FIXED_FIELDS = 4  # _id, measurement, time, tags


class MongoDevopsSession(DatabaseSession):
    """A client of the devops workload."""

    def __init__(self, client: Client, target: Target) -> None:
        """Bind the collection."""
        super().__init__(client, target)
        self._points = self._database[_COLLECTION]
        servers = client.topology_description.server_descriptions().values()
        self._truncates = max(one.max_wire_version for one in servers) >= _WIRE_VERSION_5_0

    def create_schema(self, records: Devops) -> None:
        """Create the collection and its indexes; do nothing if they exist."""
        options = collection_options(self._layout, time_field="time", meta_field="tags")
        names: Any = self._layout.get("indexes", DEFAULT_INDEXES)
        with pymongo.timeout(_SLOW_S):
            with suppress(CollectionInvalid):
                self._database.create_collection(_COLLECTION, **options)
            for name in names:
                self._points.create_index(INDEXES[name])
            shard(self._database, _COLLECTION, "tags.hostname")

    def write(self, rows: Sequence[DevopsRow]) -> None:
        """Insert rows in one command, whose order is free."""
        self._points.insert_many([_to_document(row) for row in rows], ordered=False)

    def finish_load(self) -> None:
        """Do nothing: what is acknowledged can be read."""

    def can_ask(self, operation: Operation) -> bool:
        """Say yes: every query of the workload has a pipeline."""
        return operation in QUERIES

    def ask(self, query: Query) -> Sequence[Group]:
        """Run its pipeline."""
        groups = []
        for one in self._points.aggregate(self._pipeline(query)):
            of = one["_id"]
            at, host = (of, "") if query.hosts else (of["time"], of["hostname"])
            groups.append(Group(int(at), host, tuple(one[metric] for metric in query.metrics)))
        return groups

    def stored(self) -> Stored:
        """Count documents and the values in them, in the server, which reads each of them."""
        fields = {"$size": {"$objectToArray": "$$ROOT"}}
        pipeline: list[Document] = [
            {"$group": {"_id": None, "rows": {"$sum": 1}, "fields": {"$sum": fields}}}
        ]
        with pymongo.timeout(_SLOW_S):
            found = next(iter(self._points.aggregate(pipeline)), {"rows": 0, "fields": 0})
        values = found["fields"] - _FIXED_FIELDS * found["rows"]
        return Stored(rows=found["rows"], payload_bytes=values * _VALUE_BYTES)

    def _pipeline(self, query: Query) -> list[Document]:
        window = {"$gte": DatetimeMS(query.from_ms), "$lt": DatetimeMS(query.until_ms)}
        match: Document = {"measurement": "cpu", "time": window}
        group: Any = self._bucket(query.bucket_ms)
        order: Document = {"_id": pymongo.ASCENDING}
        if query.hosts:
            match["tags.hostname"] = {"$in": list(query.hosts)}
        else:
            group = {"time": group, "hostname": "$tags.hostname"}
            order = {"_id.time": pymongo.ASCENDING, "_id.hostname": pymongo.ASCENDING}
        function = "$max" if query.aggregate == "max" else "$avg"
        aggregates = {metric: {function: f"${metric}"} for metric in query.metrics}
        return [{"$match": match}, {"$group": {"_id": group, **aggregates}}, {"$sort": order}]

    def _bucket(self, bucket_ms: int) -> Document:
        if self._truncates:
            return {"$dateTrunc": {"date": "$time", "unit": _UNIT[bucket_ms]}}
        return {"$subtract": ["$time", {"$mod": [{"$toLong": "$time"}, bucket_ms]}]}


def _to_document(row: DevopsRow) -> Document:
    return {
        "measurement": row.table,
        "time": DatetimeMS(row.ts_ms),
        **dict(zip(_NAMES[row.table], row.values, strict=True)),
        "tags": _to_tags(row.tags),
    }


@lru_cache(maxsize=1 << 14)
def _to_tags(tags: tuple[str, ...]) -> Document:
    return dict(zip(TAGS, tags, strict=True))
