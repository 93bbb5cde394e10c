import numpy as np
import pytest
from scipy.stats import mannwhitneyu, ttest_ind

from analysis.detection.candidates import clip_outliers, find_by_moving_sums
from analysis.detection.criteria import prepare, rank_p_value
from analysis.detection.otava_detector import find_by_divisive


@pytest.mark.parametrize(("left", "right"), [(1, 20), (3, 40), (8, 9), (9, 9), (100, 100)])
def test_the_rank_vote_is_the_rank_test_of_scipy(left: int, right: int) -> None:
    generator = np.random.default_rng(left * 1000 + right)
    method = "exact" if min(left, right) < 9 else "asymptotic"
    for step in (0.0, 0.5, 2.0, 9.0):
        before, after = generator.normal(size=left), generator.normal(step, size=right)
        expected = mannwhitneyu(before, after, method=method).pvalue
        assert rank_p_value(before, after) == pytest.approx(expected, rel=1e-9)


def test_ties_are_allowed_for_like_scipy_does() -> None:
    generator = np.random.default_rng(1)
    before, after = generator.integers(0, 4, 30) * 1.0, generator.integers(0, 5, 40) * 1.0
    expected = mannwhitneyu(before, after, method="asymptotic").pvalue
    assert rank_p_value(before, after) == pytest.approx(expected, rel=1e-9)
    assert rank_p_value(np.ones(20), np.ones(30)) == 1.0


def test_the_size_vote_is_students_test_where_points_are_independent() -> None:
    values = np.random.default_rng(2).normal(100, 1, 60)
    values[40:] += 1.0
    evidence = prepare(values, values, 0.0, 0.0, 100)
    expected = -ttest_ind(values[:40], values[40:]).statistic
    assert evidence.size(0, 40, 60) == pytest.approx(expected, rel=1e-9)


def test_only_the_nearest_points_are_compared() -> None:
    values = np.random.default_rng(3).normal(100, 1, 60)
    moved = values.copy()
    moved[:10] += 50
    sizes = [prepare(one, one, 1.0, 0.0, 20).size(0, 40, 60) for one in (values, moved)]
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-6)


def test_dependence_makes_the_same_step_say_less() -> None:
    values = np.random.default_rng(4).normal(100, 1, 60)
    independent, dependent = (
        prepare(values, values, 1.0, rho, 100).size(0, 30, 60) for rho in (0, 0.6)
    )
    assert abs(dependent) < 0.6 * abs(independent)


def test_outliers_are_pulled_in_and_steps_are_left() -> None:
    values = np.random.default_rng(5).normal(100, 1, 60)
    values[30:] += 20
    spiked = values.copy()
    spiked[10] += 30
    clipped = clip_outliers(spiked, 1.0)
    assert clipped[10] < 105
    assert clipped[30:].mean() - clipped[:30].mean() == pytest.approx(20, abs=0.5)


def test_both_searches_find_a_step_and_a_short_excursion() -> None:
    values = np.random.default_rng(6).normal(100, 1, 200)
    values[80:] += 4
    values[140:150] += 6
    sums = find_by_moving_sums(values, 1.0, 0.0)
    divisive = find_by_divisive(prepare(values, values, 1.0, 0.0, 100), 100)
    for found in (sums, divisive):
        for place in (80, 140, 150):
            assert min(abs(place - one) for one in found) <= 2
