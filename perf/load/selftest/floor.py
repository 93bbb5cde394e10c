"""The engine's own floor on this machine: what it costs and how late it sends, with nobody to wait for.

The highest honest load is the highest rung of a ladder of offered loads up to which, rung by rung, at
least 99 % was sent in its window and the p99 of send lateness stayed below 5 ms. These are figures, not
checks: they belong to this machine and this hour.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from perf.load.results.phases import PhaseFigures, collect_figures
from perf.load.selftest.stand import Delays, LoadEvidence, Stand, plan_stage
from perf.model.design import ClosedLoop, OpenLoop
from perf.model.metrics import SEND_LATENESS
from perf.model.results import ATTEMPTED, COMPLETED_IN_WINDOW, SENT_IN_WINDOW
from perf.systems.null.behaviour import Behaviour
from perf.workloads.stages import Stage

MIN_ACHIEVED_SHARE = 0.99
MAX_LATENESS_P99_MS = 5.0
SHOWN_LOADS = (500, 1000, 2000)
LADDER = (*SHOWN_LOADS, 4000, 8000, 12_000, 16_000, 24_000)
NATIVE_LADDER = (*SHOWN_LOADS, 4000, 8000, 16_000, 24_000, 32_000, 48_000, 64_000, 96_000)

_CLOSED = "closed"
_IN_FLIGHT = 32
_WARMUP_S = 0.5
_CLOSED_S = 2.0
_RUNG_S = 1.2
_TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One offered load, and how the engine kept up with it."""

    offered_load_ops_per_s: float
    achieved_share: float
    lateness_p50_ms: float
    lateness_p99_ms: float
    lateness_max_ms: float

    @property
    def is_honest(self) -> bool:
        """The engine sent what it said, when it said."""
        return self.achieved_share >= MIN_ACHIEVED_SHARE and self.lateness_p99_ms <= MAX_LATENESS_P99_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """What the engine itself costs. `rungs` are in order of their load."""

    cpu_us_per_operation: float
    throughput_ops_per_s: float
    """Of the closed loop that the CPU time was measured in."""
    rungs: tuple[Rung, ...]
    delays: Delays

    @property
    def highest_honest_load(self) -> float | None:
        """The last rung before the first that was not honest; None if that was the very first."""
        highest = None
        for rung in self.rungs:
            if not rung.is_honest:
                break
            highest = rung.offered_load_ops_per_s
        return highest


def measure_floor(stand: Stand, ladder: Sequence[int] = LADDER) -> Floor:
    """Drive a null server that answers at once: a closed loop, then the ladder, lowest rung first.

    What is overdue after a rung that was too high is still sent in the next stage, and would share in
    its CPU time; a closed loop leaves nothing behind.

    Raises:
        MeasureError: the server or the engine did not start, failed or did not end.

    """
    seen = stand.observe(
        "floor",
        servers=[Behaviour()],
        stages=[
            _stage(_CLOSED, ClosedLoop(kind="closed", in_flight=_IN_FLIGHT), _CLOSED_S),
            *(_stage(f"rung-{load}", _open(load), _RUNG_S) for load in ladder),
        ],
        timeout_s=_TIMEOUT_S,
    )
    return read_floor(seen, ladder)


def read_floor(seen: LoadEvidence, ladder: Sequence[int]) -> Floor:
    """Read the floor from what the engine reported."""
    found = {figures.phase: figures for figures in collect_figures(seen.stages, seen.outcome)}
    closed = found[_CLOSED]
    completed = closed.count(COMPLETED_IN_WINDOW)
    cpu_s = sum(use.cpu_s for use in closed.engines())
    return Floor(
        cpu_us_per_operation=cpu_s / completed * 1e6 if completed else float("inf"),
        throughput_ops_per_s=completed / closed.seconds(closed.iterations),
        rungs=tuple(_read_rung(load, found[f"rung-{load}"]) for load in ladder),
        delays=seen.delays,
    )


def _read_rung(load: float, figures: PhaseFigures) -> Rung:
    times, attempted = figures.times(SEND_LATENESS.name), figures.count(ATTEMPTED)
    never = float("inf")
    return Rung(
        offered_load_ops_per_s=load,
        achieved_share=figures.count(SENT_IN_WINDOW) / attempted if attempted else 0.0,
        lateness_p50_ms=times.p50 if times else never,
        lateness_p99_ms=times.p99 if times else never,
        lateness_max_ms=times.max if times else never,
    )


def _stage(phase: str, load: ClosedLoop | OpenLoop, measured_s: float) -> Stage:
    return plan_stage(phase, load, warmup_s=_WARMUP_S, measured_s=measured_s)


def _open(load_ops_per_s: float) -> OpenLoop:
    return OpenLoop(kind="open", offered_load_ops_per_s=load_ops_per_s, in_flight=8 * _IN_FLIGHT)
