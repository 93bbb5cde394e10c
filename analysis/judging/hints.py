"""Hints: costs that moved by less than throughput can show. Pure; no verdict rests on them.

One trial a night of each release has a profiler attached, and keeps the CPU time per operation of each
method and package (`perf.trial.profiling`). A change that is lost in the noise of throughput is many
times the noise of its own method (FBDetect, SOSP 2024). As there, what is judged is a method's share
of all CPU time, so that a slower host moves nothing, and cost that only moved from one method to
another is no hint. Steady diagnostics of servers are judged beside it, where a suite says so.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from analysis.detection.detection import ChangePoint, ChangeState, Detector, find_changes
from analysis.detection.long_series import for_length
from analysis.detection.series import Points, Series, build_series
from analysis.detection.verdict import Outcome
from analysis.judging.findings import FALSE_SHARE, SeriesFinding, adjust
from perf.model.columns import Columns, Observations, ObservedSeries, OccasionKind
from perf.model.metrics import METHOD_CPU, PACKAGE_CPU
from perf.model.results import SeriesKey, TrialStatus
from perf.model.stacks import UNSEEN, package_of

_Values: TypeAlias = NDArray[np.floating]
_Spread: TypeAlias = Callable[
    [Callable[[Series], SeriesFinding], Sequence[Series]], Iterable[SeriesFinding]
]
_CODE = (METHOD_CPU.name, PACKAGE_CPU.name)
_LEAST_SHARE = 0.3
"""Percent of all CPU time: code that spent less, first and last, is not asked."""
_NEWEST = 3
"""Trials that say what it spends now."""
_LEAST_GROWTH = 0.2
"""Percent of all CPU time: nobody acts on less."""
_LEAST_BEFORE = 12
_HALF = 0.5
"""Of a growth: what made up for so much of it elsewhere made it no growth."""
_SURE = 3.0
"""Standard errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """A cost that grew and stayed so: levels before and after, in the unit of its metric.

    `change` is in the values that were judged: of code, in percent of all CPU time. `asked` series were
    judged together.
    """

    change: ChangePoint
    before: float
    after: float
    asked: int

    @property
    def key(self) -> SeriesKey:
        """Return what grew; of code, the statistic is its name."""
        return self.change.series.key

    @property
    def is_code(self) -> bool:
        """Return whether it is a method or a package."""
        return self.key.metric in _CODE

    @property
    def is_method(self) -> bool:
        """Return whether it is a method."""
        return self.key.metric == METHOD_CPU.name


@dataclass(frozen=True, kw_only=True)
class _Table:
    """What the trials with a profiler of one phase spent, in order: µs per operation by code."""

    key: SeriesKey
    columns: Columns
    methods: Mapping[str, _Values]
    packages: Mapping[str, _Values]

    @cached_property
    def all(self) -> _Values:
        """Return what each trial spent in all."""
        return np.asarray(np.sum([*self.packages.values()], axis=0), dtype=np.float64)

    def code(self, key: SeriesKey) -> _Values:
        """Return what a method or package spent."""
        return (self.methods if key.metric == METHOD_CPU.name else self.packages)[key.statistic]

    def series(self) -> Iterator[Series]:
        """Yield the shares of all CPU time of what is worth asking, in percent."""
        for metric, costs in ((METHOD_CPU, self.methods), (PACKAGE_CPU, self.packages)):
            for code, cost in costs.items():
                share = 100 * cost / self.all
                ends = share[: len(share) // 2].mean(), share[-_NEWEST:].mean()
                is_double = metric is PACKAGE_CPU and code in self.methods
                if is_double or code in UNSEEN or max(ends) < _LEAST_SHARE:
                    continue
                nothing = (() for _ in share)
                columns = Columns.of(self.columns.occasions, self.columns.places, share, nothing)
                key = replace(self.key, metric=metric.name, statistic=code)
                yield Series(key=key, points=Points(columns))

    def has_grown(self, change: ChangePoint) -> bool:
        """Return whether code costs more in µs, too, and nothing else lost as much at that place.

        Else it only looks larger beside something that became cheaper, was renamed, or took over what
        another method did. What the others spent is taken as a share of all but this one, so that its
        growth does not make them smaller.
        """
        key, cost = change.series.key, self.code(change.series.key)
        before, after = _sides(change)
        grown = float(cost[after].mean() - cost[before].mean())
        if 100 * grown < _LEAST_GROWTH * float(self.all[after].mean()):
            return False
        rest = self.all - cost
        package = package_of(key.statistic) if key.metric == METHOD_CPU.name else key.statistic
        others = [other for name, other in self.packages.items() if name != package]
        others += (
            other
            for name, other in self.methods.items()
            if name != key.statistic and package_of(name) != key.statistic
        )
        if key.metric == METHOD_CPU.name:
            others.append(self.packages[package] - cost)
        usual = float(np.mean(rest))
        shares = (np.divide(other, rest, out=np.zeros(len(rest)), where=rest > 0) for other in others)
        scaled = [share * usual for share in shares]
        return not any(_has_lost(one, before, after, _HALF * grown) for one in (*scaled, rest))


def _has_lost(cost: _Values, before: slice, after: slice, least: float) -> bool:
    """Return whether a cost surely fell by so much."""
    old, new = cost[before], cost[after]
    fallen = float(old.mean() - new.mean())
    error = math.sqrt(float(old.var(ddof=1)) / len(old) + float(new.var(ddof=1)) / len(new))
    return fallen > 0 and fallen - _SURE * error >= least


def find_hints(
    profiled: Observations,
    diagnostics: Observations,
    minimum_points: int,
    detector: Detector,
    spread: _Spread = map,
) -> tuple[Hint, ...]:
    """Return what grew in trials with a profiler, and of the diagnostics; code first, the most first.

    The newest confirmed change of each series counts, if it survives the test of Benjamini and Hochberg
    over all that are asked, and if nothing else lost as much at the same place.
    """
    asked: list[tuple[Series, _Table | None]] = [
        (series, table) for table in _tabulate(profiled, minimum_points) for series in table.series()
    ]
    costs = build_series(diagnostics)
    asked += ((series, None) for series in costs if len(series.points) >= minimum_points)
    findings = spread(partial(_search, detector=detector), [series for series, _ in asked])
    newest = [
        next((one for one in reversed(found.changes) if one.state is ChangeState.CONFIRMED), None)
        for found in findings
    ]
    adjusted = adjust([one.p_value if one else 1.0 for one in newest])
    hints = [
        _make(change, table, len(asked))
        for change, p_value, (_, table) in zip(newest, adjusted, asked, strict=True)
        if change and change.outcome is Outcome.REGRESSED and p_value <= FALSE_SHARE
        if table is None or table.has_grown(change)
    ]
    named = {
        replace(one.key, metric=PACKAGE_CPU.name, statistic=package_of(one.key.statistic))
        for one in hints
        if one.is_method
    }
    kept = (one for one in hints if one.key not in named)
    return tuple(sorted(kept, key=lambda one: (not one.is_code, one.before - one.after, one.key)))


def _search(series: Series, detector: Detector) -> SeriesFinding:
    reading = for_length(detector, len(series.points)).read(series.points.values)
    changes = find_changes(series, reading, detector.name)
    return SeriesFinding(series=series, changes=changes, reading=reading)


def _make(change: ChangePoint, table: _Table | None, asked: int) -> Hint:
    if table is None:
        return Hint(change=change, before=change.before, after=change.after, asked=asked)
    cost, sides = table.code(change.series.key), _sides(change)
    before, after = (float(cost[side].mean()) for side in sides)
    return Hint(change=change, before=before, after=after, asked=asked)


def _sides(change: ChangePoint) -> tuple[slice, slice]:
    """Return the points of both levels; of the one before, no more than there are of the one after.

    Or twelve at least: what was long ago says little of what something else cost then.
    """
    many = max(change.points_after, _LEAST_BEFORE)
    end = change.index + change.points_after
    return slice(max(0, change.index - many), change.index), slice(change.index, end)


def _tabulate(profiled: Observations, minimum_points: int) -> Iterator[_Table]:
    """Yield the completed trials of each phase that spent anything, in order.

    Code that is missing in one cost nothing there.
    """
    phases: defaultdict[SeriesKey, list[ObservedSeries]] = defaultdict(list)
    for one in profiled.series:
        if one.key.metric in _CODE:
            phases[replace(one.key, metric="", statistic="")].append(one.where(_is_completed))
    for key, group in phases.items():
        occasions = group[0].columns.occasions
        places = sorted(
            {place for one in group for place in one.columns.places}, key=occasions.ranks.__getitem__
        )
        position = {place: number for number, place in enumerate(places)}
        costs: dict[str, dict[str, _Values]] = {metric: {} for metric in _CODE}
        for one in group:
            cost = np.zeros(len(places))
            cost[[position[place] for place in one.columns.places]] = one.columns.values
            costs[one.key.metric][one.key.statistic] = cost
        spent = np.flatnonzero(np.sum([*costs[PACKAGE_CPU.name].values()], axis=0))
        if len(spent) < minimum_points:
            continue
        kept = [places[number] for number in spent]
        methods, packages = (
            {code: cost[spent] for code, cost in costs[metric].items()} for metric in _CODE
        )
        yield _Table(
            key=key,
            columns=Columns.of(occasions, kept, (0.0 for _ in kept), (() for _ in kept)),
            methods=methods,
            packages=packages,
        )


def _is_completed(occasion: OccasionKind) -> bool:
    return occasion.status is TrialStatus.COMPLETED
