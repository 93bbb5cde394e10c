"""A workload made smaller by one factor, so that what was published fits a small machine; pure.

Divided by the factor: what is stored, how many operations are done, how many are offered and in flight,
and how long it all takes; never below the floors that the workload itself states. What an operation is,
the size of a record, shares and distributions stay as they are.
"""

import re
from dataclasses import replace
from typing import assert_never

from perf.model.design import (
    ClosedLoop,
    CountedPhase,
    Floors,
    Load,
    Measurement,
    OpenLoop,
    SearchLoad,
    SteppedLoad,
    Workload,
)
from perf.model.records import Devops, PutGet, Records, Sensor, Ycsb
from perf.model.statements import Statements

_SCALED = re.compile(r"-by-([0-9]+)$")
# Of the shortest iteration: what its warm-up lasts at least.
_WARM_UP_SHARE = 0.25


def scale_down(workload: Workload, by: int) -> Workload:
    """Return a workload `by` times smaller, under a name that says so.

    Raises:
        ValueError: the workload has no floors, and so is not made to be scaled.

    """
    floors = workload.floors
    if floors is None:
        raise ValueError(f"the workload {workload.name} has no floors")
    return replace(
        workload,
        name=f"{workload.name}-by-{by}",
        scaled_down_by=by,
        records=_shrink_records(workload.records, by, floors),
        preload_in_flight=_shrink(workload.preload_in_flight, by, floors.in_flight),
        sequence=tuple(_shrink_phase(phase, by, floors) for phase in workload.sequence),
        measurements=tuple(_shrink_measurement(part, by, floors) for part in workload.measurements),
    )


def unscaled_name(name: str) -> str:
    """Return the name of the workload as it is written, of one that may be scaled down."""
    return _SCALED.sub("", name)


def scale_of(name: str) -> int:
    """Return how many times smaller than written a workload of this name is; 1 if it is not."""
    found = _SCALED.search(name)
    return int(found.group(1)) if found else 1


def _shrink(value: int, by: int, floor: int) -> int:
    return min(value, max(round(value / by), floor))


def _shrink_float(value: float, by: int, floor: float) -> float:
    return min(value, max(value / by, floor))


def _shrink_records(records: Records, by: int, floors: Floors) -> Records:
    match records:
        case Sensor():
            return replace(records, devices=_shrink(records.devices, by, floors.records))
        case PutGet():
            return replace(records, keys=_shrink(records.keys, by, floors.records))
        case Statements():
            return replace(records, rows=_shrink(records.rows, by, floors.records))
        case Ycsb():
            count = _shrink(records.record_count, by, floors.records)
            expected = records.operation_count
            if expected is not None:
                expected = _shrink(expected, by, floors.operations)
            return replace(records, record_count=count, operation_count=expected)
        case Devops():
            span_s = _shrink(records.span_s, by, round(floors.seconds))
            return replace(
                records,
                hosts=_shrink(records.hosts, by, floors.records),
                span_s=span_s,
                queries=_shrink(records.queries, by, floors.operations),
            )
        case _:
            assert_never(records)


def _shrink_phase(phase: CountedPhase, by: int, floors: Floors) -> CountedPhase:
    operations = phase.operations
    return replace(
        phase,
        in_flight=_shrink(phase.in_flight, by, floors.in_flight),
        operations=None if operations is None else _shrink(operations, by, floors.operations),
    )


def _shrink_measurement(part: Measurement, by: int, floors: Floors) -> Measurement:
    shortest_s = floors.seconds * _WARM_UP_SHARE
    return replace(
        part,
        load=_shrink_load(part.load, by, floors),
        warmup_s=_shrink_float(part.warmup_s, by, shortest_s),
        warmup_cap_s=_shrink_float(part.warmup_cap_s, by, shortest_s),
        iteration_s=_shrink_float(part.iteration_s, by, floors.seconds),
        histogram_s=None if part.histogram_s is None else _shrink(part.histogram_s, by, 1),
    )


def _shrink_load(load: Load, by: int, floors: Floors) -> Load:
    in_flight = _shrink(load.in_flight, by, floors.in_flight)
    least = floors.offered_load_ops_per_s
    match load:
        case ClosedLoop():
            return replace(load, in_flight=in_flight)
        case OpenLoop():
            offered = _shrink_float(load.offered_load_ops_per_s, by, least)
            return replace(load, in_flight=in_flight, offered_load_ops_per_s=offered)
        case SteppedLoad():
            # All by one factor, so that the ladder keeps its shape.
            lowest = load.offered_loads_ops_per_s[0]
            factor = _shrink_float(lowest, by, least) / lowest
            rungs = tuple(one * factor for one in load.offered_loads_ops_per_s)
            return replace(load, in_flight=in_flight, offered_loads_ops_per_s=rungs)
        case SearchLoad():
            factor = _shrink_float(load.lowest_ops_per_s, by, least) / load.lowest_ops_per_s
            return replace(
                load,
                in_flight=in_flight,
                lowest_ops_per_s=load.lowest_ops_per_s * factor,
                highest_ops_per_s=load.highest_ops_per_s * factor,
            )
        case _:
            assert_never(load)
