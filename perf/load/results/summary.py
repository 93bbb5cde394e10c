"""From what the engines recorded to the samples of a trial. Pure.

Throughput is the operations that completed inside the measured window, whenever they were to start,
divided by the window's length; so work that a slow system finishes after the window raises no
figure, and an answer that comes late once does not lower it. Operations that failed, or whose answer
was wrong, do not count. Times are those of completed operations, by their intended start.

A step of a ladder that did not hold has no samples. Where the client was the limit they would say
nothing about the system. Where the system missed they would flatter it: operations that were not
answered are in no histogram, so at an overload the p99 is that of the survivors, and the more the
system drops the better it looks. Nor have the steps of a search samples: which loads they offer differs
from trial to trial, so they could make no series.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import mean

from perf.load.results.outcome import LoadOutcome
from perf.load.results.phases import PhaseFigures, collect_figures, collect_phases
from perf.load.results.search import Found
from perf.load.results.soak import find_drift
from perf.model.design import Measurement, Workload
from perf.model.metrics import (
    CLIENT_CPU,
    HIGHEST_LOAD,
    METRIC_THROUGHPUT,
    OPERATIONS_PER_DOLLAR,
    RESPONSE_TIME,
    RESPONSE_TIME_DRIFT,
    ROW_THROUGHPUT,
    SEND_LATENESS,
    SERVICE_TIME,
    THROUGHPUT,
    WARM_UP,
)
from perf.model.records import ASKED_OF, Answer, Operation, is_part
from perf.model.results import COMPLETED_IN_WINDOW, ROWS, LoadStep, Sample, StepOutcome
from perf.workloads.devops.tables import TABLES, VALUES_PER_HOST
from perf.workloads.stages import Stage, name_offered

_HOUR_S = 3600
_QUERIES = {one.value for one in ASKED_OF["devops"]} - {Operation.LOAD.value}
"""What gives groups, and no rows of a batch."""
# Of the devops workload on average; each of its tables has as many rows.
_VALUES_PER_ROW = VALUES_PER_HOST / len(TABLES)
_EVERY = ("p50", "p90", "p95", "p99", "p99.5", "p99.9", "max", "mean")
_OF_THE_CLIENT = ("p50", "p99", "max")


def summarize(
    workload: Workload,
    stages: Sequence[Stage],
    outcome: LoadOutcome,
    steps: Sequence[LoadStep] = (),
    answers: Sequence[tuple[Measurement, Found]] = (),
    *,
    price_per_hour_usd: float | None = None,
) -> tuple[Sample, ...]:
    """Return the samples of each phase of `stages`, per iteration and over all; then those of searches.

    `stages` are those of closed and open loops and of ladders; `steps` and `answers` may hold those of
    searches too. With `price_per_hour_usd`, what the hosts of the servers cost in US dollars, there are
    operations per dollar of each closed loop; in an open one its schedule would decide them.
    """
    untold = {step.phase for step in steps if step.outcome is not StepOutcome.HELD}
    reported = [stage for stage in stages if stage.phase not in untold]
    wholes = tuple(collect_phases(reported, outcome))
    known = {(whole.phase, whole.operation) for whole in wholes}
    return (
        *(
            sample
            for whole in wholes
            for sample in _summarize_phase(whole, workload.batch_rows or 1, price_per_hour_usd)
        ),
        *(
            sample
            for figures in collect_figures(reported, outcome)
            if (figures.phase, figures.operation) not in known
            for sample in _summarize_operation(figures, workload.batch_rows or 1)
        ),
        *(
            sample
            for phase, found in answers
            for sample in _summarize_search(phase.name, name_offered(workload.mix_of(phase)), found)
        ),
    )


def _summarize_phase(
    figures: PhaseFigures, batch_rows: int, price_per_hour_usd: float | None
) -> Iterator[Sample]:
    """Give what is known of a phase as a whole: of its operation, or of all its operations together."""
    yield from _summarize_operation(figures, batch_rows)
    for label, iterations in _labels(figures):
        sample = _sampler(figures, label)
        completed = figures.count(COMPLETED_IN_WINDOW, iterations)
        is_query = figures.operation in _QUERIES
        if price_per_hour_usd is not None and not figures.is_open and not is_query:
            throughput = completed / figures.seconds(iterations)
            per_dollar = throughput * _HOUR_S / price_per_hour_usd
            yield sample(metric=OPERATIONS_PER_DOLLAR.name, value=per_dollar)
        engines = figures.engines(iterations)
        if engines and completed:
            cpu_us = sum(use.cpu_s for use in engines) * 1e6
            yield sample(metric=CLIENT_CPU.name, value=cpu_us / completed)
    yield from _summarize_warm_ups(figures)


def _summarize_operation(figures: PhaseFigures, batch_rows: int) -> Iterator[Sample]:
    """Yield throughput and times of one operation; of a part of one, only its times."""
    for label, iterations in _labels(figures):
        sample = _sampler(figures, label)
        if not is_part(figures.operation):
            throughput = figures.count(COMPLETED_IN_WINDOW, iterations) / figures.seconds(iterations)
            # Between two queries the client computes what each answer must be: no figure of a system.
            if figures.operation not in _QUERIES:
                yield sample(metric=THROUGHPUT.name, value=throughput)
            # Rows are counted by when operations were to start, throughput by when they ended: what
            # carries over from one to the other is how many rows an operation has.
            counted = figures.count(Answer.COMPLETED, iterations)
            if batch_rows > 1 and counted and figures.operation not in _QUERIES:
                rows = throughput * figures.count(ROWS, iterations) / counted
                yield sample(metric=ROW_THROUGHPUT.name, value=rows)
                if figures.operation == Operation.LOAD:
                    yield sample(metric=METRIC_THROUGHPUT.name, value=rows * _VALUES_PER_ROW)
        for metric, statistics in (
            (RESPONSE_TIME, () if is_part(figures.operation) else _EVERY),
            (SERVICE_TIME, _EVERY),
            (SEND_LATENESS, _OF_THE_CLIENT if figures.is_open else ()),
        ):
            times = figures.times(metric.name, iterations) if statistics else None
            if times is not None:
                for name in statistics:
                    value = getattr(times, name.replace(".", "_"))
                    yield sample(metric=metric.name, statistic=name, value=value)
        if not is_part(figures.operation):
            yield from _summarize_drift(figures, label, iterations)


def _summarize_drift(
    figures: PhaseFigures, label: int | None, iterations: tuple[int, ...]
) -> Iterator[Sample]:
    """Yield how the p99 of response time drifted: of one iteration, never across a break."""
    if len(iterations) > 1:
        return
    own = [one for one in figures.intervals if one.iteration in iterations]
    completed, length_s = figures.count(Answer.COMPLETED, iterations), figures.seconds(iterations)
    if drift := find_drift(own, completed, length_s):
        sample = partial(_sampler(figures, label), metric=RESPONSE_TIME_DRIFT.name)
        for statistic in ("estimate", "lower", "upper"):
            yield sample(statistic=statistic, value=100 * getattr(drift, statistic))


def _labels(figures: PhaseFigures) -> Iterator[tuple[int | None, tuple[int, ...]]]:
    """Yield all iterations together, without a number, and then each."""
    yield None, figures.iterations
    for iteration in figures.iterations:
        yield iteration, (iteration,)


def _sampler(figures: PhaseFigures, iteration: int | None) -> Callable[..., Sample]:
    return partial(
        Sample,
        phase=figures.phase,
        operation=figures.operation,
        iteration=iteration,
        statistic="mean",
    )


def _summarize_warm_ups(figures: PhaseFigures) -> Iterator[Sample]:
    """Yield how long the warm-ups of a phase took: their mean, and each where all are known."""
    lengths = [one.duration_s for one in figures.warm_ups]
    if lengths:
        yield _sampler(figures, None)(metric=WARM_UP.name, value=mean(lengths))
    if len(lengths) == len(figures.stages):
        for stage, length in zip(figures.stages, lengths, strict=True):
            # A warm-up before several iterations is of none of them alone.
            if len(stage.iterations) == 1:
                yield _sampler(figures, stage.iterations[0])(metric=WARM_UP.name, value=length)


def _summarize_search(phase: str, operation: str, found: Found) -> Iterator[Sample]:
    for statistic in ("estimate", "lower", "upper"):
        value = getattr(found, statistic)
        if value is not None:
            yield Sample(
                phase=phase,
                operation=operation,
                metric=HIGHEST_LOAD.name,
                statistic=statistic,
                value=value,
            )
