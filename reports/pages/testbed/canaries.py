"""Canaries over time, as small charts side by side: each host and each kind of fixed work once.

The same work is done before and after every trial whatever is measured, so the charts hold all
trials of a testbed, while each series holds those of one experiment.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median

from analysis.judging.drift import is_canary
from analysis.judging.judgement import JudgedSeries
from perf.model.metrics import CANARY_PHASES, DIAGNOSTICS
from reports.pages.testbed.chart import StripChart, draw_strip
from reports.wording.changes import TYPICAL
from reports.wording.wording import (
    count,
    definition_words,
    direction_words,
    heading,
    metric_name,
    percent,
    quantity,
    rank,
)

_WORTH = 20
"""Trials between which "now" and "before" are told apart: a fifth of them is now, at least three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryChart:
    """One canary of one host over time; `edges` are the values at its upper and lower edge."""

    title: str
    note: str
    text: str
    label: str
    edges: tuple[str, str]
    ends: tuple[str, str]
    chart: StripChart


def view_canary_charts(watched: Iterable[JudgedSeries]) -> tuple[CanaryChart, ...]:
    """Chart the medians of all canaries, by host and kind."""
    found: dict[tuple[str, str], dict[str, list[tuple[datetime, float]]]] = {}
    for one in watched:
        key = one.series.key
        if is_canary(key) and key.statistic == TYPICAL:
            of_phase = found.setdefault((key.host, key.metric), {}).setdefault(key.phase, [])
            of_phase += [(point.started_at, point.value) for point in one.series.points]
    known = tuple(DIAGNOSTICS)
    ordered = sorted(found, key=lambda at: (at[0], rank(at[1], known), at[1]))
    charts = (_view_chart(host, metric, found[host, metric]) for host, metric in ordered)
    return tuple(chart for chart in charts if chart is not None)


def _view_chart(
    host: str, metric: str, by_phase: Mapping[str, list[tuple[datetime, float]]]
) -> CanaryChart | None:
    lines = [sorted(by_phase.get(phase, [])) for phase in CANARY_PHASES]
    chart = draw_strip(lines)
    if chart is None:
        return None
    before, after = lines
    title = f"{heading(metric_name(metric))}{f', {host}' if host else ''}"
    text = _say_level(before or after, metric)
    return CanaryChart(
        title=title,
        note=f"{definition_words(metric)}; {direction_words(metric)}",
        text=text,
        label=f"{title} over time, {count(len(before), 'value')} before and "
        f"{count(len(after), 'value')} after trials. {text}",
        edges=(quantity(chart.top, metric), quantity(chart.bottom, metric)),
        ends=_say_ends(chart.first, chart.last),
        chart=chart,
    )


def _say_ends(first: datetime, last: datetime) -> tuple[str, str]:
    """Write both ends of a time: their days, or their minutes on one day."""
    one, other = first.astimezone(UTC), last.astimezone(UTC)
    if one.date() == other.date():
        return f"{one:%Y-%m-%d %H:%M}", f"{other:%H:%M} UTC"
    return f"{one:%Y-%m-%d}", f"{other:%Y-%m-%d}"


def _say_level(line: list[tuple[datetime, float]], metric: str) -> str:
    values = [value for _, value in line]
    newest = max(3, len(values) // 5)
    whole = median(values)
    if len(values) < _WORTH or not whole:
        return f"Median {quantity(whole, metric)}."
    now, earlier = median(values[-newest:]), median(values[:-newest])
    change = f" ({percent(now / earlier - 1)})" if earlier else ""
    was = f"before {quantity(earlier, metric)}{change}"
    return f"Median of the newest {newest:,} {quantity(now, metric)}, {was}."
