"""What the front page shows: the verdict, what needs attention, the newest night, all series."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from analysis.incidents import Cause, Incident
from analysis.judgement import Judgement
from perf.model import Purpose, Sample, Trial, TrialHead, TrialId, TrialStatus
from perf.night import Night
from perf.rules import TriageEntry
from reports.view import links
from reports.view.attention import (
    STALE_AFTER,
    Attention,
    LeftOut,
    first_reason,
    is_trouble,
    view_expired,
    view_incidents,
    view_left_out,
    view_missing,
    view_stale,
    view_troubles,
    view_withdrawals,
)
from reports.view.bisection import BisectionView
from reports.view.sensitivity import summarize_sensitivity
from reports.view.series_list import ExperimentGroup, group_series
from reports.view.testbed import summarize_testbed
from reports.view.wording import (
    EMPTY_BADGE,
    NOTHING,
    OUTCOME_BADGES,
    STATUS_BADGES,
    Badge,
    Moment,
    caveat_words,
    count,
    duration,
    heading,
    moment,
    night_words,
    quantity,
    sentence,
)

AnyTrial = TypeVar("AnyTrial", bound=TrialHead)
_IN_TURNS = (Purpose.CANDIDATE, Purpose.COMPARISON, Purpose.CONFIRMATION, Purpose.BISECTION)


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
class IndexView:
    """All that the front page shows. `stale_after_s` lets the open page notice its own age."""

    built: Moment
    is_empty: bool
    verdict: Badge
    reason: str
    sensitivity: str
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
    incidents: tuple[Attention, ...]
    testbed: str
    groups: tuple[ExperimentGroup, ...]
    troubles: tuple[TrialRow, ...]
    troubles_in_turns: str
    caveats: tuple[str, ...]
    bisections: tuple[BisectionView, ...] = ()
    comparisons: tuple[Attention, ...] = ()


def view_index(
    heads: Sequence[TrialHead],
    judgement: Judgement,
    *,
    tonight: Sequence[Trial],
    nights: Sequence[Night],
    left_out: Sequence[LeftOut] = (),
    triage: Sequence[TriageEntry] = (),
    caveats: Mapping[str, str],
    now: datetime,
    bisections: Sequence[BisectionView] = (),
    comparisons: Sequence[Attention] = (),
) -> IndexView:
    """Put a whole history into words.

    `now` is when the page is built, `tonight` are the trials of `find_tonight`, whole, `nights` the
    plans known, `left_out` what the history lacks, `triage` what was decided about changes,
    `bisections` all that were begun, oldest first, `comparisons` those that are listed.
    """
    by_time = sorted(heads, key=lambda head: (head.started_at, head.id))
    by_id = {trial.id: trial for trial in by_time}
    newest = by_time[-1] if by_time else None
    # Trials that took turns are told by their comparison, also where they came to nothing.
    by_itself = [trial for trial in by_time if not _took_turns(trial)]
    night, recent = _find_recent(by_itself)
    plan = next((plan for plan in nights if plan.id == night), None)
    missing = view_missing(plan, by_id)
    age = now - newest.finished_at if newest else timedelta(0)
    return IndexView(
        built=moment(now),
        is_empty=not by_time,
        verdict=_overall_badge(judgement, by_time),
        reason=sentence(judgement.verdict.reason) if by_time else "",
        sensitivity=summarize_sensitivity(judgement.series) if judgement.series else "",
        alarm=_alarm(by_itself, recent, missing),
        newest=moment(newest.finished_at) if newest else None,
        freshness=f"{duration(age)} before this page was built" if newest else "",
        is_stale=age > STALE_AFTER,
        stale_after_s=int(STALE_AFTER.total_seconds()),
        left_out=_count_left_out(left_out),
        attention=(
            *view_left_out(left_out),
            *view_troubles(recent),
            *missing,
            *view_incidents(filter(_is_open, judgement.incidents), by_id),
            *view_expired(triage, now.date()),
            *view_withdrawals(judgement, by_id),
            *view_stale(by_itself, now),
        ),
        night_title=heading(night_words(night)),
        night_summary=_summarize_night(tonight, plan, by_id),
        night_rows=tuple(_view_trial_row(trial, trial.samples) for trial in tonight),
        incidents=view_incidents(judgement.incidents, by_id),
        testbed=summarize_testbed(judgement),
        groups=group_series(judgement.series, by_id),
        troubles=tuple(
            _view_trial_row(trial, ()) for trial in reversed(by_itself) if is_trouble(trial)
        ),
        troubles_in_turns=_count_troubles(trial for trial in by_time if _took_turns(trial)),
        caveats=_tell_caveats(by_time, caveats),
        bisections=tuple(reversed(bisections)),
        comparisons=tuple(comparisons),
    )


def find_tonight(heads: Sequence[AnyTrial]) -> tuple[AnyTrial, ...]:
    """Give the trials of the newest night; `heads` are in the order of time."""
    by_itself = [head for head in heads if not _took_turns(head)]
    night = next((head.night for head in reversed(by_itself) if head.night), "")
    return tuple(head for head in by_itself if head.night == night)


def _find_recent(trials: Sequence[TrialHead]) -> tuple[str, list[TrialHead]]:
    """Give the newest night by name, and all trials since it began."""
    tonight = find_tonight(trials)
    recent = [trial for trial in trials if tonight and trial.started_at >= tonight[0].started_at]
    return tonight[0].night if tonight else "", recent


def _count_troubles(trials: Iterable[TrialHead]) -> str:
    troubled = [trial for trial in trials if is_trouble(trial)]
    if not troubled:
        return ""
    be = "was" if len(troubled) == 1 else "were"
    counted = count(len(troubled), "trial")
    return f"{counted} that took turns failed or {be} invalid as well; their comparison tells of them."


def _took_turns(trial: TrialHead) -> bool:
    return trial.purpose in _IN_TURNS and not trial.night


def _tell_caveats(trials: Sequence[TrialHead], caveats: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(
        f"{name}: {caveat}"
        for name in sorted({trial.testbed.name for trial in trials})
        if (caveat := caveat_words(name, caveats))
    )


def _is_open(incident: Incident) -> bool:
    """Tell whether an incident stands in front: it is news, was decided about, or is the testbed's."""
    is_explained = incident.triage is not None or incident.cause is Cause.TESTBED
    return incident.is_news or (is_explained and not incident.mended_by)


def _overall_badge(judgement: Judgement, trials: Sequence[TrialHead]) -> Badge:
    return OUTCOME_BADGES[judgement.verdict.outcome] if trials else EMPTY_BADGE


def _count_statuses(trials: Iterable[TrialHead]) -> str:
    counts = Counter(trial.status for trial in trials)
    order = (TrialStatus.FAILED, TrialStatus.INVALID, TrialStatus.COMPLETED)
    parts = (f"{counts[status]:,} {status.value}" for status in order if counts[status])
    return ", ".join(parts)


def _alarm(
    trials: Sequence[TrialHead], recent: Sequence[TrialHead], missing: Sequence[Attention]
) -> str:
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
    tonight: Sequence[TrialHead], plan: Night | None, by_id: Mapping[TrialId, TrialHead]
) -> str:
    if not plan:
        return f"{count(len(tonight), 'trial')}: {_count_statuses(tonight)}." if tonight else ""
    ended = sum(planned.id in by_id for planned in plan.trials)
    return (
        f"{ended:,} of {count(len(plan.trials), 'planned trial')} of suite {plan.suite} ended: "
        f"{_count_statuses(tonight)}."
    )


def _view_trial_row(trial: TrialHead, samples: Sequence[Sample]) -> TrialRow:
    return TrialRow(
        experiment=trial.experiment,
        release=f"{trial.release.system} {trial.release.version}",
        night=trial.night or NOTHING,
        status=STATUS_BADGES[trial.status],
        throughput=_headline(samples, "saturation", "throughput", "mean"),
        response_time=_headline(samples, "steady", "response_time", "p99"),
        finished=moment(trial.finished_at),
        reason=first_reason(trial) if is_trouble(trial) else "",
        page=links.trial_page(trial.id),
    )


def _headline(samples: Sequence[Sample], phase: str, metric: str, statistic: str) -> str:
    wanted = (phase, metric, statistic, None)
    found = (
        quantity(s.value, s.metric)
        for s in samples
        if (s.phase, s.metric, s.statistic, s.iteration) == wanted
    )
    return next(found, NOTHING)
