"""The quantities that Knickpoint measures, each with its unit and the direction that is good news."""

from dataclasses import dataclass
from enum import StrEnum

LARGEST = 1e100
"""Of any value: beyond it, squares and their sums are no finite numbers any more."""


class Better(StrEnum):
    """Which direction of a metric is good news."""

    HIGHER = "higher"
    LOWER = "lower"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A quantity with its unit and the direction that is good news."""

    name: str
    unit: str
    better: Better
    description: str
    derived_from: str = ""
    """The metric of which this one is a multiple, by a factor that is known and not measured."""


THROUGHPUT = Metric(
    name="throughput",
    unit="ops/s",
    better=Better.HIGHER,
    description="completed operations per second over the measured window",
)
RESPONSE_TIME = Metric(
    name="response_time",
    unit="ms",
    better=Better.LOWER,
    description="from the intended start of an operation to its completion; includes waiting",
)
SERVICE_TIME = Metric(
    name="service_time",
    unit="ms",
    better=Better.LOWER,
    description="from the actual send of an operation to its completion",
)
HIGHEST_LOAD = Metric(
    name="highest_load",
    unit="ops/s",
    better=Better.HIGHER,
    description="the highest offered load whose p99 of response time met the objective of a search",
)
OPERATIONS_PER_DOLLAR = Metric(
    name="operations_per_dollar",
    unit="ops/$",
    better=Better.HIGHER,
    description="operations completed at saturation per dollar that the server hosts cost meanwhile",
    derived_from=THROUGHPUT.name,
)
DURATION = Metric(
    name="duration",
    unit="ms",
    better=Better.LOWER,
    description="how long a piece of work took, as another program measured it",
)
SCORE = Metric(
    name="score",
    unit="",
    better=Better.HIGHER,
    description="what another program measured in units of its own; more is better",
)
COST = Metric(
    name="cost",
    unit="",
    better=Better.LOWER,
    description="what another program measured in units of its own; less is better",
)
METRICS = {
    metric.name: metric
    for metric in (
        *(THROUGHPUT, RESPONSE_TIME, SERVICE_TIME, HIGHEST_LOAD, OPERATIONS_PER_DOLLAR),
        *(DURATION, SCORE, COST),
    )
}
"""What a system is judged by. The last three come with imported results only."""

SEND_LATENESS = Metric(
    name="send_lateness",
    unit="ms",
    better=Better.LOWER,
    description=(
        "from the moment when an operation could be sent (its intended start, or later if all of the "
        "client's slots were taken) to its actual send; the client's own delay"
    ),
)
CLIENT_CPU = Metric(
    name="client_cpu",
    unit="µs/op",
    better=Better.LOWER,
    description="CPU time of the engine processes per completed operation",
)
SERVER_CPU = Metric(
    name="server_cpu",
    unit="µs/op",
    better=Better.LOWER,
    description="CPU time of the server processes per completed operation",
)
WRITE_AMPLIFICATION = Metric(
    name="write_amplification",
    unit="bytes/byte",
    better=Better.LOWER,
    description="bytes that the servers wrote to storage per byte of payload written by clients",
)
GC_PAUSE = Metric(
    name="gc_pause",
    unit="ms/s",
    better=Better.LOWER,
    description="time in which a server's garbage collector held everything up, per second",
)
COMPACTION_DEBT = Metric(
    name="compaction_debt",
    unit="MB",
    better=Better.LOWER,
    description="bytes that compaction under way had still to work through at the end of the window",
)
PENDING_COMPACTIONS = Metric(
    name="pending_compactions",
    unit="tasks",
    better=Better.LOWER,
    description="compactions waiting to run at the end of the window",
)
UNWRITTEN = Metric(
    name="unwritten",
    unit="MB",
    better=Better.LOWER,
    description="changes that servers had yet to write to their data files at the end of the window",
)
STORAGE_READ = Metric(
    name="storage_read",
    unit="bytes/op",
    better=Better.LOWER,
    description="bytes that the servers fetched from storage per completed operation",
)
STORAGE_WRITTEN = Metric(
    name="storage_written",
    unit="bytes/op",
    better=Better.LOWER,
    description="bytes that the servers wrote to storage per completed operation",
)
NETWORK_SENT = Metric(
    name="network_sent",
    unit="bytes/op",
    better=Better.LOWER,
    description="bytes that the server hosts sent per completed operation",
)
CANARY_CPU = Metric(
    name="canary_cpu",
    unit="ms",
    better=Better.LOWER,
    description="a fixed piece of computing on one core",
)
CANARY_MEMORY = Metric(
    name="canary_memory",
    unit="MB/s",
    better=Better.HIGHER,
    description="copying a fixed block of memory that is larger than the caches",
)
CANARY_FSYNC = Metric(
    name="canary_fsync",
    unit="ms",
    better=Better.LOWER,
    description="writing 4 KiB and waiting until it is on the disk, in the servers' directory",
)
CANARY_LOOPBACK = Metric(
    name="canary_loopback",
    unit="µs",
    better=Better.LOWER,
    description="one byte to another process on the same host and back",
)
ROW_THROUGHPUT = Metric(
    name="row_throughput",
    unit="rows/s",
    better=Better.HIGHER,
    description="rows of completed operations per second, where an operation is a batch of rows",
)
RESPONSE_TIME_DRIFT = Metric(
    name="response_time_drift",
    unit="%",
    better=Better.LOWER,
    description=(
        "by how much the p99 of response time changed from the begin to the end of an iteration of a "
        "minute or more"
    ),
)
METRIC_THROUGHPUT = Metric(
    name="metric_throughput",
    unit="metrics/s",
    better=Better.HIGHER,
    description="values of completed loads per second, of which a row of the devops workload has many",
)
TIME_SPENT = Metric(
    name="time_spent",
    unit="s",
    better=Better.LOWER,
    description="how long a part of the trial took, from checking its hosts to wiping them",
)
METHOD_CPU = Metric(
    name="method_cpu",
    unit="µs/op",
    better=Better.LOWER,
    description="CPU time of a method, without what it calls of the database's code, per operation",
)
PACKAGE_CPU = Metric(
    name="package_cpu",
    unit="µs/op",
    better=Better.LOWER,
    description="CPU time of all methods of a package together, per operation",
)
"""Both of the trials with a profiler, which cost more; their statistic is the name of the code."""
WARM_UP = Metric(
    name="warm_up",
    unit="s",
    better=Better.LOWER,
    description="how long the load ran until it was steady by the testbed's rule, or to its cap",
)
DIAGNOSTICS = {
    metric.name: metric
    for metric in (
        *(
            ROW_THROUGHPUT,
            METRIC_THROUGHPUT,
            RESPONSE_TIME_DRIFT,
            WARM_UP,
            SEND_LATENESS,
            CLIENT_CPU,
            SERVER_CPU,
        ),
        *(WRITE_AMPLIFICATION, GC_PAUSE, COMPACTION_DEBT, PENDING_COMPACTIONS, UNWRITTEN),
        *(STORAGE_READ, STORAGE_WRITTEN, NETWORK_SENT),
        *(CANARY_CPU, CANARY_MEMORY, CANARY_FSYNC, CANARY_LOOPBACK),
        *(METHOD_CPU, PACKAGE_CPU, TIME_SPENT),
    )
}
"""What explains a result or casts doubt on it. Kept as series; no verdict rests on them."""

SERVER_DIAGNOSTICS = frozenset(
    metric.name
    for metric in (
        *(SERVER_CPU, GC_PAUSE, STORAGE_READ, STORAGE_WRITTEN, NETWORK_SENT),
        *(COMPACTION_DEBT, PENDING_COMPACTIONS, UNWRITTEN),
    )
)
"""Those of what servers did, each of which says something of its own."""

PRICE_PER_HOUR = "price_per_hour_usd"
"""The fact that says what the hosts of a trial's servers cost in an hour, in US dollars."""
PRICES_FROM = "prices_from"
"""The fact that says on which day, and by what source, that was so."""


def origin(metric: str) -> str:
    """Name the metric from which one is derived; itself if it was measured, or is not known."""
    known = METRICS.get(metric)
    return known.derived_from if known and known.derived_from else metric


CANARY_PHASES = ("canary-before", "canary-after")
"""The phases under which the samples of canaries are kept; their operation is "canary"."""
