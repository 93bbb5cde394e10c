"""What is planted: a handful of loads, each with the checks that belong to it."""

from collections.abc import Callable
from dataclasses import dataclass

from perf.load.selftest.arrivals import check_all_arrived, check_closed, check_poisson, check_uniform
from perf.load.selftest.finding import CheckOutcome, SelftestFinding, merge_outcomes
from perf.load.selftest.stand import Pause, Stand, plan_stage
from perf.load.selftest.sums import check_counters, check_merge
from perf.load.selftest.times import check_pause, check_service_time, check_stall
from perf.model.design import ClosedLoop, OpenLoop, SimpleLoad
from perf.systems.null.behaviour import Behaviour
from perf.workloads.stages import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadProfile:
    """How hard and how long; whole seconds, so that arrivals can be counted by second."""

    load_ops_per_s: float = 500.0
    poisson_load_ops_per_s: float = 100.0
    """With gaps so long that this machine's delays do not make even ones look like these."""
    pause_load_ops_per_s: float = 1000.0
    """Against a server that stalls, and of an engine that is stopped."""
    warmup_s: float = 1.0
    measured_s: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A load that is offered for its own checks."""

    title: str
    run: Callable[[Stand, LoadProfile], tuple[SelftestFinding, ...]]


_SERVICE_MS, _SLOW_MS, _SLOW_EVERY = 10.0, 50.0, 100
_CLOSED_IN_FLIGHT = 8
_ROOM = 128
"""Operations in flight that an open loop never reaches, unless the server stalls."""

_PAUSE_S = 0.5
_PAUSE_IN_FLIGHT = 32

_MORE_ATTEMPTS = 2
_TIMEOUT_S = 0.3
_TOO_SLOW_MS = 450.0


def run_loops(stand: Stand, profile: LoadProfile) -> tuple[SelftestFinding, ...]:
    """Check schedules, service times and a closed loop: three stages against one server."""
    asked = Behaviour(service_time_ms=_SERVICE_MS, slow_every=_SLOW_EVERY, slow_ms=_SLOW_MS)
    seen = stand.observe(
        "loops",
        servers=[asked],
        stages=[
            _stage("even", _open_loop(profile.load_ops_per_s, _ROOM), profile),
            _stage("poisson", _open_loop(profile.poisson_load_ops_per_s, _ROOM, poisson=True), profile),
            _stage("closed", ClosedLoop(kind="closed", in_flight=_CLOSED_IN_FLIGHT), profile),
        ],
    )
    return (
        *check_uniform(seen, 0),
        *check_poisson(seen, 1),
        check_all_arrived(seen),
        *check_service_time(seen, 0, asked),
        *check_closed(seen, 2),
    )


def run_stall(stand: Stand, profile: LoadProfile) -> tuple[SelftestFinding, ...]:
    """Check the rule of the intended start: a server that stalls under an open loop."""
    begin_s = profile.warmup_s + 0.25 * profile.measured_s
    seen = stand.observe(
        "stall",
        servers=[Behaviour(service_time_ms=1.0, stall_at_s=begin_s, stall_s=_PAUSE_S)],
        stages=[_stage("stall", _open_loop(profile.pause_load_ops_per_s, _PAUSE_IN_FLIGHT), profile)],
    )
    return check_stall(seen, 0, _PAUSE_S)


def run_pause(stand: Stand, profile: LoadProfile) -> tuple[SelftestFinding, ...]:
    """Check that the client's own delay is reported: an engine is stopped under an open loop."""
    seen = stand.observe(
        "pause",
        servers=[Behaviour(service_time_ms=1.0)],
        stages=[_stage("pause", _open_loop(profile.pause_load_ops_per_s, _PAUSE_IN_FLIGHT), profile)],
        pause=Pause(after_s=0.25 * profile.measured_s, length_s=_PAUSE_S),
    )
    return check_pause(seen, 0, _PAUSE_S)


def run_merge(stand: Stand, profile: LoadProfile) -> tuple[SelftestFinding, ...]:
    """Check sums over engines: two, each against a server of its own that is unlike the other."""
    seen = stand.observe(
        "merge",
        servers=[
            Behaviour(service_time_ms=2.0),
            Behaviour(service_time_ms=12.0, slow_every=20, slow_ms=60.0),
        ],
        engines=(0, 1),
        stages=[_stage("merge", _open_loop(profile.load_ops_per_s, _ROOM), profile)],
    )
    return check_merge(seen, 0)


def run_counters(stand: Stand, profile: LoadProfile) -> tuple[SelftestFinding, ...]:
    """Check how operations end: some are refused, some answered after the client's time limit."""
    asked = Behaviour(service_time_ms=2.0, slow_every=31, slow_ms=_TOO_SLOW_MS, refuse_every=7)
    seen = stand.observe(
        "counters",
        servers=[asked],
        stages=[_stage("counters", _open_loop(profile.load_ops_per_s / 2, _ROOM), profile)],
        timeout_s=_TIMEOUT_S,
    )
    return check_counters(seen, _TIMEOUT_S)


def run_until_reported(
    scenario: Scenario, stand: Stand, profile: LoadProfile, report: Callable[[str], None]
) -> tuple[SelftestFinding, ...]:
    """Run a scenario, and again if this machine's delays hid the answer; a failure stands at once."""
    report(scenario.title)
    findings = scenario.run(stand, profile)
    for _ in range(_MORE_ATTEMPTS):
        if merge_outcomes(findings) is not CheckOutcome.CANNOT_TELL:
            break
        report(f"{scenario.title}: this machine paused, once more")
        findings = scenario.run(stand, profile)
    return findings


SCENARIOS = (
    Scenario(title="schedules, service times and a closed loop", run=run_loops),
    Scenario(title="a stall of the server", run=run_stall),
    Scenario(title="a pause of the engine", run=run_pause),
    Scenario(title="two engines, merged", run=run_merge),
    Scenario(title="refused and unanswered operations", run=run_counters),
)


def _stage(phase: str, load: SimpleLoad, profile: LoadProfile) -> Stage:
    return plan_stage(phase, load, warmup_s=profile.warmup_s, measured_s=profile.measured_s)


def _open_loop(load_ops_per_s: float, in_flight: int, *, poisson: bool = False) -> OpenLoop:
    return OpenLoop(
        kind="open",
        offered_load_ops_per_s=load_ops_per_s,
        in_flight=in_flight,
        arrivals="poisson" if poisson else None,
    )
