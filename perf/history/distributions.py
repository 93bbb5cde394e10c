"""How times are distributed, and how they went second by second, from stored histograms. Pure.

Each histogram is decoded once for both. Percentiles always come from merged histograms.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from perf.history.rows import HISTOGRAMS, HistoryRow
from perf.model.errors import UsageError
from perf.model.histograms import SparseHistograms, decode_sparse
from perf.model.results import Interval, TrialId

TICKS_PER_HALF_DISTANCE = 5
"""Steps of a spectrum until half of the way to 100 % is gone: what HdrHistogram prints by itself."""
_NAMED = (90.0, 95.0, 99.0, 99.9, 99.99, 99.999)
"""Percentiles that people ask for, and that halving the way to 100 % never meets."""

_IDENTITY = ("trial_id", "phase", "operation", "kind")
RECORDED = f"""
    SELECT * FROM histograms
    WHERE trial_id IN (SELECT unnest(?::VARCHAR[])) AND kind IN (SELECT unnest(?::VARCHAR[]))
        AND iteration > 0
    ORDER BY {", ".join(_IDENTITY)}, iteration, start_s, position
"""  # noqa: S608  our own names
"""Takes a list of trials and one of kinds."""


_COMPARABLE = (
    *("system", "version", "topology", "testbed_class", "config", "config_sha256"),
    *("workload", "workload_sha256", "engine"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The histograms of one operation and kind in one phase of a trial, oldest first; no warm-up."""

    trial: TrialId
    phase: str
    operation: str
    kind: str
    intervals: tuple[Interval, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileLevel:
    """The time within which this share of all operations ended. `percentile` is in per cent."""

    percentile: float
    value_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spectrum:
    """A whole distribution in a few levels; the last is 100 %, the slowest operation.

    `count` is the number of operations.
    """

    count: int
    levels: tuple[PercentileLevel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSecond:
    """The operations of one interval, about a second. `at_s` counts from the iteration's first.

    An open loop puts an operation into the second in which it was to start, so one that the system
    made wait counts there, and not where it ended. Only answered operations are in it.
    """

    iteration: int
    at_s: float
    length_s: float
    count: int
    p50_us: int
    p99_us: int
    max_us: int

    @property
    def ops_per_s(self) -> float:
        """Return the rate of the operations."""
        return self.count / self.length_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """What a recording says: over all its iterations, and second by second.

    There is no course where each iteration has only one histogram, as once it was rolled up.
    """

    spectrum: Spectrum
    course: tuple[RecordedSecond, ...]


def distribute(intervals: Sequence[Interval]) -> Distribution:
    """Return the spectrum and the course of histograms of one operation and kind; of one, at least.

    The warm-up (iteration 0) is left out, and so is a histogram without a value.

    Raises:
        ValueError: a histogram cannot be decoded, or none of them has a value.

    """
    measured = sorted(
        (interval for interval in intervals if interval.iteration),
        key=lambda interval: (interval.iteration, interval.start_s),
    )
    nothing = "no histogram has a value, so there is no distribution"
    if not measured:
        raise ValueError(nothing)
    histograms = decode_sparse([interval.encoded for interval in measured])
    merged = histograms.merge()
    (count,) = merged.totals
    if not count:
        raise ValueError(nothing)
    percentiles = list_percentiles(count)
    return Distribution(
        spectrum=Spectrum(
            count=count,
            levels=tuple(
                PercentileLevel(percentile=percentile, value_us=value_us)
                for percentile, value_us in zip(
                    percentiles, merged.values_us(percentiles)[0], strict=True
                )
            ),
        ),
        course=tuple(_course(measured, histograms))
        if len(measured) > len({interval.iteration for interval in measured})
        else (),
    )


def list_percentiles(count: int) -> tuple[float, ...]:
    """Return the percentiles, in per cent, that a spectrum of `count` values shows; the last is 100.

    Each time that half of the way to 100 % is gone, the steps are halved, as in HdrHistogram's
    PercentileIterator: https://github.com/HdrHistogram/HdrHistogram/blob/master/src/main/java/org/HdrHistogram/PercentileIterator.java
    Finer than about one value in `count` it does not go: there it would repeat the maximum.
    """
    levels, way_left = [], 100.0
    while way_left * count > 100:  # noqa: PLR2004  per cent
        step = way_left / (2 * TICKS_PER_HALF_DISTANCE)
        levels += [100 - way_left + step * tick for tick in range(TICKS_PER_HALF_DISTANCE)]
        way_left /= 2
    named = [percentile for percentile in _NAMED if (100 - percentile) * count >= 100]  # noqa: PLR2004  per cent
    return (*sorted({*levels, 100 - way_left, *named} - {0.0}), 100.0)


def refuse_mixture(trials: Sequence[TrialId], rows: Sequence[HistoryRow]) -> None:
    """Refuse to merge the histograms of trials; `rows` are those of the table trials that were found.

    Raises:
        UsageError: a trial is unknown, or they measured different things.

    """
    if unknown := sorted(set(trials) - {row["trial_id"] for row in rows}):
        raise UsageError(
            f"no such trial in the history: {', '.join(unknown)}; "
            "see them all with: knickpoint history show"
        )
    differing = [
        f"{name} ({', '.join(sorted({str(row[name]) for row in rows}))})"
        for name in _COMPARABLE
        if len({row[name] for row in rows}) > 1
    ]
    if differing:
        raise UsageError(
            f"these {len(trials)} trials cannot be merged, they differ in {'; '.join(differing)}: "
            "choose fewer by --experiment, --release or --trial"
        )


def gather(rows: Iterable[HistoryRow]) -> Iterator[Recording]:
    """Yield the recordings of rows of the table histograms that are sorted as `RECORDED` sorts them."""
    for identity, group in groupby(rows, key=lambda row: tuple(row[name] for name in _IDENTITY)):
        trial, phase, operation, kind = identity
        yield Recording(
            trial=TrialId(trial),
            phase=phase,
            operation=operation,
            kind=kind,
            intervals=tuple(
                Interval(**{name: row[name] for name in HISTOGRAMS.columns}) for row in group
            ),
        )


def _course(intervals: Sequence[Interval], histograms: SparseHistograms) -> Iterator[RecordedSecond]:
    """Yield the seconds of intervals that are sorted by iteration and time, with their histograms."""
    begins: dict[int, float] = {}
    values = zip(intervals, histograms.totals, histograms.values_us([50, 99, 100]), strict=True)
    for interval, count, (p50_us, p99_us, max_us) in values:
        if not count:
            continue
        begin_s = begins.setdefault(interval.iteration, interval.start_s)
        yield RecordedSecond(
            iteration=interval.iteration,
            at_s=round(interval.start_s - begin_s, 6),
            length_s=interval.length_s,
            count=count,
            p50_us=p50_us,
            p99_us=p99_us,
            max_us=max_us,
        )
