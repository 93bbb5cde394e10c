import math
import random

import pytest

from analysis.detection.effects import compare_means, relative_change


def test_the_interval_is_what_the_formula_gives_by_hand() -> None:
    # s² is 4 and 1, n is 3, so the error is √(5/3); t of 99.5 % at 2 degrees of freedom is 9.924843.
    effect = compare_means([98.0, 100.0, 102.0], [89.0, 90.0, 91.0], 0.99)
    half_width = 9.924843 * math.sqrt(5 / 3) / 100
    assert effect.relative_change == pytest.approx(-0.1)
    assert effect.low == pytest.approx(-0.1 - half_width)
    assert effect.high == pytest.approx(-0.1 + half_width)


@pytest.mark.parametrize(("earlier", "deviation"), [(3, 1.0), (9, 3.0), (27, 1.0), (27, 3.0)])
def test_the_interval_covers_the_true_difference_at_least_as_often_as_it_says(
    earlier: int, deviation: float
) -> None:
    generator = random.Random(5)  # noqa: S311  test data, not a secret
    covered = 0
    for _ in range(1000):
        before = [generator.gauss(100, 1) for _ in range(earlier)]
        after = [generator.gauss(95, deviation) for _ in range(3)]
        effect = compare_means(before, after, 0.99)
        covered += effect.low <= -0.05 <= effect.high
    assert covered >= 990


def test_equal_constants_do_not_differ_whatever_their_number() -> None:
    effect = compare_means([0.1] * 7, [0.1] * 25, 0.99)
    assert (effect.low, effect.relative_change, effect.high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(100, 80, -0.2), (0, 5, math.inf), (0, -5, -math.inf), (0, 0, 0), (-10, -5, 0.5)],
)
def test_a_relative_change_is_defined_for_every_base(
    before: float, after: float, expected: float
) -> None:
    assert relative_change(before, after) == pytest.approx(expected)


def test_no_relative_difference_from_zero_counts_as_small() -> None:
    assert not compare_means([0.0, 0.0], [0.0, 0.1], 0.99).lies_within(1.0)


def test_one_value_has_no_scatter_and_is_refused() -> None:
    with pytest.raises(ValueError, match="two values on each side"):
        compare_means([1.0, 2.0], [1.0], 0.99)
