"""The samples of a load that a program of the user's own offered: what it reported. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import mean

from perf.load.results.outcome import LoadOutcome
from perf.load.results.phases import collect_phases
from perf.model.design import OpenLoop
from perf.model.metrics import CLIENT_CPU, SEND_LATENESS
from perf.model.results import COMPLETED_IN_WINDOW, ERROR, Reason, Sample
from perf.workloads.stages import Stage

FAILED = f"{ERROR}reported"
"""Counts what the program said has failed; not there where it does not say."""


def find_unknown(stage: Stage, outcome: LoadOutcome) -> Iterator[Reason]:
    """Yield what a reader cannot know of an iteration; alike for each iteration of a phase."""
    kinds = {one.kind for one in outcome.intervals}
    if isinstance(stage.load, OpenLoop) and SEND_LATENESS.name not in kinds:
        text = (
            f"{stage.phase}: the program does not say how late it sent; its own delay may be part of "
            "its times, or missing from them"
        )
        yield Reason(kind="lateness-unknown", text=text)
    if FAILED not in {one.name for one in outcome.counters}:
        text = f"{stage.phase}: the program does not say how many operations failed"
        yield Reason(kind="errors-unknown", text=text)


def summarize_reported(stages: Sequence[Stage], outcome: LoadOutcome) -> Iterator[Sample]:
    """Yield what was reported of each iteration, and the mean over them; then CPU time per operation.

    A mean of percentiles is what it says: a program that reports percentiles alone has no histograms
    that could be merged.
    """
    values: defaultdict[Sample, list[float]] = defaultdict(list)
    for one in outcome.reported:
        values[replace(one, iteration=None, value=0.0)].append(one.value)
    yield from (replace(whole, value=mean(found)) for whole, found in values.items())
    yield from outcome.reported
    for whole in collect_phases(stages, outcome):
        completed = whole.count(COMPLETED_IN_WINDOW)
        if completed:
            yield Sample(
                phase=whole.phase,
                operation=whole.operation,
                metric=CLIENT_CPU.name,
                statistic="mean",
                value=sum(use.cpu_s for use in whole.engines()) * 1e6 / completed,
            )
