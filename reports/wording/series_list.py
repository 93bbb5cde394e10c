"""Lists of series, by experiment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.judging.judgement import JudgedSeries
from perf.model.metrics import METRICS
from perf.model.results import SeriesKey, TrialHead, TrialId
from reports.wording import links


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentGroup:
    """The series of one experiment that have all but phase, operation and metric in common."""

    name: str
    anchor: str
    description: str
    series: tuple[JudgedSeries, ...]


def group_series(
    series: Sequence[JudgedSeries], by_id: Mapping[TrialId, TrialHead]
) -> tuple[ExperimentGroup, ...]:
    """Group series by experiment and what its series have in common."""
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
            series=tuple(sorted(members, key=_reading_order)),
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
