from collections.abc import Callable
from dataclasses import replace

import pytest

from analysis.detection.detection import ChangeState, Detector
from analysis.detection.verdict import Outcome
from analysis.judging.description import say_basis, say_judgement
from analysis.judging.findings import adjust
from analysis.judging.judgement import Judgement
from perf.model.results import Observation, Purpose

Planted = Callable[..., tuple[Observation, ...]]
JudgePlanted = Callable[..., Judgement]
STEP = [100.0] * 9 + [90.0] * 3
"""It has three points after it on the last night, so that is when it becomes confirmed."""


def test_p_values_are_adjusted_as_benjamini_and_hochberg_say() -> None:
    # By hand: 0.01 · 4 / 1, 0.02 · 4 / 2, 0.04 · 4 / 3, 0.9 · 4 / 4, each at most the one after it.
    assert adjust([0.04, 0.01, 0.9, 0.02]) == pytest.approx((0.16 / 3, 0.04, 0.9, 0.04))
    assert adjust([]) == ()
    assert adjust([1.0, 1.0]) == (1.0, 1.0)


def series_of_a_night(planted: Planted, changed: int, count: int) -> list[tuple[Observation, ...]]:
    return [
        planted(STEP if number < changed else [100.0] * 12, operation=f"write-{number:02d}")
        for number in range(count)
    ]


def test_a_lone_weak_change_among_many_series_has_to_wait(
    planted: Planted, judge_planted: JudgePlanted, jumps: Callable[..., Detector]
) -> None:
    weak = jumps(p_value=0.005)
    alone = judge_planted(*series_of_a_night(planted, 1, 1), detector=weak).series[0]
    assert alone.verdict.outcome is Outcome.REGRESSED
    judgement = judge_planted(*series_of_a_night(planted, 1, 40), detector=weak)
    judged = judgement.series[0]
    assert judged.change_points[0].state is ChangeState.PROVISIONAL
    assert judged.verdict.outcome is Outcome.UNDECIDED
    assert (
        "shows, but among tonight's 40 series chance alone may make it: there, its p-value becomes 0.2,"
        " and at most 0.1 is believed"
    ) in say_basis(judged)
    (alert,) = judged.alerts
    assert (alert.state, alert.confirmed_at) == (ChangeState.PROVISIONAL, None)


def test_the_same_change_in_many_series_is_believed(
    planted: Planted, judge_planted: JudgePlanted, jumps: Callable[..., Detector]
) -> None:
    judgement = judge_planted(*series_of_a_night(planted, 4, 40), detector=jumps(p_value=0.005))
    assert [one.verdict.outcome for one in judgement.series[:5]] == [*["regressed"] * 4, "unchanged"]


def test_what_was_confirmed_on_an_earlier_night_stays(
    planted: Planted, judge_planted: JudgePlanted, jumps: Callable[..., Detector]
) -> None:
    old = planted([*STEP, 90.0], operation="old")
    quiet = [planted([100.0] * 13, operation=f"write-{number:02d}") for number in range(40)]
    judgement = judge_planted(old, *quiet, detector=jumps(p_value=0.005))
    assert judgement.series[0].verdict.outcome is Outcome.REGRESSED


def test_series_that_were_not_measured_tonight_do_not_compete(
    planted: Planted, judge_planted: JudgePlanted, jumps: Callable[..., Detector]
) -> None:
    before_tonight = [planted([100.0] * 11, operation=f"write-{number:02d}") for number in range(40)]
    judgement = judge_planted(
        planted(STEP, operation="a"), *before_tonight, detector=jumps(p_value=0.005)
    )
    assert judgement.series[0].verdict.outcome is Outcome.REGRESSED


def test_a_derived_series_and_its_origin_are_one_question(
    planted: Planted, judge_planted: JudgePlanted, jumps: Callable[..., Detector]
) -> None:
    def priced(changed: int) -> list[tuple[Observation, ...]]:
        measured = series_of_a_night(planted, changed, 40)
        return [
            tuple(
                replace(
                    one,
                    key=replace(one.key, metric="operations_per_dollar"),
                    value=one.value * 2400,
                )
                for one in series
            )
            for series in measured
        ] + measured

    # The same p-values stand or fall with them and without them.
    weak = judge_planted(*priced(1), detector=jumps(p_value=0.005))
    states = {one.state for judged in weak.series for one in judged.change_points}
    assert states == {ChangeState.PROVISIONAL}
    reasons = [say_basis(one) for one in weak.series if one.change_points]
    assert len(reasons) == 2
    assert all("among tonight's 40 series" in reason for reason in reasons)
    assert weak.expected_false_alarms == pytest.approx(0.08)
    assert say_judgement(weak).endswith(
        "; expected false alarms: 0.08 in the 40 series that could confirm a change"
    )
    strong = judge_planted(*priced(4), detector=jumps(p_value=0.005))
    assert sum(one.verdict.outcome is Outcome.REGRESSED for one in strong.series) == 8


def test_the_expected_number_of_false_alarms_is_reported(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    judgement = judge_planted(*series_of_a_night(planted, 0, 50))
    assert judgement.expected_false_alarms == pytest.approx(0.1)
    assert say_judgement(judgement).endswith(
        "; expected false alarms: 0.1 in the 50 series that could confirm a change"
    )


def test_what_was_not_measured_tonight_raises_no_false_alarm_tonight(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    stale = planted([100.0] * 11, operation="stale")
    imported = planted([100.0] * 12, operation="imported", purpose=Purpose.IMPORTED)
    judgement = judge_planted(*series_of_a_night(planted, 0, 50), stale, imported)
    assert judgement.expected_false_alarms == pytest.approx(0.1)
    assert say_judgement(judgement).endswith(
        "; expected false alarms: 0.1 in the 50 series that could confirm a change"
    )


def test_a_bulk_import_alerts_nobody(planted: Planted, judge_planted: JudgePlanted) -> None:
    imported = planted([100.0] * 9 + [80.0] * 9, purpose=Purpose.IMPORTED)
    judgement = judge_planted(imported)
    (judged,) = judgement.series
    assert judged.change_points[0].outcome is Outcome.REGRESSED
    assert judged.change_points[0].state is ChangeState.CONFIRMED
    assert judgement.outcome is Outcome.UNCHANGED
    assert "all that lies after it was imported in bulk, which is no news; since then," in (
        say_basis(judged)
    )
    assert [incident.is_news for incident in judgement.incidents] == [False]


def test_an_import_takes_no_part_in_a_nights_discoveries(
    planted: Planted, judge_planted: JudgePlanted, jumps: Callable[..., Detector]
) -> None:
    imported = planted(STEP, purpose=Purpose.IMPORTED, operation="a")
    quiet = series_of_a_night(planted, 0, 40)
    judgement = judge_planted(imported, *quiet, detector=jumps(p_value=0.005))
    assert judgement.series[0].change_points[0].state is ChangeState.CONFIRMED


def test_one_point_measured_here_after_an_import_makes_it_news(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    imported = planted([100.0] * 9 + [80.0] * 9, purpose=Purpose.IMPORTED)
    measured = planted([100.0] * 9 + [80.0] * 10)[-1:]
    judgement = judge_planted(imported, measured)
    assert judgement.outcome is Outcome.REGRESSED
    assert judgement.incidents[0].is_news
