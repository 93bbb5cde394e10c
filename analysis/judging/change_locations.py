"""Places: where a change lies, in releases and in time, and whether two changes can be at one place.

A detector knows a place to within a few points. So the place of a change is two spans that hold it:
after which release and up to which, after which moment and up to which. Each is half open, (last,
first], as in "not yet in 5.0.3, but in 5.0.5". A span of time is there only if all that lies before the
change was measured earlier than all after it. Where the nights of old and new releases alternate,
nothing that happened to the hosts at one time can have made the difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from analysis.detection import words
from analysis.detection.detection import ChangePoint
from analysis.detection.series import Points

_At = TypeVar("_At", int, datetime)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLocation:
    """Where a change lies.

    `before` and `after` are the points of its two segments that are not in doubt. `releases` are
    ordinals, None where they are equal; `time` is None where the points before and after alternate in
    time. `nights` are those on which the change may have shown first.
    """

    change: ChangePoint
    before: Points
    after: Points
    releases: tuple[int, int] | None
    time: tuple[datetime, datetime] | None
    nights: frozenset[str]

    @property
    def is_within(self) -> bool:
        """Return whether it is within one release; builds of a moving target share only the ordinal."""
        return self.before[-1].release == self.after[0].release

    @property
    def line(self) -> tuple[str, str]:
        """Return the axis on which its releases lie."""
        return self.change.series.key.system, self.change.series.key.line

    @property
    def testbed(self) -> str:
        """Name the hosts whose time it is."""
        return self.change.series.key.testbed_class


def locate(changes: Sequence[ChangePoint]) -> tuple[ChangeLocation, ...]:
    """Return the places of all changes of one series, which must be ascending by index."""
    starts = (0, *(change.index for change in changes))
    return tuple(_place(change, start) for change, start in zip(changes, starts, strict=False))


def _place(change: ChangePoint, start: int) -> ChangeLocation:
    points, end = change.series.points, change.index + change.points_after
    first = min(max(change.earliest, start + 1), change.index)
    last = max(min(change.latest, end - 1), change.index)
    before, after = points[start:first], points[last:end]
    ordinals = before[-1].release.ordinal, after[0].release.ordinal
    moments = before.newest().started_at, after.first_start()
    return ChangeLocation(
        change=change,
        before=before,
        after=after,
        releases=ordinals if ordinals[0] < ordinals[1] else None,
        time=moments if moments[0] < moments[1] else None,
        nights=frozenset(map(words.night, points[first : last + 1])),
    )


def meet(one: ChangeLocation, other: ChangeLocation) -> bool:
    """Return whether two changes can be at one place, and so of one cause.

    In one line that follows from the releases, or by time where one of them lies within a release. In
    different lines, only the hosts can be the cause: on one testbed, at one time, and first shown on
    the same night, since a span from one release to the next may be months long.
    """
    is_one_line = one.line == other.line
    if is_one_line and one.releases and other.releases:
        return _overlap(one.releases, other.releases)
    if one.testbed != other.testbed or not is_same_time(one, other):
        return False
    return is_one_line or not one.nights.isdisjoint(other.nights)


def is_same_time(one: ChangeLocation, other: ChangeLocation) -> bool:
    """Return whether two changes can be of one time."""
    return one.time is not None and other.time is not None and _overlap(one.time, other.time)


def _overlap(one: tuple[_At, _At], other: tuple[_At, _At]) -> bool:
    return one[0] < other[1] and other[0] < one[1]  # neither is empty
