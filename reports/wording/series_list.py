"""Lists of series, by experiment: each in a line, with its verdict and how small a change it shows."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from analysis.judging.judgement import JudgedSeries
from perf.model.metrics import METRICS
from perf.model.results import SeriesKey, TrialHead, TrialId
from reports.wording import links
from reports.wording.leading import view_reason
from reports.wording.sensitivity import view_sensitivity
from reports.wording.wording import (
    NOTHING,
    OUTCOME_BADGES,
    Badge,
    count,
    direction_words,
    percent,
    quantity,
    series_words,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesLine:
    """One series in a line."""

    judged: JudgedSeries
    title: str
    page: str
    direction: str
    value: str
    release: str
    verdict: Badge
    change: str
    detectable: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentGroup:
    """The series of one experiment."""

    name: str
    anchor: str
    description: str
    rows: tuple[SeriesLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllSeriesView:
    """All that the page of all series shows."""

    summary: str
    groups: tuple[ExperimentGroup, ...]
    caveats: tuple[str, ...]


def view_all(groups: Sequence[ExperimentGroup], caveats: Sequence[str]) -> AllSeriesView:
    """Put the page of all series into words.

    What series of an experiment have in common is said where it tells two groups of one name apart.
    """
    series = sum(len(group.rows) for group in groups)
    names = Counter(group.name for group in groups)
    return AllSeriesView(
        summary=f"{count(series, 'series', 'series')} of {count(len(names), 'experiment')}.",
        groups=tuple(
            group if names[group.name] > 1 else replace(group, description="") for group in groups
        ),
        caveats=tuple(caveats),
    )


def group_series(
    series: Sequence[JudgedSeries],
    by_id: Mapping[TrialId, TrialHead],
    view_row: Callable[[JudgedSeries], SeriesLine] | None = None,
) -> tuple[ExperimentGroup, ...]:
    """Put series into lines, by experiment and what its series have in common."""
    show = view_row or view_series_row
    groups: dict[tuple[str, str], list[JudgedSeries]] = {}
    # A series without a point does not know its experiment, but another of the same form may.
    names = {
        _shape(judged.series.key): experiment_of(judged, by_id)
        for judged in series
        if judged.series.points
    }
    for judged in series:
        shape = _shape(judged.series.key)
        known = None if judged.series.points else names.get(shape)
        groups.setdefault((known or experiment_of(judged, by_id), shape), []).append(judged)
    return tuple(
        ExperimentGroup(
            name=name,
            anchor=links.experiment_anchor(name, shape),
            description=shape,
            rows=tuple(show(judged) for judged in sorted(members, key=_reading_order)),
        )
        for (name, shape), members in sorted(groups.items())
    )


def _shape(key: SeriesKey) -> str:
    return (
        f"{key.system} line {key.line}, topology {key.topology}, config {key.config}, "
        f"workload {key.workload}, {key.engine} engine, testbed class {key.testbed_class}"
    )


def _reading_order(judged: JudgedSeries) -> tuple[object, ...]:
    key, metrics = judged.series.key, tuple(METRICS)
    known = metrics.index(key.metric) if key.metric in metrics else len(metrics)
    return key.phase, key.operation, known, key.metric, key.statistic


def experiment_of(judged: JudgedSeries, by_id: Mapping[TrialId, TrialHead]) -> str:
    """Name the experiment of a series, or its system and workload if it has no point."""
    key, points = judged.series.key, judged.series.points
    if points:
        return by_id[points[-1].trial].experiment
    return f"{key.system}, {key.workload.partition('@')[0]}"


def view_series_row(judged: JudgedSeries) -> SeriesLine:
    """Put a series into a line."""
    key, points = judged.series.key, judged.series.points
    return SeriesLine(
        judged=judged,
        title=series_words(key),
        page=links.series_page(key),
        direction=direction_words(key.metric),
        value=quantity(points[-1].value, key.metric) if points else NOTHING,
        release=points[-1].release.version if points else NOTHING,
        verdict=OUTCOME_BADGES[judged.verdict.outcome],
        change=percent(judged.verdict.relative_change)
        if judged.verdict.relative_change is not None
        else NOTHING,
        detectable=view_sensitivity(judged).brief,
        reason=view_reason(judged),
    )
