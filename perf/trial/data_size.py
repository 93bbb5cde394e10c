"""Is what a workload stores more than the servers' memory holds? Pure.

Where it is less, reads are answered from memory, whatever the storage is.
"""

from collections.abc import Iterable

from perf.model.design import Topology, Workload
from perf.model.facts import MEMORY_KB
from perf.model.results import Fact, Reason
from perf.workloads.loading import preload_rows, row_bytes

FITS = "data-fits-into-memory"


def find_fitting_data(
    workload: Workload, topology: Topology, facts: Iterable[Fact], servers: Iterable[str]
) -> tuple[Reason, ...]:
    """State that data which is to exceed memory does not: it is no fault, but decides what is measured.

    `facts` are those of hosts, `servers` the names of the hosts that servers run on. Data is counted as
    the workload counts it, times the copies, over the hosts; what a system adds or compresses is not
    known. A host whose memory is not known is left out.
    """
    names = set(servers)
    if not workload.exceeds_memory:
        return ()
    memory_bytes = [
        int(fact.value) * 1024
        for fact in facts
        if fact.host in names and fact.name == MEMORY_KB and fact.value.isdigit()
    ]
    stored_bytes = preload_rows(workload) * row_bytes(workload) * topology.replication_factor
    each_bytes = stored_bytes / max(len(names), 1)
    if not memory_bytes or each_bytes > max(memory_bytes):
        return ()
    text = (
        f"{workload.name}: {each_bytes / 1e9:.3g} GB of data on each server host fit into its "
        f"{max(memory_bytes) / 1e9:.3g} GB of memory, but this workload is about storage: reads are "
        "answered from memory, and only writes reach the disk"
    )
    return (Reason(kind=FITS, text=text),)
