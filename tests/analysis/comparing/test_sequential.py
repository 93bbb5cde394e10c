"""Looks at a growing comparison: what they say, when they end, and that they keep their error rates."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.random import Generator

from analysis.comparing.blocks import Block, TrialValue
from analysis.comparing.paired import Estimate
from analysis.comparing.sequential import InterimAnalysis, StoppingRule, _chances, _crossing, look
from analysis.detection.verdict import Outcome

RULE = StoppingRule(
    higher_is_better=False, relevant_change=0.05, false_share=0.01, missed_share=0.02, most_blocks=6
)


def block(baseline: Sequence[float], candidate: Sequence[float]) -> Block:
    return Block(
        baseline=tuple(TrialValue(value=value) for value in baseline),
        candidate=tuple(TrialValue(value=value) for value in candidate),
    )


def draw(generator: Generator, blocks: int, deviation: float, ratio: float) -> list[Block]:
    noise = np.exp(deviation * generator.standard_normal((blocks, 4))).tolist()
    return [block((a, b), (c * ratio, d * ratio)) for a, b, c, d in noise]


def run(blocks: Sequence[Block], rule: StoppingRule) -> tuple[InterimAnalysis, int]:
    for count in range(1, len(blocks) + 1):
        seen = look(blocks[:count], rule, seed=1)
        if seen.is_over:
            return seen, count
    raise AssertionError("the last look is over")


CLOSE = [block((100, 101), (101, 100)), block((100.5, 100), (100, 101))]
FAR = [block((100, 101), (110, 112)), block((100.5, 100), (111, 110))]


def test_says_unchanged_only_where_the_whole_interval_is_irrelevant() -> None:
    seen = look(CLOSE, RULE, seed=1)
    assert (seen.outcome, seen.is_over) == (Outcome.UNCHANGED, True)
    assert seen.effect is not None
    assert seen.effect.lies_within(0.05)
    assert "within ±5 % of the baseline" in seen.reason


def test_says_worse_or_better_by_the_direction_of_the_metric() -> None:
    assert look(FAR, RULE, seed=1).outcome is Outcome.REGRESSED
    assert look(FAR, replace(RULE, higher_is_better=True), seed=1).outcome is Outcome.IMPROVED
    swapped = [Block(baseline=one.candidate, candidate=one.baseline) for one in FAR]
    seen = look(swapped, RULE, seed=1)
    assert seen.outcome is Outcome.IMPROVED
    assert seen.reason.startswith(
        "after 4 trials of each side the candidate is better than the baseline: −9"
    )


def test_the_interval_holds_over_all_looks_and_is_wider_for_more_of_them() -> None:
    few, many = (look(FAR, replace(RULE, most_blocks=most), seed=1).effect for most in (2, 20))
    assert few is not None
    assert many is not None
    assert few.confidence == many.confidence == 0.96
    assert many.low < few.low < few.high < many.high


def test_one_block_says_nothing_unless_the_budget_is_one_block() -> None:
    seen = look(FAR[:1], RULE, seed=1)
    assert (seen.outcome, seen.is_over, seen.estimate) == (Outcome.UNDECIDED, False, None)
    only = look(FAR[:1], replace(RULE, most_blocks=1), seed=1)
    assert only.is_over
    assert only.effect is not None


def test_pairs_of_nights_wait_for_four_trials_a_side() -> None:
    nights = [block((100,), (110,)), block((101,), (111.2,)), block((99,), (108.8,))]
    assert look(nights, RULE, seed=1).outcome is Outcome.UNDECIDED
    assert look([*nights, block((100,), (110.3,))], RULE, seed=1).outcome is Outcome.REGRESSED


def test_a_difference_nearer_to_none_than_to_relevant_is_no_regression() -> None:
    blocks = [block((100, 100.2), (102.1, 101.9)), block((100.1, 100), (102, 102.2))]
    seen = look(blocks, RULE, seed=1)
    assert seen.effect is not None
    assert seen.effect.low > 0
    assert seen.outcome is Outcome.UNCHANGED
    assert look(blocks, replace(RULE, relevant_change=0.02), seed=1).outcome is Outcome.REGRESSED


def test_the_interval_reaches_to_zero_unless_a_stricter_one_excludes_it() -> None:
    baseline = ((100, 104), (102, 96), (104, 100))
    lows = {}
    for percent in (5, 6, 7, 8):
        ratio = 1 + percent / 100
        blocks = [block((a, b), (a * ratio, (b + 1) * ratio)) for a, b in baseline]
        for false_share in (0.01, 0.5):  # with the second one, nothing stricter is asked of zero
            effect = look(blocks, replace(RULE, false_share=false_share), seed=1).effect
            assert effect is not None
            assert effect.confidence == 0.96
            lows[percent, false_share] = effect.low
    assert lows[5, 0.01] == lows[5, 0.5] < 0
    assert lows[6, 0.01] == lows[7, 0.01] == 0 < lows[6, 0.5] < lows[7, 0.5]
    assert lows[8, 0.01] == lows[8, 0.5] > 0


def test_values_without_any_scatter_are_decided_by_six_trials_of_each_side() -> None:
    same, higher = [block((7, 7), (7, 7))] * 3, [block((7, 7), (8, 8))] * 3
    # Where values are one of two by chance, four and four are apart in one of 128 comparisons.
    assert look(higher[:2], RULE, seed=1).outcome is Outcome.UNDECIDED
    assert look(same, RULE, seed=1).outcome is Outcome.UNCHANGED
    assert look(higher, RULE, seed=1).outcome is Outcome.REGRESSED


def test_two_trials_that_agree_to_the_last_digit_prove_nothing() -> None:
    seen = look([block((7, 7), (8, 8))], replace(RULE, most_blocks=1), seed=1)
    assert (seen.outcome, seen.is_over, seen.effect) == (Outcome.UNDECIDED, True, None)
    assert "how they scatter is not known" in seen.reason


def test_what_could_be_seen_has_an_end_however_wild_the_trials_are() -> None:
    rule = replace(RULE, most_blocks=1, false_share=0.0005)
    seen = look([block((1, 9), (2, 2))], rule, seed=1)
    assert seen.detectable is not None
    assert math.isfinite(seen.detectable)


@pytest.mark.parametrize(("looks", "constant"), [(1, 1.960), (2, 2.178), (5, 2.413), (10, 2.555)])
def test_boundaries_are_those_of_the_tables(looks: int, constant: float) -> None:
    # Pocock, two-sided 5 %: Jennison and Turnbull, Group Sequential Methods, 2000, table 2.1.
    times = np.arange(1, looks + 1, dtype=np.float64)
    assert _crossing(np.full(looks, constant), times) == pytest.approx(0.025, abs=2e-4)


def test_values_that_are_not_above_zero_are_invalid() -> None:
    seen = look([*CLOSE, block((100, 0), (100, 100))], RULE, seed=1)
    assert (seen.outcome, seen.is_over, seen.effect) == (Outcome.INVALID, True, None)
    assert seen.reason == "a ratio needs values above zero, and 0 was measured"


def test_no_block_is_undecided() -> None:
    assert look([], RULE, seed=1).outcome is Outcome.UNDECIDED


def test_gives_up_early_when_the_budget_would_not_decide_and_says_what_would() -> None:
    wild = [block((100, 160), (150, 105)), block((155, 101), (103, 161))] * 2
    seen = look(wild, RULE, seed=1)
    assert (seen.outcome, seen.is_over) == (Outcome.UNDECIDED, True)
    assert "blocks would be needed, and the budget has 6" in seen.reason


def test_the_last_look_is_over() -> None:
    blocks = draw(np.random.default_rng(3), 6, 0.04, 1.04)
    assert look(blocks, RULE, seed=1).is_over


def test_more_trials_detect_less() -> None:
    blocks = draw(np.random.default_rng(5), 6, 0.03, 1.0)
    few, many = (look(blocks[:count], RULE, seed=1).detectable for count in (2, 6))
    assert few is not None
    assert many is not None
    assert 0.03 < many < few < 0.3


def test_keeps_its_error_rates_in_a_simulation() -> None:
    generator = np.random.default_rng(20)
    rule = replace(RULE, most_blocks=6)
    deviation = math.log1p(0.05) / 2
    found: dict[float, Counter[Outcome]] = {1.0: Counter(), 1.05: Counter()}
    blocks_used = []
    for ratio, outcomes in found.items():
        for _ in range(150):
            seen, count = run(draw(generator, rule.most_blocks, deviation, ratio), rule)
            outcomes[seen.outcome] += 1
            blocks_used.append(count)
    assert found[1.0][Outcome.REGRESSED] <= 5  # 1 % of 150 is 1.5; more than 5 has a chance below 1 %
    assert found[1.0][Outcome.UNCHANGED] >= 127
    assert found[1.05][Outcome.REGRESSED] >= 135
    assert found[1.05][Outcome.IMPROVED] == 0
    assert np.median(blocks_used) <= 4


def test_the_chance_of_a_decision_is_that_of_what_later_looks_will_probably_estimate() -> None:
    seen = Estimate(
        log_ratio=0.04,
        standard_error=0.03,
        degrees_of_freedom=5,
        baseline_trials=4,
        candidate_trials=4,
    )
    chances = _chances(seen, 1.0, 2, np.array([3, 6, 24, 100]), RULE)
    assert chances == pytest.approx([0.0001, 0.2823, 1.0, 1.0], abs=1e-4)
