"""The numbers of a series as columns: what its chart draws and its table is completed from.

Texts that are not about a single point come ready from the view; a single point is put into words in
the browser (static/scripts/series_words.js), by the rules of `wording`: a page of a thousand points
would take too long to make, otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import cast

import numpy as np

from analysis.judging.judgement import JudgedSeries
from perf.model.metrics import DIAGNOSTICS, HIGHEST_LOAD, METRICS
from perf.model.results import SeriesKey, TrialId
from reports.pages.series.track import Track
from reports.pages.series.view import SeriesView, find_ends
from reports.site.context import Bounds
from reports.wording import links

_DIGITS = 9
"""Significant digits of iterations: more than is ever shown; the value of a point is kept whole."""


def series_data(
    judged: JudgedSeries,
    view: SeriesView,
    track: Track,
    places: Mapping[TrialId, int],
    *,
    bounds: Bounds,
    lines: Sequence[SeriesKey],
) -> dict[str, object]:
    """Give a series as columns.

    `places` are the slots of the track's trials, `lines` the same series on the other release lines.
    """
    key, points = judged.series.key, judged.series.points
    better = (METRICS | DIAGNOSTICS).get(key.metric)
    is_searched = key.metric == HIGHEST_LOAD.name
    ends = [find_ends(key, trial, bounds) for trial in points.trials] if is_searched else []
    noise = judged.newest_noise
    return {
        "track": track.stem,
        "title": view.title,
        "experiment": view.experiment,
        "system": key.system,
        "line": key.line,
        "metric": view.metric,
        "unit": view.unit,
        "direction": view.direction,
        "better": better.better if better else "",
        "isWatch": view.is_watch,
        "isByNight": view.is_by_night,
        "inWords": view.in_words,
        "at": [places[trial] for trial in points.trials],
        "value": list(points.values),
        "counts": points.columns.counts,
        "iterations": _round(points.columns.iterations),
        "ends": ends,
        "segments": [asdict(segment) for segment in view.segments],
        "noise": noise.deviation if noise else 0,
        "floor": view.sensitivity.floor,
        "visible": view.visible_share,
        "visibleText": view.sensitivity.brief,
        "changes": [asdict(change) for change in view.changes],
        "slopes": [asdict(slope) for slope in view.slopes],
        "scatter": [asdict(one) for one in view.scatter],
        "references": [asdict(one) for one in view.references],
        "lines": [[other.line, links.series_stem(other)] for other in lines],
    }


def _round(values: Sequence[float]) -> list[float]:
    """Round all at once to so many significant digits: short text is written and read faster."""
    exact = np.array(values, dtype=float)
    size = np.abs(exact)
    with np.errstate(all="ignore"):
        scale = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(size)))
        rounded = np.round(exact * scale) / scale
    kept = np.where((size > 0) & np.isfinite(rounded), rounded, exact)
    return cast("list[float]", kept.tolist())
