"""Are the times that were reported the times that were planted? Pure.

The server does what was planted as exactly as this machine lets it, and records what it has done;
that is what reports are held against. A stall of the server shows whether a response time counts from
the intended start, a pause of the engine whether the engine tells its own delays from the server's.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from perf.load.histogram import Histogram, merge
from perf.load.selftest.finding import SelftestFinding, bound, compare
from perf.load.selftest.stand import LoadEvidence
from perf.model.metrics import RESPONSE_TIME, SEND_LATENESS, SERVICE_TIME, Metric
from perf.model.results import HELD
from perf.systems.null.behaviour import Behaviour

_SERVICE = "service time"
_INTENDED = "intended time"
_LATENESS = "send lateness"
# Two processes, two threads and loopback lie between the two ends that are compared.
_TIME_TOLERANCE_MS = 3.0
_COUNT_SHARE = 0.1
_LATENESS_MS = 25.0
# That the engine was stopped at all: for how long exactly is in the server's record.
_STOPPED_SHARE = 0.5
_LIMITS_MS = (100, 250)


def check_service_time(seen: LoadEvidence, place: int, asked: Behaviour) -> tuple[SelftestFinding, ...]:
    """Check percentiles of the service time, where each `slow_every`-th operation is slow."""
    found = merge_kind(seen, place, SERVICE_TIME)
    (deeds,) = seen.deeds
    span = seen.spans[place]
    is_in = (deeds.arrived_s >= span.measured_s) & (deeds.arrived_s < span.ended_s)
    true_ms = (deeds.answered_s - deeds.arrived_s)[is_in] * 1000
    # One pause of this machine delays few operations, but enough for a percentile so high.
    often_ms = 2 * seen.delays.p99_ms
    once_ms = max(often_ms, seen.delays.max_ms)
    findings = []
    for percentile, planted_ms, delays_ms in (
        (50, asked.service_time_ms, often_ms),
        (99.5, asked.slow_ms or 0.0, once_ms),
    ):
        server_ms = float(np.percentile(true_ms, percentile)) if true_ms.size else 0.0
        reported_ms = found.get_value_at_percentile(percentile) / 1000
        findings.append(
            compare(
                _SERVICE,
                f"p{percentile:g}",
                planted=planted_ms,
                done=server_ms,
                reported=reported_ms,
                tolerance=_TIME_TOLERANCE_MS,
                unit="ms",
                delays=delays_ms,
            )
        )
    return tuple(findings)


def check_stall(seen: LoadEvidence, place: int, stall_s: float) -> tuple[SelftestFinding, ...]:
    """Check that all that was to start in a stall has the rest of the stall in its response time.

    The server's record gives the number to expect: its answers, in order, against the schedule. It is
    a little above that of the stall alone, since what piled up has to be worked off.
    """
    rate = seen.offered_ops_per_s(place)
    response, service = (merge_kind(seen, place, kind) for kind in (RESPONSE_TIME, SERVICE_TIME))
    (deeds,) = seen.deeds
    true_ms = _behind_ms(seen, place, deeds.answered_s[deeds.arrived_s >= seen.spans[place].begin_s])
    blurred = rate * seen.delays.max_ms / 1000
    return (
        *(
            compare(
                _INTENDED,
                f"response times above {limit_ms} ms",
                planted=(stall_s - limit_ms / 1000) * rate,
                done=int(np.count_nonzero(true_ms > limit_ms)),
                reported=_count_above(response, limit_ms),
                tolerance=_COUNT_SHARE * rate * stall_s,
                delays=blurred,
            )
            for limit_ms in _LIMITS_MS
        ),
        bound(
            _INTENDED,
            f"service times above {_LIMITS_MS[0]} ms, as many as in flight",
            limit=seen.stages[place].load.in_flight,
            reported=_count_above(service, _LIMITS_MS[0]),
            delays=blurred,
        ),
        bound(
            _INTENDED,
            "send lateness p99, without waiting for the server",
            limit=_LATENESS_MS,
            reported=merge_kind(seen, place, SEND_LATENESS).get_value_at_percentile(99) / 1000,
            unit="ms",
            delays=seen.delays.max_ms,
        ),
    )


def check_pause(seen: LoadEvidence, place: int, pause_s: float) -> tuple[SelftestFinding, ...]:
    """Check that what was to start while the engine was stopped was sent late, by its own doing.

    The server's record gives the number to expect: its arrivals, in order, against the schedule. What
    then catches up in a burst may use up all slots of the client; that is no fault of the server, so
    none of it counts as held. On a slow machine the burst is longer, and so are its errors: the limit
    is a share of what arrived late, not of what the pause alone would have delayed.
    """
    rate = seen.offered_ops_per_s(place)
    span, (deeds,) = seen.spans[place], seen.deeds
    arrived_s = np.sort(deeds.arrived_s[deeds.arrived_s >= span.begin_s])
    true_ms = _behind_ms(seen, place, arrived_s)
    lateness = merge_kind(seen, place, SEND_LATENESS)
    blurred = rate * seen.delays.max_ms / 1000
    late = int(np.count_nonzero(true_ms > _LATENESS_MS))
    return (
        compare(
            _LATENESS,
            "longest time without an arrival",
            planted=pause_s * 1000,
            reported=float(np.diff(arrived_s).max(initial=0.0)) * 1000,
            tolerance=_STOPPED_SHARE * pause_s * 1000,
            unit="ms",
            delays=seen.delays.max_ms,
        ),
        *(
            compare(
                _LATENESS,
                f"send lateness above {limit_ms} ms",
                planted=(pause_s - limit_ms / 1000) * rate,
                done=int(np.count_nonzero(true_ms > limit_ms)),
                reported=_count_above(lateness, limit_ms),
                tolerance=_COUNT_SHARE * pause_s * rate,
                delays=blurred,
            )
            for limit_ms in _LIMITS_MS
        ),
        bound(
            _LATENESS,
            "operations held, as if by the server",
            limit=_COUNT_SHARE * late,
            reported=seen.count(HELD, seen.stages[place].phase, 1),
            delays=blurred,
        ),
    )


def merge_kind(seen: LoadEvidence, place: int, kind: Metric) -> Histogram:
    """Merge what was reported of a kind of time in the first iteration of a stage."""
    phase = seen.stages[place].phase
    return merge(
        one
        for one in seen.outcome.intervals
        if (one.phase, one.kind, one.iteration) == (phase, kind.name, 1)
    )


def _behind_ms(
    seen: LoadEvidence, place: int, happened_s: NDArray[np.floating[Any]]
) -> NDArray[np.floating[Any]]:
    """Return how long after the intended start of each measured operation something happened to it."""
    span = seen.spans[place]
    intended_s = span.begin_s + np.arange(happened_s.size) / seen.offered_ops_per_s(place)
    is_measured = (intended_s >= span.measured_s) & (intended_s < span.ended_s)
    behind_s: NDArray[np.floating[Any]] = (np.sort(happened_s) - intended_s)[is_measured]
    return behind_s * 1000


def _count_above(histogram: Histogram, limit_ms: float) -> int:
    count: int = histogram.get_total_count() - sum(
        one.count_added_in_this_iter_step
        for one in histogram.get_recorded_iterator()
        if one.value_iterated_to <= limit_ms * 1000
    )
    return count
