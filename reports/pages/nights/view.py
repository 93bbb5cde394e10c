"""Nights by date: what each measured, what is missing of it, and what it told."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from analysis.detection.detection import tell_outcome
from analysis.detection.series import nights_of
from analysis.detection.verdict import Outcome
from analysis.judging.findings import REPLAYED_NIGHTS, may_be_older
from analysis.judging.judgement import JudgedSeries
from perf.model.metrics import METRICS
from perf.model.nights import Night
from perf.model.results import Purpose, Sample, Trial, TrialHead, TrialId, TrialStatus
from reports.wording import links
from reports.wording.attention import Attention, first_reason, is_trouble, view_missing
from reports.wording.wording import (
    NOTHING,
    STATUS_BADGES,
    Badge,
    Moment,
    count,
    heading,
    join_caveats,
    moment,
    night_words,
    quantity,
    sentence,
)

AnyTrial = TypeVar("AnyTrial", bound=TrialHead)
_IN_TURNS = (Purpose.CANDIDATE, Purpose.COMPARISON, Purpose.CONFIRMATION, Purpose.BISECTION)
_NOT_JUDGED_AGAIN = "not known any more"
_AT_LEAST = "at least "


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredNight(Generic[AnyTrial]):
    """One night: its plan, if that is known, its trials in the order of time, and when it began."""

    name: str
    plan: Night | None
    trials: tuple[AnyTrial, ...]
    began: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NightTrialRow:
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
class NightRow:
    """One night in a line; `told` is what was told then, or that it is not known."""

    title: str
    page: str
    suite: str
    began: Moment
    trials: str
    missing: str
    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NightView:
    """All that the page of a night shows; `before` and `after` are the nights beside it."""

    page: str
    title: str
    summary: str
    told: str
    rows: tuple[NightTrialRow, ...]
    missing: tuple[Attention, ...]
    before: NightRow | None
    after: NightRow | None
    caveat: str


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The line of a night between those of the nights before and after it, where there are any."""

    before: NightRow | None
    own: NightRow
    after: NightRow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NightsView:
    """All that the list of nights shows, newest first."""

    summary: str
    rows: tuple[NightRow, ...]
    replayed: int = REPLAYED_NIGHTS


def list_by_itself(trials: Iterable[AnyTrial]) -> list[AnyTrial]:
    """Give the trials that took no turns: those are told by their comparison, however they ended."""
    return [trial for trial in trials if trial.night or trial.purpose not in _IN_TURNS]


def find_tonight(trials: Sequence[AnyTrial]) -> tuple[AnyTrial, ...]:
    """Give the trials of the newest night; they come in the order of time."""
    by_itself = list_by_itself(trials)
    night = next((trial.night for trial in reversed(by_itself) if trial.night), "")
    return tuple(trial for trial in by_itself if trial.night == night)


def group_nights(
    trials: Iterable[AnyTrial], plans: Iterable[Night]
) -> tuple[MeasuredNight[AnyTrial], ...]:
    """Give all nights that were planned or measured, oldest first; trials come in the order of time."""
    planned = {plan.id: plan for plan in plans}
    of_night: defaultdict[str, list[AnyTrial]] = defaultdict(list)
    for trial in trials:
        if trial.night:
            of_night[trial.night].append(trial)
    began = {name: plan.started_at for name, plan in planned.items()}
    began |= {name: own[0].started_at for name, own in of_night.items()}
    return tuple(
        MeasuredNight(
            name=name,
            plan=planned.get(name),
            trials=tuple(of_night.get(name, ())),
            began=began[name],
        )
        for name in sorted(began, key=lambda name: (began[name], name))
    )


def view_rows(
    nights: Sequence[MeasuredNight[TrialHead]],
    series: Sequence[JudgedSeries],
    known: Mapping[TrialId, TrialHead],
) -> tuple[NightRow, ...]:
    """Put nights into lines, in the order in which they come; `known` are all trials."""
    told = _tell_nights([night.name for night in nights], series)
    return tuple(
        NightRow(
            title=heading(night_words(night.name)),
            page=links.night_page(night.name),
            suite=night.plan.suite if night.plan else NOTHING,
            began=moment(night.began),
            trials=count_statuses(night.trials) or "none",
            missing=f"{len(view_missing(night.plan, known)):,}" if night.plan else NOTHING,
            told=told[night.name],
        )
        for night in nights
    )


def view_nights(
    nights: Sequence[MeasuredNight[TrialHead]],
    series: Sequence[JudgedSeries],
    known: Mapping[TrialId, TrialHead],
) -> NightsView:
    """Put all nights into words; they come oldest first, `known` are all trials."""
    rows = view_rows(nights, series, known)
    if not nights:
        return NightsView(summary="None so far.", rows=())
    first, last = nights[0].began, nights[-1].began
    return NightsView(
        summary=f"{count(len(nights), 'night')} from {first:%Y-%m-%d} to {last:%Y-%m-%d}.",
        rows=tuple(reversed(rows)),
    )


def view_night(
    night: MeasuredNight[TrialHead],
    trials: Sequence[TrialHead],
    around: Neighbours,
    known: Mapping[TrialId, TrialHead],
    caveats: Mapping[str, str],
) -> NightView:
    """Put one night into words, with its trials; of those that are heads only, figures are left out."""
    own = around.own
    return NightView(
        page=own.page,
        title=own.title,
        summary=summarize_night(night, known),
        told=_explain_told(own.told),
        rows=tuple(map(view_trial_row, trials)),
        missing=view_missing(night.plan, known),
        before=around.before,
        after=around.after,
        caveat=join_caveats({trial.testbed.name for trial in trials}, caveats),
    )


def _explain_told(told: str) -> str:
    if told == _NOT_JUDGED_AGAIN:
        return (
            "What was told of this night is not known any more: it is found by judging each night "
            f"again as it was known then, and only the newest {REPLAYED_NIGHTS} are."
        )
    if told.startswith(_AT_LEAST):
        return sentence(
            f"{told}: so much is known of series whose newest {REPLAYED_NIGHTS} nights, judged again "
            "as they were known then, reach back to this one"
        )
    return sentence(f"judged again as it was known then: {told}")


def count_statuses(trials: Iterable[TrialHead]) -> str:
    """Say how many trials ended how, the worst first; empty where there is none."""
    counts = Counter(trial.status for trial in trials)
    order = (TrialStatus.FAILED, TrialStatus.INVALID, TrialStatus.COMPLETED)
    return ", ".join(f"{counts[status]:,} {status.value}" for status in order if counts[status])


def summarize_night(night: MeasuredNight[AnyTrial], known: Mapping[TrialId, TrialHead]) -> str:
    """Say how much of its plan a night measured, and how its trials ended."""
    told = count_statuses(night.trials)
    if not night.plan:
        return f"{count(len(night.trials), 'trial')}: {told}."
    ended = sum(planned.id in known for planned in night.plan.trials)
    planned = count(len(night.plan.trials), "planned trial")
    return f"{ended:,} of {planned} of suite {night.plan.suite} ended{f': {told}' if told else ''}."


def view_trial_row(trial: TrialHead) -> NightTrialRow:
    """Put a trial into a line; a head alone has no figures."""
    samples = trial.samples if isinstance(trial, Trial) else ()
    return NightTrialRow(
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


def _tell_nights(names: Sequence[str], series: Sequence[JudgedSeries]) -> Mapping[str, str]:
    """Say what each night told, as far as that is known; `names` are in the order of time."""
    events = Counter(event for judged in series for event in _list_events(judged))
    replayed = set(names[_find_first_known(names, series) :])
    seen = {night for night, _ in events}
    return {
        name: _put_events(name, events)
        if name in replayed
        # Series without a point on some of the newest nights are replayed further back than others.
        else f"{_AT_LEAST}{_put_events(name, events)}"
        if name in seen
        else _NOT_JUDGED_AGAIN
        for name in names
    }


def _find_first_known(names: Sequence[str], series: Iterable[JudgedSeries]) -> int:
    """Give the place of the first night of which all is known, whatever series it measured."""
    places = {name: place for place, name in enumerate(names)}
    first = 0
    for judged in series:
        nights = nights_of(judged.series)
        if judged.series.key.metric in METRICS and len(nights) > REPLAYED_NIGHTS:
            # What the first night replayed saw may be older than it.
            first = max(first, places.get(nights[-REPLAYED_NIGHTS], -1) + 1)
    return first


def _list_events(judged: JudgedSeries) -> Iterator[tuple[str, str]]:
    """Give what each night told of a series: the night, and in a word what."""
    metric = METRICS.get(judged.series.key.metric)
    if metric is None or not judged.alerts:
        return
    nights = nights_of(judged.series)
    for alert in judged.alerts:
        outcome = tell_outcome(metric.better, 0.0, 1.0 if alert.rises else -1.0)
        for night, word in (
            (alert.confirmed_at, outcome.value),
            (alert.provisional_at, "suspected"),
            (alert.withdrawn_at, "taken back"),
        ):
            if night is not None and not may_be_older(judged.series, night):
                yield nights[night], word


def _put_events(name: str, events: Mapping[tuple[str, str], int]) -> str:
    order = (Outcome.REGRESSED.value, Outcome.IMPROVED.value, "suspected", "taken back")
    parts = [f"{events[name, word]:,} {word}" for word in order if events.get((name, word))]
    return ", ".join(parts) or "nothing new"
