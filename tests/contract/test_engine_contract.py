"""What every engine promises, whichever database it speaks to: asked where the truth was planted.

Each engine offers loads to null servers that speak CQL or MongoDB's protocol, keep a record of their
own and do what they are asked: answer late, refuse, stay silent, stall, change a row. What engines
promise on a real database is asked in test_engine_contract_real.py.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from needs import need_native

from perf.hosts.remote import LocalHost, running_pid
from perf.load.engines import PYTHON_ENGINE, Engine, run_engines
from perf.load.native_binary import NULL_SERVER
from perf.load.results.outcome import LoadOutcome
from perf.load.selftest.finding import CheckOutcome
from perf.load.selftest.scenarios import SCENARIOS, LoadProfile, Scenario, run_until_reported
from perf.load.selftest.stand import RECORDS, SEED, Stand, plan_stage, read_deeds
from perf.load.selftest.table import format_findings
from perf.load.spec import PROGRESS, Counted, LoadSpec, Preload
from perf.model.design import ClosedLoop, OpenLoop, Steadiness
from perf.model.errors import StepFailed
from perf.model.records import Answer, Operation
from perf.model.results import ATTEMPTED, TIMEOUTS
from perf.systems.contract import Node
from perf.systems.null.behaviour import Behaviour, Holdings
from perf.systems.null.dialects import CQL, MONGO, Dialect
from perf.systems.null.record import Deeds

ENGINES = ("native", "python")
DIALECTS = (CQL, MONGO)
SHORT = LoadProfile(warmup_s=0.5, measured_s=1.0)
LIMIT_S = 60.0
ROWS = 970
# Far beyond what a busy machine delays an answer by: only what is never answered passes it.
PATIENT_S = 3.0

MakeStand = Callable[[str, Dialect], Stand]


def _each_pair(*, short: Collection[Dialect] = (CQL,)) -> pytest.MarkDecorator:
    """Ask each engine over each protocol; only the native one, over these, takes little time."""
    pairs = [
        pytest.param(
            engine,
            dialect,
            id=f"{engine}-{dialect.wire}",
            marks=[] if engine == "native" and dialect in short else [pytest.mark.slow],
        )
        for engine in ENGINES
        for dialect in DIALECTS
    ]
    return pytest.mark.parametrize(("engine", "dialect"), pairs)


@pytest.fixture
def make_stand(tmp_path: Path) -> MakeStand:
    """Return `make_stand(engine, dialect)`: where that engine is tested by servers that speak so."""

    def make(engine: str, dialect: Dialect) -> Stand:
        need_native(NULL_SERVER)
        command = PYTHON_ENGINE if engine == "python" else (str(need_native()),)
        return Stand(directory=tmp_path, engine=command, dialect=dialect)

    return make


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.wire)
@pytest.mark.parametrize(
    "scenario", SCENARIOS, ids=lambda scenario: scenario.run.__name__.removeprefix("run_")
)
def test_what_is_planted_is_what_is_reported(
    make_stand: MakeStand, dialect: Dialect, scenario: Scenario
) -> None:
    """The questions of `make selftest` to the native engine, over the same protocols."""
    findings = run_until_reported(scenario, make_stand("python", dialect), SHORT, print)
    failed = [one for one in findings if one.outcome is CheckOutcome.FAILED]
    assert not failed, format_findings(findings)


def _spec(stand: Stand, node: Node) -> LoadSpec:
    return LoadSpec(
        target=stand.target(node, PATIENT_S),
        records=RECORDS,
        mix={Operation.WRITE: 1.0},
        seed=SEED,
        engine_index=0,
        engine_count=1,
        output_dir=str(stand.directory / "engine-0"),
    )


def _do(
    stand: Stand, reported: Behaviour, change: Callable[[LoadSpec], LoadSpec], engines: int = 1
) -> tuple[LoadOutcome, Deeds]:
    """Let engines do something to one server; give what they report, and what that did."""
    with stand.serve("served", [reported]) as nodes:
        spec = replace(change(_spec(stand, nodes[0])), engine_count=engines)
        specs = [
            replace(spec, engine_index=index, output_dir=str(stand.directory / f"engine-{index}"))
            for index in range(engines)
        ]
        outcome = _run([Engine(spec=one, remote=LocalHost(), command=stand.engine) for one in specs])
    (deeds,) = read_deeds(nodes)
    return outcome, deeds


def _run(
    engines: list[Engine],
    watch: Callable[[], None] = lambda: None,
    keep: Callable[[LoadOutcome], None] = lambda _: None,
) -> LoadOutcome:
    return run_engines(
        engines,
        connect_s=LIMIT_S,
        limit_s=LIMIT_S,
        steadiness=Steadiness(window_s=1, tolerance=1.0),
        watch=watch,
        observe=lambda _: None,
        keep=keep,
    )


def _total(outcome: LoadOutcome) -> Counter[str]:
    total: Counter[str] = Counter()
    for counter in outcome.counters:
        total[counter.name] += counter.value
    return total


def _counting(operations: int) -> Callable[[LoadSpec], LoadSpec]:
    counted = Counted(phase="counted", operations=operations, in_flight=16)
    return partial(replace, counted=counted)


def _reading(operations: int) -> Callable[[LoadSpec], LoadSpec]:
    def read(spec: LoadSpec) -> LoadSpec:
        return replace(spec, mix={Operation.READ_LATEST: 1.0}, readable_rows=ROWS)

    return lambda spec: read(_counting(operations)(spec))


@pytest.mark.slow
@_each_pair(short=DIALECTS)
def test_each_operation_ends_in_the_one_counter_that_was_planted(
    make_stand: MakeStand, engine: str, dialect: Dialect
) -> None:
    reported = Behaviour(refuse_every=7, never_answer_every=90)
    outcome, deeds = _do(make_stand(engine, dialect), reported, _counting(400))
    total = _total(outcome)
    refused, silent = 400 // 7, 400 // 90
    ends = {dialect.refusal: refused, TIMEOUTS: silent, Answer.COMPLETED: 400 - refused - silent}
    assert {name: total[name] for name in ends} == ends
    assert total[ATTEMPTED] == deeds.arrived_s.size == 400
    assert sum(total[name] for name in total if name.startswith("error:")) == refused
    assert np.count_nonzero(np.isinf(deeds.answered_s)) == silent
    (result,) = outcome.results
    assert any(dialect.refusal.removeprefix("error:") in one for one in result.examples)


@pytest.mark.slow
@_each_pair(short=DIALECTS)
def test_a_row_that_was_changed_is_wrong_data(
    make_stand: MakeStand, engine: str, dialect: Dialect
) -> None:
    holds = Holdings(seed=SEED, devices=RECORDS.devices, payload_bytes=RECORDS.payload_bytes, rows=ROWS)
    reported = Behaviour(holds=holds, wrong_every=10)
    outcome, _ = _do(make_stand(engine, dialect), reported, _reading(200))
    total = _total(outcome)
    found = {name: total[name] for name in (ATTEMPTED, *Answer, TIMEOUTS)}
    assert found == {
        ATTEMPTED: 200,
        Answer.COMPLETED: 180,
        Answer.WRONG_DATA: 20,
        Answer.NOT_FOUND: 0,
        TIMEOUTS: 0,
    }


@_each_pair()
def test_rows_that_are_not_there_are_not_found(
    make_stand: MakeStand, engine: str, dialect: Dialect
) -> None:
    outcome, _ = _do(make_stand(engine, dialect), Behaviour(), _reading(50))
    assert _total(outcome)[Answer.NOT_FOUND] == 50


@pytest.mark.slow
@_each_pair()
def test_a_preload_that_is_refused_tries_again_until_all_rows_are_there(
    make_stand: MakeStand, engine: str, dialect: Dialect
) -> None:
    def preload(spec: LoadSpec) -> LoadSpec:
        return replace(spec, preload=Preload(rows=301, in_flight=4))

    reported = Behaviour(refuse_every=10)
    outcome, deeds = _do(make_stand(engine, dialect), reported, preload, engines=2)
    rows = np.stack((deeds.device, deeds.ts_ms))[:, ~deeds.is_refused]
    assert np.unique(rows, axis=1).shape[1] == rows.shape[1] == 301
    assert _total(outcome)[Answer.COMPLETED] == 301
    assert len(outcome.results) == 2


@_each_pair()
def test_engines_share_what_is_to_be_done_and_no_operation_twice(
    make_stand: MakeStand, engine: str, dialect: Dialect
) -> None:
    stand = make_stand(engine, dialect)
    outcome, deeds = _do(stand, Behaviour(), _counting(301), engines=2)
    assert np.unique(np.stack((deeds.device, deeds.ts_ms)), axis=1).shape[1] == 301
    assert deeds.arrived_s.size == _total(outcome)[Answer.COMPLETED] == 301
    by_engine = [sum(one.value for one in result.counters) for result in outcome.results]
    assert min(by_engine) > 0
    assert all(result.counted_s for result in outcome.results)


@pytest.mark.slow
@_each_pair()
@pytest.mark.parametrize(
    "end",
    [
        pytest.param(signal.SIGKILL, id="killed"),
        pytest.param(signal.SIGTERM, id="stopped", marks=pytest.mark.slow),
    ],
)
def test_an_engine_that_ends_early_fails_the_load_and_leaves_what_it_measured(
    make_stand: MakeStand, engine: str, dialect: Dialect, end: signal.Signals
) -> None:
    stand, kept = make_stand(engine, dialect), list[LoadOutcome]()
    load = OpenLoop(kind="open", offered_load_ops_per_s=200.0, in_flight=32)
    stage = plan_stage("steady", load, warmup_s=1.0, measured_s=LIMIT_S / 2)
    with stand.serve("served", [Behaviour(service_time_ms=1.0)]) as nodes:
        spec = replace(_spec(stand, nodes[0]), stages=(stage,))
        tested = Engine(spec=spec, remote=LocalHost(), command=stand.engine)

        def end_when_it_measures() -> None:
            progress = Path(tested.path(PROGRESS))
            if progress.exists() and len(progress.read_text().splitlines()) > 2:
                pid = running_pid(tested.remote, tested.path("engine.pid"))
                if pid is not None:
                    os.kill(pid, end)

        with pytest.raises(StepFailed, match="ended without a result") as caught:
            _run([tested], end_when_it_measures, kept.append)
        assert running_pid(tested.remote, tested.path("engine.pid")) is None
    (salvaged,) = kept
    assert {one.phase for one in salvaged.intervals} >= {"steady"}, caught.value


@_each_pair(short=())
def test_a_closed_loop_goes_on_when_answers_stay_out(
    make_stand: MakeStand, engine: str, dialect: Dialect
) -> None:
    """Each slot that waits in vain is free again after the time limit, and not before."""
    stand = make_stand(engine, dialect)
    stage = plan_stage("closed", ClosedLoop(kind="closed", in_flight=8), warmup_s=0.5, measured_s=3.0)
    seen = stand.observe(
        "silent",
        servers=[Behaviour(service_time_ms=5.0, never_answer_every=100)],
        stages=[stage],
        timeout_s=1.0,
    )
    (deeds,) = seen.deeds
    silent = int(np.count_nonzero(np.isinf(deeds.due_s)))
    assert silent > 0
    assert seen.count(TIMEOUTS) >= silent
    assert seen.count(ATTEMPTED) == seen.count(TIMEOUTS) + seen.count(Answer.COMPLETED)
    assert seen.count(ATTEMPTED) == deeds.arrived_s.size
