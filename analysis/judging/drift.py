"""Drift of the testbed: whether canaries and sentinels moved when a series did.

A canary is fixed work on a host, a sentinel an old release that is measured again and again. Neither
knows the release under test, so what moves them at the same time may well have moved the series, too.
Both are read by the same detector as everything else.

Asked are the canaries of the same trials, and the sentinels of the same testbed with the same metric;
of these, those of the same work if there are any.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.detection import words
from analysis.detection.detection import ChangePoint, Detector, Drift, SpreadChange, find_changes
from analysis.detection.noise import Noise, can_confirm, minimum_detectable_effect
from analysis.detection.series import Point, Points, Series, build_series
from analysis.judging.places import ChangeLocation, is_same_time, locate
from perf.model.columns import Occasion, gather
from perf.model.metrics import CANARY_PHASES
from perf.model.results import Observation, Purpose, SeriesKey
from perf.model.rules import Detection

_EXPLAINING_SHARE = 0.5
"""What moved by less than half as much as the series leaves most of the change unexplained."""
_SAME_TRIALS = ("system", "line", "topology", "testbed_class", "config", "workload", "engine")
_SAME_WORK = ("system", "workload", "phase", "operation")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvidence:
    """What one canary or sentinel says about a change.

    `relative_change` is its own, 0 where it did not move; `index_at` says where it moved or was looked
    at. `follows` is true if it moved at the same time, in the matching direction and far enough;
    `can_tell` is false where it has no answer, for example because it was not measured since.
    """

    key: SeriesKey
    name: str
    relative_change: float
    index_at: str
    follows: bool
    text: str
    can_tell: bool = True

    @property
    def is_of_sentinel(self) -> bool:
        """Tell whether it is about a whole database rather than about one host."""
        return not is_canary(self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A canary or a sentinel in the order of time, and what the detector saw in it.

    It has changes only if it was long enough to be searched: `is_searched`.
    """

    series: Series
    changes: tuple[ChangePoint, ...]
    is_searched: bool
    noise: Noise | None
    drifts: tuple[Drift, ...]
    spreads: tuple[SpreadChange, ...]


def is_watch(observation: Observation) -> bool:
    """Tell whether an observation is of a canary or a sentinel."""
    return is_sentinel(observation) or is_canary(observation.key)


def is_sentinel(one: Observation | Occasion) -> bool:
    """Tell whether an old release was measured to watch the testbed."""
    return one.purpose is Purpose.SENTINEL


def is_canary(key: SeriesKey) -> bool:
    """Tell whether a series is of fixed work on a host."""
    return key.phase in CANARY_PHASES


def read_watches(
    observations: Iterable[Observation], settings: Detection, detector: Detector
) -> tuple[Watch, ...]:
    """Search canaries and sentinels for changes. Raises ValueError as `build_series` does.

    A sentinel's level is that of its release, so each release is a series of its own, whose line is
    that release alone.
    """
    watched = gather(observations)
    if any(one.where(is_sentinel) for one in watched.series):
        watched = gather(
            replace(one, key=replace(one.key, line=one.release.version)) if is_sentinel(one) else one
            for one in watched
        )
    series = (one for one in build_series(watched) if one.points)
    return tuple(_watch(one, settings, detector) for one in series)


def _watch(series: Series, settings: Detection, detector: Detector) -> Watch:
    columns = series.points.columns
    times = [(one.started_at, one.trial) for one in series.points.occasions]
    order = np.array(sorted(range(len(times)), key=times.__getitem__), dtype=int)
    in_time = Series(key=series.key, points=Points(columns.pick(order)))
    is_searched = len(in_time.points) >= settings.minimum_points
    reading = detector.read(in_time.points.values) if is_searched else None
    return Watch(
        series=in_time,
        changes=find_changes(in_time, reading, detector.name) if reading else (),
        is_searched=is_searched,
        noise=reading.noise if reading else None,
        drifts=reading.drifts if reading else (),
        spreads=reading.spreads if reading else (),
    )


def environment_evidence(
    place: ChangeLocation, watches: Sequence[Watch], settings: Detection
) -> tuple[WatchEvidence, ...]:
    """Say what canaries and sentinels have to say about a change, sentinels first."""
    if place.time is None:
        return (_alternating(place),)
    asked = (*_nearest_sentinels(place.change.series.key, watches), *_canaries(place, watches))
    return tuple(_ask(place, watch, settings) for watch in asked)


def is_of_testbed(evidence: Sequence[WatchEvidence]) -> bool | None:
    """Tell whether a change is the testbed's, by sentinels or else by canaries; None if nothing can.

    A sentinel is moved by all that moves a database, so where one answers it is believed. Canaries only
    can accuse: that they stood still does not show that nothing changed.
    """
    answers = [one for one in evidence if one.can_tell]
    if of_sentinels := [one.follows for one in answers if one.is_of_sentinel]:
        return any(of_sentinels)
    return True if any(one.follows for one in answers) else None


def _alternating(place: ChangeLocation) -> WatchEvidence:
    change = place.change
    return WatchEvidence(
        key=change.series.key,
        name="order of measuring",
        relative_change=0.0,
        index_at=words.place(change),
        follows=False,
        text="what lies before and after was measured on the same nights by turns, so no change of the"
        " testbed lies between",
    )


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
    name = describe(watch.series)
    before, after = _sides(place, watch.series.points)
    moved = [one for one in locate(watch.changes) if is_same_time(one, place)]
    if moved:
        return _of_movement(place.change, max(moved, key=_size).change, name)
    at = words.place(place.change)
    unmoved = WatchEvidence(
        key=watch.series.key, name=name, relative_change=0.0, index_at=at, follows=False, text=""
    )
    sides = f"{words.points(len(before))} before, {len(after)} after"
    if not after:
        last = words.night(before[-1]) if before else "never"
        return replace(unmoved, text=f"{name}: not measured since (last: {last})", can_tell=False)
    few, many = sorted((len(before), len(after)))
    if (
        not watch.is_searched
        or not few
        or (watch.noise is not None and not can_confirm(few, many, settings))
    ):
        return replace(unmoved, text=f"{name}: too few points to tell ({sides})", can_tell=False)
    if watch.noise is None:
        return replace(unmoved, text=f"{name}: did not move ({sides})")
    visible = minimum_detectable_effect(watch.noise, len(after), settings.max_p_value)
    can_tell = visible <= abs(place.change.relative_change)
    verb = "did not move" if can_tell else "was not seen to move, but cannot tell yet"
    text = f"{name}: {verb} ({sides}, which show ≥ {words.percent(visible)})"
    return replace(unmoved, text=text, can_tell=can_tell)


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


def _of_movement(change: ChangePoint, own: ChangePoint, name: str) -> WatchEvidence:
    """Say how a canary or sentinel moved at the time of a change, and whether that matches it."""
    matches = own.outcome is change.outcome
    is_enough = abs(own.relative_change) >= _EXPLAINING_SHARE * abs(change.relative_change)
    at = f"between the nights {words.night(own.last_before)} and {words.night(own.first_after)}"
    found = f"{words.movement(own)} {at} ({words.p_value(own.p_value)}, {own.state})"
    if matches and is_enough:
        text = f"{name} moved too: {found}"
    elif matches:
        text = f"{name} moved, but not far enough to explain the change: {found}"
    else:
        text = f"{name} moved the other way: {found}"
    return WatchEvidence(
        key=own.series.key,
        name=name,
        relative_change=own.relative_change,
        index_at=at,
        follows=matches and is_enough,
        text=text,
    )


def describe(series: Series) -> str:
    """Name a canary or a sentinel."""
    key = series.key
    if is_canary(key):
        when = key.phase.removeprefix("canary-")
        return f"{key.metric}{f' on {key.host}' if key.host else ''}, {when} each trial"
    return (
        f"sentinel {key.system} {key.line}, {key.workload.partition('@')[0]} {key.operation}"
        f" {key.metric} {key.statistic} ({key.phase})"
    )
