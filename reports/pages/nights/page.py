"""The list of nights, and a page for each: that of an old night stays as it was made."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from analysis.detection.detection import ChangeState
from analysis.detection.verdict import Outcome
from analysis.judging.echoes import without_echoes
from analysis.judging.findings import REPLAYED_NIGHTS
from analysis.judging.judgement import JudgedSeries
from perf.model.results import SeriesKey, TrialId
from reports.pages.nights.moves import (
    HEADLINES,
    ConfigMove,
    Offsets,
    find_config_moves,
    find_offsets,
    say_value,
)
from reports.pages.nights.view import (
    RETRACTED,
    SUSPECTED,
    MeasuredNight,
    NightRow,
    group_nights,
    list_nights,
    summarize_night,
)
from reports.pages.old_trials.view import (
    Surroundings,
    describe,
    find_surroundings,
    list_shared,
    read_old_trials,
    samples_command,
    split_old,
)
from reports.site.changed_settings import name_changed_settings
from reports.site.context import SiteContext
from reports.site.rendering import render
from reports.site.writing import Batch, LazyBatches, SiteFile, digest, in_parts
from reports.wording.attention import view_missing
from reports.wording.links import NIGHTS_PAGE
from reports.wording.wording import (
    NOTHING,
    OUTCOME_BADGES,
    RETRACTED_BADGE,
    STATE_BADGES,
    join_caveats,
    percent,
    quantity,
)

_BADGES = {
    Outcome.REGRESSED.value: OUTCOME_BADGES[Outcome.REGRESSED],
    Outcome.IMPROVED.value: OUTCOME_BADGES[Outcome.IMPROVED],
    SUSPECTED: STATE_BADGES[ChangeState.PROVISIONAL],
    RETRACTED: RETRACTED_BADGE,
}
"""What a night can find of a series."""
_AT_ONCE = 2000
"""Trials that are read together: many against the cost of a query, few against memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beside:
    """What all nights share: the series, how far values are off, and which configs changed when."""

    series: Mapping[SeriesKey, JudgedSeries]
    offsets: Offsets
    moves: Mapping[str, Sequence[ConfigMove]]
    old: Surroundings


_Shown: TypeAlias = Mapping[str, object]
"""What a page shows of a night beside its trials, as the template names it."""


def batches(context: SiteContext) -> Iterator[Batch | LazyBatches]:
    """Yield the list of all nights, then their pages."""
    nights = group_nights(context.heads.values(), context.nights)
    rows = list_nights(nights, without_echoes(context.judgement.series), context.heads)
    yield Batch(
        {NIGHTS_PAGE: ""},
        lambda _: [render("nights.html", NIGHTS_PAGE, rows=rows[::-1], replayed=REPLAYED_NIGHTS)],
    )
    judgement = context.judgement
    beside = _Beside(
        series={one.series.key: one for one in judgement.series},
        offsets=find_offsets(
            (*judgement.series, *judgement.watched), context.heads.keys() - context.old_trials.keys()
        ),
        moves=find_config_moves(context.heads, judgement.incidents),
        old=find_surroundings(context),
    )
    around = zip(rows, (None, *nights), (*nights[1:], None), strict=False)
    of_each = max(1, len(context.heads) // max(1, len(nights)))
    yield from in_parts(around, max(1, _AT_ONCE // of_each), partial(_batches_of_some, context, beside))


def _batches_of_some(
    context: SiteContext,
    beside: _Beside,
    some: Collection[tuple[NightRow, MeasuredNight | None, MeasuredNight | None]],
) -> Iterator[Batch]:
    headlines = _find_headlines(context, beside, [row.night for row, *_ in some])
    by_page = {
        row.night.page: (
            row.night,
            {
                **_show(context, beside, row),
                "before": _point(before),
                "after": _point(after),
                "headlines": (own := headlines[row.night.name]),
                "has_offsets": any(off for values in own.values() for *_, off in values),
            },
        )
        for row, before, after in some
    }
    versions = {page: _digest(beside.old, *one) for page, one in by_page.items()}
    yield Batch(versions, partial(_make, beside.old, by_page))


def _find_headlines(
    context: SiteContext, beside: _Beside, nights: Iterable[MeasuredNight]
) -> Mapping[str, Mapping[TrialId, Sequence[tuple[str, str, str]]]]:
    """Return by night and trial, if it is not old: metrics, their values, how far off in percent."""
    fresh = {night.name: split_old(night.trials, context)[1] for night in nights}
    ids = [head.id for heads in fresh.values() for head in heads]
    values = [(one, context.archive.first_values(ids, *one) if ids else {}) for one in HEADLINES]
    return {
        name: {
            head.id: [
                (
                    metric,
                    *_headline(found.get(head.id), beside.offsets.get(head.id, {}), phase, metric),
                )
                for (phase, metric, _), found in values
            ]
            for head in heads
        }
        for name, heads in fresh.items()
    }


def _point(night: MeasuredNight | None) -> Mapping[str, str] | None:
    """Return what leads to a neighbour and no more: the digest is of all that a page is given."""
    return {"title": night.title, "page": night.page} if night else None


def _show(context: SiteContext, beside: _Beside, row: NightRow) -> dict[str, object]:
    night = row.night
    trials = frozenset(head.id for head in night.trials)
    return {
        "title": night.title,
        "summary": summarize_night(night, context.heads),
        "name": night.name,
        "found": "" if row.events and row.is_replayed else row.found_how,
        "events": [
            (
                _BADGES[word],
                [(key, say_value(beside.series[key], trials)) for key in dict.fromkeys(keys)],
            )
            for word, keys in row.events
        ],
        "moves": [
            (move, name_changed_settings(move.before, move.after, context))
            for move in beside.moves.get(night.name, ())
        ],
        "missing": view_missing(night.plan, context.heads),
        "caveat": join_caveats({head.testbed.name for head in night.trials}, context.caveats),
    }


def _make(
    around: Surroundings, by_page: Mapping[str, tuple[MeasuredNight, _Shown]], paths: Collection[str]
) -> Iterator[SiteFile]:
    context = around.context
    wanted = [(path, *by_page[path]) for path in sorted(paths)]
    split = {path: split_old(night.trials, context) for path, night, _ in wanted}
    known = read_old_trials(around, [head for old, _ in split.values() for head in old])
    for path, _, shown in wanted:
        old, fresh = split[path]
        trials = [known[head.id] for head in old]
        yield render(
            "night.html",
            path,
            trials=fresh,
            old=trials,
            shared=list_shared(trials),
            samples=samples_command(str(shown["name"])),
            **shown,
        )


def _headline(
    found: tuple[str, float] | None, offsets: Mapping[tuple[str, str], float], phase: str, metric: str
) -> tuple[str, str]:
    """Return a value of a whole phase, and in percent how far it is off the level before, if known."""
    if not found:
        return NOTHING, ""
    operation, value = found
    off = offsets.get((phase, operation))
    return quantity(value, metric), "" if off is None else percent(off)


def _digest(around: Surroundings, night: MeasuredNight, shown: _Shown) -> str:
    """Digest all that the page of a night is made of, without reading its trials."""
    context = around.context
    # The lines of its trials are of nothing but what their bundles hold.
    bundles = context.digest_of(head.id for head in night.trials)
    old, _ = split_old(night.trials, context)
    parts = (repr(shown), bundles, *(head.id for head in old), *describe(around, old))
    return digest(parts) if bundles else ""
