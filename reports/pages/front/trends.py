"""Trends at a glance: a small chart of what matters most in each experiment, the worst first."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from analysis.detection.detection import ChangePoint
from analysis.detection.series import Point
from analysis.detection.verdict import WORST_FIRST, Outcome
from analysis.judging.judgement import JudgedSeries
from analysis.judging.verdicts import VerdictBasis
from perf.model.results import SeriesKey
from reports.wording import links
from reports.wording.series_list import ExperimentGroup
from reports.wording.wording import OUTCOME_BADGES, Badge, night_name, quantity

MOST_CHARTS = 60
"""On the page: it must stay small however many series there are."""
_MOST_OF_FEW, _MOST_OF_MANY = 12, 4
"""Charts of one experiment, where there are few experiments, or many: then it is one row of each."""
_MOST_OPEN = 4
"""Experiments that are shown open though nothing moved in them."""
_FEWEST_POINTS = 3
"""Of a course; less is no trend."""
_MOST_LINKED = 100
_MOVED = (Outcome.REGRESSED, Outcome.IMPROVED)
_SUSPECTED = Badge(kind="unsure", symbol="?", word="Suspected")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendChart:
    """One series: its verdict, the change that stands or is suspected, its ends, its newest value."""

    judged: JudgedSeries
    badge: Badge
    change: ChangePoint | None
    first: str
    last: str
    newest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendGroup:
    """The charts of one experiment; `further` counts its series that have none here."""

    name: str
    page: str
    counts: str
    charts: tuple[TrendChart, ...]
    further: int
    is_open: bool


def view_trends(groups: Sequence[ExperimentGroup]) -> tuple[TrendGroup, ...]:
    """Choose the charts of each experiment, the worst first; the last ones may have to do without."""
    lengths = (len(one.series.points) for group in groups for one in group.series)
    if max(lengths, default=0) < _FEWEST_POINTS:
        return ()
    are_few = len(groups) <= _MOST_OPEN
    most, left, found = _MOST_OF_FEW if are_few else _MOST_OF_MANY, MOST_CHARTS, []
    for group in sorted(groups, key=_rank_group)[:_MOST_LINKED]:
        chosen = choose_series(group.series)[: min(left, most)]
        left -= len(chosen)
        found.append(
            TrendGroup(
                name=group.name,
                page=f"{links.SERIES_PAGE}#{group.anchor}",
                counts=count_outcomes(group.series),
                charts=tuple(map(_view_chart, chosen)),
                further=len(group.series) - len(chosen),
                is_open=len(groups) <= _MOST_OPEN or any(_rank(one)[0] < _CALM for one in group.series),
            )
        )
    return tuple(found)


def choose_series(series: Sequence[JudgedSeries]) -> list[JudgedSeries]:
    """Return what moved, then throughput and p99 response time of each operation, the worst first.

    Of a group that has neither, all of it.
    """
    measured = [one for one in series if one.series.points]
    is_tail = _is_tail if any(_is_tail(one.series.key) for one in measured) else _is_p99
    chosen = [
        one
        for one in measured
        if _rank(one)[0] < _CALM or is_headline(one.series.key) or is_tail(one.series.key)
    ]
    return sorted(chosen or measured, key=lambda one: (*_rank(one), not _is_fast(one.series.key)))


def is_headline(key: SeriesKey) -> bool:
    """Return whether a series is one of the few that say how fast an operation is.

    At a steady load the throughput is the load that was offered.
    """
    if key.metric == "throughput":
        return key.phase != "steady"
    return _is_tail(key) or key.metric == "highest_load"


def _is_tail(key: SeriesKey) -> bool:
    """Return whether a series is of the slowest responses under a load that the database can bear."""
    return _is_p99(key) and key.phase != "saturation"


def _is_p99(key: SeriesKey) -> bool:
    return (key.metric, key.statistic) == ("response_time", "p99")


def _is_fast(key: SeriesKey) -> bool:
    return key.metric == "throughput"


_RANKS = {Outcome.REGRESSED: 0, Outcome.INVALID: 2, Outcome.IMPROVED: 3}
_SUSPICION, _CALM = 1, 4


def _rank(judged: JudgedSeries) -> tuple[int, bool]:
    """Order series: regressed, suspected, without a rule, improved, the rest."""
    verdict = judged.verdict
    if verdict.basis is VerdictBasis.SUSPICION:
        return _SUSPICION, False
    return _RANKS.get(verdict.outcome, _CALM), not is_headline(judged.series.key)


def _rank_group(group: ExperimentGroup) -> tuple[int, int, str]:
    ranks = Counter(_rank(one)[0] for one in group.series)
    worst = min(ranks)
    return worst, -ranks[worst], group.name


def sort_worst_first(groups: Sequence[ExperimentGroup]) -> list[ExperimentGroup]:
    """Return the experiments with their series, both the worst first."""
    return [
        replace(group, series=tuple(sorted(group.series, key=_rank)))
        for group in sorted(groups, key=_rank_group)
    ]


def _view_chart(judged: JudgedSeries) -> TrendChart:
    verdict, points = judged.verdict, judged.series.points
    is_suspected = verdict.basis is VerdictBasis.SUSPICION
    moved = verdict.change if verdict.outcome in _MOVED or is_suspected else None
    first, last = points[0], points[-1]
    is_one = first.release == last.release
    return TrendChart(
        judged=judged,
        badge=_SUSPECTED if is_suspected else OUTCOME_BADGES[verdict.outcome],
        change=moved,
        first=_name_time(first) if is_one else first.release.version,
        last=_name_time(last) if is_one else last.release.version,
        newest=quantity(last.value, judged.series.key.metric),
    )


def _name_time(point: Point) -> str:
    return night_name(point.night) if point.night else f"{point.started_at:%Y-%m-%d}"


def count_outcomes(series: Sequence[JudgedSeries]) -> str:
    """Describe how many series came to what, the worst first."""
    return ", ".join(
        f"{many:,} {OUTCOME_BADGES[outcome].word.lower()}" for outcome, many in list_outcomes(series)
    )


def list_outcomes(series: Iterable[JudgedSeries]) -> Iterator[tuple[Outcome, int]]:
    """Yield each outcome that any of the series came to, the worst first, with their number."""
    counts = Counter(one.verdict.outcome for one in series)
    return ((outcome, counts[outcome]) for outcome in WORST_FIRST if counts[outcome])
