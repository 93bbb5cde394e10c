"""What needs attention: each thing that somebody should look at, in one line, the worst first."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from analysis.detection import State
from analysis.judgement import JudgedSeries, Judgement
from analysis.verdict import Outcome
from perf.model import Trial, TrialId, TrialStatus
from perf.night import Night
from reports.view import links
from reports.view.series import view_change_briefly
from reports.view.wording import (
    LEFT_OUT_BADGE,
    MISSING_BADGE,
    OUTCOME_BADGES,
    STALE_BADGE,
    STATE_BADGES,
    STATUS_BADGES,
    Badge,
    count,
    duration,
    first_sentence,
    moment,
    night_words,
    one_sentence,
    sentence,
    series_words,
)

STALE_AFTER = timedelta(hours=36)
"""Older than this, at least one night has been missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A bundle on disk that the history does not hold; `fault` is empty if it can be read."""

    name: str
    fault: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """One thing that somebody should look at; `page` is empty where no page says more."""

    badge: Badge
    subject: str
    page: str
    text: str


def is_trouble(trial: Trial) -> bool:
    """Tell whether a trial gave no result."""
    return trial.status is not TrialStatus.COMPLETED


def experiment_of(judged: JudgedSeries, by_id: Mapping[TrialId, Trial]) -> str:
    """Name the experiment of a series, or its system and workload if it has no point."""
    key, points = judged.series.key, judged.series.points
    if points:
        return by_id[points[-1].trial].experiment
    return f"{key.system}, {key.workload.partition('@')[0]}"


def view_left_out(left_out: Iterable[LeftOut]) -> tuple[Attention, ...]:
    """Tell of each bundle that the history lacks."""
    return tuple(
        Attention(
            badge=LEFT_OUT_BADGE,
            subject=one.name,
            page="",
            text=one_sentence(one.fault)
            or "Sound, but not appended yet: run `knickpoint append`, then `knickpoint report`.",
        )
        for one in left_out
    )


def first_reason(trial: Trial) -> str:
    """Say why a trial gave no result: the first reason, and how many more there are."""
    first = first_sentence(trial.reasons[0].text if trial.reasons else "")
    more = len(trial.reasons) - 1
    return f"{first} ({count(more, 'more reason')})" if more > 0 else first


def view_troubles(recent: Iterable[Trial]) -> tuple[Attention, ...]:
    """Tell of each trial that gave no result, failed ones first."""
    troubled = [trial for trial in recent if is_trouble(trial)]
    return tuple(
        Attention(
            badge=STATUS_BADGES[trial.status],
            subject=f"{trial.experiment} at {trial.release.version}",
            page=links.trial_page(trial.id),
            text=first_reason(trial),
        )
        for trial in sorted(troubled, key=lambda trial: trial.status is not TrialStatus.FAILED)
    )


def view_missing(plan: Night | None, by_id: Mapping[TrialId, Trial]) -> tuple[Attention, ...]:
    """Tell of each trial that was planned and never came."""
    return tuple(
        Attention(
            badge=MISSING_BADGE,
            subject=f"{planned.experiment} at {planned.version}",
            page="",
            text=f"Planned for {night_words(plan.id)}, but no trial has come of it so far.",
        )
        for planned in (plan.trials if plan else ())
        if plan and planned.id not in by_id
    )


def _by_size(judged: JudgedSeries) -> float:
    change = judged.verdict.relative_change
    return -abs(change) if change is not None else 0.0


def view_regressions(judgement: Judgement, by_id: Mapping[TrialId, Trial]) -> tuple[Attention, ...]:
    """Tell of each regression that stands, the largest first."""
    regressed = [j for j in judgement.series if j.verdict.outcome is Outcome.REGRESSED]
    return tuple(
        Attention(
            badge=OUTCOME_BADGES[Outcome.REGRESSED],
            subject=f"{experiment_of(judged, by_id)}: {series_words(judged.series.key)}",
            page=links.series_page(judged.series.key),
            text=sentence(judged.verdict.reason),
        )
        for judged in sorted(regressed, key=_by_size)
    )


def view_provisional(judgement: Judgement, by_id: Mapping[TrialId, Trial]) -> tuple[Attention, ...]:
    """Tell of each newest change that more points must confirm, the largest first."""
    found = [
        (judged, judged.change_points[-1])
        for judged in judgement.series
        if judged.change_points and judged.change_points[-1].state is State.PROVISIONAL
    ]
    return tuple(
        Attention(
            badge=STATE_BADGES[State.PROVISIONAL],
            subject=f"{experiment_of(judged, by_id)}: {series_words(judged.series.key)}",
            page=links.series_page(judged.series.key),
            text=f"{OUTCOME_BADGES[change.outcome].word}? {view_change_briefly(change)}; "
            f"{count(change.points_after, 'point')} after it so far.",
        )
        for judged, change in sorted(found, key=lambda item: -abs(item[1].relative_change))
    )


def view_stale(by_time: Iterable[Trial], now: datetime) -> tuple[Attention, ...]:
    """Tell of each experiment without a fresh result."""
    last: dict[str, datetime | None] = {}
    for trial in by_time:
        good = None if is_trouble(trial) else trial.finished_at
        last[trial.experiment] = good or last.get(trial.experiment)
    return tuple(
        Attention(
            badge=STALE_BADGE,
            subject=experiment,
            page="",
            text=f"The newest completed trial is {duration(now - when)} old ({moment(when).text})."
            if when
            else "No trial has ever been completed.",
        )
        for experiment, when in sorted(last.items())
        if when is None or now - when > STALE_AFTER
    )
