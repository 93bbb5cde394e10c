"""The client side of CQL, the protocol of Cassandra and its kin, on `cassandra-driver`.

The driver is untyped; its values stop at this module's edge. Failed requests are never retried, so
that each failure is counted, and a timestamp is an exact number of milliseconds in both directions.
"""

import itertools
import logging
import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Self, TypeAlias

from cassandra import (
    AuthenticationFailed,
    ConsistencyLevel,
    DriverException,
    InvalidRequest,
    OperationTimedOut,
    ProtocolVersion,
    Timeout,
    Unavailable,
)
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, ExecutionProfile, NoHostAvailable
from cassandra.cluster import Cluster as Driver
from cassandra.io.libevreactor import LibevConnection
from cassandra.policies import (
    FallthroughRetryPolicy,
    RoundRobinPolicy,
    TokenAwarePolicy,
    WhiteListRoundRobinPolicy,
)
from cassandra.query import BatchStatement, BatchType, tuple_factory

from perf.model.access import Access
from perf.model.errors import AccountRefused, NotReady
from perf.model.records import Sensor, Stored
from perf.systems.contract import Cluster, Node, Target
from perf.systems.cql.layout import LEVELLED, replication_class, with_options
from perf.systems.cql.rows import to_reading
from perf.systems.credentials import explain_tls, open_tls, read_login, refuse_account
from perf.systems.sessions import OnRead, OnWritten
from perf.workloads.sensor import VALUES, SensorReading, payload_bytes

FIRST_TOKEN = -(1 << 63)
"""The lowest token of the Murmur3 ring; no key has it, so it bounds from below."""
RING = 1 << 64
"""How many tokens the ring has."""
SLOW_S = 120.0
"""How long what creates tables, or reads all of them, may take."""

_CONNECT_TIMEOUT_S = 15.0
_RING_SLICES = 64
_PAGES_AHEAD = 4
KEYSPACE = "knickpoint"
_COLUMNS = ", ".join(("device_id", "ts", *VALUES, "metadata"))
_TABLE = f"{KEYSPACE}.sensor_readings"
_CREATE_TABLE = f"""
CREATE TABLE IF NOT EXISTS {_TABLE} (
    device_id text, ts timestamp, {", ".join(f"{value} double" for value in VALUES)}, metadata blob,
    PRIMARY KEY ((device_id), ts)
)"""


def create_keyspace(target: Target, unless: str = "IF NOT EXISTS ") -> str:
    """Return the statement that creates the keyspace of all tables, by default unless it exists."""
    return (
        f"CREATE KEYSPACE {unless}{KEYSPACE} WITH replication = {{'class': "
        f"'{replication_class(target.layout)}', 'replication_factor': {target.replication_factor}}}"
    )


class _TimeLimit:
    """The driver's timer of an operation, which lets go of it, and of its answer, once it has ended."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call
        self.timer: Any = None

    def __call__(self) -> None:
        if self._call is not None:
            self._call()

    def cancel(self) -> None:
        self.timer.cancel()
        self._call = None


class DriverConnection(LibevConnection):  # type: ignore[misc]  # the driver is untyped
    """The driver's connection on libev, named here so that no other event loop is chosen silently.

    Two things are not of the driver's documented side, for validity. It refuses an operation while its
    socket takes no more, as with batches of half a MB, and a refusal would count as the database's
    failure; how many may wait is the engine's decision, and waiting here is part of service time. And
    where one answer is lost, it keeps all that come after until that one's time limit, with all their
    rows: hundreds of MB, which Python's collector walks through while sends are due.
    """

    _socket_writable = property(lambda _: True, lambda _, __: None)

    @classmethod
    def create_timer(cls, timeout: float, callback: Callable[[], None]) -> _TimeLimit:
        """Bound an operation; the driver calls this for each."""
        limit = _TimeLimit(callback)
        limit.timer = super().create_timer(timeout, limit)
        return limit


class DriverSession:
    """What sessions of all data models share."""

    def __init__(self, session: Any, target: Target) -> None:  # noqa: ANN401  the driver is untyped
        """Wrap a connected session of the driver."""
        self._session = session
        self._target = target

    @classmethod
    @contextmanager
    def connect(cls, target: Target) -> Iterator[Self]:
        """Connect a client; its statements are prepared before the first operation."""
        with open_driver(target) as session:
            wrapped = cls(session, target)
            with suppress(InvalidRequest):  # there is no table yet: then the first operation prepares
                wrapped.prepare()
            yield wrapped

    def prepare(self) -> None:
        """Prepare what is known beforehand; raise what the driver raises if there is no table yet."""

    def classify(self, error: Exception) -> str:
        """Name the kind of an error: a timeout on either side is "timeouts"."""
        if isinstance(error, OperationTimedOut | Timeout):
            return "timeouts"
        if isinstance(error, Unavailable):
            return "error:unavailable"
        if isinstance(error, NoHostAvailable):
            return "error:no-host-available"
        return f"error:{type(error).__name__}"


class CqlSession(DriverSession):
    """A client of the sensor workload."""

    def __init__(self, session: Any, target: Target) -> None:  # noqa: ANN401  the driver is untyped
        """Wrap a connected session of the driver."""
        super().__init__(session, target)
        self._insert: Any = None
        self._select: Any = None

    def create_schema(self, records: Sensor) -> None:
        """Create keyspace and table as in the public report that the workload follows.

        That has levelled compaction; a config may say another.
        """
        self._session.execute(create_keyspace(self._target), timeout=SLOW_S)
        order = "CLUSTERING ORDER BY (ts DESC)"
        options = with_options(self._target.layout, order, default=LEVELLED)
        self._session.execute(_CREATE_TABLE + options, timeout=SLOW_S)
        self.prepare()

    def prepare(self) -> None:
        """Prepare the statements, once; raise what the driver raises if there is no table yet."""
        if self._select is not None:
            return
        marks = ", ".join("?" for _ in range(3 + len(VALUES)))
        self._insert = self._session.prepare(f"INSERT INTO {_TABLE} ({_COLUMNS}) VALUES ({marks})")  # noqa: S608  constants
        select = self._session.prepare(f"SELECT {_COLUMNS} FROM {_TABLE} WHERE device_id = ? LIMIT ?")  # noqa: S608  constants
        select.fetch_size = None  # all rows in one answer, never in pages
        self._select = select

    def write(self, readings: Sequence[SensorReading]) -> None:
        """Insert readings of one device: one alone, several as one unlogged batch.

        They share a partition, so a batch is one mutation there and needs no log to be atomic.
        """
        self._session.execute(*self._writing(readings))

    def read_latest(self, device_id: str, count: int) -> Sequence[SensorReading]:
        """Select the newest readings of a device; the table's clustering order puts them first."""
        return tuple(map(to_reading, self._session.execute(*self._reading(device_id, count))))

    def write_soon(self, readings: Sequence[SensorReading], done: OnWritten) -> None:
        """Begin what `write` does; `done` is called by the thread of the driver's event loop."""
        ask_soon(self._session, partial(self._writing, readings), lambda _: done(None, None), done)

    def read_latest_soon(self, device_id: str, count: int, done: OnRead) -> None:
        """Begin what `read_latest` does; `done` is called by the thread of the driver's event loop."""
        asked = partial(self._reading, device_id, count)
        ask_soon(self._session, asked, lambda rows: done(tuple(map(to_reading, rows)), None), done)

    def stored(self) -> Stored:
        """Read every row back, page by page, in slices of the ring; count rows and their bytes."""
        rows = size = 0
        for row in read_all(self._session, f"SELECT {_COLUMNS} FROM {_TABLE}", "device_id"):  # noqa: S608  constants
            rows += 1
            size += payload_bytes(to_reading(row))
        return Stored(rows=rows, payload_bytes=size)

    def _writing(self, readings: Sequence[SensorReading]) -> tuple[Any, ...]:
        self.prepare()
        # A timestamp goes in as integer milliseconds, exactly.
        rows = [(one.device_id, one.ts_ms, *one.values, one.metadata) for one in readings]
        return one_or_batch(self._insert, rows)

    def _reading(self, device_id: str, count: int) -> tuple[Any, ...]:
        self.prepare()
        return self._select, (device_id, count)


def one_or_batch(insert: Any, rows: Sequence[tuple[Any, ...]]) -> tuple[Any, Any]:  # noqa: ANN401  the driver is untyped
    """Return what to execute to write rows, and its arguments: of several rows, one unlogged batch."""
    if len(rows) == 1:
        return insert, rows[0]
    batch = BatchStatement(BatchType.UNLOGGED)
    for row in rows:
        batch.add(insert, row)
    return batch, None


def read_all(session: Any, select: str, partition_key: str) -> Iterator[Any]:  # noqa: ANN401  the driver is untyped
    """Yield every row of a table once, in no order; `select` has no condition yet.

    It is read by pages, in slices of the ring.
    """
    token = f"token({partition_key})"
    statement = session.prepare(f"{select} WHERE {token} > ? AND {token} <= ?")
    edges = [FIRST_TOKEN + RING * index // _RING_SLICES for index in range(_RING_SLICES)]
    asks = (
        partial(session.execute_async, statement, slice_of, timeout=SLOW_S)
        for slice_of in itertools.pairwise((*edges, FIRST_TOKEN + RING - 1))
    )
    # Several pages are under way at a time, so that all cores of the servers and the client have work.
    waiting = deque(ask() for ask in itertools.islice(asks, _PAGES_AHEAD))
    while waiting:
        asked = waiting.popleft()
        rows = asked.result().current_rows
        if asked.has_more_pages:
            asked.start_fetching_next_page()
            waiting.append(asked)
        else:
            waiting.extend(ask() for ask in itertools.islice(asks, 1))
        yield from rows


def ask_soon(
    session: Any,  # noqa: ANN401  the driver is untyped
    ask: Callable[[], tuple[Any, ...]],
    answer: Callable[[Any], None],
    done: Callable[[None, Exception], None],
) -> None:
    """Send what `ask` gives; call `answer` with the rows, or `done` with the error, exactly once."""
    try:
        future = session.execute_async(*ask())
    except Exception as error:  # noqa: BLE001  a driver may raise anything; the caller is notified once
        done(None, error)
    else:
        future.add_callbacks(answer, partial(done, None))


@contextmanager
def _open(
    addresses: Sequence[str], port: int, access: Access | None, profile: ExecutionProfile
) -> Iterator[Any]:
    login, tls = read_login(access), open_tls(access)
    # What goes wrong reaches the caller as an exception; the driver's own lines would be noise.
    logging.getLogger("cassandra").setLevel(logging.CRITICAL)
    cluster = Driver(
        list(addresses),
        port=port,
        # What all supported releases speak. Version 5 adds checksums that the driver computes in
        # Python: a fifth of an operation's cost, and a client's share that differs by release.
        protocol_version=ProtocolVersion.V4,
        compression=False,
        connection_class=DriverConnection,
        # Without it, a request that does not fill a segment waits until the one before is acknowledged.
        sockopts=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        connect_timeout=_CONNECT_TIMEOUT_S,
        control_connection_timeout=_CONNECT_TIMEOUT_S,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        # With a context the driver asks for a certificate of the address that it connects to.
        ssl_context=tls,
        auth_provider=login and PlainTextAuthProvider(login.username, login.password),
    )
    try:
        yield _connect(cluster, port, access)
    finally:
        cluster.shutdown()


def _connect(cluster: Driver, port: int, access: Access | None) -> Any:  # noqa: ANN401  the driver is untyped
    try:
        return cluster.connect()
    except NoHostAvailable as error:
        for endpoint, why in error.errors.items():
            address = str(endpoint).rpartition(":")[0]
            if isinstance(why, AuthenticationFailed):
                raise refuse_account(access, address, port) from error
            if wrong := explain_tls(access, address, port):
                raise wrong from error
        raise


@contextmanager
def open_driver(target: Target) -> Iterator[Any]:
    """Connect a session of the driver that sends each request to a replica of its row."""
    # Where every node holds every row, taking turns is enough: no token of a row has to be computed.
    takes_turns = RoundRobinPolicy()
    everywhere = target.replication_factor >= len(target.addresses)
    profile = ExecutionProfile(
        load_balancing_policy=takes_turns if everywhere else TokenAwarePolicy(takes_turns),
        retry_policy=FallthroughRetryPolicy(),
        consistency_level=ConsistencyLevel.name_to_value[target.consistency.upper()],
        request_timeout=target.timeout_s,
        row_factory=tuple_factory,
    )
    with _open(target.addresses, target.port, target.access, profile) as session:
        yield session


Answers: TypeAlias = tuple[tuple[Node, tuple[Any, ...]], ...]


def ask_each(cluster: Cluster, port: int, query: str) -> Answers:
    """Ask every node about itself, once; raise what `connect_each` raises."""
    with connect_each(cluster, port) as ask:
        return ask(query)


@contextmanager
def connect_each(cluster: Cluster, port: int) -> Iterator[Callable[[str], Answers]]:
    """Connect to every node by itself; give what asks them all a query.

    Raises:
        NotReady: a node does not answer, now or when it is asked.
        AccessError: a node has the wrong certificate, or a secret cannot be had.

    """
    with ExitStack() as connections:
        sessions = []
        attached = cluster.testbed.attached
        port = (attached and attached.port) or port
        for node in cluster.spoken_to:
            with _answering(node):
                alone = _open_alone(node, port, cluster.config.access)
                sessions.append((node, connections.enter_context(alone)))

        def ask(query: str) -> Answers:
            answers = []
            for node, session in sessions:
                with _answering(node):
                    answers.append((node, tuple(session.execute(query))))
            return tuple(answers)

        yield ask


def _open_alone(node: Node, port: int, access: Access | None) -> AbstractContextManager[Any]:
    # One client per node: a client of all would be connected to some of them a little later.
    profile = ExecutionProfile(
        load_balancing_policy=WhiteListRoundRobinPolicy([node.address]),
        consistency_level=ConsistencyLevel.ONE,
        request_timeout=_CONNECT_TIMEOUT_S,
        row_factory=tuple_factory,
    )
    return _open([node.address], port, access, profile)


@contextmanager
def _answering(node: Node) -> Iterator[None]:
    try:
        yield
    except AccountRefused as refused:  # servers create their first account after they open their port
        raise NotReady(refused.step, node.name, refused.why) from refused
    except (DriverException, NoHostAvailable, OSError) as error:
        raise NotReady("ask", node.name, f"{type(error).__name__}: {error}") from error
