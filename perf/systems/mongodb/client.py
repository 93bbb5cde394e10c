"""The client side of MongoDB, on `pymongo`: a stand-alone server, or a replica set.

How the words of a workload map to MongoDB:

    consistency one      w: 1                     read concern local
    consistency quorum   w: majority              read concern majority
    consistency all      w: replication factor    read concern majority

Reads go to the primary. An operation is one attempt: retryable writes and reads are off, so that no
second attempt hides in a service time. The operation timeout bounds the whole operation on the
client, and the server gives up at the same moment.

Readings are in a time-series collection (`ts`, `device_id`), or a plain one if the config says so (see
`perf.systems.mongodb.layout`), with an index for the latest readings of a device. Neither has a unique
index over them: a reading written twice is stored twice, where Cassandra would overwrite it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import itemgetter
from typing import Any, Self, TypeAlias

import pymongo
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.datetime_ms import DatetimeMS
from pymongo.database import Database
from pymongo.errors import CollectionInvalid, ConnectionFailure, NetworkTimeout, OperationFailure
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from perf.model.access import Access
from perf.model.records import Sensor, Stored
from perf.systems.contract import Target
from perf.systems.credentials import (
    Login,
    explain_tls,
    open_tls,
    own_certificate,
    read_login,
    refuse_account,
)
from perf.systems.mongodb.layout import collection_options
from perf.systems.mongodb.shards import shard
from perf.workloads.sensor import VALUES, SensorReading, payload_bytes

Document: TypeAlias = dict[str, Any]
Client: TypeAlias = pymongo.MongoClient[Document]

REPLICA_SET = "knickpoint"
"""The name of the replica set, where there are several servers."""
SLOW_S = 600.0
"""How long what creates collections, or reads all of them, may take."""

_DATABASE = "knickpoint"
_COLLECTION = "readings"
_values_of = itemgetter(*VALUES)
_MILLISECONDS: CodecOptions[Document] = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)
# The server's error codes: MaxTimeMSExpired, WriteConcernTimeout, ExceededTimeLimit.
_TIMEOUTS = (50, 64, 262)
# AuthenticationFailed.
_NOT_LET_IN = 18


class DatabaseSession:
    """What sessions of all data models share, of a stand-alone server, a replica set or routers."""

    def __init__(self, client: Client, target: Target) -> None:
        """Bind the database with the target's consistency and exact milliseconds."""
        write, read = {
            "one": (WriteConcern(w=1), ReadConcern("local")),
            "quorum": (WriteConcern(w="majority"), ReadConcern("majority")),
            "all": (WriteConcern(w=target.replication_factor), ReadConcern("majority")),
        }[target.consistency]
        self._database: Database[Document] = client.get_database(
            _DATABASE, codec_options=_MILLISECONDS, write_concern=write, read_concern=read
        )
        self._layout = target.layout

    @classmethod
    @contextmanager
    def connect(cls, target: Target) -> Iterator[Self]:
        """Connect a client; return when the server, or the primary, has answered.

        Raises:
            AccessError, PyMongoError: as `await_answer`.

        """
        with cls.open(target) as client:
            yield cls(client, target)

    @staticmethod
    @contextmanager
    def open(target: Target) -> Iterator[Client]:
        """Yield a client once the server has answered; raise what `await_answer` raises."""
        where = target.addresses, target.port, target.timeout_s, target.access
        with open_client(*where, routers=target.routers) as client:
            await_answer(client, target.addresses, target.port, target.access)
            yield client

    def classify(self, error: Exception) -> str:
        """Name the kind of an error.

        "timeouts" are operations that were sent and not answered in time. No server to send to is
        another kind of fault and keeps its own name.
        """
        late = isinstance(error, OperationFailure) and error.code in _TIMEOUTS
        if late or isinstance(error, NetworkTimeout):
            return "timeouts"
        return f"error:{type(error).__name__}"


class MongoSession(DatabaseSession):
    """A client of the sensor workload."""

    def __init__(self, client: Client, target: Target) -> None:
        """Bind the collection of readings."""
        super().__init__(client, target)
        self._readings = self._database[_COLLECTION]

    def create_schema(self, records: Sensor) -> None:
        """Create the collection, time-series unless its config says plain, and its index, once."""
        options = collection_options(self._layout, time_field="ts", meta_field="device_id")
        with pymongo.timeout(SLOW_S):
            with suppress(CollectionInvalid):
                self._database.create_collection(_COLLECTION, **options)
            self._readings.create_index([("device_id", pymongo.ASCENDING), ("ts", pymongo.DESCENDING)])
            shard(self._database, _COLLECTION, "device_id")

    def write(self, readings: Sequence[SensorReading]) -> None:
        """Insert readings of one device: one alone, several in one command whose order is free."""
        documents = list(map(_to_document, readings))
        if len(documents) == 1:
            self._readings.insert_one(documents[0])
        else:
            self._readings.insert_many(documents, ordered=False)

    def read_latest(self, device_id: str, count: int) -> Sequence[SensorReading]:
        """Return the newest readings of a device, newest first, in one round trip."""
        found = self._readings.find(
            {"device_id": device_id},
            {"_id": False},
            sort=[("ts", pymongo.DESCENDING)],
            limit=count,
            batch_size=count,
        )
        return tuple(map(_to_reading, found))

    def stored(self) -> Stored:
        """Read every reading back; the collection's own statistics are estimates."""
        rows = size = 0
        with pymongo.timeout(SLOW_S), self._readings.find({}, {"_id": False}) as found:
            for document in found:
                rows += 1
                size += payload_bytes(_to_reading(document))
        return Stored(rows=rows, payload_bytes=size)


def open_client(
    addresses: Sequence[str],
    port: int,
    timeout_s: float,
    access: Access | None = None,
    *,
    routers: bool = False,
) -> Client:
    """Return a client whose every operation ends within `timeout_s`; it connects when first used.

    Raises:
        AccessError: a secret cannot be had as `access` says.

    """
    # One address is spoken to as it is, whatever its role; several are the members of the set, or
    # routers, which take turns. The pool has no limit of its own: how much is in flight is the
    # engine's decision.
    alone = len(addresses) == 1
    timeout_ms = timeout_s * 1000
    login = read_login(access)
    with _tls_options(access) as tls:
        return pymongo.MongoClient(
            list(addresses),
            port,
            directConnection=alone,
            replicaSet=None if alone or routers else REPLICA_SET,
            retryWrites=False,
            retryReads=False,
            maxPoolSize=0,
            timeoutMS=timeout_ms,
            connectTimeoutMS=timeout_ms,
            serverSelectionTimeoutMS=timeout_ms,
            appname="knickpoint",
            **(_login_options(login) if login else {}),
            **tls,
        )


def _login_options(login: Login) -> dict[str, Any]:
    # The mechanism is said, so that no server's list of them changes what a connection costs.
    return {
        "username": login.username,
        "password": login.password,
        "authSource": "admin",
        "authMechanism": "SCRAM-SHA-256",
    }


@contextmanager
def _tls_options(access: Access | None) -> Iterator[dict[str, Any]]:
    """Yield a client's options of TLS; what they name is there for as long as it is made.

    The driver asks for a certificate of the address that it connects to; Python for TLS 1.2 at least.
    """
    if access is None or access.tls is None:
        yield {}
        return
    open_tls(access)  # says what is wrong with the files in words of our own
    with own_certificate(access.tls) as path:
        yield {"tls": True, "tlsCAFile": access.tls.ca_file} | (
            {"tlsCertificateKeyFile": path} if path else {}
        )


def await_answer(client: Client, addresses: Sequence[str], port: int, access: Access | None) -> None:
    """Return once the server, or the primary, has answered.

    Raises:
        AccessError: a server does not let clients in, or has the wrong certificate.
        PyMongoError: anything else is wrong.

    """
    try:
        client.admin.command("ping")
    except OperationFailure as error:
        if error.code == _NOT_LET_IN:
            raise refuse_account(access, addresses[0], port) from error
        raise
    except ConnectionFailure as error:
        for address in addresses:
            if wrong := explain_tls(access, address, port):
                raise wrong from error
        raise


def _to_document(reading: SensorReading) -> Document:
    document: Document = {"ts": DatetimeMS(reading.ts_ms), "device_id": reading.device_id}
    document.update(zip(VALUES, reading.values, strict=True))
    document["metadata"] = reading.metadata
    return document


def _to_reading(row: Document) -> SensorReading:
    return SensorReading(row["device_id"], int(row["ts"]), _values_of(row), bytes(row["metadata"]))
