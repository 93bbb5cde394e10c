"""pytest-benchmark: the JSON of `--benchmark-json` and of its storage (.benchmarks/), 3.1 to 5.3.

Each benchmark is an operation, by its full name. Its times are durations of one call; the tool gives
seconds. Single rounds (`--benchmark-save-data`) are not repetitions of a run and are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from perf.history.importers.run import (
    PHASE,
    File,
    ForeignRun,
    ImportHints,
    Unreadable,
    digest,
    explain,
    facts,
    flatten,
)
from perf.model.metrics import DURATION
from perf.model.results import Sample

_Seconds = Annotated[float, Field(allow_inf_nan=False, ge=0)]
_CONFIG = ConfigDict(extra="ignore")
_MS_PER_S = 1000
_STATISTICS = {"min": "min", "median": "p50", "mean": "mean"}
_NO_COMMIT = "unversioned"
_DIGITS = 12
_OF_THE_COMMIT = ("id", "time", "author_time")
"""Differ by nature from run to run, so that they explain nothing."""


@dataclass(frozen=True, slots=True)
class _Statistics:
    __pydantic_config__ = _CONFIG
    min: _Seconds
    mean: _Seconds
    median: _Seconds
    rounds: int


@dataclass(frozen=True, slots=True)
class _Benchmark:
    __pydantic_config__ = _CONFIG
    name: str
    stats: _Statistics
    fullname: str | None = None


@dataclass(frozen=True, slots=True)
class _Document:
    __pydantic_config__ = _CONFIG
    benchmarks: tuple[_Benchmark, ...]
    datetime: datetime
    version: str = ""
    machine_info: Mapping[str, Any] = field(default_factory=dict)
    commit_info: Mapping[str, Any] = field(default_factory=dict)


_DOCUMENT = TypeAdapter(_Document)


def read(file: File, _hints: ImportHints) -> tuple[ForeignRun, ...]:
    """Read one run with all its benchmarks; the release is the commit, unless the user names one."""
    try:
        document = _DOCUMENT.validate_json(file.text)
    except ValidationError as error:
        raise Unreadable(*explain(f"{file.name}: no JSON of pytest-benchmark", error)) from error
    started_at = document.datetime
    if started_at.utcoffset() is None:  # 3.x wrote UTC without saying so
        started_at = started_at.replace(tzinfo=UTC)
    machine = dict(flatten(document.machine_info))
    clock = {name: value for name, value in machine.items() if name.startswith("cpu.hz_")}
    commit = {name: value for name, value in document.commit_info.items() if name in _OF_THE_COMMIT}
    rest = {name: value for name, value in document.commit_info.items() if name not in _OF_THE_COMMIT}
    return (
        ForeignRun(
            place=file.name,
            identity=digest(file.text),
            samples=tuple(
                Sample(
                    phase=PHASE,
                    operation=benchmark.fullname or benchmark.name,
                    metric=DURATION.name,
                    statistic=statistic,
                    value=getattr(benchmark.stats, attribute) * _MS_PER_S,
                )
                for benchmark in document.benchmarks
                for attribute, statistic in _STATISTICS.items()
            ),
            settings=facts(
                [
                    *((name, value) for name, value in machine.items() if name not in clock),
                    *((f"commit {name}", value) for name, value in rest.items()),
                    ("pytest-benchmark", document.version),
                ]
            ),
            findings=facts(
                [
                    *clock.items(),
                    *((f"commit {name}", value) for name, value in commit.items()),
                    *(
                        (f"rounds of {benchmark.fullname or benchmark.name}", benchmark.stats.rounds)
                        for benchmark in document.benchmarks
                    ),
                ]
            ),
            started_at=started_at,
            release=_release(commit),
            workload="pytest-benchmark",
        ),
    )


def _release(commit: Mapping[str, Any]) -> str | None:
    """Give the commit as far as people write it; outside of a repository there is none."""
    name = str(commit.get("id") or "")
    return name[:_DIGITS] if name and name != _NO_COMMIT else None
