"""Selection: which candidates are steps, where they lie best, and how sure that is."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np

from analysis.detection.criteria import PreparedSequence, rank_p_value
from analysis.detection.detection import Shift
from analysis.detection.noise import Values, least_rank_p_value
from analysis.detection.ramps import SLOW_POINTS, lead_over_ramp
from perf.model.rules import Detection

Step: TypeAlias = tuple[int, int, int]
"""Where the level before it begins, its place, and where the level after it ends."""
_EARLY_POINTS = 12
"""With so many points after it, a step that could not be confirmed never will be: it is dropped."""
_SURE_P_VALUE = 1e-6
"""Asked of the first test where too few points are there for the second one to mean anything."""
_SPIKE_MARGIN = 1.2
"""One or two points tell something only if they lie further out than any point before them has."""
_CROWDED = 1e9
_LOOKS = 5
"""As if so many independent places were tested each night: most of what is tested was known before."""
_ENDED_SHARE = 0.05
"""A level that ended again must be clearer than one that lasts: both of its ends were chosen."""
_MANY_POINTS = 6
_LEAST_REST = 2.7
"""A spike and two points by chance on its side make a step of three points; the two alone do not."""
_CLEAR_LEAD = 4.0
"""How much better a step must fit than a slow movement, in a series that has some."""
_NEW_POINTS = 30
"""A level that has lasted so long was reached, at whatever pace: it is reported."""
_NEW_LEAD = 2.0
"""How much better a newer one must fit than a slow movement in any series; this may be its begin."""
_LOCATION_DROP = 6.0
"""−2 · ln 0.05: places that fit worse than the best by no more than this may be the true one."""


def is_by_ranks(p_value: float, left: Values, right: Values, window: int) -> bool:
    """Return whether a p-value is that of the ranks of these points: the weaker one is reported."""
    by_ranks = min(1.0, _LOOKS * rank_p_value(left[-window:], right[:window]))
    return math.isclose(p_value, by_ranks, rel_tol=1e-9)


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The steps of a sequence: `places` are the first points after them, ascending.

    A segment has at least `least_segment` points; only the last one may have fewer, if the sequence
    `is_open`, that is, if its newest points may be the first of a step.
    """

    evidence: PreparedSequence
    settings: Detection
    least_segment: int
    is_open: bool
    places: list[int]

    @classmethod
    def of(
        cls,
        evidence: PreparedSequence,
        settings: Detection,
        candidates: Iterable[int],
        *,
        least_segment: int = 3,
        is_open: bool = True,
    ) -> "Selection":
        """Select the steps among the candidates."""
        last = len(evidence.values) - (1 if is_open else least_segment)
        places = sorted(place for place in candidates if least_segment <= place <= last)
        selection = cls(evidence, settings, least_segment, is_open, places)
        selection._select()
        return selection

    @property
    def count(self) -> int:
        """Return the number of points."""
        return len(self.evidence.values)

    def describe(self) -> tuple[Shift, ...]:
        """Describe where each step lies, how sure that is, and whether it is confirmed."""
        bounds = (0, *self.places, self.count)
        steps = tuple(zip(bounds, bounds[1:], bounds[2:], strict=False))
        lead = cache(lambda step: lead_over_ramp(self.evidence, *step))
        return tuple(self._describe(step, steps, lead) for step in steps)

    def _select(self) -> None:
        """Drop what is too small, then the smallest of what the ranks refuse, until all is well."""
        # Of thousands of steps a round moves a few.
        has_rank = cache(self._has_rank)
        while True:
            self._drop_small()
            self._relocate()
            bounds = (0, *self.places, self.count)
            refused = [
                (self._size_share(bounds, index), bounds[index])
                for index in range(1, len(bounds) - 1)
                if not has_rank(*bounds[index - 1 : index + 2])
            ]
            if not refused:
                return
            self.places.remove(min(refused)[1])

    def _drop_small(self) -> None:
        """Drop the smallest step, in what is asked of it, until each is as large as asked."""
        bounds = [0, *self.places, self.count]
        # An array: a million points have tens of thousands of candidates, and each asks for the least.
        shares = self._size_shares(bounds)
        size, count, room = self.evidence.size, self.count, self.least_segment
        asked = self.evidence.quantile(self.settings.max_p_value * _ENDED_SHARE)
        while len(shares) and shares[least := int(shares.argmin())] < 1:
            smallest = least + 1
            del bounds[smallest]
            shares[least:-1] = shares[smallest:]
            shares = shares[:-1]
            # Those next to it have a new neighbour; so do those behind them, if they were crowded.
            moved = [smallest - 1, smallest]
            if smallest > 1 and bounds[smallest - 1] - bounds[smallest - 2] < room:
                moved.append(smallest - 2)
            last = len(bounds) - 1
            if smallest < last and bounds[smallest + 1] - bounds[smallest] < room:
                moved.append(smallest + 1)
            for index in moved:
                if not 0 < index < last:
                    continue
                start, at, end = bounds[index - 1 : index + 2]
                if end < count and at - start >= room <= end - at:  # as nearly all are
                    shares[index - 1] = abs(size(start, at, end)) / asked
                else:
                    shares[index - 1] = self._size_share(bounds, index)
        self.places[:] = bounds[1:-1]

    def _size_shares(self, bounds: Sequence[int]) -> Values:
        """Return the `_size_share` of all steps: of most at once."""
        places = np.array(bounds)
        starts, at, ends = places[:-2], places[1:-1], places[2:]
        is_left, is_right = at - starts < self.least_segment, ends - at < self.least_segment
        if self.is_open:
            is_right &= ends < self.count
        starts = np.where(is_left, np.append(0, starts[:-1])[: len(at)], starts)
        ends = np.where(is_right, np.append(ends[1:], self.count)[: len(at)], ends)
        asked = self.evidence.quantile(self.settings.max_p_value * _ENDED_SHARE)
        shares = np.abs(self.evidence.sizes(starts, at, ends)) / asked
        shares[is_left | is_right] -= _CROWDED
        for index in np.flatnonzero(ends == self.count):  # of these others are asked
            shares[index] = self._size_share(bounds, int(index) + 1)
        return shares

    def _size_share(self, bounds: Sequence[int], index: int) -> float:
        """Return the size of a step as a share of what is asked of it.

        Of two steps too close to each other only one can stay. Both are measured as if they were alone,
        and have a negative share, so that the smaller of the two goes before anything else does.
        """
        start, at, end = bounds[index - 1 : index + 2]
        is_crowded = False
        if at - start < self.least_segment:
            start, is_crowded = (bounds[index - 2] if index > 1 else start), True
        if end - at < self.least_segment and not (self.is_open and end == self.count):
            end, is_crowded = (bounds[index + 2] if end < self.count else end), True
        asked = self.evidence.quantile(self._asked_p_value(at, end))
        share = abs(self.evidence.size(start, at, end)) / asked
        return share - _CROWDED if is_crowded else share

    def _asked_p_value(self, at: int, end: int) -> float:
        if end < self.count:
            return self.settings.max_p_value * _ENDED_SHARE
        return (
            self.settings.provisional_p_value if self._is_early(at, end) else self.settings.max_p_value
        )

    def _is_early(self, at: int, end: int) -> bool:
        return self.is_open and end == self.count and end - at < _EARLY_POINTS

    def _has_rank(self, start: int, at: int, end: int) -> bool:
        if end - at < self.least_segment and self._stands_out(start, at, end):
            return True
        if end - at == 1:
            return False
        if self._is_early(at, end):
            return self._passes_by_rank(start, at, end, self.settings.provisional_rank_p_value)
        return self._is_shared(start, at, end)

    def _is_shared(self, start: int, at: int, end: int) -> bool:
        """Return whether the ranks agree, and no single one of few points makes most of the step."""
        if not self._passes_by_rank(start, at, end, self.settings.max_rank_p_value):
            return False
        if min(at - start, end - at) >= _MANY_POINTS:
            return True
        return self.evidence.size_without_furthest(start, at, end) >= _LEAST_REST

    def _is_clear(self, step: Step, steps: Sequence[Step], lead: Callable[[Step], float]) -> bool:
        """Return whether it is more than newest points that scatter, or a level that moves slowly.

        `lead` says by how much each of the steps fits better than a slow movement. Those that do are no
        part of the wandering.
        """
        evidence, at = self.evidence, step[1]
        if not evidence.outdoes_newest_scatter(*step, self.settings.max_p_value):
            return False
        after = step[2] - at
        asked = _NEW_LEAD if after < _NEW_POINTS else -_CLEAR_LEAD
        # The longer the new level is known, the slower is what could still pass for it.
        if lead_over_ramp(evidence, *step, min(max(after, SLOW_POINTS), _NEW_POINTS)) <= asked:
            return False
        if not evidence.wanders([at]) or lead(step) > _CLEAR_LEAD:
            return True
        return not evidence.wanders([at, *(other[1] for other in steps if lead(other) > 0)])

    def _passes_by_rank(self, start: int, at: int, end: int, asked: float) -> bool:
        p_value = self.evidence.rank(start, at, end)
        least = self._least_rank_p_value(start, at, end)
        if least <= asked:
            return p_value <= asked
        is_separate = p_value <= least * (1 + 1e-9)
        return is_separate and self._p_value_by_size(start, at, end) <= _SURE_P_VALUE

    def _least_rank_p_value(self, start: int, at: int, end: int) -> float:
        reach = self.evidence.reach
        return least_rank_p_value(min(at - start, reach), min(end - at, reach))

    def _p_value_by_size(self, start: int, at: int, end: int) -> float:
        return self.evidence.probability(self.evidence.size(start, at, end))

    def _stands_out(self, start: int, at: int, end: int) -> bool:
        """Return whether the last points lie clearly further out, all on one side, than any before."""
        left = self.evidence.values[max(start, at - self.evidence.reach) : at]
        right = self.evidence.values[at:end] - np.median(left)
        limit = _SPIKE_MARGIN * float(np.abs(left - np.median(left)).max())
        return bool((right > limit).all() or (right < -limit).all())

    def _relocate(self) -> None:
        """Move each step to where two levels between its neighbours fit best."""
        bounds = [0, *self.places, self.count]
        for index in range(1, len(bounds) - 1):
            first, gains = self._gains(bounds[index - 1], bounds[index], bounds[index + 1])
            bounds[index] = first + int(np.argmax(gains))
        self.places[:] = bounds[1:-1]

    def _gains(self, start: int, at: int, end: int) -> tuple[int, Values]:
        """Return the first possible place, and by how much a step at each lessens the squares."""
        after = min(self.least_segment, end - at)
        first = start + self.least_segment
        places = np.arange(first, end - after + 1)
        before, count = places - start, end - start
        sums = self.evidence.sums
        contrast = sums[places] - sums[start] - (sums[end] - sums[start]) * before / count
        return first, contrast**2 * count / (before * (end - places))

    def _describe(self, step: Step, steps: Sequence[Step], lead: Callable[[Step], float]) -> Shift:
        evidence, settings = self.evidence, self.settings
        start, at, end = step
        p_value = by_size = self._p_value_by_size(start, at, end)
        # Where even complete separation says little, the size alone has carried the decision.
        if self._least_rank_p_value(start, at, end) <= settings.max_rank_p_value:
            p_value = max(by_size, evidence.rank(start, at, end))
        is_confirmed = (
            min(at - start, end - at) >= settings.confirming_points
            and by_size <= settings.max_p_value
            and self._is_shared(start, at, end)
            and self._is_clear(step, steps, lead)
        )
        first, gains = self._gains(start, at, end)
        # Under dependence the sums of squares vary as much more as means do.
        dependence = (1 + evidence.persistence) / (1 - evidence.persistence)
        drop = _LOCATION_DROP * evidence.deviation**2 * dependence
        near = np.flatnonzero(gains >= gains.max() - drop)
        return Shift(
            index=at,
            earliest=min(at, first + int(near[0])),
            latest=max(at, first + int(near[-1])),
            p_value=min(1.0, _LOOKS * p_value),
            is_confirmed=is_confirmed,
        )
