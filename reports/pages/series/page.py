"""A page for each series, with its data; the trials that series share are data of their own."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice

from analysis.judging.incidents import Incident
from analysis.judging.judgement import JudgedSeries
from perf.model.references import Reference
from perf.model.results import SeriesKey, TrialId
from reports.pages.series.point_rows import NEWEST_ROWS, rows_of_points
from reports.pages.series.series_data import series_data
from reports.pages.series.track import Track, TrackKey, find_tracks, track_data, track_of
from reports.pages.series.view import WATCHES, SeriesView, view_series
from reports.site.context import SiteContext
from reports.site.rendering import render, to_script
from reports.site.writing import Batch, LazyBatches, SiteFile
from reports.wording.beginnings import Chain, find_chain
from reports.wording.changes import by_change
from reports.wording.links import data_path, series_page, series_stem
from reports.wording.wording import join_caveats

_AT_ONCE = 20
"""Series that a process takes at a time."""
_TRACKS_AT_HAND = 100


@dataclass(frozen=True, slots=True)
class _Shared:
    """What the pages of all series are made with."""

    scene: SiteContext
    incidents: Mapping[tuple[SeriesKey, int], Incident]
    tracks: Mapping[TrackKey, Track]
    places: Mapping[TrackKey, Mapping[TrialId, int]]
    versions: Mapping[TrackKey, str]
    lines: Mapping[SeriesKey, Sequence[SeriesKey]]
    chain: Chain
    references: Sequence[Reference]
    digest: Callable[[tuple[TrialId, ...]], str]
    caveat: Callable[[tuple[TrialId, ...]], str]


def batches(scene: SiteContext) -> Iterator[LazyBatches]:
    """Give the pages of all series: the judged ones, then those that watch the testbed."""
    judged, watched = scene.judgement.series, scene.judgement.watched
    tracks = find_tracks((*judged, *watched), scene.heads, scene.nights)
    shared = _Shared(
        scene=scene,
        incidents=by_change(scene.judgement.incidents),
        tracks=tracks,
        places={
            key: {slot.trial: place for place, slot in enumerate(track.slots)}
            for key, track in tracks.items()
        },
        versions={key: _digest_of_track(scene, track) for key, track in tracks.items()},
        lines=_find_lines(judged),
        references=scene.catalog.references,
        chain=find_chain(one.series for one in (*judged, *watched)),
        digest=lru_cache(_TRACKS_AT_HAND)(partial(_digest_of_trials, scene)),
        caveat=lru_cache(_TRACKS_AT_HAND)(partial(_find_caveat, scene)),
    )
    yield LazyBatches(len(tracks), lambda: (_batch_of_tracks(shared),))
    for all_of_them, watches in ((judged, ""), (watched, WATCHES)):
        rest = iter(all_of_them)
        while some := tuple(islice(rest, _AT_ONCE)):
            yield LazyBatches(2 * len(some), partial(_batches_of_some, shared, some, watches))


def _batches_of_some(shared: _Shared, some: Iterable[JudgedSeries], watches: str) -> Iterator[Batch]:
    return (_batch_of_one(shared, one, watches) for one in some)


def _find_lines(judged: Sequence[JudgedSeries]) -> Mapping[SeriesKey, Sequence[SeriesKey]]:
    """Give by key, its line left out, the series of all lines."""
    found: defaultdict[SeriesKey, list[SeriesKey]] = defaultdict(list)
    for one in judged:
        found[replace(one.series.key, line="")].append(one.series.key)
    return found


def _batch_of_tracks(shared: _Shared) -> Batch:
    by_path = {data_path(track.stem): track for track in shared.tracks.values()}

    def make(paths: Collection[str]) -> Iterator[SiteFile]:
        wanted = [by_path[path] for path in paths]
        orders = [order for track in wanted for order in (track.slots, track.in_time)]
        moves = shared.scene.archive.moves([[slot.trial for slot in order] for order in orders])
        for number, track in enumerate(wanted):
            of_track = track_data(track, moves[2 * number], moves[2 * number + 1])
            yield to_script(track.stem, of_track)

    return Batch({path: shared.versions[track.key] for path, track in by_path.items()}, make)


def _digest_of_track(scene: SiteContext, track: Track) -> str:
    parts = [f"{slot.trial} {scene.digests.get(slot.trial, slot.why)}" for slot in track.slots]
    return _digest((*parts, *map(series_stem, track.series)))


def _batch_of_one(shared: _Shared, judged: JudgedSeries, watches: str) -> Batch:
    scene, key = shared.scene, judged.series.key
    view = view_series(
        judged,
        scene.heads,
        settings=scene.catalog.detection,
        incidents=shared.incidents,
        caveat=shared.caveat(judged.series.points.trials),
        watches=watches,
        references=shared.references,
        chain=shared.chain,
    )
    version = _digest_of_series(shared, judged, view)
    return Batch(
        {series_page(key): version, data_path(series_stem(key)): version},
        partial(_make, shared, judged, view),
    )


def _digest_of_series(shared: _Shared, judged: JudgedSeries, view: SeriesView) -> str:
    """Digest all that a page and its data are made of; where a trial has no digest, none is sure."""
    of_points = shared.digest(judged.series.points.trials)
    if not of_points:
        return ""
    of_track = shared.versions[track_of(judged.series.key)]
    return _digest((repr(view), repr(_lines_of(shared, judged)), of_track, of_points))


def _digest_of_trials(scene: SiteContext, trials: Sequence[TrialId]) -> str:
    """Digest what trials measured; empty where one has no digest. Series of a track share theirs."""
    digests = [scene.digests.get(trial, "") for trial in trials]
    return _digest(digests) if all(digests) else ""


def _find_caveat(scene: SiteContext, trials: Sequence[TrialId]) -> str:
    return join_caveats({scene.heads[trial].testbed.name for trial in trials}, scene.caveats)


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _lines_of(shared: _Shared, judged: JudgedSeries) -> Sequence[SeriesKey]:
    key = judged.series.key
    return [one for one in shared.lines.get(replace(key, line=""), ()) if one.line != key.line]


def _make(
    shared: _Shared, judged: JudgedSeries, view: SeriesView, _: Collection[str]
) -> Iterator[SiteFile]:
    bounds, key = shared.scene.bounds, track_of(judged.series.key)
    rows, listed = rows_of_points(judged, bounds), min(view.points, NEWEST_ROWS)
    yield render("series.html", view.page, page=view, rows=rows, listed=listed)
    yield to_script(
        view.data,
        series_data(
            judged,
            view,
            shared.tracks[key],
            shared.places[key],
            bounds=bounds,
            lines=_lines_of(shared, judged),
        ),
    )
