"""Series: observations of one key, ordered by release (line, ordinal) and then by time.

Invalid and failed trials never enter; gaps are never filled; order of arrival does not matter.
Several nights of one release are neighbouring points: the axis is the release, not the calendar. A
moving target, such as a nightly build, is one release of its own line: its series is one by night.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache

from perf.model import Observation, Purpose, Release, SeriesKey, TrialId, TrialStatus

_NIGHTS_AT_HAND = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One completed trial's value in a series; `iterations` are that trial's repeated values.

    `night` names the night that measured it: what was known when is told by it, never by the order.
    """

    trial: TrialId
    release: Release
    started_at: datetime
    value: float
    iterations: tuple[float, ...] = ()
    night: str = ""
    purpose: Purpose = Purpose.SCHEDULED


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The points of one key in order; none, where the key has no completed trial."""

    key: SeriesKey
    points: tuple[Point, ...]


def build_series(observations: Iterable[Observation]) -> tuple[Series, ...]:
    """Group observations by key, ascending by key, into ordered series of completed trials.

    A key whose every trial is invalid or failed gives a series without points, so that its silence
    can be told. Raises ValueError where a completed trial holds a value that is not finite, or gives
    two values for one series: both are defects of the measurement, and dropping one would hide it.
    """
    points: defaultdict[SeriesKey, dict[TrialId, Point]] = defaultdict(dict)
    for observation in observations:
        of_key = points[observation.key]
        if observation.status is TrialStatus.COMPLETED:
            _refuse_defects(observation, of_key)
            of_key[observation.trial] = _point(observation)
    return tuple(
        Series(key=key, points=tuple(sorted(points[key].values(), key=position)))
        for key in sorted(points)
    )


def _refuse_defects(observation: Observation, seen: dict[TrialId, Point]) -> None:
    where = f"trial {observation.trial}, series {observation.key}"
    if not all(math.isfinite(value) for value in (observation.value, *observation.iterations)):
        raise ValueError(f"{where}: a completed trial holds a value that is not a finite number")
    if observation.trial in seen:
        raise ValueError(f"{where}: one trial gives two values for one series")


def _point(observation: Observation) -> Point:
    return Point(
        trial=observation.trial,
        release=observation.release,
        started_at=observation.started_at,
        value=observation.value,
        iterations=observation.iterations,
        night=observation.night,
        purpose=observation.purpose,
    )


def position(point: Point | Observation) -> tuple[tuple[tuple[int, str], ...], int, datetime, TrialId]:
    """Give the sort key of a point in its series: release line, ordinal, time, trial."""
    release = point.release
    return _by_numbers(release.line, "."), release.ordinal, point.started_at, point.trial


def nights_of(series: Series) -> tuple[str, ...]:
    """Give the nights that measured a series, in the order of time, which their names tell."""
    return _put_in_order(tuple([point.night for point in series.points]))


@lru_cache(_NIGHTS_AT_HAND)
def _put_in_order(nights: tuple[str, ...]) -> tuple[str, ...]:
    """Put the nights of points in order; the series of an experiment share theirs."""
    return tuple(sorted(set(nights), key=lambda night: _by_numbers(night, "-")))


@cache
def _by_numbers(text: str, separator: str) -> tuple[tuple[int, str], ...]:
    """Order text by its numbers, so that 10.0 follows 9.1; parts that are words come first."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in text.split(separator))
