"""Planted situations: nights with known steps, and a detector that sees steps and nothing else."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from analysis.detection.detection import DetectorResult, Shift
from analysis.detection.noise import Noise
from analysis.detection.weeks import find_week, without_week
from analysis.judging.judgement import Judgement, judge
from perf.model.results import Observation, Purpose, Release, SeriesKey, TrialId, TrialStatus
from perf.model.rules import Detection

FIRST_NIGHT = datetime(2026, 11, 1, 1, tzinfo=UTC)
KEY = SeriesKey(
    system="cassandra",
    line="5.0",
    topology="local-three",
    testbed_class="local",
    config="default",
    workload="sensor-write@0123456789ab",
    engine="python",
    phase="saturation",
    operation="write",
    metric="throughput",
    statistic="mean",
)
SETTINGS = Detection(
    max_p_value=2e-4,
    max_rank_p_value=0.001,
    provisional_p_value=0.001,
    provisional_rank_p_value=0.01,
    window_points=100,
    minimum_points=6,
    confirming_points=3,
    false_alarms_per_1000_series_nights=2.0,
    judged={
        "throughput": ("mean",),
        "operations_per_dollar": ("mean",),
        "response_time": ("p99",),
    },
    relevant_change={"throughput": 0.05, "operations_per_dollar": 0.05, "response_time": 0.1},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jumps:
    """Sees a step wherever neighbours differ by 2 %; confirmed with `needed` points on both sides.

    The location interval reaches `doubt` points to both sides.
    """

    p_value: float = 1e-9
    doubt: int = 0
    needed: int = 3
    deviation: float | None = 0.5

    @property
    def name(self) -> str:
        return "jumps"

    def read(self, values: Sequence[float], days: Sequence[int] = ()) -> DetectorResult:
        week = find_week(values, days)
        values = without_week(values, days, week).tolist()
        jumps = [
            index
            for index in range(1, len(values))
            if abs(values[index] - values[index - 1]) > 0.02 * abs(values[index - 1])
        ]
        bounds = [0, *jumps, len(values)]
        shifts = tuple(
            Shift(
                index=index,
                earliest=max(1, index - self.doubt),
                latest=min(len(values) - 1, index + self.doubt),
                p_value=self.p_value,
                is_confirmed=min(index - start, end - index) >= self.needed,
            )
            for start, index, end in zip(bounds, jumps, bounds[2:], strict=False)
        )
        if self.deviation is None:
            return DetectorResult(shifts=shifts, week=week)
        newest = values[bounds[-2] :]
        noise = Noise(
            deviation=self.deviation,
            persistence=0.0,
            level=newest[-1],
            points=len(newest),
            all_points=len(values),
        )
        return DetectorResult(shifts=shifts, noise=noise, week=week)


@pytest.fixture(scope="session")
def jumps() -> Callable[..., Jumps]:
    """Return `jumps(p_value=…, doubt=…, needed=…, deviation=…)`: the detector of planted steps."""
    return Jumps


@pytest.fixture(scope="session")
def planted() -> Callable[..., tuple[Observation, ...]]:
    """Return `planted(values, releases=(…), minute=0, purpose=…, every=1, **key_changes)`.

    One value a night from 2026-11-01 on, `minute` minutes after one; every n-th night only, if asked.
    By default all are of release 5.0.1; else of 5.0.N for each N in `releases`.
    """

    def make(
        values: Sequence[float],
        releases: Sequence[int] = (),
        minute: int = 0,
        purpose: Purpose = Purpose.SCHEDULED,
        every: int = 1,
        **key_changes: Any,  # noqa: ANN401  the fields of SeriesKey, checked by replace
    ) -> tuple[Observation, ...]:
        key = replace(KEY, **key_changes)
        ordinals = releases or [1] * len(values)
        observations = []
        for index, (value, ordinal) in enumerate(zip(values, ordinals, strict=True)):
            started_at = FIRST_NIGHT + timedelta(days=index * every, minutes=minute)
            version = f"{key.line}.{ordinal}"
            trial = f"{started_at:%m-%d}-{key.system}-{version}-{key.workload}-{purpose}-{minute}"
            observations.append(
                Observation(
                    key=key,
                    trial=TrialId(trial),
                    release=Release(system=key.system, version=version, line=key.line, ordinal=ordinal),
                    started_at=started_at,
                    status=TrialStatus.COMPLETED,
                    value=float(value),
                    night=f"{started_at:%Y-%m-%d}-1",
                    purpose=purpose,
                )
            )
        return tuple(observations)

    return make


@pytest.fixture(scope="session")
def judge_planted() -> Callable[..., Judgement]:
    """Return `judge_planted(*series, detector=…, **options)`: what comes of planted observations.

    `environments` are trials, names and values.
    """

    def make(
        *series: Iterable[Observation],
        detector: Jumps | None = None,
        environments: Iterable[tuple[TrialId, str, str]] = (),
        **options: Any,  # noqa: ANN401  the options of judge
    ) -> Judgement:
        observations = [one for part in series for one in part]
        facts: defaultdict[TrialId, dict[str, str]] = defaultdict(dict)
        for trial, name, value in environments:
            facts[trial][name] = value
        return judge(observations, SETTINGS, detector or Jumps(), environments=facts, **options)

    return make
