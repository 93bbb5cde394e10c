"""The releases of one night beside each other: a comparison, or a first look where there is none."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from statistics import median

from analysis.comparing.description import HARDLY_ANYTHING, find_excluded
from analysis.comparing.results import NEW, ComparisonResult, MeasureResult
from analysis.detection.effects import relative_change
from analysis.detection.verdict import WORST_FIRST, Outcome, merge
from analysis.judging.judgement import JudgedSeries
from perf.model.results import Purpose
from reports.pages.front.trends import choose_series
from reports.wording import links
from reports.wording.markdown import clean
from reports.wording.measures import change_words, view_measure
from reports.wording.series_list import ExperimentGroup
from reports.wording.wording import (
    NOTHING,
    OUTCOME_BADGES,
    Badge,
    direction_words,
    metric_words,
    phase_words,
    plain_percent,
    quantity,
)

_MOVED = (Outcome.REGRESSED, Outcome.IMPROVED)
_BETTER_IN_PART = Badge(kind="unsure", symbol="?", word="Better in part")
_NO_DIFFERENCE = Badge(kind="unsure", symbol="?", word="No difference shown")
_MOST_SAID = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRow:
    """One measure on both sides; without an outcome it is no verdict.

    `excluded` is the relative change than which the difference is smaller, either way.
    """

    where: str
    what: str
    direction: str
    before: str
    after: str
    change: str
    interval: str = ""
    excluded: float = inf
    outcome: Outcome | None = None

    @property
    def bound(self) -> str:
        """Describe what the difference is smaller than; empty where that would say nothing."""
        return plain_percent(self.excluded) if self.excluded < HARDLY_ANYTHING else ""

    @property
    def badge(self) -> Badge | None:
        """Return the verdict of the measure."""
        return OUTCOME_BADGES[self.outcome] if self.outcome else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SideTable:
    """The measures of one experiment on both sides; `page` is that of the comparison, if it was one."""

    experiment: str
    before: str
    after: str
    rows: tuple[SideRow, ...]
    page: str = ""


def find_release_comparisons(
    results: Iterable[ComparisonResult], since: datetime | None
) -> tuple[ComparisonResult, ...]:
    """Return, for each experiment and two releases, the newest comparison that began since then.

    Those of a release that is new come first.
    """
    newest: dict[tuple[bool, str, str, str, str], ComparisonResult] = {}
    for one in sorted(results, key=lambda each: each.started_at):
        is_of_releases = one.baseline.version != one.candidate.version
        is_new = since is not None and one.started_at >= since
        if one.purpose is Purpose.COMPARISON and is_of_releases and is_new:
            sides = one.baseline.version, one.candidate.version
            newest[not one.candidate.label.endswith(NEW), one.suite, one.experiment, *sides] = one
    return tuple(newest[name] for name in sorted(newest))


def view_comparison(result: ComparisonResult) -> SideTable:
    """Put the trusted measures of a comparison into a table, in the order in which they come."""
    return SideTable(
        experiment=clean(result.experiment),
        before=clean(result.baseline.label),
        after=clean(result.candidate.label),
        rows=tuple(_view_measure(one) for one in result.measures if one.is_trusted),
        page=links.comparison_page(result.id),
    )


def _view_measure(result: MeasureResult) -> SideRow:
    measure, row = result.measure, view_measure(result)
    return SideRow(
        where=_where(clean(measure.operation), clean(measure.phase)),
        what=metric_words(clean(measure.metric), clean(measure.statistic)),
        direction=direction_words(measure.metric),
        before=_with_unit(result.before, measure.metric),
        after=_with_unit(result.after, measure.metric),
        change=row.change,
        interval=row.interval if result.effect else "",
        excluded=find_excluded(result.effect)
        if result.effect and result.outcome not in _MOVED
        else inf,
        outcome=result.outcome,
    )


def choose_side_badge(tables: Sequence[SideTable]) -> Badge | None:
    """Return what the comparisons came to in a word; None where nothing was compared."""
    outcomes = [row.outcome for table in tables for row in table.rows if row.outcome]
    if not outcomes:
        return None
    worst = merge(outcomes)
    if worst is not Outcome.UNDECIDED:
        return OUTCOME_BADGES[worst]
    return _BETTER_IN_PART if Outcome.IMPROVED in outcomes else _NO_DIFFERENCE


def say_sides(tables: Sequence[SideTable]) -> str:
    """Describe in one sentence how the releases differ: what is worse, else better, else how little."""
    rows = [(row.outcome, table, row) for table in tables for row in table.rows if row.outcome]
    if not rows:
        return ""
    found = {outcome for outcome, _, _ in rows}
    reported = next((one for one in _MOVED if one in found), merge(found))
    chosen = [(table, row) for outcome, table, row in rows if outcome is reported]
    before, after = chosen[0][0].before, chosen[0][0].after
    begin = {
        Outcome.REGRESSED: f"{after} is worse than {before}",
        Outcome.IMPROVED: f"{after} is better than {before}",
        Outcome.UNCHANGED: f"{after} is like {before}",
    }.get(reported, f"No difference between {before} and {after} is shown")
    if reported is Outcome.UNDECIDED:
        return f"{begin}: {_say_excluded([row for _, _, row in rows])}."
    said = ", ".join(_say_row(row) for _, row in chosen[:_MOST_SAID])
    more = f", and {len(chosen) - _MOST_SAID} more" if len(chosen) > _MOST_SAID else ""
    rest = Counter(outcome for outcome, _, _ in rows if outcome is not reported)
    others = "".join(f"; {rest[one]} {one}" for one in WORST_FIRST if rest[one])
    return f"{begin}: {said}{more}{others}."


def _say_excluded(rows: Sequence[SideRow]) -> str:
    """Describe for each kind of measure how little it differs, or that this is not known yet."""
    most: dict[str, float] = {}
    for row in rows:
        most[row.what] = max(most.get(row.what, 0.0), row.excluded)
    known = [
        f"{what} differs by less than {plain_percent(bound)}"
        for what, bound in most.items()
        if bound < HARDLY_ANYTHING
    ]
    unknown = [what for what, bound in most.items() if bound >= HARDLY_ANYTHING]
    rest = [f"{', '.join(unknown)}: too early to tell"] if unknown else []
    return "; ".join((*([", ".join(known)] if known else []), *rest))


def _say_row(row: SideRow) -> str:
    how = f"differs by less than {row.bound}" if row.bound else row.change
    return f"{row.what} of {row.where} {how}"


def _where(operation: str, phase: str) -> str:
    return f"{operation} {phase_words(phase)}"


def _with_unit(value: float | None, metric: str) -> str:
    return NOTHING if value is None else quantity(value, metric)


def view_first_look(groups: Sequence[ExperimentGroup], night: str) -> tuple[SideTable, ...]:
    """Put the medians of one night by release into a table for each experiment.

    The first and the last release of a line stand beside each other. That is no verdict: one night
    cannot tell a difference from noise.
    """
    found = (_look(group, night) for group in groups)
    return tuple(one for one in found if one.rows)


def _look(group: ExperimentGroup, night: str) -> SideTable:
    series = choose_series(group.series)
    values = [_read_values(one, night) for one in series]
    releases = list(dict.fromkeys(version for each in values for version in each))
    before, after = (releases[0], releases[-1]) if releases else ("", "")
    return SideTable(
        experiment=group.name,
        before=before if before != after else "",
        after=after,
        rows=tuple(
            _compare(one, each.get(before) if before != after else None, each.get(after))
            for one, each in zip(series, values, strict=True)
            if each
        ),
    )


def _read_values(judged: JudgedSeries, night: str) -> dict[str, float]:
    """Return the median of a night by release, in the order of releases."""
    values: dict[str, list[float]] = {}
    for point in judged.series.points:
        if point.night == night:
            values.setdefault(point.release.version, []).append(point.value)
    return {version: median(own) for version, own in values.items()}


def _compare(judged: JudgedSeries, before: float | None, after: float | None) -> SideRow:
    key = judged.series.key
    change = None if before is None or after is None else relative_change(before, after)
    return SideRow(
        where=_where(key.operation, key.phase),
        what=metric_words(key.metric, key.statistic),
        direction=direction_words(key.metric),
        before=_with_unit(before, key.metric),
        after=_with_unit(after, key.metric),
        change=NOTHING if change is None else change_words(change),
    )
