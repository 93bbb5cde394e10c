"""Rank scores and deviations: what stands first on the front page, and what stands there unflagged."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from analysis.detection.detection import ChangePoint, DetectorResult, Shift, find_changes
from analysis.detection.effects import MEDIAN_COST, Effect, compare_levels, compare_means
from analysis.detection.noise import Noise, estimate_noise
from analysis.detection.series import Series, build_series
from analysis.judging.deviations import find_deviation, rank
from analysis.judging.rank_score import CONFIDENCE, find_interval, weigh
from analysis.judging.verdicts import Detectable
from perf.model.results import Observation

Planted = Callable[..., tuple[Observation, ...]]
WOBBLE = (0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 0.3, -0.3, 0.8)
NOISE = Noise(deviation=1.0, persistence=0.0, level=90.0, points=20, all_points=40)


def visible(share: float) -> tuple[Detectable, ...]:
    return (
        Detectable(nights=1, relative_change=9 * share),
        Detectable(nights=3, relative_change=share),
    )


def step(planted: Planted) -> tuple[Series, ChangePoint]:
    values = [100 + w for w in WOBBLE * 2] + [90 + w for w in WOBBLE * 2]
    (series,) = build_series(planted(values))
    shift = Shift(index=20, earliest=20, latest=20, p_value=1e-9, is_confirmed=True)
    (change,) = find_changes(series, DetectorResult(shifts=(shift,)), "planted")
    return series, change


def test_neither_percent_alone_nor_sureness_alone_puts_a_change_first() -> None:
    noisy = weigh(0.30, visible(0.25))
    tiny = weigh(-0.003, visible(0.0003))
    plain = weigh(-0.10, visible(0.02))
    assert noisy.factor == pytest.approx(1.2)
    assert tiny.factor == pytest.approx(10)
    assert plain.weight == pytest.approx(0.5)
    unknown = weigh(0.9, ())
    assert (unknown.factor, unknown.visible) == (None, None)
    order = sorted((unknown, noisy, tiny, plain), key=lambda one: one.rank)
    assert order == [plain, noisy, tiny, unknown]


def stepped(planted: Planted, before: list[float], after: list[float]) -> tuple[ChangePoint, Noise]:
    (series,) = build_series(planted([*before, *after]))
    values = [point.value for point in series.points]
    deviation, persistence = estimate_noise(np.array(values))
    noise = Noise(
        deviation=deviation,
        persistence=persistence,
        level=after[0],
        points=len(after),
        all_points=len(values),
    )
    at = len(before)
    shift = Shift(index=at, earliest=at, latest=at, p_value=1e-9, is_confirmed=True)
    (change,) = find_changes(series, DetectorResult(shifts=(shift,), noise=noise), "planted")
    return change, noise


def width(interval: Effect | None) -> float:
    assert interval is not None
    return interval.high - interval.low


def test_the_interval_of_a_change_is_no_narrower_than_that_of_two_levels(planted: Planted) -> None:
    series, change = step(planted)
    values = [point.value for point in series.points]
    noise = replace(NOISE, deviation=10.0)  # above the pooled one, so that both take this
    interval = find_interval(change, 20, noise)
    expected = compare_levels(values[:20], values[20:], CONFIDENCE, noise)
    assert interval is not None
    assert interval.low + interval.high == pytest.approx(expected.low + expected.high)
    assert width(interval) == pytest.approx(math.sqrt(MEDIAN_COST) * width(expected))
    assert find_interval(change, 20, None) is None
    assert find_interval(replace(change, before=0.0), 20, noise) is None


def test_each_level_counts_with_its_own_scatter(planted: Planted) -> None:
    before = [1.70, 1.75, 1.63, 1.72, 1.80, 1.68, 1.77, 1.61, 1.74, 1.79] * 3
    after = [3.55, 4.42, 4.04, 5.66, 5.45, 5.10, 4.02, 3.62]
    change, noise = stepped(planted, before, after)
    interval = find_interval(change, len(before), noise)
    plain = compare_means(before, after, CONFIDENCE)
    assert interval is not None
    assert noise.deviation < 0.2  # the quiet side's: most differences lie there
    assert width(interval) > width(plain)
    assert interval.low < plain.relative_change < interval.high
    loud = find_interval(change, len(before), replace(noise, deviation=1.0))
    assert width(loud) > width(find_interval(change, len(before), replace(noise, deviation=0.85)))


def test_intervals_hold_the_change_where_the_new_level_scatters_more(planted: Planted) -> None:
    rng, held = np.random.default_rng(5), 0
    for _ in range(60):
        before = [1000 + float(value) for value in rng.normal(size=30)]
        after = [1600 + 10 * float(value) for value in rng.normal(size=8)]
        change, noise = stepped(planted, before, after)
        interval = find_interval(change, len(before), noise)
        assert interval is not None
        held += interval.low <= 0.6 <= interval.high
    assert held >= 58  # by the noise of the series alone: 16


def test_the_furthest_of_a_night_is_reported_in_units_of_its_own_noise(planted: Planted) -> None:
    series, change = step(planted)
    *points, last = series.points
    quiet = replace(series, points=(*points, replace(last, value=87.0, night="tonight")))
    deviation = find_deviation(quiet, (change,), NOISE, "tonight")
    assert deviation is not None
    assert deviation.level == pytest.approx(
        90.0, abs=0.3
    )  # of its own segment, not of the whole series
    assert deviation.deviations == pytest.approx(3.0, abs=0.3)
    assert deviation.relative_change == pytest.approx(-1 / 30, abs=0.004)
    loud = find_deviation(quiet, (change,), replace(NOISE, deviation=5.0), "tonight")
    assert rank((loud, None, deviation), 1) == (deviation,)


def test_a_night_that_is_alone_behind_a_change_is_held_against_the_level_before(
    planted: Planted,
) -> None:
    series, change = step(planted)
    points = [*series.points[:20], replace(series.points[20], night="tonight")]
    deviation = find_deviation(replace(series, points=tuple(points)), (change,), NOISE, "tonight")
    assert deviation is not None
    assert deviation.level == pytest.approx(100.0, abs=0.3)


def test_the_level_of_a_night_is_that_of_the_other_points(planted: Planted) -> None:
    series, change = step(planted)
    values = (90.0, 50.0, 51.0)
    points = [replace(series.points[20 + at], value=value) for at, value in enumerate(values)]
    nights = [points[0], *(replace(one, night="tonight") for one in points[1:])]
    series = replace(series, points=(*series.points[:20], *nights))
    deviation = find_deviation(series, (change,), NOISE, "tonight")
    assert deviation is not None
    assert (deviation.level, deviation.point.value) == (90.0, 50.0)


def test_no_mover_where_nothing_is_known_or_another_series_shows_it(planted: Planted) -> None:
    series, _ = step(planted)
    night = series.points[-1].night
    assert find_deviation(series, (), NOISE, night) is not None
    assert find_deviation(series, (), NOISE, "another night") is None
    assert find_deviation(series, (), None, night) is None
    derived = replace(series, key=replace(series.key, metric="operations_per_dollar"))
    assert find_deviation(derived, (), NOISE, night) is None
