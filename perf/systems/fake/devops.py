"""The devops workload in the fake system: rows in a dict, and queries answered in the plainest way.

Nothing here is shared with the workload's own reckoning of what an answer must be, so that the two
are proof of each other. The rows of a host are on one node; the client puts nodes' answers together.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from perf.model.records import Devops, Operation, Stored
from perf.workloads.devops.rows import DevopsRow, Group, Query
from perf.workloads.devops.tables import TABLES

_CORRUPTION = 1000.0
"""What is added to each value of a changed row. None of cpu is as large, so every maximum shows it."""
_VALUE_BYTES = 8

Ask: TypeAlias = Callable[[int, dict[str, Any]], Any]
"""Asks a node a question; both are JSON."""


class FakeDevopsSession:
    """A client of the fake servers; each host's rows live on one of them."""

    def __init__(self, ask: Ask, nodes: int, classify: Callable[[Exception], str]) -> None:
        """Take what asks a node, how many there are, and what names an error."""
        self._ask, self._nodes, self.classify = ask, nodes, classify

    def create_schema(self, records: Devops) -> None:
        """Do nothing: a dict has no schema."""

    def write(self, rows: Sequence[DevopsRow]) -> None:
        """Store rows in one request to each node that has some of them."""
        of_node = defaultdict(list)
        for row in rows:
            of_node[self._node_of(row.tags[0])].append((row.table, row.tags[0], row.ts_ms, row.values))
        for node, share in of_node.items():
            self._ask(node, {"devops": "write", "rows": share})

    def finish_load(self) -> None:
        """Do nothing: what is acknowledged can be read."""

    def can_ask(self, operation: Operation) -> bool:
        """Say yes to every query."""
        return "groupby" in operation.value

    def ask(self, query: Query) -> Sequence[Group]:
        """Ask every node, and put their groups together."""
        question = {
            "devops": "ask",
            "fields": [_CPU.index(metric) for metric in query.metrics],
            "hosts": query.hosts,
            "from_ms": query.from_ms,
            "until_ms": query.until_ms,
            "bucket_ms": query.bucket_ms,
            "aggregate": query.aggregate,
        }
        found: dict[tuple[int, str], list[float]] = {}
        for node in range(self._nodes):
            for ts_ms, host, values in self._ask(node, question):
                # Only a maximum over several hosts can have a group on two nodes.
                known = found.setdefault((ts_ms, host), values)
                known[:] = map(max, known, values)
        return [Group(ts_ms, host, tuple(found[ts_ms, host])) for ts_ms, host in sorted(found)]

    def stored(self) -> Stored:
        """Add up what each node says that it holds."""
        answers = [self._ask(node, {"devops": "stored"}) for node in range(self._nodes)]
        return Stored(
            rows=sum(rows for rows, _ in answers),
            payload_bytes=sum(values for _, values in answers) * _VALUE_BYTES,
        )

    def _node_of(self, host: str) -> int:
        return sum(host.encode()) % self._nodes


class DevopsRows:
    """What a node holds: for each table and host, values by time."""

    def __init__(self) -> None:
        """Hold nothing."""
        self._held: defaultdict[tuple[str, str], dict[int, list[float]]] = defaultdict(dict)

    def write(self, rows: Sequence[Any], *, is_corrupt: bool, is_lost: bool) -> None:
        """Store rows as they come in a question, or as a planted fault would have it."""
        for table, host, ts_ms, values in rows:
            kept = [value + _CORRUPTION for value in values] if is_corrupt else values
            if not is_lost:
                self._held[table, host][ts_ms] = kept

    def answer(self, question: dict[str, Any]) -> list[Any]:
        """Answer anything but a write, in JSON."""
        if question["devops"] == "stored":
            stored = [values for of_host in self._held.values() for values in of_host.values()]
            return [len(stored), sum(map(len, stored))]
        groups: defaultdict[tuple[int, str], list[list[float]]] = defaultdict(list)
        for bucket_ms, host, values in self._find(question):
            groups[bucket_ms, host].append([values[field] for field in question["fields"]])
        aggregate = max if question["aggregate"] == "max" else lambda values: sum(values) / len(values)
        return [
            [bucket_ms, host, [aggregate(column) for column in zip(*rows, strict=True)]]
            for (bucket_ms, host), rows in groups.items()
        ]

    def _find(self, question: dict[str, Any]) -> Iterator[tuple[int, str, list[float]]]:
        wanted = question["hosts"]
        for (table, host), of_host in self._held.items():
            if table != "cpu" or (wanted and host not in wanted):
                continue
            for ts_ms, values in of_host.items():
                if question["from_ms"] <= ts_ms < question["until_ms"]:
                    bucket_ms = ts_ms - ts_ms % question["bucket_ms"]
                    yield bucket_ms, "" if wanted else host, values


_CPU = [field.name for field in TABLES["cpu"]]
