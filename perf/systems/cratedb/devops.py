"""CrateDB's session of the devops workload, with the tables and queries of TSBS's target for CrateDB.

A table per measurement: `tags` is an object with a text per tag, `ts` a timestamp, each field a double;
no primary key, no partitions, 5 shards unless the layout says otherwise, everything indexed as it is by
default. Source: Time Series Benchmark Suite, cmd/tsbs_load_cratedb and
cmd/tsbs_generate_queries/databases/cratedb. Two things differ: a double-groupby gives the host, too, by
which TSBS only groups there, and is ordered by it; and replicas follow from the topology.
"""

from collections import defaultdict
from collections.abc import Sequence

from perf.model.records import Devops, Operation, Stored
from perf.systems.cratedb.client import (
    SCHEMA,
    CrateSession,
    Row,
    table_options,
)
from perf.workloads.devops.rows import DevopsRow as MeasuredRow
from perf.workloads.devops.rows import Group, Query
from perf.workloads.devops.tables import TABLES, TAGS

_SHARDS = 5
_BYTES_PER_VALUE = 8
_UNITS = {60_000: "minute", 3_600_000: "hour"}
_AGGREGATES = {"max": "max", "mean": "avg"}
_HOST = "tags['hostname']"


class CrateDevopsSession(CrateSession):
    """A client of the devops workload."""

    def create_schema(self, records: Devops) -> None:
        """Create the nine tables; do nothing if they exist."""
        tags = ", ".join(f"{tag} TEXT" for tag in TAGS)
        options = table_options(self._target, shards=_SHARDS)
        for table in TABLES:
            values = ", ".join(f"{field} DOUBLE PRECISION" for field in _fields(table))
            self._client.ask(
                f"CREATE TABLE IF NOT EXISTS {SCHEMA}.{table} (tags OBJECT(DYNAMIC) AS ({tags}), "
                f"ts TIMESTAMP WITH TIME ZONE, {values}) {options}",
                is_slow=True,
            )

    def write(self, rows: Sequence[MeasuredRow]) -> None:
        """Insert rows: one bulk request per table, one after the other, as TSBS does it."""
        of_table: defaultdict[str, list[Row]] = defaultdict(list)
        for row in rows:
            tags = dict(zip(TAGS, row.tags, strict=True))
            of_table[row.table].append([tags, row.ts_ms, *row.values])
        for table, arguments in of_table.items():
            self._client.ask_each_row(_INSERTS[table], arguments)

    def finish_load(self) -> None:
        """Refresh the tables, so that all that was written is visible to queries."""
        tables = ", ".join(f"{SCHEMA}.{table}" for table in TABLES)
        self._client.ask(f"REFRESH TABLE {tables}", is_slow=True)

    def stored(self) -> Stored:
        """Refresh the tables and let the server count rows, and values field by field."""
        self.finish_load()
        rows = values = 0
        for table in TABLES:
            counted = ", ".join(f"count({field})" for field in _fields(table))
            ((in_table, *in_fields),) = self._client.ask(
                f"SELECT count(*), {counted} FROM {SCHEMA}.{table}",  # noqa: S608  names of columns
                is_slow=True,
            )
            rows += in_table
            values += sum(in_fields)
        return Stored(rows=rows, payload_bytes=values * _BYTES_PER_VALUE)

    def can_ask(self, operation: Operation) -> bool:
        """Say yes to every query."""
        return "groupby" in operation.value

    def ask(self, query: Query) -> Sequence[Group]:
        """Ask it; groups ordered by time, then by host."""
        statement, arguments = render_query(query)
        found = self._client.ask(statement, arguments)
        if query.hosts:
            return tuple(Group(row[0], "", tuple(row[1:])) for row in found)
        return tuple(Group(row[0], row[1], tuple(row[2:])) for row in found)


def render_query(query: Query) -> tuple[str, Row]:
    """Return a query's statement and arguments."""
    aggregate = _AGGREGATES[query.aggregate]
    by = "bucket" if query.hosts else "bucket, host"
    columns = [
        f"date_trunc('{_UNITS[query.bucket_ms]}', ts) AS bucket",
        *([] if query.hosts else [f"{_HOST} AS host"]),
        *(f'{aggregate}("{metric}") AS {query.aggregate}_{metric}' for metric in query.metrics),
    ]
    wanted = f"{_HOST} IN ({', '.join('?' * len(query.hosts))}) AND " if query.hosts else ""
    statement = (
        f"SELECT {', '.join(columns)} FROM {SCHEMA}.cpu WHERE {wanted}ts >= ? AND ts < ? "  # noqa: S608  names of columns
        f"GROUP BY {by} ORDER BY {by}"
    )
    return statement, [*query.hosts, query.from_ms, query.until_ms]


def _fields(table: str) -> tuple[str, ...]:
    return tuple(f'"{field.name}"' for field in TABLES[table])


def _insert(table: str) -> str:
    columns = ("tags", "ts", *_fields(table))
    return (
        f"INSERT INTO {SCHEMA}.{table} ({', '.join(columns)}) "  # noqa: S608  names of columns
        f"VALUES ({', '.join('?' * len(columns))})"
    )


_INSERTS = {table: _insert(table) for table in TABLES}
