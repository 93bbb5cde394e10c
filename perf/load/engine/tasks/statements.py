"""The operations of a workload of one's own: each sends one statement, about one row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from perf.load.engine.tasks.choices import KnownRecords
from perf.load.engine.tasks.task import Task
from perf.load.spec import LoadSpec
from perf.model.errors import UsageError
from perf.model.records import Answer, OperationName
from perf.model.statements import Statements
from perf.systems.sessions import AnswersStatementsLater, StatementSession
from perf.workloads.keys import Chooser, Latest, ScrambledZipfian, Uniform
from perf.workloads.statements import (
    Rows,
    StatementValue,
    Values,
    check_answer,
    choice_stream,
)


@dataclass(frozen=True, slots=True)
class AboutRow:
    """Which row an operation is about; `turn` is which of its engine's new rows that is, if it is."""

    row: int
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Filled:
    """What an operation is about, and the values of its parameters and of its answer."""

    about: AboutRow
    values: Mapping[str, StatementValue]


def make_statement_tasks(
    spec: LoadSpec, records: Statements, session: StatementSession
) -> Mapping[OperationName, Task[Any, Any]]:
    """Return the task of each statement of the mix; all of them choose among the same rows."""
    makes, known = _Makes.of(spec, records, session), KnownRecords(spec)
    choices = choice_stream(spec.seed, spec.run)

    def choose_new(_: int) -> AboutRow:
        turn = known.next_turn()
        return AboutRow(known.number_of_turn(turn), turn)

    def choose_known(chooser: Chooser, number: int) -> AboutRow:
        return AboutRow(known.number(chooser.choose(choices, number, len(known))))

    def make(name: OperationName) -> Task[Any, Any]:
        how = records.statements[name].row
        if how == "new":
            return makes.task(name, choose_new, known.acknowledge)
        return makes.task(name, partial(choose_known, _CHOOSERS[how](records.rows)))

    return {name: make(name) for name in spec.mix}


def store_row_task(
    spec: LoadSpec, records: Statements, session: StatementSession
) -> Task[Filled, Rows]:
    """Return what stores row number n, of the preload."""
    return _Makes.of(spec, records, session).task(records.store, AboutRow)


_CHOOSERS: Mapping[str, Callable[[int], Chooser]] = {
    "uniform": Uniform,
    "zipfian": ScrambledZipfian,
    "latest": Latest,
}


@dataclass(frozen=True, slots=True)
class _Makes:
    """Makes the tasks of one engine."""

    records: Statements
    session: StatementSession
    values: Values

    @classmethod
    def of(cls, spec: LoadSpec, records: Statements, session: StatementSession) -> Self:
        return cls(records, session, Values.make(records, spec.seed, spec.run))

    def task(
        self,
        name: OperationName,
        choose: Callable[[int], AboutRow],
        acknowledge: Callable[[int], None] | None = None,
    ) -> Task[Filled, Rows]:
        """Return the task of a statement; `acknowledge` is called once a new row is stored.

        Raises:
            UsageError: its answer lacks a column that is expected.

        """
        session, statement = self.session, self.records.statements[name]
        names, columns = self.records.parameters(name), session.columns(name)
        if expected := statement.expect:
            names |= frozenset(expected.columns.values())
            if missing := expected.columns.keys() - set(columns):
                has = ", ".join(columns) or "no columns that are known beforehand"
                why = f"statement {name} expects a column {min(missing)}, but its answer has {has}"
                raise UsageError(why)

        def prepare(number: int) -> Filled:
            about = choose(number)
            return Filled(about, self.values.fill(names, about.row, number))

        def judge(filled: Filled, rows: Rows) -> Answer:
            answer = check_answer(statement, columns, filled.values, rows)
            turn = filled.about.turn
            if acknowledge and turn is not None and answer is Answer.COMPLETED:
                acknowledge(turn)
            return answer

        def soon(later: AnswersStatementsLater, filled: Filled, done: Any) -> None:  # noqa: ANN401  see `Soon`
            later.ask_soon(name, filled.values, done)

        return Task(
            prepare=prepare,
            send=lambda filled: session.ask(name, filled.values),
            soon=partial(soon, session) if isinstance(session, AnswersStatementsLater) else None,
            judge=judge,
            describe=lambda filled: f"{name} of row {filled.about.row}",
        )
