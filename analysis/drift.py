"""Drift of the testbed: whether canaries and sentinels moved when a series did.

A canary is fixed work on a host, a sentinel an old release that is measured again and again. Neither
knows the release under test, so what moves them at the same time may well have moved the series, too.
"""

from dataclasses import dataclass

from perf.model import SeriesKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What one canary or sentinel says about a change.

    `relative_change` is its own, 0 where it did not move; `index_at` says where it moved or was looked
    at. `follows` is true if it moved at the same time, in the matching direction and far enough;
    `can_tell` is false where it has no answer yet, for example because it was not measured since.
    """

    key: SeriesKey
    name: str
    relative_change: float
    index_at: str
    follows: bool
    text: str
    can_tell: bool = True
