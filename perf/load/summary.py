"""From what the engines recorded to the samples of a trial. Pure.

Throughput is the operations that completed inside the measured window, whenever they were to start,
divided by the window's length; so work that a slow system finishes after the window raises no
figure, and an answer that comes late once does not lower it. Operations that failed, or whose answer
was wrong, do not count. Times are those of completed operations, by their intended start.
"""

from collections.abc import Collection, Iterator
from functools import partial

from perf.design import Measurement, Workload
from perf.load.engines import LoadOutcome
from perf.load.histogram import merge, summarize_times
from perf.load.recorder import COMPLETED_IN_WINDOW
from perf.metrics import RESPONSE_TIME, SERVICE_TIME, THROUGHPUT
from perf.model import Interval, Sample


def summarize(workload: Workload, outcome: LoadOutcome) -> tuple[Sample, ...]:
    """Give the samples of each measured phase that was run, per iteration and over all of them."""
    return tuple(
        sample
        for phase in workload.measurements
        for sample in _summarize_phase(phase, workload.operation.value, outcome)
    )


def _summarize_phase(phase: Measurement, operation: str, outcome: LoadOutcome) -> Iterator[Sample]:
    completed = {
        counter.iteration: counter.value
        for counter in outcome.counters
        if (counter.phase, counter.operation) == (phase.name, operation)
        and counter.name == COMPLETED_IN_WINDOW
        and counter.iteration
    }
    intervals = [
        interval
        for interval in outcome.intervals
        if (interval.phase, interval.operation) == (phase.name, operation) and interval.iteration
    ]
    everything = [(None, sorted(completed))] if completed else []
    for label, iterations in (*everything, *((one, [one]) for one in sorted(completed))):
        sample = partial(Sample, phase=phase.name, operation=operation, iteration=label)
        count = sum(completed[iteration] for iteration in iterations)
        throughput = count / (phase.iteration_s * len(iterations))
        yield sample(metric=THROUGHPUT.name, statistic="mean", value=throughput)
        for metric in (RESPONSE_TIME, SERVICE_TIME):
            for statistic, value in _statistics(intervals, metric.name, iterations):
                yield sample(metric=metric.name, statistic=statistic, value=value)


def _statistics(
    intervals: list[Interval], kind: str, iterations: Collection[int]
) -> tuple[tuple[str, float], ...]:
    chosen = [one for one in intervals if one.kind == kind and one.iteration in iterations]
    if not chosen:
        return ()
    found = summarize_times(merge(chosen))
    return (
        ("p50", found.p50),
        ("p95", found.p95),
        ("p99", found.p99),
        ("p99.9", found.p99_9),
        ("max", found.max),
        ("mean", found.mean),
    )
