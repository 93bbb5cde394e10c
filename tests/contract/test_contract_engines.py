"""A short load by real engine processes, through sessions that have no real server here.

MongoDB's talks to the emulator of its protocol, CrateDB's to the peer at its HTTP endpoint.

It shows that what engines write is what they read. It is no measurement of anything.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from catalogs import shipped
from engine_runs import run_specs
from needs import need_native
from served import Served

from perf.load.engines import PYTHON_ENGINE
from perf.load.results.outcome import LoadOutcome
from perf.load.spec import Counted, LoadSpec, Preload
from perf.model.design import ClosedLoop
from perf.model.records import Operation, PutGet, Sensor
from perf.model.statements import Statements
from perf.systems.contract import open_session
from perf.systems.mongodb.client import open_client
from perf.workloads.stages import Stage

ENGINES = 2
ROWS = 400
RECORDS = Sensor(kind="sensor", devices=20, payload_bytes=1000, latest_count=5)
VALUES = PutGet(kind="put-get", keys=300)
STAGE = Stage(
    phase="saturation",
    load=ClosedLoop(kind="closed", in_flight=4),
    warmup_s=0.5,
    warmup_cap_s=0.5,
    iteration_s=1.0,
    iterations=(1,),
)


def _commands(beside: str) -> tuple[tuple[str, ...], ...]:
    """Describe how the two engines are started: both the Python engine, or one of them the native."""
    return (PYTHON_ENGINE, (str(need_native()),) if beside == "native" else PYTHON_ENGINE)


def _forget_rows(served: Served) -> None:
    """Let nothing be stored: MongoDB keeps a reading as often as it is written."""
    where = served.target.addresses, served.target.port, served.target.timeout_s
    with open_client(*where) as client:
        client.drop_database("knickpoint")


def _total(outcome: LoadOutcome) -> Counter[str]:
    total: Counter[str] = Counter()
    for counter in outcome.counters:
        total[counter.name] += counter.value
    return total


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "beside"),
    [
        pytest.param("cratedb", "python", marks=pytest.mark.slow),
        pytest.param("mongodb", "python", marks=pytest.mark.real),
        pytest.param("mongodb", "native", marks=pytest.mark.real),
    ],
)
def test_engines_read_what_engines_wrote(
    request: pytest.FixtureRequest, name: str, beside: str, tmp_path: Path
) -> None:
    commands = _commands(beside)
    served: Served = request.getfixturevalue(f"{name}_server")
    if name == "mongodb":
        _forget_rows(served)
    specs = [
        LoadSpec(
            target=served.target,
            records=RECORDS,
            mix={Operation.WRITE: 1.0},
            seed=7,
            engine_index=index,
            engine_count=ENGINES,
            output_dir=str(tmp_path / f"engine-{index}"),
        )
        for index in range(ENGINES)
    ]
    with served.connect() as session:
        session.create_schema(RECORDS)
        before = session.stored().rows

        preload = Preload(rows=ROWS, in_flight=4)
        loaded = _total(run_specs([replace(spec, preload=preload) for spec in specs], commands))
        assert (loaded["completed"], session.stored().rows - before) == (ROWS, ROWS)

        reading = [
            replace(spec, mix={Operation.READ_LATEST: 1.0}, readable_rows=ROWS, stages=(STAGE,))
            for spec in specs
        ]
        read = _total(run_specs(reading, commands))
        assert read["attempted"] == read["completed"] > 0, read

        writing = [replace(spec, first_row=ROWS, stages=(STAGE,)) for spec in specs]
        outcome = run_specs(writing, commands)
        written = _total(outcome)
        assert written["attempted"] == written["completed"] > 0, written
        assert session.stored().rows - before == ROWS + written["completed"]
    assert {interval.kind for interval in outcome.intervals} == {"response_time", "service_time"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "beside"),
    [
        ("cratedb", "python"),
        ("fake", "python"),
        pytest.param("mongodb", "python", marks=pytest.mark.real),
        pytest.param("mongodb", "native", marks=pytest.mark.real),
    ],
)
def test_engines_get_what_engines_put(
    request: pytest.FixtureRequest, name: str, beside: str, tmp_path: Path
) -> None:
    commands = _commands(beside)
    served: Served = request.getfixturevalue(f"{name}_server")
    assert served.system.sessions.key_value
    with served.system.sessions.key_value(served.target) as session:
        session.create_schema(VALUES)
    for place, (operation, value_seed) in enumerate(
        (
            (Operation.PUT, 1776),
            (Operation.GET, 1776),
            (Operation.PUT_GET, 1861),
            (Operation.GET, 1861),
        )
    ):
        specs = [
            LoadSpec(
                target=served.target,
                records=VALUES,
                mix={operation: 1.0},
                seed=7,
                value_seed=value_seed,
                run=place,
                counted=Counted(phase="counted", operations=VALUES.keys, in_flight=4),
                engine_index=index,
                engine_count=ENGINES,
                output_dir=str(tmp_path / f"{place}-{index}"),
            )
            for index in range(ENGINES)
        ]
        # What one engine has put, the other one gets.
        outcome = run_specs(specs, commands if place % 2 else commands[::-1])
        own = [one for one in outcome.counters if one.operation == operation.value]
        total = _total(replace(outcome, counters=own))
        assert total["attempted"] == total["completed"] == VALUES.keys, total
        parts = {one.operation for one in outcome.intervals} - {operation.value}
        assert parts == ({"put-get.put", "put-get.get"} if operation is Operation.PUT_GET else set())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "example"),
    [("cratedb", "own-sql"), pytest.param("mongodb", "own-documents", marks=pytest.mark.real)],
)
def test_engines_are_answered_as_a_workload_in_statements_expects(
    request: pytest.FixtureRequest, name: str, example: str, tmp_path: Path
) -> None:
    served: Served = request.getfixturevalue(f"{name}_server")
    if name == "mongodb":
        _forget_rows(served)
    workload = shipped().workloads[example]
    assert isinstance(workload.records, Statements)
    records = replace(workload.records, rows=ROWS)
    specs = [
        LoadSpec(
            target=served.target,
            records=records,
            mix=workload.mix,
            seed=7,
            engine_index=index,
            engine_count=ENGINES,
            output_dir=str(tmp_path / f"engine-{index}"),
        )
        for index in range(ENGINES)
    ]
    commands = (PYTHON_ENGINE,) * ENGINES
    with open_session(served.system, served.target, records) as session:
        session.create_schema(records)
        preload = Preload(rows=ROWS, in_flight=4)
        storing = [replace(spec, mix={Operation.WRITE: 1.0}, preload=preload) for spec in specs]
        loaded = _total(run_specs(storing, commands))
        assert (loaded["completed"], session.stored().rows) == (ROWS, ROWS)

    loads = [replace(one, readable_rows=ROWS, first_row=ROWS, stages=(STAGE,)) for one in specs]
    outcome = run_specs(loads, commands)
    total = _total(outcome)
    assert total["attempted"] == total["completed"] > 0, total
    assert {one.operation for one in outcome.intervals} == set(records.statements)
