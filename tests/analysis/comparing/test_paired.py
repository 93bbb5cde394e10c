"""The Hodges-Lehmann ratio of two sides that took turns, and how sure it is."""

import math
from collections.abc import Sequence
from statistics import fmean

import numpy as np
import pytest

from analysis.comparing.blocks import Block, TrialValue
from analysis.comparing.paired import Estimate, estimate
from analysis.detection.noise import ROUNDING


def block(baseline: Sequence[float], candidate: Sequence[float]) -> Block:
    return Block(
        baseline=tuple(TrialValue(value=value) for value in baseline),
        candidate=tuple(TrialValue(value=value) for value in candidate),
    )


def swapped(blocks: Sequence[Block]) -> list[Block]:
    return [Block(baseline=one.candidate, candidate=one.baseline) for one in blocks]


BLOCKS = [
    block((100, 103), (111, 108)),
    block((140, 137), (149, 155)),
    block((90, 94), (99, 101)),
]
NESTED = [
    Block(
        baseline=(
            TrialValue(value=100, iterations=(90, 100, 110)),
            TrialValue(value=101, iterations=(95, 99, 109)),
        ),
        candidate=(
            TrialValue(value=100, iterations=(92, 97, 111)),
            TrialValue(value=101, iterations=(89, 104, 110)),
        ),
    )
]


def test_one_block_gives_the_median_of_all_differences() -> None:
    found = estimate([block((100, 100), (110, 120))], seed=1)
    assert math.isclose(math.exp(found.log_ratio), math.sqrt(1.1 * 1.2))
    assert (found.baseline_trials, found.candidate_trials, found.degrees_of_freedom) == (2, 2, 2)


def test_pairs_of_nights_give_the_median_of_the_means_of_all_pairs_of_differences() -> None:
    nights = [block((100,), (100 * ratio,)) for ratio in (1.1, 1.2, 1.5)]
    logs = [math.log(ratio) for ratio in (1.1, 1.2, 1.5)]
    walsh = sorted((a + b) / 2 for a in logs for b in logs)
    assert math.isclose(estimate(nights, seed=1).log_ratio, walsh[4])


def test_what_a_whole_block_shares_cancels() -> None:
    slower = [
        block(
            [one.value * factor for one in each.baseline],
            [one.value * factor for one in each.candidate],
        )
        for each, factor in zip(BLOCKS, (1, 3, 0.2), strict=True)
    ]
    before, after = estimate(BLOCKS, seed=1), estimate(slower, seed=1)
    assert math.isclose(before.log_ratio, after.log_ratio)
    assert math.isclose(before.standard_error, after.standard_error)


def test_swapped_sides_give_the_inverse_ratio() -> None:
    there, back = estimate(BLOCKS, seed=1), estimate(swapped(BLOCKS), seed=1)
    assert math.isclose(there.log_ratio, -back.log_ratio)
    assert math.isclose(there.standard_error, back.standard_error, rel_tol=0.2)


def test_the_same_seed_gives_the_same_answer_and_another_about_the_same() -> None:
    assert estimate(BLOCKS, seed=1) == estimate(BLOCKS, seed=1)
    first, second = (estimate(BLOCKS, seed=seed).standard_error for seed in (1, 2))
    assert first != second
    assert math.isclose(first, second, rel_tol=0.25)


def test_a_block_that_lost_trials_counts_with_what_is_left() -> None:
    short = [block((100, 103), (111,)), *BLOCKS[1:]]
    found = estimate(short, seed=1)
    assert (found.baseline_trials, found.candidate_trials, found.degrees_of_freedom) == (6, 5, 7)
    assert math.isclose(found.log_ratio, estimate(BLOCKS, seed=1).log_ratio, abs_tol=0.01)


def test_equal_values_are_known_to_rounding() -> None:
    found = estimate([block((5, 5), (5, 5)), block((7, 7), (7, 7))], seed=1)
    assert abs(found.log_ratio) < ROUNDING
    assert found.standard_error == ROUNDING


def test_trials_are_not_known_better_than_their_iterations_allow() -> None:
    bare = [block((100, 101), (100, 101))]
    within = math.sqrt(fmean([0.01, 0.005, 0.009, 0.012]) / 3)
    assert estimate(bare, seed=1).standard_error < 0.01
    # Deviations of what all trials have in common, three rising iterations, are no scatter.
    assert 0.2 * within < estimate(NESTED, seed=1).standard_error < within


def test_iterations_add_no_certainty_to_trials_that_scatter() -> None:
    steady = [
        Block(
            baseline=tuple(TrialValue(value=v, iterations=(v,) * 20) for v in (100, 120)),
            candidate=tuple(TrialValue(value=v, iterations=(v,) * 20) for v in (105, 95)),
        )
    ] * 2
    bare = [block((100, 120), (105, 95))] * 2
    found, expected = estimate(steady, seed=1), estimate(bare, seed=1)
    assert math.isclose(found.standard_error, expected.standard_error, rel_tol=1e-9)


def test_iterations_without_a_logarithm_are_left_out() -> None:
    trials = (TrialValue(value=100, iterations=(0, 200)), TrialValue(value=110, iterations=(100,)))
    found = estimate([Block(baseline=trials, candidate=trials)], seed=1)
    bare = estimate([block((100, 110), (100, 110))], seed=1)
    assert found == bare


@pytest.mark.parametrize("value", [0, -1, math.inf, math.nan])
def test_refuses_what_has_no_ratio(value: float) -> None:
    with pytest.raises(ValueError, match="values above zero"):
        estimate([block((1, 1), (1, value))], seed=1)


def test_refuses_too_few_trials() -> None:
    with pytest.raises(ValueError, match="at least two trials"):
        estimate([block((1,), (2,))], seed=1)


def test_the_interval_is_that_of_students_t() -> None:
    found = Estimate(
        log_ratio=0.1,
        standard_error=0.02,
        degrees_of_freedom=5,
        baseline_trials=4,
        candidate_trials=4,
    )
    effect = found.interval(0.025)
    assert math.isclose(found.half_width(0.025), 2.5706 * 0.02, rel_tol=1e-4)
    assert math.isclose(math.log1p(effect.high), 0.1 + 2.5706 * 0.02, rel_tol=1e-4)
    assert math.isclose(math.log1p(effect.low), 0.1 - 2.5706 * 0.02, rel_tol=1e-4)
    assert math.isclose(effect.relative_change, math.expm1(0.1))
    assert effect.confidence == 0.95


@pytest.mark.parametrize("kind", ["normal", "lognormal"])
def test_intervals_hold_the_truth_about_as_often_as_they_say(kind: str) -> None:
    generator = np.random.default_rng(11)
    draw = generator.normal if kind == "normal" else generator.lognormal
    held = 0
    for number in range(300):
        blocks = [
            block(
                np.exp(0.05 * draw(0, 0.7, 2)).tolist(),
                np.exp(0.05 * draw(0, 0.7, 2) + 0.04).tolist(),
            )
            for _ in range(3)
        ]
        found = estimate(blocks, seed=number)
        held += abs(found.log_ratio - 0.04) <= found.half_width(0.05)
    assert 0.86 <= held / 300 <= 0.97
