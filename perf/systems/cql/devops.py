"""The devops workload in CQL: nine tables, a partition for each host in each of them.

`PRIMARY KEY ((hostname), ts)`; the other tags are static columns, written with every row as other
systems write them. A partition holds all rows of a host in a table: 25 920 over the published three
days. Data over many months would want a day in the partition key.

Writes: a batch of the workload is of many hosts and tables, and CQL's own batches are only cheap
within one partition (and limited to 50 KiB by default). So its rows are grouped by table and host; a
group is an unlogged batch of up to 16 rows, a lone row an insert, and up to 32 such requests are in
flight. The operation ends when all are acknowledged: it is one operation of many requests.

Queries aggregate in the server, by `GROUP BY hostname, floor(ts, 1m)`. That came with Cassandra 4.1;
a release without it is asked no queries, since a client that reads all rows and adds them up would
measure itself. What one statement gives is of one host, so the client puts hosts together: a single-
groupby over eight hosts is one statement with IN, whose maxima per host and minute are merged; a
double-groupby is a statement that finds the hosts and then one for each, 32 in flight. TSBS's own
client for Cassandra asks host by host and merges as well.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from cassandra import InvalidRequest
from cassandra.cluster import EXEC_PROFILE_DEFAULT
from cassandra.concurrent import execute_concurrent, execute_concurrent_with_args
from cassandra.protocol import SyntaxException

from perf.model.records import Devops, Operation, Stored
from perf.systems.contract import Target
from perf.systems.cql.client import KEYSPACE, DriverSession, create_keyspace, one_or_batch
from perf.systems.cql.layout import with_options
from perf.systems.cql.rows import to_ms
from perf.workloads.devops.queries import QUERIES
from perf.workloads.devops.rows import DevopsRow, Group, Query
from perf.workloads.devops.tables import TABLES, TAGS

_IN_FLIGHT = 32
_BATCH_ROWS = 16
_SLOW_S = 600.0
_VALUE_BYTES = 8


class CqlDevopsSession(DriverSession):
    """A client of the devops workload; a statement is prepared when it is first needed."""

    def __init__(self, session: Any, target: Target) -> None:  # noqa: ANN401  the driver is untyped
        """Wrap a connected session of the driver."""
        super().__init__(session, target)
        self._prepared: dict[str, Any] = {}

    def create_schema(self, records: Devops) -> None:
        """Create keyspace and tables; whole numbers are bigint, as in TSBS, others double."""
        self._session.execute(create_keyspace(self._target), timeout=_SLOW_S)
        tags = ", ".join(f"{tag} text STATIC" for tag in TAGS[1:])
        for table, fields in TABLES.items():
            columns = ", ".join(
                f"{field.name} {'bigint' if field.is_whole else 'double'}" for field in fields
            )
            self._session.execute(
                f"CREATE TABLE IF NOT EXISTS {KEYSPACE}.{table} (hostname text, {tags}, "
                f"ts timestamp, {columns}, PRIMARY KEY ((hostname), ts))"
                + with_options(self._target.layout),
                timeout=_SLOW_S,
            )

    def write(self, rows: Sequence[DevopsRow]) -> None:
        """Store rows in as few requests as their partitions allow; raise the first error."""
        partitions: defaultdict[tuple[str, str], list[DevopsRow]] = defaultdict(list)
        for row in rows:
            partitions[row.table, row.tags[0]].append(row)
        requests = [
            self._writing(table, together[first : first + _BATCH_ROWS])
            for (table, _), together in partitions.items()
            for first in range(0, len(together), _BATCH_ROWS)
        ]
        execute_concurrent(self._session, requests, concurrency=_IN_FLIGHT)

    def finish_load(self) -> None:
        """Do nothing: what is acknowledged can be read."""

    def can_ask(self, operation: Operation) -> bool:
        """Try whether the server takes a grouping by time; the tables must be there."""
        if operation not in QUERIES:
            return False
        try:
            self._prepare(_say_query(("usage_user",), "max", 60_000, "hostname = ?"))
        except (SyntaxException, InvalidRequest):
            return False
        return True

    def ask(self, query: Query) -> Sequence[Group]:
        """Ask it, and put hosts together."""
        aggregates = query.metrics, query.aggregate, query.bucket_ms
        window = query.from_ms, query.until_ms
        if query.hosts:
            statement = self._prepare(_say_query(*aggregates, "hostname IN ?"))
            found = self._session.execute(statement, (list(query.hosts), *window))
            best: dict[int, list[float]] = {}
            for _, at, *values in found:
                known = best.setdefault(to_ms(at), values)
                known[:] = map(max, known, values)
            return [Group(ts_ms, "", tuple(best[ts_ms])) for ts_ms in sorted(best)]
        statement = self._prepare(_say_query(*aggregates, "hostname = ?"))
        hosts = self._session.execute(f"SELECT DISTINCT hostname FROM {KEYSPACE}.cpu")  # noqa: S608  constants
        each = [(host, *window) for (host,) in hosts]
        answers = execute_concurrent_with_args(self._session, statement, each, concurrency=_IN_FLIGHT)
        groups = [
            Group(to_ms(at), host, tuple(values)) for _, rows in answers for host, at, *values in rows
        ]
        return sorted(groups, key=lambda group: (group.ts_ms, group.host))

    def stored(self) -> Stored:
        """Count rows and values, partition by partition, in the server, which reads each of them."""
        slowly = self._session.execution_profile_clone_update(
            EXEC_PROFILE_DEFAULT, request_timeout=_SLOW_S
        )
        rows = values = 0
        for table, fields in TABLES.items():
            hosts = self._session.execute(
                f"SELECT DISTINCT hostname FROM {KEYSPACE}.{table}",  # noqa: S608  constants
                execution_profile=slowly,
            )
            counts = ", ".join(f"count({field.name})" for field in fields)
            statement = self._prepare(
                f"SELECT count(*), {counts} FROM {KEYSPACE}.{table} WHERE hostname = ?"  # noqa: S608  constants
            )
            found = execute_concurrent_with_args(
                self._session, statement, list(hosts), concurrency=_IN_FLIGHT, execution_profile=slowly
            )
            for _, ((of_rows, *of_values),) in found:
                rows += of_rows
                values += sum(of_values)
        return Stored(rows=rows, payload_bytes=values * _VALUE_BYTES)

    def _writing(self, table: str, rows: Sequence[DevopsRow]) -> tuple[Any, Any]:
        names = ", ".join((*TAGS, "ts", *(field.name for field in TABLES[table])))
        marks = ", ".join("?" for _ in names.split(", "))
        insert = self._prepare(f"INSERT INTO {KEYSPACE}.{table} ({names}) VALUES ({marks})")  # noqa: S608  constants
        return one_or_batch(insert, [(*row.tags, row.ts_ms, *row.values) for row in rows])

    def _prepare(self, statement: str) -> Any:  # noqa: ANN401  the driver is untyped
        known = self._prepared.get(statement)
        if known is None:
            known = self._session.prepare(statement)
            if statement.startswith("SELECT"):
                known.fetch_size = None  # all groups in one answer, never in pages
            self._prepared[statement] = known
        return known


def _say_query(metrics: Sequence[str], aggregate: str, bucket_ms: int, hosts: str) -> str:
    # The mean of a bigint would be one: CQL's avg keeps the type.
    wanted = ", ".join(
        f"max({metric})" if aggregate == "max" else f"avg(CAST({metric} AS double))"
        for metric in metrics
    )
    bucket = f"floor(ts, {bucket_ms // 60_000}m)"
    return (
        f"SELECT hostname, {bucket}, {wanted} FROM {KEYSPACE}.cpu "  # noqa: S608  constants
        f"WHERE {hosts} AND ts >= ? AND ts < ? GROUP BY hostname, {bucket}"
    )
