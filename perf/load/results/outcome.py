"""What all engines of a load measured together; adding two outcomes is exact. Pure."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from perf.load.histogram import merge_equal_intervals
from perf.load.spec import EngineResult
from perf.model.results import Counter, Interval, Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmedUp:
    """How a warm-up went: it was steady after so long, or it was not and ran to its cap."""

    phase: str
    duration_s: float
    is_steady: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOutcome:
    """What all engines of one or more loads measured together.

    `engine_hosts` names the host of each engine, by engine index.
    """

    intervals: tuple[Interval, ...] = ()
    counters: tuple[Counter, ...] = ()
    results: tuple[EngineResult, ...] = ()
    warm_ups: tuple[WarmedUp, ...] = ()
    engine_hosts: tuple[str, ...] = ()
    reported: tuple[Sample, ...] = ()
    """What a program of the user's own told of each iteration."""

    @property
    def examples(self) -> tuple[str, ...]:
        """The first message of each kind of error, each message once."""
        return tuple(dict.fromkeys(text for result in self.results for text in result.examples))

    def __add__(self, other: Self) -> "LoadOutcome":
        """Put two loads of one trial together."""
        if other == LoadOutcome():
            return self  # many parts of a trial hold none, and histograms are dear to look through
        return LoadOutcome(
            intervals=merge_equal_intervals((*self.intervals, *other.intervals)),
            counters=_add_counters((*self.counters, *other.counters)),
            results=(*self.results, *other.results),
            warm_ups=(*self.warm_ups, *other.warm_ups),
            engine_hosts=self.engine_hosts or other.engine_hosts,
            reported=(*self.reported, *other.reported),
        )


def _add_counters(counters: Iterable[Counter]) -> tuple[Counter, ...]:
    totals: defaultdict[tuple[str, str, int, str], int] = defaultdict(int)
    for counter in counters:
        totals[counter.phase, counter.operation, counter.iteration, counter.name] += counter.value
    return tuple(
        Counter(phase=phase, operation=operation, iteration=iteration, name=name, value=value)
        for (phase, operation, iteration, name), value in totals.items()
    )
