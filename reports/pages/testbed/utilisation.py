"""How much a testbed measures: hours of trials a day, and how many of them count."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from perf.model.night_names import day_name
from perf.model.results import Purpose, TrialHead, TrialStatus
from reports.wording.wording import duration, number, share

_DAYS = 30
"""Days that are shown, up to the newest with a trial: a month of nights."""
_DAY = timedelta(days=1)
_HOUR_S = 3600.0


@dataclass(slots=True, kw_only=True)
class UsedDay:
    """One day in UTC: for how long trials ran that count and that do not, and how many began."""

    day: date
    good_s: float = 0.0
    void_s: float = 0.0
    began: int = 0
    invalid: int = 0
    failed: int = 0

    @property
    def good_hours(self) -> float:
        """Return the hours of completed trials."""
        return self.good_s / _HOUR_S

    @property
    def hours(self) -> float:
        """Return the hours of all trials."""
        return (self.good_s + self.void_s) / _HOUR_S


def list_days(heads: Iterable[TrialHead]) -> list[UsedDay]:
    """Return the newest days of a testbed, in their order; imported results took none of its time."""
    own = [head for head in heads if head.purpose is not Purpose.IMPORTED]
    if not own:
        return []
    newest = max(head.finished_at for head in own).astimezone(UTC).date()
    oldest = min(head.started_at for head in own).astimezone(UTC).date()
    days = (newest - _DAY * back for back in reversed(range(_DAYS)))
    found = {day: UsedDay(day=day) for day in days if day >= oldest}
    for head in own:
        _add(head, found)
    return list(found.values())


def say_use(days: Sequence[UsedDay]) -> str:
    """Describe how much was measured: the time of the only day, or the mean of several."""
    if not days:
        return "No trial has run here."
    hours, newest = sum(one.hours for one in days), day_name(days[-1].day)
    if len(days) == 1:
        return f"{duration(timedelta(hours=hours))} of trials on {newest}."
    mean = hours / len(days)
    return (
        f"{number(mean)} hours of trials a day ({share(mean / 24)} of the time), "
        f"over {len(days)} days up to {newest}."
    )


def _add(head: TrialHead, days: dict[date, UsedDay]) -> None:
    """Add a trial to the days on which it ran, and to the one on which it began."""
    start, end = head.started_at.astimezone(UTC), head.finished_at.astimezone(UTC)
    if (begun := days.get(start.date())) is not None:
        begun.began += 1
        begun.invalid += head.status is TrialStatus.INVALID
        begun.failed += head.status is TrialStatus.FAILED
    day = start.date()
    while day <= end.date():
        if (one := days.get(day)) is not None:
            midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
            seconds = max(0.0, (min(end, midnight + _DAY) - max(start, midnight)).total_seconds())
            if head.status is TrialStatus.COMPLETED:
                one.good_s += seconds
            else:
                one.void_s += seconds
        day += _DAY
