"""The error rates of docs/statistics.md, on fewer bisections."""

from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from bisection_cases import Case, Draw, Score, drift, play, reference_trials, single
from numpy.random import Generator
from simulated_bisection import Means

pytestmark = pytest.mark.slow
SEED = 7


def play_many(draw: Callable[[Generator], Draw], n: int, means: Means | None = None) -> list[Score]:
    case = Case(name="", draw=draw, means=means or Means())
    return [play(case, (SEED, each)) for each in range(n)]


def share(scores: Sequence[Score], *kinds: str) -> float:
    counts = Counter(one.kind for one in scores)
    return sum(counts[kind] for kind in kinds) / len(scores)


def test_finds_a_step_of_two_noise_floors_for_half_more_than_whoever_knows_all_beforehand() -> None:
    scores = play_many(single(2), 80)
    assert share(scores, "right") >= 0.95
    assert share(scores, "wrong") <= 0.02
    assert sum(one.trials for one in scores) / len(scores) <= 1.5 * reference_trials(2)


def test_the_real_estimate_does_no_worse() -> None:
    assert share(play_many(single(2), 12, Means(is_exact=True)), "right") >= 11 / 12


def test_names_nobody_where_nothing_changed() -> None:
    scores = play_many(single(0), 120)
    assert share(scores, "nothing-changed", "undecided") >= 0.97
    assert share(scores, "wrong", "right, others not") <= 0.02


def test_a_slow_change_is_not_put_down_to_one_release() -> None:
    assert share(play_many(drift(8), 8), "several", "gradual", "undecided") >= 7 / 8


def test_a_budget_is_kept() -> None:
    scores = play_many(single(2), 12, Means(trials=60))
    assert max(one.trials for one in scores) <= 60
    assert share(scores, "wrong") == 0


def test_the_reference_is_four_tests_of_twelve_trials_a_side() -> None:
    # At 2 σ: 12 trials of each side err less than 1.3 % to both sides, 11 do not.
    assert reference_trials(2) == 4 * 2 * 12
    assert reference_trials(1) > 3 * reference_trials(2)
