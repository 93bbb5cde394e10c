"""One factor makes a published procedure smaller, and its name says so."""

import pytest

from perf.model.design import (
    ClosedLoop,
    CountedPhase,
    Floors,
    Measurement,
    OpenLoop,
    SteppedLoad,
    Workload,
)
from perf.model.identity import content_hash
from perf.model.records import Devops, Operation, PutGet, Records, Sensor, Ycsb
from perf.model.scaling import scale_down, scale_of, unscaled_name

FLOORS = Floors(records=100, operations=50, in_flight=8, offered_load_ops_per_s=20.0, seconds=4.0)


def make_workload(records: Records, floors: Floors | None = FLOORS) -> Workload:
    closed = Measurement(
        name="full",
        load=ClosedLoop(kind="closed", in_flight=480),
        warmup_s=600.0,
        warmup_cap_s=600.0,
        iteration_s=1800.0,
        iterations=5,
        histogram_s=10,
    )
    opened = Measurement(
        name="steady",
        load=OpenLoop(kind="open", offered_load_ops_per_s=40_000.0, in_flight=4),
        warmup_s=1.0,
        warmup_cap_s=2.0,
        iteration_s=2.0,
        iterations=1,
    )
    ladder = Measurement(
        name="ladder",
        load=SteppedLoad(kind="stepped", offered_loads_ops_per_s=(1000.0, 3000.0), in_flight=10),
        warmup_s=10.0,
        warmup_cap_s=10.0,
        iteration_s=100.0,
        iterations=1,
    )
    return Workload(
        name="big",
        description="test",
        purpose="test",
        owner="test",
        source="test",
        not_comparable="test",
        records=records,
        operation=Operation.WRITE,
        consistency="one",
        preload_in_flight=64,
        operation_timeout_s=10.0,
        sequence=(
            CountedPhase(
                name="put-1", operation=Operation.PUT, in_flight=20, operations=50_000, value_seed=1
            ),
        ),
        measurements=(closed, opened, ladder),
        floors=floors,
        seed=1,
    )


def test_sizes_loads_and_times_are_divided_and_never_below_the_floors() -> None:
    sensor = Sensor(kind="sensor", devices=1_000_000, payload_bytes=1024)
    small = scale_down(make_workload(sensor), 1000)
    assert small.records == Sensor(kind="sensor", devices=1000, payload_bytes=1024)
    assert (small.name, small.scaled_down_by) == ("big-by-1000", 1000)
    assert (small.sequence[0].operations, small.sequence[0].in_flight) == (50, 8)
    full, steady, ladder = small.measurements
    assert full.load == ClosedLoop(kind="closed", in_flight=8)
    assert (full.warmup_s, full.iteration_s, full.iterations, full.histogram_s) == (1.0, 4.0, 5, 1)
    # What is small as it is written is not made larger.
    assert steady.load == OpenLoop(kind="open", offered_load_ops_per_s=40.0, in_flight=4)
    assert (steady.warmup_s, steady.iteration_s) == (1.0, 2.0)
    # A ladder keeps its shape: its lowest step would be 1.
    assert isinstance(ladder.load, SteppedLoad)
    assert ladder.load.offered_loads_ops_per_s == (20.0, 60.0)


@pytest.mark.parametrize(
    ("records", "small"),
    [
        (
            Devops(kind="devops", hosts=4000, span_s=259_200, queries=1000),
            Devops(kind="devops", hosts=100, span_s=2592, queries=50),
        ),
        (PutGet(kind="put-get", keys=10_000_000), PutGet(kind="put-get", keys=100_000)),
        (
            Ycsb(kind="ycsb", record_count=1000, request_distribution="uniform"),
            Ycsb(kind="ycsb", record_count=100, request_distribution="uniform"),
        ),
    ],
)
def test_each_kind_of_records_shrinks(records: Records, small: Records) -> None:
    assert scale_down(make_workload(records), 100).records == small


def test_what_has_no_floors_is_not_made_to_be_scaled() -> None:
    sensor = Sensor(kind="sensor", devices=10, payload_bytes=1024)
    with pytest.raises(ValueError, match="big has no floors"):
        scale_down(make_workload(sensor, floors=None), 2)


def test_a_scaled_workload_is_a_series_of_its_own() -> None:
    workload = make_workload(Sensor(kind="sensor", devices=10, payload_bytes=1024))
    assert content_hash(scale_down(workload, 2)) != content_hash(scale_down(workload, 3))


def test_the_name_shows_the_scale() -> None:
    assert (unscaled_name("ycsb-a-by-1000"), scale_of("ycsb-a-by-1000")) == ("ycsb-a", 1000)
    assert (unscaled_name("ycsb-a"), scale_of("ycsb-a")) == ("ycsb-a", 1)
