"""A page for each series, with its data; the trials that series share are data of their own.

The data are columns: what the chart draws and the table is completed from. Texts that are not about a
single point come ready; a single point is put into words in the browser (series_words.js), by the rules
of `wording`: a page of a thousand points would take too long to make, otherwise.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from statistics import fmean
from typing import cast

import numpy as np

from analysis.detection.noise import noise_of_level
from analysis.detection.series import Points
from analysis.detection.verdict import Outcome
from analysis.judging.incidents import Incident
from analysis.judging.judgement import JudgedSeries
from analysis.judging.verdicts import find_reported
from analysis.orchestration.setting_words import NO_SETTINGS, ChangedSettings
from perf.model.columns import OccasionKind
from perf.model.metrics import HIGHEST_LOAD
from perf.model.references import Reference, references_for
from perf.model.results import Purpose, SeriesKey, TrialHead, TrialId
from perf.model.rules import Detection
from reports.pages.series.point_rows import NEWEST_ROWS, find_ends, rows_of_points
from reports.pages.series.track import Track, TrackKey, find_tracks, track_data, track_of
from reports.site.context import SiteContext
from reports.site.rendering import render, to_script
from reports.site.writing import Batch, LazyBatches, SiteFile, digest, in_parts
from reports.wording.changes import (
    ChangeRow,
    RetractedRow,
    ScatterRow,
    Slope,
    by_change,
    view_changes,
    view_retracted,
    view_scatter,
    view_slopes,
)
from reports.wording.links import data_path, series_page, series_stem
from reports.wording.sensitivity import Sensitivity, view_sensitivity
from reports.wording.series_list import Lead, lead_series
from reports.wording.series_resets import Chain, describe_reset, find_chain
from reports.wording.wording import (
    OUTCOME_BADGES,
    WATCH_BADGE,
    Badge,
    count,
    direction_words,
    heading,
    join_caveats,
    metric_words,
    moment,
    night_words,
    quantity,
    series_words,
    unit_words,
)

_AT_ONCE = 20
"""Series that a process takes at a time."""
_TRACKS_AT_HAND = 100
_DIGITS = 9
"""Significant digits of iterations: more than is ever shown; the value of a new point is kept whole."""
_WHOLE_POINTS = 400
"""The newest points of a series, which are kept whole: a year of nights, and some."""
_OLD_DIGITS = 7
"""Of the value of any older point, which has no iterations: the export and the history have all."""
_WATCHES = (
    "This series watches the testbed: the work behind it never changes, so what moves here are the "
    "hosts. It is read by the same test as all series, and no verdict rests on it."
)
NO_CHAIN = Chain()


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The stretch between two change points, and its level; `first` and `last` are point numbers.

    `mean` is the level as the change points tell it, so with outliers pulled in; without any, that of
    all points. Single points scatter from `low` to `high`: `mean` itself where no noise is known.
    """

    first: int
    last: int
    mean: float
    low: float
    high: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSeries:
    """What the page of one series shows beside its single points; its text is the version of the page.

    `is_by_night` where all points are of one release, so that only nights tell them apart; `is_watch`
    where they are a canary's or a sentinel's. `in_words` says what the chart shows. `visible` is the
    smallest relative change that the fewest confirming nights would show, None if not known.
    `neighbours` are the series with the workload's content before and after, and what leads to each.
    """

    key: SeriesKey
    experiment: str
    verdict: Badge
    lead: Lead
    points: int
    sensitivity: Sensitivity
    changes: tuple[ChangeRow, ...]
    slopes: tuple[Slope, ...]
    scatter: tuple[ScatterRow, ...]
    withdrawn: tuple[RetractedRow, ...]
    segments: tuple[Segment, ...]
    references: tuple[Reference, ...]
    neighbours: tuple[tuple[str, SeriesKey], ...]
    visible: float | None
    is_by_night: bool
    has_imported: bool
    is_watch: bool
    summary: str
    in_words: str
    caveat: str


@dataclass(frozen=True, slots=True)
class _Shared:
    """What the pages of all series are made with."""

    context: SiteContext
    incidents: Mapping[tuple[SeriesKey, int], Incident]
    tracks: Mapping[TrackKey, Track]
    runs: Callable[[TrackKey, tuple[TrialId, ...]], Sequence[tuple[int, int]]]
    versions: Mapping[TrackKey, str]
    lines: Mapping[SeriesKey, Sequence[SeriesKey]]
    chain: Chain
    references: Sequence[Reference]
    digest: Callable[[tuple[TrialId, ...]], str]
    caveat: Callable[[tuple[TrialId, ...]], str]


def batches(context: SiteContext) -> Iterator[LazyBatches]:
    """Yield the pages of all series: the judged ones, then those that watch the testbed."""
    judged, watched = context.judgement.series, context.judgement.watched
    tracks = find_tracks((*judged, *watched), context.heads, context.nights)
    places = {
        key: {slot.trial: place for place, slot in enumerate(track.slots)}
        for key, track in tracks.items()
    }

    @lru_cache(_TRACKS_AT_HAND)
    def find_runs(track: TrackKey, trials: tuple[TrialId, ...]) -> Sequence[tuple[int, int]]:
        slots = [*map(places[track].__getitem__, trials)]
        return [(slots[begin], end - begin) for begin, end in _cut(slots, step=1)]

    shared = _Shared(
        context=context,
        incidents=by_change(context.judgement.incidents),
        tracks=tracks,
        runs=find_runs,
        versions={key: _digest_of_track(context, track) for key, track in tracks.items()},
        lines=_find_lines(judged),
        references=context.catalog.references,
        chain=find_chain(one.series for one in (*judged, *watched)),
        digest=lru_cache(_TRACKS_AT_HAND)(context.digest_of),
        caveat=lru_cache(_TRACKS_AT_HAND)(partial(_find_caveat, context)),
    )
    yield LazyBatches(len(tracks), lambda: (_batch_of_tracks(shared),))
    for all_of_them, is_watch in ((judged, False), (watched, True)):
        make = partial(_batch_of_one, shared, is_watch=is_watch)
        yield from in_parts(all_of_them, _AT_ONCE, partial(map, make), files=2)


def _find_lines(judged: Sequence[JudgedSeries]) -> Mapping[SeriesKey, Sequence[SeriesKey]]:
    """Return by key, its line left out, the series of all lines."""
    found: defaultdict[SeriesKey, list[SeriesKey]] = defaultdict(list)
    for one in judged:
        found[replace(one.series.key, line="")].append(one.series.key)
    return found


def _batch_of_tracks(shared: _Shared) -> Batch:
    by_path = {data_path(track.stem): track for track in shared.tracks.values()}

    def make(paths: Collection[str]) -> Iterator[SiteFile]:
        wanted = [by_path[path] for path in paths]
        orders = [order for track in wanted for order in (track.slots, track.in_time)]
        moves = shared.context.archive.moves([[slot.trial for slot in order] for order in orders])
        for number, track in enumerate(wanted):
            of_track = track_data(
                track,
                moves[2 * number],
                moves[2 * number + 1],
                shared.context.settings,
                shared.context.old_trials,
            )
            yield to_script(track.stem, of_track)

    versions = {
        path: digest((shared.versions[track.key], shared.context.places_of(_trials_of(track))))
        for path, track in by_path.items()
    }
    return Batch(versions, make)


def _trials_of(track: Track) -> Iterator[TrialId]:
    return (slot.trial for slot in track.slots)


def _digest_of_track(context: SiteContext, track: Track) -> str:
    parts = [f"{slot.trial} {context.digests.get(slot.trial, slot.why)}" for slot in track.slots]
    return digest((*parts, *map(series_stem, track.series), repr(context.settings)))


def _batch_of_one(shared: _Shared, judged: JudgedSeries, *, is_watch: bool) -> Batch:
    context, key = shared.context, judged.series.key
    view = show_series(
        judged,
        context.heads,
        settings=context.catalog.detection,
        incidents=shared.incidents,
        caveat=shared.caveat(judged.series.points.trials),
        is_watch=is_watch,
        references=shared.references,
        chain=shared.chain,
        changed=context.settings,
    )
    version = _digest_of_series(shared, judged, view)
    return Batch(
        {series_page(key): version, data_path(series_stem(key)): version},
        partial(_make, shared, judged, view),
    )


def _digest_of_series(shared: _Shared, judged: JudgedSeries, view: ShownSeries) -> str:
    """Digest all that a page and its data are made of; where a trial has no digest, none is sure."""
    of_points = shared.digest(judged.series.points.trials)
    if not of_points:
        return ""
    of_track = shared.versions[track_of(judged.series.key)]
    linked = shared.context.places_of(_find_linked(judged))
    return digest((repr(view), repr(_lines_of(shared, judged)), of_track, of_points, linked))


def _find_linked(judged: JudgedSeries) -> Iterator[TrialId]:
    """Yield the trials that a page of a series leads to; those of its chart are in its track."""
    yield from judged.series.points.trials[-NEWEST_ROWS:]
    for change in judged.change_points:
        yield from (change.last_before.trial, change.first_after.trial)


def _find_caveat(context: SiteContext, trials: Sequence[TrialId]) -> str:
    return join_caveats({context.heads[trial].testbed.name for trial in trials}, context.caveats)


def _lines_of(shared: _Shared, judged: JudgedSeries) -> Sequence[SeriesKey]:
    key = judged.series.key
    return [one for one in shared.lines.get(replace(key, line=""), ()) if one.line != key.line]


def _make(
    shared: _Shared, judged: JudgedSeries, view: ShownSeries, _: Collection[str]
) -> Iterator[SiteFile]:
    key, bounds = view.key, shared.context.bounds
    rows = rows_of_points(judged, bounds)
    yield render(
        "series.html", series_page(key), page=view, rows=rows, newest=NEWEST_ROWS, whole=_WHOLE_POINTS
    )
    track = track_of(key)
    yield to_script(
        series_stem(key),
        {
            **_columns(judged, shared.runs(track, judged.series.points.trials)),
            **_texts(view),
            "track": shared.tracks[track].stem,
            "ends": [find_ends(key, trial, bounds) for trial in judged.series.points.trials]
            if key.metric == HIGHEST_LOAD.name
            else [],
            "lines": [[other.line, series_stem(other)] for other in _lines_of(shared, judged)],
        },
    )


def show_series(
    judged: JudgedSeries,
    trials: Mapping[TrialId, TrialHead],
    *,
    settings: Detection,
    incidents: Mapping[tuple[SeriesKey, int], Incident] | None = None,
    caveat: str,
    is_watch: bool = False,
    references: Sequence[Reference] = (),
    chain: Chain = NO_CHAIN,
    changed: ChangedSettings = NO_SETTINGS,
) -> ShownSeries:
    """Return what is shown of a judged series.

    `caveat` is what must be known of the testbeds of its points, `references` are all published
    figures, `chain` says which series had the workload's content before, and which has the one after,
    `changed` are settings that did, by what they explain.
    """
    key, points = judged.series.key, judged.series.points
    latest = trials[points[-1].trial] if points else None
    is_by_night = len(points.versions) == 1
    summary = _summarize(points, is_by_night=is_by_night)
    changes = view_changes(judged, incidents or {}, settings, changed)
    reported = find_reported(judged.detectable)
    segments = _find_segments(judged)
    return ShownSeries(
        key=key,
        experiment=latest.experiment if latest else f"{key.system} {key.workload}",
        verdict=WATCH_BADGE if is_watch else OUTCOME_BADGES[judged.verdict.outcome],
        lead=Lead(text=_WATCHES)
        if is_watch
        else lead_series(judged, incidents or {}, settings, changed),
        points=len(points),
        sensitivity=view_sensitivity(judged),
        changes=changes,
        slopes=view_slopes(judged),
        scatter=view_scatter(judged),
        withdrawn=view_retracted(judged),
        segments=segments,
        references=references_for(key, references),
        neighbours=tuple(_find_neighbours(key, points, chain)),
        visible=reported.relative_change if reported else None,
        is_by_night=is_by_night,
        has_imported=points.has(_is_imported),
        is_watch=is_watch,
        summary=summary,
        in_words=_say_chart(judged, summary, segments, changes),
        caveat=caveat,
    )


def _is_imported(occasion: OccasionKind) -> bool:
    return occasion.purpose is Purpose.IMPORTED


def _summarize(points: Points, *, is_by_night: bool) -> str:
    many = count(len(points), "point")
    if is_by_night:
        nights = {*points.nights_in_order}
        if "" in nights:  # measured by itself: a day is a night
            nights = {one.night or moment(one.started_at).day for one in points.occasions}
        return f"{many} of {points[0].release.version} over {count(len(nights), 'night')}"
    return f"{many} over {count(len(points.versions), 'release')}"


def _say_chart(
    judged: JudgedSeries, summary: str, segments: Sequence[Segment], changes: Sequence[ChangeRow]
) -> str:
    """Describe what the chart shows: how much there is, its level, its changes and the newest value."""
    points, metric = judged.series.points, judged.series.key.metric
    if not points:
        return "No points."
    newest, value = points[-1], quantity(points[-1].value, metric)
    level = segments[-1].text if segments and segments[-1].last == len(points) else ""
    reported = "; ".join(f"{one.outcome.word.lower()} {one.change}, {one.between}" for one in changes)
    return " ".join(
        (
            f"{summary}.",
            f"The newest level is {level}." if level else "No level is claimed.",
            f"{heading(count(len(changes), 'change point'))}: {reported}."
            if reported
            else "No change points.",
            f"Newest value: {value}, {newest.release.version}, {night_words(newest.night)}.",
        )
    )


def _find_neighbours(key: SeriesKey, points: Points, chain: Chain) -> Iterator[tuple[str, SeriesKey]]:
    """State that a series begins or ends because its workload was changed."""
    if key in chain.before:
        before = chain.before[key]
        since = f"{moment(min(one.started_at for one in points.occasions)).day}: " if points else ""
        change = describe_reset(before, key)
        yield f"Begins here, {since}{change} Its predecessor is the series of", before
    if key in chain.after:
        after = chain.after[key]
        yield f"Ends here: {describe_reset(key, after)} It goes on as the series of", after


def _find_segments(judged: JudgedSeries) -> tuple[Segment, ...]:
    points = judged.series.points
    known = judged.verdict.outcome not in (Outcome.UNDECIDED, Outcome.INVALID)
    if not points or not (judged.change_points or known):
        # A mean over releases that nobody could judge would claim that they are alike.
        return ()
    edges = (0, *(change.index for change in judged.change_points), len(points))
    return tuple(
        _view_segment(judged, number, first, last)
        for number, (first, last) in enumerate(pairwise(edges))
        if not any(drift.first < last and first <= drift.last for drift in judged.drifts)
    )


def _view_segment(judged: JudgedSeries, number: int, first: int, last: int) -> Segment:
    """Draw a level as the changes beside it tell it, and how far its own points scatter."""
    values = judged.series.points.values[first:last]
    changes, noise = judged.change_points, judged.noise
    if number:
        level = changes[number - 1].after
    elif changes:
        level = changes[0].before
    else:
        level = fmean(values)
    own = judged.newest_noise if last == len(judged.series.points) else noise
    scatter = noise_of_level(own, values).deviation if own else 0.0
    return Segment(
        first=first + 1,
        last=last,
        mean=level,
        low=level - scatter,
        high=level + scatter,
        text=quantity(level, judged.series.key.metric),
    )


def _columns(judged: JudgedSeries, runs: Sequence[tuple[int, int]]) -> dict[str, object]:
    """Return the points as columns; `runs` are their slots in the track.

    Slots and counts of iterations are runs: the first slot of those in a row, or a count, and how many.
    """
    points = judged.series.points
    old = max(0, len(points) - _WHOLE_POINTS)
    values, counts = list(points.values), points.columns.counts
    return {
        "at": runs,
        "value": [*_round(values[:old], _OLD_DIGITS), *values[old:]],
        "counts": [
            *([(0, old)] if old else []),
            *((counts[old + begin], end - begin) for begin, end in _cut(counts[old:], step=0)),
        ],
        "iterations": _round(points.columns.iterations[sum(counts[:old]) :], _DIGITS),
    }


def _cut(values: Sequence[int], *, step: int) -> Iterator[tuple[int, int]]:
    """Yield where runs begin and end in which each value is larger than the one before by `step`."""
    ends = [at for at in range(1, len(values)) if values[at] - values[at - 1] != step]
    return pairwise((0, *ends, len(values))) if values else iter(())


def _texts(view: ShownSeries) -> dict[str, object]:
    """Return what the chart says beside its points."""
    key = view.key
    return {
        "title": heading(series_words(key)),
        "line": key.line,
        "metric": metric_words(key.metric, key.statistic),
        "unit": unit_words(key.metric),
        "direction": direction_words(key.metric),
        "isWatch": view.is_watch,
        "inWords": view.in_words,
        "segments": [asdict(segment) for segment in view.segments],
        "visible": view.visible,
        "changes": [asdict(change) for change in view.changes],
        "slopes": [asdict(slope) for slope in view.slopes],
        "scatter": [asdict(one) for one in view.scatter],
        "references": [
            {
                "value": one.value,
                "text": quantity(one.value, key.metric),
                "about": " ".join(filter(None, (one.system, one.version or one.line))),
            }
            for one in view.references
        ],
    }


def _round(values: Sequence[float], digits: int) -> list[float]:
    """Round all at once to so many significant digits: short text is written and read faster."""
    exact = np.array(values, dtype=float)
    size = np.abs(exact)
    with np.errstate(all="ignore"):
        scale = 10.0 ** (digits - 1 - np.floor(np.log10(size)))
        rounded = np.round(exact * scale) / scale
    kept = np.where((size > 0) & np.isfinite(rounded), rounded, exact)
    return cast("list[float]", kept.tolist())
