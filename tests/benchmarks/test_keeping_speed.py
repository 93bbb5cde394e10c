"""How fast the morning's work is: keep, judge, write the site. No time is asserted."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from pytest_benchmark.fixture import BenchmarkFixture

from analysis.detection.step_detector import StepDetector
from analysis.judging.judgement import judge
from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.history.store import History, append_all, open_history
from perf.local.paths import DataPaths
from perf.model.results import Interval, Observation, Trial, TrialId
from reports.pages.report import write_report

CONFIGS = Path(__file__).parents[2] / "configs"
TRIALS = 12


def test_append_a_trial_of_600_histograms(
    benchmark: BenchmarkFixture,
    make_trial: Callable[..., Trial],
    make_intervals: Callable[..., tuple[Interval, ...]],
    tmp_path: Path,
) -> None:
    paths, intervals = DataPaths(tmp_path), make_intervals(iterations=2, seconds=100)
    assert len(intervals) == 600
    rounds = 10

    def prepare() -> Iterator[tuple[History, Path]]:
        for number in range(rounds):
            trial = make_trial(id=TrialId(f"trial-{number}"))
            yield history, bundle.seal(bundle.stage(paths, trial.id), trial, intervals)

    with open_history(paths.history) as history:
        fresh = prepare()
        is_new = benchmark.pedantic(History.append, setup=lambda: (next(fresh), {}), rounds=rounds)
        assert is_new


def test_judge_100_series_of_100_points(
    benchmark: BenchmarkFixture, make_observations: Callable[..., tuple[Observation, ...]]
) -> None:
    generator = random.Random(1)  # noqa: S311  test data, not a secret
    observations: list[Observation] = []
    for number in range(100):
        # Every tenth series has a step of five standard deviations.
        steps = [0.9 if number % 10 == 0 and point >= 60 else 1.0 for point in range(100)]
        values = [1000 * step * generator.gauss(1, 0.02) for step in steps]
        observations += make_observations(values, per_release=10, operation=f"operation-{number}")
    settings = load_catalog(CONFIGS).detection
    detector = StepDetector(settings=settings)
    judgement = benchmark.pedantic(judge, args=(observations, settings, detector), rounds=3)
    assert sum(bool(judged.change_points) for judged in judgement.series) >= 10


def test_write_the_site_of_a_small_history(
    benchmark: BenchmarkFixture, make_trial: Callable[..., Trial], tmp_path: Path
) -> None:
    paths, model = DataPaths(tmp_path), make_trial()
    for number in range(TRIALS):
        trial = replace(
            model,
            id=TrialId(f"trial-{number:02d}"),
            started_at=model.started_at + timedelta(days=number),
            finished_at=model.finished_at + timedelta(days=number),
        )
        bundle.seal(bundle.stage(paths, trial.id), trial, ())
    assert append_all(paths, lambda _: None).new == TRIALS
    now = model.finished_at + timedelta(days=TRIALS)
    # The warm-up makes the script bundle, once per process.
    index = benchmark.pedantic(
        write_report, args=(paths, load_catalog(CONFIGS), now), rounds=5, warmup_rounds=1
    )
    assert index.is_file()
