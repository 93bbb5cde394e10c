"""What the front page shows: the verdict, what needs attention, the newest night, all series."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from analysis.judgement import JudgedSeries, Judgement
from perf.metrics import METRICS
from perf.model import SeriesKey, Trial, TrialId, TrialStatus
from perf.night import Night
from reports.charts import Sparkline, draw_sparkline
from reports.view import links
from reports.view.attention import (
    STALE_AFTER,
    Attention,
    LeftOut,
    experiment_of,
    first_reason,
    is_trouble,
    view_left_out,
    view_missing,
    view_provisional,
    view_regressions,
    view_stale,
    view_troubles,
)
from reports.view.wording import (
    EMPTY_BADGE,
    NOTHING,
    OUTCOME_BADGES,
    STATUS_BADGES,
    Badge,
    Moment,
    caveat_words,
    count,
    direction_words,
    duration,
    heading,
    metric_words,
    moment,
    night_words,
    percent,
    phase_words,
    quantity,
    sentence,
)

_SPARK_POINTS = 60


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
    missing = view_missing(plan, by_id)
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
            *view_left_out(left_out),
            *view_troubles(recent),
            *missing,
            *view_regressions(judgement, by_id),
            *view_provisional(judgement, by_id),
            *view_stale(by_time, now),
        ),
        night_title=heading(night_words(night)),
        night_summary=_summarize_night(tonight, plan, by_id),
        night_rows=tuple(_view_trial_row(trial) for trial in tonight),
        groups=_group_series(judgement, by_id),
        troubles=tuple(_view_trial_row(trial) for trial in reversed(by_time) if is_trouble(trial)),
        caveats=tuple(
            f"{name}: {caveat}"
            for name in sorted({trial.testbed.name for trial in by_time})
            if (caveat := caveat_words(name, caveats))
        ),
    )


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
    if all(is_trouble(trial) for trial in trials):
        return f"No trial has been completed yet: {_count_statuses(trials)}."
    troubled = [trial for trial in recent if is_trouble(trial)]
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
        reason=first_reason(trial) if is_trouble(trial) else "",
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
    # A series without a point does not know its experiment, but another of the same form may.
    names = {
        _shape(judged.series.key): experiment_of(judged, by_id)
        for judged in judgement.series
        if judged.series.points
    }
    for judged in judgement.series:
        shape = _shape(judged.series.key)
        known = None if judged.series.points else names.get(shape)
        groups.setdefault((known or experiment_of(judged, by_id), shape), []).append(judged)
    return tuple(
        ExperimentGroup(
            name=name,
            anchor=f"experiment-{place}",
            description=shape,
            rows=tuple(_view_series_row(judged) for judged in sorted(members, key=_reading_order)),
        )
        for place, ((name, shape), members) in enumerate(sorted(groups.items()), start=1)
    )


def _shape(key: SeriesKey) -> str:
    return (
        f"{key.system} line {key.line}, topology {key.topology}, config {key.config}, "
        f"workload {key.workload}, {key.engine} engine, testbed class {key.testbed_class}"
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
