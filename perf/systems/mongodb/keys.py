"""MongoDB's session of the workloads put/get and YCSB, on `pymongo`.

A record is a document {_id: key, field0: …, field1: …} of a plain collection; a field is binary data,
as in YCSB's own binding for MongoDB (site.ycsb.db.MongoDbClient). How the words of a workload map to
commands:

    insert    insert_one; a key that is there is an error
    put       replace_one with upsert: the whole document, in place of what is there
    update    update_one with $set of the fields that it names; does nothing where there is no document
    get       find_one by _id
    scan      find from a key on, sorted by _id: in the order of keys

What consistency means stands in `perf.systems.mongodb.client`.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import pymongo
from pymongo.errors import CollectionInvalid

from perf.model.records import PutGet, Stored, Values, Ycsb
from perf.systems.contract import Target
from perf.systems.mongodb.client import SLOW_S, Client, DatabaseSession, Document
from perf.systems.mongodb.shards import shard

_COLLECTION = "records"


class MongoKeyValueSession(DatabaseSession):
    """A client of the workloads put/get and YCSB."""

    def __init__(self, client: Client, target: Target) -> None:
        """Bind the collection of records."""
        super().__init__(client, target)
        self._records = self._database[_COLLECTION]

    def create_schema(self, records: PutGet | Ycsb) -> None:
        """Create the collection; do nothing if it exists. Each has an index on _id."""
        with pymongo.timeout(SLOW_S):
            with suppress(CollectionInvalid):
                self._database.create_collection(_COLLECTION)
            shard(self._database, _COLLECTION, "_id")

    def insert(self, key: str, values: Values) -> None:
        """Insert a document."""
        self._records.insert_one({"_id": key, **_to_fields(values)})

    def put(self, key: str, values: Values) -> None:
        """Replace a document, or insert it."""
        self._records.replace_one({"_id": key}, _to_fields(values), upsert=True)

    def update(self, key: str, changes: Mapping[int, bytes]) -> None:
        """Set some fields of a document."""
        fields = {f"field{number}": value for number, value in changes.items()}
        self._records.update_one({"_id": key}, {"$set": fields})

    def get(self, key: str) -> Values | None:
        """Find a document by its key; None if there is none."""
        found = self._records.find_one({"_id": key})
        return None if found is None else _to_record(found)[1]

    def scan(self, first_key: str, count: int) -> Sequence[tuple[str, Values]]:
        """Find documents in the order of their keys, in one round trip."""
        found = self._records.find(
            {"_id": {"$gte": first_key}},
            sort=[("_id", pymongo.ASCENDING)],
            limit=count,
            batch_size=count,
        )
        return tuple(map(_to_record, found))

    def stored(self) -> Stored:
        """Read every document back; the collection's own statistics are estimates."""
        rows = size = 0
        with pymongo.timeout(SLOW_S), self._records.find() as found:
            for document in found:
                rows += 1
                size += sum(map(len, _to_record(document)[1]))
        return Stored(rows=rows, payload_bytes=size)


def _to_fields(values: Values) -> Document:
    return {f"field{number}": value for number, value in enumerate(values)}


def _to_record(document: Document) -> tuple[str, Values]:
    # By name: which place a field has in its document is the server's decision after an update. One
    # that is not there, or no binary data, is for whoever verifies a wrong field, and no error of the
    # operation.
    found = (document.get(f"field{number}") for number in range(len(document) - 1))
    fields = [value if isinstance(value, bytes) else b"" for value in found]
    return str(document.get("_id")), fields
