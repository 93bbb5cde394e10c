"""Each experiment in one line: its worst verdict, how many series came to what, how fresh it is."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from analysis.detection.verdict import WORST_FIRST, Outcome
from reports.pages.front.freshness import Freshness
from reports.wording import links
from reports.wording.series_list import ExperimentGroup
from reports.wording.wording import NOTHING, OUTCOME_BADGES, WATCH_BADGE, Badge

OUTCOME_WORDS = {
    Outcome.REGRESSED: "regressed",
    Outcome.INVALID: "could not be judged",
    Outcome.UNDECIDED: "cannot tell",
    Outcome.IMPROVED: "improved",
    Outcome.UNCHANGED: "unchanged",
}
"""As counts are said; of what nobody can tell, it is said as that."""
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
    counts: dict[str, Counter[Badge]] = {}
    for group in groups:
        badges = (OUTCOME_BADGES[one.verdict.outcome] for one in group.series)
        counts.setdefault(group.name, Counter()).update(badges)
    lines = [
        ExperimentLine(
            name=name,
            page=f"{links.SERIES_PAGE}#{anchors[name]}" if name in anchors else "",
            verdict=_find_worst(counts[name])
            if name in counts
            else WATCH_BADGE
            if name in watching
            else _NO_SERIES,
            counts=_say_counts(counts[name]) if name in counts else NOTHING,
            freshness=freshness.get(name),
        )
        for name in sorted(counts.keys() | freshness.keys())
    ]
    order = (*(OUTCOME_BADGES[outcome] for outcome in WORST_FIRST), _NO_SERIES, WATCH_BADGE)
    return tuple(sorted(lines, key=lambda line: (_is_fresh(line), order.index(line.verdict))))


def _is_fresh(line: ExperimentLine) -> bool:
    return line.freshness is None or line.freshness.is_fresh


def _find_worst(counts: Mapping[Badge, int]) -> Badge:
    return next(OUTCOME_BADGES[one] for one in WORST_FIRST if counts[OUTCOME_BADGES[one]])


def _say_counts(counts: Mapping[Badge, int]) -> str:
    return ", ".join(
        f"{counts[OUTCOME_BADGES[outcome]]:,} {OUTCOME_WORDS[outcome]}"
        for outcome in WORST_FIRST
        if counts[OUTCOME_BADGES[outcome]]
    )
