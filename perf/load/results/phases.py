"""What a measured phase came to: counts, merged times, what its engines used. Pure.

`validity` judges these figures and `summary` makes samples of them, so both speak of the same numbers.
Warm-ups are in none of them.
"""

from collections import Counter as Tally
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from perf.load.histogram import Statistics, merge, summarize_times
from perf.load.results.outcome import LoadOutcome, WarmedUp
from perf.load.spec import Usage
from perf.model.design import OpenLoop, SimpleLoad
from perf.model.records import ALL, is_part
from perf.model.results import Interval
from perf.workloads.stages import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineUse:
    """What one engine process used in some iterations: see `Usage`."""

    engine_index: int
    wall_s: float
    cpu_s: float
    waited_s: float

    @property
    def cpu_share(self) -> float:
        """CPU time per second."""
        return self.cpu_s / self.wall_s if self.wall_s else 0.0

    @property
    def waited_share(self) -> float:
        """Time in which threads were ready to run and had no core, per second."""
        return self.waited_s / self.wall_s if self.wall_s else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFigures:
    """All that engines recorded of one operation in one phase, by iteration.

    `stages` are those of the phase, in the order in which they ran; `warm_ups` theirs, as far as known.
    """

    phase: str
    operation: str
    stages: tuple[Stage, ...]
    counts: Mapping[int, Mapping[str, int]]
    intervals: tuple[Interval, ...]
    usages: tuple[tuple[int, Usage], ...]
    """With the index of the engine."""
    warm_ups: tuple[WarmedUp, ...]

    @property
    def load(self) -> SimpleLoad:
        """The load that was offered in the phase."""
        return self.stages[0].load

    @property
    def is_open(self) -> bool:
        """Operations started on a schedule."""
        return isinstance(self.load, OpenLoop)

    @property
    def iterations(self) -> tuple[int, ...]:
        """The numbers of the iterations that have counts."""
        return tuple(sorted(self.counts))

    def seconds(self, iterations: Collection[int]) -> float:
        """Return the length of these iterations together."""
        return self.stages[0].iteration_s * len(iterations)

    def count(self, name: str, iterations: Iterable[int] | None = None) -> int:
        """Return a counter, over all iterations or some."""
        chosen = self.iterations if iterations is None else iterations
        return sum(self.counts[iteration].get(name, 0) for iteration in chosen)

    def totals(self) -> Mapping[str, int]:
        """Return every counter over all iterations."""
        totals: Tally[str] = Tally()
        for counts in self.counts.values():
            totals.update(counts)
        return totals

    def times(self, kind: str, iterations: Iterable[int] | None = None) -> Statistics | None:
        """Read the times of a kind from one merged histogram; None if nothing was recorded."""
        chosen = frozenset(self.iterations if iterations is None else iterations)
        parts = [one for one in self.intervals if one.kind == kind and one.iteration in chosen]
        return summarize_times(merge(parts)) if parts else None

    def engines(self, iterations: Iterable[int] | None = None) -> tuple[EngineUse, ...]:
        """Return what each engine process used, over all iterations or some."""
        chosen = frozenset(self.iterations if iterations is None else iterations)
        found = []
        for index in sorted({index for index, _ in self.usages}):
            own = [one for owner, one in self.usages if owner == index and one.iteration in chosen]
            use = EngineUse(
                engine_index=index,
                wall_s=sum(one.wall_s for one in own),
                cpu_s=sum(one.cpu_s for one in own),
                waited_s=sum(one.waited_s for one in own),
            )
            found.append(use)
        return tuple(found)


def collect_figures(stages: Sequence[Stage], outcome: LoadOutcome) -> Iterator[PhaseFigures]:
    """Yield the figures of each phase of `stages`, in order; a phase that left no trace has none."""
    operations = dict.fromkeys((one.phase, one.operation) for one in outcome.counters if one.iteration)
    for phase in dict.fromkeys(stage.phase for stage in stages):
        for operation in (operation for name, operation in operations if name == phase):
            yield _collect(phase, operation, stages, outcome)


def collect_phases(stages: Sequence[Stage], outcome: LoadOutcome) -> Iterator[PhaseFigures]:
    """Yield the figures of each phase as a whole: of its operation, or of all of its mix together."""
    each = [one for one in collect_figures(stages, outcome) if not is_part(one.operation)]
    for phase in dict.fromkeys(one.phase for one in each):
        yield _together([one for one in each if one.phase == phase])


def _together(figures: Sequence[PhaseFigures]) -> PhaseFigures:
    (first, *others) = figures
    if not others:
        return first
    counts: dict[int, Tally[str]] = {}
    for one in figures:
        for iteration, own in one.counts.items():
            counts.setdefault(iteration, Tally()).update(own)
    intervals = tuple(interval for one in figures for interval in one.intervals)
    return replace(first, operation=ALL, counts=counts, intervals=intervals)


def add_up(outcome: LoadOutcome) -> Mapping[tuple[str, str], Mapping[str, int]]:
    """Return every counter of each phase and operation over all iterations, planned or not."""
    totals: dict[tuple[str, str], Tally[str]] = {}
    for one in outcome.counters:
        if one.iteration:
            totals.setdefault((one.phase, one.operation), Tally())[one.name] += one.value
    return totals


def _collect(phase: str, operation: str, stages: Sequence[Stage], outcome: LoadOutcome) -> PhaseFigures:
    counts: dict[int, dict[str, int]] = {}
    for counter in outcome.counters:
        if (counter.phase, counter.operation) == (phase, operation) and counter.iteration:
            own = counts.setdefault(counter.iteration, {})
            own[counter.name] = own.get(counter.name, 0) + counter.value
    return PhaseFigures(
        phase=phase,
        operation=operation,
        stages=tuple(stage for stage in stages if stage.phase == phase),
        counts=counts,
        intervals=tuple(
            one
            for one in outcome.intervals
            if (one.phase, one.operation) == (phase, operation) and one.iteration
        ),
        usages=tuple(
            (result.engine_index, usage)
            for result in outcome.results
            for usage in result.usages
            if usage.phase == phase and usage.iteration
        ),
        warm_ups=tuple(one for one in outcome.warm_ups if one.phase == phase),
    )
