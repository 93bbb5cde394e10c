"""What scaling down divided, how throughput scales with capacity, and what a dollar buys."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perf.model.design import ClosedLoop, OpenLoop, SteppedLoad, Topology, Workload
from perf.model.metrics import OPERATIONS_PER_DOLLAR, THROUGHPUT
from perf.model.records import Devops, PutGet, Sensor, Ycsb
from perf.model.references import PublishedTable, Report, Scaling, Subject, cells
from perf.model.scaling import scale_down
from perf.model.statements import Statements
from perf.workloads.stages import operations_of
from reports.pages.reproduction.ratios import (
    MeasuredSetting,
    Value,
    ValueAddress,
    cell_of,
    choose_setting,
    refuse_ratio,
    throughput_cell,
)
from reports.wording.wording import sentence

_RECORDS = {
    Sensor: "devices",
    PutGet: "keys",
    Ycsb: "record_count",
    Devops: "hosts",
    Statements: "rows",
}
_HOURS_PER_MONTH = 730
_SATURATION = "saturation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Divided:
    """A quantity, and by how much it was divided in the workload that was least and most."""

    what: str
    least: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingShare:
    """How throughput grew with capacity: `share` is (T₂/T₁)/(C₂/C₁), 1 where it grew alike."""

    throughput_ratio: float
    capacity_ratio: float

    @property
    def share(self) -> float:
        """Return the scaling factor as a share of the theoretical."""
        return self.throughput_ratio / self.capacity_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """How throughput grew with capacity here, by servers with their cores and by price.

    Without the cores (`has_cores`) it is by servers alone. None is what is not known. `why` says what
    was put together, or why nothing could be: then there is no figure to report (`is_reported`).
    """

    scaling: Scaling
    why: str
    is_reported: bool = False
    throughput_ratio: float | None = None
    by_size: ScalingShare | None = None
    has_cores: bool = False
    by_price: ScalingShare | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dollars:
    """A throughput at saturation that was published with a price, and operations per dollar."""

    subject: Subject
    table: PublishedTable
    throughput: float
    there: float
    here: Value | None


def find_divided(workloads: Iterable[Workload], by: int) -> tuple[Divided, ...]:
    """Return for each quantity that workloads have by how much scaling down by `by` divides it.

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
    """Yield each quantity that may be scaled, in the same order for a workload of any scale."""
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


def find_scaling(
    one: Scaling,
    report: Report,
    measured: Sequence[MeasuredSetting],
    topologies: Mapping[str, Topology],
) -> Scaled:
    """Return (T₂/T₁)/(C₂/C₁), with all cores, else nodes, and with price as the capacity C.

    Sizes differ in their hosts, which are of testbed classes of their own: these are compared where the
    cores of both are recorded, or where both subjects name their classes.
    """
    found = [
        (side, side.values[cell].value)
        for name, workload in ((one.small, one.small_workload), (one.large, one.large_workload))
        for cell in [throughput_cell(workload, one.phase, one.operation)]
        if (side := choose_setting(report.subject(name), [cell], measured))
    ]
    if len(found) < 2:  # noqa: PLR2004  both sizes
        return Scaled(scaling=one, why="Not measured here: it takes both sizes.")
    (small, slow), (large, fast) = found
    if small.setting == large.setting:
        return Scaled(scaling=one, why="One setting stands for both sizes, so no capacity grew.")
    topology = [topologies.get(side.setting.topology) for side in (small, large)]
    servers = [it.servers if it else None for it in topology]
    cores = [small.cores_per_server, large.cores_per_server]
    has_cores = all((*servers, *cores))
    across = has_cores or all(report.subject(name).testbed_classes for name in (one.small, one.large))
    if why := refuse_ratio(small.setting, large.setting, across_testbeds=across):
        return Scaled(scaling=one, why=sentence(why))
    classes = [side.setting.testbed_class for side in (small, large)]
    differences = []
    if classes[0] != classes[1]:
        differences.append(f"of the testbed classes {classes[0]} and {classes[1]}")
    sizes: list[float | None] = [*servers]
    if has_cores:
        pairs = tuple(zip(servers, cores, strict=True))
        differences.append(" and ".join(f"{many} × {each} cores" for many, each in pairs))
        sizes = [(many or 0) * (each or 0) for many, each in pairs]
    return Scaled(
        scaling=one,
        why=sentence("; ".join(differences)) if differences else "",
        is_reported=True,
        throughput_ratio=fast / slow if slow else None,
        by_size=scale_share(slow, fast, *sizes),
        has_cores=has_cores,
        by_price=scale_share(slow, fast, small.price_per_hour_usd, large.price_per_hour_usd),
    )


def scale_share(
    small: float, large: float, small_capacity: float | None, large_capacity: float | None
) -> ScalingShare | None:
    """Compare growth of throughput with growth of capacity; None where one is not known or zero."""
    if not small or not small_capacity or not large_capacity:
        return None
    return ScalingShare(throughput_ratio=large / small, capacity_ratio=large_capacity / small_capacity)


def list_dollars(report: Report, measured: Sequence[MeasuredSetting]) -> Iterator[Dollars]:
    """Yield operations per dollar wherever a report has a throughput and the price of its subject."""
    for table in report.tables:
        for row, column, spot in cells(table):
            value = row.values[table.columns.index(column)]
            is_throughput = (spot.metric, spot.phase) == (THROUGHPUT.name, _SATURATION)
            if not value or not spot.subject or not is_throughput or column.quotient or column.not_here:
                continue
            subject = report.subject(spot.subject)
            if not subject.price_per_month_usd:
                continue
            at = cell_of(spot)
            wanted = ValueAddress(
                at.workload, at.phase, at.operation, OPERATIONS_PER_DOLLAR.name, "mean"
            )
            side = choose_setting(subject, [wanted], measured)
            yield Dollars(
                subject=subject,
                table=table,
                throughput=value,
                there=operations_per_dollar(value, subject.price_per_month_usd),
                here=side.values[wanted] if side else None,
            )


def operations_per_dollar(ops_per_s: float, price_per_month_usd: float) -> float:
    """Return operations per US dollar at a monthly price; a month has 730 hours, as clouds bill it."""
    return ops_per_s * 3600 * _HOURS_PER_MONTH / price_per_month_usd
