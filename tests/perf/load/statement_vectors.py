"""Values, choices and judgements of workloads of one's own that every engine must give.

`python tests/perf/load/statement_vectors.py` writes them to tests/data/vectors/statements.json.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

from vector_files import DIRECTORY, bits, digest, write_vectors

from perf.load.engine.tasks.statements import make_statement_tasks, store_row_task
from perf.load.spec import LoadSpec
from perf.model.records import Answer
from perf.model.statements import (
    ChoiceValue,
    Expected,
    IntegerValue,
    RealValue,
    RowNumber,
    Statement,
    Statements,
    TextValue,
    TimestampValue,
    UuidValue,
    Value,
)
from perf.systems.contract import Target
from perf.workloads.statements import StatementValue, Values, check_answer

PATH = DIRECTORY / "statements.json"
_NUMBERS, _CHOICES = 1000, 2000
_MIXED = ("Lima", True, False, 3, -(2**63), 0.5, 1e300, "é")
_VALUES: Mapping[str, Value] = {
    "id": RowNumber(kind="row-number"),
    "whole": IntegerValue(kind="integer", least=-3, most=3),
    "wide": IntegerValue(kind="integer", least=-(2**63), most=2**63 - 1, of="operation"),
    "one": IntegerValue(kind="integer", least=7, most=7, distribution="zipfian"),
    "skewed": IntegerValue(kind="integer", most=999_999, distribution="zipfian"),
    "widest": IntegerValue(
        kind="integer", least=-(2**63), most=2**63 - 1, distribution="zipfian", of="operation"
    ),
    "real": RealValue(kind="real", least=-1.5, most=2.25),
    "fresh": RealValue(kind="real", most=1e300, of="operation"),
    "text": TextValue(kind="text", bytes=20, prefix="mail-é-"),
    "short": TextValue(kind="text", bytes=3, of="operation"),
    "long": TextValue(kind="text", bytes=5000),
    "mixed": ChoiceValue(kind="choice", among=_MIXED),
    "few": ChoiceValue(kind="choice", among=("a", "b", "c"), distribution="zipfian", of="operation"),
    "seen": TimestampValue(kind="timestamp", begin_ms=10**13, step_ms=10**12, of="operation"),
    "key": UuidValue(kind="uuid"),
}
_HUGE = TextValue(kind="text", bytes=1_000_000)
_ROWS = ("uniform", "zipfian", "latest", "new")
# What may come in a column instead of the value 3 that is expected: of each kind, right and wrong.
_CELLS = (3, 3.0, 3.5, 4, None, True, "3", UUID(int=3))
_EXPECTED = (
    None,
    *(Expected(rows=rows) for rows in (1, 2, "any", "none")),
    Expected(columns={"b": "number"}),
    Expected(rows=1, columns={"b": "number", "c": "number"}),
    Expected(rows="any", columns={"a": "number"}),
    Expected(applied=True),
    Expected(rows=1, applied=True),
)


def make_vectors() -> dict[str, Any]:
    """Compute them all, as what JSON can say."""
    seeds = ((0, 0), (42, 3), (2**64 - 1, 1))
    return {
        "cases": [
            *(_make_case(_VALUES, seed, run, _NUMBERS) for seed, run in seeds),
            _make_case({"huge": _HUGE, "text": _VALUES["text"]}, 42, 0, 20),
        ],
        "choices": [
            _choose(rows, seed, run, engines)
            for rows, seed, run, engines in ((1, 42, 0, 1), (2, 0, 1, 2), (1000, 42, 2, 3))
        ],
        "judged": list(_judge()),
    }


def _records(values: Mapping[str, Value], rows: int = 10) -> Statements:
    """Return records with a statement of each row; how they are worded matters to no value."""
    return Statements(
        kind="statements",
        language="cql",
        schema=("CREATE TABLE t (id bigint PRIMARY KEY)",),
        rows=rows,
        store="new",
        count="SELECT id FROM t",
        values=values,
        statements={name: Statement(text="SELECT :id", row=name) for name in _ROWS},  # type: ignore[arg-type]
    )


def _make_case(values: Mapping[str, Value], seed: int, run: int, count: int) -> dict[str, Any]:
    """Compute the values of one seed, by name."""
    records = _records(values)
    made = Values.make(records, seed, run)
    numbers = [*range(count), 2**40, 2**53 - 1]
    found = {name: [made.fill(frozenset({name}), n, n)[name] for n in numbers] for name in values}
    return {
        "records": asdict(records),
        "seed": seed,
        "run": run,
        "count": count,
        "first": {name: [_say(one)[:100] for one in found[name][:3]] for name in values},
        "digests": {name: digest(map(_say, found[name])) for name in values},
    }


def _say(value: StatementValue) -> str:
    """Return a value with its kind, so that nothing of it is lost."""
    match value:
        case bool() | int():
            return f"{type(value).__name__} {value}"
        case float():
            return f"float {bits(value)}"
        case UUID():
            return f"uuid {value.hex}"
        case _:
            return f"text {value}"


class _Session:
    """A session that is asked nothing: of the tasks, only what they prepare is looked at."""

    def columns(self, _: str) -> tuple[str, ...]:
        return ()


def _choose(rows: int, seed: int, run: int, engines: int) -> dict[str, Any]:
    """Return about which rows operations are, where every third of the new ones is not acknowledged."""
    target = Target(
        system="cassandra",
        addresses=("127.0.0.1",),
        port=9042,
        replication_factor=1,
        consistency="one",
        timeout_s=1.0,
    )
    records = _records({"id": _VALUES["id"]}, rows)
    spec = LoadSpec(
        target=target,
        records=records,
        mix=dict.fromkeys(_ROWS, 1.0),
        seed=seed,
        engine_index=engines - 1,
        engine_count=engines,
        readable_rows=rows,
        first_row=rows,
        run=run,
        output_dir="",
    )
    tasks = make_statement_tasks(spec, records, _Session())  # type: ignore[arg-type]
    chosen = []
    for number in range(_CHOICES):
        filled = {name: tasks[name].prepare(number) for name in _ROWS}
        chosen += [one.about.row for one in filled.values()]
        if number % 3:
            assert tasks["new"].judge(filled["new"], ()) is Answer.COMPLETED
    store = store_row_task(spec, records, _Session())  # type: ignore[arg-type]
    assert [store.prepare(number).about.row for number in (0, 9)] == [0, 9]
    said = asdict(replace(spec, records=records))
    return {"spec": said, "count": _CHOICES, "first": chosen[:40], "digest": digest(chosen)}


def _judge() -> Iterator[dict[str, Any]]:
    """Judge answers of the columns a, b and c, drawn from a seed, by all that can be expected."""
    draw = random.Random(5)  # noqa: S311  chances, not secrets
    for expected in _EXPECTED:
        for _ in range(25):
            # More often than not as it should be.
            cells = [_CELLS[0] if draw.random() < 0.8 else draw.choice(_CELLS) for _ in range(9)]
            if draw.random() < 0.5:
                cells[0] = draw.choice((True, False, None, 1))
            count = draw.choice((0, 1, 1, 2, 3))
            rows = [tuple(cells[3 * row : 3 * row + 3]) for row in range(count)]
            statement = Statement(text="SELECT a, b, c FROM t", row="uniform", expect=expected)
            answer = check_answer(statement, ("a", "b", "c"), {"number": 3}, rows)
            yield {
                "expect": None if expected is None else asdict(expected),
                "rows": [[None if cell is None else _say(cell) for cell in row] for row in rows],
                "answer": answer.value,
            }


if __name__ == "__main__":
    PATH.write_text(write_vectors(make_vectors()))
