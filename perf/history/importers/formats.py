"""The formats that can be imported, by the name that the command line knows."""

from collections.abc import Callable
from dataclasses import dataclass

from perf.history.importers import (
    cassandra_stress,
    csv_table,
    hdr,
    json_rows,
    latte,
    pytest_benchmark,
    tsbs,
    ycsb,
)
from perf.history.importers.run import File, ForeignRun, ImportHints

_PLAIN = "imported"
_MIB = 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How one format is read; `engine` is what measured: two engines never share a series.

    Of a file, no more than `most_bytes` are read: reading takes up to a hundred times as much memory.
    """

    name: str
    engine: str
    read: Callable[[File, ImportHints], tuple[ForeignRun, ...]]
    most_bytes: int = 16 * _MIB


FORMATS = {
    one.name: one
    for one in (
        Format(name="pytest-benchmark", engine="pytest-benchmark", read=pytest_benchmark.read),
        Format(name="hdr", engine="hdr", read=hdr.read, most_bytes=64 * _MIB),
        Format(name="ycsb", engine="ycsb", read=ycsb.read),
        Format(name="cassandra-stress", engine="cassandra-stress", read=cassandra_stress.read),
        Format(name="latte", engine="latte", read=latte.read),
        Format(name="tsbs", engine="tsbs", read=tsbs.read),
        Format(name="csv", engine=_PLAIN, read=csv_table.read, most_bytes=32 * _MIB),
        Format(name="json", engine=_PLAIN, read=json_rows.read, most_bytes=32 * _MIB),
    )
}
"""Both plain formats are one engine: a series may go on in the other."""
