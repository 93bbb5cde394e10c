"""The list of nights, and a page for each: that of an old night stays as it was made."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from itertools import islice

from perf.model.results import TrialHead
from reports.pages.nights.view import MeasuredNight, Neighbours, group_nights, view_night, view_nights
from reports.site.context import SiteContext
from reports.site.rendering import render
from reports.site.writing import Batch, LazyBatches, SiteFile, batch_of
from reports.wording.links import NIGHTS_PAGE
from reports.wording.wording import join_caveats

_AT_ONCE = 20
"""Nights whose trials are read together: many against the cost of a query, few against memory."""


def batches(scene: SiteContext) -> Iterator[Batch | LazyBatches]:
    """Give the list of all nights, then their pages."""
    heads = sorted(scene.heads.values(), key=lambda head: (head.started_at, head.id))
    nights = group_nights(heads, scene.nights)
    page = view_nights(nights, scene.judgement.series, scene.heads)
    yield batch_of(render("nights.html", NIGHTS_PAGE, page=page))
    rows = page.rows[::-1]
    all_of_them = iter(zip(nights, (None, *rows), rows, (*rows[1:], None), strict=False))
    while some := tuple(islice(all_of_them, _AT_ONCE)):
        by_page = {
            own.page: (night, Neighbours(before, own, after)) for night, before, own, after in some
        }
        yield LazyBatches(len(by_page), partial(_batches_of_some, scene, by_page))


def _batches_of_some(
    scene: SiteContext, by_page: Mapping[str, tuple[MeasuredNight[TrialHead], Neighbours]]
) -> Iterator[Batch]:
    yield Batch(
        {page: _digest(scene, *one) for page, one in by_page.items()}, partial(_make, scene, by_page)
    )


def _make(
    scene: SiteContext,
    by_page: Mapping[str, tuple[MeasuredNight[TrialHead], Neighbours]],
    paths: Collection[str],
) -> Iterator[SiteFile]:
    wanted = [by_page[path] for path in sorted(paths)]
    ids = [head.id for night, _ in wanted for head in night.trials]
    known = {trial.id: trial for trial in scene.archive.trials(ids)}
    for night, around in wanted:
        trials = [known[head.id] for head in night.trials]
        page = view_night(night, trials, around, scene.heads, scene.caveats)
        yield render("night.html", page.page, page=page)


def _digest(scene: SiteContext, night: MeasuredNight[TrialHead], around: Neighbours) -> str:
    """Digest all that the page of a night is made of, without reading its trials."""
    bundles = [scene.digests.get(head.id, "") for head in night.trials]
    if not all(bundles):
        return ""
    # The lines of its trials are of nothing but what their bundles hold.
    outline = view_night(night, (), around, scene.heads, {})
    caveat = join_caveats({head.testbed.name for head in night.trials}, scene.caveats)
    return hashlib.sha256("\0".join((repr(outline), caveat, *bundles)).encode()).hexdigest()
