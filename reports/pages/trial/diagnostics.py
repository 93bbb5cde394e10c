"""What the page of a trial shows of its hosts and clients: diagnostics and canaries, never judged."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perf.model.metrics import CANARY_PHASES, DIAGNOSTICS, ROW_THROUGHPUT
from perf.model.results import Sample
from reports.wording.wording import (
    NOTHING,
    STATISTICS,
    NamedValue,
    direction_words,
    heading,
    interval,
    metric_name,
    metric_words,
    number,
    percent,
    phase_words,
    quantity,
    rank,
    spread,
    unit_words,
)

_ORDER = tuple(DIAGNOSTICS)
_MEDIAN = "p50"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosticRow:
    """One diagnostic; `cells` are over the whole phase, of each host, its range over iterations.

    The last is there only if the table has it; `note` is the unit.
    """

    name: str
    note: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosticTable:
    """What happened in one phase; `hosts` are the names of its columns."""

    title: str
    hosts: tuple[str, ...]
    has_iterations: bool
    rows: tuple[DiagnosticRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryRow:
    """Fixed work on one host, before and after the trial: its median, with the range as a note."""

    host: str
    name: str
    direction: str
    before: NamedValue
    after: NamedValue
    difference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosticsView:
    """What hosts and clients did, phase by phase, and what the canaries took."""

    tables: tuple[DiagnosticTable, ...]
    canaries: tuple[CanaryRow, ...]


def is_diagnostic(sample: Sample) -> bool:
    """Tell whether a sample explains a result rather than being one.

    Rows per second are throughput in another unit, so they stand beside it.
    """
    return sample.metric in DIAGNOSTICS and sample.metric != ROW_THROUGHPUT.name


def view_diagnostics(samples: Iterable[Sample]) -> DiagnosticsView:
    """Put the diagnostics of a trial into words, phase by phase."""
    found = [sample for sample in samples if is_diagnostic(sample)]
    canaries = [sample for sample in found if sample.phase in CANARY_PHASES]
    others = [sample for sample in found if sample.phase not in CANARY_PHASES]
    by_place: dict[tuple[str, str], list[Sample]] = {}
    for sample in others:
        by_place.setdefault((sample.phase, sample.operation), []).append(sample)
    return DiagnosticsView(
        tables=tuple(_tabulate(*place, own) for place, own in by_place.items()),
        canaries=_view_canaries(canaries),
    )


def _tabulate(phase: str, operation: str, samples: Sequence[Sample]) -> DiagnosticTable:
    hosts = tuple(sorted({s.host for s in samples if s.host}))
    whole = {(s.metric, s.statistic, s.host): number(s.value) for s in samples if s.iteration is None}
    wanted = sorted({(s.metric, s.statistic) for s in samples}, key=_reading_order)
    repeated: dict[tuple[str, str], list[float]] = {at: [] for at in wanted}
    for one in samples:
        if one.iteration is not None and not one.host:
            repeated[one.metric, one.statistic].append(one.value)
    has_iterations = any(repeated.values())
    return DiagnosticTable(
        title=f"{operation} {phase_words(phase)}".strip(),
        hosts=hosts,
        has_iterations=has_iterations,
        rows=tuple(
            DiagnosticRow(
                name=metric_words(metric, statistic),
                note=unit_words(metric),
                cells=(
                    whole.get((metric, statistic, ""), NOTHING),
                    *(whole.get((metric, statistic, host), NOTHING) for host in hosts),
                    *((spread(repeated[metric, statistic]),) if has_iterations else ()),
                ),
            )
            for metric, statistic in wanted
        ),
    )


def _reading_order(at: tuple[str, str]) -> tuple[int, int, str]:
    metric, statistic = at
    return _ORDER.index(metric), rank(statistic, STATISTICS), statistic


def _view_canaries(samples: Iterable[Sample]) -> tuple[CanaryRow, ...]:
    runs: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for sample in samples:
        if sample.iteration is None:
            of_place = runs.setdefault((sample.host, sample.metric), {})
            of_place.setdefault(sample.phase, {})[sample.statistic] = sample.value
    ordered = sorted(runs, key=lambda at: (at[0], _ORDER.index(at[1])))
    return tuple(
        _view_canary(host, metric, *(runs[host, metric].get(phase, {}) for phase in CANARY_PHASES))
        for host, metric in ordered
    )


def _view_canary(
    host: str, metric: str, before: Mapping[str, float], after: Mapping[str, float]
) -> CanaryRow:
    # A trial that failed may have no second run.
    comparable = before.get(_MEDIAN) and _MEDIAN in after
    return CanaryRow(
        host=host or NOTHING,
        name=heading(metric_name(metric)),
        direction=direction_words(metric),
        before=_view_run(before, metric),
        after=_view_run(after, metric),
        difference=percent(after[_MEDIAN] / before[_MEDIAN] - 1) if comparable else NOTHING,
    )


def _view_run(run: Mapping[str, float], metric: str) -> NamedValue:
    """Give the median of one run of a canary, noting between which ends its repetitions lay."""
    median = quantity(run[_MEDIAN], metric) if _MEDIAN in run else NOTHING
    ends = interval(run["min"], run["max"]) if run.keys() >= {"min", "max"} else ""
    return NamedValue(name=metric, value=median, note=f"between {ends}" if ends else "")
