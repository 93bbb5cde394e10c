"""Which tasks a load consists of: those of its mix, on a session of the right data model."""

from collections.abc import Mapping
from typing import Any, assert_never

from perf.load.engine.tasks.devops import load_task, query_task
from perf.load.engine.tasks.put_get import make_put_get_tasks
from perf.load.engine.tasks.sensor import make_sensor_tasks, write_task
from perf.load.engine.tasks.statements import make_statement_tasks, store_row_task
from perf.load.engine.tasks.task import Parts, Task
from perf.load.engine.tasks.ycsb import make_ycsb_tasks, store_task
from perf.load.spec import LoadSpec
from perf.model.errors import UsageError
from perf.model.records import Devops, Operation, OperationName, PutGet, Sensor, Ycsb
from perf.model.statements import Statements
from perf.workloads.devops.queries import QUERIES, cpu_history


def foresee(spec: LoadSpec) -> None:
    """Compute what tasks will need and what takes long, before the load begins and is timed."""
    if isinstance(spec.records, Devops) and any(operation in QUERIES for operation in spec.mix):
        cpu_history(spec.records, spec.seed)


def make_tasks(spec: LoadSpec, session: Any, parts: Parts) -> Mapping[OperationName, Task[Any, Any]]:  # noqa: ANN401  of the records' data model
    """Return the task of each operation of the mix; `parts` gives the places for times of parts."""
    if isinstance(spec.records, Ycsb):
        return make_ycsb_tasks(spec, spec.records, session, parts)
    if isinstance(spec.records, PutGet):
        return make_put_get_tasks(spec, spec.records, session, parts)
    if isinstance(spec.records, Sensor):
        return make_sensor_tasks(spec, spec.records, session)
    if isinstance(spec.records, Statements):
        return make_statement_tasks(spec, spec.records, session)
    return {operation: _make_task(operation, spec, session) for operation in spec.mix}


def make_preload_task(spec: LoadSpec, session: Any) -> Task[Any, Any]:  # noqa: ANN401  of the records' data model
    """Return the task whose operation number n stores record number n, each once."""
    match spec.records:
        case Sensor() as records:
            return write_task(spec, records, session, preloads=True)
        case Ycsb() as records:
            return store_task(spec, records, session)
        case Statements() as records:
            return store_row_task(spec, records, session)
        case PutGet() | Devops():
            raise UsageError(f"records of kind {spec.records.kind} know no preload")
        case _:
            assert_never(spec.records)


def _make_task(
    operation: OperationName,
    spec: LoadSpec,
    session: Any,  # noqa: ANN401  of the records' data model
) -> Task[Any, Any]:
    match spec.records, operation:
        case Devops() as records, Operation.LOAD:
            return load_task(spec, records, session)
        case Devops() as records, Operation() if operation in QUERIES:
            return query_task(spec, records, session, operation)
        case _:
            pass
    raise UsageError(f"records of kind {spec.records.kind} know no operation {operation}")
