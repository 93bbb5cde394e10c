"""The operations of the devops workload: load one batch of rows, ask one query."""

from collections.abc import Sequence
from dataclasses import dataclass

from perf.load.engine.tasks.task import Soon
from perf.load.spec import LoadSpec
from perf.model.errors import UsageError
from perf.model.records import Answer, Devops, Operation
from perf.systems.sessions import DevopsSession
from perf.workloads.devops.batches import Batches
from perf.workloads.devops.queries import check_answer, cpu_history, make_query
from perf.workloads.devops.rows import DevopsRow, Group, Query


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, and the answer that must come."""

    query: Query
    expected: tuple[Group, ...]


class LoadTask:
    """Store one batch of rows; an acknowledged batch is complete.

    `rows` is that of a full batch, and the last one of a data set may be smaller: rows per second are
    too high by less than one batch.
    """

    def __init__(self, spec: LoadSpec, records: Devops, session: DevopsSession) -> None:
        """Let operation number n store batch number n."""
        self.rows = spec.batch_rows
        self._session = session
        self._batches = Batches(records, spec.seed, spec.batch_rows)

    def prepare(self, number: int) -> tuple[DevopsRow, ...]:
        """Compute the rows.

        Raises:
            UsageError: there are not so many batches; an empty one would count as a full one.

        """
        batch = self._batches.batch(number)
        if not batch:
            raise UsageError(f"there is no batch {number} to load; the workload asks for too many")
        return batch

    def send(self, prepared: tuple[DevopsRow, ...]) -> None:
        """Store them."""
        self._session.write(prepared)

    def soon(self) -> Soon[tuple[DevopsRow, ...], None] | None:
        """Give nothing: a batch may be many requests to a system, and takes a thread while it lasts."""
        return None

    def judge(self, prepared: tuple[DevopsRow, ...], reply: None) -> Answer:
        """Trust the acknowledgement; what is stored is verified by counting, and by every query."""
        return Answer.COMPLETED

    def describe(self, prepared: tuple[DevopsRow, ...]) -> str:
        """Name the rows."""
        first = prepared[0]
        return f"load of {len(prepared)} rows from {first.table} of {first.tags[0]} at {first.ts_ms} on"


class QueryTask:
    """Ask one query, and compare each group of the answer with what it must be."""

    def __init__(
        self, spec: LoadSpec, records: Devops, session: DevopsSession, operation: Operation
    ) -> None:
        """Ask queries of one type, about all rows of the data set.

        Raises:
            UsageError: the system cannot be asked queries of this type.

        """
        if not session.can_ask(operation):
            raise UsageError(
                f"{spec.target.system} cannot be asked {operation.value}; leave it out of the workload"
            )
        self.rows = 1
        self._records, self._seed, self._operation = records, spec.seed, operation
        self._session = session
        self._history = cpu_history(records, spec.seed)

    def prepare(self, number: int) -> Asked:
        """Make the query and compute its answer, which is not timed."""
        query = make_query(self._records, self._seed, self._operation, number)
        return Asked(query, self._history.answer(query))

    def send(self, prepared: Asked) -> Sequence[Group]:
        """Ask it."""
        return self._session.ask(prepared.query)

    def soon(self) -> Soon[Asked, Sequence[Group]] | None:
        """Give nothing: queries are few and slow, and a thread for each is cheap."""
        return None

    def judge(self, prepared: Asked, reply: Sequence[Group]) -> Answer:
        """Compare every group."""
        return check_answer(prepared.query, prepared.expected, reply)

    def describe(self, prepared: Asked) -> str:
        """Name the query."""
        query = prepared.query
        over = f" over {', '.join(query.hosts)}" if query.hosts else ""
        return f"{query.operation.value}{over} from {query.from_ms} until {query.until_ms}"
