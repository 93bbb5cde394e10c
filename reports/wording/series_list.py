"""Lists of series, by experiment, each in a line; and what the page of a series begins with.

A terminal has all of a verdict in one sentence. A page has room for most of it elsewhere, so it begins
with what a reader asks first: what moved, how sure that is and whether it matters.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.detection import words
from analysis.detection.detection import ChangePoint
from analysis.detection.verdict import Outcome
from analysis.judging.description import list_notes, say_basis
from analysis.judging.incidents import Cause, Incident
from analysis.judging.judgement import JudgedSeries
from analysis.orchestration.setting_words import NO_SETTINGS, ChangedSettings, name_settings
from perf.model.metrics import METRICS
from perf.model.results import SeriesKey, TrialHead, TrialId
from perf.model.rules import Detection
from reports.wording import links
from reports.wording.changes import name_watch, say_probability
from reports.wording.wording import (
    count,
    heading,
    metric_words,
    percent,
    plain_percent,
    rank,
    sentence,
)

_TOLD = (Outcome.REGRESSED, Outcome.IMPROVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """How a series stands, and what else is known of that; `more` is empty where there is nothing."""

    text: str
    more: str = ""


def lead_series(
    judged: JudgedSeries,
    incidents: Mapping[tuple[SeriesKey, int], Incident],
    settings: Detection,
    changed: ChangedSettings = NO_SETTINGS,
) -> Lead:
    """Say first of a regression or an improvement what moved; of all else, why nothing is claimed."""
    verdict = judged.verdict
    change = verdict.change if verdict.outcome in _TOLD else None
    incident = incidents.get((change.series.key, change.index)) if change else None
    if change is None or judged.series.key.metric not in settings.relevant_change:
        return Lead(
            text=sentence(say_basis(judged)),
            more=" ".join(map(sentence, list_notes(judged.verdict, settings=name_settings(changed)))),
        )
    return Lead(
        text=" ".join(filter(None, (_say_change(change, judged, settings), _say_cause(incident)))),
        more=" ".join(map(sentence, list_notes(verdict, name_watch, name_settings(changed)))),
    )


def _say_change(change: ChangePoint, judged: JudgedSeries, settings: Detection) -> str:
    key = change.series.key
    relevant = settings.relevant_change[key.metric]
    likely = say_probability(change, judged.change_points, settings)
    verb = "rose" if change.after > change.before else "fell"
    how_far = (
        "from zero"
        if math.isinf(change.relative_change)
        else f"by {percent(abs(change.relative_change)).lstrip('+±')}"
    )
    return heading(
        f"{metric_words(key.metric, key.statistic)} {verb} {how_far} {words.place(change)}. Confirmed "
        f"by {count(change.points_after, 'point')} ({likely}), above the "
        f"{plain_percent(relevant)} that matter."
    )


def _say_cause(incident: Incident | None) -> str:
    if incident and incident.cause is Cause.CONFIGURATION:
        return "No release lies between; the configuration changed there."
    return ""


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
    key = judged.series.key
    place = rank(key.metric, tuple(METRICS))
    return key.phase, key.operation, place, key.metric, key.statistic


def experiment_of(judged: JudgedSeries, by_id: Mapping[TrialId, TrialHead]) -> str:
    """Name the experiment of a series, or its system and workload if it has no point."""
    key, points = judged.series.key, judged.series.points
    if points:
        return by_id[points[-1].trial].experiment
    return f"{key.system}, {key.workload_name}"
