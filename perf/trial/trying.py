"""A workload in statements, tried out: each of its statements a few times, on servers of its own."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from perf.load.engine.tasks.statements import Filled, make_statement_tasks, store_row_task
from perf.load.engine.tasks.task import Task
from perf.load.spec import LoadSpec
from perf.model.errors import StepFailed
from perf.model.records import Answer
from perf.model.shown import printable
from perf.model.statements import Statements
from perf.systems.contract import Target, open_session
from perf.systems.sessions import StatementSession
from perf.trial.servers import Servers

_STORED, _TIMES = 100, 10
_SHOWN, _SHOWN_ROWS = 60, 3
Report = Callable[[str], None]


def try_statements(
    servers: Servers, target: Target, records: Statements, *, seed: int, logs: Path, report: Report
) -> int:
    """Send the schema, store a hundred rows, send each statement ten times; report each answer.

    Gives how many answers were errors or not as expected. The servers are gone afterwards, and their
    logs below `logs`.

    Raises:
        StepFailed: the servers did not come up, or refused the schema, or a row could not be stored.

    """
    few = replace(records, rows=min(records.rows, _STORED))
    spec = LoadSpec(
        target=target,
        records=few,
        mix=dict.fromkeys(few.statements, 1.0),
        seed=seed,
        engine_index=0,
        engine_count=1,
        readable_rows=few.rows,
        first_row=few.rows,
        output_dir=str(logs),
    )
    try:
        servers.wipe()
        servers.install()
        servers.configure()
        servers.start()
        with open_session(servers.system, target, few) as session:
            session.create_schema(few)
            report(f"stored {_store(spec, few, session)} rows with {few.store}")
            tasks = make_statement_tasks(spec, few, session)
            return sum(_try(str(name), task, few, session, report) for name, task in tasks.items())
    finally:
        servers.clean_up(logs)


def _store(spec: LoadSpec, records: Statements, session: StatementSession) -> int:
    task = store_row_task(spec, records, session)
    for number in range(records.rows):
        try:
            task.send(task.prepare(number))
        except Exception as error:  # a driver may raise anything
            why = f"row {number}: {session.classify(error)}: {printable(str(error))}"
            raise StepFailed(f"statement {records.store}", spec.target.addresses[0], why) from error
    found = session.stored().rows
    if found != records.rows:
        why = f"{records.count!r} gives {found} of {records.rows} rows that were stored"
        raise StepFailed("count", spec.target.addresses[0], why)
    return found


def _try(
    name: str, task: Task[Any, Any], records: Statements, session: StatementSession, report: Report
) -> int:
    """Send one statement ten times; give how often that went wrong."""
    report(f"\n{name}: {' '.join(records.statements[name].text.split())}")
    wrong = 0
    for number in range(_TIMES):
        filled: Filled = task.prepare(number)
        try:
            rows = task.send(filled)
        except Exception as error:  # noqa: BLE001  a driver may raise anything
            is_right, said = False, f"{session.classify(error)}: {printable(str(error))}"
        else:
            answer = task.judge(filled, rows)
            is_right = answer is Answer.COMPLETED
            count = f"{len(rows)} row{'' if len(rows) == 1 else 's'}"
            said = count if is_right else f"{answer.value}: {count}"
            said += "".join(f"  {_shorten(str(tuple(row)))}" for row in rows[:_SHOWN_ROWS])
        wrong += not is_right
        report(f"  {'✓' if is_right else '✗'} {_describe(filled.values)} → {said}")
    return wrong


def _describe(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {_shorten(str(values[name]))}" for name in sorted(values))


def _shorten(text: str) -> str:
    return printable(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…")
