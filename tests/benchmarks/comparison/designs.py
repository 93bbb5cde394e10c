"""What a trial's design costs: testbed time until a change is decided, by how long a trial measures.

Trials scatter for two reasons: what a start of the servers, and the minutes around it, share
(`between`), and what differs from second to second (`second`). Only the latter is averaged out by
measuring longer in one trial, which makes all trials longer. Both are taken from recorded trials.
"""

import math
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from recorded import RECORDED

from perf.history import bundle
from perf.local.paths import DataPaths
from perf.model.metrics import SERVICE_TIME, THROUGHPUT
from perf.model.results import Interval, Trial, TrialStatus

SATURATION = "saturation"
_LEAST_TRIALS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A trial: seconds of it in all, and those that each of two saturated phases measures."""

    trial_s: float
    measured_s: float

    def __str__(self) -> str:
        """Name it by both."""
        return f"{self.trial_s:g} s, {self.measured_s:g} s of each saturation"


DESIGNS = (
    Design(trial_s=54, measured_s=4),
    Design(trial_s=45, measured_s=4),
    Design(trial_s=55, measured_s=7),
    Design(trial_s=65, measured_s=12),
    Design(trial_s=81, measured_s=20),
)
"""The trial of quickstart on two quiet cores: as it was, then as it waits since 2026-11-28."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """How the logarithm of throughput scatters: standard deviations between trials, and of a second."""

    name: str
    trials: int
    between: float
    second: float

    def of(self, design: Design) -> float:
        """Return the standard deviation of a trial of a design."""
        return math.hypot(self.between, self.second / math.sqrt(design.measured_s))


@cache
def read_scatters() -> tuple[Scatter, ...]:
    """Read the scatter of saturated throughput in each experiment of the recorded history.

    Neighbours in time are compared, as interleaved trials are; what their own iterations explain of
    it is taken away. A slow first iteration is common to all, and is no scatter.
    """
    found = defaultdict[str, list[tuple[Trial, float]]](list)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(RECORDED) as packed:
            packed.extractall(folder, filter="data")
        for path in bundle.find(DataPaths(Path(folder))):
            trial, intervals = bundle.read(path)
            if trial.status is TrialStatus.COMPLETED:
                found[f"{trial.experiment}, {trial.config.name}"].append((trial, _length_s(intervals)))
    return tuple(
        _scatter(name, sorted(trials, key=lambda one: one[0].started_at))
        for name, trials in sorted(found.items())
        if len(trials) >= _LEAST_TRIALS
    )


def _length_s(intervals: Sequence[Interval]) -> float:
    """Return how long the first iteration of the saturation was."""
    return sum(
        one.length_s
        for one in intervals
        if (one.phase, one.kind, one.iteration) == (SATURATION, SERVICE_TIME.name, 1)
    )


def _scatter(name: str, trials: Sequence[tuple[Trial, float]]) -> Scatter:
    logs = np.log([_iterations(trial) for trial, _ in trials])
    logs -= logs.mean(axis=0)
    within = float(logs.var(axis=1, ddof=1).mean())
    neighbours = float(np.square(np.diff(logs.mean(axis=1))).mean() / 2)
    length_s = float(np.median([length_s for _, length_s in trials]))
    return Scatter(
        name=name,
        trials=len(trials),
        between=math.sqrt(max(0.0, neighbours - within / logs.shape[1])),
        second=math.sqrt(within * length_s),
    )


def _iterations(trial: Trial) -> list[float]:
    values = {
        sample.iteration: sample.value
        for sample in trial.samples
        if (sample.phase, sample.metric, sample.statistic) == (SATURATION, THROUGHPUT.name, "mean")
        if sample.iteration is not None
    }
    return [values[key] for key in sorted(values)]
