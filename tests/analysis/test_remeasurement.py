import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from analysis.comparison import Effect, compare_means
from analysis.detection import ChangePoint, State
from analysis.judgement import Judgement
from analysis.noise import Noise
from analysis.remeasurement import CONFIDENCE, MOST, answer, confirm, power, propose
from perf.model import Observation

Planted = Callable[..., tuple[Observation, ...]]
JudgePlanted = Callable[..., Judgement]


def noise(floor: float, persistence: float = 0.0) -> Noise:
    return Noise(deviation=100 * floor, persistence=persistence, level=100.0, points=9, all_points=60)


@pytest.fixture
def change(planted: Planted, judge_planted: JudgePlanted) -> ChangePoint:
    """Give a drop of 10 % between 5.0.9 and 5.0.10."""
    observations = planted([100.0] * 9 + [90.0], releases=range(1, 11))
    (change,) = judge_planted(observations).series[0].change_points
    return change


def test_it_asks_for_the_two_releases_beside_the_change(change: ChangePoint) -> None:
    asked = propose(change, noise(0.02))
    assert asked is not None
    assert (asked.baseline.version, asked.candidate.version) == ("5.0.9", "5.0.10")
    assert asked.key == change.series.key
    assert asked.trials_each == 5
    assert asked.reason == (
        "5 of each show a difference of 10 % against a noise floor of 2 % four times in five"
    )


def test_within_a_release_there_is_nothing_to_compare(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    (change,) = judge_planted(planted([100.0] * 9 + [90.0])).series[0].change_points
    assert propose(change, noise(0.02)) is None


def test_the_number_of_trials_has_bounds_and_says_if_they_are_not_enough(change: ChangePoint) -> None:
    few, many, unknown = (propose(change, one) for one in (noise(0.0), noise(0.2), None))
    assert few is not None
    assert many is not None
    assert unknown is not None
    assert (few.trials_each, many.trials_each, unknown.trials_each) == (2, MOST, MOST)
    assert many.reason.endswith("would need more than 20 of each to show four times in five")
    assert "not known" in unknown.reason


def test_how_nights_follow_each_other_does_not_matter(change: ChangePoint) -> None:
    assert propose(change, noise(0.03, persistence=0.8)) == propose(change, noise(0.03))


@pytest.mark.parametrize(("size", "trials"), [(8.0, 3), (5.0, 5), (3.0, 7), (1.5, 15)])
def test_the_power_is_that_of_the_comparison_it_is_for(size: float, trials: int) -> None:
    """A difference of so many standard deviations is found as often as the formula says."""
    generator = random.Random(f"{size} {trials}")  # noqa: S311  test data, not a secret
    found = 0
    for _ in range(3000):
        before = [generator.gauss(1000, 10) for _ in range(trials)]
        after = [generator.gauss(1000 + 10 * size, 10) for _ in range(trials)]
        found += compare_means(before, after, CONFIDENCE).low > 0
    assert found / 3000 == pytest.approx(power(size * 0.01, 0.01, trials), abs=0.025)


@pytest.mark.parametrize(
    ("low", "high", "agrees", "state"),
    [
        (-0.14, -0.05, True, State.CONFIRMED),
        (-0.04, 0.03, False, State.PROVISIONAL),
        (0.01, 0.03, False, State.PROVISIONAL),
        (-0.14, 0.03, None, State.PROVISIONAL),
    ],
)
def test_an_answer_confirms_refutes_or_leaves_open(
    change: ChangePoint, *, low: float, high: float, agrees: bool | None, state: State
) -> None:
    effect = Effect(relative_change=(low + high) / 2, low=low, high=high, confidence=CONFIDENCE)
    told = answer(change, effect, 5)
    assert told.agrees is agrees
    assert confirm(change, told).state is state


def test_a_refuted_change_is_no_longer_confirmed_and_an_open_one_stays(change: ChangePoint) -> None:
    confirmed = replace(change, state=State.CONFIRMED)
    effect = Effect(relative_change=0.0, low=-0.01, high=0.01, confidence=CONFIDENCE)
    assert confirm(confirmed, answer(change, effect, 5)).state is State.PROVISIONAL
    wide = replace(effect, low=-0.5, high=0.5)
    assert confirm(confirmed, answer(change, wide, 5)) == confirmed
