"""Observations as columns: millions of them in tens of bytes each. Pure.

Objects would take ten times as much memory, so each is made when it is asked for. What the observations
of one trial have in common is told once, for all series.
"""

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, chain, pairwise
from typing import overload

from perf.model import Observation, Purpose, Release, SeriesKey, TrialId, TrialStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """What the observations of one trial have in common, whatever they are of."""

    trial: TrialId
    release: Release
    started_at: datetime
    status: TrialStatus
    night: str
    purpose: Purpose


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Values with their occasions: value n is of `occasions[places[n]]`.

    Its iterations lie in `iterations` up to `ends[n]`, from where those of the value before it end.
    """

    occasions: Sequence[Occasion]
    places: "array[int]"
    values: "array[float]"
    iterations: "array[float]"
    ends: "array[int]"

    @classmethod
    def of(
        cls,
        occasions: Sequence[Occasion],
        places: Iterable[int],
        values: Iterable[float],
        iterations: Iterable[Sequence[float]],
    ) -> "Columns":
        """Give the columns of as many places as values, and as many sequences of iterations."""
        kept = list(iterations)
        return cls(
            occasions,
            array("I", places),
            array("d", values),
            array("d", chain.from_iterable(kept)),
            array("I", accumulate(map(len, kept))),
        )

    def __len__(self) -> int:
        """Give the number of values."""
        return len(self.values)

    @property
    def counts(self) -> list[int]:
        """Give how many iterations each value has."""
        return [end - start for start, end in pairwise((0, *self.ends))]

    def occasion(self, number: int) -> Occasion:
        """Give the occasion of a value."""
        return self.occasions[self.places[number]]

    def iterations_of(self, number: int) -> tuple[float, ...]:
        """Give the iterations of a value, in their order."""
        start = self.ends[number - 1] if number else 0
        return tuple(self.iterations[start : self.ends[number]])

    def pick(self, numbers: Sequence[int]) -> "Columns":
        """Give these values, in this order; the very same columns if they are all of them in order."""
        if numbers == range(len(self)) or list(numbers) == list(range(len(self))):
            return self
        return Columns.of(
            self.occasions,
            (self.places[number] for number in numbers),
            (self.values[number] for number in numbers),
            (self.iterations_of(number) for number in numbers),
        )

    def cut(self, start: int, stop: int) -> "Columns":
        """Give the values from `start` to before `stop`, both of them within the columns."""
        base = self.ends[start - 1] if start else 0
        ends = self.ends[start:stop]
        return Columns(
            self.occasions,
            self.places[start:stop],
            self.values[start:stop],
            self.iterations[base : ends[-1] if ends else base],
            array("I", [end - base for end in ends]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class ObservedSeries(Sequence[Observation]):
    """The observations of one series, each made when it is asked for."""

    key: SeriesKey
    columns: Columns

    def __len__(self) -> int:
        """Give the number of observations."""
        return len(self.columns)

    @overload
    def __getitem__(self, number: int) -> Observation: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[Observation, ...]: ...

    def __getitem__(self, number: int | slice) -> Observation | tuple[Observation, ...]:
        """Give one observation, or several."""
        if isinstance(number, slice):
            return tuple(map(self._make, range(len(self))[number]))
        return self._make(range(len(self))[number])

    def __iter__(self) -> Iterator[Observation]:
        """Give one after the other."""
        return map(self._make, range(len(self)))

    def where(self, is_wanted: Callable[[Occasion], bool]) -> "ObservedSeries":
        """Give those of some occasions."""
        places = self.columns.places
        asked = {place: is_wanted(self.columns.occasions[place]) for place in set(places)}
        if all(asked.values()):
            return self
        numbers = [number for number, place in enumerate(places) if asked[place]]
        return ObservedSeries(self.key, self.columns.pick(numbers))

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
        """Give one after the other."""
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
    shared = tuple(occasions)
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
