"""How throughput scales on the page of a reproduced report, and by what its workloads were scaled."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perf.model.design import Topology, Workload
from perf.model.references import Report, Scaling
from perf.model.scaling import unscaled_name
from reports.pages.reproduction.published import ratio_text
from reports.pages.reproduction.ratios import (
    MeasuredSetting,
    Reproduction,
    choose_setting,
    refuse_ratio,
    scale_share,
    throughput_cell,
)
from reports.pages.reproduction.scales import Divided, find_divided
from reports.wording.wording import NOTHING, number, sentence, share

_SAME = 1.005
"""Below it, a divisor is 1 but for rounding to whole numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingRow:
    """How throughput grew with capacity: as published, and here by cores or nodes and by price."""

    title: str
    published: str
    throughput: str
    by_size: str
    by_price: str
    why: str


def tell_scale(found: Reproduction, workloads: Mapping[str, Workload]) -> str:
    """Say by how much the workloads were to be scaled down, and what that really divided."""
    if found.scale == 1:
        return "Run as published: not scaled down."
    names = sorted({unscaled_name(one.workload.name) for one in found.trials})
    known = [workloads[name] for name in names if name in workloads]
    parts = [_tell_divided(one) for one in find_divided(known, found.scale)]
    begin = f"Scaled down by {found.scale:,}, never below the floors of a workload"
    if not parts:
        return f"{begin}; knickpoint workloads NAME says what that divides."
    return f"{begin}. By the workloads as they are configured now, that makes {'; '.join(parts)}."


def _tell_divided(one: Divided) -> str:
    least, most = one.least, one.most
    if most < _SAME:
        return f"{one.what} as published"
    if least < _SAME:
        return f"{one.what} as published or up to {number(most)} times fewer"
    if most / least < _SAME:
        return f"{one.what} {number(most)} times fewer"
    return f"{one.what} {number(least)} to {number(most)} times fewer"


def view_scaling(
    one: Scaling,
    report: Report,
    measured: Sequence[MeasuredSetting],
    topologies: Mapping[str, Topology],
) -> ScalingRow:
    """Tell (T₂/T₁)/(C₂/C₁), with all cores, else nodes, and with price as the capacity C.

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
        return _without_scaling(one, "Not measured here: it takes both sizes.")
    (small, slow), (large, fast) = found
    if small.setting == large.setting:
        return _without_scaling(one, "One setting stands for both sizes, so no capacity grew.")
    across = all(report.subject(name).testbed_classes for name in (one.small, one.large))
    sizes = _find_cores((small, large), topologies)
    if why := refuse_ratio(small.setting, large.setting, across_testbeds=across or bool(sizes)):
        return _without_scaling(one, sentence(why))
    differences = tuple(_tell_differences(small, large, topologies))
    by = "servers × cores" if sizes else "servers"
    told = _tell_share((slow, fast), sizes or _find_servers((small, large), topologies))
    return ScalingRow(
        title=one.title,
        published=_tell_published(one),
        throughput=ratio_text(fast, slow),
        by_size=f"{told} ({by})",
        by_price=_tell_share((slow, fast), [side.price_per_hour_usd for side in (small, large)]),
        why=sentence("; ".join(differences)) if differences else "",
    )


def _find_servers(
    sides: Sequence[MeasuredSetting], topologies: Mapping[str, Topology]
) -> tuple[float | None, ...]:
    found = [topologies.get(side.setting.topology) for side in sides]
    return tuple(topology.servers if topology else None for topology in found)


def _find_cores(
    sides: Sequence[MeasuredSetting], topologies: Mapping[str, Topology]
) -> tuple[float, ...]:
    """Give servers × cores of each side; nothing where one of them is not known."""
    servers = _find_servers(sides, topologies)
    pairs = zip(servers, (side.cores_per_server for side in sides), strict=True)
    found = tuple(nodes * cores for nodes, cores in pairs if nodes and cores)
    return found if len(found) == len(sides) else ()


def _tell_differences(
    small: MeasuredSetting, large: MeasuredSetting, topologies: Mapping[str, Topology]
) -> Iterator[str]:
    """Say on which testbed classes two sizes were measured, and with how many cores."""
    one, other = small.setting, large.setting
    if one.testbed_class != other.testbed_class:
        yield f"of the testbed classes {one.testbed_class} and {other.testbed_class}"
    if _find_cores((small, large), topologies):
        sides = zip(
            _find_servers((small, large), topologies),
            (small.cores_per_server, large.cores_per_server),
            strict=True,
        )
        yield " and ".join(f"{servers} × {cores} cores" for servers, cores in sides)


def _without_scaling(one: Scaling, why: str) -> ScalingRow:
    return ScalingRow(
        title=one.title,
        published=_tell_published(one),
        throughput=NOTHING,
        by_size=NOTHING,
        by_price=NOTHING,
        why=why,
    )


def _tell_published(one: Scaling) -> str:
    if one.published_percent is None or one.theoretical_percent is None:
        return NOTHING
    reached = share(one.published_percent / one.theoretical_percent)
    percents = [
        f"{number(it)}\N{NO-BREAK SPACE}%" for it in (one.published_percent, one.theoretical_percent)
    ]
    return f"{percents[0]} of {percents[1]}: {reached}"


def _tell_share(throughputs: tuple[float, float], capacities: Sequence[float | None]) -> str:
    known = [one for one in capacities if one]
    found = scale_share(*throughputs, *known) if len(known) == len(capacities) else None
    if found is None:
        return "not known"
    return f"{share(found.share)} of ×{number(found.capacity_ratio)}"
