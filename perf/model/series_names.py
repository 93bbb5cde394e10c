"""How a series is named for people: on the terminal as on the pages."""

from perf.model.metrics import CANARY_PHASES, DIAGNOSTICS, METRICS
from perf.model.records import Operation
from perf.model.results import SeriesKey

_OPERATIONS = frozenset(one.value for one in Operation)
_PHASES = {
    "saturation": "at saturation",
    "steady": "at steady load",
    CANARY_PHASES[0]: "before the trial",
    CANARY_PHASES[1]: "after the trial",
}
_KNOWN_METRICS = {**METRICS, **DIAGNOSTICS}
_METRIC_WORDS = {
    "canary_cpu": "CPU canary",
    "canary_memory": "memory canary",
    "canary_fsync": "fsync canary",
    "canary_loopback": "loopback canary",
    "client_cpu": "client CPU",
    "gc_pause": "GC pause",
    "server_cpu": "server CPU",
    "unwritten": "unwritten changes",
    "warm_up": "warm-up",
    "time_spent": "time spent",
}
# A mean of times hides what a percentile shows, so it is always called one; elsewhere it is the figure.
_DISTRIBUTIONS = frozenset({"response_time", "service_time", "send_lateness"})
_PLAIN_STATISTICS = frozenset({"mean", "last", "estimate"})
_BOUNDS = {"lower": "lower bound of", "upper": "upper bound of"}


def phase_words(phase: str) -> str:
    """Describe in which phase a value was measured."""
    operation, _, kind = phase.rpartition("-")
    # What stands beside it names the operation already.
    known = kind if operation in _OPERATIONS else phase
    return _PHASES.get(known, f"in phase {phase}")


def metric_name(metric: str) -> str:
    """Name a metric in words; one that this version does not know keeps its name."""
    known = metric in _KNOWN_METRICS
    return _METRIC_WORDS.get(metric, metric.replace("_", " ") if known else metric)


def metric_words(metric: str, statistic: str) -> str:
    """Name a metric with its statistic: p99 response time, throughput."""
    name, known = metric_name(metric), metric in _KNOWN_METRICS
    if known and metric not in _DISTRIBUTIONS and statistic in _PLAIN_STATISTICS:
        return name
    return f"{_BOUNDS.get(statistic, statistic)} {name}"


def series_words(key: SeriesKey) -> str:
    """Name a series inside its experiment, for example: p99 response time of write at steady load."""
    what = metric_words(key.metric, key.statistic)
    if key.phase not in CANARY_PHASES:  # there the metric says the operation
        what = f"{what} of {key.operation}"
    where = f", {key.host}" if key.host else ""
    return f"{what} {phase_words(key.phase)}{where}"
