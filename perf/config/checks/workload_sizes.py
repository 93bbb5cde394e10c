"""The floors of a workload beside its sizes: one above a size would never let it be scaled down."""

from collections.abc import Iterator, Mapping

from perf.local.document import YamlDocument
from perf.local.problems import say
from perf.model.design import Load, OpenLoop, SearchLoad, SteppedLoad, Workload
from perf.model.records import Devops, PutGet, Sensor, Ycsb


def check_floors(document: YamlDocument, workload: Workload) -> Iterator[str]:
    """Find floors above all sizes that they bound: nothing would be smaller but the name."""
    floors = workload.floors
    if floors is None:
        return
    for name, written in _list_sizes(workload).items():
        floor = getattr(floors, name)
        if written and floor > max(written):
            why = (
                f"but what is written is {max(written):g} at most, so that no suite could scale it "
                "down; make it no more than that"
            )
            yield say(document, ("floors", name), floor, why)


def _list_sizes(workload: Workload) -> Mapping[str, list[float]]:
    """Give the sizes that each floor bounds, as they are written."""
    parts, phases = workload.measurements, workload.sequence
    sizes: dict[str, list[float]] = {
        "operations": [one.operations for one in phases if one.operations is not None],
        "in_flight": [
            workload.preload_in_flight,
            *(one.in_flight for one in phases),
            *(part.load.in_flight for part in parts),
        ],
        "offered_load_ops_per_s": [one for part in parts for one in _offered(part.load)],
        "seconds": [part.iteration_s for part in parts],
    }
    match workload.records:
        case Sensor(devices=count) | PutGet(keys=count):
            sizes["records"] = [count]
        case Ycsb(record_count=count, operation_count=expected):
            sizes["records"] = [count]
            sizes["operations"] += [] if expected is None else [expected]
        case Devops() as records:
            sizes["records"] = [records.hosts]
            sizes["operations"].append(records.queries)
            sizes["seconds"].append(records.span_s)
    return sizes


def _offered(load: Load) -> tuple[float, ...]:
    match load:
        case OpenLoop(offered_load_ops_per_s=offered):
            return (offered,)
        case SteppedLoad(offered_loads_ops_per_s=(lowest, *_)):
            return (lowest,)
        case SearchLoad(lowest_ops_per_s=lowest):
            return (lowest,)
        case _:
            return ()
