"""The tables of the devops workload: names, order and kinds of fields, and their walks, as in TSBS.

Source: Time Series Benchmark Suite, github.com/timescale/tsbs, pkg/data/usecases/devops (host.go and a
file per measurement) and pkg/data/usecases/common/distribution.go. One thing is left out: the tags that
belong to a single measurement (disk: path, fstype; net: interface; …), which no query asks for.

A field is a whole number wherever TSBS stores an int64 of it; the others are three percentages of mem.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from perf.model.records import Devops

TAGS = (
    *("hostname", "region", "datacenter", "rack", "os", "arch"),
    *("team", "service", "service_version", "service_environment"),
)
"""What describes a host, in this order in each row; the values are text."""

REGIONS: Mapping[str, str] = {
    "us-east-1": "abce",
    "us-west-1": "ab",
    "us-west-2": "abc",
    "eu-west-1": "abc",
    "eu-central-1": "ab",
    "ap-southeast-1": "ab",
    "ap-southeast-2": "ab",
    "ap-northeast-1": "ac",
    "sa-east-1": "abc",
}
"""The regions, each with the last letters of its datacenters."""
RACKS, SERVICES, SERVICE_VERSIONS = 100, 20, 2
SYSTEMS = ("Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10")
ARCHITECTURES = ("x64", "x86")
TEAMS = ("SF", "NYC", "LON", "CHI")
ENVIRONMENTS = ("production", "staging", "test")

DISK_BYTES = 1 << 40
INODE_BYTES = 4096
MEMORY_BYTES = (8 << 30, 12 << 30, 16 << 30)
"""What a host may have; each has one of them."""
LONGEST_UP_S = 240
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


def _growing(mean: float) -> Walk:
    return Walk(mean=mean, grows=True)


def _clamped(mean: float, high: float, start: float | None = 0.0) -> Walk:
    return Walk(mean=mean, low=0.0, high=high, start=start)


_SHARE = _clamped(0, 100, None)
_LOW, _HIGH = _growing(5), _growing(50)
_FEW = _clamped(5, 1000)
_FREE = Walk(mean=1)
_CLIENTS = _clamped(50, 10_000)
_REDIS_BYTES = _clamped(50, float(1 << 34), float(1 << 33))
_MEMORY = Walk(mean=0, deviation=1 / 64, low=0.0, high=1.0, start=None, scales=True)

_CPU = (
    *("usage_user", "usage_system", "usage_idle", "usage_nice", "usage_iowait", "usage_irq"),
    *("usage_softirq", "usage_steal", "usage_guest", "usage_guest_nice"),
)
_DISKIO = {
    **dict.fromkeys(("reads", "writes"), _HIGH),
    **dict.fromkeys(("read_bytes", "write_bytes"), _growing(100)),
    **dict.fromkeys(("read_time", "write_time", "io_time"), _LOW),
}
_DISK = ("total", "free", "used", "used_percent", "inodes_total", "inodes_free", "inodes_used")
_KERNEL = ("interrupts", "context_switches", "processes_forked", "disk_pages_in", "disk_pages_out")
_MEM = ("total", "available", "used", "free", "cached", "buffered")
_MEM_PERCENTAGES = ("used_percent", "available_percent", "buffered_percent")
_NET = {
    **dict.fromkeys(("bytes_sent", "bytes_recv", "packets_sent", "packets_recv"), _HIGH),
    **dict.fromkeys(("err_in", "err_out", "drop_in", "drop_out"), _LOW),
}
_NGINX = {
    "accepts": _LOW,
    "active": _clamped(5, 100),
    "handled": _LOW,
    "reading": _clamped(5, 100),
    "requests": _LOW,
    "waiting": _clamped(5, 100),
    "writing": _clamped(5, 100),
}
_POSTGRESQL = {
    **dict.fromkeys(
        (
            *("numbackends", "xact_commit", "xact_rollback", "blks_read", "blks_hit", "tup_returned"),
            *("tup_fetched", "tup_inserted", "tup_updated", "tup_deleted", "conflicts", "temp_files"),
        ),
        _FEW,
    ),
    "temp_bytes": _clamped(1024, float(1 << 30)),
    **dict.fromkeys(("deadlocks", "blk_read_time", "blk_write_time"), _FEW),
}
_REDIS = {
    "total_connections_received": _LOW,
    **dict.fromkeys(("expired_keys", "evicted_keys", "keyspace_hits", "keyspace_misses"), _HIGH),
    **dict.fromkeys(
        (
            "instantaneous_ops_per_sec",
            "instantaneous_input_kbps",
            "instantaneous_output_kbps",
        ),
        _FREE,
    ),
    "connected_clients": _CLIENTS,
    **dict.fromkeys(
        ("used_memory", "used_memory_rss", "used_memory_peak", "used_memory_lua"), _REDIS_BYTES
    ),
    "rdb_changes_since_last_save": _CLIENTS,
    **dict.fromkeys(
        (
            *("sync_full", "sync_partial_ok", "sync_partial_err", "pubsub_channels"),
            *("pubsub_patterns", "latest_fork_usec", "connected_slaves", "master_repl_offset"),
            *("repl_backlog_active", "repl_backlog_size", "repl_backlog_histlen"),
        ),
        _FEW,
    ),
    "mem_fragmentation_ratio": _clamped(5, 100),
    **dict.fromkeys(
        ("used_cpu_sys", "used_cpu_user", "used_cpu_sys_children", "used_cpu_user_children"), _FEW
    ),
}

WALKS: Mapping[str, tuple[Walk, ...]] = {
    "cpu": (_SHARE,) * len(_CPU),
    "diskio": tuple(_DISKIO.values()),
    "disk": (_clamped(50, float(DISK_BYTES), DISK_BYTES / 2),),
    "kernel": (_LOW,) * len(_KERNEL),
    "mem": (_MEMORY,) * 3,
    "net": tuple(_NET.values()),
    "nginx": tuple(_NGINX.values()),
    "postgresl": tuple(_POSTGRESQL.values()),
    "redis": tuple(_REDIS.values()),
}
"""The walks of each table; disk has one (free bytes), mem three (used, cached, buffered bytes)."""

TABLES: Mapping[str, tuple[TableField, ...]] = {
    "cpu": tuple(map(TableField, _CPU)),
    "diskio": tuple(map(TableField, _DISKIO)),
    "disk": tuple(map(TableField, _DISK)),
    "kernel": tuple(map(TableField, ("boot_time", *_KERNEL))),
    "mem": (*map(TableField, _MEM), *(TableField(name, is_whole=False) for name in _MEM_PERCENTAGES)),
    "net": tuple(map(TableField, _NET)),
    "nginx": tuple(map(TableField, _NGINX)),
    "postgresl": tuple(map(TableField, _POSTGRESQL)),
    "redis": tuple(map(TableField, ("uptime_in_seconds", *_REDIS))),
}
"""The fields of each table, in the order of TSBS; "postgresl" is its spelling."""

VALUES_PER_HOST = sum(map(len, TABLES.values()))
"""How many values a host reports at once, over all tables: 101, which TSBS's documentation rounds."""


def devops_rows(records: Devops) -> int:
    """Count the rows of the devops workload: one per table, host and interval."""
    return len(TABLES) * records.hosts * (records.span_s // records.interval_s)
