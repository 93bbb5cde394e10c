"""Deviations: the series that moved furthest tonight, whether or not a change was found in them. Pure.

They tell nothing by themselves. Among many series the furthest always lies far out, and a single point
cannot tell a spike from a step. They show what the judging saw and let pass.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from analysis.detection.detection import ChangePoint
from analysis.detection.effects import relative_change
from analysis.detection.noise import Noise, median
from analysis.detection.series import Point, Series
from perf.model.metrics import origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """The point of a night that lies furthest from its level, in standard deviations of one point."""

    series: Series
    point: Point
    level: float
    deviations: float

    @property
    def relative_change(self) -> float:
        """Return by how much the point differs from its level."""
        return relative_change(self.level, self.point.value)


def find_deviation(
    series: Series, changes: Sequence[ChangePoint], noise: Noise | None, night: str
) -> Deviation | None:
    """Return the point of a night that lies furthest from its level, in units of the series' own noise.

    The level is the median of the other points between the same two changes; where the night alone
    lies there, that of the segment before. None where the night, the noise or the level is not known,
    and for a series derived from another one, which moves with it.
    """
    if noise is None or not noise.deviation or origin(series.key.metric) != series.key.metric:
        return None
    found: list[Deviation] = []
    before = (0, 0)
    tonight = series.points.places_of(night)
    values = np.asarray(series.points.values)
    is_other = np.ones(len(values), dtype=bool)
    is_other[tonight] = False
    starts = (0, *(change.index for change in changes), len(values))
    for start, end in pairwise(starts):
        own = [place for place in tonight if start <= place < end]
        if len(own) < end - start:
            before = (start, end)
        others = values[slice(*before)][is_other[slice(*before)]] if own else values[:0]
        if len(others):
            level = median(others)
            found.extend(
                Deviation(
                    series=series,
                    point=series.points[place],
                    level=level,
                    deviations=abs(float(values[place]) - level) / noise.deviation,
                )
                for place in own
            )
    return max(found, key=lambda one: one.deviations, default=None)


def rank(deviations: Iterable[Deviation | None], most: int) -> tuple[Deviation, ...]:
    """Return the furthest ones, the furthest first."""
    found = (one for one in deviations if one is not None)
    return tuple(sorted(found, key=lambda one: (-one.deviations, one.series.key))[:most])
