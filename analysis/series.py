"""Series: observations of one key, ordered by release (line, ordinal) and then by time.

Invalid and failed trials never enter; gaps are never filled; order of arrival does not matter.
"""

from dataclasses import dataclass
from datetime import datetime

from perf.model import Release, SeriesKey, TrialId


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One completed trial's value in a series; `iterations` are that trial's repeated values."""

    trial: TrialId
    release: Release
    started_at: datetime
    value: float
    iterations: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The points of one key in order."""

    key: SeriesKey
    points: tuple[Point, ...]
