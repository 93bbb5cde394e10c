"""The queries of the devops workload, and the answers that a system must give.

Types, windows and buckets are those of TSBS's code (cmd/tsbs_generate_queries/uses/devops). Where
its README says otherwise, the code is followed: a single-groupby has buckets of one minute (README:
five), a double-groupby a window of 12 hours (README: 24). The end of a type's name gives metrics,
hosts and hours: single-groupby-5-8-1 asks for the highest value of 5 metrics, over 8 hosts
together, per minute of an hour. A double-groupby asks for the mean of 1, 5 or all 10 metrics, of
each host, per hour.

Choices where TSBS leaves none or is ambiguous: a window begins at any millisecond (TSBS draws
nanoseconds and its systems cut them off) of the data and the second after it; where the data are
shorter than the window, it is as long as they are; where hosts are fewer than asked for, all are.
Buckets begin at full minutes and hours of UTC, so the first and the last of a window are cut. A
double-groupby's answer names the host and is ordered by time and host, which some of TSBS's targets
leave out.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from perf.model.records import ASKED_OF, Answer, Devops, Operation
from perf.workloads.devops.rows import Group, Query
from perf.workloads.devops.tables import TABLES
from perf.workloads.devops.walks import moments, walk_states
from perf.workloads.splitmix import stream, word

RELATIVE_TOLERANCE = 1e-9
"""How far a mean may be off: systems add and divide in orders of their own. A maximum must be exact."""

METRICS = tuple(field.name for field in TABLES["cpu"])
"""What queries are about; those with fewer metrics take the first."""

QUERIES: tuple[Operation, ...] = tuple(one for one in ASKED_OF["devops"] if one is not Operation.LOAD)

_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000
_DOUBLE_HOURS = 12
_WINDOW_STREAM, _HOSTS_STREAM = 32, 64  # and as many after each as there are types


@dataclass(frozen=True, slots=True)
class _Shape:
    metrics: int
    hosts: int
    """0 for all, each by itself."""
    hours: int


def _shape(operation: Operation) -> _Shape:
    kind, _, numbers = operation.value.partition("-groupby-")
    if kind == "double":
        return _Shape(len(METRICS) if numbers == "all" else int(numbers), 0, _DOUBLE_HOURS)
    metrics, hosts, hours = map(int, numbers.split("-"))
    return _Shape(metrics, hosts, hours)


_SHAPES: dict[Operation, _Shape] = {operation: _shape(operation) for operation in QUERIES}


def make_query(records: Devops, seed: int, operation: Operation, number: int) -> Query:
    """Make query number `number` of a type; after `records.queries` they begin anew."""
    shape, place = _SHAPES[operation], QUERIES.index(operation)
    number %= records.queries
    span_ms = moments(records) * records.interval_s * 1000
    window_ms = min(shape.hours * _HOUR_MS, span_ms)
    begins = span_ms + 1000 - window_ms
    begin_ms = records.begin_s * 1000 + word(stream(seed, _WINDOW_STREAM + place), number) % begins
    return Query(
        operation=operation,
        metrics=METRICS[: shape.metrics],
        hosts=_choose_hosts(records, stream(seed, _HOSTS_STREAM + place), number, shape.hosts),
        from_ms=begin_ms,
        until_ms=begin_ms + window_ms,
        bucket_ms=_MINUTE_MS if shape.hosts else _HOUR_MS,
        aggregate="max" if shape.hosts else "mean",
    )


def _choose_hosts(records: Devops, source: int, number: int, wanted: int) -> tuple[str, ...]:
    chosen: dict[int, None] = {}
    place = number << 16  # words of one query; many more than it can need
    while len(chosen) < min(wanted, records.hosts):
        chosen.setdefault(word(source, place) % records.hosts)
        place += 1
    return tuple(f"host_{host}" for host in chosen)


class CpuHistory:
    """All values of the table cpu, from which any answer follows.

    They are whole numbers up to 100, so one takes a byte: the published size, 4000 hosts for 3 days at
    10 s, takes 1.04 GB, and about 25 s to compute. That is the most that verification ever needs.
    """

    def __init__(self, records: Devops, seed: int) -> None:
        """Compute them."""
        self._records = records
        self._values = np.empty((moments(records), records.hosts, len(METRICS)), dtype=np.uint8)
        for first, states in walk_states(records, seed, range(len(METRICS))):
            here = self._values[first : first + len(states)]
            here[...] = states[: len(here)]
            if first + len(states) >= len(self._values):
                break
        names = [f"host_{host}" for host in range(records.hosts)]
        self._by_name = sorted(range(records.hosts), key=names.__getitem__)
        self._names = [names[host] for host in self._by_name]

    def answer(self, query: Query) -> tuple[Group, ...]:
        """Return the answer to a query, as a system that has stored every row must give it."""
        metrics = [METRICS.index(metric) for metric in query.metrics]
        groups: list[Group] = []
        for bucket_ms, values in self._buckets(query):
            if query.hosts:
                hosts = [int(host.removeprefix("host_")) for host in query.hosts]
                best = values[:, hosts][:, :, metrics].max(axis=(0, 1))
                groups.append(Group(bucket_ms, "", tuple(map(float, best))))
            else:
                means = values[:, :, metrics].sum(axis=0, dtype=np.uint32) / len(values)
                rows = means[self._by_name].tolist()
                groups += [
                    Group(bucket_ms, name, tuple(row))
                    for name, row in zip(self._names, rows, strict=True)
                ]
        return tuple(groups)

    def _buckets(self, query: Query) -> list[tuple[int, NDArray[np.uint8]]]:
        begin_ms, step_ms = self._records.begin_s * 1000, self._records.interval_s * 1000
        first, last = (
            min(max(-(-(edge - begin_ms) // step_ms), 0), len(self._values))
            for edge in (query.from_ms, query.until_ms)
        )
        times = begin_ms + step_ms * np.arange(first, last)
        buckets, starts = np.unique(times // query.bucket_ms, return_index=True)
        parts = np.split(self._values[first:last], starts[1:])
        return [
            (int(bucket) * query.bucket_ms, part) for bucket, part in zip(buckets, parts, strict=False)
        ]


@lru_cache(maxsize=1)
def cpu_history(records: Devops, seed: int) -> CpuHistory:
    """Return the history of a data set; the last one is kept."""
    return CpuHistory(records, seed)


def check_answer(query: Query, expected: Sequence[Group], answer: Sequence[Group]) -> Answer:
    """Judge an answer to a query.

    NOT_FOUND: each group that came is right and in order, but some that must be there are not. What
    else differs is WRONG_DATA: a value, a host, a bucket, an order, a group twice. A row that is
    missing or changed changes a mean; a maximum shows it only if it was, or is, the highest there.
    """
    is_same = _SAME[query.aggregate]
    rest = iter(expected)
    for group in answer:
        for known in rest:
            if (known.ts_ms, known.host) == (group.ts_ms, group.host):
                break
        else:
            return Answer.WRONG_DATA
        if len(known.values) != len(group.values):
            return Answer.WRONG_DATA
        if not all(map(is_same, known.values, group.values)):
            return Answer.WRONG_DATA
    return Answer.COMPLETED if len(answer) == len(expected) else Answer.NOT_FOUND


def _is_close(known: float, found: float | None) -> bool:
    # A mean over a lost field is null in some systems: no number is not the same as one.
    return found is not None and math.isclose(known, found, rel_tol=RELATIVE_TOLERANCE)


_SAME: dict[str, Callable[[float, float], bool]] = {
    "max": lambda known, found: known == found,
    "mean": _is_close,
}
