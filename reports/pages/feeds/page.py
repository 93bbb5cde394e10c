"""What is reported elsewhere than on pages: the feed, the test report, badges and the export."""

from collections.abc import Collection, Iterator, Sequence
from functools import partial

from analysis.judging.judgement import JudgedSeries
from reports.notifications.notification import view_notifications
from reports.pages.feeds import feed, junit
from reports.pages.feeds.badges import render_badges
from reports.pages.feeds.export import (
    JSON_PATH,
    build_document,
    build_points,
    group_series,
    points_path,
    write_document,
    write_schemas,
)
from reports.pages.feeds.parquet import open_writer, parquet_path
from reports.pages.feeds.tables import TABLES
from reports.pages.nights.view import find_current_night
from reports.site.context import SiteContext, digest
from reports.site.writing import Batch, LazyBatches, SiteFile, batch_of
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
"""Files of the points of an experiment."""


def batches(context: SiteContext) -> Iterator[Batch | LazyBatches]:
    """Yield all files for other programs."""
    heads, judgement = context.heads, context.judgement
    yield _batch_of_tables(context)
    groups = group_series(judgement.series, heads)
    yield from (
        LazyBatches(_KINDS, partial(_batches_of_points, context, *group)) for group in groups.items()
    )
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
    context: SiteContext, experiment: str, judged: Sequence[JudgedSeries]
) -> Iterator[Batch]:
    as_json, as_parquet = points_path(experiment, "json"), points_path(experiment, "parquet")

    def make(_: Collection[str]) -> Iterator[SiteFile]:
        newest = build_points(experiment, judged, _MOST_IN_JSON)
        yield SiteFile(as_json, write_document(newest))
        with open_writer() as writer:
            yield SiteFile(as_parquet, writer.write_points(build_points(experiment, judged)))

    yield Batch(dict.fromkeys((as_json, as_parquet), _digest(context, judged)), make)


def _digest(context: SiteContext, judged: Sequence[JudgedSeries]) -> str:
    """Digest the points of some series, most of which share their trials."""
    of_trials = {
        trials: context.digest_of(trials) for trials in {one.series.points.trials for one in judged}
    }
    if not all(of_trials.values()):
        return ""
    return digest(
        f"{series_stem(one.series.key)} {of_trials[one.series.points.trials]}" for one in judged
    )
