"""What scaling down divided: the divisor of each quantity of some workloads, with its floors. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from perf.model.design import ClosedLoop, OpenLoop, SteppedLoad, Workload
from perf.model.records import Devops, PutGet, Sensor, Ycsb
from perf.model.scaling import scale_down
from perf.workloads.stages import operations_of

_RECORDS = {Sensor: "devices", PutGet: "keys", Ycsb: "record_count", Devops: "hosts"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Divided:
    """A quantity, and by how much it was divided in the workload that was least and most."""

    what: str
    least: float
    most: float


def find_divided(workloads: Iterable[Workload], by: int) -> tuple[Divided, ...]:
    """Give for each quantity that workloads have by how much scaling down by `by` divides it.

    Workloads without floors are not scaled down and have no part.
    """
    found: defaultdict[str, list[float]] = defaultdict(list)
    for workload in workloads:
        if workload.floors is None:
            continue
        small = scale_down(workload, by)
        for (what, whole), (_, part) in zip(_quantities(workload), _quantities(small), strict=True):
            found[what].append(whole / part)
    return tuple(Divided(what=what, least=min(all_), most=max(all_)) for what, all_ in found.items())


def _quantities(workload: Workload) -> Iterator[tuple[str, float]]:
    """Give each quantity that may be scaled, in the same order for a workload of any scale."""
    records = workload.records
    name = _RECORDS[type(records)]
    yield name.replace("record_count", "records"), getattr(records, name)
    if isinstance(records, Devops):
        yield "seconds of data", records.span_s
        yield "queries of a type", records.queries
    for phase in workload.sequence:
        yield "operations of a counted phase", operations_of(workload, phase)
        yield "operations in flight", phase.in_flight
    for part in workload.measurements:
        load = part.load
        yield "operations in flight", load.in_flight
        match load:
            case ClosedLoop():
                pass
            case OpenLoop():
                yield "offered loads", load.offered_load_ops_per_s
            case SteppedLoad():
                yield "offered loads", load.offered_loads_ops_per_s[0]
            case _:
                yield "offered loads", load.lowest_ops_per_s
        yield "seconds of an iteration", part.iteration_s
        yield "seconds of a warm-up", part.warmup_s
