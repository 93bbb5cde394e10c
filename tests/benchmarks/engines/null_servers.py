"""Engines against null servers, which answer at planted times and are never the bottleneck.

What is left is the engine: its CPU time per operation at a rate and where it sends all it can, how
late it sends, and whether a planted service time comes back. latte takes part where it has a driver.
How late requests arrive is from the server's record, so it is known of all clients in the same way.
As on a rack, the client has a core that servers and this process keep off, where there is a second one.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from case import MEASURED_S, Case, Client, Figures, spread, write_table
from latte_peer import LattePeer
from numpy.typing import NDArray

from perf.load.histogram import merge
from perf.load.results.phases import collect_figures
from perf.load.selftest.stand import RECORDS, SEED, LoadEvidence, Stand, plan_stage, read_deeds
from perf.model.design import ClosedLoop, OpenLoop
from perf.model.metrics import SEND_LATENESS, SERVICE_TIME
from perf.model.records import Operation
from perf.model.results import ATTEMPTED, COMPLETED_IN_WINDOW, SENT_IN_WINDOW
from perf.systems.null.behaviour import Behaviour, Holdings
from perf.systems.null.dialects import CQL, MONGO
from perf.workloads.stages import Stage

_IN_FLIGHT = 64
# No virtual machine is among our own, and a null server has nothing to warm up.
_WARM_UP_S, _MEASURED_S = 1.0, 3.0
_SERVICE_MS, _SLOW_MS, _SLOW_EVERY = 2.0, 20.0, 50
# A server whose answers take time is offered less, for it is the planted times that are looked at.
_PLANTED_RATE = 1000.0
_HOLDS = Holdings(
    seed=SEED, devices=RECORDS.devices, payload_bytes=RECORDS.payload_bytes, rows=20 * RECORDS.devices
)
# Within so long an even schedule may begin anew: what counts is each request, not a drift over seconds.
_BLOCK_S = 0.1
_PERCENTILES = (50, 99)
_CORES = os.sched_getaffinity(0)
_CLIENT_CORE = max(_CORES)
_ON_OWN_CORE = ("taskset", "--cpu-list", str(_CLIENT_CORE))
NULL_CASES = tuple(
    Case(operation=operation, rate=rate, in_flight=_IN_FLIGHT)
    for operation in (Operation.WRITE, Operation.READ_LATEST)
    for rate in (5000.0, 20_000.0, None)
)
_HEAD = (
    *("wire", "client", "n", "CPU µs/op", "ops/s", "sent in time/offered", "late p50 ms", "p99 ms"),
    *("arrived late p50 ms", "p99 ms"),
)
_Run = Callable[[Case], Iterable[float | None]]
_Found = dict[tuple[str, Case, str], list[tuple[float | None, ...]]]


def measure_against_null(
    directory: Path,
    engines: Mapping[str, tuple[str, ...]],
    latte: LattePeer | None,
    rounds: int,
    cases: Sequence[Case] = NULL_CASES,
) -> str:
    """Run all cases with all clients over both wires, taking turns; give the tables."""
    os.sched_setaffinity(0, _CORES - {_CLIENT_CORE} or _CORES)
    latte = latte and replace(latte, launcher=_ON_OWN_CORE)
    found: _Found = {}
    planted: dict[tuple[str, str], list[float]] = {}
    for number in range(rounds):
        for dialect in (CQL, MONGO):
            stands = {
                name: Stand(
                    directory=directory / f"{dialect.wire}-{name[:6]}-{number}",
                    engine=(*_ON_OWN_CORE, *command),
                    dialect=dialect,
                )
                for name, command in engines.items()
            }
            for case in cases:
                runs: dict[str, _Run] = {name: partial(_measure, one) for name, one in stands.items()}
                # It reads what it does not compare, and finds nothing: only its writes are like ours.
                if latte and dialect is CQL and case.operation is Operation.WRITE:
                    runs["latte"] = partial(_measure_latte, latte, directory / f"latte-{number}")
                for name in sorted(runs, reverse=bool(number % 2)):
                    figures = tuple(runs[name](case))
                    _report(f"{dialect.title}, {case.name}, {name}: {figures}")
                    found.setdefault((dialect.title, case, name), []).append(figures)
            for name, stand in stands.items():
                planted.setdefault((dialect.title, name), []).append(_measure_planted(stand))
    return _costs(found) + _planted(planted)


def _report(line: str) -> None:
    sys.stderr.write(f"null server, {line}\n")


def _costs(found: _Found) -> str:
    forms = (".1f", ".0f", ".4f", *[".3f"] * 4)
    by_case = sorted(found.items(), key=lambda item: (item[0][0], NULL_CASES.index(item[0][1])))
    return write_table(
        ("load", *_HEAD),
        (
            (
                case.name,
                *(wire, name, str(len(runs))),
                *(spread(_known(runs, at), form) for at, form in enumerate(forms)),
            )
            for (wire, case, name), runs in by_case
        ),
    )


def _known(runs: Iterable[Sequence[float | None]], at: int) -> list[float]:
    return [value for run in runs for value in run[at : at + 1] if value is not None]


def _planted(planted: Mapping[tuple[str, str], list[float]]) -> str:
    return write_table(
        ("wire", "engine", "n", f"p99 of service time, ms ({_SLOW_MS:g} planted)"),
        (
            (wire, name, str(len(times)), spread(times, ".2f"))
            for (wire, name), times in planted.items()
        ),
    )


def _measure(stand: Stand, case: Case) -> Iterator[float | None]:
    """Yield CPU time, operations per second and, of an open loop, the share sent and how late."""
    place = f"{case.operation.value}-{case.rate or 0:g}"
    seen = stand.observe(
        place,
        servers=[Behaviour(holds=_HOLDS)],
        stages=[_stage(case.rate)],
        mix={case.operation: 1.0},
    )
    (figures,) = collect_figures(seen.stages, seen.outcome)
    done = figures.count(COMPLETED_IN_WINDOW)
    yield sum(use.cpu_s for use in figures.engines()) / done * 1e6
    yield done / _MEASURED_S
    if case.rate:
        yield seen.count(SENT_IN_WINDOW, "bench", 1) / seen.count(ATTEMPTED, "bench", 1)
        yield from _times_ms(seen, SEND_LATENESS.name, *_PERCENTILES)
        (arrived_s,) = (deeds.arrived_s for deeds in seen.deeds)
        (span,) = seen.spans
        within = (arrived_s >= span.measured_s) & (arrived_s < span.ended_s)
        yield from _arrived_late_ms(arrived_s[within], case.rate)


def _measure_planted(stand: Stand) -> float:
    slow = Behaviour(service_time_ms=_SERVICE_MS, slow_every=_SLOW_EVERY, slow_ms=_SLOW_MS)
    seen = stand.observe("planted", servers=[slow], stages=[_stage(_PLANTED_RATE)])
    (p99_ms,) = _times_ms(seen, SERVICE_TIME.name, 99)
    return p99_ms


def _measure_latte(latte: Client, directory: Path, case: Case) -> Iterator[float | None]:
    stand = Stand(directory=directory, dialect=CQL)
    with stand.serve(f"{case.rate or 0:g}", [Behaviour()]) as nodes:
        target = stand.target(nodes[0], timeout_s=5.0)
        address = f"{target.addresses[0]}:{target.port}"
        figures: Figures = latte(case, replace(target, addresses=(address,)), 0)
    yield from (figures.cpu_us, figures.achieved)
    if case.rate:
        yield from [None] * 3
        arrived_s = read_deeds(nodes)[0].arrived_s
        yield from _arrived_late_ms(arrived_s[arrived_s > arrived_s[-1] - MEASURED_S], case.rate)


def _arrived_late_ms(arrived_s: NDArray[np.float64], rate: float) -> Iterator[float]:
    """Yield percentiles of how late requests of an even schedule arrived; the earliest were in time.

    latte does not report when it means to send: each tenth of a second is held against the schedule
    that makes none of its requests early.
    """
    late_s = arrived_s - np.arange(len(arrived_s)) / rate
    blocks = np.array_split(late_s, max(1, round(len(late_s) / (rate * _BLOCK_S))))
    late_ms = np.concatenate([block - block.min() for block in blocks]) * 1000
    yield from (float(one) for one in np.percentile(late_ms, _PERCENTILES))


def _stage(rate: float | None) -> Stage:
    load = (
        ClosedLoop(kind="closed", in_flight=_IN_FLIGHT)
        if rate is None
        else OpenLoop(kind="open", offered_load_ops_per_s=rate, in_flight=_IN_FLIGHT)
    )
    return plan_stage("bench", load, warmup_s=_WARM_UP_S, measured_s=_MEASURED_S)


def _times_ms(seen: LoadEvidence, kind: str, *percentiles: float) -> list[float]:
    merged = merge(one for one in seen.outcome.intervals if one.kind == kind and one.iteration == 1)
    return [merged.get_value_at_percentile(one) / 1000 for one in percentiles]
