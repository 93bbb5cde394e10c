"""The fake system's part in the workloads put/get and YCSB: its session, and what a server keeps.

Records live in a dict on the node that their key chooses. A scan gives them in the order of keys as
text.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from perf.model.records import PutGet, Stored, Values, Ycsb

Ask: TypeAlias = Callable[[int, dict[str, Any]], Any]
"""Asks a node, by index, a question, and gives its answer; both are JSON."""


class FakeKeyValueSession:
    """A client of the fake servers."""

    def __init__(self, ask: Ask, nodes: int, classify: Callable[[Exception], str]) -> None:
        """Ask so many nodes by `ask`."""
        self._ask, self._nodes = ask, nodes
        self.classify = classify

    def create_schema(self, records: PutGet | Ycsb) -> None:
        """Do nothing: a dict has no schema."""

    def insert(self, key: str, values: Values) -> None:
        """Store a record, in place of what is under its key."""
        self.put(key, values)

    def put(self, key: str, values: Values) -> None:
        """Store a record, in place of what is under its key."""
        self._write("put", key, dict(enumerate(values)))

    def update(self, key: str, changes: Mapping[int, bytes]) -> None:
        """Change some fields of a record."""
        self._write("update", key, changes)

    def get(self, key: str) -> Values | None:
        """Return the values of a record; None if there is none."""
        values = self._ask(self._node_of(key), {"records": "get", "key": key})
        return None if values is None else _to_values(values)

    def scan(self, first_key: str, count: int) -> Sequence[tuple[str, Values]]:
        """Return the first records of all nodes in the order of keys as text."""
        question = {"records": "scan", "key": first_key, "count": count}
        found = [record for node in range(self._nodes) for record in self._ask(node, question)]
        return tuple((key, _to_values(values)) for key, values in sorted(found)[:count])

    def stored(self) -> Stored:
        """Add up what each node says that it holds."""
        answers = [self._ask(node, {"records": "stored"}) for node in range(self._nodes)]
        return Stored(
            rows=sum(rows for rows, _ in answers), payload_bytes=sum(size for _, size in answers)
        )

    def _write(self, how: str, key: str, values: Mapping[int, bytes]) -> None:
        texts = [[field, value.decode("ascii")] for field, value in values.items()]
        self._ask(self._node_of(key), {"records": how, "key": key, "values": texts})

    def _node_of(self, key: str) -> int:
        return sum(key.encode()) % self._nodes


class KeptRecords:
    """What one server keeps: key → values, as texts."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._records: dict[str, list[str]] = {}

    def write(self, question: dict[str, Any], *, is_corrupt: bool) -> None:
        """Keep a record, or change fields of one that is there; to something else if corrupt."""
        key, values = question["key"], dict(question["values"])
        if is_corrupt:
            first = min(values)
            values[first] = _corrupt(values[first])
        if question["records"] == "put":
            self._records[key] = list(values.values())
        elif key in self._records:
            for field, value in values.items():
                self._records[key][field] = value

    def answer(self, question: dict[str, Any]) -> Any:  # noqa: ANN401  JSON
        """Return a record, records in the order of keys, or how many there are and their bytes."""
        if question["records"] == "get":
            return self._records.get(question["key"])
        if question["records"] == "scan":
            keys = sorted(key for key in self._records if key >= question["key"])
            return [[key, self._records[key]] for key in keys[: question["count"]]]
        sizes = [len(value) for values in self._records.values() for value in values]
        return len(self._records), sum(sizes)


def _to_values(values: Sequence[str]) -> Values:
    return tuple(value.encode("ascii") for value in values)


def _corrupt(value: str) -> str:
    return ("x" if value[0] != "x" else "y") + value[1:]
