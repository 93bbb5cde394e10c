"""Long series: read in stretches, of which a night moves the newest alone. Pure.

A step is found by the hundred points on each side of it, and the noise by a few hundred: a night has
no say in what happened years ago. So a long series is read in stretches that overlap. All but the
newest have fixed ends: what was seen in them stays as it is, and whoever remembers it reads it once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from analysis.detection.detection import Detector, DetectorResult, Drift
from analysis.detection.noise import Noise, Values, median
from analysis.detection.weeks import Days, without_week

_STEP = 512
"""Points from the begin of a stretch to that of the next; as many are in the newest at least."""
_OVERLAP = 256
"""Points that a stretch has in common with the next: a hundred at least on each side of a border."""


def for_length(detector: Detector, count: int) -> Detector:
    """Return what reads a series of so many points, as it is and as it was a few nights ago.

    The stretches are those of tonight: where a new one begins, other steps may be seen in the one
    before, and if the nights before had other stretches, that would be news.
    """
    last = count // _STEP - 1
    return _InStretches(detector, last) if last > 0 else detector


@dataclass(frozen=True, slots=True)
class _InStretches:
    """Reads a series by another detector, in stretches; `last` is the number of the newest, from 0.

    `seen` is what was seen in all stretches but the newest, by their values and days: the nights that
    are replayed have these in common.
    """

    detector: Detector
    last: int
    seen: dict[bytes, DetectorResult] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def name(self) -> str:
        return self.detector.name

    def read(self, values: Sequence[float] | Values, days: Days = ()) -> DetectorResult:
        """Describe what is to be seen; scatter and week are those of the newest stretch."""
        newest = self.last * _STEP
        end = newest + _OVERLAP
        key = np.asarray(values[:end], dtype=float).tobytes() + np.asarray(days[:end]).tobytes()
        if key not in self.seen:
            self.seen[key] = self._read_older(values[:end], days[:end])
        found = self.seen[key]
        if len(values) > end:  # else the stretch before has them all
            new = _behind(newest, self.detector.read(values[newest:], days[newest:]))
            found = _join(found, new, _choose_border(newest, found, new))
        return replace(found, noise=_of_newest_level(found, values, days))

    def _read_older(self, values: Sequence[float] | Values, days: Days) -> DetectorResult:
        found = DetectorResult()
        for first in range(0, self.last * _STEP, _STEP):
            if first and len(values) <= first + _OVERLAP:
                break
            part = slice(first, first + _STEP + _OVERLAP)
            new = _behind(first, self.detector.read(values[part], days[part]))
            found = _join(found, new, _choose_border(first, found, new)) if first else new
        return found


def _behind(first: int, reading: DetectorResult) -> DetectorResult:
    """Return a reading of values that have `first` others in front of them."""
    return replace(
        reading,
        shifts=tuple(
            replace(
                one, index=one.index + first, earliest=one.earliest + first, latest=one.latest + first
            )
            for one in reading.shifts
        ),
        drifts=tuple(
            replace(one, first=one.first + first, last=one.last + first) for one in reading.drifts
        ),
        spreads=tuple(replace(one, index=one.index + first) for one in reading.spreads),
    )


def _choose_border(first: int, old: DetectorResult, new: DetectorResult) -> int:
    """Return from which point on the new stretch is believed: in the middle of the widest gap.

    Both stretches know more than a hundred points on each side of it. They may see one change at two
    places: it would be lost or reported twice if it were in front of the border for one of them alone,
    so up to a gap that counts both see as many changes.
    """
    low, high = first + _OVERLAP * 2 // 5, first + _OVERLAP * 3 // 5
    seen = [[place for place in _places(one) if low < place < high] for one in (old, new)]

    def rank(gap: tuple[int, int]) -> tuple[bool, int]:
        older, newer = (sum(place <= gap[0] for place in places) for places in seen)
        return older == newer, gap[1] - gap[0]

    before, after = max(pairwise(sorted({low, high, *seen[0], *seen[1]})), key=rank)
    return (before + after + 1) // 2


def _places(reading: DetectorResult) -> list[int]:
    return [*(one.index for one in reading.shifts), *(one.index for one in reading.spreads)]


def _join(old: DetectorResult, new: DetectorResult, border: int) -> DetectorResult:
    """Return what was seen in the stretches before the border, and in the new one from it on."""
    return replace(
        new,
        shifts=(
            *(one for one in old.shifts if one.index < border),
            *(one for one in new.shifts if one.index >= border),
        ),
        drifts=_join_drifts(old.drifts, new.drifts, border),
        spreads=(
            *(one for one in old.spreads if one.index < border),
            *(one for one in new.spreads if one.index >= border),
        ),
    )


def _of_newest_level(
    joined: DetectorResult, values: Sequence[float] | Values, days: Days
) -> Noise | None:
    """Return the noise with its newest confirmed level, which may have begun in an older stretch."""
    index = max((one.index for one in joined.shifts if one.is_confirmed), default=0)
    newest = without_week(values[index:], days[index:], joined.week)
    return joined.noise and replace(joined.noise, level=median(newest), points=len(newest))


def _join_drifts(old: Sequence[Drift], new: Sequence[Drift], border: int) -> tuple[Drift, ...]:
    """Return the slow movements on both sides of the border; what goes on across it is one."""
    ended = [one for one in old if one.last <= border]
    going = [_until(one, border) for one in old if one.first < border < one.last]
    joined = []
    for one in new:
        if one.last <= border:
            continue
        rest = _since(one, border) if one.first < border else one
        begin = next((other for other in going if _go_on(other, rest)), None)
        if begin is not None:
            going.remove(begin)
            rest = replace(begin, last=rest.last, after=begin.after + rest.after - rest.before)
        joined.append(rest)
    return tuple(sorted((*ended, *going, *joined), key=lambda one: (one.first, one.last)))


def _until(drift: Drift, border: int) -> Drift:
    return replace(drift, last=border, after=drift.before + drift.moved(border))


def _since(drift: Drift, border: int) -> Drift:
    return replace(drift, first=border, before=drift.before + drift.moved(border))


def _go_on(one: Drift, other: Drift) -> bool:
    """Return whether a movement is the beginning of another one, in the same direction."""
    return one.last == other.first and (one.after > one.before) is (other.after > other.before)
