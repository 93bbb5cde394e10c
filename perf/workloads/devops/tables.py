"""The tables of the devops workload: names, order and kinds of fields, and their walks, as in TSBS.

Source: Time Series Benchmark Suite, github.com/timescale/tsbs, pkg/data/usecases/devops (host.go and a
file per measurement) and pkg/data/usecases/common/distribution.go. One thing is left out: the tags that
belong to a single measurement (disk: path, fstype; net: interface; …), which no query asks for.

They are in tables.json, which the native engine reads, too.
A field is a whole number wherever TSBS stores an int64 of it; the others are three percentages of mem.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from perf.model.records import Devops

_DATA: Mapping[str, Any] = json.loads(
    files("perf.workloads.devops").joinpath("tables.json").read_text(encoding="utf-8")
)

TAGS: tuple[str, ...] = tuple(_DATA["tags"])
"""What describes a host, in this order in each row; the values are text."""

REGIONS: Mapping[str, str] = dict(_DATA["regions"])
"""The regions, each with the last letters of its datacenters."""
RACKS: int = _DATA["racks"]
SERVICES: int = _DATA["services"]
SERVICE_VERSIONS: int = _DATA["service_versions"]
SYSTEMS: tuple[str, ...] = tuple(_DATA["systems"])
ARCHITECTURES: tuple[str, ...] = tuple(_DATA["architectures"])
TEAMS: tuple[str, ...] = tuple(_DATA["teams"])
ENVIRONMENTS: tuple[str, ...] = tuple(_DATA["environments"])

DISK_BYTES: int = _DATA["disk_bytes"]
INODE_BYTES: int = _DATA["inode_bytes"]
MEMORY_BYTES: tuple[int, ...] = tuple(_DATA["memory_bytes"])
"""What a host may have; each has one of them."""
LONGEST_UP_S: int = _DATA["longest_up_s"]
"""Boot times are below this, as TSBS has them."""


@dataclass(frozen=True, slots=True)
class TableField:
    """A field of a table."""

    name: str
    is_whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """A random walk: each step is normal, and the state stays between `low` and `high`.

    A walk that only `grows` takes the absolute value of each step. `start` is the first state; None is
    drawn uniformly from the range. Where `scales`, deviation and high are shares of the host's memory.
    """

    mean: float
    deviation: float = 1.0
    low: float = -math.inf
    high: float = math.inf
    start: float | None = 0.0
    grows: bool = False
    scales: bool = False


_WALKS = {name: Walk(**walk) for name, walk in _DATA["walks"].items()}

WALKS: Mapping[str, tuple[Walk, ...]] = {
    table["name"]: tuple(_WALKS[name] for count, name in table["walks"] for _ in range(count))
    for table in _DATA["tables"]
}
"""The walks of each table; disk has one (free bytes), mem three (used, cached, buffered bytes)."""

TABLES: Mapping[str, tuple[TableField, ...]] = {
    table["name"]: tuple(
        TableField(name, is_whole=place < len(table["fields"]) - table["fractions"])
        for place, name in enumerate(table["fields"])
    )
    for table in _DATA["tables"]
}
"""The fields of each table, in the order of TSBS; "postgresl" is its spelling."""

VALUES_PER_HOST = sum(map(len, TABLES.values()))
"""How many values a host reports at once, over all tables: 101, which TSBS's documentation rounds."""


def devops_rows(records: Devops) -> int:
    """Count the rows of the devops workload: one per table, host and interval."""
    return len(TABLES) * records.hosts * (records.span_s // records.interval_s)
