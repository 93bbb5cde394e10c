"""latte: its JSON report, of 0.28 and others that tell of cycles and requests.

A cycle is one call of a function of the workload script, and may hold several requests. Both are
timed from their actual start, also with `--rate`: service times, in milliseconds. (ScyllaDB's own
latte counts from the intended start since 0.28.2-scylladb, which a report does not tell: say
`--times response_time`.) The percentiles of the report are used; its histograms are of the whole run,
not of intervals, and stay in the report.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Annotated, Any

from annotated_types import Ge
from pydantic import ConfigDict, Field, TypeAdapter

from perf.history.importers.run import (
    Done,
    File,
    ForeignRun,
    flatten,
    sample,
)
from perf.model.metrics import ROW_THROUGHPUT, SERVICE_TIME, THROUGHPUT
from perf.model.results import Sample

_Finite = Annotated[float, Field(allow_inf_nan=False, ge=0)]
_Rank = Annotated[float, Field(allow_inf_nan=False, ge=0, le=100)]
_CONFIG = ConfigDict(extra="ignore")
_CYCLE, _REQUEST = "cycle", "request"
_BY_NATURE_NEW = ("timestamp", "id", "tags")
_COUNTS = (
    "cycle_count",
    "request_count",
    "row_count",
    "error_count",
    "request_retry_count",
    "cpu_util",
)


@dataclass(frozen=True, slots=True)
class _Mean:
    __pydantic_config__ = _CONFIG
    value: _Finite


@dataclass(frozen=True, slots=True)
class _Times:
    __pydantic_config__ = _CONFIG
    mean: _Mean
    percentiles: tuple[_Mean, ...]


@dataclass(frozen=True, slots=True)
class _Result:
    __pydantic_config__ = _CONFIG
    start_time: datetime
    end_time: datetime
    cycle_throughput: _Mean
    req_throughput: _Mean
    row_throughput: _Mean
    cycle_latency: _Times
    cycle_count: Annotated[int, Ge(0)] | None = None
    error_count: Annotated[int, Ge(0)] | None = None
    request_latency: _Times | None = None
    cycle_latency_by_fn: Mapping[str, _Times] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Report:
    __pydantic_config__ = _CONFIG
    conf: Mapping[str, Any]
    percentiles: tuple[_Rank, ...]
    result: _Result


_REPORT = TypeAdapter(_Report)
_RAW = TypeAdapter(dict[str, Any])


def read(file: File) -> tuple[ForeignRun, ...]:
    """Read one report; the release is the server's version, unless the user names one."""
    report = file.validate(_REPORT, "no JSON report of latte")
    result, conf = report.result, report.conf
    distributions = {_CYCLE: result.cycle_latency, **_single(result.cycle_latency_by_fn)}
    if result.request_latency:
        distributions[_REQUEST] = result.request_latency
    if taken := sorted({_CYCLE, _REQUEST} & result.cycle_latency_by_fn.keys()):
        file.refuse_if_wrong(
            f"a function of the workload is called {' and one '.join(taken)}, as the operation over "
            "all functions is; rename it in the script"
        )
    lengths = {len(times.percentiles) for times in distributions.values()}
    if lengths != {len(report.percentiles)}:
        file.refuse_if_wrong(
            f"{len(report.percentiles)} percentiles are announced, but the distributions "
            f"have {', '.join(map(str, sorted(lengths)))}"
        )
    raw = _RAW.validate_json(file.text)["result"]
    return file.run(
        _samples(report, distributions, file.said.times or SERVICE_TIME.name),
        done=_count(result),
        settings=((n, v) for n, v in flatten(conf) if n not in _BY_NATURE_NEW),
        findings=[
            *((name, raw.get(name)) for name in _COUNTS),
            ("id", conf.get("id")),
            ("tags", dict(flatten({"tags": conf.get("tags")})).get("tags")),
        ],
        started_at=_aware(result.start_time),
        finished_at=_aware(result.end_time),
        release=version if isinstance(version := conf.get("cass_version"), str) else None,
        workload=PurePath(str(conf.get("workload", ""))).stem or None,
    )


def _samples(report: _Report, distributions: Mapping[str, _Times], times: str) -> Iterator[Sample]:
    result = report.result
    yield sample(_CYCLE, THROUGHPUT, "mean", result.cycle_throughput.value)
    yield sample(_REQUEST, THROUGHPUT, "mean", result.req_throughput.value)
    yield sample(_CYCLE, ROW_THROUGHPUT, "mean", result.row_throughput.value)
    for operation, distribution in distributions.items():
        yield sample(operation, times, "mean", distribution.mean.value)
        names = _names(report.percentiles)
        for statistic, found in zip(names, distribution.percentiles, strict=True):
            yield sample(operation, times, statistic, found.value)


def _count(result: _Result) -> Iterator[Done]:
    if result.cycle_count is not None:
        # Its cycles are all of them, those that failed as well.
        failed = result.error_count
        yield Done(_CYCLE, max(0, result.cycle_count - (failed or 0)), failed)


def _single(by_function: Mapping[str, _Times]) -> Mapping[str, _Times]:
    """Leave out the only function: its cycles are all cycles."""
    return by_function if len(by_function) > 1 else {}


def _names(percentiles: Sequence[float]) -> Iterator[str]:
    """Name percentiles, which the report holds as 32-bit floats: 99.9000015."""
    ends = {0.0: "min", 100.0: "max"}
    for rank in percentiles:
        yield ends.get(rank) or f"p{round(rank, 5):.12g}"


def _aware(moment: datetime) -> datetime:
    return moment if moment.utcoffset() is not None else moment.replace(tzinfo=UTC)
