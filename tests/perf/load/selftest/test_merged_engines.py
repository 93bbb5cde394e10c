"""Faults in the harness's own merging: what the self-test says, from two real interval logs."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from perf.load.histogram import Statistics, encode_times, summarize_times
from perf.load.histogram import merge as merge_intervals
from perf.load.results import outcome as load_outcome
from perf.load.results.outcome import LoadOutcome
from perf.load.results.phases import PhaseFigures
from perf.load.selftest.finding import CheckOutcome, SelftestFinding
from perf.load.selftest.stand import Delays, LoadEvidence, StageTimes
from perf.load.selftest.sums import check_merge
from perf.local.hlog import read_hlog, write_hlog
from perf.model.design import OpenLoop
from perf.model.metrics import RESPONSE_TIME, SERVICE_TIME
from perf.model.results import Counter, Interval
from perf.systems.null.record import Deeds
from perf.workloads.stages import Stage

START_S = 1_772_330_400.0
PER_SECOND, SECONDS = 200, 3
STAGE = Stage(
    phase="merge",
    load=OpenLoop(kind="open", offered_load_ops_per_s=400.0, in_flight=64),
    warmup_s=1.0,
    warmup_cap_s=1.0,
    iteration_s=float(SECONDS),
    iterations=(1,),
)


def _log(path: Path, scale_ms: float, seed: int) -> Path:
    generator = np.random.default_rng(seed)
    intervals = []
    for second in range(SECONDS):
        for kind in (RESPONSE_TIME, SERVICE_TIME):
            times_us = (generator.exponential(scale_ms, PER_SECOND) * 1000).astype(np.int64)
            times = encode_times(times_us)
            intervals.append(
                Interval(
                    phase="merge",
                    operation="write",
                    kind=kind.name,
                    iteration=1,
                    start_s=START_S + second,
                    length_s=1.0,
                    max_us=times.max_us,
                    encoded=times.text,
                )
            )
    write_hlog(path, intervals)
    return path


def _observe(directory: Path) -> LoadEvidence:
    """Merge two engines' logs by the harness's own means."""
    logs = (_log(directory / "a.hlog", 2.0, 1), _log(directory / "b.hlog", 12.0, 2))
    outcome = LoadOutcome()
    for log in logs:
        names = ("attempted", "completed")
        counters = [
            Counter(
                phase="merge", operation="write", iteration=1, name=name, value=PER_SECOND * SECONDS
            )
            for name in names
        ]
        outcome += LoadOutcome(intervals=read_hlog(log), counters=tuple(counters))
    count = 2 * PER_SECOND * SECONDS
    times_s = np.linspace(START_S, START_S + SECONDS, count, endpoint=False, dtype=np.float64)
    deeds = Deeds(
        arrived_s=times_s,
        due_s=times_s,
        answered_s=times_s,
        is_refused=np.zeros(count, dtype=np.bool_),
        device=np.zeros(count, dtype=np.int64),
        ts_ms=np.arange(count, dtype=np.int64),
    )
    return LoadEvidence(
        stages=(STAGE,),
        spans=(StageTimes(begin_s=START_S - 1, measured_s=START_S, ended_s=START_S + SECONDS),),
        outcome=outcome,
        logs=logs,
        deeds=(deeds,),
        delays=Delays(p50_ms=0.1, p99_ms=0.5, max_ms=3.0),
    )


def _failed(findings: Iterable[SelftestFinding]) -> set[str]:
    return {one.check for one in findings if one.outcome is CheckOutcome.FAILED}


def test_what_is_merged_exactly_passes(tmp_path: Path) -> None:
    findings = check_merge(_observe(tmp_path), 0)
    assert len(findings) == 11
    assert all(one.outcome is CheckOutcome.OK for one in findings)


def test_a_merge_that_keeps_one_engine_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def keep_first(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
        first = {(one.kind, one.start_s): one for one in reversed(tuple(intervals))}
        return tuple(first.values())

    monkeypatch.setattr(load_outcome, "merge_equal_intervals", keep_first)
    failed = _failed(check_merge(_observe(tmp_path), 0))
    assert "response times in the logs of both engines, merged" in failed
    assert "response time p99 of all engines" in failed


def test_percentiles_that_are_averages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def average(self: PhaseFigures, kind: str) -> Statistics:
        parts = [summarize_times(merge_intervals([one])) for one in self.intervals if one.kind == kind]
        means = {
            name: sum(getattr(part, name) for part in parts) / len(parts)
            for name in ("p50", "p90", "p95", "p99", "p99_5", "p99_9", "max", "mean")
        }
        return Statistics(**means)

    seen = _observe(tmp_path)
    monkeypatch.setattr(PhaseFigures, "times", average)
    failed = _failed(check_merge(seen, 0))
    assert {f"response time {name} of all engines" for name in ("p95", "p99", "p99.9")} <= failed
    assert not any("log" in check for check in failed)


def test_operations_that_two_engines_did(tmp_path: Path) -> None:
    seen = _observe(tmp_path)
    (deeds,) = seen.deeds
    deeds.ts_ms[1::2] = deeds.ts_ms[::2]
    assert _failed(check_merge(seen, 0)) == {
        "operations attempted, each with rows of its own at a server"
    }
