"""The page that compares any two variants, and the data of each that its script loads."""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from perf.history.distributions import Recording
from perf.model.results import TrialHead, TrialId
from reports.pages.releases.compare_view import tell_cells, tell_index, view_compare
from reports.pages.releases.medians import Medians, Variant, newest_trials
from reports.pages.releases.times import KINDS, tell_trial
from reports.site.context import SiteContext
from reports.site.rendering import render, to_script
from reports.site.writing import Batch, SiteFile
from reports.wording.links import COMPARE_PAGE, data_path, times_data, variant_data
from reports.wording.reproducing import find_suite

_WITH_TIMES = 20
"""Variants of a branch whose response times are shown, the newest: decoding takes its time."""
_AT_ONCE = 20
"""Trials whose histograms are read together: many against the cost of a query, few against memory."""


def batches(scene: SiteContext, medians: Medians) -> Iterator[Batch]:
    """Give the page Compare with all its data."""
    page = view_compare(medians, scene.catalog.detection)
    yield Batch(
        {COMPARE_PAGE: "", data_path(page.index): ""},
        lambda _: (
            render("compare.html", page.page, page=page),
            to_script(page.index, _tell_index(scene, medians)),
        ),
    )
    with_times = {trial.id: trial for trial in _find_newest(medians)}
    series = hashlib.sha256(repr(tuple(medians.series)).encode()).hexdigest()
    for variant in medians.variants.values():
        yield Batch(
            {data_path(variant_data(variant.id)): _digest(scene, variant, series, with_times)},
            partial(_make_variant, medians, variant, tuple(with_times)),
        )
    trials = iter(with_times.values())
    while some := tuple(islice(trials, _AT_ONCE)):
        by_path = {data_path(times_data(trial.id)): trial for trial in some}
        yield Batch(
            {path: scene.digests.get(trial.id, "") for path, trial in by_path.items()},
            partial(_make_times, scene, by_path),
        )


def _tell_index(scene: SiteContext, medians: Medians) -> Mapping[str, object]:
    newest = {
        experiment: trial
        for variant in medians.variants.values()
        for experiment, trial in newest_trials(variant).items()
    }
    suites = {
        experiment: find_suite(trial, scene.catalog, scene.nights)
        for experiment, trial in newest.items()
    }
    return tell_index(medians, scene.catalog.detection, scene.comparisons, suites)


def _find_newest(medians: Medians) -> Iterator[TrialHead]:
    """Give the newest trial of each experiment of the newest variants of each branch."""
    branches: defaultdict[tuple[str, str, str], list[Variant]] = defaultdict(list)
    for variant in medians.variants.values():
        branches[variant.branch].append(variant)
    for variants in branches.values():
        for variant in variants[-_WITH_TIMES:]:
            yield from newest_trials(variant).values()


def _digest(scene: SiteContext, variant: Variant, series: str, with_times: Collection[TrialId]) -> str:
    """Digest all that the cells of a variant are made of: its trials, and which series there are."""
    contents = [scene.digests.get(trial.id, "") for trial in variant.trials]
    shown = [trial.id for trial in newest_trials(variant).values() if trial.id in with_times]
    if not all(contents):
        return ""
    return hashlib.sha256("\0".join((series, *contents, "", *shown)).encode()).hexdigest()


def _make_variant(
    medians: Medians, variant: Variant, with_times: Sequence[TrialId], _: Collection[str]
) -> Iterator[SiteFile]:
    yield to_script(variant_data(variant.id), tell_cells(variant, medians, with_times))


def _make_times(
    scene: SiteContext, by_path: Mapping[str, TrialHead], paths: Collection[str]
) -> Iterator[SiteFile]:
    wanted = [by_path[path].id for path in paths]
    found: defaultdict[TrialId, list[Recording]] = defaultdict(list)
    for recording in scene.archive.recordings(wanted, *KINDS):
        found[recording.trial].append(recording)
    for trial in scene.archive.trials(wanted):
        yield to_script(times_data(trial.id), tell_trial(trial, found[trial.id]))
