"""Our engines against null servers, which answer at planted times and are never the bottleneck.

What is left is the engine: its CPU time per operation where it sends all it can, how late it sends at
a fixed rate, and whether a planted service time comes back.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from case import spread, write_table

from perf.design import ClosedLoop, OpenLoop
from perf.load.figures import collect_figures
from perf.load.histogram import merge
from perf.load.spec import Stage
from perf.metrics import SEND_LATENESS, SERVICE_TIME
from perf.model import ATTEMPTED, COMPLETED_IN_WINDOW, SENT_IN_WINDOW
from perf.null.behaviour import Behaviour
from perf.null.dialects import CQL, MONGO
from perf.selftest.stand import Evidence, Stand, plan_stage

_IN_FLIGHT = 64
_RATE = 5000.0
_WARM_UP_S = 2.0
_MEASURED_S = 5.0
_SERVICE_MS, _SLOW_MS, _SLOW_EVERY = 2.0, 20.0, 50
# A server whose answers take time is offered less, for it is the planted times that are looked at.
_PLANTED_RATE = 1000.0


def measure_against_null(directory: Path, engines: Mapping[str, tuple[str, ...]], rounds: int) -> str:
    """Run both loads with each engine over both wires, taking turns; give the table."""
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for number in range(rounds):
        for dialect in (CQL, MONGO):
            for name in sorted(engines, reverse=bool(number % 2)):
                place = directory / f"{dialect.wire}-{name[:6]}-{number}"
                stand = Stand(directory=place, engine=engines[name], dialect=dialect)
                figures = tuple(_measure(stand))
                sys.stderr.write(f"null server, {dialect.title}, {name}: {figures}\n")
                found.setdefault((dialect.title, name), []).append(figures)
    head = (
        *("wire", "engine", "n", f"CPU µs/op, saturation, {_IN_FLIGHT} in flight", "ops/s"),
        *(f"CPU µs/op at {_RATE:g}/s", "achieved/offered", "send lateness p50 ms", "p99 ms"),
        f"service time p99 ms, {_SLOW_MS:g} planted",
    )
    forms = (".1f", ".0f", ".1f", ".4f", ".3f", ".3f", ".2f")
    return write_table(
        head,
        (
            (
                *(wire, name, str(len(runs))),
                *(spread([run[at] for run in runs], form) for at, form in enumerate(forms)),
            )
            for (wire, name), runs in found.items()
        ),
    )


def _measure(stand: Stand) -> Iterator[float]:
    at_once = [Behaviour()]
    stages = [_stage("saturation", None), _stage("open", _RATE)]
    seen = stand.observe("at-once", servers=at_once, stages=stages)
    done, cpu_s = _done(seen, "saturation")
    yield cpu_s / done * 1e6
    yield done / _MEASURED_S
    done, cpu_s = _done(seen, "open")
    yield cpu_s / done * 1e6
    yield seen.count(SENT_IN_WINDOW, "open", 1) / seen.count(ATTEMPTED, "open", 1)
    yield from _times_ms(seen, "open", SEND_LATENESS.name, 50, 99)
    slow = Behaviour(service_time_ms=_SERVICE_MS, slow_every=_SLOW_EVERY, slow_ms=_SLOW_MS)
    seen = stand.observe("planted", servers=[slow], stages=[_stage("planted", _PLANTED_RATE)])
    yield from _times_ms(seen, "planted", SERVICE_TIME.name, 99)


def _stage(phase: str, rate: float | None) -> Stage:
    load = (
        ClosedLoop(kind="closed", in_flight=_IN_FLIGHT)
        if rate is None
        else OpenLoop(kind="open", offered_load_ops_per_s=rate, in_flight=_IN_FLIGHT)
    )
    return plan_stage(phase, load, warmup_s=_WARM_UP_S, measured_s=_MEASURED_S)


def _done(seen: Evidence, phase: str) -> tuple[int, float]:
    (figures,) = (one for one in collect_figures(seen.stages, seen.outcome) if one.phase == phase)
    return figures.count(COMPLETED_IN_WINDOW), sum(use.cpu_s for use in figures.engines())


def _times_ms(seen: Evidence, phase: str, kind: str, *percentiles: float) -> list[float]:
    merged = merge(
        one
        for one in seen.outcome.intervals
        if (one.phase, one.kind, one.iteration) == (phase, kind, 1)
    )
    return [merged.get_value_at_percentile(one) / 1000 for one in percentiles]
