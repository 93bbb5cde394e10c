"""The operations of the devops workload: load one batch of rows, ask one query."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from perf.load.engine.tasks.task import Task
from perf.load.spec import LoadSpec
from perf.model.errors import UsageError
from perf.model.records import Devops, Operation
from perf.systems.sessions import DevopsSession
from perf.workloads.devops.batches import Batches
from perf.workloads.devops.queries import check_answer, cpu_history, make_query
from perf.workloads.devops.rows import DevopsRow, Group, Query


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, and the answer that must come."""

    query: Query
    expected: tuple[Group, ...]


def load_task(spec: LoadSpec, records: Devops, session: DevopsSession) -> Task[Any, Any]:
    """Return what stores batch number n of rows.

    Its `rows` is that of a full batch, and the last one of a data set may be smaller: rows per second
    are too high by less than one batch. A batch may be many requests to a system, and takes a thread
    while it lasts.
    """
    batches = Batches(records, spec.seed, spec.batch_rows)

    def prepare(number: int) -> tuple[DevopsRow, ...]:
        batch = batches.batch(number)
        if not batch:  # an empty one would count as a full one
            raise UsageError(f"there is no batch {number} to load; the workload asks for too many")
        return batch

    def describe(prepared: Sequence[DevopsRow]) -> str:
        first = prepared[0]
        return f"load of {len(prepared)} rows from {first.table} of {first.tags[0]} at {first.ts_ms} on"

    return Task(rows=spec.batch_rows, prepare=prepare, send=session.write, describe=describe)


def query_task(
    spec: LoadSpec, records: Devops, session: DevopsSession, operation: Operation
) -> Task[Any, Any]:
    """Return what asks queries of one type, about all rows of the data set, and compares each group.

    Queries are few and slow, and a thread for each is cheap.

    Raises:
        UsageError: the system cannot be asked queries of this type.

    """
    if not session.can_ask(operation):
        raise UsageError(
            f"{spec.target.system} cannot be asked {operation.value}; leave it out of the workload"
        )
    history = cpu_history(records, spec.seed)

    def prepare(number: int) -> Asked:
        query = make_query(records, spec.seed, operation, number)
        return Asked(query, history.answer(query))

    def describe(prepared: Asked) -> str:
        query = prepared.query
        over = f" over {', '.join(query.hosts)}" if query.hosts else ""
        return f"{query.operation.value}{over} from {query.from_ms} until {query.until_ms}"

    return Task(
        prepare=prepare,
        send=lambda prepared: session.ask(prepared.query),
        judge=lambda prepared, reply: check_answer(prepared.query, prepared.expected, reply),
        describe=describe,
    )
