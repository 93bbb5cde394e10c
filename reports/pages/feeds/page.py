"""What is reported elsewhere than on pages: the feed, the test report, badges and the export."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from analysis.detection.series import Points
from analysis.judging.judgement import JudgedSeries
from perf.model.results import TrialId
from reports.notifications.notification import view_notifications
from reports.pages.feeds import feed, junit
from reports.pages.feeds.badges import render_badges
from reports.pages.feeds.export import (
    JSON_PATH,
    ChooseSpans,
    build_document,
    build_points,
    group_series,
    newest_points,
    points_of_year,
    points_path,
    write_document,
    write_schemas,
)
from reports.pages.feeds.parquet import open_writer, parquet_path
from reports.pages.feeds.tables import TABLES
from reports.pages.nights.view import find_current_night
from reports.site.context import SiteContext
from reports.site.writing import Batch, LazyBatches, SiteFile, batch_of, digest, in_parts
from reports.wording.attention import (
    Attention,
    view_expired,
    view_incidents,
    view_left_out,
    view_missing,
    view_troubles,
)
from reports.wording.links import series_stem

_MOST_IN_JSON = 200
"""Points of a series in JSON, the newest, which is ten times as large as Parquet: that has all."""
_KINDS = 2
"""Files of the points of an experiment that a night makes."""
_AT_ONCE = 3
"""Experiments whose points are written by one writer: to open it takes as long as a file."""


def batches(context: SiteContext) -> Iterator[Batch | LazyBatches]:
    """Yield all files for other programs."""
    heads, judgement = context.heads, context.judgement
    yield _batch_of_tables(context)
    groups = group_series(judgement.series, heads)
    yield from in_parts(groups.items(), _AT_ONCE, partial(_batches_of_points, context), files=_KINDS)
    yield LazyBatches(len(groups), partial(_batches_of_reported, context))


def _batches_of_reported(context: SiteContext) -> Iterator[Batch]:
    heads, judgement = context.heads, context.judgement
    measured_at = max((one.started_at for one in heads.values()), default=None)
    reported = feed.render_feed(
        view_notifications(judgement, heads, context.settings), measured_at=measured_at
    )
    verdicts = junit.render_junit(
        judgement,
        heads,
        troubles=list_troubles(context),
        measured_at=measured_at,
        settings=context.settings,
    )
    badges = (SiteFile(path, content) for path, content in render_badges(judgement, heads))
    schemas = (SiteFile(path, content) for path, content in write_schemas().items())
    yield batch_of(SiteFile(feed.PATH, reported), SiteFile(junit.PATH, verdicts), *badges, *schemas)


def list_troubles(context: SiteContext) -> tuple[Attention, ...]:
    """Describe of each trial of the newest night that gave no result, or that never came."""
    tonight = find_current_night(tuple(context.heads.values()))
    night = tonight[0].night if tonight else ""
    plan = next((one for one in context.nights if one.id == night), None)
    return (*view_troubles(tonight), *view_missing(plan, context.heads))


def list_attention(context: SiteContext) -> tuple[Attention, ...]:
    """Describe of what somebody should look at: what could not be measured, incidents, the rest."""
    news = (one for one in context.judgement.incidents if one.is_news)
    return (
        *view_left_out(context.left_out),
        *list_troubles(context),
        *view_incidents(news, context.heads, context.settings),
        *view_expired(context.catalog.triage, context.now.date()),
    )


def _batch_of_tables(context: SiteContext) -> Batch:
    paths = {table: parquet_path(table) for table in TABLES if table != "points"}

    def make(_: Collection[str]) -> Iterator[SiteFile]:
        document = write_document(build_document(context.judgement, context.heads))
        yield SiteFile(JSON_PATH, document)
        with open_writer() as writer:
            for table, path in paths.items():
                yield SiteFile(path, writer.write_table(table, document))

    return Batch(dict.fromkeys((JSON_PATH, *paths.values()), ""), make)


def _batches_of_points(
    context: SiteContext, some: Iterable[tuple[str, Sequence[JudgedSeries]]]
) -> Iterator[Batch]:
    """Yield the points of some experiments: those of years that are over stay as they are."""
    found: dict[str, tuple[str, Sequence[JudgedSeries], ChooseSpans]] = {}
    versions = {}
    for experiment, judged in some:
        shared = _group_by_trials(judged)
        chosen = {points_path(experiment, "json"): newest_points(_MOST_IN_JSON)}
        for year in _find_years(shared) or {context.now.year}:
            chosen[points_path(experiment, f"{year}.parquet")] = points_of_year(year)
        for path, choose in chosen.items():
            found[path] = experiment, judged, choose
            versions[path] = _digest(context, shared, choose)

    def make(paths: Collection[str]) -> Iterator[SiteFile]:
        with open_writer() as writer:
            for path in sorted(paths):
                points = build_points(*found[path])
                write = write_document if path.endswith(".json") else writer.write_points
                yield SiteFile(path, write(points))

    yield Batch(versions, make)


def _group_by_trials(judged: Iterable[JudgedSeries]) -> Sequence[tuple[Points, Sequence[str]]]:
    """Return the series that share their trials, as most do: the points of one, the names of all."""
    groups: dict[tuple[TrialId, ...], tuple[Points, list[str]]] = {}
    for one in judged:
        points = one.series.points
        groups.setdefault(points.trials, (points, []))[1].append(series_stem(one.series.key))
    return [*groups.values()]


def _find_years(shared: Iterable[tuple[Points, Sequence[str]]]) -> set[int]:
    """Return the years in which points were measured."""
    of_points = (
        points.columns.occasions.years[np.asarray(points.columns.places)] for points, _ in shared
    )
    return {year for years in of_points for year in np.unique(years).tolist()}


def _digest(
    context: SiteContext, shared: Iterable[tuple[Points, Sequence[str]]], choose: ChooseSpans
) -> str:
    """Digest the chosen points, and where in their series they are; empty where one has no digest."""
    parts: list[str] = []
    for points, names in shared:
        spans = choose(points)
        measured = [context.digest_of(points.trials[first:end]) for first, end in spans]
        if not all(measured):
            return ""
        parts.append(repr((names, spans, measured)))
    return digest(parts)
