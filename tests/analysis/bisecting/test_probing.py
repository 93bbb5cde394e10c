import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias

import pytest
from catalogs import shipped

from analysis.bisecting.probing import (
    LevelSpan,
    Probed,
    ReleaseLevel,
    ReleaseStatus,
    classify,
    probe_look,
    read_probe,
    stand,
)
from analysis.bisecting.search import weigh
from analysis.comparing.blocks import Block, Measure, TrialValue
from analysis.comparing.paired import Estimate, estimate
from analysis.comparing.results import ComparisonResult, SideRecord, TrialRecord
from analysis.comparing.sequential import StoppingRule
from analysis.comparing.turns import Inquiry, build_blocks, judge_measures
from analysis.detection.effects import Effect
from analysis.detection.verdict import Outcome
from perf.model.results import (
    SIDES,
    Named,
    Purpose,
    Release,
    Sample,
    SideName,
    Taken,
    Trial,
    TrialStatus,
)

RELEASE = Release(system="fake", version="5.0.3", line="5.0", ordinal=3)
MEASURE = Measure(phase="steady", operation="write", metric="throughput", statistic="mean")
SETTINGS = shipped().detection
SHIFTS = dict(zip(SIDES, (0, 1), strict=True))
TakeTurn: TypeAlias = Callable[[int, str, SideName, float], Taken]
RULE = StoppingRule(
    higher_is_better=True, relevant_change=0.02, false_share=0.01, missed_share=0.02, most_blocks=10
)
SPAN = LevelSpan(
    lower=ReleaseLevel(), upper=ReleaseLevel(log_ratio=0.1, standard_error=0.002, half_width=0.005)
)


def found(level: float, half: float) -> tuple[Estimate, Effect]:
    known = Estimate(
        log_ratio=level,
        standard_error=half / 3,
        degrees_of_freedom=11,
        baseline_trials=8,
        candidate_trials=8,
    )
    low, high = math.expm1(level - half), math.expm1(level + half)
    return known, Effect(relative_change=math.expm1(level), low=low, high=high, confidence=0.9)


def block(change: float, scatter: float = 0.004) -> Block:
    return Block(
        baseline=(TrialValue(value=100.0), TrialValue(value=100 * math.exp(scatter))),
        candidate=(
            TrialValue(value=100 * math.exp(change)),
            TrialValue(value=100 * math.exp(change + scatter)),
        ),
    )


@pytest.mark.parametrize(
    ("level", "half", "standing"),
    [
        (0.0, 0.05, ReleaseStatus.GOOD),
        (0.0, 0.07, ReleaseStatus.UNDECIDED),
        (0.02, 0.05, ReleaseStatus.UNDECIDED),
        (0.1, 0.05, ReleaseStatus.BAD),
        (0.1, 0.07, ReleaseStatus.UNDECIDED),
        (0.13, 0.05, ReleaseStatus.BAD),
        (0.05, 0.02, ReleaseStatus.BETWEEN),
        (0.05, 0.06, ReleaseStatus.UNDECIDED),
        (-0.1, 0.05, ReleaseStatus.OPPOSITE),
        (-0.02, 0.05, ReleaseStatus.GOOD),
    ],
)
def test_two_thresholds_and_more_trials_between_them(
    level: float, half: float, standing: ReleaseStatus
) -> None:
    assert classify(*found(level, half), SPAN) is standing
    # A drop is read like a rise.
    fall = LevelSpan(
        lower=ReleaseLevel(), upper=ReleaseLevel(log_ratio=-0.1, standard_error=0.002, half_width=0.005)
    )
    assert classify(*found(-level, half), fall) is standing


def test_a_probe_is_read_by_the_levels_of_its_step() -> None:
    upper = LevelSpan(lower=ReleaseLevel(log_ratio=0.1), upper=ReleaseLevel(log_ratio=0.2))
    assert classify(*found(0.1, 0.05), upper) is ReleaseStatus.GOOD
    assert classify(*found(0.2, 0.05), upper) is ReleaseStatus.BAD
    assert classify(*found(0.15, 0.02), upper) is ReleaseStatus.BETWEEN


def test_a_full_change_that_is_not_known_well_makes_nobody_be_between() -> None:
    vague = LevelSpan(
        lower=ReleaseLevel(), upper=ReleaseLevel(log_ratio=0.1, standard_error=0.02, half_width=0.06)
    )
    assert classify(*found(0.06, 0.02), vague) is ReleaseStatus.BAD


def test_an_interval_without_an_end_shows_nothing() -> None:
    known, _ = found(0.1, 0.05)
    endless = Effect(relative_change=0.1, low=-1.0, high=math.inf, confidence=0.9)
    assert classify(known, endless, SPAN) is ReleaseStatus.UNDECIDED
    level = ReleaseLevel(log_ratio=0.1, standard_error=1.0, half_width=math.inf)
    assert (
        classify(*found(0.0, 0.01), LevelSpan(lower=ReleaseLevel(), upper=level)) is ReleaseStatus.GOOD
    )


def test_what_was_not_measured_is_skipped() -> None:
    assert stand(Probed(release=RELEASE, reason="it does not start"), SPAN) is ReleaseStatus.SKIPPED


@pytest.mark.parametrize(
    ("change", "higher_is_better", "outcome"),
    [
        (0.0, True, Outcome.UNCHANGED),
        (0.1, True, Outcome.IMPROVED),
        (0.1, False, Outcome.REGRESSED),
    ],
)
def test_a_probe_is_over_once_it_is_classified(
    change: float,
    higher_is_better: bool,  # noqa: FBT001
    outcome: Outcome,
) -> None:
    rule = replace(RULE, higher_is_better=higher_is_better)
    one = probe_look([block(change)], rule, 1, full_change=SPAN)
    assert (one.outcome, one.is_over) == (Outcome.UNDECIDED, False)
    two = probe_look([block(change)] * 2, rule, 1, full_change=SPAN)
    assert (two.outcome, two.is_over) == (outcome, True)


def test_between_the_thresholds_more_trials_are_worth_it_until_the_budget_ends() -> None:
    blocks = [block(0.05, scatter=0.09)] * 4
    seen = probe_look(blocks, RULE, 1, full_change=SPAN)
    assert (seen.outcome, seen.is_over) == (Outcome.UNDECIDED, False)
    short = replace(RULE, most_blocks=4)
    assert probe_look(blocks, short, 1, full_change=SPAN).is_over


def test_the_bad_end_is_over_once_the_change_is_known_to_half_its_size() -> None:
    shows = probe_look([block(0.1, scatter=0.004)] * 2, RULE, 1, full_change=None)
    assert (shows.outcome, shows.is_over) == (Outcome.IMPROVED, True)
    vague = probe_look([block(0.1, scatter=0.05)] * 3, RULE, 1, full_change=None)
    assert vague.effect is not None
    assert vague.effect.low > 0
    assert (vague.outcome, vague.is_over) == (Outcome.IMPROVED, False)
    same = probe_look([block(0.0, scatter=0.002)] * 2, RULE, 1, full_change=None)
    assert (same.outcome, same.is_over) == (Outcome.UNCHANGED, True)
    small = probe_look([block(0.01, scatter=0.0005)] * 2, RULE, 1, full_change=None)
    assert small.effect is not None
    assert small.effect.low > 0
    assert (small.outcome, small.is_over) == (Outcome.UNCHANGED, True), "it is not worth acting on"


def test_a_second_probe_asks_for_more_certainty() -> None:
    firm = LevelSpan(lower=SPAN.lower, upper=SPAN.upper, is_firm=True)
    blocks = [block(0.0, scatter=0.02)] * 2
    plain = probe_look(blocks, RULE, 1, full_change=SPAN).effect
    wide = probe_look(blocks, RULE, 1, full_change=firm).effect
    assert plain is not None
    assert wide is not None
    assert wide.high > 1.3 * plain.high


def test_values_without_a_ratio_end_a_probe() -> None:
    broken = Block(baseline=(TrialValue(value=0.0),) * 2, candidate=(TrialValue(value=1.0),) * 2)
    seen = probe_look([broken] * 2, RULE, 1, full_change=SPAN)
    assert (seen.outcome, seen.is_over) == (Outcome.INVALID, True)


@pytest.fixture
def turn(make_trial: Callable[..., Trial]) -> TakeTurn:
    def take(block: int, pair: str, side: SideName, value: float) -> Taken:
        sample = Sample(
            phase="steady", operation="write", metric="throughput", statistic="mean", value=value
        )
        status = TrialStatus.COMPLETED if value else TrialStatus.INVALID
        trial = make_trial(id=f"cmp.{block:02}{pair}.{side}", status=status, samples=(sample,))
        return Taken(block=block, pair=pair, side=side, trial=trial)

    return take


def whole(turn: TakeTurn, block: int, change: float, pairs: Sequence[str] = ("1", "2")) -> list[Taken]:
    """Take the turns of a block; blocks differ in level far more than the two sides do, as nights."""
    level = 100 * (block % 1000)
    return [
        turn(block, pair, side, level * (1 + 0.001 * number) * math.exp(change * shift))
        for number, pair in enumerate(pairs)
        for side, shift in SHIFTS.items()
    ]


def result(taken: Sequence[Taken]) -> ComparisonResult:
    name = Named(name="default", sha256="0" * 12)
    side = SideRecord(
        label="5.0.0", version="5.0.0", config=name, topology=name, testbed=name, workload=name
    )
    inquiry = Inquiry(settings=SETTINGS, trusted=(MEASURE,), most_blocks=10, seed=1)
    return ComparisonResult(
        id="cmp",
        purpose=Purpose.BISECTION,
        suite="nightly",
        experiment="write",
        system="fake",
        baseline=side,
        candidate=side,
        seed=1,
        question_sha256="",
        outcome=Outcome.UNDECIDED,
        reason="no valid trial of the candidate",
        ended="",
        measures=judge_measures(taken, inquiry),
        trials=tuple(
            TrialRecord(
                id=one.trial.id,
                side=one.side,
                block=one.block,
                status=one.trial.status,
                duration_s=60.0,
            )
            for one in taken
        ),
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        finished_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def test_reads_a_probe_off_its_comparison(turn: TakeTurn) -> None:
    changes = (0.1, 0.11, 0.09)
    taken = [one for block, change in enumerate(changes, 1) for one in whole(turn, block, change)]
    probed = read_probe(RELEASE, result(taken), MEASURE)
    assert probed.trials == 12
    assert probed.effect is not None
    assert probed.relevant_change == SETTINGS.relevant_change["throughput"]
    assert probed.estimate == estimate(build_blocks(taken, MEASURE), 1)


def test_nights_fresh_blocks_and_one_that_lost_a_trial_each_count_by_themselves(turn: TakeTurn) -> None:
    nights = [one for block in range(1001, 1005) for one in whole(turn, block, 0.1, pairs=("",))]
    fresh = [one for block in (1, 2) for one in whole(turn, block, 0.1)]
    lost = [turn(3, "2", "baseline", 300.0), turn(3, "2", "candidate", 0.0)]
    taken = [*nights, *fresh, *whole(turn, 3, 0.1, pairs=("1",)), *lost]
    known = read_probe(RELEASE, result(taken), MEASURE).estimate
    assert known == estimate(build_blocks(taken, MEASURE), 1)
    assert known is not None
    assert known.standard_error < 0.002
    assert (known.baseline_trials, known.candidate_trials) == (9, 9)


def test_a_comparison_without_a_ratio_is_no_measurement(turn: TakeTurn) -> None:
    few = result(whole(turn, 1, 0.1))
    probed = read_probe(RELEASE, few, MEASURE)
    assert (probed.estimate, probed.effect) == (None, None)
    assert probed.reason == "no valid trial of the candidate"
    other = Measure(phase="steady", operation="read", metric="throughput", statistic="mean")
    assert read_probe(RELEASE, few, other).estimate is None


def test_chances_of_exact_measurements_are_certain() -> None:
    exact = ReleaseLevel(log_ratio=0.1, standard_error=0.001, degrees_of_freedom=30)
    same = ReleaseLevel(standard_error=0.001, degrees_of_freedom=30)
    chances = weigh(4, [(0, same), (2, exact)], ReleaseLevel(), exact, 0.1)
    assert chances == pytest.approx((0, 0.5, 0.5, 0), abs=0.01)


def test_chances_follow_the_likelihood() -> None:
    # One release of two, 1.5 normal standard errors from the good end and 0.5 from the bad one.
    upper = ReleaseLevel(log_ratio=2.0)
    between = ReleaseLevel(log_ratio=1.5, standard_error=1.0)
    first, second = weigh(2, [(0, between)], ReleaseLevel(), upper, 1e-9)
    assert first / second == pytest.approx(math.exp((1.5**2 - 0.5**2) / 2), rel=0.01)
    assert first + second == pytest.approx(1)


def test_a_level_of_its_own_speaks_against_a_single_change() -> None:
    upper = ReleaseLevel(log_ratio=0.1, standard_error=0.004, degrees_of_freedom=30)
    middle = ReleaseLevel(log_ratio=0.05, standard_error=0.004, degrees_of_freedom=30)
    assert sum(weigh(3, [(1, middle)], ReleaseLevel(), upper, 0.1)) < 0.01
    assert sum(weigh(3, [], ReleaseLevel(), upper, 0.1)) == pytest.approx(0.9)
