"""What is told elsewhere than on pages: the feed, the test report, badges and the export."""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from analysis.judgement import JudgedSeries
from reports.scene import Scene
from reports.site import Batch, SiteFile, batch_of
from reports.telling import feed, junit
from reports.telling.badges import render_badges
from reports.telling.export import (
    JSON_PATH,
    build_document,
    build_points,
    group_series,
    points_path,
    write_document,
    write_schemas,
)
from reports.telling.parquet import open_writer, parquet_path
from reports.telling.tables import TABLES
from reports.view.attention import (
    Attention,
    view_expired,
    view_incidents,
    view_left_out,
    view_missing,
    view_troubles,
)
from reports.view.links import series_stem
from reports.view.nights import find_tonight
from reports.view.notice import view_notices


def batches(scene: Scene) -> Iterator[Batch]:
    """Give all files for other programs."""
    heads, judgement = scene.heads, scene.judgement
    measured_at = max((one.started_at for one in heads.values()), default=None)
    told = feed.render_feed(view_notices(judgement, heads), measured_at=measured_at)
    verdicts = junit.render_junit(
        judgement, heads, troubles=list_troubles(scene), measured_at=measured_at
    )
    badges = (SiteFile(path, content) for path, content in render_badges(judgement, heads))
    schemas = (SiteFile(path, content) for path, content in write_schemas().items())
    yield batch_of(SiteFile(feed.PATH, told), SiteFile(junit.PATH, verdicts), *badges, *schemas)
    yield _batch_of_tables(scene)
    yield _batch_of_points(scene, group_series(judgement.series, heads))


def list_troubles(scene: Scene) -> tuple[Attention, ...]:
    """Tell of each trial of the newest night that gave no result, or that never came."""
    tonight = find_tonight(tuple(scene.heads.values()))
    night = tonight[0].night if tonight else ""
    plan = next((one for one in scene.nights if one.id == night), None)
    return (*view_troubles(tonight), *view_missing(plan, scene.heads))


def list_attention(scene: Scene) -> tuple[Attention, ...]:
    """Tell of what somebody should look at: what could not be measured, incidents, the rest."""
    news = (one for one in scene.judgement.incidents if one.is_news)
    return (
        *view_left_out(scene.left_out),
        *list_troubles(scene),
        *view_incidents(news, scene.heads),
        *view_expired(scene.catalog.triage, scene.now.date()),
    )


def _batch_of_tables(scene: Scene) -> Batch:
    paths = {table: parquet_path(table) for table in TABLES if table != "points"}

    def make(_: Collection[str]) -> Iterator[SiteFile]:
        document = write_document(build_document(scene.judgement, scene.heads))
        yield SiteFile(JSON_PATH, document)
        with open_writer() as writer:
            for table, path in paths.items():
                yield SiteFile(path, writer.write_table(table, document))

    return Batch(dict.fromkeys((JSON_PATH, *paths.values()), ""), make)


def _batch_of_points(scene: Scene, groups: Mapping[str, Sequence[JudgedSeries]]) -> Batch:
    versions = {
        path: _digest(scene, judged)
        for experiment, judged in groups.items()
        for path in (points_path(experiment, "json"), points_path(experiment, "parquet"))
    }
    return Batch(versions, partial(_make_points, groups))


def _make_points(
    groups: Mapping[str, Sequence[JudgedSeries]], paths: Collection[str]
) -> Iterator[SiteFile]:
    with open_writer() as writer:
        for experiment, judged in groups.items():
            as_json, as_parquet = (
                points_path(experiment, "json"),
                points_path(experiment, "parquet"),
            )
            if as_json in paths or as_parquet in paths:
                document = write_document(build_points(experiment, judged))
                yield SiteFile(as_json, document)
                yield SiteFile(as_parquet, writer.write_points(document))


def _digest(scene: Scene, judged: Sequence[JudgedSeries]) -> str:
    """Digest the points of some series; where a trial has no digest, nothing is sure."""
    content = hashlib.sha256()
    for one in judged:
        # The digest of a bundle covers the name of its trial.
        digests = [scene.digests.get(point.trial, "") for point in one.series.points]
        if "" in digests:
            return ""
        content.update("\n".join((series_stem(one.series.key), *digests, "")).encode())
    return content.hexdigest()
