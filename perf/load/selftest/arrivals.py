"""Was the load that was planned the load that arrived? From the server's own record; pure."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perf.load.selftest.finding import SelftestFinding, bound, compare
from perf.load.selftest.stand import LoadEvidence
from perf.model.design import ClosedLoop, OpenLoop
from perf.model.results import ATTEMPTED

_SCHEDULE = "schedule"
_CLOSED = "closed loop"
# The interquartile range of the gaps between arrivals, in mean gaps: 0 for an even schedule, ln 3 for
# a Poisson process. A pause of this machine spoils few gaps, and none in the middle half.
_EVEN_SPREAD, _POISSON_SPREAD, _SPREAD_TOLERANCE = 0.5, math.log(3), 0.3
_DRIFT_MS = 5.0
_SECOND_TOLERANCE = 0.02
_SIGMAS = 4.5
_MOSTLY = 0.75
_FEWEST = 10
_FIVE_IN_SIX = 84


def check_uniform(seen: LoadEvidence, place: int) -> tuple[SelftestFinding, ...]:
    """Check an even schedule: its count, each second, its drift over the stage, its spacing."""
    stage, span = seen.stages[place], seen.spans[place]
    load = seen.offered_ops_per_s(place)
    attempted = seen.count(ATTEMPTED, stage.phase, 1)
    edges_s = (span.measured_s - span.begin_s, span.ended_s - span.begin_s)
    first, last = (math.ceil(round(edge_s * load, 6)) for edge_s in edges_s)
    arrived_s = _within(seen, place)
    seconds = np.histogram(arrived_s, _edges(span.measured_s, span.ended_s, 1.0))[0]
    worst = float(seconds[np.argmax(np.abs(seconds - load))])
    return (
        compare(
            _SCHEDULE,
            "even: operations attempted",
            planted=last - first,
            reported=attempted,
            tolerance=0,
        ),
        compare(
            _SCHEDULE,
            "even: arrivals in the worst second",
            planted=load,
            reported=worst,
            tolerance=load * _SECOND_TOLERANCE + 1,
            unit="/s",
            delays=load * seen.delays.max_ms / 1000,
        ),
        compare(
            _SCHEDULE,
            "even: arrivals drift from the schedule by",
            planted=0,
            reported=_drift_ms(seen, place),
            tolerance=_DRIFT_MS,
            unit="ms",
            delays=seen.delays.p99_ms,
        ),
        bound(
            _SCHEDULE,
            "even: middle half of gaps spreads over",
            limit=_EVEN_SPREAD,
            reported=_spread(arrived_s),
            unit="gaps",
            delays=_blurred(seen, load),
        ),
    )


def check_poisson(seen: LoadEvidence, place: int) -> tuple[SelftestFinding, ...]:
    """Check a Poisson process: its count, and that its gaps differ as much as they must."""
    span = seen.spans[place]
    load = seen.offered_ops_per_s(place)
    arrived_s = _within(seen, place)
    expected = load * (span.ended_s - span.measured_s)
    return (
        compare(
            _SCHEDULE,
            "Poisson: arrivals",
            planted=round(expected),
            reported=int(arrived_s.size),
            tolerance=round(_SIGMAS * math.sqrt(expected)),
            delays=load * seen.delays.max_ms / 1000,
        ),
        compare(
            _SCHEDULE,
            "Poisson: middle half of gaps spreads over",
            planted=_POISSON_SPREAD,
            reported=_spread(arrived_s),
            tolerance=_SPREAD_TOLERANCE,
            unit="gaps",
            delays=_blurred(seen, load),
            unlike=0,
        ),
    )


def check_all_arrived(seen: LoadEvidence) -> SelftestFinding:
    """Check that what was attempted in all stages is what the servers saw.

    What a pause of this machine at the end of a stage holds back for too long is never sent.
    """
    loads = [stage.load for stage in seen.stages]
    highest = max(load.offered_load_ops_per_s for load in loads if isinstance(load, OpenLoop))
    return compare(
        _SCHEDULE,
        "operations that the server saw, attempted",
        planted=sum(int(deeds.arrived_s.size) for deeds in seen.deeds),
        reported=seen.count(ATTEMPTED),
        tolerance=0,
        delays=highest * seen.delays.max_ms / 1000,
    )


def check_closed(seen: LoadEvidence, place: int) -> tuple[SelftestFinding, ...]:
    """Check that as many operations were in flight as planned, never more and mostly no fewer."""
    load, span = seen.stages[place].load, seen.spans[place]
    if not isinstance(load, ClosedLoop):
        raise TypeError(f"stage {place} is no closed loop")
    (deeds,) = seen.deeds
    is_in = (deeds.answered_s > span.measured_s) & (deeds.arrived_s < span.ended_s)
    arrived_s, answered_s = deeds.arrived_s[is_in], deeds.answered_s[is_in]
    most, mean = _in_flight(arrived_s, answered_s, span.measured_s, span.ended_s)
    return (
        bound(_CLOSED, "most operations in flight", limit=load.in_flight, reported=most),
        compare(
            _CLOSED,
            "operations in flight on average",
            planted=load.in_flight,
            reported=mean,
            tolerance=load.in_flight * (1 - _MOSTLY),
            delays=load.in_flight * min(1.0, seen.delays.p50_ms / 10),
        ),
    )


def _within(seen: LoadEvidence, place: int) -> NDArray[np.floating[Any]]:
    span = seen.spans[place]
    (deeds,) = seen.deeds
    is_in = (deeds.arrived_s >= span.measured_s) & (deeds.arrived_s < span.ended_s)
    return deeds.arrived_s[is_in]


def _edges(begin_s: float, end_s: float, width_s: float) -> NDArray[np.floating[Any]]:
    return begin_s + width_s * np.arange(round((end_s - begin_s) / width_s) + 1)


def _spread(arrived_s: NDArray[np.floating[Any]]) -> float:
    if arrived_s.size < _FEWEST:
        return math.inf
    gaps_s = np.diff(arrived_s)
    low_s, high_s = np.percentile(gaps_s, (25, 75))
    return float((high_s - low_s) / gaps_s.mean())


def _blurred(seen: LoadEvidence, load: float) -> float:
    """Return by how many mean gaps this machine moves the edges of the middle half, with room.

    Each end of a gap is a send and a receipt, by processes that work and may wait for a core, unlike a
    thread that only sleeps: so this is how late the servers' own answers are. Of four wakings each has
    to be in time where half of all gaps are to be as planned: that is five in six of them.
    """
    kept = [np.isfinite(deeds.answered_s) for deeds in seen.deeds]
    late_s = np.concatenate(
        [deeds.answered_s[one] - deeds.due_s[one] for deeds, one in zip(seen.deeds, kept, strict=True)]
    )
    typical_s = float(np.percentile(late_s, _FIVE_IN_SIX)) if late_s.size else 0.0
    return 4 * max(typical_s, seen.delays.p50_ms / 1000) * load


def _drift_ms(seen: LoadEvidence, place: int) -> float:
    """Return the median distance, in the last second, between arrivals and their intended starts."""
    span, (deeds,) = seen.spans[place], seen.deeds
    load = seen.offered_ops_per_s(place)
    arrived_s = deeds.arrived_s[(deeds.arrived_s >= span.begin_s) & (deeds.arrived_s < span.ended_s)]
    off_s = arrived_s - span.begin_s - np.arange(arrived_s.size) / load
    late = off_s[arrived_s >= span.ended_s - 1]
    return float(np.median(late) * 1000) if late.size else math.inf


def _in_flight(
    arrived_s: NDArray[np.floating[Any]],
    answered_s: NDArray[np.floating[Any]],
    begin_s: float,
    end_s: float,
) -> tuple[int, float]:
    """Return the most operations outstanding at a time, and the mean over time."""
    times = np.concatenate((arrived_s, answered_s))
    steps = np.concatenate((np.ones(arrived_s.size), -np.ones(answered_s.size)))
    # At equal times an end comes before a beginning.
    order = np.lexsort((steps, times))
    most = int(np.cumsum(steps[order]).max(initial=0))
    held_s = np.minimum(answered_s, end_s) - np.maximum(arrived_s, begin_s)
    return most, float(held_s.sum() / (end_s - begin_s))
