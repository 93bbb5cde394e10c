"""What the page of a side-by-side comparison shows: the verdict, each measure and turn, both sides."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.comparing.results import ComparisonResult, MeasureResult, SideRecord, TrialRecord
from analysis.detection.verdict import Outcome
from perf.model.results import SIDES, Purpose, SideName, TrialId, TrialStatus
from reports.pages.comparison.chart import Turn, TurnChart, draw_turns
from reports.wording import links
from reports.wording.attention import Attention
from reports.wording.markdown import clean, drop_invisible
from reports.wording.measures import MeasureRow, length_words, view_measure
from reports.wording.summary import side_words, summarize_result
from reports.wording.wording import (
    NOTHING,
    OUTCOME_BADGES,
    STATUS_BADGES,
    Badge,
    Moment,
    count,
    direction_words,
    heading,
    moment,
    named,
    plain_percent,
    quantity,
    sentence,
)

_PURPOSES = {
    Purpose.CANDIDATE: "for a pull request",
    Purpose.COMPARISON: "on request",
    Purpose.CONFIRMATION: "to make sure of a change that a night suspected",
    Purpose.BISECTION: "in search of the release that brought a change",
}
_SIDE_WORDS: Mapping[SideName, str] = {"baseline": "Baseline", "candidate": "Candidate"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureView:
    """A measure with its verdict and, if any trial has a value of it, its turns as a chart."""

    anchor: str
    badge: Badge
    row: MeasureRow
    title: str
    direction: str
    trials: str
    confidence: str
    reason: str
    chart: TurnChart | None
    chart_label: str
    top: str
    bottom: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRow:
    """One property of both sides."""

    name: str
    baseline: str
    candidate: str

    @property
    def differs(self) -> bool:
        """Tell whether the sides differ in it."""
        return self.baseline != self.candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRow:
    """A trial that took its turn; `page` is empty where the history does not have it."""

    number: int
    block: int
    side: str
    name: str
    page: str
    status: Badge
    length: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonView:
    """All that the page of a comparison shows."""

    page: str
    name: str
    kicker: str
    title: str
    badge: Badge
    sentence: str
    action: str
    advice: str
    started: Moment
    length: str
    unused: str
    caveat: str
    remarks: tuple[str, ...]
    ended: str
    reason: str
    sides: tuple[SideRow, ...]
    trusted: tuple[MeasureView, ...]
    others: tuple[MeasureView, ...]
    turns: tuple[TurnRow, ...]
    seed: int
    question: str
    reproduce: str


def view_comparison(result: ComparisonResult, known: Collection[str]) -> ComparisonView:
    """Put one comparison into words; `known` are the trials that have a page."""
    told = summarize_result(result)
    places = _place_turns(result)
    measures = [_view_measure(each, result, places) for each in result.measures]
    return ComparisonView(
        page=links.comparison_page(result.id),
        name=clean(result.id),
        kicker=f"{clean(result.experiment)}, {_PURPOSES.get(result.purpose, result.purpose.value)}",
        title=" → ".join(side_words(None, result, side) for side in SIDES),
        badge=told.badge,
        sentence=told.sentence,
        action=heading(told.action),
        advice=told.advice,
        started=moment(result.started_at),
        length=length_words(math.fsum(one.duration_s for one in result.trials)),
        unused=_count_unused(result),
        caveat=clean(result.caveat),
        remarks=tuple(clean(one) for one in result.remarks),
        ended=sentence(clean(result.ended)),
        reason=sentence(clean(result.reason)),
        sides=_view_sides(result.baseline, result.candidate),
        trusted=tuple(one for one in measures if one.row.result.is_trusted),
        others=tuple(one for one in measures if not one.row.result.is_trusted),
        turns=tuple(_view_turns(result, known)),
        seed=result.seed,
        question=clean(result.question_sha256),
        reproduce=drop_invisible(result.command),
    )


def view_list(results: Iterable[ComparisonResult]) -> tuple[Attention, ...]:
    """List comparisons, newest first; a bisection tells of its own."""
    told = (one for one in results if one.purpose is not Purpose.BISECTION)
    newest = sorted(told, key=lambda one: one.finished_at, reverse=True)
    return tuple(
        Attention(
            badge=summarize_result(one).badge,
            subject=clean(f"{one.experiment}: {one.baseline.label} → {one.candidate.label}"),
            page=links.comparison_page(one.id),
            text=f"{moment(one.finished_at).day}: {summarize_result(one).sentence}",
            is_faded=one.outcome is Outcome.UNCHANGED,
        )
        for one in newest
    )


def _count_unused(result: ComparisonResult) -> str:
    told = []
    for status in (TrialStatus.FAILED, TrialStatus.INVALID):
        for side, word in _SIDE_WORDS.items():
            found = sum(one.side == side and one.status is status for one in result.trials)
            if found:
                told.append(f"{found} of the {word.lower()} {status}")
    if not told:
        return ""
    return f"Of {count(len(result.trials), 'trial')} some were not used: {', '.join(told)}."


def _place_turns(result: ComparisonResult) -> dict[SideName, list[tuple[int, TrialRecord]]]:
    """Give the places of the trials that a measure can have values of, for each side in order.

    As the judging does it: completed trials of blocks in which both sides have one, by block.
    """
    completed = [
        (place, one) for place, one in enumerate(result.trials) if one.status is TrialStatus.COMPLETED
    ]
    sides_of: dict[int, set[SideName]] = {}
    for _, one in completed:
        sides_of.setdefault(one.block, set()).add(one.side)
    found: dict[SideName, list[tuple[int, TrialRecord]]] = {"baseline": [], "candidate": []}
    for place, one in sorted(completed, key=lambda each: each[1].block):
        if len(sides_of[one.block]) == len(found):
            found[one.side].append((place, one))
    return found


def _view_measure(
    result: MeasureResult,
    comparison: ComparisonResult,
    places: Mapping[SideName, Sequence[tuple[int, TrialRecord]]],
) -> MeasureView:
    row = view_measure(result)
    chart = draw_turns(tuple(_turns(result, places)), len(comparison.trials))
    metric = result.measure.metric
    return MeasureView(
        anchor=re.sub(r"[^A-Za-z0-9.]+", "-", str(result.measure)),
        badge=OUTCOME_BADGES[result.outcome],
        row=row,
        title=heading(row.title),
        direction=direction_words(metric),
        trials=row.trials,
        confidence=plain_percent(result.effect.confidence) if result.effect else "",
        reason=sentence(clean(result.reason)) if result.reason else "",
        chart=chart,
        chart_label=(
            f"{heading(row.title)} of each trial in the order of their turns: "
            f"median of the baseline {row.before}, of the candidate {row.after} {row.unit}".rstrip()
        ),
        top=quantity(chart.top, metric) if chart else NOTHING,
        bottom=quantity(chart.bottom, metric) if chart else NOTHING,
    )


def _turns(
    result: MeasureResult, places: Mapping[SideName, Sequence[tuple[int, TrialRecord]]]
) -> Iterator[Turn]:
    """Give each value its place; none where the values cannot be told apart by trial."""
    values = {"baseline": result.baseline, "candidate": result.candidate}
    if any(len(values[side]) != len(places[side]) for side in places):
        return
    for side, trials in places.items():
        for (place, trial), value in zip(trials, values[side], strict=True):
            text = f"Turn {place + 1}, {side}: {quantity(value.value, result.measure.metric)}"
            yield Turn(
                place=place,
                block=trial.block,
                side=side,
                value=value.value,
                iterations=value.iterations,
                text=text,
            )


def _view_sides(baseline: SideRecord, candidate: SideRecord) -> tuple[SideRow, ...]:
    return tuple(
        SideRow(name=name, baseline=clean(before), candidate=clean(after))
        for (name, before), (_, after) in zip(_tell_side(baseline), _tell_side(candidate), strict=True)
    )


def _tell_side(side: SideRecord) -> tuple[tuple[str, str], ...]:
    return (
        ("Release", side.version),
        ("Config", named(side.config)),
        ("Topology", named(side.topology)),
        ("Workload", named(side.workload)),
        ("Testbed", named(side.testbed)),
        ("Artifact (SHA-256)", side.artifact_sha256 or NOTHING),
    )


def _view_turns(result: ComparisonResult, known: Collection[str]) -> Iterator[TurnRow]:
    for number, one in enumerate(result.trials, start=1):
        yield TurnRow(
            number=number,
            block=one.block,
            side=_SIDE_WORDS[one.side],
            name=clean(one.id),
            page=links.trial_page(TrialId(one.id)) if one.id in known else "",
            status=STATUS_BADGES[one.status],
            length=length_words(one.duration_s),
            reason=_tell_first(one),
        )


def _tell_first(trial: TrialRecord) -> str:
    """Give the first reason and count the others: the trial's own page has them all."""
    if not trial.reasons:
        return ""
    more = len(trial.reasons) - 1
    return f"{clean(trial.reasons[0].text)}{f' (and {more} more)' if more else ''}"
