"""Do the parts make the whole? Merged histograms against the engines' own logs, and counters.

Logs are read here, by the reader that comes with the histogram library; all else is pure.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from perf.load.histogram import Histogram
from perf.load.results.phases import collect_figures
from perf.load.selftest.finding import SelftestFinding, compare
from perf.load.selftest.stand import LoadEvidence
from perf.load.selftest.times import merge_kind
from perf.model.histograms import HIGHEST_US
from perf.model.metrics import RESPONSE_TIME, SERVICE_TIME, Metric
from perf.model.records import Answer
from perf.model.results import ATTEMPTED, ERROR, TIMEOUTS

_MERGE = "merge"
_COUNTERS = "counters"
_PERCENTILES = (50, 95, 99, 99.9)
_ENDS = (*Answer, TIMEOUTS)


def check_merge(seen: LoadEvidence, place: int) -> tuple[SelftestFinding, ...]:
    """Check that merged times are those of one histogram made of every interval that was written.

    What is reported comes by the way that a trial's samples come.
    """
    raw = read_logs(seen.logs)
    phase = seen.stages[place].phase
    findings = _check_counts(seen, place, raw)
    (figures,) = (one for one in collect_figures(seen.stages, seen.outcome) if one.phase == phase)
    for kind in (RESPONSE_TIME, SERVICE_TIME):
        times = figures.times(kind.name)
        whole = _whole(raw, phase, kind)
        findings += [
            compare(
                _MERGE,
                f"{kind.name.replace('_', ' ')} p{percentile:g} of all engines",
                planted=whole.get_value_at_percentile(percentile) / 1000,
                reported=getattr(times, f"p{percentile:g}".replace(".", "_"), 0.0),
                tolerance=0,
                unit="ms",
            )
            for percentile in _PERCENTILES
        ]
    return (*findings, _check_disjoint(seen))


def check_counters(seen: LoadEvidence, timeout_s: float) -> tuple[SelftestFinding, ...]:
    """Check that each operation ended in exactly one counter, and in the right one.

    Answers near the time limit could go either way; none is planted there.
    """
    is_late, is_refused = (
        np.concatenate(parts)
        for parts in (
            [deeds.answered_s - deeds.arrived_s > timeout_s for deeds in seen.deeds],
            [deeds.is_refused for deeds in seen.deeds],
        )
    )
    ended = sum(
        counter.value
        for counter in seen.outcome.counters
        if counter.name in _ENDS or counter.name.startswith(ERROR)
    )
    planted = {
        TIMEOUTS: int(np.count_nonzero(is_late)),
        seen.dialect.refusal: int(np.count_nonzero(is_refused & ~is_late)),
        Answer.COMPLETED: int(np.count_nonzero(~is_refused & ~is_late)),
    }
    return (
        compare(
            _COUNTERS,
            "operations attempted, ended in one counter",
            planted=seen.count(ATTEMPTED),
            reported=ended,
            tolerance=0,
        ),
        *(
            compare(
                _COUNTERS,
                f"operations that ended as {name}",
                planted=count,
                reported=seen.count(name),
                tolerance=0,
                delays=_near_limit(seen, timeout_s),
            )
            for name, count in planted.items()
        ),
    )


def read_logs(paths: tuple[Path, ...]) -> Mapping[str, Histogram]:
    """Add up interval logs by tag, with the reader that comes with the histogram library."""
    totals: defaultdict[str, Histogram] = defaultdict(_histogram)
    for path in paths:
        for histogram in _read(path):
            totals[histogram.get_tag()].add(histogram)
    return totals


def _read(path: Path) -> Iterator[Histogram]:
    reader = HistogramLogReader(str(path), _histogram())
    try:
        while (histogram := reader.get_next_interval_histogram()) is not None:
            yield histogram
    finally:
        reader.close()


def _histogram() -> Histogram:
    return HdrHistogram(1, HIGHEST_US, 3)


def _whole(raw: Mapping[str, Histogram], phase: str, kind: Metric) -> Histogram:
    whole = _histogram()
    for tag, histogram in raw.items():
        of_phase, _, of_kind, iteration = tag.split(":")
        if (of_phase, of_kind, iteration) == (phase, kind.name, "1"):
            whole.add(histogram)
    return whole


def _check_counts(
    seen: LoadEvidence, place: int, raw: Mapping[str, Histogram]
) -> list[SelftestFinding]:
    phase = seen.stages[place].phase
    written = _whole(raw, phase, RESPONSE_TIME).get_total_count()
    return [
        compare(
            _MERGE,
            "operations completed, with a response time in a log",
            planted=seen.count(Answer.COMPLETED, phase, 1),
            reported=written,
            tolerance=0,
        ),
        compare(
            _MERGE,
            "response times in the logs of both engines, merged",
            planted=written,
            reported=merge_kind(seen, place, RESPONSE_TIME).get_total_count(),
            tolerance=0,
        ),
    ]


def _check_disjoint(seen: LoadEvidence) -> SelftestFinding:
    """Check that no operation was done twice: each writes rows of its own."""
    rows = np.concatenate([np.stack((deeds.device, deeds.ts_ms)) for deeds in seen.deeds], axis=1)
    return compare(
        _MERGE,
        "operations attempted, each with rows of its own at a server",
        planted=seen.count(ATTEMPTED),
        reported=np.unique(rows, axis=1).shape[1],
        tolerance=0,
    )


def _near_limit(seen: LoadEvidence, timeout_s: float) -> float:
    """Count operations that this machine's delays may have moved across the time limit."""
    margin_s = seen.delays.max_ms / 1000
    return float(
        sum(
            np.count_nonzero(np.abs(deeds.answered_s - deeds.arrived_s - timeout_s) < margin_s)
            for deeds in seen.deeds
        )
    )
