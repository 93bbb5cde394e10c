"""Nights by date: what each measured, what is missing of it, and what it found."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import TypeAlias

from analysis.detection.detection import outcome_of
from analysis.detection.verdict import Outcome
from analysis.judging.findings import REPLAYED_NIGHTS, may_be_older
from analysis.judging.judgement import JudgedSeries
from perf.model.metrics import METRICS
from perf.model.nights import Night
from perf.model.results import IN_TURNS, SeriesKey, TrialHead, TrialId, TrialStatus
from reports.wording import links
from reports.wording.attention import view_missing
from reports.wording.wording import count, heading, night_name, night_words, sentence

NOTHING_NEW = "nothing new"
SUSPECTED, RETRACTED = "suspected", "retracted"
_WORDS = (Outcome.REGRESSED.value, Outcome.IMPROVED.value, SUSPECTED, RETRACTED)
"""What a night can find of a series, in the order in which it is said."""
Events: TypeAlias = defaultdict[str, dict[str, list[SeriesKey]]]
"""By night and word the series of which it was said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredNight:
    """One night: its plan, if that is known, its trials in the order of time, and when it began."""

    name: str
    plan: Night | None
    trials: tuple[TrialHead, ...]
    began: datetime

    @property
    def title(self) -> str:
        """Name it as a heading does."""
        return heading(night_words(self.name))

    @property
    def short_name(self) -> str:
        """Name it as a row does."""
        return night_name(self.name)

    @property
    def statuses(self) -> str:
        """Describe how many of its trials ended how; empty where there is none."""
        return count_statuses(self.trials)

    @property
    def page(self) -> str:
        """Return its page."""
        return links.night_page(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRow:
    """One night in a line: `events` are the series of which it said something, by what.

    These are all only if `is_replayed`: all series were judged again as of then. `missing` counts what
    was planned and never came; None where the plan is not known.
    """

    night: MeasuredNight
    missing: int | None
    is_replayed: bool
    events: tuple[tuple[str, tuple[SeriesKey, ...]], ...] = ()

    @property
    def found(self) -> str:
        """Return what was known after it, in a few words; empty where that is not known any more."""
        parts = ", ".join(f"{len(series):,} {word}" for word, series in self.events)
        if self.is_replayed:
            return parts or NOTHING_NEW
        # Series without a point on some of the newest nights are replayed further back than others.
        return f"at least {parts}" if parts else ""

    @property
    def found_how(self) -> str:
        """Describe how it is known."""
        if not self.found:
            return (
                "What was known after this night is not known any more: "
                f"only the newest {REPLAYED_NIGHTS} nights are judged again as of then."
            )
        if self.is_replayed:
            return sentence(f"known after this night: {self.found}")
        return sentence(
            f"known after this night: {self.found}; only series whose newest {REPLAYED_NIGHTS} nights "
            "reach back to it are judged again"
        )


def list_by_itself(trials: Iterable[TrialHead]) -> list[TrialHead]:
    """Return the trials that took no turns: those are on the page of their comparison."""
    return [trial for trial in trials if trial.night or trial.purpose not in IN_TURNS]


def find_current_night(trials: Sequence[TrialHead]) -> tuple[TrialHead, ...]:
    """Return the trials of the newest night; they come in the order of time."""
    by_itself = list_by_itself(trials)
    night = next((trial.night for trial in reversed(by_itself) if trial.night), "")
    return tuple(trial for trial in by_itself if trial.night == night)


def group_nights(trials: Iterable[TrialHead], plans: Iterable[Night]) -> tuple[MeasuredNight, ...]:
    """Return all nights, planned or measured, oldest first; trials come in the order of time."""
    planned = {plan.id: plan for plan in plans}
    of_night: defaultdict[str, list[TrialHead]] = defaultdict(list)
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


def count_barren(nights: Sequence[MeasuredNight]) -> int:
    """Return how many of the newest nights in a row were measured without a single valid trial."""
    barren = takewhile(
        lambda night: (
            night.trials and all(trial.status is not TrialStatus.COMPLETED for trial in night.trials)
        ),
        reversed(nights),
    )
    return sum(1 for _ in barren)


def list_nights(
    nights: Sequence[MeasuredNight],
    series: Sequence[JudgedSeries],
    known: Mapping[TrialId, TrialHead],
) -> tuple[NightRow, ...]:
    """Return nights in their order, that of time, with what they found; `known` are all trials."""
    events: Events = defaultdict(dict)
    for judged in series:
        for name, word in _list_events(judged):
            events[name].setdefault(word, []).append(judged.series.key)
    first_replayed = _find_first_known([night.name for night in nights], series)
    return tuple(
        NightRow(
            night=night,
            missing=len(view_missing(night.plan, known)) if night.plan else None,
            is_replayed=at >= first_replayed,
            events=tuple(
                (word, tuple(events[night.name][word]))
                for word in _WORDS
                if word in events.get(night.name, ())
            ),
        )
        for at, night in enumerate(nights)
    )


def count_statuses(trials: Iterable[TrialHead], *, best_first: bool = False) -> str:
    """Say how many trials ended how, the worst first if not said otherwise; empty where is none."""
    counts = Counter(trial.status for trial in trials)
    worst_first = (TrialStatus.FAILED, TrialStatus.INVALID, TrialStatus.COMPLETED)
    order = reversed(worst_first) if best_first else worst_first
    return ", ".join(f"{counts[status]:,} {status.value}" for status in order if counts[status])


def summarize_night(night: MeasuredNight, known: Mapping[TrialId, TrialHead]) -> str:
    """Describe how much of its plan a night measured, and how its trials ended."""
    reported = count_statuses(night.trials)
    if not night.plan:
        return f"{count(len(night.trials), 'trial')}: {reported}."
    ended = sum(planned.id in known for planned in night.plan.trials)
    planned = count(len(night.plan.trials), "planned trial")
    how = f": {reported}" if reported else ""
    return f"{ended:,} of {planned} of suite {night.plan.suite} ended{how}."


def _find_first_known(names: Sequence[str], series: Iterable[JudgedSeries]) -> int:
    """Return the place of the first night of which all is known, whatever series it measured."""
    places = {name: place for place, name in enumerate(names)}
    first = 0
    for judged in series:
        nights = judged.series.points.nights_in_order
        if judged.series.key.metric in METRICS and len(nights) > REPLAYED_NIGHTS:
            # What the first night replayed saw may be older than it.
            first = max(first, places.get(nights[-REPLAYED_NIGHTS], -1) + 1)
    return first


def _list_events(judged: JudgedSeries) -> Iterator[tuple[str, str]]:
    """Yield what each night found of a series: the night, and in a word what."""
    metric = METRICS.get(judged.series.key.metric)
    if metric is None or not judged.alerts:
        return
    nights = judged.series.points.nights_in_order
    for alert in judged.alerts:
        outcome = outcome_of(metric.better, 0.0, 1.0 if alert.rises else -1.0)
        for night, word in (
            (alert.confirmed_at, outcome.value),
            (alert.provisional_at, SUSPECTED),
            (alert.withdrawn_at, RETRACTED),
        ):
            if night is not None and not may_be_older(judged.series, night):
                yield nights[night], word
