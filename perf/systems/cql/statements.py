"""The session of workloads in statements on CQL: each statement is prepared once.

Statements name tables without a keyspace; theirs is the one that is made for the trial, with the
topology's copies. An answer is read in one page.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Self

from cassandra import DriverException, InvalidRequest
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import ErrorMessage

from perf.model.errors import StepFailed
from perf.model.records import Stored
from perf.model.statements import Statements
from perf.systems.contract import Target
from perf.systems.cql.client import (
    KEYSPACE,
    SLOW_S,
    DriverSession,
    ask_soon,
    create_keyspace,
    open_driver,
)
from perf.systems.sessions import OnAsked
from perf.workloads.statements import StatementValue


class CqlStatementSession(DriverSession):
    """A client of a workload in CQL statements."""

    def __init__(self, session: Any, target: Target, records: Statements) -> None:  # noqa: ANN401  the driver is untyped
        """Wrap a connected session of the driver."""
        super().__init__(session, target)
        self._records = records
        self._prepared: Mapping[str, Any] = {}
        self._parameters: Mapping[str, tuple[str, ...]] = {}

    @classmethod
    @contextmanager
    def connect_for(cls, records: Statements, target: Target) -> Iterator[Self]:
        """Connect a client of these statements."""
        with open_driver(target) as session:
            wrapped = cls(session, target, records)
            with suppress(InvalidRequest):  # it is not there yet: `create_schema` makes it
                session.set_keyspace(KEYSPACE)
            yield wrapped

    def create_schema(self, records: Statements) -> None:
        """Create the keyspace unless it exists, and send the statements of the schema.

        Raises:
            StepFailed: the server refuses a statement of the schema, or of the workload.

        """
        self._session.execute(create_keyspace(self._target), timeout=SLOW_S)
        self._session.set_keyspace(KEYSPACE)
        for text in records.schema:
            self._named("schema", text, partial(self._session.execute, text, timeout=SLOW_S))
        self.prepare()

    def prepare(self) -> None:
        """Prepare all statements, once; StepFailed if the server refuses one."""
        if self._prepared:
            return
        prepared = {name: self._prepare(name) for name in self._records.statements}
        self._parameters = {
            name: tuple(one.name for one in found.column_metadata) for name, found in prepared.items()
        }
        self._prepared = prepared

    def columns(self, name: str) -> Sequence[str]:
        """Return the columns that the server announces; none for one with a condition."""
        self.prepare()
        return tuple(column[2] for column in self._prepared[name].result_metadata or ())

    def ask(self, name: str, values: Mapping[str, StatementValue]) -> Sequence[Sequence[Any]]:
        """Execute a prepared statement."""
        return tuple(self._session.execute(*self._bound(name, values)))

    def ask_soon(self, name: str, values: Mapping[str, StatementValue], done: OnAsked) -> None:
        """Begin what `ask` does; `done` is called by the thread of the driver's event loop."""
        bound = partial(self._bound, name, values)
        # Of what answers without rows, the driver gives None.
        ask_soon(self._session, bound, lambda rows: done(rows or (), None), done)

    def stored(self) -> Stored:
        """Read what counts rows, page by page."""
        text = self._records.count
        found = self._named("count", text, partial(self._session.execute, text, timeout=SLOW_S))
        return Stored(rows=sum(1 for _ in found), payload_bytes=0)

    def _bound(self, name: str, values: Mapping[str, StatementValue]) -> tuple[Any, ...]:
        self.prepare()
        return self._prepared[name], [values[one] for one in self._parameters[name]]

    def _prepare(self, name: str) -> Any:  # noqa: ANN401  the driver is untyped
        text = self._records.statements[name].text
        found = self._named(f"statement {name}", text, partial(self._session.prepare, text))
        found.fetch_size = None  # all rows in one answer, never in pages
        return found

    def _named(self, what: str, text: str, send: Callable[[], Any]) -> Any:  # noqa: ANN401  the driver is untyped
        try:
            return send()
        except (DriverException, ErrorMessage, NoHostAvailable) as error:
            first = " ".join(text.split())
            raise StepFailed(what, self._target.addresses[0], f"{error}; it was: {first}") from error
