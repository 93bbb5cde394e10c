"""The formats that can be imported, by the name that the command line knows."""

from collections.abc import Callable
from dataclasses import dataclass

from perf.history.importers import (
    cassandra_stress,
    hdr,
    latte,
    plain,
    pytest_benchmark,
    tsbs,
    ycsb,
)
from perf.history.importers.run import File, ForeignRun

_MIB = 1024**2


@dataclass(frozen=True, slots=True)
class Format:
    """How one format is read; `engine` is what measured: two engines never share a series.

    `read` gives the runs of a file, or raises `Unreadable` with all that is wrong. Of a file, no more
    than `most_bytes` are read: reading takes up to a hundred times as much memory.
    """

    engine: str
    read: Callable[[File], tuple[ForeignRun, ...]]
    most_bytes: int = 16 * _MIB


FORMATS = {
    "pytest-benchmark": Format("pytest-benchmark", pytest_benchmark.read),
    "hdr": Format("hdr", hdr.read, 64 * _MIB),
    "ycsb": Format("ycsb", ycsb.read),
    "cassandra-stress": Format("cassandra-stress", cassandra_stress.read),
    "latte": Format("latte", latte.read),
    "tsbs": Format("tsbs", tsbs.read),
    "csv": Format("imported", plain.read_csv, 32 * _MIB),
    "json": Format("imported", plain.read_json, 32 * _MIB),
}
"""Both plain formats are one engine: a series may go on in the other."""
