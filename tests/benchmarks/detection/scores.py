"""What is counted: hits and misses, alerts night by night, delay, and time.

Pure but for the clocks of `cpu_ms`. Each function scores one series; `table` adds up.
"""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from detectors import Find
from numpy.random import default_rng
from scipy.stats import chi2, norm

TOLERANCE = 3
"""Points between a planted step and what counts as its discovery."""
SAME_PLACE = 5
"""Points by which the same alert may move from one night to the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """True places found, places found that are not true, and true places missed."""

    found: int
    false: int
    missed: int


def match(true: Sequence[int], found: Iterable[int], tolerance: int = TOLERANCE) -> Hits:
    """Pair each true place with at most one found place within `tolerance`; as many pairs as can be."""
    left = sorted(found)
    hits = 0
    for place in sorted(true):
        # Taking the leftmost that fits never costs a later pair: all windows are of one width.
        fits = next((at for at in left if abs(at - place) <= tolerance), None)
        if fits is not None:
            left.remove(fits)
            hits += 1
    return Hits(found=hits, false=len(left), missed=len(true) - hits)


def f1(hits: Iterable[Hits]) -> float:
    """Return 2·found / (2·found + false + missed); 1 where there was nothing to find nor found."""
    found = false = missed = 0
    for one in hits:
        found, false, missed = found + one.found, false + one.false, missed + one.missed
    total = 2 * found + false + missed
    return 2 * found / total if total else 1.0


def f1_interval(hits: Sequence[Hits], resamples: int = 1000) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval over series, seeded."""
    counts = np.array([(one.found, one.false, one.missed) for one in hits], dtype=float)
    drawn = default_rng(0).integers(0, len(counts), (resamples, len(counts)))
    found, false, missed = counts[drawn].sum(axis=1).T
    low, high = np.quantile(2 * found / np.maximum(2 * found + false + missed, 1), [0.025, 0.975])
    return float(low), float(high)


def share_interval(hits: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share (J. Am. Stat. Assoc. 22, 1927)."""
    if n == 0:
        return 0.0, 1.0
    z = float(norm.ppf(0.975))
    centre = (hits + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(hits * (n - hits) / n + z * z / 4)
    # The ends are exact there, but for rounding.
    low = 0.0 if hits == 0 else centre - half
    return low, 1.0 if hits == n else centre + half


def rate_interval(events: int, exposure: float) -> tuple[float, float]:
    """Return Garwood's exact 95 % interval of a Poisson rate (Biometrika, 1936)."""
    low = float(chi2.ppf(0.025, 2 * events)) / 2 if events else 0.0
    return low / exposure, float(chi2.ppf(0.975, 2 * events + 2)) / 2 / exposure


@dataclass(slots=True, kw_only=True)
class Alert:
    """One place, night after night; a night is named by the number of points that were known."""

    born_at: int
    place: int
    first_seen: int
    first_confirmed: int | None = None
    is_seen: bool = True
    has_faded: bool = False
    """Some night did not show it any more after it was confirmed."""

    def is_near(self, place: int, tolerance: int) -> bool:
        """Return whether it came up near a place, or ended there."""
        return min(abs(self.born_at - place), abs(self.place - place)) <= tolerance


def replay(find: Find, values: Sequence[float], first: int, last: int) -> list[Alert]:
    """Judge anew each night from `first` to `last` points; an alert keeps its identity within ±5.

    One rule for every detector, also for those without location intervals. A night's sightings and
    the alerts so far are paired one to one, nearest first.
    """
    alerts: list[Alert] = []
    for night in range(first, last + 1):
        sightings = find(list(values[:night]))
        for alert in alerts:
            alert.is_seen = False
        pairs = sorted(
            (abs(alert.place - place), number, which)
            for number, alert in enumerate(alerts)
            for which, (place, _) in enumerate(sightings)
            if abs(alert.place - place) <= SAME_PLACE
        )
        paired: dict[int, Alert] = {}
        for _, number, which in pairs:
            if which not in paired and not alerts[number].is_seen:
                paired[which] = alerts[number]
                alerts[number].is_seen = True
        for which, (place, is_confirmed) in enumerate(sightings):
            if which not in paired:
                paired[which] = Alert(born_at=place, place=place, first_seen=night)
                alerts.append(paired[which])
            alert = paired[which]
            alert.place = place
            if is_confirmed and alert.first_confirmed is None:
                alert.first_confirmed = night
        for alert in alerts:
            alert.has_faded |= not alert.is_seen and alert.first_confirmed is not None
    return alerts


@dataclass(frozen=True, slots=True, kw_only=True)
class FalseAlerts:
    """Alerts in a series where nothing happens: all, and those that were ever confirmed."""

    raised: int
    confirmed: int
    nights: int


def false_alerts(find: Find, values: Sequence[float], first: int = 50) -> FalseAlerts:
    """Count the alerts of a replay from the `first` point to the last."""
    alerts = replay(find, values, first, len(values))
    return FalseAlerts(
        raised=len(alerts),
        confirmed=sum(alert.first_confirmed is not None for alert in alerts),
        nights=len(values) - first + 1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What was reported of one true step: points of the new level until then, infinite if never.

    `vanished`: after it was confirmed, some night did not show it any more.
    """

    seen_after: float
    confirmed_after: float
    vanished: bool


def describe_story(find: Find, values: Sequence[float], place: int, nights: int = 40) -> Story:
    """Replay the nights after a step at `place`; its alert is one that came within ±5 of it."""
    last = min(place + nights, len(values))
    alerts = [
        alert for alert in replay(find, values, place + 1, last) if alert.is_near(place, SAME_PLACE)
    ]
    confirmed = [alert for alert in alerts if alert.first_confirmed is not None]
    reported = [alert.first_confirmed for alert in confirmed if alert.first_confirmed is not None]
    return Story(
        seen_after=min((alert.first_seen for alert in alerts), default=math.inf) - place,
        confirmed_after=min(reported, default=math.inf) - place,
        vanished=any(alert.has_faded for alert in confirmed),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What was confirmed of a series with steps, over its nights: each true place counts once.

    `extra`: alerts that are near no true place, or are not the first near theirs.
    """

    found: int
    vanished: int
    extra: int
    nights: int


def tell_history(
    find: Find, values: Sequence[float], places: Sequence[int], first: int = 50
) -> History:
    """Replay a series from the `first` point to the last."""
    alerts = [
        alert for alert in replay(find, values, first, len(values)) if alert.first_confirmed is not None
    ]
    near = [[alert for alert in alerts if alert.is_near(place, SAME_PLACE)] for place in places]
    found = sum(bool(some) for some in near)
    return History(
        found=found,
        vanished=sum(any(alert.has_faded for alert in some) for some in near),
        extra=len(alerts) - found,
        nights=len(values) - first + 1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpikeTold:
    """Whether a single odd point was called a change while it was the newest, or ever confirmed."""

    seen: bool
    confirmed: bool


def tell_spike(find: Find, values: Sequence[float], place: int) -> SpikeTold:
    """Replay from the night at which the spike is the newest point to the end of the series."""
    alerts = [
        alert
        for alert in replay(find, values, place + 1, len(values))
        if alert.is_near(place, TOLERANCE)
    ]
    return SpikeTold(
        seen=any(alert.first_seen == place + 1 for alert in alerts),
        confirmed=any(alert.first_confirmed is not None for alert in alerts),
    )


def cpu_ms(find: Find, values: list[float]) -> float:
    """Return the milliseconds of CPU that one reading takes in this process."""
    started = time.process_time()
    find(values)
    return 1000 * (time.process_time() - started)
