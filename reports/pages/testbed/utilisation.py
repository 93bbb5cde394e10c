"""How much a testbed measures: hours of trials a day, and how many of them count."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from perf.model.results import Purpose, TrialHead, TrialStatus
from reports.pages.testbed.chart import BarChart, draw_bars
from reports.wording.wording import NOTHING, count, number, share

_DAYS = 30
"""Days that are shown, up to the newest with a trial: a month of nights."""
_DAY = timedelta(days=1)
_HOUR_S = 3600.0
_HOURS_A_DAY = 24.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRow:
    """One day in UTC: how long trials ran, how many began, and how many of these do not count."""

    day: str
    hours: str
    trials: str
    invalid: str
    failed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilisationView:
    """How much a testbed measured on its newest days; `chart` is None where there is no trial."""

    text: str
    label: str
    chart: BarChart | None
    rows: tuple[DayRow, ...]


@dataclass(slots=True)
class _Day:
    good_s: float = 0.0
    void_s: float = 0.0
    began: int = 0
    invalid: int = 0
    failed: int = 0


def view_utilisation(heads: Iterable[TrialHead]) -> UtilisationView:
    """Put into words how much was measured on a testbed, by day; imported results took none of it."""
    own = [head for head in heads if head.purpose is not Purpose.IMPORTED]
    if not own:
        return UtilisationView(text="No trial has run here.", label="", chart=None, rows=())
    newest = max(head.finished_at for head in own).astimezone(UTC).date()
    days = [newest - _DAY * back for back in reversed(range(_DAYS))]
    found = {day: _Day() for day in days}
    for head in own:
        _add(head, found)
    oldest = min(head.started_at for head in own).astimezone(UTC).date()
    shown = [day for day in days if day >= oldest]
    return UtilisationView(
        text=_summarize(own, newest, [found[day] for day in shown]),
        label=f"Hours of trials on each of {count(len(shown), 'day')} up to {newest:%Y-%m-%d}; the "
        "table"
        " below holds the same numbers",
        chart=draw_bars(
            [
                (found[day].good_s / _HOUR_S, found[day].void_s / _HOUR_S, _say(day, found[day]))
                for day in shown
            ],
            _HOURS_A_DAY,
        ),
        rows=tuple(_view_day(day, found[day]) for day in reversed(shown)),
    )


def _add(head: TrialHead, days: dict[date, _Day]) -> None:
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


def _summarize(heads: Sequence[TrialHead], newest: date, days: Sequence[_Day]) -> str:
    hours = math.fsum(one.good_s + one.void_s for one in days) / _HOUR_S
    void = sum(head.status is not TrialStatus.COMPLETED for head in heads)
    mean = hours / len(days)
    return (
        f"In {count(len(days), 'day')} up to {newest:%Y-%m-%d} trials ran {number(hours)} hours, "
        "which is"
        f" {number(mean)} hours a day ({share(mean / _HOURS_A_DAY)} of the time). Of all"
        f" {count(len(heads), 'trial')} ever, {void:,} ({share(void / len(heads))}) are invalid or "
        "failed"
        " and in no series."
    )


def _say(day: date, one: _Day) -> str:
    hours = (one.good_s + one.void_s) / _HOUR_S
    return f"{day:%Y-%m-%d}: {number(hours)} h, {count(one.began, 'trial')}"


def _view_day(day: date, one: _Day) -> DayRow:
    hours = (one.good_s + one.void_s) / _HOUR_S
    return DayRow(
        day=f"{day:%Y-%m-%d}",
        hours=number(hours) if hours else NOTHING,
        trials=f"{one.began:,}",
        invalid=f"{one.invalid:,}" if one.invalid else NOTHING,
        failed=f"{one.failed:,}" if one.failed else NOTHING,
    )
