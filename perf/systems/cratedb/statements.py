"""CrateDB's session of workloads in statements: its SQL, on the vendor's client.

Statements name tables without a schema; theirs is the trial's own. Once the schema's statements are
sent, each table gets the copies of the topology, and the consistency: see
`perf.systems.cratedb.client`, as for when a row can be seen. What answers without columns has a row
without columns for each row that it wrote.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from crate.client.exceptions import Error

from perf.model.errors import StepFailed
from perf.model.records import Stored
from perf.model.statements import Statements, UuidValue, to_positional
from perf.systems.contract import Target
from perf.systems.cratedb.client import (
    FAILURES,
    SCHEMA,
    CrateSession,
    Row,
    SqlClient,
    UnreadableAnswerError,
    copies_options,
    open_client,
)
from perf.workloads.statements import StatementValue

_FIND_TABLES = (
    "SELECT table_name FROM information_schema.tables "
    "WHERE table_schema = ? AND table_type = 'BASE TABLE' ORDER BY table_name"
)


class MissingColumnError(Error):  # type: ignore[misc]  # the driver is untyped
    """An answer lacks a column that the workload expects."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A statement as it is sent, and what is read of its answer."""

    text: str
    parameters: tuple[str, ...]
    columns: tuple[str, ...]
    uuids: tuple[int, ...]
    """Which of the columns have UUIDs, which are texts in an answer."""

    @classmethod
    def of(cls, name: str, records: Statements) -> Self:
        expect = records.statements[name].expect
        columns = dict(expect.columns) if expect else {}
        is_uuid = [isinstance(records.values[one], UuidValue) for one in columns.values()]
        text, parameters = to_positional(records.statements[name].text)
        return cls(
            text, parameters, tuple(columns), tuple(n for n, it_is in enumerate(is_uuid) if it_is)
        )


class CrateStatementSession(CrateSession):
    """A client of a workload in SQL."""

    def __init__(self, client: SqlClient, target: Target, records: Statements) -> None:
        """Wrap a connected client, and put placeholders for parameters."""
        super().__init__(client, target)
        self._records = records
        self._sent = {name: _Sent.of(name, records) for name in records.statements}

    @classmethod
    @contextmanager
    def connect_for(cls, records: Statements, target: Target) -> Iterator[Self]:
        """Connect a client of these statements."""
        with open_client(target) as client:
            yield cls(client, target, records)

    def create_schema(self, records: Statements) -> None:
        """Send the statements of the schema, and give its tables the topology's copies.

        Raises:
            StepFailed: the server refuses a statement, or there is no table in the trial's schema.

        """
        for text in records.schema:
            self._do("schema", text)
        tables = self._tables()
        if not tables:
            why = (
                "records.schema makes no table in the trial's own schema; name tables without a schema"
            )
            raise StepFailed("schema", self._target.addresses[0], why)
        for table in tables:
            self._do("schema", f"ALTER TABLE {table} SET ({copies_options(self._target)})")

    def columns(self, name: str) -> Sequence[str]:
        """Return the columns that are expected: the others are known from an answer only."""
        return self._sent[name].columns

    def ask(self, name: str, values: Mapping[str, StatementValue]) -> Sequence[Sequence[Any]]:
        """Send a statement with its parameters; of its answer, give the columns that are expected."""
        sent = self._sent[name]
        answer = self._client.ask_all(sent.text, [values[one] for one in sent.parameters])
        found, rows = answer.get("cols"), answer["rows"]
        if not found:
            return ((),) * _count_written(answer)
        if not sent.columns:
            return tuple(rows)
        if missing := set(sent.columns) - set(found):
            has = ", ".join(found)
            why = f"statement {name} expects a column {min(missing)}, but its answer has {has}"
            raise MissingColumnError(why)
        places = [found.index(column) for column in sent.columns]
        kept = tuple([row[place] for place in places] for row in rows)
        for place in sent.uuids:
            for row in kept:
                row[place] = _to_uuid(row[place])
        return kept

    def finish_load(self) -> None:
        """Refresh the tables, so that all that was written is visible to queries."""
        self._do("refresh", f"REFRESH TABLE {', '.join(self._tables())}")

    def stored(self) -> Stored:
        """Refresh the tables, and let the server count the rows of the query that gives each once."""
        self.finish_load()
        query = self._records.count.rstrip().removesuffix(";")
        # On a line of its own, since a query may end with a comment.
        ((rows,),) = self._do("count", f"SELECT count(*) FROM ({query}\n) AS counted")  # noqa: S608  the workload's own
        return Stored(rows=rows, payload_bytes=0)

    def _tables(self) -> Sequence[str]:
        names = (name.replace('"', '""') for (name,) in self._do("schema", _FIND_TABLES, (SCHEMA,)))
        return [f'{SCHEMA}."{name}"' for name in names]

    def _do(self, step: str, text: str, arguments: Sequence[str] = ()) -> Sequence[Row]:
        try:
            return self._client.ask(text, arguments, is_slow=True)
        except FAILURES as error:
            why = f"{error}; it was: {' '.join(text.split())}"
            raise StepFailed(step, self._target.addresses[0], why) from error


def _count_written(answer: Mapping[str, Any]) -> int:
    count = answer.get("rowcount")
    if not isinstance(count, int):
        raise UnreadableAnswerError(f"an answer without a number of rows: {answer!r:.200}")
    return max(count, 0)  # −1 where the server does not know


def _to_uuid(text: Any) -> Any:  # noqa: ANN401  JSON
    # What is no UUID is for whoever verifies a wrong value, and no error of the operation.
    try:
        return UUID(text)
    except (AttributeError, TypeError, ValueError):
        return text
