"""What the front page shows: the verdict, what needs attention, the newest night, all series."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from analysis.detection import State
from analysis.judgement import JudgedSeries, Judgement
from analysis.verdict import Outcome
from perf.metrics import METRICS
from perf.model import Trial, TrialId, TrialStatus
from perf.night import Night
from reports.charts import Sparkline, draw_sparkline
from reports.view import links
from reports.view.series import view_change_briefly
from reports.view.wording import (
    EMPTY_BADGE,
    LEFT_OUT_BADGE,
    MISSING_BADGE,
    NOTHING,
    OUTCOME_BADGES,
    STALE_BADGE,
    STATE_BADGES,
    STATUS_BADGES,
    Badge,
    Moment,
    count,
    direction_words,
    duration,
    first_sentence,
    heading,
    metric_words,
    moment,
    night_words,
    one_sentence,
    percent,
    phase_words,
    quantity,
    sentence,
    series_words,
)

STALE_AFTER = timedelta(hours=36)
"""Older than this, at least one night has been missed."""

_SPARK_POINTS = 60


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """One trial with its headline figures, or with the reason why it has none."""

    experiment: str
    release: str
    night: str
    status: Badge
    throughput: str
    response_time: str
    finished: Moment
    reason: str
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRow:
    """One series in a line."""

    title: str
    page: str
    direction: str
    spark: Sparkline | None
    value: str
    release: str
    verdict: Badge
    change: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentGroup:
    """The series of one experiment."""

    name: str
    anchor: str
    description: str
    rows: tuple[SeriesRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexView:
    """All that the front page shows. `stale_after_s` lets the open page notice its own age."""

    built: Moment
    is_empty: bool
    verdict: Badge
    reason: str
    alarm: str
    newest: Moment | None
    freshness: str
    is_stale: bool
    stale_after_s: int
    left_out: str
    attention: tuple[Attention, ...]
    night_title: str
    night_summary: str
    night_rows: tuple[TrialRow, ...]
    groups: tuple[ExperimentGroup, ...]
    troubles: tuple[TrialRow, ...]
    caveats: tuple[str, ...]


def view_index(
    trials: Sequence[Trial],
    judgement: Judgement,
    *,
    nights: Sequence[Night],
    left_out: Sequence[LeftOut] = (),
    caveats: Mapping[str, str],
    now: datetime,
) -> IndexView:
    """Put a whole history into words.

    `now` is when the page is built, `nights` the plans known, `left_out` what the history lacks.
    """
    by_time = sorted(trials, key=lambda trial: (trial.started_at, trial.id))
    by_id = {trial.id: trial for trial in by_time}
    newest = by_time[-1] if by_time else None
    night = next((trial.night for trial in reversed(by_time) if trial.night), "")
    tonight = [trial for trial in by_time if trial.night == night]
    since = tonight[0].started_at if tonight else now
    recent = [trial for trial in by_time if trial.started_at >= since]
    plan = next((plan for plan in nights if plan.id == night), None)
    missing = _view_missing(plan, by_id)
    age = now - newest.finished_at if newest else timedelta(0)
    return IndexView(
        built=moment(now),
        is_empty=not by_time,
        verdict=_overall_badge(judgement, by_time),
        reason=sentence(judgement.verdict.reason) if by_time else "",
        alarm=_alarm(by_time, recent, missing),
        newest=moment(newest.finished_at) if newest else None,
        freshness=f"{duration(age)} before this page was built" if newest else "",
        is_stale=age > STALE_AFTER,
        stale_after_s=int(STALE_AFTER.total_seconds()),
        left_out=_count_left_out(left_out),
        attention=(
            *_view_left_out(left_out),
            *_view_troubles_briefly(recent),
            *missing,
            *_view_regressions(judgement, by_id),
            *_view_provisional(judgement, by_id),
            *_view_stale(by_time, now),
        ),
        night_title=heading(night_words(night)),
        night_summary=_summarize_night(tonight, plan, by_id),
        night_rows=tuple(_view_trial_row(trial) for trial in tonight),
        groups=_group_series(judgement, by_id),
        troubles=tuple(_view_trial_row(trial) for trial in reversed(by_time) if _is_trouble(trial)),
        caveats=tuple(
            f"{name}: {caveats[name]}"
            for name in sorted({trial.testbed.name for trial in by_time})
            if caveats.get(name)
        ),
    )


def _is_trouble(trial: Trial) -> bool:
    return trial.status is not TrialStatus.COMPLETED


def _overall_badge(judgement: Judgement, trials: Sequence[Trial]) -> Badge:
    return OUTCOME_BADGES[judgement.verdict.outcome] if trials else EMPTY_BADGE


def _count_statuses(trials: Iterable[Trial]) -> str:
    counts = Counter(trial.status for trial in trials)
    order = (TrialStatus.FAILED, TrialStatus.INVALID, TrialStatus.COMPLETED)
    parts = (f"{counts[status]:,} {status.value}" for status in order if counts[status])
    return ", ".join(parts)


def _alarm(trials: Sequence[Trial], recent: Sequence[Trial], missing: Sequence[Attention]) -> str:
    if not trials:
        return ""
    if all(_is_trouble(trial) for trial in trials):
        return f"No trial has been completed yet: {_count_statuses(trials)}."
    troubled = [trial for trial in recent if _is_trouble(trial)]
    parts = (
        f"{len(troubled):,} of the {count(len(recent), 'newest trial')} gave no result "
        f"({_count_statuses(troubled)})"
        if troubled
        else "",
        f"{count(len(missing), 'planned trial')} did not take place" if missing else "",
    )
    return sentence("; ".join(part for part in parts if part)) if any(parts) else ""


def _count_left_out(left_out: Sequence[LeftOut]) -> str:
    if not left_out:
        return ""
    be = "is" if len(left_out) == 1 else "are"
    return f"{count(len(left_out), 'bundle')} on disk {be} not in the history, so not judged either."


def _view_left_out(left_out: Iterable[LeftOut]) -> tuple[Attention, ...]:
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


def _first_reason(trial: Trial) -> str:
    return first_sentence(trial.reasons[0].text if trial.reasons else "")


def _view_troubles_briefly(recent: Iterable[Trial]) -> tuple[Attention, ...]:
    troubled = [trial for trial in recent if _is_trouble(trial)]
    return tuple(
        Attention(
            badge=STATUS_BADGES[trial.status],
            subject=f"{trial.experiment} at {trial.release.version}",
            page=links.trial_page(trial.id),
            text=_first_reason(trial),
        )
        for trial in sorted(troubled, key=lambda trial: trial.status is not TrialStatus.FAILED)
    )


def _view_missing(plan: Night | None, by_id: Mapping[TrialId, Trial]) -> tuple[Attention, ...]:
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


def _experiment_of(judged: JudgedSeries, by_id: Mapping[TrialId, Trial]) -> str:
    key, points = judged.series.key, judged.series.points
    if points:
        return by_id[points[-1].trial].experiment
    return f"{key.system}, {key.workload.partition('@')[0]}"


def _by_size(judged: JudgedSeries) -> float:
    change = judged.verdict.relative_change
    return -abs(change) if change is not None else 0.0


def _view_regressions(judgement: Judgement, by_id: Mapping[TrialId, Trial]) -> tuple[Attention, ...]:
    regressed = [j for j in judgement.series if j.verdict.outcome is Outcome.REGRESSED]
    return tuple(
        Attention(
            badge=OUTCOME_BADGES[Outcome.REGRESSED],
            subject=f"{_experiment_of(judged, by_id)}: {series_words(judged.series.key)}",
            page=links.series_page(judged.series.key),
            text=sentence(judged.verdict.reason),
        )
        for judged in sorted(regressed, key=_by_size)
    )


def _view_provisional(judgement: Judgement, by_id: Mapping[TrialId, Trial]) -> tuple[Attention, ...]:
    found = [
        (judged, judged.change_points[-1])
        for judged in judgement.series
        if judged.change_points and judged.change_points[-1].state is State.PROVISIONAL
    ]
    return tuple(
        Attention(
            badge=STATE_BADGES[State.PROVISIONAL],
            subject=f"{_experiment_of(judged, by_id)}: {series_words(judged.series.key)}",
            page=links.series_page(judged.series.key),
            text=f"{OUTCOME_BADGES[change.outcome].word}? {view_change_briefly(change)}; "
            f"{count(change.points_after, 'point')} after it so far.",
        )
        for judged, change in sorted(found, key=lambda item: -abs(item[1].relative_change))
    )


def _view_stale(by_time: Iterable[Trial], now: datetime) -> tuple[Attention, ...]:
    last: dict[str, datetime | None] = {}
    for trial in by_time:
        good = None if _is_trouble(trial) else trial.finished_at
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


def _summarize_night(
    tonight: Sequence[Trial], plan: Night | None, by_id: Mapping[TrialId, Trial]
) -> str:
    if not plan:
        return f"{count(len(tonight), 'trial')}: {_count_statuses(tonight)}." if tonight else ""
    ended = sum(planned.id in by_id for planned in plan.trials)
    return (
        f"{ended:,} of {count(len(plan.trials), 'planned trial')} of suite {plan.suite} ended: "
        f"{_count_statuses(tonight)}."
    )


def _view_trial_row(trial: Trial) -> TrialRow:
    return TrialRow(
        experiment=trial.experiment,
        release=f"{trial.release.system} {trial.release.version}",
        night=trial.night or NOTHING,
        status=STATUS_BADGES[trial.status],
        throughput=_headline(trial, "saturation", "throughput", "mean"),
        response_time=_headline(trial, "steady", "response_time", "p99"),
        finished=moment(trial.finished_at),
        reason=_first_reason(trial) if _is_trouble(trial) else "",
        page=links.trial_page(trial.id),
    )


def _headline(trial: Trial, phase: str, metric: str, statistic: str) -> str:
    wanted = (phase, metric, statistic, None)
    found = (
        quantity(s.value, s.metric)
        for s in trial.samples
        if (s.phase, s.metric, s.statistic, s.iteration) == wanted
    )
    return next(found, NOTHING)


def _group_series(judgement: Judgement, by_id: Mapping[TrialId, Trial]) -> tuple[ExperimentGroup, ...]:
    groups: dict[tuple[str, str], list[JudgedSeries]] = {}
    for judged in judgement.series:
        key = judged.series.key
        shape = (
            f"{key.system} line {key.line}, topology {key.topology}, config {key.config}, "
            f"workload {key.workload}, {key.engine} engine, testbed class {key.testbed_class}"
        )
        groups.setdefault((_experiment_of(judged, by_id), shape), []).append(judged)
    return tuple(
        ExperimentGroup(
            name=name,
            anchor=f"experiment-{place}",
            description=shape,
            rows=tuple(_view_series_row(judged) for judged in sorted(members, key=_reading_order)),
        )
        for place, ((name, shape), members) in enumerate(sorted(groups.items()), start=1)
    )


def _reading_order(judged: JudgedSeries) -> tuple[object, ...]:
    key, metrics = judged.series.key, tuple(METRICS)
    known = metrics.index(key.metric) if key.metric in metrics else len(metrics)
    return key.phase, key.operation, known, key.metric, key.statistic


def _view_series_row(judged: JudgedSeries) -> SeriesRow:
    key, points = judged.series.key, judged.series.points
    title = f"{metric_words(key.metric, key.statistic)} of {key.operation}"
    return SeriesRow(
        title=f"{title} {phase_words(key.phase)}",
        page=links.series_page(key),
        direction=direction_words(key.metric),
        spark=draw_sparkline(
            [point.value for point in points[-_SPARK_POINTS:]],
            f"the newest {count(min(len(points), _SPARK_POINTS), 'point')} in release order",
        )
        if points
        else None,
        value=quantity(points[-1].value, key.metric) if points else NOTHING,
        release=points[-1].release.version if points else NOTHING,
        verdict=OUTCOME_BADGES[judged.verdict.outcome],
        change=percent(judged.verdict.relative_change)
        if judged.verdict.relative_change is not None
        else NOTHING,
        reason=sentence(judged.verdict.reason),
    )
