"""The page that compares any two variants, and the data of each that its script combines."""

import shlex
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import islice
from typing import Any

from analysis.comparing.results import ComparisonResult
from analysis.detection.effects import MEDIAN_COST
from analysis.judging.description import ECHOES
from perf.history.distributions import Recording
from perf.model.metrics import METRICS, Better
from perf.model.results import SeriesKey, TrialHead, TrialId
from perf.model.rules import Detection
from reports.pages.releases.heatmap import (
    ALIEN_BADGE,
    ECHO_BADGE,
    LEGEND,
    MISSING_BADGE,
    STANDING_BADGES,
    HeatPair,
    change_note,
    column_order,
    group_words,
    loosely,
    place_of,
    row_words,
    view_heatmap,
)
from reports.pages.releases.medians import (
    CONFIDENCE,
    Medians,
    Variant,
    newest_trials,
    quantile_of,
    shared_part,
    variant_id,
)
from reports.pages.trial.page import find_newest
from reports.pages.trial.spectrum import draw_course, draw_spectrum
from reports.pages.trial.times import KINDS, describe_curves
from reports.site.changed_settings import name_changed_settings
from reports.site.context import SiteContext
from reports.site.rendering import render, to_script
from reports.site.writing import Batch, SiteFile, digest
from reports.wording import links
from reports.wording.advice import find_name
from reports.wording.links import COMPARE_PAGE, data_path, times_data, variant_data
from reports.wording.markdown import clean
from reports.wording.measures import change_words
from reports.wording.reproducing import Contents, find_suites, read_contents
from reports.wording.summary import summarize_result
from reports.wording.wording import (
    direction_words,
    heading,
    metric_words,
    moment,
    named,
    unit_words,
)

_INDEX = "compare"
"""The name of the data that the page begins with."""
_WITH_TIMES = 20
"""Variants of a branch whose response times are shown, the newest: decoding takes its time."""
_AT_ONCE = 20
"""Trials whose histograms are read together: many against the cost of a query, few against memory."""
_BADGES = {
    **{standing.value: badge for standing, badge in STANDING_BADGES.items()},
    "missing": MISSING_BADGE,
    "alien": ALIEN_BADGE,
    "echo": ECHO_BADGE,
}
_WORDS: Mapping[str, str | Sequence[str]] = {
    "trial": "trial",
    "trials": "trials",
    "to": "to",
    "noBound": "no bound",
    "largest": "largest:",
    "echoes": tuple(f"more only {words}" for words in ECHOES),
    "operation": "Operation",
    "operations": "Operations",
    "slowest": "Slowest",
    "moved": "What moved, the largest first",
    "movedColumns": ("Measure", "Verdict", "A → B", "Change", "Interval"),
    "since": "of",
    "settings": "Changed settings:",
    "title": "Compare",
    "configChange": "before → after the change of config",
    "unknown": "Not in this history (any more):",
    "instead": "This is shown instead:",
    "same": "A and B are the same. Choose another for one of them.",
    "disjoint": (
        "Nothing can be compared: A and B share no measure. That needs the same workload, on the same "
        "topology and class of testbed."
    ),
    "measured": "measured",
    "command": "For a verdict, let both take turns on the same hosts:",
    "otherSystem": "Two systems take no turns against each other: what differs may be all of them.",
    "sameName": (
        "A and B are two versions of one config; only the newer still exists. For a verdict, keep the "
        "older one as a config of its own, then use knickpoint compare."
    ),
    "noTurns": "No experiment measures both sides, so none has a command that lets them take turns.",
    "noTrials": "No experiment was measured on both sides, so no response times can be shown.",
    "noTimes": "Neither side has histograms of the same operation, so there are no response times.",
    "tooOld": (
        "The response times of older releases are not part of the site; the history has them: "
        "knickpoint history percentile"
    ),
    "noCourse": (
        "How iterations went second by second is no longer kept of every trial shown here: its history "
        "has one histogram for each iteration (knickpoint history prune)."
    ),
    "levels": "Response times in ms, by percentile",
    "levelColumns": ("Percentile", "A", "B", "Difference"),
    "diagnostics": "What hosts and clients did",
    "diagnosticColumns": ("Phase", "Quantity", "Unit", "A", "B"),
    "facts": "What else differed before these two trials",
    "factColumns": ("Fact", "Host", "A", "B"),
    "noFacts": "Nothing that is recorded of the hosts differed before these two trials.",
}


def batches(context: SiteContext, medians: Medians) -> Iterator[Batch]:
    """Yield the page Compare with all its data."""
    yield Batch(
        {COMPARE_PAGE: "", data_path(_INDEX): ""},
        lambda _: (
            _render_compare(medians, context.catalog.detection),
            to_script(_INDEX, _describe_index(context, medians)),
        ),
    )
    with_times = {trial.id: trial for trial in _find_newest(medians)}
    series = digest(map(repr, medians.series))
    for variant in medians.variants.values():
        yield Batch(
            {
                data_path(variant_data(variant.id)): _digest(
                    context, variant, medians, (series, with_times)
                )
            },
            partial(_make_variant, medians, variant, tuple(with_times), context.catalog.detection),
        )
    # The newest have curves on their own pages, which make the same data.
    newest = find_newest(context.heads)
    trials = iter([trial for name, trial in with_times.items() if name not in newest])
    while some := tuple(islice(trials, _AT_ONCE)):
        by_path = {data_path(times_data(trial.id)): trial for trial in some}
        yield Batch(
            {path: context.digests.get(trial.id, "") for path, trial in by_path.items()},
            partial(_make_times, context, by_path),
        )


def _render_compare(medians: Medians, settings: Detection) -> SiteFile:
    """Return the page before anything is chosen: the newest of each line against the one before."""
    pairs = [
        HeatPair(
            before=medians.measured[before.id],
            after=medians.measured[variant.id],
            title=_pair_words(before, variant),
            system=variant.release.system,
        )
        for variant in medians.newest()
        if (before := medians.before.get(variant.id))
    ]
    groups: dict[str, list[Variant]] = {}
    for variant in medians.variants.values():
        groups.setdefault(f"{variant.release.system} {variant.release.line}", []).insert(0, variant)
    return render(
        "compare.html",
        COMPARE_PAGE,
        groups=groups,
        newest=view_heatmap(pairs, settings),
        legend=LEGEND,
        preset=_choose_preset(medians),
        index=_INDEX,
        confidence=CONFIDENCE,
    )


def _choose_preset(medians: Medians) -> tuple[Variant, Variant] | None:
    """Return what is compared before anything is chosen: the last measured, and what comes before."""
    newest = sorted(medians.newest(), key=lambda one: one.trials[-1].started_at, reverse=True)
    pairs = ((medians.before[one.id], one) for one in newest if one.id in medians.before)
    return next(pairs, None)


def _describe_index(context: SiteContext, medians: Medians) -> dict[str, Any]:
    """Return what the script needs to compare any two variants, which it loads one by one.

    A series is [measure, page, deviation of one point, persistence, quantile of Student's t], where
    nothing is known of the noise [measure, page].
    """
    suites = find_suites(context.heads.values(), context.catalog, context.nights)
    contents = read_contents(context.catalog)
    compared = {name for one in medians.variants.values() for name in newest_trials(one)}
    shared = {shared_part(key): None for key in medians.series}
    columns = sorted({(key.metric, key.statistic) for key in shared}, key=column_order)
    ranks = {column: place for place, column in enumerate(columns)}
    measures = sorted(shared, key=lambda key: (place_of(key), ranks[key.metric, key.statistic]))
    places = {key: place for place, key in enumerate(measures)}
    return {
        "variants": {
            variant.id: _describe_variant(variant, medians, contents)
            | {"changed": name_change(medians.before.get(variant.id), variant, context)}
            for variant in medians.variants.values()
        },
        "columns": [_describe_column(column, context.catalog.detection) for column in columns],
        "measures": [_describe_measure(key, columns) for key in measures],
        "series": {
            _series_id(key): [
                places[shared_part(key)],
                links.series_page(key),
                *(
                    (noise.deviation, noise.persistence, quantile_of(noise))
                    if (noise := medians.noise[key]) and noise.deviation
                    else ()
                ),
            ]
            for key in medians.series
        },
        "echoes": sorted(map(_series_id, medians.echoes)),
        "medianCost": MEDIAN_COST,
        "words": _WORDS,
        "badges": {name: asdict(badge) for name, badge in _BADGES.items()},
        "comparisons": [_describe_comparison(one) for one in context.comparisons],
        "commands": {
            experiment: shlex.join(
                (
                    *("knickpoint", "compare"),
                    *(("--suite", suite) if suite else ()),
                    *("--experiment", experiment),
                )
            )
            for experiment, suite in sorted(suites.items())
            if experiment in compared
        },
        "charts": {
            "spectrum": draw_spectrum(),
            "p99": draw_course("p99"),
            "rate": draw_course("rate"),
        },
    }


def _find_newest(medians: Medians) -> Iterator[TrialHead]:
    """Yield the newest trial of each experiment of the newest variants of each branch."""
    branches: defaultdict[tuple[str, str, str], list[Variant]] = defaultdict(list)
    for variant in medians.variants.values():
        branches[variant.branch].append(variant)
    for variants in branches.values():
        for variant in variants[-_WITH_TIMES:]:
            yield from newest_trials(variant).values()


def _digest(
    context: SiteContext, variant: Variant, medians: Medians, shared: tuple[str, Collection[TrialId]]
) -> str:
    """Digest all that the cells of a variant are made of: trials, changes, which series there are."""
    series, with_times = shared
    contents = context.digest_of(trial.id for trial in variant.trials)
    newest = [trial.id for trial in newest_trials(variant).values()]
    shown = [trial for trial in newest if trial in with_times]
    changed = digest_changes(variant, medians, context.catalog.detection)
    places = context.places_of(newest)
    return digest((series, contents, changed, places, *shown)) if contents else ""


def digest_changes(variant: Variant, medians: Medians, settings: Detection) -> str:
    """Digest what changed within a variant."""
    # The largest of a series comes first; by how much it is, in all its digits, moves each night.
    found = sorted(
        medians.changes[variant.id], key=lambda one: (one.series.key, -abs(one.relative_change))
    )
    relevant = settings.relevant_change
    parts = (
        (
            one.series.key,
            one.index,
            change_words(one.relative_change),
            abs(one.relative_change) >= relevant.get(one.series.key.metric, 0.0),
        )
        for one in found
    )
    return digest((repr(relevant), *map(repr, parts))) if found else ""


def _make_variant(
    medians: Medians,
    variant: Variant,
    with_times: Sequence[str],
    settings: Detection,
    _: Collection[str],
) -> Iterator[SiteFile]:
    yield to_script(variant_data(variant.id), describe_cells(variant, medians, with_times, settings))


def _make_times(
    context: SiteContext, by_path: Mapping[str, TrialHead], paths: Collection[str]
) -> Iterator[SiteFile]:
    wanted = [by_path[path].id for path in paths]
    found: defaultdict[TrialId, list[Recording]] = defaultdict(list)
    for recording in context.archive.recordings(wanted, *KINDS):
        found[recording.trial].append(recording)
    for trial in context.archive.trials(wanted, brief=True):
        yield to_script(times_data(trial.id), describe_curves(trial, found[trial.id]))


def describe_cells(
    variant: Variant, medians: Medians, with_times: Sequence[str], settings: Detection
) -> dict[str, Any]:
    """Return the cells of a variant, and its newest trials.

    A cell is [series, median, values, deviation, place of its first and last trial in `ends`], and what
    changed within it, if anything did. Of the trials `with_times` (ids), the response times have data
    of their own.
    """
    measured = medians.measured[variant.id].values()
    ends = {one.ends: None for one in measured}
    places = {pair: place for place, pair in enumerate(ends)}
    return {
        "cells": [
            [
                _series_id(one.judged.series.key),
                *(known.median, known.values, known.deviation, places[one.ends]),
                *filter(None, [change_note(one, settings)]),
            ]
            for one in measured
            for known in [one.condensed]
        ],
        "id": variant.id,
        "ends": list(ends),
        "trials": [
            {
                "experiment": experiment,
                "workload": named(trial.workload),
                "id": trial.id,
                "page": links.trial_page(trial.id),
                "finished": moment(trial.finished_at).text,
                "data": links.times_data(trial.id) if trial.id in with_times else "",
            }
            for experiment, trial in sorted(newest_trials(variant).items())
        ],
    }


def _series_id(key: SeriesKey) -> str:
    """Return the short id of a series: the hash that its page's name ends with."""
    return links.series_stem(key).rpartition("-")[2]


def _pair_words(before: Variant, after: Variant) -> str:
    release = after.release
    if before.release.version == release.version:
        return f"{release.system} {release.version}, {named(before.config)} → {named(after.config)}"
    config = after.config.name
    return f"{release.system} {release.line}, {before.release.version} → {release.version}, {config}"


def _describe_variant(variant: Variant, medians: Medians, contents: Contents) -> dict[str, Any]:
    before = medians.before.get(variant.id)
    release, first, last = variant.release, variant.trials[0], variant.trials[-1]
    # A content that was replaced may be another config's by now.
    config = find_name(release.system, variant.config, contents) or variant.config.name
    return {
        "name": f"{release.system} {release.version}, config {named(variant.config)}",
        "system": release.system,
        "release": release.version,
        "config": variant.config.name,
        "content": named(variant.config),
        "sha256": variant.config.sha256,
        "side": shlex.quote(f"{release.version}/{config}"),
        "page": links.release_page(release.system, release.version),
        "before": before.id if before else "",
        "trials": len(variant.trials),
        "days": [moment(first.started_at).day, moment(last.started_at).day],
    }


def name_change(before: Variant | None, after: Variant, context: SiteContext) -> str:
    """Name the settings that differ from the variant before; empty where that is not known."""
    return name_changed_settings(before.trials[-1], after.trials[-1], context) if before else ""


def _describe_column(column: tuple[str, str], settings: Detection) -> dict[str, Any]:
    metric, statistic = column
    return {
        "title": heading(metric_words(metric, statistic)),
        "direction": direction_words(metric),
        "unit": unit_words(metric),
        "relevant": settings.relevant_change.get(metric, 0.0),
        "risesWell": METRICS[metric].better is Better.HIGHER,
    }


def _describe_measure(key: SeriesKey, columns: Sequence[tuple[str, str]]) -> dict[str, Any]:
    title, note = group_words(key)
    return {
        "workload": title,
        "identity": key.workload,
        "group": note,
        "row": row_words(key),
        "column": columns.index((key.metric, key.statistic)),
        "loosely": repr(loosely(key)),
    }


def _describe_comparison(one: ComparisonResult) -> dict[str, Any]:
    reported = summarize_result(one)
    return {
        "sides": [
            variant_id(one.system, side.version, side.config.name, side.config.sha256)
            for side in (one.baseline, one.candidate)
        ],
        "page": links.comparison_page(one.id),
        "title": clean(f"{one.experiment}: {one.baseline.label} → {one.candidate.label}"),
        "badge": asdict(reported.badge),
        "day": moment(one.finished_at).day,
        "sentence": reported.sentence,
    }
