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
from perf.history.importers.run import File, Hints, Run

_PLAIN = "imported"


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How one format is read; `engine` is what measured: two engines never share a series."""

    name: str
    engine: str
    read: Callable[[File, Hints], tuple[Run, ...]]


FORMATS = {
    one.name: one
    for one in (
        Format(name="pytest-benchmark", engine="pytest-benchmark", read=pytest_benchmark.read),
        Format(name="hdr", engine="hdr", read=hdr.read),
        Format(name="ycsb", engine="ycsb", read=ycsb.read),
        Format(name="cassandra-stress", engine="cassandra-stress", read=cassandra_stress.read),
        Format(name="latte", engine="latte", read=latte.read),
        Format(name="tsbs", engine="tsbs", read=tsbs.read),
        Format(name="csv", engine=_PLAIN, read=csv_table.read),
        Format(name="json", engine=_PLAIN, read=json_rows.read),
    )
}
"""Both plain formats are one engine: a series may go on in the other."""
