"""The search of a bisection: where between measured releases a change can still be. Pure.

Releases are places in a line here, counted from the known good end at 0.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from analysis.bisecting.probing import LevelSpan, Probed, ReleaseLevel, ReleaseStatus, level, stand
from perf.model.results import TURNS

SMALLEST = 0.3
"""The share of the full change below which a step is reported, not narrowed down: a step of a third of
the size takes nine times the trials."""
_DOUBT = 0.05
"""A probe is not worth its trials where the change is with a smaller chance."""
_ROUNDS = 2.5
"""Standard errors of half an interval that holds over all looks, about."""
NO_SINGLE_CHANGE, NO_SINGLE_AGAIN = 0.1, 0.5
"""How probable it is beforehand that a range holds no single change, but several or a slow one; the
second where the whole range is known to hold none."""
Array: TypeAlias = NDArray[np.floating[Any]]
_LEVELS = np.linspace(-4, 4, 33)
_ANYWHERE = np.linspace(-0.5, 1.5, 201)
_NARROWEST = 0.02
"""No measurement is taken for more exact than this share of the change: it must fall on the grid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A step lies after the release at `low` and up to the one at `high`, both measured.

    `span` is its size, `share` that of the full change. `unknown` are the releases between them that
    nobody has measured yet, `undecided` those whose trials could not tell. `misfits` are all that were
    measured inside of the search, those first that fit worst. `chances`: of each release from `start`
    on, how probable it is that the step came with it.
    """

    low: int
    high: int
    span: LevelSpan
    share: float
    unknown: tuple[int, ...]
    undecided: tuple[int, ...]
    misfits: tuple[int, ...]
    start: int
    chances: tuple[float, ...]

    @property
    def is_wide(self) -> bool:
        """Return whether the step is large enough to narrow it down."""
        return self.share >= SMALLEST

    def chance(self, after: int, to: int) -> float:
        """Return the probability that the step came after a release and up to another one."""
        return sum(self.chances[after + 1 - self.start : to + 1 - self.start])

    def worth(self) -> tuple[int, ...]:
        """Return the unknown releases whose probe would teach something."""
        whole = self.chance(self.low, self.high)
        return tuple(
            place
            for low, high, chance in self.pairs()
            if chance >= _DOUBT * whole
            for place in self.unknown
            if low < place < high
        )

    def split(self) -> int:
        """Return the unknown release that parts the chances best; of equals, the one in the middle."""

        def loss(place: int) -> tuple[float, int]:
            before, after = self.chance(self.low, place), self.chance(place, self.high)
            return round(abs(before - after), 6), abs(2 * place - self.low - self.high)

        return min(self.worth(), key=loss)

    def pairs(self) -> tuple[tuple[int, int, float], ...]:
        """Give each pair of measured neighbours, and the probability that the step is between them."""
        measured = (self.low, *self.undecided, self.high)
        return tuple((low, high, self.chance(low, high)) for low, high in pairwise(measured))

    def best(self) -> tuple[int, int, float]:
        """Return the most probable pair of measured neighbours, with its probability."""
        return max(self.pairs(), key=lambda pair: pair[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The steps between the ends, in order of releases, and what else does not fit a single one.

    `odd` are the places that do not fit a single step, with the span that they were read by: those
    between both levels, and those that follow. `returned` are pairs of a place like the bad end and a
    later one like the good end again. `opposite` are places that changed the other way.
    """

    gaps: tuple[Gap, ...]
    odd: tuple[tuple[int, LevelSpan], ...]
    returned: tuple[tuple[int, int], ...]
    opposite: tuple[int, ...]


def search(count: int, known: Mapping[int, Probed]) -> Search:
    """Narrow down where the change between the first and the last of `count` releases can be.

    The last must have been measured.
    """
    span = LevelSpan(lower=ReleaseLevel(), upper=_level(known[count - 1]))
    standings = {place: stand(one, span) for place, one in known.items() if 0 < place < count - 1}
    bad = sorted(place for place, one in standings.items() if one is ReleaseStatus.BAD)
    good = sorted(place for place, one in standings.items() if one in _LIKE_GOOD)
    returned = tuple(
        (place, next(other for other in good if other > place))
        for place in bad
        if any(other > place for other in good)
    )
    opposite = tuple(sorted(p for p, one in standings.items() if one is ReleaseStatus.OPPOSITE))
    strange = {*opposite, *(place for pair in returned for place in pair)}
    between: list[tuple[int, LevelSpan]] = []
    gaps = tuple(_narrow(0, count - 1, known, span, between))
    return Search(
        gaps=gaps,
        odd=(*between, *((place, span) for place in sorted(strange))),
        returned=returned,
        opposite=opposite,
    )


_UNLIKE_GOOD = (ReleaseStatus.BAD, ReleaseStatus.OPPOSITE)
_LIKE_GOOD = (ReleaseStatus.GOOD, ReleaseStatus.OPPOSITE)


def _narrow(
    start: int,
    stop: int,
    known: Mapping[int, Probed],
    span: LevelSpan,
    parting: list[tuple[int, LevelSpan]],
) -> Iterator[Gap]:
    inside = {place: stand(known[place], span) for place in known if start < place < stop}
    # The first that parts a search parts all of it.
    full = parting[0][1] if parting else span
    # The last that is like the good end: a change before it went again and does not explain the end.
    low = max((p for p, one in inside.items() if one in _LIKE_GOOD), default=start)
    high = min((p for p, one in inside.items() if one is ReleaseStatus.BAD and p > low), default=stop)
    between = [p for p, one in inside.items() if one is ReleaseStatus.BETWEEN and low < p < high]
    if between:
        middle = min(between, key=lambda place: abs(2 * place - low - high))
        parting.append((middle, span))
        # Against smaller steps, what was like one end of the large one has to be read anew.
        of_middle = _level(known[middle])
        yield from _narrow(start, middle, known, LevelSpan(lower=span.lower, upper=of_middle), parting)
        yield from _narrow(middle, stop, known, LevelSpan(lower=of_middle, upper=span.upper), parting)
        return
    if any(p < low and one in _UNLIKE_GOOD for p, one in inside.items()):
        # What came and went before says nothing about the last step.
        start = low
        inside = {place: one for place, one in inside.items() if place > low}
    measured = [(place, known[place]) for place in sorted(inside)]
    levels = [(place - start - 1, _level(one)) for place, one in measured if one.estimate]
    yield Gap(
        low=low,
        high=high,
        span=span,
        share=abs(span.size / full.size),
        unknown=tuple(place for place in range(low + 1, high) if place not in known),
        undecided=tuple(
            p for p in sorted(inside) if low < p < high and inside[p] is ReleaseStatus.UNDECIDED
        ),
        start=start + 1,
        misfits=tuple(_order_misfits(known, inside, span, low)),
        chances=weigh(
            stop - start,
            levels,
            span.lower,
            span.upper,
            NO_SINGLE_AGAIN if parting else NO_SINGLE_CHANGE,
        ),
    )


def trials_of_probe(end: Probed, size: float, most: int) -> int:
    """Say about how many trials a probe takes that tells the two levels of a step of this size apart.

    The standard error of the bad end's probe falls with the root of its trials.
    """
    share = _ROUNDS * _level(end).standard_error / (0.5 * abs(size))
    needed = max(end.trials * share**2, 2 * TURNS)
    return min(most, TURNS * math.ceil(needed / TURNS))


def trials_needed(end: Probed) -> int | None:
    """Say about how many more trials tell whether the bad end changed; None where no number does.

    Its interval must then exclude zero or lie within the relevant change, whichever is less to ask; it
    shrinks with the root of the trials.
    """
    known = _level(end)
    shift = abs(known.log_ratio)
    widest = max(shift, math.log1p(end.relevant_change) - shift)
    if not widest or math.isinf(known.half_width):
        return None
    needed = end.trials * (known.half_width / widest) ** 2
    return TURNS * math.ceil(max(needed - end.trials, TURNS) / TURNS)


def _order_misfits(
    known: Mapping[int, Probed], inside: Iterable[int], span: LevelSpan, low: int
) -> tuple[int, ...]:
    """Order measured releases by how far they are from the level they should have, the farthest first.

    A step after the release at `low` is taken for granted; distances count in standard errors.
    """

    def distance(place: int) -> float:
        mine, should = _level(known[place]), span.lower if place <= low else span.upper
        error = math.hypot(mine.standard_error, should.standard_error)
        return abs(mine.log_ratio - should.log_ratio) / error if error else 0.0

    measured = (place for place in inside if level(known[place]))
    return tuple(sorted(measured, key=distance, reverse=True))


def rounds(gap: Gap) -> int:
    """Describe how many probes halve a gap down to one release."""
    return math.ceil(math.log2(len(gap.worth()) + 1))


def _level(probed: Probed) -> ReleaseLevel:
    found = level(probed)
    if found is None:
        raise ValueError(f"{probed.release.version} was not measured")
    return found


def weigh(
    count: int,
    measured: Sequence[tuple[int, ReleaseLevel]],
    lower: ReleaseLevel,
    upper: ReleaseLevel,
    no_single: float,
) -> tuple[float, ...]:
    """Return for each of `count` releases how probable it is that the change came with it.

    They follow one at the level `lower` (L); the last is at `upper` (U). `measured` are others of them,
    by their place from 0. What the probabilities lack to one is that of no single change, which was
    `no_single` (q) before. With x_j, s_j, f_j a measured log ratio, its standard error and freedom, and
    t the density of Student's distribution,

        P(i) ∝ (1 - q)/count · ∫ t((U - E)/s_U; f_U) · Π_j t((x_j - m_ij)/s_j; f_j) dE,
        m_ij = L for j < i, else E

    and for no single change, each release with a level of its own, flat from half a change below L to
    half a change above U:

        P(none) ∝ q · Π_j ∫ t((x_j - μ)/s_j; f_j) dμ / (2 |U - L|)
    """
    size = upper.log_ratio - lower.log_ratio
    narrowest = _NARROWEST * abs(size)
    spread = max(upper.standard_error, narrowest)
    grid = upper.log_ratio + spread * _LEVELS
    of_level = _log_t(_LEVELS, upper.degrees_of_freedom)
    of_level -= _log_sum(of_level)
    single = np.zeros((count, len(grid))) + of_level
    free = 0.0
    for place, one in measured:
        error = max(math.hypot(one.standard_error, lower.standard_error), narrowest)
        freedom = one.degrees_of_freedom
        below = float(_log_t(np.array([one.log_ratio - lower.log_ratio]) / error, freedom)[0])
        single[: place + 1] += _log_t((one.log_ratio - grid) / error, freedom)
        single[place + 1 :] += below
        anywhere = lower.log_ratio + size * _ANYWHERE
        free += _log_sum(_log_t((one.log_ratio - anywhere) / error, freedom)) - math.log(len(anywhere))
    each = math.log((1 - no_single) / count) + np.logaddexp.reduce(single, axis=1)
    none = math.log(no_single) + free
    whole = np.logaddexp(_log_sum(each), none)
    return tuple(float(one) for one in np.exp(each - whole))


def _log_t(deviates: Array, freedom: float) -> Array:
    # Without the constant of the density, which is the same for all that is compared.
    if math.isinf(freedom):
        return np.asarray(-(deviates**2) / 2)
    return np.asarray(-(freedom + 1) / 2 * np.log1p(deviates**2 / freedom))


def _log_sum(logarithms: Array) -> float:
    return float(np.logaddexp.reduce(logarithms))
