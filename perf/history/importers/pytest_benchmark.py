"""pytest-benchmark: the JSON of `--benchmark-json` and of its storage (.benchmarks/), 3.1 to 5.3.

Each benchmark is an operation, by its full name. Its times are durations of one call; the tool gives
seconds. Single rounds (`--benchmark-save-data`) are not repetitions of a run and are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter

from perf.history.importers.run import (
    File,
    ForeignRun,
    flatten,
    sample,
)
from perf.model.metrics import DURATION

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


def read(file: File) -> tuple[ForeignRun, ...]:
    """Read one run with all its benchmarks; the release is the commit, unless the user names one."""
    document = file.validate(_DOCUMENT, "no JSON of pytest-benchmark")
    started_at = document.datetime
    if started_at.utcoffset() is None:  # 3.x wrote UTC without saying so
        started_at = started_at.replace(tzinfo=UTC)
    settings: list[tuple[str, object]] = [("pytest-benchmark", document.version)]
    findings: list[tuple[str, object]] = []
    for name, value in flatten(document.machine_info):
        (findings if name.startswith("cpu.hz_") else settings).append((name, value))
    for name, value in document.commit_info.items():
        (findings if name in _OF_THE_COMMIT else settings).append((f"commit {name}", value))
    named = [(one.fullname or one.name, one.stats) for one in document.benchmarks]
    return file.run(
        [
            sample(name, DURATION, statistic, getattr(stats, attribute) * _MS_PER_S)
            for name, stats in named
            for attribute, statistic in _STATISTICS.items()
        ],
        settings=settings,
        findings=[*findings, *((f"rounds of {name}", stats.rounds) for name, stats in named)],
        started_at=started_at,
        release=_release(document.commit_info),
        workload="pytest-benchmark",
    )


def _release(commit: Mapping[str, Any]) -> str | None:
    """Return the commit as far as people write it; outside of a repository there is none."""
    name = str(commit.get("id") or "")
    return name[:_DIGITS] if name and name != _NO_COMMIT else None
