"""A page for each series, with the data of its chart."""

from collections.abc import Collection, Iterator, Mapping
from functools import partial

from analysis.incidents import Incident
from analysis.judgement import JudgedSeries
from perf.model import SeriesKey
from reports.charts import draw_series
from reports.rendering import render, to_script
from reports.scene import Scene
from reports.site import Batch, SiteFile
from reports.view.changes import by_change
from reports.view.links import data_path, series_page, series_stem
from reports.view.series import WATCHES, view_series


def batches(scene: Scene) -> Iterator[Batch]:
    """Give the pages of all series: the judged ones, then those that watch the testbed."""
    incidents = by_change(scene.judgement.incidents)
    for all_of_them, watches in ((scene.judgement.series, ""), (scene.judgement.watched, WATCHES)):
        for one in all_of_them:
            key = one.series.key
            yield Batch(
                {series_page(key): "", data_path(series_stem(key)): ""},
                partial(_make, scene, one, incidents, watches),
            )


def _make(
    scene: Scene,
    judged: JudgedSeries,
    incidents: Mapping[tuple[SeriesKey, int], Incident],
    watches: str,
    _: Collection[str],
) -> Iterator[SiteFile]:
    view = view_series(
        judged,
        scene.heads,
        settings=scene.catalog.detection,
        incidents=incidents,
        bounds=scene.bounds,
        caveats=scene.caveats,
        watches=watches,
    )
    yield render("series.html", view.page, page=view)
    yield to_script(view.data, draw_series(view, "../"))
