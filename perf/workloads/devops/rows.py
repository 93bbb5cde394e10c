"""The plain values that the devops workload exchanges with a session: rows, queries, groups."""

from dataclasses import dataclass
from typing import Literal

from perf.model.records import Operation


@dataclass(frozen=True, slots=True)
class DevopsRow:
    """One row of one table: what a host measured at a moment.

    `tags` are the host's tags in the order of `perf.workloads.devops.batches.TAGS`, its name first;
    `values` those of the table's fields, in the order of `perf.workloads.devops.batches.TABLES`; whole
    numbers stay so.
    """

    table: str
    tags: tuple[str, ...]
    ts_ms: int
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A question about the table cpu: an aggregate of some metrics per bucket of time, and maybe host.

    Rows of [from_ms, until_ms) count. A single-groupby is over `hosts` together; a double-groupby has
    no `hosts`, is about all of them, and groups by host as well.
    """

    operation: Operation
    metrics: tuple[str, ...]
    hosts: tuple[str, ...]
    from_ms: int
    until_ms: int
    bucket_ms: int
    aggregate: Literal["max", "mean"]


@dataclass(frozen=True, slots=True)
class Group:
    """One group of an answer: bucket (its begin), host (empty where not grouped by it), aggregates."""

    ts_ms: int
    host: str
    values: tuple[float, ...]
