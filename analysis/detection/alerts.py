"""Alerts: changes followed from night to night, while new points move, confirm or refute them. Pure.

A change keeps its identity while its estimated place moves within its location interval: a sighting
belongs to the alert of the same direction whose interval its own interval meets. One that is no longer
seen is withdrawn, not forgotten: seen again at its place, it stands again as the same alert.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.detection.detection import ChangeState, Detector, DetectorResult, levels
from analysis.detection.effects import relative_change
from analysis.detection.noise import Values
from analysis.detection.series import Series
from analysis.detection.weeks import Days


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A change as one night saw it: its first point after, which lies from `earliest` to `latest`."""

    index: int
    earliest: int
    latest: int
    rises: bool
    relative_change: float
    state: ChangeState


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One change over all nights, its place and size as the last night that saw it put them.

    `state` is the strongest that it reached. The other fields are numbers of nights: the first one on
    which it was provisional and on which it was confirmed, and the one since which it is no longer seen
    (None while it stands).
    """

    index: int
    earliest: int
    latest: int
    rises: bool
    relative_change: float
    state: ChangeState
    provisional_at: int | None
    confirmed_at: int | None
    withdrawn_at: int | None

    @property
    def reported_at(self) -> int:
        """Return the night on which it reached `state`."""
        reported = self.confirmed_at if self.state is ChangeState.CONFIRMED else self.provisional_at
        if reported is None:
            raise ValueError(f"an alert that is {self.state} was reported on no night")
        return reported


def follow(nights: Iterable[tuple[int, Sequence[Sighting]]]) -> tuple[Alert, ...]:
    """Join the sightings of all nights, in the order of the nights, to alerts, ascending by index.

    One night's sightings are different alerts. Where several could be the same, the nearest are; at
    equal distance one that stands comes before one that was withdrawn.
    """
    alerts: list[Alert] = []
    for night, sightings in nights:
        same = _match(alerts, sightings)
        seen = [
            _see(alerts[same[number]] if number in same else None, sighting, night)
            for number, sighting in enumerate(sightings)
        ]
        unseen = [alert for number, alert in enumerate(alerts) if number not in same.values()]
        alerts = [*(_miss(alert, night) for alert in unseen), *seen]
    return tuple(sorted(alerts, key=lambda alert: (alert.index, alert.rises, alert.reported_at)))


def _match(alerts: Sequence[Alert], sightings: Sequence[Sighting]) -> dict[int, int]:
    """Return, by number of the sighting, the number of the alert that it is."""
    candidates = sorted(
        (abs(alert.index - sighting.index), alert.withdrawn_at is not None, new, old)
        for new, sighting in enumerate(sightings)
        for old, alert in enumerate(alerts)
        if may_be(alert, rises=sighting.rises, earliest=sighting.earliest, latest=sighting.latest)
    )
    same: dict[int, int] = {}
    taken: set[int] = set()
    for _, _, new, old in candidates:
        if new not in same and old not in taken:
            same[new] = old
            taken.add(old)
    return same


def may_be(alert: Alert, *, rises: bool, earliest: int, latest: int) -> bool:
    """Return whether a change of this direction, with its first point after there, can be an alert."""
    return alert.rises is rises and alert.earliest <= latest and earliest <= alert.latest


def _see(known: Alert | None, sighting: Sighting, night: int) -> Alert:
    """Return the alert as it stands after a night that saw it."""
    is_confirmed = sighting.state is ChangeState.CONFIRMED
    provisional_at = known.provisional_at if known else None
    confirmed_at = known.confirmed_at if known else None
    if is_confirmed and confirmed_at is None:
        confirmed_at = night
    if not is_confirmed and provisional_at is None:
        provisional_at = night
    return Alert(
        index=sighting.index,
        earliest=sighting.earliest,
        latest=sighting.latest,
        rises=sighting.rises,
        relative_change=sighting.relative_change,
        state=ChangeState.PROVISIONAL if confirmed_at is None else ChangeState.CONFIRMED,
        provisional_at=provisional_at,
        confirmed_at=confirmed_at,
        withdrawn_at=None,
    )


def _miss(alert: Alert, night: int) -> Alert:
    return replace(alert, withdrawn_at=night) if alert.withdrawn_at is None else alert


def sight(
    values: Sequence[float] | Values, reading: DetectorResult, positions: Sequence[int], days: Days
) -> tuple[Sighting, ...]:
    """Put the shifts read among some points of a series into the coordinates of the whole series.

    `positions` gives the place of each value there, ascending, `days` when it was measured. Between two
    neighbouring values others may lie, and the shift is in front of any of them: the location interval
    covers them all.
    """
    return tuple(
        Sighting(
            index=positions[shift.index],
            earliest=positions[max(shift.earliest, 1) - 1] + 1,
            latest=positions[shift.latest],
            rises=after > before,
            relative_change=relative_change(before, after),
            state=ChangeState.CONFIRMED if shift.is_confirmed else ChangeState.PROVISIONAL,
        )
        for shift, before, after, _ in levels(values, reading, days)
    )


def replay_series(
    series: Series, detector: Detector, nights: int, *, minimum_points: int = 2
) -> tuple[Alert, ...]:
    """Judge a series anew as it was known after each of its last `nights` nights, and follow it.

    Known after a night are the points measured up to then, in series order, wherever they fill in.
    Fewer than `minimum_points` are not judged. The numbers of nights in the alerts count the nights of
    `Points.nights_in_order`; what was there before the first of them is reported as of that night.
    """
    measured, measured_at = np.asarray(series.points.values), series.points.night_numbers
    days, count = series.points.days, int(measured_at.max(initial=-1)) + 1

    def replay() -> Iterator[tuple[int, Sequence[Sighting]]]:
        for night in range(max(0, count - nights), count):
            known = np.flatnonzero(measured_at <= night)
            if len(known) >= minimum_points:
                values, on = measured[known], days[known]
                yield night, sight(values, detector.read(values, on), array("q", known.tobytes()), on)

    return follow(replay())
