"""The export as JSON: one document of all that is judged, and one of points for each experiment. Pure.

Points are apart because they are many: a night rewrites those of the experiments that it measured. Each
kind of document has a JSON Schema (2020-12).
"""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field, TypeAdapter

from analysis.detection.detection import ChangePoint
from analysis.detection.series import Points, find_newest_occasion
from analysis.judging.description import say_judgement, say_reason
from analysis.judging.incidents import Incident
from analysis.judging.judgement import JudgedSeries, Judgement
from perf.model.columns import Occasion
from perf.model.metrics import DIAGNOSTICS, METRICS
from perf.model.results import SeriesKey, TrialHead, TrialId
from perf.model.scalars import STRICT
from reports.notifications.notification import stand
from reports.pages.feeds.tables import (
    FORMAT,
    ChangePointRow,
    IncidentRow,
    SeriesRow,
    VerdictRow,
)
from reports.wording.links import file_stem, incident_page, series_page, series_stem
from reports.wording.series_list import experiment_of

FOLDER = "data/export"
"""Relative to the root of the site."""
JSON_PATH = f"{FOLDER}/knickpoint.json"
SCHEMA_PATH = f"{FOLDER}/knickpoint.schema.json"
POINTS_SCHEMA_PATH = f"{FOLDER}/points.schema.json"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_KNOWN = METRICS | DIAGNOSTICS


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedJudgement:
    """What Knickpoint judged. `format` grows where a name, a type or a meaning changes."""

    __pydantic_config__ = STRICT
    format: Literal[1]
    measured_at: Annotated[
        datetime | None, Field(description="when the newest trial of a series began, in UTC")
    ]
    outcome: Annotated[
        Literal["regressed", "improved", "unchanged", "undecided", "invalid"],
        Field(description="the verdict over all series"),
    ]
    reason: Annotated[str, Field(description="the verdict over all in a sentence")]
    points: Annotated[
        tuple[str, ...], Field(description="files of the points, relative to the root of the site")
    ]
    series: tuple[SeriesRow, ...]
    verdicts: tuple[VerdictRow, ...]
    change_points: tuple[ChangePointRow, ...]
    incidents: tuple[IncidentRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointColumns:
    """Points of one series that follow each other, by column; `trials` are places in the document."""

    __pydantic_config__ = STRICT
    series: str
    first: Annotated[int, Field(description="position of the first of them among all of its points")]
    trials: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOfPoints:
    """A trial that measured some of the points. Order releases by their ordinal."""

    __pydantic_config__ = STRICT
    trial: str
    night: str
    purpose: str
    release: str
    release_line: str
    release_ordinal: int
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PointsDocument:
    """Points of the series of one experiment. `format` is of all files."""

    __pydantic_config__ = STRICT
    format: Literal[1]
    experiment: str
    trials: tuple[TrialOfPoints, ...]
    points: tuple[PointColumns, ...]


ChooseSpans: TypeAlias = Callable[[Points], Sequence[tuple[int, int]]]
"""Gives the points of a series that are wanted: begins, and ends that are not part of it."""
_DOCUMENT, _POINTS = TypeAdapter(ExportedJudgement), TypeAdapter(PointsDocument)


def group_series(
    judged: Sequence[JudgedSeries], by_id: Mapping[TrialId, TrialHead]
) -> Mapping[str, Sequence[JudgedSeries]]:
    """Return the series of each experiment, ascending by its name."""
    groups: defaultdict[str, list[JudgedSeries]] = defaultdict(list)
    for one in judged:
        groups[experiment_of(one, by_id)].append(one)
    return dict(sorted(groups.items()))


def points_path(experiment: str, kind: str) -> str:
    """Return the path of an experiment's points, `json` or `2026.parquet`, relative to the site."""
    return f"{FOLDER}/points/{file_stem(experiment)}.{kind}"


def build_document(judgement: Judgement, by_id: Mapping[TrialId, TrialHead]) -> ExportedJudgement:
    """Put what is judged into tables. Series are in the order of their keys."""
    judged = judgement.series
    homes = _find_homes(judgement.incidents)
    newest = find_newest_occasion(one.series for one in judged)
    return ExportedJudgement(
        format=1,
        measured_at=newest.started_at.astimezone(UTC) if newest else None,
        outcome=judgement.outcome.value,
        reason=say_judgement(judgement),
        points=tuple(points_path(name, "json") for name in group_series(judged, by_id)),
        series=tuple(_series_row(one, experiment_of(one, by_id)) for one in judged),
        verdicts=tuple(_verdict_row(one) for one in judged),
        change_points=tuple(
            _change_row(change, homes.get((one.series.key, change.index)))
            for one in judged
            for change in one.change_points
        ),
        incidents=tuple(map(_incident_row, judgement.incidents)),
    )


def newest_points(most: int) -> ChooseSpans:
    """Choose so many points of each series, the newest."""
    return lambda points: [(max(0, len(points) - most), len(points))]


def points_of_year(year: int) -> ChooseSpans:
    """Choose the points whose trials began in a year, in UTC."""

    def choose(points: Points) -> Sequence[tuple[int, int]]:
        is_wanted = points.columns.occasions.years[np.asarray(points.columns.places)] == year
        edges = map(int, np.flatnonzero(np.diff(is_wanted, prepend=False, append=False)))
        return [*zip(edges, edges, strict=True)]

    return choose


def build_points(
    experiment: str, judged: Sequence[JudgedSeries], choose: ChooseSpans
) -> PointsDocument:
    """Put chosen points of one experiment into columns; trials are by start and name."""
    chosen = [(one, span) for one in judged for span in choose(one.series.points)]
    # The series of an experiment share their trials.
    spans = {
        (one.series.points.trials, first, end): one.series.points[first:end]
        for one, (first, end) in chosen
    }
    found = {when.trial: when for points in spans.values() for when in points.occasions}
    trials = sorted(found.values(), key=lambda point: (point.started_at, point.trial))
    places = {point.trial: place for place, point in enumerate(trials)}

    @cache
    def find_places(of_series: tuple[TrialId, ...], first: int, end: int) -> tuple[int, ...]:
        return tuple(places[trial] for trial in of_series[first:end])

    return PointsDocument(
        format=1,
        experiment=experiment,
        trials=tuple(map(_trial_of, trials)),
        points=tuple(
            PointColumns(
                series=series_stem(one.series.key),
                first=first,
                trials=find_places(one.series.points.trials, first, end),
                values=tuple(one.series.points.values[first:end]),
            )
            for one, (first, end) in chosen
        ),
    )


def write_document(document: ExportedJudgement | PointsDocument) -> bytes:
    """Write a document as JSON, in one line; what is not finite is null."""
    if isinstance(document, ExportedJudgement):
        return _DOCUMENT.dump_json(document) + b"\n"
    return _POINTS.dump_json(document) + b"\n"


def write_schemas() -> Mapping[str, bytes]:
    """Write the JSON Schema of each kind of document, by its path."""
    return {
        path: _write_schema(adapter, title)
        for path, adapter, title in (
            (SCHEMA_PATH, _DOCUMENT, f"Knickpoint export, format {FORMAT}: what is judged"),
            (POINTS_SCHEMA_PATH, _POINTS, f"Knickpoint export, format {FORMAT}: points"),
        )
    }


def _write_schema(adapter: TypeAdapter[Any], title: str) -> bytes:
    schema = {"$schema": _DIALECT, **adapter.json_schema(mode="serialization"), "title": title}
    return json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n"


def _find_homes(incidents: Sequence[Incident]) -> Mapping[tuple[SeriesKey, int], Incident]:
    """Return the incident of each change; of one that is a part and a fix, where it is a part."""
    fixing = {(change.series.key, change.index): one for one in incidents for change in one.fixed_by}
    parts = {(change.series.key, change.index): one for one in incidents for change in one.changes}
    return fixing | parts


def _series_row(judged: JudgedSeries, experiment: str) -> SeriesRow:
    key = judged.series.key
    metric = _KNOWN.get(key.metric)
    return SeriesRow(
        **asdict(key),
        series=series_stem(key),
        unit=metric.unit if metric else "",
        better=metric.better.value if metric else "",
        experiment=experiment,
        points=len(judged.series.points),
        page=series_page(key),
    )


def _verdict_row(judged: JudgedSeries) -> VerdictRow:
    verdict = judged.verdict
    return VerdictRow(
        series=series_stem(judged.series.key),
        outcome=verdict.outcome.value,
        reason=say_reason(judged),
        relative_change=_finite(verdict.relative_change),
        p_value=_finite(verdict.p_value),
        is_significant=verdict.is_significant,
        is_relevant=verdict.is_relevant,
    )


def _trial_of(point: Occasion) -> TrialOfPoints:
    return TrialOfPoints(
        trial=point.trial,
        night=point.night,
        purpose=point.purpose.value,
        release=point.release.version,
        release_line=point.release.line,
        release_ordinal=point.release.ordinal,
        started_at=point.started_at.astimezone(UTC),
    )


def _change_row(change: ChangePoint, incident: Incident | None) -> ChangePointRow:
    is_part = incident is not None and change in incident.changes
    return ChangePointRow(
        series=series_stem(change.series.key),
        position=change.index,
        earliest=change.earliest,
        latest=change.latest,
        state=change.state.value,
        outcome="regressed" if change.outcome.value == "regressed" else "improved",
        before=change.before,
        after=change.after,
        relative_change=_finite(change.relative_change),
        p_value=change.p_value,
        points_after=change.points_after,
        detector=change.detector,
        last_before=change.last_before.trial,
        first_after=change.first_after.trial,
        incident=incident.name if incident else "",
        is_lead=incident is not None and change == incident.lead,
        is_mending=incident is not None and not is_part,
    )


def _incident_row(incident: Incident) -> IncidentRow:
    lead = incident.lead
    return IncidentRow(
        incident=incident.name,
        standing=stand(incident).value,
        outcome="regressed" if lead.outcome.value == "regressed" else "improved",
        cause=incident.cause.value,
        is_news=incident.is_news,
        series=series_stem(lead.series.key),
        position=lead.index,
        changes=len(incident.changes),
        triage=incident.triage.state.value if incident.triage else "",
        owner=incident.triage.owner if incident.triage else "",
        page=incident_page(incident.name),
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
