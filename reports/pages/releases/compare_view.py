"""What the page Compare shows: any two variants, in words and numbers that its script combines."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.comparing.results import ComparisonResult
from analysis.detection.effects import MEDIAN_COST
from perf.model.metrics import METRICS, Better
from perf.model.results import SeriesKey
from perf.model.rules import Detection
from reports.pages.releases.heatmap import (
    ALIEN_BADGE,
    LEGEND,
    MISSING_BADGE,
    STANDING_BADGES,
    HeatMap,
    HeatPair,
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
from reports.pages.releases.spectrum import draw_course, draw_spectrum
from reports.pages.releases.view import HINT, variant_words
from reports.wording import links
from reports.wording.markdown import clean
from reports.wording.summary import summarize_result
from reports.wording.wording import (
    Badge,
    count,
    direction_words,
    heading,
    metric_words,
    moment,
    named,
    plain_percent,
    unit_words,
)

INDEX = "compare"
"""The name of the data that the page Compare begins with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A variant that can be chosen."""

    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceGroup:
    """The variants of one system and line, the newest first."""

    name: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareView:
    """All that the page Compare shows before anything is chosen; `index` names its data."""

    page: str
    groups: tuple[ChoiceGroup, ...]
    newest: HeatMap
    legend: tuple[tuple[Badge, str], ...]
    hint: str
    index: str
    confidence: str
    both: str = "Choose both A and B."


def view_compare(medians: Medians, settings: Detection) -> CompareView:
    """Put the choices into words; compare the newest variant of each line with the one before."""
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
    groups: dict[str, list[Choice]] = {}
    for variant in medians.variants.values():
        release = variant.release
        choice = Choice(id=variant.id, name=_choice_words(variant))
        groups.setdefault(f"{release.system} {release.line}", []).insert(0, choice)
    return CompareView(
        page=links.COMPARE_PAGE,
        groups=tuple(
            ChoiceGroup(name=name, choices=tuple(choices)) for name, choices in groups.items()
        ),
        newest=view_heatmap(pairs, settings),
        legend=LEGEND,
        hint=HINT,
        index=INDEX,
        confidence=plain_percent(CONFIDENCE),
    )


def tell_index(
    medians: Medians,
    settings: Detection,
    comparisons: Iterable[ComparisonResult],
    suites: Mapping[str, str],
) -> dict[str, Any]:
    """Give what the script needs to compare any two variants, which it loads one by one.

    `suites` names the suite of each experiment. A series is [measure, page, deviation of one point,
    persistence, quantile of Student's t], where nothing is known of the noise [measure, page].
    """
    shared = {shared_part(key): None for key in medians.series}
    columns = sorted({(key.metric, key.statistic) for key in shared}, key=column_order)
    ranks = {column: place for place, column in enumerate(columns)}
    measures = sorted(shared, key=lambda key: (place_of(key), ranks[key.metric, key.statistic]))
    places = {key: place for place, key in enumerate(measures)}
    return {
        "variants": {variant.id: _tell_variant(variant) for variant in medians.variants.values()},
        "columns": [_tell_column(column, settings) for column in columns],
        "measures": [_tell_measure(key, columns) for key in measures],
        "series": {
            series_id(key): [
                places[shared_part(key)],
                links.series_page(key),
                *(
                    (noise.deviation, noise.persistence, quantile_of(noise))
                    if (noise := judged.noise) and noise.deviation
                    else ()
                ),
            ]
            for key, judged in medians.series.items()
        },
        "medianCost": MEDIAN_COST,
        "words": _WORDS,
        "badges": {name: _tell_badge(badge) for name, badge in _BADGES.items()},
        "comparisons": [_tell_comparison(one) for one in comparisons],
        "commands": {
            experiment: shlex.join(
                (
                    *("knickpoint", "compare"),
                    *(("--suite", suite) if suite else ()),
                    *("--experiment", experiment),
                )
            )
            for experiment, suite in sorted(suites.items())
        },
        "charts": {
            "spectrum": draw_spectrum(),
            "p99": draw_course("p99"),
            "rate": draw_course("rate"),
        },
    }


def tell_cells(variant: Variant, medians: Medians, with_times: Sequence[str]) -> dict[str, Any]:
    """Give the cells of a variant, and its newest trials.

    A cell is [series, median, values, deviation]. Of the trials `with_times` (ids), the response times
    have data of their own.
    """
    return {
        "cells": [
            [series_id(one.judged.series.key), known.median, known.values, known.deviation]
            for one in medians.measured[variant.id].values()
            for known in [one.condensed]
        ],
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


def series_id(key: SeriesKey) -> str:
    """Give the short id of a series: the hash that its page's name ends with."""
    return links.series_stem(key).rpartition("-")[2]


_BADGES = {
    **{standing.value: badge for standing, badge in STANDING_BADGES.items()},
    "missing": MISSING_BADGE,
    "alien": ALIEN_BADGE,
}


_WORDS: Mapping[str, str | Sequence[str]] = {
    "trial": "trial",
    "trials": "trials",
    "to": "to",
    "noBound": "no bound",
    "operation": "Operation",
    "operations": "Operations",
    "slowest": "Slowest",
    "nothing": "nothing to compare",
    "unknown": "One of these two is not in this history (any more): choose again.",
    "command": "For a verdict, let both take turns on the same hosts:",
    "otherSystem": "Two systems take no turns against each other: what differs may be all of them.",
    "sameName": (
        "Both bear the same name, and the file of that config has one content only by now. For a "
        "verdict, keep the older content as a config of its own, then use knickpoint compare."
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


def _pair_words(before: Variant, after: Variant) -> str:
    release = after.release
    if before.release.version == release.version:
        return f"{release.system} {release.version}, {named(before.config)} → {named(after.config)}"
    config = after.config.name
    return f"{release.system} {release.line}, {before.release.version} → {release.version}, {config}"


def _choice_words(variant: Variant) -> str:
    trials = count(len(variant.trials), "trial")
    return f"{variant.release.version}, {named(variant.config)} ({trials})"


def _tell_variant(variant: Variant) -> dict[str, Any]:
    release, first, last = variant.release, variant.trials[0], variant.trials[-1]
    return {
        "name": variant_words(variant),
        "system": release.system,
        "release": release.version,
        "config": variant.config.name,
        "sha256": variant.config.sha256,
        "side": shlex.quote(f"{release.version}/{variant.config.name}"),
        "page": links.release_page(release.system, release.version),
        "trials": len(variant.trials),
        "days": [moment(first.started_at).day, moment(last.started_at).day],
    }


def _tell_column(column: tuple[str, str], settings: Detection) -> dict[str, Any]:
    metric, statistic = column
    return {
        "title": heading(metric_words(metric, statistic)),
        "direction": direction_words(metric),
        "unit": unit_words(metric),
        "relevant": settings.relevant_change.get(metric, 0.0),
        "risesWell": METRICS[metric].better is Better.HIGHER,
    }


def _tell_measure(key: SeriesKey, columns: Sequence[tuple[str, str]]) -> dict[str, Any]:
    title, note = group_words(key)
    return {
        "workload": title,
        "identity": key.workload,
        "group": note,
        "row": row_words(key),
        "column": columns.index((key.metric, key.statistic)),
        "loosely": repr(loosely(key)),
    }


def _tell_badge(badge: Badge) -> dict[str, str]:
    return {"kind": badge.kind, "symbol": badge.symbol, "word": badge.word}


def _tell_comparison(one: ComparisonResult) -> dict[str, Any]:
    told = summarize_result(one)
    return {
        "sides": [
            variant_id(one.system, side.version, side.config.name, side.config.sha256)
            for side in (one.baseline, one.candidate)
        ],
        "page": links.comparison_page(one.id),
        "title": clean(f"{one.experiment}: {one.baseline.label} → {one.candidate.label}"),
        "badge": _tell_badge(told.badge),
        "day": moment(one.finished_at).day,
        "sentence": told.sentence,
    }
