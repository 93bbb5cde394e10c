"""Each experiment in one line: its worst verdict, how many series came to what, how fresh it is."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from analysis.detection.verdict import WORST_FIRST
from analysis.judging.judgement import JudgedSeries
from reports.pages.front.freshness import Freshness
from reports.pages.front.trends import count_outcomes, list_outcomes
from reports.wording import links
from reports.wording.series_list import ExperimentGroup
from reports.wording.wording import NOTHING, OUTCOME_BADGES, WATCH_BADGE, Badge

_NO_SERIES = Badge(kind="unsure", symbol="?", word="No series")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentLine:
    """One experiment; `page` leads to its series, and is empty where it has none."""

    name: str
    page: str
    verdict: Badge
    counts: str
    freshness: Freshness | None


def view_experiments(
    groups: Sequence[ExperimentGroup],
    freshness: Mapping[str, Freshness],
    watching: Collection[str],
) -> tuple[ExperimentLine, ...]:
    """Put all experiments into lines: those without a fresh result, then the worst first, then by name.

    `groups` are those of the page of all series, `watching` the experiments that watch the testbed and
    so are not judged. One without any series stands here for its freshness.
    """
    anchors = {group.name: group.anchor for group in reversed(groups)}
    series: dict[str, list[JudgedSeries]] = {}
    for group in groups:
        series.setdefault(group.name, []).extend(group.series)
    lines = [
        ExperimentLine(
            name=name,
            page=f"{links.SERIES_PAGE}#{anchors[name]}" if name in anchors else "",
            verdict=OUTCOME_BADGES[next(list_outcomes(series[name]))[0]]
            if name in series
            else WATCH_BADGE
            if name in watching
            else _NO_SERIES,
            counts=count_outcomes(series[name]) if name in series else NOTHING,
            freshness=freshness.get(name),
        )
        for name in sorted(series.keys() | freshness.keys())
    ]
    order = (*(OUTCOME_BADGES[outcome] for outcome in WORST_FIRST), _NO_SERIES, WATCH_BADGE)
    return tuple(sorted(lines, key=lambda line: (_is_fresh(line), order.index(line.verdict))))


def _is_fresh(line: ExperimentLine) -> bool:
    return line.freshness is None or line.freshness.is_fresh
