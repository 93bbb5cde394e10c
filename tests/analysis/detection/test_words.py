"""P-values in words."""

import numpy as np
import pytest

from analysis.detection import words
from analysis.detection.criteria import rank_p_value
from analysis.detection.selection import is_by_ranks


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0123, "p = 0.01"),
        (2.3e-4, "p = 0.0002"),
        (1e-4, "p = 0.0001"),
        (9.9e-5, "p < 0.0001"),
        (0.0, "p < 0.0001"),
    ],
)
def test_a_p_value_is_written_without_an_exponent(value: float, said: str) -> None:
    assert words.p_value(value) == said


def test_a_p_value_is_that_of_the_ranks_of_the_points_within_the_window() -> None:
    left, right = np.arange(10.0), np.arange(20.0, 28.0)
    reported = 5 * rank_p_value(left, right)
    assert is_by_ranks(reported, left, right, 50)
    assert not is_by_ranks(reported, left, right, 6)
    assert not is_by_ranks(2 * reported, left, right, 50)
