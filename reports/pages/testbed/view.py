"""What was seen to move in canaries and sentinels, by the test that judges all series."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from analysis.detection.noise import can_confirm
from analysis.judging.drift import is_canary
from analysis.judging.judgement import JudgedSeries, Judgement
from perf.model.results import SeriesKey
from perf.model.rules import Detection
from reports.wording.changes import TYPICAL, name_gap, view_scatter, view_slopes
from reports.wording.wording import (
    MOVED_BADGE,
    SHORT_BADGE,
    STATE_BADGES,
    STILL_BADGE,
    Badge,
    count,
    number,
    percent,
    quantity,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """A step, a drift or a change of scatter of a canary or a sentinel."""

    series: SeriesKey
    badge: Badge
    between: str
    text: str


def list_movements(watched: Iterable[JudgedSeries]) -> Iterator[Movement]:
    """List what the test saw in canaries and sentinels: steps, then drifts, then changes of scatter."""
    for one in watched:
        key = one.series.key
        for change in one.change_points:
            yield Movement(
                series=key,
                badge=MOVED_BADGE,
                between=name_gap(change),
                text=f"{percent(change.relative_change)}, {STATE_BADGES[change.state].word.lower()}: "
                f"{number(change.before)} → {quantity(change.after, key.metric)}",
            )
        for slope in view_slopes(one):
            text = f"{slope.change}: {slope.text}"
            yield Movement(series=key, badge=slope.badge, between=slope.between, text=text)
        for spread in view_scatter(one):
            text = f"{spread.label}: {spread.text}"
            yield Movement(series=key, badge=spread.badge, between=spread.between, text=text)


def is_most_informative(key: SeriesKey, settings: Detection) -> bool:
    """Return whether a watching series is one of those that are shown first."""
    if is_canary(key):
        return key.statistic == TYPICAL
    return key.statistic in settings.judged.get(key.metric, ())


def is_short(judged: JudgedSeries, settings: Detection) -> bool:
    """Return whether a series has too few points to show any step, were it half way through."""
    points = len(judged.series.points)
    half = points // 2
    is_searched = judged.noise is not None
    return not judged.change_points and not (is_searched and can_confirm(half, points - half, settings))


def step_badge(judged: JudgedSeries, settings: Detection) -> Badge:
    """Return whether a step was seen in a watching series, in place of a verdict."""
    if judged.change_points:
        return MOVED_BADGE
    return SHORT_BADGE if is_short(judged, settings) else STILL_BADGE


def summarize_testbed(judgement: Judgement, settings: Detection) -> str:
    """Describe how many series watch the testbed, and in how many of them a step was seen."""
    watched = judgement.watched
    if not watched:
        return (
            "No canary or sentinel has been measured yet, so a change of the testbed would look like "
            "one of the database."
        )
    moved = sum(bool(one.change_points) for one in watched)
    short = sum(is_short(one, settings) for one in watched)
    has = "has" if short == 1 else "have"
    return (
        f"{count(len(watched), 'series', 'series')} of canaries and sentinels watch the testbed; "
        f"a step was seen in {moved:,} of them"
        f"{f', and {short:,} {has} too few points to tell' if short else ''}."
    )
