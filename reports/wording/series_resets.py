"""Series that begin because their workload was changed: a new content hash is another series. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from analysis.detection.series import Series
from analysis.judging.drift import is_canary
from perf.model.results import SeriesKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """By key, the series of the same name with the content before, and with the one after."""

    before: Mapping[SeriesKey, SeriesKey] = field(default_factory=dict)
    after: Mapping[SeriesKey, SeriesKey] = field(default_factory=dict)


def find_chain(series: Iterable[Series]) -> Chain:
    """Find series that differ in the content of their workload alone, in the order of their begin.

    A series without a point has no begin and takes no part.
    """
    groups: defaultdict[SeriesKey, list[Series]] = defaultdict(list)
    for one in series:
        if one.points:
            name, _ = split_workload(one.key)
            groups[replace(one.key, workload=name)].append(one)
    pairs = [
        (earlier.key, later.key)
        for group in groups.values()
        if len(group) > 1
        for earlier, later in pairwise(sorted(group, key=_begin))
    ]
    return Chain(
        before={later: earlier for earlier, later in pairs},
        after=dict(pairs),
    )


def _begin(series: Series) -> tuple[object, ...]:
    return min(one.started_at for one in series.points.occasions), series.key


def split_workload(key: SeriesKey) -> tuple[str, str]:
    """Return name and content hash of the workload of a series."""
    name, _, content = key.workload.partition("@")
    return name, content


def describe_reset(before: SeriesKey, after: SeriesKey) -> str:
    """State that a workload was changed, from which content to which, and whether values compare."""
    (name, old), (_, new) = split_workload(before), split_workload(after)
    if is_canary(after):
        return (
            f"workload {name} was changed (hash {old} → {new}), which a canary does not run: "
            "its values compare."
        )
    return f"workload {name} was changed (hash {old} → {new}), so values do not compare."
