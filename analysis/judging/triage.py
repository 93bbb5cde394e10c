"""Triage: which changes somebody has decided about, by the entries of configs/triage.yaml. Pure.

A change lies between two neighbouring points, its step, and may lie at any step of its location
interval. An entry covers a change of its series in its direction if one of these steps lies at the
entry's place:

- between two releases A and B: the step overlaps what lies between them. A step from one point of A to
  the next of A does not, so a change in the middle of A's nights is none of the entry's;
- within one release (A equals B): both points of the step are of A;
- between two nights: by their dates in the same way. From one release to the next, a series may step
  back in time; then nights tell nothing, and the place is that of the releases alone.

Releases are in the order of the points of the series. A version without a point there has no place
in it, and an entry that names one covers nothing in that series, unless it is the release of a fix:
then the fix is still to come.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from analysis.detection.detection import ChangePoint
from analysis.detection.series import Point, Series
from perf.model.metrics import origin
from perf.model.results import SeriesKey
from perf.model.rules import TriageEntry, TriageState, is_like

Sign: TypeAlias = Literal["rise", "drop"]

PATTERNS = (
    "system", "line", "topology", "testbed_class", "config", "workload", "phase", "operation", "metric",
    "statistic", "host",
)  # fmt: skip
"""The fields of an entry that say which series it is about; each is named as in `SeriesKey`."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?=\b|T)")


def match(change: ChangePoint, entries: Iterable[TriageEntry], today: date) -> TriageEntry | None:
    """Return the entry that covers a change: the nearest, then the one of the narrowest place.

    An entry that has expired covers nothing. One that says "fixed" covers a change at its place and
    before the fix only: see `came_back`.
    """
    found: list[tuple[int, int, TriageEntry]] = []
    for entry in entries:
        if is_expired(entry, today) or sign(change) != entry.sign or not fits(change.series.key, entry):
            continue
        steps = steps_at(change.series, entry)
        met = [step for step in steps if change.earliest <= step <= change.latest]
        if met:
            found.append((min(abs(step - change.index) for step in met), len(steps), entry))
    return min(found, key=lambda one: one[:2], default=(0, 0, None))[2]


def came_back(change: ChangePoint, entries: Iterable[TriageEntry]) -> TriageEntry | None:
    """Give the entry whose fix a change undoes: the same direction, at the release of the fix or later.

    Of several fixes it is the last before the change. Asked of a change that no entry covers.
    """
    fixes = [
        entry
        for entry in entries
        if entry.fixed_in and sign(change) == entry.sign and fits(change.series.key, entry)
    ]
    if not fixes:
        return None
    ranks = _ranks(change.series)
    here = ranks[change.first_after.release.version]
    known = [(ranks[entry.fixed_in], entry) for entry in fixes if entry.fixed_in in ranks]
    before = [(rank, entry) for rank, entry in known if rank <= here]
    return max(before, key=lambda one: one[0])[1] if before else None


def is_expired(entry: TriageEntry, today: date) -> bool:
    """Return whether the last day of an entry is over."""
    return entry.expires is not None and entry.expires < today


def sign(change: ChangePoint) -> Sign:
    """Describe which way a series moved, whether or not that is good news."""
    return "rise" if change.after > change.before else "drop"


def fits(key: SeriesKey, entry: TriageEntry) -> bool:
    """Return whether a series is one of those that an entry is about.

    What is decided about a metric is decided about those derived from it, too.
    """
    return all(
        is_like(series_value(key, name), getattr(entry, name))
        or (name == "metric" and is_like(origin(key.metric), entry.metric))
        for name in PATTERNS
    )


def series_value(key: SeriesKey, name: str) -> str:
    """Return what a pattern of an entry is held against; of a workload its name, without the hash."""
    value: str = getattr(key, name)
    return value.partition("@")[0] if name == "workload" else value


def steps_at(series: Series, entry: TriageEntry) -> tuple[int, ...]:
    """Return the steps of a series at the place of an entry, by the index of the point after each."""
    ranks = _ranks(series)
    if not {entry.from_release, entry.to_release} - {None} <= ranks.keys():
        return ()
    return tuple(
        index
        for index, (before, after) in enumerate(pairwise(series.points), start=1)
        if _is_between_releases(ranks, before, after, entry)
        and _is_between_nights(before, after, entry)
        and not _is_after_fix(ranks, after, entry)
    )


def _ranks(series: Series) -> dict[str, int]:
    """Return the versions of a series their numbers, in the order of its points."""
    columns = series.points.columns
    _, firsts = np.unique(series.points.releases, return_index=True)
    versions = dict.fromkeys(columns.occasion(place).release.version for place in np.sort(firsts))
    return {version: rank for rank, version in enumerate(versions)}


def _is_between_releases(
    ranks: dict[str, int], before: Point, after: Point, entry: TriageEntry
) -> bool:
    left, right = ranks[before.release.version], ranks[after.release.version]
    if entry.from_release is not None and entry.from_release == entry.to_release:
        return left == right == ranks[entry.from_release]
    is_late = entry.from_release is None or right > ranks[entry.from_release]
    is_early = entry.to_release is None or left < ranks[entry.to_release]
    return is_late and is_early


def _is_between_nights(before: Point, after: Point, entry: TriageEntry) -> bool:
    first, last = entry.from_night, entry.to_night
    if first is None and last is None:
        return True
    left, right = night_of(before), night_of(after)
    if left > right:
        return entry.from_release is not None or entry.to_release is not None
    if left == right or first == last:  # one of the two is a single day: its ends belong to it
        return (first is None or right >= first) and (last is None or left <= last)
    return (first is None or right > first) and (last is None or left < last)


def _is_after_fix(ranks: dict[str, int], after: Point, entry: TriageEntry) -> bool:
    return entry.fixed_in in ranks and ranks[after.release.version] >= ranks[entry.fixed_in]


def night_of(point: Point) -> date:
    """Return the date of the night that measured a point; without one, the day on which it started."""
    named = _DATE.match(point.night)
    return date.fromisoformat(named[0]) if named else point.started_at.date()


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """The first thing that keeps an entry from covering anything.

    No series is like its pattern of that `name`, `known` are what there is; or else no series fits all
    patterns together; or the `release` was measured in none of the `fitting` series; or nothing moved.
    """

    name: str = ""
    known: tuple[str, ...] = ()
    fitting: int = 0
    release: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What an entry does at present: the changes that it covers, ascending by series.

    Of an expired entry, they are those that it would cover. `obstacle` is why there are none.
    """

    entry: TriageEntry
    covers: tuple[ChangePoint, ...]
    is_expired: bool
    obstacle: Obstacle | None = None


def account(
    entries: Sequence[TriageEntry],
    series: Sequence[Series],
    changes: Sequence[ChangePoint],
    today: date,
) -> tuple[Account, ...]:
    """Describe of each entry which of the changes of a history it covers, and if none, why."""
    covering = [match(change, entries, today) for change in changes]
    accounts = []
    for entry in entries:
        over = is_expired(entry, today)
        covers = tuple(
            change
            for change, covered_by in zip(changes, covering, strict=True)
            # On its own last day, an expired entry still held.
            if (match(change, (entry,), entry.expires or today) if over else covered_by) == entry
        )
        why = None if covers else _find_obstacle(entry, series)
        accounts.append(Account(entry=entry, covers=covers, is_expired=over, obstacle=why))
    return tuple(accounts)


def _find_obstacle(entry: TriageEntry, series: Sequence[Series]) -> Obstacle:
    for name in PATTERNS:
        known = {series_value(one.key, name) for one in series}
        if not any(is_like(value, getattr(entry, name)) for value in known):
            return Obstacle(name=name, known=tuple(sorted(value for value in known if value)))
    fitting = [one for one in series if fits(one.key, entry)]
    measured = {when.release.version for one in fitting for when in one.points.occasions}
    missing = [one for one in (entry.from_release, entry.to_release) if one and one not in measured]
    return Obstacle(fitting=len(fitting), release=missing[0] if missing else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is decided about an incident; the fields are those of `TriageEntry`."""

    state: TriageState
    owner: str
    note: str
    expires: date | None = None
    fixed_in: str | None = None


def propose(name: str, changes: Sequence[ChangePoint], decision: Decision) -> tuple[TriageEntry, ...]:
    """Write the entries for the changes of an incident, the lead first: one for each direction.

    A field of the series is given where all changes of that direction agree on it. The place spans the
    changes of the lead's line: from the last release before any of them to the first after all; where
    the lead lies within one release, the nights.
    """
    lead = changes[0]
    place = _span(lead, changes)
    ways: dict[Sign, list[ChangePoint]] = {}
    for change in changes:
        ways.setdefault(sign(change), []).append(change)
    entries = []
    for way, of_way in ways.items():
        fields: dict[str, Any] = {
            "name": name if way == sign(lead) else f"{name}-{way}",
            "sign": way,
            **_shared([change.series.key for change in of_way], lead, place),
            **place,
            **asdict(decision),
        }
        entries.append(TriageEntry(**fields))
    return tuple(entries)


def _span(lead: ChangePoint, changes: Sequence[ChangePoint]) -> Mapping[str, Any]:
    """Return the place of an entry, in its own fields."""
    if not _is_within(lead):
        of_line = [change for change in changes if _line(change) == _line(lead)]
        first = min((change.last_before.release for change in of_line), key=lambda one: one.ordinal)
        last = max((change.first_after.release for change in of_line), key=lambda one: one.ordinal)
        return {"from_release": first.version, "to_release": last.version}
    within = [change for change in changes if _is_within(change)]
    versions = {change.first_after.release.version for change in changes}
    version = versions.pop() if len(versions) == 1 and len(within) == len(changes) else None
    return {
        "from_release": version,
        "to_release": version,
        "from_night": min(night_of(change.last_before) for change in within),
        "to_night": max(night_of(change.first_after) for change in within),
    }


def _is_within(change: ChangePoint) -> bool:
    return change.last_before.release.version == change.first_after.release.version


def _line(change: ChangePoint) -> tuple[str, str]:
    return change.series.key.system, change.series.key.line


def _shared(keys: Sequence[SeriesKey], lead: ChangePoint, place: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields that all keys agree on; versions belong to one line, so they always name it."""
    shared = {}
    for name in PATTERNS:
        values = {series_value(key, name) for key in keys}
        if place["from_release"] is not None and name in {"system", "line"}:
            values = {series_value(lead.series.key, name)}
        if name == "metric" and len(values) > 1:  # an entry covers what is derived from its metric
            values = set(map(origin, values))
        # The empty text of a value of all hosts together is no pattern.
        shared[name] = (values.pop() if len(values) == 1 else "") or "*"
    return shared


def describe_place(entry: TriageEntry) -> str:
    """Describe where an entry holds."""
    parts = [
        f"{what} {first or '(any)'} to {last or '(any)'}"
        for what, first, last in (
            ("releases", entry.from_release, entry.to_release),
            ("nights", entry.from_night, entry.to_night),
        )
        if first is not None or last is not None
    ]
    return ", ".join(parts)
