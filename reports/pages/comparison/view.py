"""Comparisons in a line each, and which trial of one took which turn."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median
from typing import TypeAlias

from analysis.comparing.results import ComparisonResult, MeasureResult, TrialRecord
from analysis.detection.verdict import Outcome
from perf.model.results import Purpose, SideName, TrialStatus
from reports.site.svg import Scale, fit
from reports.wording import links
from reports.wording.attention import Attention
from reports.wording.markdown import clean
from reports.wording.summary import summarize_result
from reports.wording.wording import moment

_WIDTH, _HEIGHT, _MARGIN = 640, 190, 12
Places: TypeAlias = Mapping[SideName, Sequence[tuple[int, TrialRecord]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A trial that ran: its place in the order, from 0 on, its block, and its value.

    `low` and `high` are the ends of its iterations.
    """

    place: int
    block: int
    side: SideName
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnChart:
    """Turns with their scales; `medians` are those of both sides, `borders` the first of each block."""

    turns: tuple[Turn, ...]
    medians: Mapping[SideName, float]
    borders: Sequence[int]
    x: Scale
    y: Scale
    width: float = _WIDTH
    height: float = _HEIGHT


def view_list(results: Iterable[ComparisonResult]) -> tuple[Attention, ...]:
    """List comparisons, newest first; a bisection lists its own."""
    reported = (one for one in results if one.purpose is not Purpose.BISECTION)
    newest = sorted(reported, key=lambda one: one.finished_at, reverse=True)
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


def place_turns(result: ComparisonResult) -> Places:
    """Return the places of the trials that a measure can have values of, for each side in order.

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


def draw_turns(result: MeasureResult, places: Places, trials: int) -> TurnChart | None:
    """Draw the values of a measure among the places of all trials, in their order.

    None where there are none, or where they cannot be told apart by trial.
    """
    values = {"baseline": result.baseline, "candidate": result.candidate}
    if any(len(values[side]) != len(places[side]) for side in places):
        return None
    turns = tuple(
        Turn(
            place=place,
            block=trial.block,
            side=side,
            value=value.value,
            low=min(ends),
            high=max(ends),
        )
        for side, own in places.items()
        for (place, trial), value in zip(own, values[side], strict=True)
        if isfinite(value.value)
        for ends in [(value.value, *filter(isfinite, value.iterations))]
    )
    if not turns:
        return None
    firsts = {one.block: one.place for one in sorted(turns, key=lambda one: -one.place)}
    sides = sorted({one.side for one in turns})
    ends = (end for one in turns for end in (one.low, one.high))
    return TurnChart(
        turns=turns,
        medians={side: median(one.value for one in turns if one.side == side) for side in sides},
        borders=sorted(firsts.values())[1:],
        x=Scale(-0.5, max(1, trials) - 0.5, 0, _WIDTH),
        y=fit(ends, _HEIGHT - _MARGIN, _MARGIN),
    )
