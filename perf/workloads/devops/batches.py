"""The devops workload, after TSBS: hosts report nine measurements at equal intervals.

A row is a function of (records, seed, its number). Rows are numbered in the order in which TSBS
writes them: moment by moment; in a moment table by table; in a table host by host. A batch is
`batch_rows` rows in that order, of whatever tables and hosts they are, and the last one what is left;
so batches share no row, and those of several engines none either.

"TSBS-like" is what may be claimed of the data, see `devops_walks`; never that it is TSBS's own.
"""

import threading
from collections import deque
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from perf.model.records import Devops
from perf.workloads.devops.rows import DevopsRow
from perf.workloads.devops.tables import (
    ARCHITECTURES,
    DISK_BYTES,
    ENVIRONMENTS,
    INODE_BYTES,
    LONGEST_UP_S,
    RACKS,
    REGIONS,
    SERVICE_VERSIONS,
    SERVICES,
    SYSTEMS,
    TABLES,
    TAGS,
    TEAMS,
    WALKS,
    devops_rows,
)
from perf.workloads.devops.walks import ALL_WALKS, memory_bytes, walk_states
from perf.workloads.splitmix import stream, word

__all__ = ["TABLES", "TAGS", "Batches", "host_tags"]

_TAG_STREAM, _BOOT_STREAM = 14, 15
# Moments whose states are kept, at least: batches are made nearly in order, by several threads. At 4000
# hosts a moment has 2.8 MB.
_KEPT_MOMENTS = 32
_KEPT_BLOCKS = 3
_Values: TypeAlias = list[tuple[float, ...]]
_States: TypeAlias = NDArray[np.float64]


def host_tags(records: Devops, seed: int) -> tuple[tuple[str, ...], ...]:
    """Return the tags of each host, in the order of `TAGS`."""
    source = stream(seed, _TAG_STREAM)
    places = tuple(REGIONS.items())

    def describe(host: int) -> tuple[str, ...]:
        drawn = [word(source, host * len(TAGS) + tag) for tag in range(len(TAGS))]
        region, centers = places[drawn[1] % len(places)]
        return (
            f"host_{host}",
            region,
            region + centers[drawn[2] % len(centers)],
            str(drawn[3] % RACKS),
            SYSTEMS[drawn[4] % len(SYSTEMS)],
            ARCHITECTURES[drawn[5] % len(ARCHITECTURES)],
            TEAMS[drawn[6] % len(TEAMS)],
            str(drawn[7] % SERVICES),
            str(drawn[8] % SERVICE_VERSIONS),
            ENVIRONMENTS[drawn[9] % len(ENVIRONMENTS)],
        )

    return tuple(map(describe, range(records.hosts)))


class Batches:
    """The batches of a data set. Made for being asked nearly in order, by several threads at once."""

    def __init__(self, records: Devops, seed: int, batch_rows: int) -> None:
        """Compute what stays the same over time: tags, memory, boot times."""
        self._records, self._seed, self._batch_rows = records, seed, batch_rows
        self._tags = host_tags(records, seed)
        self._memory = memory_bytes(records, seed)
        boot = stream(seed, _BOOT_STREAM)
        times = [word(boot, host) % LONGEST_UP_S for host in range(records.hosts)]
        self._boot_times = np.array(times, dtype=np.int64)
        self._lock = threading.Lock()
        self._blocks: deque[tuple[int, _States]] = deque()
        self._walk: Iterator[tuple[int, _States]] = iter(())

    def batch(self, number: int) -> tuple[DevopsRow, ...]:
        """Compute batch number `number`, from 0; beyond the last there is an empty one.

        One that lies far before others that were asked for is computed from the begin of the data on.
        """
        hosts, tables = self._records.hosts, tuple(TABLES)
        at = number * self._batch_rows
        end = min(at + self._batch_rows, devops_rows(self._records))
        rows: list[DevopsRow] = []
        while at < end:
            rest, host = divmod(at, hosts)
            moment, place = divmod(rest, len(tables))
            until = min(hosts, host + end - at)
            rows += self._rows(moment, tables[place], host, until)
            at += until - host
        return tuple(rows)

    def _rows(self, moment: int, table: str, host: int, until: int) -> Iterator[DevopsRow]:
        ts_ms = (self._records.begin_s + moment * self._records.interval_s) * 1000
        values = self._values(moment, table, slice(host, until))
        for tags, one in zip(self._tags[host:until], values, strict=True):
            yield DevopsRow(table, tags, ts_ms, one)

    def _values(self, moment: int, table: str, hosts: slice) -> _Values:
        states: _States = self._states(moment)[hosts, _COLUMNS[table]]
        if table == "disk":
            return _disk_values(states)
        if table == "mem":
            return _mem_values(states, self._memory[hosts])
        whole = states.astype(np.int64)  # towards zero, as TSBS's conversion does
        if table == "kernel":
            whole = np.column_stack((self._boot_times[hosts], whole))
        elif table == "redis":
            up_s = np.full(len(whole), moment * self._records.interval_s)
            whole = np.column_stack((up_s, whole))
        return _tuples(whole)

    def _states(self, moment: int) -> _States:
        with self._lock:
            if not self._blocks or moment < self._blocks[0][0]:
                self._blocks.clear()
                self._walk = walk_states(self._records, self._seed, range(len(ALL_WALKS)))
                self._advance()
            while moment >= self._blocks[-1][0] + len(self._blocks[-1][1]):
                self._advance()
            for first, states in reversed(self._blocks):
                if moment >= first:
                    found: _States = states[moment - first]
                    return found
        raise AssertionError("blocks follow each other without a gap")

    def _advance(self) -> None:
        first, states = next(self._walk)
        self._blocks.append((first, states))
        if len(self._blocks) > max(_KEPT_BLOCKS, _KEPT_MOMENTS // len(states)):
            self._blocks.popleft()


def _place_columns() -> dict[str, slice]:
    columns, begin = {}, 0
    for table, walks in WALKS.items():
        columns[table] = slice(begin, begin + len(walks))
        begin += len(walks)
    return columns


_COLUMNS = _place_columns()


def _disk_values(states: _States) -> _Values:
    free = states[:, 0].astype(np.int64)
    used = DISK_BYTES - free
    percent = (100.0 * (used / DISK_BYTES)).astype(np.int64)
    inodes, inodes_free = DISK_BYTES // INODE_BYTES, free // INODE_BYTES
    total, all_inodes = np.full_like(free, DISK_BYTES), np.full_like(free, inodes)
    columns = (total, free, used, percent, all_inodes, inodes_free, inodes - inodes_free)
    return _tuples(np.column_stack(columns))


def _mem_values(states: _States, memory: NDArray[np.int64]) -> _Values:
    used, cached, buffered = states.astype(np.int64).T
    available = memory - used
    whole = _tuples(np.column_stack((memory, available, used, available, cached, buffered)))
    shares = tuple(100.0 * (part / memory) for part in (used, available, buffered))
    percentages = _tuples(np.column_stack(shares))
    return [(*left, *right) for left, right in zip(whole, percentages, strict=True)]


def _tuples(rows: NDArray[Any]) -> _Values:
    listed: Any = rows.tolist()
    return [tuple(row) for row in listed]
