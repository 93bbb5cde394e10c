"""MongoDB's session of workloads in statements: commands of the server, as JSON, on `pymongo`.

A text that is ":name" and nothing else is a parameter. Commands run in the trial's own database, with
its consistency (see `perf.systems.mongodb.client`) unless a command has a concern itself. What answers
with documents has a row for each, of the columns that are expected; what writes, a row without columns
for each document that it matched or inserted (`n`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import pymongo
from bson.binary import UuidRepresentation
from bson.datetime_ms import DatetimeMS
from pymongo.errors import OperationFailure, PyMongoError

from perf.model.errors import StepFailed
from perf.model.records import Stored
from perf.model.statements import Statements, TimestampValue
from perf.systems.contract import Target
from perf.systems.mongodb.client import SLOW_S, Client, DatabaseSession, Document
from perf.workloads.statements import StatementValue

_WRITES = frozenset({"insert", "update", "delete", "findAndModify"})
_READS = frozenset({"find", "aggregate", "count", "distinct"})
_WITH_CURSOR = frozenset({"find", "aggregate"})
_Values = Mapping[str, StatementValue]


class MongoStatementSession(DatabaseSession):
    """A client of a workload in commands of MongoDB."""

    def __init__(self, client: Client, target: Target, records: Statements) -> None:
        """Bind the database, and read the commands."""
        super().__init__(client, target)
        self._address, self._records = target.addresses[0], records
        own = self._database.codec_options.with_options(uuid_representation=UuidRepresentation.STANDARD)
        self._database = self._database.with_options(codec_options=own)
        self._columns = {
            name: tuple(one.expect.columns) if one.expect else ()
            for name, one in records.statements.items()
        }
        self._commands = {name: self._read(one.text) for name, one in records.statements.items()}
        # The driver sends an integer as one, and a TTL index wants dates.
        self._times = {
            name for name, value in records.values.items() if isinstance(value, TimestampValue)
        }

    @classmethod
    @contextmanager
    def connect_for(cls, records: Statements, target: Target) -> Iterator[Self]:
        """Connect a client of these statements."""
        with cls.open(target) as client:
            yield cls(client, target, records)

    def create_schema(self, records: Statements) -> None:
        """Send the commands of the schema; StepFailed if the server refuses one."""
        with pymongo.timeout(SLOW_S):
            for text in records.schema:
                self._named("schema", text)

    def columns(self, name: str) -> Sequence[str]:
        """Return the columns that are expected: a document has what it has."""
        return self._columns[name]

    def ask(self, name: str, values: _Values) -> Sequence[Sequence[Any]]:
        """Run a command with its parameters."""
        documents, count = self._run(_fill(self._commands[name], self._adapt(values)))
        if documents is None:
            return ((),) * count
        return tuple(tuple(map(document.get, self._columns[name])) for document in documents)

    def stored(self) -> Stored:
        """Run what counts documents: it answers with a number (`n`), or with each of them."""
        with pymongo.timeout(SLOW_S):
            documents, count = self._named("count", self._records.count)
        return Stored(rows=count if documents is None else len(documents), payload_bytes=0)

    def _named(self, what: str, text: str) -> tuple[list[Document] | None, int]:
        try:
            return self._run(self._read(text))
        except PyMongoError as error:
            why = f"{error}; it was: {' '.join(text.split())}"
            raise StepFailed(what, self._address, why) from error

    def _read(self, text: str) -> Document:
        """Read a command, and say what consistency it has."""
        command: Document = json.loads(text)
        name = next(iter(command))
        said: Document = {name: command[name]}  # the server takes the first key for the command
        if name in _WRITES:
            said["writeConcern"] = self._database.write_concern.document
        if name in _READS:
            said["readConcern"] = self._database.read_concern.document
        return said | command

    def _adapt(self, values: _Values) -> Mapping[str, Any]:
        return {
            name: DatetimeMS(value) if name in self._times and isinstance(value, int) else value
            for name, value in values.items()
        }

    def _run(self, command: Document) -> tuple[list[Document] | None, int]:
        """Return the documents of an answer, or None and its number of documents."""
        # The driver does not take a database's options for its commands.
        options = self._database.codec_options
        if next(iter(command)) in _WITH_CURSOR:
            return list(self._database.cursor_command(command, codec_options=options)), 0
        answer = self._database.command(command, codec_options=options)
        if errors := answer.get("writeErrors"):
            raise OperationFailure(errors[0].get("errmsg", "refused"), errors[0].get("code"), answer)
        if unconfirmed := answer.get("writeConcernError"):
            raise OperationFailure(unconfirmed.get("errmsg", ""), unconfirmed.get("code"), answer)
        if "value" in answer:  # of findAndModify
            return ([answer["value"]] if answer["value"] else []), 0
        return None, int(answer.get("n", 0))


def _fill(part: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401  JSON
    """Return a command with its values in place of its parameters."""
    if isinstance(part, dict):
        return {name: _fill(one, values) for name, one in part.items()}
    if isinstance(part, list):
        return [_fill(one, values) for one in part]
    if isinstance(part, str) and part.startswith(":") and part[1:] in values:
        return values[part[1:]]
    return part
