"""Workloads of one's own from both engines, on a real Cassandra: what one stores, the other finds."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from catalogs import shipped
from engine_runs import Counts, share
from needs import need_native
from served import Served

from perf.load.engines import PYTHON_ENGINE
from perf.load.spec import Counted, LoadSpec, Preload
from perf.model.errors import StepFailed
from perf.model.records import Operation, Stored
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
from perf.systems.contract import open_session

pytestmark = [pytest.mark.real, pytest.mark.slow]

ROWS, OPERATIONS, IN_FLIGHT = 60, 600, 8
# The table of each example: other tests make it on the same server.
TABLES = {"own-index": "customers", "own-lightweight": "stock", "own-expiring": "sessions"}


def read_example(name: str) -> Statements:
    """Return the records of a shipped workload, a few, in a table of their own."""
    records, table = shipped().workloads[name].records, TABLES[name]
    assert isinstance(records, Statements)

    def rename(text: str) -> str:
        return text.replace(table, f"native_{table}")

    return replace(
        records,
        rows=ROWS,
        schema=tuple(map(rename, records.schema)),
        count=rename(records.count),
        statements={
            one: replace(statement, text=rename(statement.text))
            for one, statement in records.statements.items()
        },
    )


def make_spec(served: Served, records: Statements, place: Path, *names: str) -> LoadSpec:
    """Return a spec of so many operations of the statements of these names, else of all."""
    return LoadSpec(
        target=served.target,
        records=records,
        mix=dict.fromkeys(names or records.statements, 1.0),
        seed=11,
        counted=Counted(phase="counted", operations=OPERATIONS, in_flight=IN_FLIGHT),
        engine_index=0,
        engine_count=1,
        readable_rows=ROWS,
        first_row=ROWS,
        run=1,
        output_dir=str(place),
    )


def preload_of(spec: LoadSpec) -> LoadSpec:
    """Return what stores the rows that a spec reads."""
    place = f"{spec.output_dir}-preload"
    preload = Preload(rows=ROWS, in_flight=IN_FLIGHT)
    return replace(
        spec,
        preload=preload,
        counted=None,
        mix={Operation.WRITE: 1.0},
        readable_rows=0,
        first_row=0,
        run=0,
        output_dir=place,
    )


def insist(found: tuple[Counts, tuple[str, ...]], records: Statements) -> None:
    """Insist that every operation of every statement was answered as expected."""
    counts, errors = found
    assert errors == ()
    assert sum(counts[name, "attempted"] for name in records.statements) == OPERATIONS
    for name in records.statements:
        assert counts[name, "completed"] == counts[name, "attempted"] > 0, counts


@pytest.mark.parametrize("name", TABLES)
def test_what_either_engine_stores_both_find(
    name: str, cassandra_server: Served, tmp_path: Path
) -> None:
    native = (str(need_native()),)
    records = read_example(name)
    spec = make_spec(cassandra_server, records, tmp_path / "both")
    with open_session(cassandra_server.system, spec.target, records) as session:
        session.create_schema(records)
        _, errors = share(preload_of(spec), native, PYTHON_ENGINE)
        assert errors == ()
        assert session.stored() == Stored(rows=ROWS, payload_bytes=0)
    insist(share(spec, native, PYTHON_ENGINE), records)
    if name == "own-expiring":
        return

    # Rows of another seed are not there, and conditions for the same new rows do not hold again.
    statement, seed, miss = {
        "own-index": ("find-by-email", spec.seed + 1, "not_found"),
        "own-lightweight": ("add-item", spec.seed, "wrong_data"),
    }[name]
    again = make_spec(cassandra_server, records, tmp_path / "again", statement)
    again = replace(again, seed=seed, counted=Counted(phase="counted", operations=30, in_flight=4))
    for place, engine in (("native", native), ("python", PYTHON_ENGINE)):
        counts, _ = share(replace(again, output_dir=str(tmp_path / place)), engine)
        assert counts[statement, miss] == counts[statement, "attempted"] == 30, counts


OF_ROW: Mapping[str, tuple[str, Value]] = {
    "id": ("bigint", RowNumber(kind="row-number")),
    "a_int": ("int", IntegerValue(kind="integer", least=-(2**31), most=2**31 - 1)),
    "a_smallint": ("smallint", IntegerValue(kind="integer", least=-(2**15), most=2**15 - 1)),
    "a_tinyint": ("tinyint", IntegerValue(kind="integer", least=-128, most=127)),
    "a_varint": ("varint", IntegerValue(kind="integer", least=-(2**63), most=2**63 - 1)),
    "a_double": ("double", RealValue(kind="real", least=-1e9, most=1e9)),
    "a_float": ("float", ChoiceValue(kind="choice", among=(0.5, -2.0, 3))),
    "a_decimal": ("decimal", RealValue(kind="real", least=-100.0, most=100.0)),
    "b_decimal": ("decimal", IntegerValue(kind="integer", least=-(2**63), most=2**63 - 1)),
    "a_text": ("text", TextValue(kind="text", bytes=40, prefix="Łódź-")),
    "a_ascii": ("ascii", TextValue(kind="text", bytes=7)),
    "a_boolean": ("boolean", ChoiceValue(kind="choice", among=(True, False))),
    "b_boolean": ("boolean", IntegerValue(kind="integer", most=1)),
    "a_uuid": ("uuid", UuidValue(kind="uuid")),
    "a_inet": ("inet", ChoiceValue(kind="choice", among=("192.0.2.1", "2001:db8::1"))),
    "a_time": ("time", IntegerValue(kind="integer", most=86_399_999_999_999)),
}
NOT_COMPARED: Mapping[str, tuple[str, Value]] = {
    "a_timestamp": ("timestamp", TimestampValue(kind="timestamp", step_ms=1000)),
    "a_date": ("date", IntegerValue(kind="integer", least=2**31, most=2**31 + 20_000)),
    "lives_s": ("int", IntegerValue(kind="integer", least=3600, most=7200, of="operation")),
}


def make_typed(table: str) -> Statements:
    """Return records with a column of each type, all of which but dates are compared."""
    stored = OF_ROW | NOT_COMPARED
    columns = [name for name in stored if name != "lives_s"]
    typed = ", ".join(f"{name} {stored[name][0]}" for name in columns)
    marks = ", ".join(f":{name}" for name in columns)
    return Statements(
        kind="statements",
        language="cql",
        schema=(f"CREATE TABLE {table} ({typed}, PRIMARY KEY (id))",),
        rows=ROWS,
        store="store",
        count=f"SELECT id FROM {table}",  # noqa: S608  constants, as below
        values={name: value for name, (_, value) in stored.items()},
        statements={
            "store": Statement(
                text=f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) USING TTL :lives_s",  # noqa: S608
                row="new",
            ),
            "find": Statement(
                text=f"SELECT * FROM {table} WHERE id = :id LIMIT 1",  # noqa: S608
                row="uniform",
                expect=Expected(rows=1, columns={name: name for name in OF_ROW}),
            ),
            "find-new": Statement(
                text=f"SELECT a_uuid FROM {table} WHERE id = :id",  # noqa: S608
                row="latest",
                expect=Expected(rows="any", columns={"a_uuid": "a_uuid"}),
            ),
        },
    )


def change(records: Statements, name: str, **changes: Any) -> Statements:  # noqa: ANN401  any field
    """Return records one of whose statements is another."""
    changed = replace(records.statements[name], **changes)
    return replace(records, statements={**records.statements, name: changed})


def test_values_of_each_type_are_the_same_from_both_engines(
    cassandra_server: Served, tmp_path: Path
) -> None:
    native = (str(need_native()),)
    records = make_typed("native_types")
    spec = make_spec(cassandra_server, records, tmp_path / "both")
    with open_session(cassandra_server.system, spec.target, records) as session:
        session.create_schema(records)
        _, errors = share(preload_of(spec), native, PYTHON_ENGINE)
        assert errors == ()
    insist(share(spec, native, PYTHON_ENGINE), records)
    # Where a column has the value of another one, each answer is wrong.
    wrong = change(records, "find", expect=Expected(columns={"a_text": "a_ascii"}))
    spec = make_spec(cassandra_server, wrong, tmp_path / "wrong", "find")
    counts, _ = share(spec, native, PYTHON_ENGINE)
    assert counts["find", "wrong_data"] == counts["find", "attempted"] == OPERATIONS, counts


def test_errors_have_the_names_that_the_python_engine_gives_them(
    cassandra_server: Served, tmp_path: Path
) -> None:
    values: Mapping[str, Value] = {
        "id": RowNumber(kind="row-number"),
        # Fits into an int in row 0 alone.
        "n": TimestampValue(kind="timestamp", begin_ms=2**31 - 1),
        # Of another version than the server wants.
        "t": UuidValue(kind="uuid"),
    }
    texts = {
        "too-large": "UPDATE native_errors SET n = :n WHERE id = :id",
        "no-time": "UPDATE native_errors SET t = :t WHERE id = :id",
    }
    records = Statements(
        kind="statements",
        language="cql",
        schema=("CREATE TABLE native_errors (id bigint PRIMARY KEY, n int, t timeuuid)",),
        rows=ROWS,
        store="no-time",
        count="SELECT id FROM native_errors",
        values=values,
        statements={name: Statement(text=text, row="new") for name, text in texts.items()},
    )
    spec = make_spec(cassandra_server, records, tmp_path)
    with open_session(cassandra_server.system, spec.target, records) as session:
        session.create_schema(records)
    engines = {"native": (str(need_native()),), "python": PYTHON_ENGINE}
    found = [
        +share(replace(spec, output_dir=str(tmp_path / place)), engine)[0]
        for place, engine in engines.items()
    ]
    names = {"too-large": "error:TypeError", "no-time": "error:InvalidRequest"}
    for operation, kind in names.items():
        assert found[0][operation, kind] == found[0][operation, "attempted"] > 0, found
    assert {key for key in found[0] if key[1].startswith("error:")} == set(names.items())
    assert found[0] == found[1]


def test_what_cannot_be_sent_or_compared_is_said_before_the_load_begins(
    cassandra_server: Served, tmp_path: Path
) -> None:
    native = (str(need_native()),)
    records = make_typed("native_refused")
    with open_session(cassandra_server.system, cassandra_server.target, records) as session:
        session.create_schema(records)
    store, find = (records.statements[name].text for name in ("store", "find"))
    for place, (name, changes, why) in enumerate(
        (
            ("store", {"text": store.replace(":a_int,", ":a_text,")}, "type int, but the text"),
            ("store", {"text": store.replace(":a_smallint,", ":a_int,")}, "is no smallint; change"),
            ("find", {"text": find.replace("= :id", "IN :id")}, "which the native engine cannot send"),
            ("find", {"text": find.replace("WHERE id", "WHERE i")}, "error:InvalidRequest: "),
            ("find", {"expect": Expected(columns={"no": "id"})}, "column no, but its answer has id, "),
            ("find", {"expect": Expected(columns={"a_timestamp": "id"})}, "engine cannot compare"),
        )
    ):
        spec = make_spec(cassandra_server, change(records, name, **changes), tmp_path / str(place))
        with pytest.raises(StepFailed, match=f"cassandra: statement {name}: ") as caught:
            share(spec, native)
        assert why in str(caught.value)
