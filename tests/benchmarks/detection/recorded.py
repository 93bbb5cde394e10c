"""Noise of real trials: how the judged series of the recorded history scatter about their levels.

Its planted cause is a change of configuration, so a level is a stretch of trials of one config. What is
left of the values is drawn again in short blocks, which keeps the shape and the nearest dependence of
real noise; it makes 200 points of some twenty, so it shows no rarer event than these nights had.
"""

import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from analysis.detection.series import Series, build_series
from perf.history.store import append_all, open_history
from perf.local.paths import DataPaths
from perf.model.results import TrialId

Array = NDArray[np.float64]

RECORDED = Path(__file__).parents[3] / "reports/demo/trials.tar.xz"
JUDGED = {("throughput", "mean"), ("response_time", "p50"), ("response_time", "p99")}
_LEAST_POINTS = 15
_BLOCK = 4


def draw(n: int, generator: Generator) -> Array:
    """Draw blocks of four neighbours from the scatter of one recorded series, chosen at random."""
    scatters = read_scatters(RECORDED)
    return resample(scatters[int(generator.integers(len(scatters)))], n, generator)


def resample(scatter: Array, n: int, generator: Generator) -> Array:
    """Put blocks from random places one behind the other: the circular block bootstrap.

    A block that meets the end goes on at the start (Politis, Romano, 1992, in: LePage, Billard (eds.),
    Exploring the Limits of Bootstrap).
    """
    starts = generator.integers(0, len(scatter), -(-n // _BLOCK))
    paths = (starts[:, None] + np.arange(_BLOCK)).ravel()[:n]
    return np.take(scatter, paths, mode="wrap")


@cache
def read_scatters(archive: Path) -> tuple[Array, ...]:
    """Read the scatter of each judged series of packed trials, in its own standard deviations."""
    with tempfile.TemporaryDirectory() as folder:
        paths = DataPaths(Path(folder))
        with tarfile.open(archive) as packed:
            packed.extractall(paths.data, filter="data")
        append_all(paths, lambda _: None)
        with open_history(paths.history, read_only=True) as history:
            series = build_series(history.observations())
            configs = {
                trial: value
                for trial, known in history.environments().items()
                for name, value in known.items()
                if name.startswith("config ")
            }
    found = (
        scatter_about_levels(one, configs)
        for one in series
        if (one.key.metric, one.key.statistic) in JUDGED and len(one.points) >= _LEAST_POINTS
    )
    return tuple(scatter for scatter in found if scatter.std() > 0)


def scatter_about_levels(series: Series, configs: Mapping[TrialId, str]) -> Array:
    """Subtract from each point the mean of its config's trials; divide by the deviation of the rest."""
    levels: defaultdict[str, list[float]] = defaultdict(list)
    for point in series.points:
        levels[configs[point.trial]].append(point.value)
    left = np.array([point.value - _mean(levels[configs[point.trial]]) for point in series.points])
    deviation = float(left.std(ddof=len(levels)))
    return np.asarray(left / deviation if deviation else left, dtype=np.float64)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
