"""Drift of the testbed: whether canaries and sentinels moved when a series did.

A canary is fixed work on a host, a sentinel an old release that is measured again and again. Neither
knows the release under test, so what moves them at the same time may well have moved the series, too.
Both are read by the same detector as everything else.

Asked are the canaries of the same trials, and the sentinels of the same testbed with the same metric;
of these, those of the same work if there are any.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from analysis.detection import words
from analysis.detection.detection import ChangePoint, Detector, DetectorResult, find_changes
from analysis.detection.long_series import for_length
from analysis.detection.noise import can_confirm, minimum_detectable_effect
from analysis.detection.series import Point, Points, Series, build_series
from analysis.judging.change_locations import ChangeLocation, is_same_time, locate
from perf.model.columns import Observations, OccasionKind
from perf.model.metrics import CANARY_PHASES
from perf.model.results import Observation, Purpose, SeriesKey
from perf.model.rules import Detection

_EXPLAINING_SHARE = 0.5
"""What moved by less than half as much as the series leaves most of the change unexplained."""
_SAME_TRIALS = ("system", "line", "topology", "testbed_class", "config", "workload", "engine")
_SAME_WORK = ("system", "workload", "phase", "operation")


class WatchState(StrEnum):
    """What a canary or a sentinel says about a change."""

    ALTERNATED = "alternated"
    """None is asked: what lies before and after was measured on the same nights by turns."""
    FOLLOWED = "followed"
    """It moved at the same time, in the matching direction and far enough."""
    MOVED_LESS = "moved less"
    """It moved in the matching direction, but not far enough to explain the change."""
    MOVED_AGAINST = "moved against"
    STILL = "still"
    UNSEEN = "unseen"
    """It was not seen to move, but a move as small as the change could not be seen yet."""
    SHORT = "short"
    """It has too few points to tell."""
    SILENT = "silent"
    """It was not measured since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvidence:
    """What one canary or sentinel says about a change.

    `change` is its own, if it moved; else `before` and `after` count its points, `last_night` is that
    of the last one before, and `visible` is the smallest relative change that they could show.
    """

    key: SeriesKey
    state: WatchState
    change: ChangePoint | None = None
    before: int = 0
    after: int = 0
    last_night: str = ""
    visible: float | None = None

    @property
    def relative_change(self) -> float:
        """Return by how much it moved itself."""
        return self.change.relative_change if self.change else 0.0

    @property
    def follows(self) -> bool:
        """Return whether it moved as the change did."""
        return self.state is WatchState.FOLLOWED

    @property
    def is_decisive(self) -> bool:
        """Return whether it has an answer."""
        return self.state not in {WatchState.UNSEEN, WatchState.SHORT, WatchState.SILENT}

    @property
    def is_of_sentinel(self) -> bool:
        """Return whether it is about a whole database rather than about one host."""
        return not is_canary(self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A canary or a sentinel in the order of time, and what the detector saw in it.

    `reading` is None where it was too short to be searched.
    """

    series: Series
    changes: tuple[ChangePoint, ...]
    reading: DetectorResult | None


def is_watch(observation: Observation) -> bool:
    """Return whether an observation is of a canary or a sentinel."""
    return is_sentinel(observation) or is_canary(observation.key)


def is_sentinel(one: Observation | OccasionKind) -> bool:
    """Return whether an old release was measured to watch the testbed."""
    return one.purpose is Purpose.SENTINEL


def is_canary(key: SeriesKey) -> bool:
    """Return whether a series is of fixed work on a host."""
    return key.phase in CANARY_PHASES


def read_watches(
    observations: Observations,
    settings: Detection,
    detector: Detector,
) -> tuple[Watch, ...]:
    """Search canaries and sentinels for changes. Raises ValueError as `build_series` does."""
    series = (one for one in build_series(observations) if one.points)
    return tuple(_watch(one, settings, detector) for one in series)


def _watch(series: Series, settings: Detection, detector: Detector) -> Watch:
    columns = series.points.columns
    times = [(one.started_at, one.trial) for one in series.points.occasions]
    order = np.array(sorted(range(len(times)), key=times.__getitem__), dtype=int)
    in_time = Series(key=series.key, points=Points(columns.pick(order)))
    is_searched = len(in_time.points) >= settings.minimum_points
    detector = for_length(detector, len(in_time.points))
    reading = detector.read(in_time.points.values, in_time.points.days) if is_searched else None
    return Watch(
        series=in_time,
        changes=find_changes(in_time, reading, detector.name) if reading else (),
        reading=reading,
    )


def environment_evidence(
    place: ChangeLocation, watches: Sequence[Watch], settings: Detection
) -> tuple[WatchEvidence, ...]:
    """Ask canaries and sentinels about a change, sentinels first."""
    if place.time is None:
        return (WatchEvidence(key=place.change.series.key, state=WatchState.ALTERNATED),)
    asked = (*_nearest_sentinels(place.change.series.key, watches), *_canaries(place, watches))
    return tuple(_ask(place, watch, settings) for watch in asked)


def is_of_testbed(evidence: Sequence[WatchEvidence]) -> bool | None:
    """Return whether a change is the testbed's, by sentinels or else by canaries; None if nothing can.

    A sentinel is moved by all that moves a database, so where one answers it is believed. Canaries only
    can accuse: that they stood still does not show that nothing changed.
    """
    answers = [one for one in evidence if one.is_decisive]
    if of_sentinels := [one.follows for one in answers if one.is_of_sentinel]:
        return any(of_sentinels)
    return True if any(one.follows for one in answers) else None


def _nearest_sentinels(key: SeriesKey, watches: Sequence[Watch]) -> tuple[Watch, ...]:
    sentinels = [
        watch
        for watch in watches
        if not is_canary(watch.series.key)
        and _agree(key, watch.series.key, ("testbed_class", "metric", "statistic"))
    ]
    same_work = [watch for watch in sentinels if _agree(key, watch.series.key, _SAME_WORK)]
    return tuple(same_work or sentinels)


def _canaries(place: ChangeLocation, watches: Sequence[Watch]) -> tuple[Watch, ...]:
    key = place.change.series.key
    return tuple(
        watch
        for watch in watches
        if is_canary(watch.series.key)
        and _agree(key, watch.series.key, _SAME_TRIALS)
        and key.host in ("", watch.series.key.host)
    )


def _agree(one: SeriesKey, other: SeriesKey, names: Iterable[str]) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _ask(place: ChangeLocation, watch: Watch, settings: Detection) -> WatchEvidence:
    """Ask one canary or sentinel about a change that has a span of time."""
    moved = [one for one in locate(watch.changes) if is_same_time(one, place)]
    if moved:
        return _compare_movement(place.change, max(moved, key=_size).change)
    before, after = _sides(place, watch.series.points)
    unmoved = WatchEvidence(
        key=watch.series.key,
        state=WatchState.STILL,
        before=len(before),
        after=len(after),
        last_night=words.night(before[-1]) if before else "",
    )
    if not after:
        return replace(unmoved, state=WatchState.SILENT)
    few, many = sorted((len(before), len(after)))
    noise = watch.reading.noise if watch.reading else None
    if not watch.reading or not few or (noise and not can_confirm(few, many, settings)):
        return replace(unmoved, state=WatchState.SHORT)
    if noise is None:
        return unmoved
    visible = minimum_detectable_effect(noise, len(after), settings.max_p_value)
    is_seen = visible <= abs(place.change.relative_change)
    return replace(unmoved, state=WatchState.STILL if is_seen else WatchState.UNSEEN, visible=visible)


def _sides(place: ChangeLocation, points: Sequence[Point]) -> tuple[list[Point], list[Point]]:
    """Split the points of a watch at a change; those of the last night before it lie before it."""
    last = max(place.before, key=lambda point: point.started_at)
    before: list[Point] = []
    after: list[Point] = []
    for point in points:
        is_before = point.started_at <= last.started_at or words.night(point) == words.night(last)
        (before if is_before else after).append(point)
    return before, after


def _size(place: ChangeLocation) -> float:
    return abs(place.change.relative_change)


def _compare_movement(change: ChangePoint, own: ChangePoint) -> WatchEvidence:
    """Hold how a canary or sentinel moved at the time of a change against that."""
    if own.outcome is not change.outcome:
        state = WatchState.MOVED_AGAINST
    elif abs(own.relative_change) >= _EXPLAINING_SHARE * abs(change.relative_change):
        state = WatchState.FOLLOWED
    else:
        state = WatchState.MOVED_LESS
    return WatchEvidence(key=own.series.key, state=state, change=own)
