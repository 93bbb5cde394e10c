"""Freshness: whether results come as often as they used to, by experiment and over all.

How long a pause may be follows from the pauses before it: nights may run daily, on weekdays or once a
week, and each rhythm has its own idea of late.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import ClassVar

from perf.model.results import TrialHead, TrialStatus
from reports.wording.wording import STALE_BADGE, Badge, duration

FRESH_BADGE = Badge(kind="good", symbol="●", word="Fresh")
RECORDED_BADGE = Badge(kind="calm", symbol="▪", word="Recorded")
NEVER_BADGE = Badge(kind="bad", symbol="∅", word="Never")

_SHORTEST = timedelta(hours=36)
"""A night and a half. Several nights in one day are somebody trying things out, and no rhythm."""
_PAUSES = 10
"""Of the newest nights: two weeks of working days, so that both of their weekends count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Whether an experiment has a completed trial that is new enough; `last` is when it ended.

    A page may be read long after it was built: what was fresh then wears `stale_badge` from
    `late_from` on.
    """

    badge: Badge
    last: datetime | None
    text: str
    late_from: datetime | None = None
    stale_badge: ClassVar[Badge] = STALE_BADGE

    @property
    def is_fresh(self) -> bool:
        """Return whether nobody has to look."""
        return self.badge in (FRESH_BADGE, RECORDED_BADGE)


def find_longest_pause(starts: Iterable[datetime]) -> timedelta:
    """Return how long after the last start the next one is late.

    That is the second longest of the newest ten pauses and half of the usual (median) one on top, at
    least 36 hours. The longest does not count, so that a night that was missed once makes the next one
    no less late; the second longest does, since the pause of a weekend is long twice. Of nights
    without gaps that is one and a half pauses. Fewer than two starts have no rhythm.
    """
    ordered = sorted(set(starts))[-_PAUSES - 1 :]
    pauses = sorted(after - before for before, after in pairwise(ordered))
    if not pauses:
        return _SHORTEST
    usual = timedelta(seconds=median(pause.total_seconds() for pause in pauses))
    return max(_SHORTEST, pauses[-2:][0] + usual / 2)


def start_nights(trials: Iterable[TrialHead]) -> dict[str, datetime]:
    """Return when each night began, by its name; trials on request belong to none."""
    starts: dict[str, datetime] = {}
    for trial in trials:
        known = starts.get(trial.night)
        if trial.night and (known is None or trial.started_at < known):
            starts[trial.night] = trial.started_at
    return starts


def view_freshness(
    trials: Sequence[TrialHead],
    planned: Iterable[str],
    now: datetime,
    *,
    every_nights: Mapping[str, int],
) -> dict[str, Freshness]:
    """Describe of each experiment, ascending by name, whether its results are fresh.

    `planned` are the experiments of the newest plan, which need not have a trial; `every_nights` says
    of some that they are measured on every n-th night only.
    """
    of_all = find_longest_pause(start_nights(trials).values())
    of_experiment: dict[str, list[TrialHead]] = {name: [] for name in planned}
    for trial in trials:
        of_experiment.setdefault(trial.experiment, []).append(trial)
    return {
        name: _view_one(own, of_all * every_nights.get(name, 1), now)
        for name, own in sorted(of_experiment.items())
    }


def _view_one(trials: Sequence[TrialHead], otherwise: timedelta, now: datetime) -> Freshness:
    ends = [one.finished_at for one in trials if one.status is TrialStatus.COMPLETED]
    if not ends:
        return Freshness(badge=NEVER_BADGE, last=None, text="No trial has ever been completed.")
    last, nights = max(ends), start_nights(trials)
    limit = find_longest_pause(nights.values()) if len(nights) > 1 else otherwise
    age = duration(now - last)
    if now - last > limit:
        text = (
            f"The newest completed trial was {age} old when this page was built; by its rhythm, "
            f"{duration(limit)} is late."
        )
        return Freshness(badge=STALE_BADGE, last=last, text=text)
    return Freshness(
        badge=FRESH_BADGE,
        last=last,
        text=f"{age} old when this page was built.",
        late_from=last + limit,
    )


def view_recording(freshness: Mapping[str, Freshness]) -> dict[str, Freshness]:
    """Say of the experiments of a recording that they are one: it does not grow, so nothing is late."""
    return {
        name: Freshness(badge=RECORDED_BADGE, last=one.last, text="") if one.last else one
        for name, one in freshness.items()
    }
