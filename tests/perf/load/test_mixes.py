"""What a mix came to: each operation by itself, and all of them together under one name."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from perf.load.results.outcome import LoadOutcome
from perf.load.results.phases import collect_phases
from perf.load.results.summary import summarize
from perf.model.design import ClosedLoop, CountedPhase, Measurement, Testbed, Workload
from perf.model.records import ALL, Devops, Operation, PutGet, Ycsb
from perf.model.results import Counter, Interval, Sample
from perf.trial.validity import find_faults
from perf.workloads.stages import Stage, counted_stage, list_phases, operations_of

WORKLOAD = Workload(
    name="w",
    description="test",
    purpose="test",
    owner="test",
    source="test",
    not_comparable="test",
    records=Ycsb(kind="ycsb", record_count=50, request_distribution="uniform"),
    mix={Operation.READ: 50.0, Operation.READ_MODIFY_WRITE: 50.0},
    consistency="one",
    preload_in_flight=1,
    operation_timeout_s=1.0,
    sequence=(CountedPhase(name="alone", operation=Operation.READ, in_flight=3),),
    seed=1,
)
STAGE = Stage(
    phase="mixed",
    load=ClosedLoop(kind="closed", in_flight=2),
    warmup_s=1.0,
    warmup_cap_s=1.0,
    iteration_s=2.0,
    iterations=(1,),
)
PART = "read-modify-write.update"


def report(operation: str, phase: str = "mixed", **values: int) -> list[Counter]:
    return [
        Counter(phase=phase, operation=operation, iteration=1, name=name, value=value)
        for name, value in values.items()
    ]


@pytest.fixture
def outcome(make_interval: Callable[..., Interval]) -> LoadOutcome:
    times_us = {"read": [1000] * 60, "read-modify-write": [5000] * 40, PART: [4000] * 40}
    alone = report("read", "alone", attempted=50, completed=50, completed_in_window=50)
    return LoadOutcome(
        intervals=tuple(
            replace(make_interval(times, iteration=1, kind=kind), phase="mixed", operation=operation)
            for operation, times in times_us.items()
            for kind in ("response_time", "service_time")
        ),
        counters=(
            *report("read", attempted=60, completed=60, completed_in_window=60),
            *report(
                "read-modify-write", attempted=41, completed=40, completed_in_window=40, timeouts=1
            ),
            *report(PART, completed=40),
            *alone,
        ),
    )


def find(made: tuple[Sample, ...], phase: str) -> Mapping[tuple[str, str, str], float]:
    return {
        (one.operation, one.metric, one.statistic): one.value
        for one in made
        if one.phase == phase and one.iteration is None
    }


def test_throughput_is_of_all_and_of_each_and_never_of_a_part(outcome: LoadOutcome) -> None:
    stages = (counted_stage(WORKLOAD.sequence[0], 4.0), STAGE)
    made = summarize(WORKLOAD, stages, outcome, price_per_hour_usd=3.6)
    mixed = find(made, "mixed")
    assert mixed[ALL, "throughput", "mean"] == 50.0
    assert mixed["read", "throughput", "mean"] == 30.0
    assert mixed["read-modify-write", "throughput", "mean"] == 20.0
    assert (PART, "throughput", "mean") not in mixed
    assert mixed[PART, "service_time", "p99"] == pytest.approx(4.0, rel=0.01)
    assert (PART, "response_time", "p99") not in mixed
    assert mixed[ALL, "response_time", "p50"] == pytest.approx(1.0, rel=0.01)
    assert mixed[ALL, "operations_per_dollar", "mean"] == pytest.approx(50_000)
    assert ("read", "operations_per_dollar", "mean") not in mixed
    alone = find(made, "alone")
    assert alone["read", "throughput", "mean"] == 12.5
    assert not [key for key in alone if key[0] == ALL]


def test_a_phase_is_judged_as_a_whole(
    outcome: LoadOutcome, make_testbed: Callable[..., Testbed]
) -> None:
    (whole,) = collect_phases([STAGE], outcome)
    assert (whole.operation, whole.count("attempted"), whole.count("timeouts")) == (ALL, 101, 1)
    limits = make_testbed().validity
    strict = replace(limits, max_error_share=0.005)
    (reason,) = find_faults([STAGE], outcome, (), strict)
    assert reason.kind == "errors-above-limit"
    assert "mixed, all: 0.99% of 101 operations" in reason.text
    lax = replace(limits, max_error_share=0.02)
    assert not find_faults([STAGE], outcome, (), lax)


def test_phases_are_listed_with_what_they_offer() -> None:
    assert list_phases(WORKLOAD) == (("alone", "read", "counted"),)
    timed = Measurement(
        name="mixed",
        load=STAGE.load,
        warmup_s=1.0,
        warmup_cap_s=1.0,
        iteration_s=2.0,
        iterations=1,
    )
    both = replace(WORKLOAD, measurements=(timed,))
    assert list_phases(both)[1] == ("mixed", ALL, "closed")


@pytest.mark.parametrize(
    ("records", "operation", "count"),
    [
        (Devops(kind="devops", hosts=7, span_s=65), Operation.DOUBLE_GROUPBY_1, 1000),
        # 9 tables × 7 hosts × 6 whole intervals in batches of 100.
        (Devops(kind="devops", hosts=7, span_s=65), Operation.LOAD, 4),
        (PutGet(kind="put-get", keys=12), Operation.PUT, 12),
    ],
)
def test_a_counted_phase_without_a_number_does_each_record_once(
    records: Devops | PutGet, operation: Operation, count: int
) -> None:
    phase = CountedPhase(name="p", operation=operation, in_flight=1)
    workload = replace(WORKLOAD, records=records, batch_rows=100)
    assert operations_of(workload, phase) == count
    assert operations_of(workload, replace(phase, operations=5)) == 5
