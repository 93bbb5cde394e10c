"""The native engine as a process: its files, its exit codes, and the Python engine's sequence.

What it measures is proven by `knickpoint selftest engine --engine native`; this is what is around it.
"""

import json
import signal
import subprocess
import time
from collections import Counter as Tally
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from catalogs import shipped
from needs import need_native

from perf.load.engines import PYTHON_ENGINE
from perf.load.histogram import merge
from perf.load.selftest.stand import RECORDS, SEED, LoadEvidence, Stand, plan_stage
from perf.load.spec import GO, INTERVALS, PROGRESS, READY, RESULT, LoadSpec, dump_spec, read_result
from perf.local.hlog import read_hlog
from perf.model.design import ClosedLoop, OpenLoop
from perf.model.records import Answer, Operation
from perf.model.results import ATTEMPTED, COMPLETED_IN_WINDOW
from perf.systems.contract import Target
from perf.systems.null.behaviour import Behaviour, Holdings
from perf.systems.null.dialects import CQL

HOLDS = Holdings(
    seed=SEED, devices=RECORDS.devices, payload_bytes=RECORDS.payload_bytes, rows=10 * RECORDS.devices
)
OPEN = OpenLoop(kind="open", offered_load_ops_per_s=300.0, in_flight=64, arrivals="poisson")
CLOSED = ClosedLoop(kind="closed", in_flight=64)
SOON = plan_stage("steady", OPEN, warmup_s=1, measured_s=1)
_LIMIT_S = 30.0
# What may be added to it per core: 64 MB, and histograms.
_MOST_KB = 80 * 1024


@pytest.fixture(name="native")
def _native() -> str:
    return str(need_native())


@pytest.fixture(name="nowhere")
def _nowhere(tmp_path: Path) -> LoadSpec:
    """Describe what to do where nobody listens."""
    target = Target(
        system="cassandra",
        addresses=("127.83.0.1",),
        port=9,
        replication_factor=1,
        consistency="one",
        timeout_s=1.0,
    )
    return LoadSpec(
        target=target,
        records=RECORDS,
        mix={Operation.WRITE: 1.0},
        seed=SEED,
        engine_index=0,
        engine_count=1,
        stages=(SOON,),
        go_within_s=0.2,
        output_dir=str(tmp_path),
    )


def run(native: str, text: str, directory: Path) -> tuple[int, str]:
    """Run it on a spec that fails; give the exit code, and what it said."""
    path = directory / "spec.json"
    path.write_text(text)
    ended = subprocess.run(
        [native, str(path)], capture_output=True, text=True, timeout=_LIMIT_S, check=False
    )
    assert ended.stdout == ""
    assert not (directory / RESULT).exists()
    return ended.returncode, ended.stderr


def test_what_is_not_a_spec_is_refused_by_its_field(
    native: str, nowhere: LoadSpec, tmp_path: Path
) -> None:
    code, said = run(native, dump_spec(nowhere).replace('"seed"', '"sead"'), tmp_path)
    assert code == 2
    assert "unknown field `sead`" in said
    whole = json.loads(dump_spec(nowhere))
    del whole["engine_count"]
    code, said = run(native, json.dumps(whole), tmp_path)
    assert code == 2
    assert "missing field `engine_count`" in said
    whole = json.loads(dump_spec(nowhere)) | {"seed": "seven"}
    code, said = run(native, json.dumps(whole, indent=1), tmp_path)
    assert code == 2
    assert said.splitlines()[-1] == 'the line is: "seed": "seven",'


def test_without_a_spec_it_says_how_it_is_used(native: str, tmp_path: Path) -> None:
    ended = subprocess.run([native], capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "SPEC.json" in ended.stderr
    missing = [native, str(tmp_path / "none.json")]
    ended = subprocess.run(missing, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    assert ended.returncode == 2
    assert "none.json" in ended.stderr
    helped = subprocess.run([native, "--help"], capture_output=True, text=True, check=True)
    assert "Exit codes:" in helped.stdout
    asked = subprocess.run([native, "--version"], capture_output=True, text=True, check=True)
    assert asked.stdout.startswith("knickload ")


def test_a_system_that_it_has_no_driver_for_is_left_to_the_python_engine(
    native: str, nowhere: LoadSpec, tmp_path: Path
) -> None:
    spec = replace(nowhere, target=replace(nowhere.target, system="cratedb"))
    code, said = run(native, dump_spec(spec), tmp_path)
    assert code == 1
    assert said == "the native engine has no driver for cratedb; say `engine: python`\n"


def test_commands_of_mongodb_are_left_to_the_python_engine(
    native: str, nowhere: LoadSpec, tmp_path: Path
) -> None:
    target = replace(nowhere.target, system="mongodb")
    spec = replace(nowhere, target=target, records=shipped().workloads["own-documents"].records)
    code, said = run(native, dump_spec(replace(spec, mix={"touch": 1.0})), tmp_path)
    assert code == 1
    why = "the native engine sends no commands of one's own to MongoDB; say `engine: python`"
    assert said == f"{why}\n"


def test_where_nobody_listens_it_fails_and_says_where(
    native: str, nowhere: LoadSpec, tmp_path: Path
) -> None:
    code, said = run(native, dump_spec(nowhere), tmp_path)
    assert code == 1
    assert "127.83.0.1" in said
    assert not (tmp_path / READY).exists()


@contextmanager
def connected(native: str, directory: Path, go_within_s: float) -> Iterator[subprocess.Popen[str]]:
    """Let it connect to a null server; give the process once it is ready."""
    stand = Stand(directory=directory, engine=(native,), dialect=CQL)
    with stand.serve("waits", [Behaviour()]) as (node,):
        spec = LoadSpec(
            target=stand.target(node, 1.0),
            records=RECORDS,
            mix={Operation.WRITE: 1.0},
            seed=SEED,
            engine_index=0,
            engine_count=1,
            stages=(SOON,),
            go_within_s=go_within_s,
            output_dir=str(directory),
        )
        (directory / "spec.json").write_text(dump_spec(spec))
        command = [native, str(directory / "spec.json")]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as engine:
            end_s = time.monotonic() + _LIMIT_S
            while not (directory / READY).exists():
                assert engine.poll() is None, engine.communicate()
                assert time.monotonic() < end_s
                time.sleep(0.01)
            yield engine


def test_it_waits_for_go_only_so_long(native: str, tmp_path: Path) -> None:
    with connected(native, tmp_path, 0.1) as engine:
        _, said = engine.communicate(timeout=_LIMIT_S)
        assert engine.returncode == 1
        assert said == f"start failed on the load engine: there was no {tmp_path / GO} within 0.1 s\n"


def test_a_start_that_has_passed_is_refused(native: str, tmp_path: Path) -> None:
    with connected(native, tmp_path, _LIMIT_S) as engine:
        (tmp_path / GO).write_text(repr(time.time() - 10))
        _, said = engine.communicate(timeout=_LIMIT_S)
        assert engine.returncode == 1
        assert "are the clocks of the client hosts in step?" in said


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_it_at_once(
    number: signal.Signals, code: int, native: str, tmp_path: Path
) -> None:
    with connected(native, tmp_path, _LIMIT_S) as engine:
        engine.send_signal(number)
        assert engine.wait(timeout=_LIMIT_S) == code
        assert not (tmp_path / RESULT).exists()


def offer(directory: Path, engine: tuple[str, ...], name: str) -> LoadEvidence:
    """Let an engine offer reads and writes to a server that holds rows."""
    return Stand(directory=directory, engine=engine, dialect=CQL).observe(
        name,
        servers=[Behaviour(holds=HOLDS)],
        stages=[SOON, plan_stage("full", CLOSED, warmup_s=1, measured_s=1)],
        mix={Operation.WRITE: 1.0, Operation.READ_LATEST: 3.0},
    )


@pytest.mark.slow
def test_every_operation_is_in_the_books_and_in_the_log(native: str, tmp_path: Path) -> None:
    evidence = offer(tmp_path, (native,), "native")
    result = read_result(evidence.logs[0].parent / RESULT)
    intervals = read_hlog(evidence.logs[0].parent / INTERVALS)
    totals: Tally[str] = Tally()
    for one in result.counters:
        totals[one.name] += one.value
    # The server keeps nothing: what this very run wrote is not found.
    assert totals[Answer.COMPLETED] + totals[Answer.NOT_FOUND] == totals[ATTEMPTED]
    assert totals[Answer.COMPLETED] > 0
    for kind in ("response_time", "service_time"):
        found = merge(one for one in intervals if one.kind == kind)
        assert found.get_total_count() == totals[Answer.COMPLETED]
    late = merge(one for one in intervals if one.kind == "send_lateness")
    assert late.get_total_count() == sum(
        one.value for one in result.counters if one.name == ATTEMPTED and one.phase == "steady"
    )
    assert sum(len(deeds.arrived_s) for deeds in evidence.deeds) == totals[ATTEMPTED]
    lines = (evidence.logs[0].parent / PROGRESS).read_text().splitlines()
    assert [line.split(",")[:2] for line in lines] == [[s, t] for s in "01" for t in "01"]
    ended = sum(int(line.split(",")[2]) for line in lines)
    # What ends after its own stage is in no second of it.
    assert totals[COMPLETED_IN_WINDOW] <= ended <= totals[Answer.COMPLETED]
    assert {(one.phase, one.iteration) for one in result.usages} == {
        (phase, iteration) for phase in ("steady", "full") for iteration in (0, 1)
    }
    assert all(0 < one.cpu_s < 2 * one.wall_s for one in result.usages)


@pytest.mark.slow
def test_both_engines_offer_the_same_operations(native: str, tmp_path: Path) -> None:
    def attempted(evidence: LoadEvidence) -> dict[tuple[str, int], int]:
        return {
            (one.operation, one.iteration): one.value
            for one in evidence.outcome.counters
            if one.name == ATTEMPTED and one.phase == "steady"
        }

    ours, theirs = (
        attempted(offer(tmp_path, command, name))
        for name, command in (("native", (native,)), ("python", PYTHON_ENGINE))
    )
    assert ours == theirs
    assert len(ours) == 4


@pytest.mark.slow
def test_memory_stays_bounded_at_full_speed(native: str, tmp_path: Path) -> None:
    stages = [plan_stage("full", CLOSED, warmup_s=1, measured_s=5)]
    stand = Stand(directory=tmp_path, engine=(native,), dialect=CQL)
    with stand.serve("memory", [Behaviour(holds=HOLDS)]) as (node,):
        spec = LoadSpec(
            target=stand.target(node, 5.0),
            records=RECORDS,
            mix={Operation.WRITE: 1.0, Operation.READ_LATEST: 1.0},
            seed=SEED,
            engine_index=0,
            engine_count=1,
            stages=tuple(stages),
            readable_rows=HOLDS.rows,
            output_dir=str(tmp_path),
        )
        (tmp_path / "spec.json").write_text(dump_spec(spec))
        (tmp_path / GO).write_text(repr(time.time() + 0.5))
        most_kb = 0
        with subprocess.Popen([native, str(tmp_path / "spec.json")]) as engine:
            while engine.poll() is None:
                status = Path(f"/proc/{engine.pid}/status").read_text()
                peak = [line for line in status.splitlines() if line.startswith("VmHWM:")]
                most_kb = max([most_kb, *(int(line.split()[1]) for line in peak)])
                time.sleep(0.1)
            assert engine.returncode == 0
    assert 0 < most_kb < _MOST_KB
