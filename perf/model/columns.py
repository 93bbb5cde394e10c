"""Observations as columns: millions of them in tens of bytes each. Pure.

Objects would take ten times as much memory, so each is made when it is asked for. What the observations
of one trial have in common is reported once, for all series.
"""

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from itertools import accumulate, chain
from typing import Any, cast, overload

import numpy as np
from numpy.typing import NDArray

from perf.model.results import Observation, Purpose, Release, SeriesKey, TrialId, TrialStatus

_DAY_0 = datetime(1970, 1, 1, tzinfo=UTC).toordinal()


@dataclass(frozen=True, slots=True, kw_only=True)
class OccasionKind:
    """What many occasions have in common."""

    release: Release
    status: TrialStatus
    purpose: Purpose


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion(OccasionKind):
    """What the observations of one trial have in common, whatever they are of."""

    trial: TrialId
    started_at: datetime
    night: str


class Occasions(Sequence[Occasion]):
    """The occasions that many series have in common, in columns; each is made when it is asked for."""

    def __init__(
        self,
        trials: Sequence[TrialId],
        nights: Sequence[str],
        moments: NDArray[np.datetime64],
        kinds: Sequence[OccasionKind],
        kind_numbers: NDArray[np.integer],
    ) -> None:
        """Take them in an order of the caller's: `moments` are the starts, in microseconds of UTC.

        Number n is of the kind `kinds[kind_numbers[n]]`.
        """
        self.trials, self.nights, self.moments = tuple(trials), tuple(nights), moments
        self._kinds, self._kind_numbers = kinds, kind_numbers
        self._made: list[Occasion | None] = [None] * len(self.trials)
        self._masks: dict[Callable[[OccasionKind], bool], NDArray[np.bool_]] = {}
        self._trials: dict[bytes, tuple[TrialId, ...]] = {}
        self._nights: dict[bytes, tuple[NDArray[np.integer], tuple[str, ...]]] = {}
        self._versions: dict[bytes, frozenset[str]] = {}
        self._of_nights: dict[str, NDArray[np.bool_]] = {}

    @classmethod
    def of(cls, occasions: Iterable[Occasion]) -> "Occasions":
        """Put occasions in columns."""
        kept = tuple(occasions)
        kinds: dict[OccasionKind, int] = {}
        numbers = [
            kinds.setdefault(
                OccasionKind(release=one.release, status=one.status, purpose=one.purpose), len(kinds)
            )
            for one in kept
        ]
        started = [one.started_at.astimezone(UTC).replace(tzinfo=None) for one in kept]
        moments = np.array(started, dtype="datetime64[us]")
        trials, nights = [one.trial for one in kept], [one.night for one in kept]
        found = cls(trials, nights, moments, tuple(kinds), np.array(numbers, dtype=int))
        found._made = [*kept]
        return found

    def __len__(self) -> int:
        """Return the number of occasions."""
        return len(self.trials)

    @overload
    def __getitem__(self, number: int) -> Occasion: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[Occasion, ...]: ...

    def __getitem__(self, number: int | slice) -> Occasion | tuple[Occasion, ...]:
        """Return one occasion, or several."""
        if isinstance(number, slice):
            return tuple(map(self._make, range(len(self))[number]))
        return self._made[number] or self._make(range(len(self))[number])

    def __iter__(self) -> Iterator[Occasion]:
        """Return one after the other."""
        return map(self._make, range(len(self)))

    def _make(self, number: int) -> Occasion:
        made = self._made[number]
        if made is None:
            kind = self._kinds[self._kind_numbers[number]]
            made = self._made[number] = Occasion(
                trial=self.trials[number],
                release=kind.release,
                started_at=self.moments[number].item().replace(tzinfo=UTC),
                status=kind.status,
                night=self.nights[number],
                purpose=kind.purpose,
            )
        return made

    @cached_property
    def night_numbers(self) -> NDArray[np.integer]:
        """Return the number of each one's night, in the order of time, which their names tell."""
        ordered = sorted(set(self.nights), key=lambda night: order_by_numbers(night, "-"))
        numbers = {night: number for number, night in enumerate(ordered)}
        return np.array([numbers[night] for night in self.nights], dtype=int)

    @cached_property
    def years(self) -> NDArray[np.integer]:
        """Return in which year each started, in UTC."""
        return self.moments.astype("datetime64[Y]").astype(int) + 1970

    @cached_property
    def days(self) -> NDArray[np.integer]:
        """Return the number of the day of each, from noon to noon: a night is of the day it ends on."""
        return (self.moments.astype("datetime64[h]").astype(int) + 12) // 24 + _DAY_0

    @cached_property
    def releases(self) -> NDArray[np.integer]:
        """Return the number of each one's release: equal numbers, equal releases."""
        numbers = {release: number for number, release in enumerate(self.release_of_number)}
        of_kinds = np.array([numbers[one.release] for one in self._kinds], dtype=int)
        of_all: NDArray[np.integer] = of_kinds[self._kind_numbers]
        return of_all

    @cached_property
    def release_of_number(self) -> tuple[Release, ...]:
        """Return the releases by their numbers."""
        return tuple(dict.fromkeys(one.release for one in self._kinds))

    @cached_property
    def ranks(self) -> NDArray[np.integer]:
        """Return the rank of each in a series, equal where they are equal.

        It is by release line, of which the numbers count, by ordinal, time and trial.
        """
        lines = [(order_by_numbers(one.line, "."), one.ordinal) for one in self.release_of_number]
        rank_of = {line: rank for rank, line in enumerate(sorted(set(lines)))}
        releases = np.array([rank_of[line] for line in lines], dtype=int)[self.releases]
        names = np.zeros(len(self), dtype=int)
        order = np.lexsort((self.moments, releases))
        if not self._differs(order, releases, self.moments)[1:].all():
            names = np.unique(np.array(self.trials), return_inverse=True)[1]
            order = np.lexsort((names, self.moments, releases))
        ranks = np.empty(len(self), dtype=int)
        ranks[order] = np.cumsum(self._differs(order, releases, self.moments, names))
        return ranks

    @staticmethod
    def _differs(order: NDArray[np.integer], *columns: NDArray[Any]) -> NDArray[np.bool_]:
        """Return of each in an order whether it differs from the one before it."""
        differs = np.zeros(len(order), dtype=bool)
        for column in columns:
            differs[1:] |= column[order[1:]] != column[order[:-1]]
        return differs

    @cached_property
    def are_of_different_trials(self) -> bool:
        """Return whether no two are of one trial, as is so of all that a history holds."""
        return len(set(self.trials)) == len(self)

    def of_night(self, night: str) -> NDArray[np.bool_]:
        """Return of each whether a night measured it."""
        if night not in self._of_nights:
            found = (one == night for one in self.nights)
            self._of_nights[night] = np.fromiter(found, dtype=bool, count=len(self))
        return self._of_nights[night]

    def trials_at(self, places: "array[int]") -> tuple[TrialId, ...]:
        """Return the trials at some places; the series of an experiment share theirs, as one object."""
        key = places.tobytes()
        if key not in self._trials:
            self._trials[key] = tuple(map(self.trials.__getitem__, places))
        return self._trials[key]

    def nights_at(self, places: "array[int]") -> tuple[NDArray[np.integer], tuple[str, ...]]:
        """Return the number of the night of each place, among those of all, and these, in order."""
        key = places.tobytes()
        if key not in self._nights:
            at = np.asarray(places)
            _, firsts, numbers = np.unique(
                self.night_numbers[at], return_index=True, return_inverse=True
            )
            nights = tuple(map(self.nights.__getitem__, at[firsts].tolist()))
            self._nights[key] = numbers, nights
        return self._nights[key]

    def versions_at(self, places: "array[int]") -> frozenset[str]:
        """Return the versions of the releases at some places."""
        key = places.tobytes()
        if key not in self._versions:
            found = np.unique(self.releases[np.asarray(places)]).tolist()
            self._versions[key] = frozenset(self.release_of_number[one].version for one in found)
        return self._versions[key]

    def mask(self, is_wanted: Callable[[OccasionKind], bool]) -> NDArray[np.bool_]:
        """Return of each whether its kind is wanted.

        Raises:
            TypeError: `is_wanted`, which is kept with its answers, is no function of a module.

        """
        if is_wanted not in self._masks:
            if "<" in is_wanted.__qualname__:
                raise TypeError(f"{is_wanted.__qualname__} is no function of a module")
            wanted = np.fromiter(map(is_wanted, self._kinds), dtype=bool, count=len(self._kinds))
            self._masks[is_wanted] = wanted[self._kind_numbers]
        return self._masks[is_wanted]


@cache
def order_by_numbers(text: str, separator: str) -> tuple[tuple[int, str], ...]:
    """Order text by its numbers, so that 10.0 follows 9.1; parts that are words come first."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in text.split(separator))


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Values with their occasions: value n is of `occasions[places[n]]`.

    Its iterations lie in `iterations` up to `ends[n]`, from where those of the value before it end.
    """

    occasions: Occasions
    places: "array[int]"
    values: "array[float]"
    iterations: "array[float]"
    ends: "array[int]"

    @classmethod
    def of(
        cls,
        occasions: Occasions,
        places: Iterable[int],
        values: Iterable[float],
        iterations: Iterable[Sequence[float]],
    ) -> "Columns":
        """Return the columns of as many places as values, and as many sequences of iterations."""
        kept = list(iterations)
        return cls(
            occasions,
            array("I", places),
            array("d", values),
            array("d", chain.from_iterable(kept)),
            array("I", accumulate(map(len, kept))),
        )

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self.values)

    @property
    def counts(self) -> list[int]:
        """Return how many iterations each value has."""
        ends = np.asarray(self.ends, dtype=np.int64)
        return cast("list[int]", np.diff(ends, prepend=0).tolist())

    def occasion(self, number: int) -> Occasion:
        """Return the occasion of a value."""
        return self.occasions[self.places[number]]

    def iterations_of(self, number: int) -> tuple[float, ...]:
        """Return the iterations of a value, in their order."""
        start = self.ends[number - 1] if number else 0
        return tuple(self.iterations[start : self.ends[number]])

    def pick(self, numbers: NDArray[np.integer]) -> "Columns":
        """Give these values, in this order; the very same columns if they are all of them in order."""
        if np.array_equal(numbers, np.arange(len(self))):
            return self
        ends = np.asarray(self.ends).astype(int)
        counts = np.diff(ends, prepend=0)[numbers]
        ends_there = np.cumsum(counts)
        # Where each iteration lies here: as far behind its value's first as it does there.
        moved = np.repeat((ends[numbers] - ends_there), counts)
        return Columns(
            self.occasions,
            array("I", np.asarray(self.places)[numbers].tobytes()),
            array("d", np.asarray(self.values)[numbers].tobytes()),
            array("d", np.asarray(self.iterations)[moved + np.arange(len(moved))].tobytes()),
            array("I", ends_there.astype(np.uintc).tobytes()),
        )

    def merge(self, other: "Columns") -> "Columns":
        """Return these values and others of the same occasions, by place."""
        base = self.ends[-1] if self.ends else 0
        both = Columns(
            self.occasions,
            self.places + other.places,
            self.values + other.values,
            self.iterations + other.iterations,
            self.ends + array("I", (base + end for end in other.ends)),
        )
        return both.pick(np.argsort(both.places, kind="stable"))

    def cut(self, start: int, stop: int) -> "Columns":
        """Return the values from `start` to before `stop`, both of them within the columns."""
        base = self.ends[start - 1] if start else 0
        ends = self.ends[start:stop]
        return Columns(
            self.occasions,
            self.places[start:stop],
            self.values[start:stop],
            self.iterations[base : ends[-1] if ends else base],
            array("I", (np.asarray(ends) - np.uintc(base)).tobytes()),
        )


@dataclass(frozen=True, slots=True, eq=False)
class ObservedSeries(Sequence[Observation]):
    """The observations of one series, each made when it is asked for."""

    key: SeriesKey
    columns: Columns

    def __len__(self) -> int:
        """Return the number of observations."""
        return len(self.columns)

    @overload
    def __getitem__(self, number: int) -> Observation: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[Observation, ...]: ...

    def __getitem__(self, number: int | slice) -> Observation | tuple[Observation, ...]:
        """Return one observation, or several."""
        if isinstance(number, slice):
            return tuple(map(self._make, range(len(self))[number]))
        return self._make(range(len(self))[number])

    def __iter__(self) -> Iterator[Observation]:
        """Return one after the other."""
        return map(self._make, range(len(self)))

    def where(self, is_wanted: Callable[[OccasionKind], bool]) -> "ObservedSeries":
        """Return those of some occasions."""
        wanted = self.columns.occasions.mask(is_wanted)[np.asarray(self.columns.places)]
        if wanted.all():
            return self
        return ObservedSeries(self.key, self.columns.pick(np.flatnonzero(wanted)))

    def _make(self, number: int) -> Observation:
        occasion = self.columns.occasion(number)
        return Observation(
            key=self.key,
            trial=occasion.trial,
            release=occasion.release,
            started_at=occasion.started_at,
            status=occasion.status,
            value=self.columns.values[number],
            iterations=self.columns.iterations_of(number),
            night=occasion.night,
            purpose=occasion.purpose,
        )


@dataclass(frozen=True, slots=True)
class Observations(Iterable[Observation]):
    """Many observations by series, ascending by key."""

    series: tuple[ObservedSeries, ...]

    def __iter__(self) -> Iterator[Observation]:
        """Return one after the other."""
        return chain.from_iterable(self.series)


def gather(observations: Iterable[Observation]) -> Observations:
    """Put observations in columns, a series for each key; within one, their order stays."""
    if isinstance(observations, Observations):
        return observations
    occasions: dict[Occasion, int] = {}
    of_key: defaultdict[SeriesKey, list[tuple[int, Observation]]] = defaultdict(list)
    for one in observations:
        occasion = Occasion(
            trial=one.trial,
            release=one.release,
            started_at=one.started_at,
            status=one.status,
            night=one.night,
            purpose=one.purpose,
        )
        of_key[one.key].append((occasions.setdefault(occasion, len(occasions)), one))
    shared = Occasions.of(occasions)
    return Observations(
        tuple(
            ObservedSeries(
                key,
                Columns.of(
                    shared,
                    (place for place, _ in of_key[key]),
                    (one.value for _, one in of_key[key]),
                    (one.iterations for _, one in of_key[key]),
                ),
            )
            for key in sorted(of_key)
        )
    )
