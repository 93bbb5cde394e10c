import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pytest

from analysis.detection.detection import Detector
from analysis.detection.noise import least_rank_p_value, minimum_detectable_effect
from analysis.detection.verdict import Outcome
from analysis.judging.description import say_basis, say_reason
from analysis.judging.judgement import JudgedSeries, Judgement
from analysis.judging.triage import Sign
from analysis.judging.verdicts import VerdictBasis
from perf.model.results import Observation, TrialStatus
from perf.model.rules import TriageEntry, TriageState

Planted = Callable[..., tuple[Observation, ...]]
JudgePlanted = Callable[..., Judgement]


def plain(text: str) -> str:
    """Return a text without the spaces that keep the name of a night together."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def only(judgement: Judgement) -> JudgedSeries:
    (judged,) = judgement.series
    return judged


def accept(sign: Sign, *nights: str) -> TriageEntry:
    first, last = nights
    return TriageEntry(
        name="meant",
        state=TriageState.EXPECTED,
        system="cassandra",
        line="5.0",
        sign=sign,
        from_night=date.fromisoformat(first),
        to_night=date.fromisoformat(last),
        owner="ana",
        note="as planned",
    )


@pytest.mark.parametrize(
    ("values", "outcome", "significant", "relevant"),
    [
        ([100.0] * 9 + [90.0] * 6, Outcome.REGRESSED, True, True),
        ([100.0] * 9 + [97.0] * 6, Outcome.UNCHANGED, True, False),
        ([100.0] * 15, Outcome.UNCHANGED, False, None),
        ([100.0] * 9 + [90.0] * 2, Outcome.UNDECIDED, None, True),
    ],
)
def test_significant_and_relevant_are_two_answers(
    planted: Planted,
    judge_planted: JudgePlanted,
    *,
    values: list[float],
    outcome: Outcome,
    significant: bool | None,
    relevant: bool | None,
) -> None:
    verdict = only(judge_planted(planted(values))).verdict
    assert (verdict.outcome, verdict.is_significant, verdict.is_relevant) == (
        outcome, significant, relevant,
    )  # fmt: skip


@pytest.mark.parametrize("after", [[], [90.0] * 8, [97.0] * 8])
def test_every_reason_ends_with_what_could_have_been_seen(
    planted: Planted, judge_planted: JudgePlanted, after: list[float]
) -> None:
    judged = only(judge_planted(planted([100.0] * 9 + after)))
    assert judged.noise is not None
    first, fewest, *_ = judged.detectable
    assert first.nights == 1
    reached = [least_rank_p_value(judged.noise.points, fewest.nights - less) for less in (0, 1)]
    assert reached[0] <= 0.001 < reached[1] or fewest.nights == 3
    share = minimum_detectable_effect(judged.noise, fewest.nights, 2e-4)
    assert fewest.relative_change == share
    reported = f"; detectable: ≥ {100 * share:.3g} % after {fewest.nights} nights"
    assert say_reason(judged).endswith(reported)


def test_where_the_noise_is_not_known_nothing_is_claimed_of_it(
    planted: Planted, judge_planted: JudgePlanted, jumps: Callable[..., Detector]
) -> None:
    judged = only(judge_planted(planted([100.0] * 9), detector=jumps(deviation=None)))
    assert judged.noise is None
    assert judged.detectable == ()
    assert "detectable" not in say_reason(judged)


def test_equal_points_and_a_level_of_zero_are_no_claim_to_see_everything(
    planted: Planted, judge_planted: JudgePlanted, jumps: Callable[..., Detector]
) -> None:
    for values, deviation in (([100.0] * 9, 0.0), ([0.0] * 9, 0.5)):
        judged = only(judge_planted(planted(values), detector=jumps(deviation=deviation)))
        assert judged.noise is not None
        assert judged.detectable == ()
        assert "detectable" not in say_reason(judged)


def test_what_could_be_seen_is_reported_also_where_the_newest_trial_failed(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    *good, last = planted([100.0] * 30)
    judged = only(judge_planted((*good, replace(last, status=TrialStatus.FAILED))))
    assert judged.verdict.basis is VerdictBasis.NEWEST_LOST
    assert re.search(r"; detectable: ≥ .* % after 3 nights$", say_reason(judged))


def test_a_moving_target_speaks_of_nights(planted: Planted, judge_planted: JudgePlanted) -> None:
    reason = say_basis(only(judge_planted(planted([100.0] * 9 + [90.0] * 3))))
    assert "between the nights 9 Nov 2026 #1 and 10 Nov 2026 #1" in plain(reason)
    assert "5.0.1" not in reason
    fresh = say_basis(only(judge_planted(planted([100.0] * 9 + [90.0]))))
    assert "since the night 10 Nov 2026 #1 shows, but only 1 point after it; 3 needed" in plain(fresh)
    calm = say_basis(only(judge_planted(planted([100.0] * 9))))
    assert "the newest 3 points (nights 7 Nov 2026 #1 to 9 Nov 2026 #1)" in plain(calm)


def test_what_was_accepted_is_the_new_level(planted: Planted, judge_planted: JudgePlanted) -> None:
    accepted = (accept("drop", "2026-11-09", "2026-11-10"),)
    values = [100.0] * 9 + [80.0] * 9
    judged = only(judge_planted(planted(values), triage=accepted))
    assert judged.verdict.outcome is Outcome.UNCHANGED
    worse = only(judge_planted(planted([*values, *[70.0] * 6]), triage=accepted))
    assert worse.verdict.outcome is Outcome.REGRESSED
    assert worse.verdict.relative_change == pytest.approx(-0.125)


def test_a_fresh_change_that_was_accepted_suspects_nothing(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    accepted = (accept("drop", "2026-11-09", "2026-11-10"),)
    judged = only(judge_planted(planted([100.0] * 9 + [80.0]), triage=accepted))
    assert judged.verdict.outcome is Outcome.UNDECIDED
    assert "expected by ana: as planned (triage entry meant); since then, no change" in (
        say_basis(judged)
    )


def test_an_accepted_gain_after_a_regression_that_still_stands_does_not_hide_it(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    values = [100.0] * 6 + [80.0] * 6 + [84.0] * 6
    accepted = (accept("rise", "2026-11-12", "2026-11-13"),)
    judged = only(judge_planted(planted(values), triage=accepted))
    assert judged.verdict.outcome is Outcome.REGRESSED
    assert judged.verdict.relative_change == pytest.approx(-0.2)


def test_an_accepted_drop_is_not_called_improved_for_what_was_before_it(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    values = [100.0] * 6 + [120.0] * 6 + [90.0] * 6
    accepted = (accept("drop", "2026-11-12", "2026-11-13"),)
    judged = only(judge_planted(planted(values), triage=accepted))
    assert judged.verdict.outcome is Outcome.UNCHANGED


def test_a_suspicion_from_before_the_newest_established_level_is_over(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    judged = only(judge_planted(planted([100.0] * 2 + [90.0] * 9 + [99.0] * 9)))
    assert [change.state for change in judged.change_points] == ["provisional", "confirmed"]
    assert judged.verdict.outcome is Outcome.IMPROVED


def test_a_step_is_provisional_until_enough_points_confirm_it(
    planted: Planted, judge_planted: JudgePlanted, jumps: Callable[..., Detector]
) -> None:
    values = [100.0] * 9 + [85.0] * 5
    verdicts = [
        only(
            judge_planted(planted(values[:count], range(1, count + 1)), detector=jumps(needed=5))
        ).verdict
        for count in (10, 11, 13, 14)
    ]
    assert [verdict.outcome for verdict in verdicts] == [*["undecided"] * 3, "regressed"]
    assert [one.basis for one in verdicts] == [*[VerdictBasis.SUSPICION] * 3, VerdictBasis.CHANGE]
    assert [one.sides for one in verdicts] == [(9, 1), (9, 2), (9, 4), (9, 5)]
    assert {one.needed for one in verdicts[:3]} == {3}


def test_a_step_with_too_few_points_before_it_is_undecided(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    judged = only(judge_planted(planted([100.0] * 2 + [80.0] * 9)))
    assert judged.verdict.outcome is Outcome.UNDECIDED
    assert "only 2 points before it; 3 needed" in say_basis(judged)


def test_of_two_suspicions_the_regression_is_reported(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    judged = only(judge_planted(planted([100.0] * 9 + [120.0, 90.0])))
    assert judged.verdict.outcome is Outcome.UNDECIDED
    assert plain(say_basis(judged)).startswith("a drop of 25 % since the night 11 Nov 2026 #1 shows")


def test_no_interval_says_that_more_than_all_was_lost(
    planted: Planted, judge_planted: JudgePlanted, jumps: Callable[..., Detector]
) -> None:
    wild = judge_planted(planted([100.0] * 12), detector=jumps(deviation=200.0))
    assert "differ from the 9 before by −100.0 % to +" in say_basis(only(wild))
