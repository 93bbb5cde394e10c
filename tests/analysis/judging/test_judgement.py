import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from budget import tries
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from analysis.detection.step_detector import StepDetector
from analysis.detection.verdict import Outcome
from analysis.judging.description import list_notes, say_basis, say_judgement
from analysis.judging.judgement import JudgedSeries, Shortage, find_shortage, judge
from perf.model.metrics import DIAGNOSTICS
from perf.model.results import Observation, TrialStatus
from perf.model.rules import Detection

Make = Callable[..., tuple[Observation, ...]]

SETTINGS = Detection(
    max_p_value=2e-4,
    max_rank_p_value=0.001,
    provisional_p_value=0.001,
    provisional_rank_p_value=0.01,
    window_points=100,
    minimum_points=6,
    confirming_points=3,
    false_alarms_per_1000_series_nights=1.0,
    judged={"throughput": ("mean",), "response_time": ("mean",)},
    relevant_change={"throughput": 0.05, "response_time": 0.1},
)
DETECTOR = StepDetector(settings=SETTINGS)


def noise(count: int, mean: float = 100.0, deviation: float = 1.0, seed: int = 1) -> list[float]:
    generator = random.Random(f"{seed} {count} {mean}")  # noqa: S311  test data, not a secret
    return [generator.gauss(mean, deviation) for _ in range(count)]


def judge_one(observations: tuple[Observation, ...]) -> JudgedSeries:
    (judged,) = judge(observations, SETTINGS, DETECTOR).series
    return judged


@pytest.mark.parametrize(
    ("metric", "level", "outcome", "word"),
    [
        ("throughput", 80, Outcome.REGRESSED, "a drop of 20"),
        ("throughput", 120, Outcome.IMPROVED, "a rise of 20"),
        ("response_time", 120, Outcome.REGRESSED, "a rise of 20"),
        ("response_time", 80, Outcome.IMPROVED, "a drop of 20"),
    ],
)
def test_a_confirmed_relevant_step_is_regressed_or_improved(
    make_observations: Make, metric: str, level: float, outcome: Outcome, word: str
) -> None:
    values = noise(20, deviation=0.1) + noise(10, level, 0.1)
    judged = judge_one(make_observations(values, metric=metric))
    assert [change.index for change in judged.change_points] == [20]
    assert judged.verdict.outcome is outcome
    assert word in say_basis(judged)
    assert "between 5.0.20 and 5.0.21 (p < 0.0001, 20 points before, 10 after)" in say_basis(judged)
    assert say_basis(judged).endswith(
        f": significant, and relevant: {'5' if metric == 'throughput' else '10'} % matter"
    )
    assert judged.verdict.change is judged.change_points[0]
    assert (judged.verdict.is_significant, judged.verdict.is_relevant) == (True, True)
    assert judged.verdict.relative_change == judged.change_points[0].relative_change
    assert judged.verdict.p_value == judged.change_points[0].p_value


def test_an_outlier_at_the_last_point_is_never_confirmed_and_then_forgotten(
    make_observations: Make,
) -> None:
    values = [*noise(20, deviation=0.3), 90.0, *noise(12, deviation=0.3, seed=2)]
    outcomes = [
        judge_one(make_observations(values[:count])).verdict.outcome
        for count in range(6, len(values) + 1)
    ]
    assert outcomes[15] is Outcome.UNDECIDED  # the outlier is the last point
    assert outcomes[-1] is Outcome.UNCHANGED
    assert not {Outcome.REGRESSED, Outcome.IMPROVED} & set(outcomes)


def test_a_standing_regression_is_not_hidden_by_an_outlier_after_it(make_observations: Make) -> None:
    judged = judge_one(make_observations([*noise(20), *noise(10, 80), 100.0]))
    assert len(judged.change_points) == 2
    assert judged.verdict.outcome is Outcome.REGRESSED
    assert "between 5.0.20 and 5.0.21" in say_basis(judged)


def test_a_standing_improvement_does_not_hide_a_suspect_after_it(make_observations: Make) -> None:
    judged = judge_one(make_observations([*noise(20), *noise(10, 120), 100.0]))
    assert judged.verdict.outcome is Outcome.UNDECIDED
    assert "since 5.0.31" in say_basis(judged)


def test_a_regression_that_was_mended_is_not_reported_as_standing(make_observations: Make) -> None:
    judged = judge_one(make_observations(noise(20) + noise(15, 80) + noise(15, 100)))
    assert [change.outcome for change in judged.change_points] == ["regressed", "improved"]
    assert judged.verdict.outcome is Outcome.IMPROVED


def test_a_small_gain_does_not_clear_a_regression(make_observations: Make) -> None:
    values = noise(30, 100, 0.2) + noise(25, 80, 0.2) + noise(25, 82, 0.2)
    judged = judge_one(make_observations(values))
    assert [change.index for change in judged.change_points] == [30, 55]
    assert judged.verdict.outcome is Outcome.REGRESSED
    assert "between 5.0.30 and 5.0.31" in say_basis(judged)


def test_small_gains_that_add_up_do_clear_a_regression(make_observations: Make) -> None:
    levels = (100, 92, 95, 98)  # down by 8 %, then up by 3 % twice: 2 % are left
    values = [value for level in levels for value in noise(25, level, 0.2)]
    judged = judge_one(make_observations(values))
    assert len(judged.change_points) == 3
    assert judged.verdict.outcome is Outcome.UNCHANGED


def test_significant_but_not_relevant_is_unchanged_and_says_both_sizes(make_observations: Make) -> None:
    values = noise(30, deviation=0.3) + noise(20, 97, 0.3)
    judged = judge_one(make_observations(values, per_release=5))
    assert len(judged.change_points) == 1
    assert judged.verdict.outcome is Outcome.UNCHANGED
    assert "significant, but smaller than the 5 % that matter" in say_basis(judged)


def test_a_change_that_may_or_may_not_be_relevant_is_undecided(make_observations: Make) -> None:
    judged = judge_one(make_observations(noise(30) + noise(30, 95.4), per_release=30))
    assert abs(judged.change_points[0].relative_change) < 0.05
    assert judged.verdict.outcome is Outcome.UNDECIDED
    assert "not within ±5 %" in say_basis(judged)


def test_a_step_within_one_release_points_at_the_host(make_observations: Make) -> None:
    judged = judge_one(make_observations(noise(20) + noise(10, 80), per_release=30))
    assert judged.verdict.outcome is Outcome.REGRESSED
    assert "between the nights 2026-03-20 and 2026-03-21 (p" in say_basis(judged)
    assert "look at the host and the configuration first" in list_notes(judged.verdict)[0]


def test_unchanged_is_shown_by_an_interval(make_observations: Make) -> None:
    judged = judge_one(make_observations(noise(30, deviation=0.3), per_release=5))
    assert judged.verdict.outcome is Outcome.UNCHANGED
    said = say_basis(judged)
    assert "no change found; the newest 5 points (5.0.6) differ from the 25 before by" in said
    assert "(99 % interval), within ±5 %" in said


def test_finding_nothing_in_much_scatter_is_undecided(make_observations: Make) -> None:
    judged = judge_one(make_observations(noise(30, deviation=10), per_release=5))
    assert judged.verdict.outcome is Outcome.UNDECIDED
    assert "which is not within ±5 %" in say_basis(judged)


def test_a_new_release_with_few_points_borrows_from_the_one_before(make_observations: Make) -> None:
    found = judge_one(make_observations(noise(13, deviation=0.3), per_release=4)).verdict.equivalence
    assert found
    assert (found.before, found.after) == (10, 3)
    assert (found.first.release.version, found.last.release.version) == ("5.0.3", "5.0.4")


def test_nights_of_a_single_release_are_compared_with_each_other(make_observations: Make) -> None:
    judged = judge_one(make_observations(noise(12, deviation=0.3), per_release=12))
    assert judged.verdict.outcome is Outcome.UNCHANGED
    assert "the newest 3 points (nights 2026-03-10 to 2026-03-12) differ from the" in say_basis(judged)


@pytest.mark.parametrize("count", [1, 5])
def test_too_few_points_are_undecided(make_observations: Make, count: int) -> None:
    judged = judge_one(make_observations([100.0] * count))
    assert judged.verdict.outcome is Outcome.UNDECIDED
    assert say_basis(judged) == f"{count} of at least 6 points: too few to judge"


def test_the_fewest_points_allowed_are_judged_without_a_crash(make_observations: Make) -> None:
    few = replace(SETTINGS, minimum_points=4)
    (judged,) = judge(make_observations([100.0, 101.0, 99.0, 100.0]), few, DETECTOR).series
    assert judged.verdict.outcome is Outcome.UNDECIDED
    assert "too few points to compare" in say_basis(judged)


def test_a_series_without_a_valid_trial_is_invalid(make_observations: Make) -> None:
    observations = [replace(one, status=TrialStatus.FAILED) for one in make_observations([1.0] * 9)]
    judgement = judge(observations, SETTINGS, DETECTOR)
    assert judgement.series[0].verdict.outcome is Outcome.INVALID
    assert say_judgement(judgement) == "Cannot tell: of 1 series, 1 invalid"


def test_a_metric_without_a_rule_is_invalid_not_fine(make_observations: Make) -> None:
    for metric in ("service_time", "unheard_of"):
        judged = judge_one(make_observations([1.0] * 9, metric=metric))
        assert judged.verdict.outcome is Outcome.INVALID
        assert f"no relevant change is configured for metric {metric}" in say_basis(judged)


@pytest.mark.parametrize("metric", DIAGNOSTICS)
def test_diagnostics_are_left_out_even_if_they_should_have_been_judged(
    make_observations: Make, metric: str
) -> None:
    judged = {**SETTINGS.judged, metric: ("mean",)}
    diagnostic = make_observations(noise(20) + noise(10, 300), metric=metric)
    of_host = make_observations(noise(30), metric=metric, host="node-1")
    usual = make_observations(noise(30))
    judgement = judge((*diagnostic, *usual, *of_host), replace(SETTINGS, judged=judged), DETECTOR)
    assert [one.series.key.metric for one in judgement.series] == ["throughput"]


def test_the_answer_of_a_search_is_judged_like_throughput_but_not_its_ends(
    make_observations: Make,
) -> None:
    settings = replace(
        SETTINGS,
        judged={"highest_load": ("estimate",)},
        relevant_change={"highest_load": 0.05},
    )
    values = noise(20) + noise(10, 80)
    observations = [
        one
        for statistic in ("lower", "estimate", "upper")
        for one in make_observations(values, metric="highest_load", statistic=statistic)
    ]
    (judged,) = judge(observations, settings, DETECTOR).series
    assert judged.series.key.statistic == "estimate"
    assert judged.verdict.outcome is Outcome.REGRESSED
    assert "a drop of 19.5 %" in say_basis(judged)


def test_an_invalid_newest_trial_takes_unchanged_away(make_observations: Make) -> None:
    *good, last = make_observations(noise(13, deviation=0.3), per_release=4)
    assert judge_one(tuple(good)).verdict.outcome is Outcome.UNCHANGED
    judged = judge_one((*good, replace(last, status=TrialStatus.INVALID)))
    assert judged.verdict.outcome is Outcome.UNDECIDED
    assert "the newest trial, trial-0012 of 5.0.4, is invalid" in say_basis(judged)


def test_an_invalid_newest_trial_does_not_take_a_regression_away(make_observations: Make) -> None:
    *good, last = make_observations(noise(20) + noise(10, 80))
    verdict = judge_one((*good, replace(last, status=TrialStatus.FAILED))).verdict
    assert verdict.outcome is Outcome.REGRESSED


def test_an_invalid_trial_in_the_middle_costs_only_its_point(make_observations: Make) -> None:
    observations = list(make_observations(noise(13, deviation=0.3), per_release=4))
    observations[5] = replace(observations[5], status=TrialStatus.INVALID)
    judged = judge_one(tuple(observations))
    assert len(judged.series.points) == 12
    assert judged.verdict.outcome is Outcome.UNCHANGED


@given(seed=st.integers(0, 1000))
@examples(max_examples=20, deadline=None)
def test_the_order_of_observations_does_not_matter(make_observations: Make, seed: int) -> None:
    observations = [
        *make_observations(noise(10, seed=seed) + noise(8, 90, seed=seed)),
        *make_observations(noise(12, seed=seed), metric="response_time"),
    ]
    shuffled = random.Random(seed).sample(observations, len(observations))  # noqa: S311  test data
    assert judge(shuffled, SETTINGS, DETECTOR) == judge(observations, SETTINGS, DETECTOR)


def test_an_empty_history_is_not_fine() -> None:
    judgement = judge((), SETTINGS, DETECTOR)
    assert judgement.outcome is Outcome.UNDECIDED
    assert say_judgement(judgement) == "Nothing to judge: the history holds no measured series yet"


def test_the_overall_sentence_shows_how_many_nights_are_missing(make_observations: Make) -> None:
    # Two releases, measured on one night; then on two nights.
    one_night = [make_observations([1.0, 1.0], operation=name) for name in ("write", "read")]
    judgement = judge(sum(one_night, ()), SETTINGS, DETECTOR)
    assert judgement.outcome is Outcome.UNDECIDED
    assert say_judgement(judgement) == (
        "Cannot tell yet: of 2 series, 2 undecided;"
        " 2 have fewer than 6 points (1 night so far, about 2 more needed)"
    )
    judgement = judge(make_observations([1.0] * 4, per_release=2), SETTINGS, DETECTOR)
    shortage = find_shortage(judgement.series, 6)
    assert shortage == Shortage(series=1, minimum=6, nights=2, missing=1)


def test_the_overall_sentence_counts_every_outcome_worst_first(make_observations: Make) -> None:
    observations = (
        *make_observations(noise(20) + noise(10, 80), operation="worse"),
        *make_observations(noise(20) + noise(10, 120), operation="better"),
        *make_observations(noise(30, deviation=0.1), operation="same"),
        *make_observations(noise(30, deviation=20), operation="noisy"),
        *make_observations([1.0], operation="young"),
        *make_observations([1.0] * 9, metric="unheard_of"),
    )
    judgement = judge(observations, SETTINGS, DETECTOR)
    assert judgement.outcome is Outcome.REGRESSED
    assert say_judgement(judgement) == (
        "Regressed: of 6 series, 1 regressed, 1 invalid, 2 undecided, 1 improved, 1 unchanged;"
        " 1 has fewer than 6 points (1 night so far, about 5 more needed);"
        " expected false alarms: 0.004 in the 4 series that could confirm a change"
    )


def test_a_history_without_changes_raises_few_false_alarms(make_observations: Make) -> None:
    """Measured with these seeds over 200 series of 30 points: 0 false, 153 unchanged, 47 undecided."""
    count = tries(200)
    outcomes = [
        judge_one(make_observations(noise(30, deviation=2, seed=seed), per_release=6)).verdict.outcome
        for seed in range(count)
    ]
    assert outcomes.count(Outcome.REGRESSED) + outcomes.count(Outcome.IMPROVED) <= count // 200
    assert outcomes.count(Outcome.UNCHANGED) >= 0.75 * count


@pytest.mark.slow
def test_a_night_by_night_replay_raises_few_false_alarms(make_observations: Make) -> None:
    """Measured with these seeds over 1 000 nights (40 series, 6 to 30 points): 0 alarms, 0 suspects."""
    alarms = suspects = 0
    for seed in range(40):
        observations = make_observations(noise(30, seed=seed))
        for count in range(6, 31):
            judged = judge_one(observations[:count])
            alarms += judged.verdict.outcome in (Outcome.REGRESSED, Outcome.IMPROVED)
            suspects += bool(judged.change_points)
    assert alarms == 0
    assert suspects <= 5


def test_a_true_change_is_rarely_called_unchanged(make_observations: Make) -> None:
    """A drop of exactly the relevant 5 % in 3 % of scatter: 1 of 200 is called unchanged."""
    wrong, count = 0, tries(200)
    for seed in range(count):
        values = noise(12, deviation=3, seed=seed) + noise(6, 95, 3, seed=seed)
        verdict = judge_one(make_observations(values, per_release=6)).verdict
        wrong += verdict.outcome is Outcome.UNCHANGED
    assert wrong <= 0.02 * count


def test_only_the_configured_statistics_get_a_series(make_observations: Make) -> None:
    kept = make_observations([1.0] * 3, metric="throughput", statistic="mean")
    other = make_observations([1.0] * 3, metric="throughput", statistic="max")
    judgement = judge((*kept, *other), SETTINGS, DETECTOR)
    assert [one.series.key.statistic for one in judgement.series] == ["mean"]
