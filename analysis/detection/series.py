"""Series: observations of one key, ordered by release (line, ordinal) and then by time.

Invalid and failed trials never enter; gaps are never filled; order of arrival does not matter.
Several nights of one release are neighbouring points: the axis is the release, not the calendar. A
moving target, such as a nightly build, is one release of its own line: its series is one by night.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import overload

import numpy as np
from numpy.typing import NDArray

from perf.model.columns import (
    Columns,
    ObservedSeries,
    Occasion,
    OccasionKind,
    Occasions,
    gather,
    order_by_numbers,
)
from perf.model.results import Observation, Purpose, Release, SeriesKey, TrialId, TrialStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One completed trial's value in a series; `iterations` are that trial's repeated values.

    `night` names the night that measured it: it says what was known when, the order does not.
    """

    trial: TrialId
    release: Release
    started_at: datetime
    value: float
    iterations: tuple[float, ...] = ()
    night: str = ""
    purpose: Purpose = Purpose.SCHEDULED


class Points(Sequence[Point]):
    """Points in columns, each made when it is asked for; equal to any sequence of equal points.

    What is asked of all points of all series is given as a column: millions of objects take seconds.
    """

    __slots__ = ("_trials", "columns")

    def __init__(self, columns: Columns) -> None:
        """Take over the columns."""
        self.columns = columns
        self._trials: tuple[TrialId, ...] | None = None

    @classmethod
    def of(cls, points: Iterable[Point]) -> "Points":
        """Put points in columns."""
        if isinstance(points, cls):
            return points
        kept = tuple(points)
        occasions: dict[Occasion, int] = {}
        places = [
            occasions.setdefault(
                Occasion(
                    trial=one.trial,
                    release=one.release,
                    started_at=one.started_at,
                    status=TrialStatus.COMPLETED,
                    night=one.night,
                    purpose=one.purpose,
                ),
                len(occasions),
            )
            for one in kept
        ]
        values, iterations = [one.value for one in kept], [one.iterations for one in kept]
        return cls(Columns.of(Occasions.of(occasions), places, values, iterations))

    @property
    def values(self) -> Sequence[float]:
        """Return the value of each point."""
        return self.columns.values

    @property
    def occasions(self) -> Iterator[Occasion]:
        """Return for each point when and of what it was measured."""
        return map(self.columns.occasions.__getitem__, self.columns.places)

    @property
    def trials(self) -> tuple[TrialId, ...]:
        """Return the trial of each point."""
        if self._trials is None:
            self._trials = self.columns.occasions.trials_at(self.columns.places)
        return self._trials

    @property
    def night_numbers(self) -> NDArray[np.integer]:
        """Return the number of the night of each point, among those that measured any of them."""
        return self.columns.occasions.nights_at(self.columns.places)[0]

    @property
    def nights_in_order(self) -> tuple[str, ...]:
        """Return the nights that measured them, in the order of time: number n is that of night n."""
        return self.columns.occasions.nights_at(self.columns.places)[1]

    @property
    def newest_night(self) -> str:
        """Return the last of the nights that measured any of them."""
        return self.columns.occasions.nights[self.columns.places[int(self.night_numbers.argmax())]]

    def first_start(self) -> datetime:
        """Return when the first of them was measured."""
        occasions, places = self.columns.occasions, self.columns.places
        return occasions[places[int(occasions.moments[np.asarray(places)].argmin())]].started_at

    def newest(self) -> Occasion:
        """Return the occasion of the last of them, of several at one moment by the trial's name."""
        occasions, places = self.columns.occasions, np.asarray(self.columns.places)
        moments = occasions.moments[places]
        last = map(occasions.__getitem__, places[moments == moments.max()])
        return max(last, key=attrgetter("trial"))

    def nights_of(self, release: Release) -> frozenset[str]:
        """Return the nights that measured any of them of a release."""
        occasions, places = self.columns.occasions, np.asarray(self.columns.places)
        numbers = [at for at, one in enumerate(occasions.release_of_number) if one == release]
        of_release = places[np.isin(occasions.releases[places], numbers)]
        return frozenset(map(occasions.nights.__getitem__, of_release))

    def places_of(self, night: str) -> list[int]:
        """Return the places of the points that a night measured."""
        of_night = self.columns.occasions.of_night(night)
        return [*map(int, np.flatnonzero(of_night[np.asarray(self.columns.places)]))]

    @property
    def days(self) -> NDArray[np.integer]:
        """Return the number of the day of each point, from noon to noon."""
        of_point: NDArray[np.integer] = self.columns.occasions.days[np.asarray(self.columns.places)]
        return of_point

    @property
    def releases(self) -> NDArray[np.integer]:
        """Return the number of each point's release: equal numbers, equal releases."""
        of_point: NDArray[np.integer] = self.columns.occasions.releases[np.asarray(self.columns.places)]
        return of_point

    @property
    def versions(self) -> frozenset[str]:
        """Return the versions of which there are points."""
        return self.columns.occasions.versions_at(self.columns.places)

    def has(self, is_wanted: Callable[[OccasionKind], bool]) -> bool:
        """Return whether any point is of such an occasion; `is_wanted` is no passing closure."""
        return bool(self.columns.occasions.mask(is_wanted)[np.asarray(self.columns.places)].any())

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.columns)

    @overload
    def __getitem__(self, number: int) -> Point: ...

    @overload
    def __getitem__(self, number: slice) -> "Points": ...

    def __getitem__(self, number: int | slice) -> "Point | Points":
        """Return one point, or neighbouring ones, which stay columns."""
        if isinstance(number, slice):
            start, stop, step = number.indices(len(self))
            if step != 1:
                raise ValueError("only neighbouring points can be taken of a series")
            return Points(self.columns.cut(start, max(start, stop)))
        return self._make(range(len(self))[number])

    def __iter__(self) -> Iterator[Point]:
        """Return one point after the other."""
        return map(self._make, range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Compare point by point."""
        if not isinstance(other, (Points, tuple, list)):
            return NotImplemented
        return self is other or (len(self) == len(other) and tuple(self) == tuple(other))

    def __hash__(self) -> int:
        """Equal points have equal values."""
        return hash(tuple(self.values))

    def __repr__(self) -> str:
        """Show the points."""
        return f"Points.of({tuple(self)!r})"

    def _make(self, number: int) -> Point:
        occasion = self.columns.occasion(number)
        return Point(
            trial=occasion.trial,
            release=occasion.release,
            started_at=occasion.started_at,
            value=self.columns.values[number],
            iterations=self.columns.iterations_of(number),
            night=occasion.night,
            purpose=occasion.purpose,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The points of one key in order; none, where the key has no completed trial."""

    key: SeriesKey
    points: Points

    def __post_init__(self) -> None:
        """Take any points: they are put in columns."""
        object.__setattr__(self, "points", Points.of(self.points))


def find_newest_occasion(series: Iterable[Series]) -> Occasion | None:
    """Return the last of the occasions on which a point of any of the series was measured."""
    latest = (one.points.newest() for one in series if one.points)
    return max(latest, key=attrgetter("started_at", "trial"), default=None)


def build_series(observations: Iterable[Observation]) -> tuple[Series, ...]:
    """Group observations by key, ascending by key, into ordered series of completed trials.

    A key whose every trial is invalid or failed gives a series without points, so that its silence
    can be known. Raises ValueError where a completed trial holds a value that is not finite, or gives
    two values for one series: both are defects of the measurement, and dropping one would hide it.
    """
    return tuple(map(_put_in_series, gather(observations).series))


def _put_in_series(observed: ObservedSeries) -> Series:
    columns = observed.where(_is_completed).columns
    _refuse_defects(observed.key, columns)
    order = np.argsort(columns.occasions.ranks[np.asarray(columns.places)], kind="stable")
    return Series(key=observed.key, points=Points(columns.pick(order)))


def _is_completed(occasion: OccasionKind) -> bool:
    return occasion.status is TrialStatus.COMPLETED


def _refuse_defects(key: SeriesKey, columns: Columns) -> None:
    is_finite = bool(np.isfinite(columns.values).all() and np.isfinite(columns.iterations).all())
    is_once = np.unique(columns.places).size == len(columns)
    if is_finite and is_once and columns.occasions.are_of_different_trials:
        return
    seen = set()
    for number, place in enumerate(columns.places):
        trial = columns.occasions[place].trial
        if not all(map(math.isfinite, (columns.values[number], *columns.iterations_of(number)))):
            raise ValueError(
                f"trial {trial}, series {key}: a completed trial holds a value that is not a finite "
                "number"
            )
        if trial in seen:
            raise ValueError(f"trial {trial}, series {key}: one trial gives two values for one series")
        seen.add(trial)


def position(
    point: Point | Occasion,
) -> tuple[tuple[tuple[int, str], ...], int, datetime, TrialId]:
    """Return the sort key of a point in its series: release line, ordinal, time, trial."""
    release = point.release
    return order_by_numbers(release.line, "."), release.ordinal, point.started_at, point.trial
