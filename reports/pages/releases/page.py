"""The list of all releases, a page for each, and what compares any two of them."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial

from analysis.judging.judgement import JudgedSeries
from perf.model.results import TrialHead
from reports.pages.releases import compare_page as compare
from reports.pages.releases.medians import Medians, Variant, read_medians
from reports.pages.releases.view import (
    Measuring,
    find_releases,
    list_releases,
    view_release,
    view_release_incidents,
)
from reports.site.context import SiteContext
from reports.site.rendering import render
from reports.site.writing import Batch, SiteFile
from reports.wording.links import RELEASES_PAGE, release_page


def batches(scene: SiteContext) -> Iterator[Batch]:
    """Give the list and the pages of all releases, and the page Compare."""
    medians = read_medians(scene.heads.values(), (*scene.judgement.series, *scene.judgement.watched))
    releases = find_releases(scene.heads.values(), medians, scene.judgement.incidents)
    yield from compare.batches(scene, medians)
    yield Batch({RELEASES_PAGE: ""}, partial(_make_list, releases, medians))
    noise = _digest_noise(medians.series.values())
    for one in releases:
        path = release_page(one.release.system, one.release.version)
        yield Batch(
            {path: _digest_release(scene, one, medians, noise)},
            partial(_make_release, scene, one, medians),
        )


def _make_list(
    releases: tuple[Measuring, ...], medians: Medians, _: Collection[str]
) -> Iterator[SiteFile]:
    lines = list_releases(releases, medians)
    yield render("releases.html", RELEASES_PAGE, lines=lines, count=len(releases))


def _make_release(
    scene: SiteContext, one: Measuring, medians: Medians, _: Collection[str]
) -> Iterator[SiteFile]:
    page = view_release(one, medians, scene.catalog.detection, scene.heads, scene.caveats)
    yield render("release.html", page.page, page=page)


def _digest_release(
    scene: SiteContext, one: Measuring, medians: Medians, noise: Mapping[tuple[str, ...], str]
) -> str:
    """Digest all that the page of a release is made of, without comparing anything."""
    before = [medians.before.get(variant.id) for variant in one.variants]
    variants: list[Variant] = [*one.variants, *filter(None, before)]
    trials = dict.fromkeys((*one.trials, *(trial for each in variants for trial in each.trials)))
    contents = [scene.digests.get(trial.id, "") for trial in trials]
    if not all(contents):
        return ""
    parts = (
        *contents,
        *(variant.id for variant in variants),
        *sorted({noise.get(variant.branch, "") for variant in variants}),
        *_list_caveats(one.trials, scene.caveats),
        repr(view_release_incidents(one, scene.heads)),
        repr(scene.catalog.detection),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _list_caveats(trials: Iterable[TrialHead], caveats: Mapping[str, str]) -> list[str]:
    return [caveats.get(name, "unknown") for name in sorted({one.testbed.name for one in trials})]


def _digest_noise(series: Iterable[JudgedSeries]) -> Mapping[tuple[str, ...], str]:
    """Digest by branch what is known of the noise, which each night moves a little."""
    found: dict[tuple[str, ...], list[str]] = {}
    for one in series:
        key = one.series.key
        found.setdefault((key.system, key.line, key.config), []).append(repr((key, one.noise)))
    return {
        branch: hashlib.sha256("".join(parts).encode()).hexdigest() for branch, parts in found.items()
    }
