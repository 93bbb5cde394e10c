"""From the windows of a trial to its diagnostics: what explains a result or casts doubt on it; pure.

A phase has a window per stage; they are added up. Costs are the windows' totals per operation that
completed in them (statistic "mean"), of all nodes together (host "") and of each. Debts are what was
left at the end of the last window (statistic "last"). A figure that fell, or that only one of two looks
saw, gives no sample but a remark: a number from half of the servers would be wrong by half.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from perf.model.metrics import (
    COMPACTION_DEBT,
    GC_PAUSE,
    NETWORK_SENT,
    PENDING_COMPACTIONS,
    SERVER_CPU,
    STORAGE_READ,
    STORAGE_WRITTEN,
    UNWRITTEN,
    WRITE_AMPLIFICATION,
    Metric,
)
from perf.model.records import ALL, Answer, is_part
from perf.model.results import COMPLETED_IN_WINDOW, ROWS, Counter, Reason, Sample
from perf.systems.contract import (
    COMPACTION_PENDING_TASKS,
    COMPACTION_REMAINING_BYTES,
    GC_PAUSE_S,
    UNWRITTEN_BYTES,
)
from perf.trial.telemetry import Snapshot, Window

Figures: TypeAlias = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostics:
    """The diagnostics of all phases; `remarks` say which of them could not be had."""

    samples: tuple[Sample, ...]
    remarks: tuple[Reason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Phase:
    """The windows of one phase, and what the clients counted in its iterations."""

    name: str
    operation: str
    windows: Sequence[Window]
    counts: Mapping[str, int]

    def sample(self, metric: Metric, statistic: str, value: float, host: str = "") -> Sample:
        return Sample(
            phase=self.name,
            operation=self.operation,
            metric=metric.name,
            statistic=statistic,
            value=value,
            host=host,
        )

    def samples(
        self, metric: Metric, figures: Figures, unit: float, statistic: str = "mean"
    ) -> Iterator[Sample]:
        """Yield the total of all nodes, then each node's share of it."""
        if figures:
            yield self.sample(metric, statistic, sum(figures.values()) * unit)
            for node, value in figures.items():
                yield self.sample(metric, statistic, value * unit, node)

    def remark(self, text: str) -> Reason:
        return Reason(kind="telemetry-missing", text=f"phase {self.name}: {text}")


def summarize_windows(
    windows: Sequence[Window],
    counters: Sequence[Counter],
    row_bytes: Mapping[str, float],
) -> Diagnostics:
    """Return the diagnostics of every phase that has windows.

    `row_bytes` is the payload per row of the phases whose operations store rows and do nothing else.
    """
    found: list[Sample | Reason] = []
    for name in dict.fromkeys(window.phase for window in windows):
        phase = _gather(name, windows, counters)
        found += _costs(phase, row_bytes.get(name, 0))
        found += _pauses(phase)
        found += _debts(phase)
    return Diagnostics(
        samples=tuple(one for one in found if isinstance(one, Sample)),
        remarks=tuple(one for one in found if isinstance(one, Reason)),
    )


def _gather(name: str, windows: Sequence[Window], counters: Sequence[Counter]) -> _Phase:
    mine = tuple(window for window in windows if window.phase == name)
    seen = {iteration for window in mine for iteration in window.iterations}
    counted = [
        one
        for one in counters
        if one.phase == name and one.iteration in seen and not is_part(one.operation)
    ]
    counts: defaultdict[str, int] = defaultdict(int)
    for one in counted:
        counts[one.name] += one.value
    operations = {one.operation for one in counted}
    operation = operations.pop() if len(operations) == 1 else ALL
    return _Phase(name=name, operation=operation, windows=mine, counts=counts)


def _costs(phase: _Phase, payload_bytes_per_row: float) -> Iterator[Sample | Reason]:
    if not phase.counts:  # the load ended early, which is reported elsewhere
        return
    completed = phase.counts[COMPLETED_IN_WINDOW]
    if not completed:
        yield phase.remark(
            "no operation completed between two looks at the servers, so costs per operation are not "
            "known"
        )
        return
    for metric, unit, read in _COSTS:
        figures, remarks = _growth(phase, metric.name, read)
        yield from remarks
        yield from phase.samples(metric, figures, unit / completed)
        # Payload belongs to all nodes together: copies of a row lie on several.
        if metric is STORAGE_WRITTEN and figures and (payload := _rows(phase) * payload_bytes_per_row):
            yield phase.sample(WRITE_AMPLIFICATION, "mean", sum(figures.values()) / payload)


def _rows(phase: _Phase) -> float:
    """Return the rows of what completed in the windows; rows are counted by when it was to start."""
    counts = phase.counts
    return counts[COMPLETED_IN_WINDOW] * counts[ROWS] / max(1, counts[Answer.COMPLETED])


def _pauses(phase: _Phase) -> Iterator[Sample | Reason]:
    """Yield ms of pause per second of each node, and their mean: a node's pauses are its own."""
    figures, remarks = _growth(phase, GC_PAUSE.name, lambda look: _levels(look, GC_PAUSE_S))
    yield from remarks
    lasted_s, _ = _growth(phase, GC_PAUSE.name, _node_seconds)
    shares = {
        node: value * 1000 / lasted_s[node] for node, value in figures.items() if lasted_s.get(node)
    }
    if shares:
        yield phase.sample(GC_PAUSE, "mean", sum(shares.values()) / len(shares))
        for node, value in shares.items():
            yield phase.sample(GC_PAUSE, "mean", value, node)


def _debts(phase: _Phase) -> Iterator[Sample]:
    for metric, level, unit in _DEBTS:
        yield from phase.samples(metric, _levels(phase.windows[-1].after, level), unit, "last")


def _growth(
    phase: _Phase, what: str, read: Callable[[Snapshot], Figures]
) -> tuple[Figures, tuple[Reason, ...]]:
    """Add up by how much each figure grew over the windows; give none of them if one is not known."""
    total: defaultdict[str, float] = defaultdict(float)
    remarks: dict[str, Reason] = {}
    edges = [(read(window.before), read(window.after)) for window in phase.windows]
    for name in sorted({name for edge in edges for figures in edge for name in figures}):
        for before, after in edges:
            if name not in before or name not in after:
                text = f"{what} is left out, since {name} was not seen at both ends of a window"
                remarks.setdefault(name, phase.remark(text))
            elif after[name] < before[name]:
                text = (
                    f"{what} is left out, since the figure of {name} fell from {before[name]:g} to "
                    f"{after[name]:g} within a window: its process was restarted"
                )
                remarks.setdefault(name, phase.remark(text))
            else:
                total[name] += after[name] - before[name]
    return ({} if remarks else total), tuple(remarks.values())


def _levels(look: Snapshot, name: str) -> Figures:
    return {level.node: level.value for level in look.levels if level.name == name}


def _node_seconds(look: Snapshot) -> Figures:
    at_s = {usage.host: usage.at_s for usage in look.hosts}
    return {one.node: at_s[one.host] for one in look.processes if one.host in at_s}


def _of_processes(figure: str, look: Snapshot) -> Figures:
    return {process.node: getattr(process, figure) for process in look.processes}


def _sent_bytes(look: Snapshot) -> Figures:
    """Return what the hosts of servers sent; a host of clients alone is none of them."""
    servers = {process.host for process in look.processes}
    return {usage.host: usage.sent_bytes for usage in look.hosts if usage.host in servers}


_COSTS: tuple[tuple[Metric, float, Callable[[Snapshot], Figures]], ...] = (
    (SERVER_CPU, 1e6, partial(_of_processes, "cpu_s")),
    (STORAGE_READ, 1.0, partial(_of_processes, "read_bytes")),
    (STORAGE_WRITTEN, 1.0, partial(_of_processes, "written_bytes")),
    (NETWORK_SENT, 1.0, _sent_bytes),
)
_DEBTS = (
    (COMPACTION_DEBT, COMPACTION_REMAINING_BYTES, 1e-6),
    (PENDING_COMPACTIONS, COMPACTION_PENDING_TASKS, 1.0),
    (UNWRITTEN, UNWRITTEN_BYTES, 1e-6),
)
