"""Findings: what was found in each series, and which of it may be called confirmed tonight. Pure.

Each series asks anew every night whether it has changed. Among hundreds of series, chance alone answers
yes somewhere; so what is new tonight must stand against all the series that were asked tonight.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from analysis.detection.alerts import Alert, replay_series
from analysis.detection.detection import (
    ChangePoint,
    ChangeState,
    Detector,
    DetectorResult,
    find_changes,
)
from analysis.detection.long_series import for_length
from analysis.detection.series import Series, find_newest_occasion
from analysis.detection.verdict import Outcome
from analysis.judging.verdicts import FalseDiscovery, Verdict, VerdictBasis
from perf.model.metrics import METRICS, origin
from perf.model.results import Purpose, SeriesKey
from perf.model.rules import Detection

FALSE_SHARE = 0.1
"""Of the changes that one night's test lets through, the share that chance may have made. One in ten is
worth following up; a smaller share would let a true change of a single series wait for more nights.

What waits is confirmed on the next night without another test. So the control delays, and gives chance
a night to fade; it does not bound the share among all that is ever confirmed."""


def adjust(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return each p-value as it stands among all of them; it survives up to `FALSE_SHARE`.

    The p-value of the newest change of each series, 1 where there is none, adjusted by Benjamini and
    Hochberg (Journal of the Royal Statistical Society B 57, 1995, 289-300):

        p'(i) = min over j ≥ i of p(j) · m / j,   p(1) ≤ … ≤ p(m)

    It is proven also for series that move together by one common cause, whatever their signs (Benjamini
    and Yekutieli, Annals of Statistics 29, 2001, 1165-1188), and no violation is known for correlated
    two-sided tests. Their own adjustment for any dependence at all would divide by ln m, and hide true
    changes.
    """
    if all(value == 1 for value in p_values):
        return tuple(p_values)
    # It takes a quarter of a second to import, and most commands judge nothing.
    from scipy.stats import false_discovery_control  # noqa: PLC0415

    return tuple(float(value) for value in false_discovery_control(p_values, method="bh"))


def expected_false_alarms(series: int, settings: Detection) -> float:
    """Return how many confirmed changes noise alone brings about in one night of so many series.

    The rate is measured, on noise of many kinds: see docs/statistics.md.
    """
    return series * settings.false_alarms_per_1000_series_nights / 1000


REPLAYED_NIGHTS = 10
"""So long is a change that came and went shown: two working weeks, so that a holiday hides nothing."""
_STIRRED = 2.0
"""Standard deviations from its level from which a point may have raised an alert that has gone since.
Without such a point in ten nights, as in two of three calm series, no night is judged again."""


_NOTHING_READ = DetectorResult()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesFinding:
    """A series as its detector saw it; `refusal` says why it was not searched at all.

    `new_tonight` are the indices of changes that became confirmed on its last night, `unbelieved` those
    that would be confirmed were it not for all the other series of the night: see `by_chance`.
    """

    series: Series
    changes: tuple[ChangePoint, ...] = ()
    refusal: Verdict | None = None
    reading: DetectorResult = _NOTHING_READ
    alerts: tuple[Alert, ...] = ()
    new_tonight: tuple[int, ...] = ()
    unbelieved: frozenset[int] = frozenset()
    by_chance: FalseDiscovery | None = None


def search(series: Series, settings: Detection, detector: Detector) -> SeriesFinding:
    """Search a series for changes, or say why it cannot be searched."""
    if refusal := _refuse(series, settings):
        return SeriesFinding(series=series, refusal=refusal)
    detector = for_length(detector, len(series.points))
    reading = detector.read(series.points.values, series.points.days)
    changes = find_changes(series, reading, detector.name)
    is_stirred = _changed_recently(series, reading)
    nights = REPLAYED_NIGHTS if is_stirred else 2 if changes else 0
    minimum = settings.minimum_points
    alerts = replay_series(series, detector, nights, minimum_points=minimum) if nights else ()
    last = int(series.points.night_numbers.max())
    new = {alert.index for alert in alerts if alert.confirmed_at == last}
    return SeriesFinding(
        series=series,
        changes=changes,
        reading=reading,
        alerts=alerts if is_stirred else (),
        new_tonight=tuple(change.index for change in changes if change.index in new),
    )


def _refuse(series: Series, settings: Detection) -> Verdict | None:
    """Describe why a series cannot be searched for changes at all, if so."""
    metric, count = series.key.metric, len(series.points)
    if metric not in METRICS or metric not in settings.relevant_change:
        return Verdict(outcome=Outcome.INVALID, basis=VerdictBasis.NO_RULE)
    if count == 0:
        return Verdict(outcome=Outcome.INVALID, basis=VerdictBasis.NO_TRIAL)
    if count < settings.minimum_points:
        return Verdict(
            outcome=Outcome.UNDECIDED, basis=VerdictBasis.FEW_POINTS, needed=settings.minimum_points
        )
    return None


def _changed_recently(series: Series, reading: DetectorResult) -> bool:
    """Return whether one of the last nights can have shown a change, still there or not."""
    numbers, values, noise = series.points.night_numbers, series.points.values, reading.noise
    new = [*map(int, np.flatnonzero(numbers > numbers.max() - REPLAYED_NIGHTS))]
    starts = (0, *(shift.index for shift in reading.shifts), len(values))
    for start, end in pairwise(starts):
        of_level = new[bisect_left(new, start) : bisect_left(new, end)]
        level = math.fsum(values[start:end]) / (end - start) if of_level else 0.0
        for index in of_level:
            is_at_change = any(shift.earliest - 1 <= index <= shift.latest for shift in reading.shifts)
            is_out = noise is None or abs(values[index] - level) > _STIRRED * noise.deviation
            if is_at_change or is_out:
                return True
    return False


def may_be_older(series: Series, night: int) -> bool:
    """Return whether what a night reported may be older: it is the first one replayed."""
    return 0 < len(series.points.nights_in_order) - REPLAYED_NIGHTS >= night


def question(key: SeriesKey) -> SeriesKey:
    """Return the series of measured values that decides one; a derived series moves with its origin.

    So noise can raise no false alarm in it that it does not raise there, and the two are one question.
    """
    return replace(key, metric=origin(key.metric))


def can_alarm(finding: SeriesFinding, tonight: str) -> bool:
    """Return whether noise can raise a false alarm here tonight: it was measured, not only imported."""
    points = finding.series.points
    return finding.refusal is None and any(
        points.columns.occasion(place).purpose is not Purpose.IMPORTED
        for place in points.places_of(tonight)
    )


def hold_against_each_other(
    findings: Sequence[SeriesFinding], tonight: str
) -> tuple[SeriesFinding, ...]:
    """Take back the confirmation of what is new tonight and too likely by chance among so many series.

    Only what became confirmed on this night competes; what was confirmed before stays, and so does what
    was imported, since it is no news. What has to wait competes no more tomorrow: it has had another
    point to fade by then. Series that are one question are counted once, with the smallest p-value.
    """
    asked = [
        one for one in findings if one.refusal is None and one.series.points.newest_night == tonight
    ]
    together: dict[SeriesKey, list[SeriesFinding]] = {}
    for one in asked:
        together.setdefault(question(one.series.key), []).append(one)
    adjusted = adjust([min(map(_p_value, group)) for group in together.values()])
    weak = {
        one.series.key: FalseDiscovery(p_value=value, series=len(together), believed=FALSE_SHARE)
        for group, value in zip(together.values(), adjusted, strict=True)
        for one in group
        if value > FALSE_SHARE and _competing(one)
    }
    return tuple(
        _take_back(one, weak[one.series.key]) if one.series.key in weak else one for one in findings
    )


def _competing(finding: SeriesFinding) -> tuple[ChangePoint, ...]:
    return tuple(
        change
        for change in finding.changes
        if change.index in finding.new_tonight
        and change.state is ChangeState.CONFIRMED
        and not is_imported(change)
    )


def _p_value(finding: SeriesFinding) -> float:
    return min((change.p_value for change in _competing(finding)), default=1.0)


def _take_back(finding: SeriesFinding, by_chance: FalseDiscovery) -> SeriesFinding:
    weak = frozenset(change.index for change in _competing(finding))
    return replace(
        finding,
        changes=tuple(
            replace(change, state=ChangeState.PROVISIONAL) if change.index in weak else change
            for change in finding.changes
        ),
        alerts=tuple(_unconfirmed(alert) if alert.index in weak else alert for alert in finding.alerts),
        unbelieved=weak,
        by_chance=by_chance,
    )


def _unconfirmed(alert: Alert) -> Alert:
    since = alert.confirmed_at if alert.provisional_at is None else alert.provisional_at
    return replace(alert, state=ChangeState.PROVISIONAL, provisional_at=since, confirmed_at=None)


def is_imported(change: ChangePoint) -> bool:
    """Return whether nothing was measured here since a change: a bulk import alerts nobody."""
    since = change.series.points[change.index : change.index + change.points_after]
    return all(point.purpose is Purpose.IMPORTED for point in since)


def newest_night(series: Iterable[Series]) -> str:
    """Name the night that measured last; empty where nothing was measured."""
    last = find_newest_occasion(series)
    return last.night if last else ""
