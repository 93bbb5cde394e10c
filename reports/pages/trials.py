"""A page for each trial, with the data of its chart; many are read from the history at once."""

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from urllib.parse import quote

from perf.model import TrialHead, TrialId
from reports.rendering import render, to_script
from reports.scene import Scene
from reports.site import Batch, SiteFile
from reports.step_chart import draw_steps
from reports.suites import reproduce_command
from reports.view.links import series_page, trial_page
from reports.view.trial import BundleFile, SeriesLink, view_trial
from reports.view.wording import series_words

_AT_ONCE = 200
"""Trials that are read together: many against the cost of a query, few against memory."""


def batches(scene: Scene) -> Iterator[Batch]:
    """Give the pages of all trials."""
    links = _find_series(scene)
    heads = iter(scene.heads.values())
    while some := tuple(islice(heads, _AT_ONCE)):
        by_page = {trial_page(head.id): head for head in some}
        yield Batch(
            {page: _digest(scene, head, links.get(head.id, ())) for page, head in by_page.items()},
            partial(_make, scene, by_page, links),
        )


def _make(
    scene: Scene,
    by_page: Mapping[str, TrialHead],
    links: Mapping[TrialId, Sequence[SeriesLink]],
    paths: Collection[str],
) -> Iterator[SiteFile]:
    for trial in scene.archive.trials([by_page[path].id for path in paths]):
        view = view_trial(
            trial,
            series=links.get(trial.id, ()),
            files=list_bundle(scene.bundles, trial.id, scene.target) if scene.bundles else (),
            reproduce=reproduce_command(trial, scene.catalog, scene.nights),
            caveats=scene.caveats,
        )
        yield render("trial.html", view.page, page=view)
        if view.data:
            yield to_script(view.data, draw_steps(view.steps), of=view.page)


def _digest(scene: Scene, head: TrialHead, links: Sequence[SeriesLink]) -> str:
    """Digest all that the page of a trial is made of, without reading the trial."""
    parts = (
        scene.digests.get(head.id, ""),
        scene.caveats.get(head.testbed.name, "unknown"),
        reproduce_command(head, scene.catalog, scene.nights),
        str(scene.bundles is not None and (scene.bundles / head.id).is_dir()),
        *(link.page for link in links),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest() if parts[0] else ""


def _find_series(scene: Scene) -> Mapping[TrialId, Sequence[SeriesLink]]:
    found: dict[TrialId, list[SeriesLink]] = {}
    for judged in (*scene.judgement.series, *scene.judgement.watched):
        key = judged.series.key
        link = SeriesLink(title=series_words(key), page=series_page(key))
        for point in judged.series.points:
            found.setdefault(point.trial, []).append(link)
    return found


def list_bundle(bundles: Path, trial: TrialId, site: Path) -> tuple[BundleFile, ...]:
    """Give the files of a trial's bundle, with links from the trial pages of `site`; none if gone."""
    place = bundles / trial
    page = (site / trial_page(trial)).parent.resolve()
    return tuple(
        BundleFile(
            name=path.relative_to(place).as_posix(),
            href=quote(Path(os.path.relpath(path.resolve(), page)).as_posix()),
            length=path.stat().st_size,
        )
        for path in sorted(place.rglob("*"))
        if path.is_file()
    )
