"""Handles: what says that an incident is one that was reported before, though its name moved. Pure.

An incident is named by its lead and its place. Both may move from night to night: another series
says most, or the place is found one night further. A handle is one place where one of its changes may
be, as ten hex digits of series, direction and trial. Two incidents with a handle in common are the same
one, as an alert is the same while it moves within its location interval.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from analysis.detection.alerts import Alert
from analysis.detection.detection import ChangePoint
from analysis.detection.series import Series
from analysis.detection.verdict import Outcome
from analysis.judging.incidents import Incident
from perf.model.results import TrialId
from reports.wording.links import series_stem

_MOST = 200
"""Of one incident: they must fit into the first line of an issue."""
_MOST_OF_MEMBER = 5
"""Of each further change; the lead has as many as its location interval."""
_DIGITS = 10


def find_fingerprints(incident: Incident) -> tuple[str, ...]:
    """Return the handles of an incident: those of its lead first, of each the likeliest place first."""
    lead, *others = incident.changes
    found = [*_of_change(lead, _MOST)]
    for change in others:
        found += _of_change(change, _MOST_OF_MEMBER)
    return tuple(dict.fromkeys(found))[:_MOST]


def find_alert_fingerprints(series: Series, alert: Alert, outcome: Outcome) -> tuple[str, ...]:
    """Return the handles of an alert."""
    places = _around(alert.index, alert.earliest, alert.latest, len(series.points))
    stem = series_stem(series.key)
    return tuple(_name(stem, outcome, series.points[one].trial) for one in places[:_MOST])


def _of_change(change: ChangePoint, most: int) -> Iterator[str]:
    series = change.series
    places = _around(change.index, change.earliest, change.latest, len(series.points))
    stem = series_stem(series.key)
    for place in places[:most]:
        yield _name(stem, change.outcome, series.points[place].trial)


def _around(index: int, earliest: int, latest: int, length: int) -> Sequence[int]:
    span = range(max(0, min(earliest, index)), min(max(latest, index), length - 1) + 1)
    return sorted(span, key=lambda one: (abs(one - index), one))


def _name(stem: str, outcome: Outcome, trial: TrialId) -> str:
    reported = f"{stem} {outcome} {trial}"
    return hashlib.sha256(reported.encode()).hexdigest()[:_DIGITS]


def find_all_fingerprints(series: Iterable[Series]) -> frozenset[str]:
    """Return every handle that a change of these series could have."""
    return frozenset(
        _name(stem, outcome, trial)
        for one in series
        for stem in (series_stem(one.key),)
        for outcome in (Outcome.REGRESSED, Outcome.IMPROVED)
        for trial in one.points.trials
    )


def match_names(
    reported: Mapping[str, Sequence[str]], current: Sequence[tuple[str, Sequence[str]]]
) -> Mapping[str, str]:
    """Return, by the name of an incident now, the name under which it was reported; each at most once.

    An equal name comes first; then, in the order of `current`, the one with most handles in common.
    """
    same = {name: name for name, _ in current if name in reported}
    left = {name: frozenset(handles) for name, handles in reported.items() if name not in same}
    for name, handles in current:
        if name in same:
            continue
        shared = ((len(left[one].intersection(handles)), one) for one in sorted(left))
        number, best = max(shared, key=lambda pair: pair[0], default=(0, ""))
        if number:
            same[name] = best
            del left[best]
    return same
