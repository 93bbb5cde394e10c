"""Pages of old trials that are of no night, and what a host shows for an address that is gone."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from perf.model.results import TrialHead
from reports.pages.nights.view import count_statuses
from reports.pages.old_trials.not_found import render_not_found
from reports.pages.old_trials.view import (
    Surroundings,
    describe,
    find_surroundings,
    group_old,
    list_shared,
    read_old_trials,
    samples_command,
)
from reports.site.context import SiteContext
from reports.site.old_trials import name_group
from reports.site.rendering import render
from reports.site.writing import Batch, LazyBatches, SiteFile, batch_of, digest, in_parts
from reports.wording.links import comparison_page

_AT_ONCE = 20
"""Pages whose trials are read together."""


def batches(context: SiteContext) -> Iterator[Batch | LazyBatches]:
    """Yield the page for addresses that are gone, then those of old trials that no night has."""
    yield batch_of(render_not_found())
    around = find_surroundings(context)
    compared = {comparison_page(one.id) for one in context.comparisons}
    others = ((page, own) for page, own in group_old(context).items() if not own[0].night)
    yield from in_parts(others, _AT_ONCE, partial(_batches_of_some, around, compared))


def _batches_of_some(
    around: Surroundings, compared: Collection[str], some: Iterable[tuple[str, Sequence[TrialHead]]]
) -> Iterator[Batch]:
    by_page = dict(some)
    versions = {page: _digest(around, own, compared) for page, own in by_page.items()}
    yield Batch(versions, partial(_make, around, by_page, compared))


def _digest(around: Surroundings, own: Sequence[TrialHead], compared: Collection[str]) -> str:
    bundles = around.context.digest_of(head.id for head in own)
    return digest((bundles, _find_comparison(own, compared), *describe(around, own))) if bundles else ""


def _find_comparison(own: Sequence[TrialHead], compared: Collection[str]) -> str:
    page = comparison_page(name_group(own[0]))
    return page if page in compared else ""


def _make(
    around: Surroundings,
    some: Mapping[str, Sequence[TrialHead]],
    compared: Collection[str],
    paths: Collection[str],
) -> Iterator[SiteFile]:
    known = read_old_trials(around, [head for path in paths for head in some[path]])
    for path in sorted(paths):
        own = some[path]
        trials = [known[head.id] for head in own]
        yield render(
            "group.html",
            path,
            name=name_group(own[0]),
            trials=trials,
            statuses=count_statuses(own),
            shared=list_shared(trials),
            samples=samples_command(name_group(own[0])),
            comparison=_find_comparison(own, compared),
        )
