"""Whatever a load engine leaves behind: its trial fails in words, or has what the engine measured."""

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import NO_FILES, broken_bytes, broken_documents, put_in_place, within

from perf.hosts.remote import LocalHost, read_tail
from perf.load.histogram import merge_equal_intervals
from perf.load.read_back import read_back, read_cut
from perf.load.results.outcome import LoadOutcome
from perf.load.spec import INTERVALS, RESULT, EngineResult, LoadSpec, Usage, write_result
from perf.load.steadiness import merge_progress
from perf.local.hlog import write_hlog
from perf.model.design import ClosedLoop
from perf.model.errors import BundleError
from perf.model.records import Operation, Sensor
from perf.model.results import Counter, Interval
from perf.systems.contract import Target
from perf.workloads.stages import Stage

LONGEST_S = 60.0
SPEC = LoadSpec(
    target=Target(
        system="fake",
        addresses=("127.0.0.1",),
        port=1,
        replication_factor=1,
        consistency="one",
        timeout_s=1.0,
    ),
    records=Sensor(kind="sensor", devices=4, payload_bytes=128, latest_count=2),
    mix={Operation.WRITE: 1.0},
    seed=1,
    engine_index=0,
    engine_count=1,
    stages=(
        Stage(
            phase="saturation",
            load=ClosedLoop(kind="closed", in_flight=4),
            warmup_s=1.0,
            warmup_cap_s=2.0,
            iteration_s=2.0,
            iterations=(1,),
        ),
    ),
    output_dir="engine-0",
)
STARTS = {("saturation", 1): 1_772_330_400.0}


@pytest.fixture
def left(tmp_path: Path, make_interval: Callable[..., Interval]) -> Path:
    """Return the directory of an engine that did what it was reported."""
    phase = {"phase": "saturation", "operation": "write"}
    interval = replace(make_interval([5, 50, 500]), start_s=1_772_330_400.0)
    write_hlog(tmp_path / INTERVALS, [interval, replace(interval, start_s=interval.start_s + 1)])
    result = EngineResult(
        engine_index=0,
        counters=(Counter(**phase, iteration=1, name="attempted", value=6),),
        usages=(Usage(phase="saturation", iteration=1, wall_s=2.0, cpu_s=0.5, waited_s=0.0),),
        examples=("timed out",),
    )
    write_result(tmp_path / RESULT, result)
    return tmp_path


def read(left: Path) -> tuple[EngineResult, tuple[Interval, ...]] | str:
    """Read back what may be anything; give what the trial would be reported."""
    try:
        with within(LONGEST_S):
            return read_back(left, SPEC, STARTS)
    except ValueError as error:
        said = str(error)
    assert len(said) < 700
    assert said.isprintable(), said
    return said


@pytest.mark.keeps("hostile-engines")
def test_what_an_engine_did_comes_back_as_it_is(left: Path) -> None:
    found = read(left)
    assert not isinstance(found, str)
    result, intervals = found
    assert result.counters[0].value == 6
    assert [one.max_us for one in intervals] == [500, 500]


@pytest.mark.keeps("hostile-engines")
def test_broken_files_of_an_engine_fail_its_trial_in_words(
    left: Path, effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    contents = {name: (left / name).read_bytes() for name in (RESULT, INTERVALS)}
    tree = json.loads(contents[RESULT])
    broken = st.one_of(
        st.tuples(st.just(RESULT), broken_documents(tree) | broken_bytes(contents[RESULT])),
        st.tuples(st.just(INTERVALS), broken_bytes(contents[INTERVALS])),
    )
    reported = itertools.count()
    tries = effort(25, 1000)

    @settings(max_examples=tries, deadline=None, derandomize=True)
    @given(broken=broken)
    def run(broken: tuple[str, bytes]) -> None:
        for name, content in contents.items():
            (left / name).write_bytes(content)
        (left / broken[0]).write_bytes(broken[1])
        found = read(left)
        if isinstance(found, str):
            next(reported)
            return
        result, intervals = found
        assert all(one.value >= 0 for one in result.counters)
        assert all(abs(one.cpu_s) < float("inf") for one in result.usages)
        # What merging does with it is done to every trial.
        outcome = LoadOutcome(intervals=intervals, counters=result.counters, results=(result,))
        assert merge_equal_intervals((outcome + outcome).intervals)

    run()
    figures["broken engines"] = f"{next(reported)} of {tries} told"


@pytest.mark.keeps("hostile-engines")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"cpu_s":0.5', '"cpu_s":NaN', "cpu_s"),
        ('"cpu_s":0.5', '"cpu_s":1e999', "cpu_s"),
        ('"value":6', '"value":-1', "is no count"),
        ('"value":6', '"value":1' + "0" * 400, "is no count"),
        ('"engine_index":0', '"engine_index":1', "the result of engine 1"),
        ('"saturation"', '"\\u001b[2J"', "which is not in its plan"),
        ('"timed out"', '"' + "x" * 20_000_000 + '"', "at most 16777216 are read"),
    ],
    ids=["not a number", "infinite", "negative", "huge", "another", "phase", "large"],
)
def test_what_no_engine_can_have_counted_is_refused(left: Path, old: str, new: str, said: str) -> None:
    text = (left / RESULT).read_text(encoding="utf-8").replace(": ", ":")
    assert old in text
    (left / RESULT).write_text(text.replace(old, new), encoding="utf-8")
    found = read(left)
    assert isinstance(found, str)
    assert said in found


@pytest.mark.keeps("hostile-engines")
@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize("name", [RESULT, INTERVALS])
def test_what_is_no_file_is_never_waited_for(left: Path, name: str, kind: str) -> None:
    put_in_place(left / name, kind)
    found = read(left)
    assert isinstance(found, str)
    if name == INTERVALS:
        with within(LONGEST_S), pytest.raises((BundleError, OSError)):
            read_cut(left / name)


@pytest.mark.keeps("hostile-engines")
def test_lines_of_progress_are_read_or_refused(
    effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    valid = "".join(f"0,{second},{1000 + second},{second * 0.25!r}\n" for second in range(5)).encode()
    assert [one.completed for one in merge_progress([valid.decode()], 0)] == [*range(1000, 1005)]
    tries = effort(25, 1000)

    @settings(max_examples=tries, deadline=None, derandomize=True)
    @given(data=broken_bytes(valid))
    def run(data: bytes) -> None:
        try:
            seconds = merge_progress([data.decode("utf-8", "replace"), valid.decode()], 0)
        except ValueError as error:
            said = str(error)
        else:
            assert all(one.completed >= 0 and 0 <= one.service_s < float("inf") for one in seconds)
            return
        assert said.isprintable()
        assert len(said) < 200

    run()
    figures["broken progress"] = tries


@pytest.mark.keeps("hostile-engines")
@pytest.mark.parametrize("kind", NO_FILES)
def test_the_tail_of_a_log_is_short_whatever_the_log_is(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "system.log"
    put_in_place(path, kind)
    with within(LONGEST_S):
        assert len(read_tail(LocalHost(), str(path))) <= 40_000


@pytest.mark.keeps("hostile-engines")
def test_a_log_of_one_endless_line_gives_its_end(tmp_path: Path) -> None:
    path = tmp_path / "system.log"
    path.write_bytes(b"\xff\x1b[2J" * 1_000_000 + b"the end\n")
    tail = read_tail(LocalHost(), str(path))
    assert tail.endswith("the end\n")
    assert len(tail) <= 40_000
