"""What trials in turns say about a change: read, held against it, and judged with it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from analysis.comparing.blocks import Measure, TrialValue
from analysis.comparing.results import ComparisonResult, MeasureResult, SideRecord, TrialRecord
from analysis.detection.detection import ChangePoint, ChangeState
from analysis.detection.effects import Effect
from analysis.detection.verdict import Outcome
from analysis.judging.description import list_notes, say_basis, say_reason, say_reply
from analysis.judging.incidents import Cause
from analysis.judging.judgement import Judgement
from analysis.judging.remeasurement import (
    RemeasurementQuestion,
    SeriesAnswer,
    agreement,
    compare_command,
    find_reply,
    read_answers,
)
from perf.model.results import Named, Observation, Purpose, TrialStatus

Planted = Callable[..., tuple[Observation, ...]]
JudgePlanted = Callable[..., Judgement]
DROP = [100.0] * 9 + [90.0]
NOW = datetime(2026, 11, 11, 3, 15, tzinfo=UTC)
AGREES, RULED_OUT, OPEN = (-0.14, -0.06), (-0.03, 0.02), (-0.14, 0.03)


@pytest.fixture
def history(planted: Planted) -> tuple[Observation, ...]:
    """Return ten nights of one release each, with a drop of 10 % at the last."""
    return planted(DROP, releases=range(1, 11))


@pytest.fixture
def change(history: tuple[Observation, ...], judge_planted: JudgePlanted) -> ChangePoint:
    (change,) = judge_planted(history).series[0].change_points
    return change


def answer_to(
    change: ChangePoint, interval: tuple[float, float] | None, finished_at: datetime = NOW
) -> SeriesAnswer:
    low, high = interval or (0, 0)
    effect = Effect(relative_change=(low + high) / 2, low=low, high=high, confidence=0.98)
    return SeriesAnswer(
        key=change.series.key,
        baseline=change.last_before.release.version,
        candidate=change.first_after.release.version,
        config_sha256="c" * 12,
        artifacts_sha256=("a", "b"),
        effect=effect if interval else None,
        relevant_change=0.05,
        baseline_trials=4,
        candidate_trials=4,
        comparison="cmp-2026-11-11-1",
        finished_at=finished_at,
    )


@pytest.mark.parametrize(
    ("interval", "agrees"),
    [
        (AGREES, True),
        ((-0.3, -0.12), True),
        ((-0.08, -0.01), True),  # real, in this direction, and it may be large enough to matter
        ((-0.04, -0.01), False),  # real, but too small to matter, and not of this size
        (RULED_OUT, False),
        ((0.01, 0.03), False),
        (OPEN, None),
        (None, None),
    ],
)
def test_an_interval_agrees_rules_out_or_cannot_tell(
    change: ChangePoint, interval: tuple[float, float] | None, *, agrees: bool | None
) -> None:
    assert agreement(change, answer_to(change, interval)) is agrees
    upside_down = interval and (-interval[1], -interval[0])
    rise = replace(change, relative_change=-change.relative_change)
    assert agreement(rise, answer_to(change, upside_down)) is agrees


def test_only_answers_about_this_very_question_count(change: ChangePoint) -> None:
    mine = answer_to(change, AGREES)
    other_workload = replace(mine.key, workload="sensor-write@ffffffffffff")
    for foreign in (
        replace(mine, key=other_workload),
        replace(mine, baseline="5.0.8"),
        replace(mine, candidate="5.0.11"),
    ):
        assert find_reply(change, [foreign], {}) is None
    last = {change.first_after.trial: {"config default": "c" * 12}}
    assert find_reply(change, [mine], last) is not None
    touched = {change.first_after.trial: {"config default": "d" * 12}}
    assert find_reply(change, [mine], touched) is None
    for artifact, is_same in (("b", True), ("a", False)):  # a local copy under the same name
        installed = {change.first_after.trial: {"artifact": artifact}}
        assert (find_reply(change, [mine], installed) is not None) is is_same


def test_the_newest_answer_that_decides_counts(change: ChangePoint) -> None:
    first = answer_to(change, RULED_OUT)
    second = answer_to(change, AGREES, finished_at=NOW + timedelta(days=1))
    third = answer_to(change, OPEN, finished_at=NOW + timedelta(days=2))
    reply = find_reply(change, [third, second, first], {})
    assert reply is not None
    assert (reply.answer, reply.agrees) == (second, True)
    undecided = find_reply(change, [third], {})
    assert undecided is not None
    assert undecided.agrees is None


def test_a_suspicion_that_trials_in_turns_agree_with_is_confirmed(
    history: tuple[Observation, ...], judge_planted: JudgePlanted, change: ChangePoint
) -> None:
    before = judge_planted(history)
    assert before.outcome is Outcome.UNDECIDED
    judgement = judge_planted(history, answers=[answer_to(change, AGREES)])
    (series,), (incident,) = judgement.series, judgement.incidents
    assert series.change_points[0].state is ChangeState.CONFIRMED
    assert series.verdict.outcome is judgement.outcome is Outcome.REGRESSED
    assert (
        "side by side, 4 and 4 interleaved trials (2026-11-11) differ by −10.0 % (−14.0 % to −6.0 %),"
        " which agrees" in list_notes(series.verdict)
    )
    assert (incident.cause, incident.question, incident.is_news) == (Cause.DATABASE, None, True)
    assert [reply.agrees for _, reply in incident.replies] == [True]


def test_one_that_they_rule_out_is_no_news_and_stays_provisional(
    history: tuple[Observation, ...], judge_planted: JudgePlanted, change: ChangePoint
) -> None:
    judgement = judge_planted(history, answers=[answer_to(change, RULED_OUT)])
    (series,), (incident,) = judgement.series, judgement.incidents
    assert series.change_points[0].state is ChangeState.PROVISIONAL
    assert series.verdict.outcome is Outcome.UNDECIDED
    assert say_reason(series).count("which rules out a difference of its size") == 1
    assert (incident.is_news, incident.question) == (False, None)
    assert judgement.suspects == ()


def test_one_that_they_cannot_tell_about_stays_as_it_was_and_both_are_reported(
    history: tuple[Observation, ...], judge_planted: JudgePlanted, change: ChangePoint
) -> None:
    judgement = judge_planted(history, answers=[answer_to(change, OPEN)])
    (series,), (incident,) = judgement.series, judgement.incidents
    assert series.change_points[0].state is ChangeState.PROVISIONAL
    assert "only 1 point after it; 3 needed" in say_basis(series)
    assert "which cannot tell" in list_notes(series.verdict)[0]
    assert incident.is_news
    assert incident.question == RemeasurementQuestion(changes=(incident.lead,))


def test_what_nights_confirm_and_turns_rule_out_is_put_down_to_the_testbed(
    planted: Planted, judge_planted: JudgePlanted, change: ChangePoint
) -> None:
    later = planted([*DROP, 90.0, 90.0], releases=[*range(1, 11), 10, 10])
    plain = judge_planted(later)
    assert plain.outcome is Outcome.REGRESSED
    judgement = judge_planted(later, answers=[answer_to(change, RULED_OUT)])
    (series,), (incident,) = judgement.series, judgement.incidents
    assert series.change_points[0].state is ChangeState.CONFIRMED
    assert series.verdict.outcome is Outcome.UNDECIDED
    assert "is the testbed's, not the database's: side by side" in say_basis(series)
    assert (incident.cause, incident.is_news) == (Cause.TESTBED, True)


def test_what_turns_agree_with_is_the_database_whatever_the_testbed_did(
    planted: Planted, judge_planted: JudgePlanted, change: ChangePoint
) -> None:
    later = planted([*DROP, 90.0, 90.0], releases=range(1, 13))
    canary = planted(
        [10.0] * 9 + [12.0] * 3,
        releases=range(1, 13),
        minute=5,
        phase="canary-before",
        operation="canary",
        metric="canary_cpu",
        statistic="p50",
        host="node-1",
    )
    blamed = judge_planted(later, canary).incidents[0]
    cleared = judge_planted(later, canary, answers=[answer_to(change, AGREES)]).incidents[0]
    assert (blamed.cause, cleared.cause) == (Cause.TESTBED, Cause.DATABASE)
    assert any(one.follows for one in cleared.evidence)


def side(version: str, config: str) -> SideRecord:
    name = Named(name="n", sha256="1" * 12)
    return SideRecord(
        label=version,
        version=version,
        config=Named(name="default", sha256=config),
        artifact_sha256="a" if version == "5.0.9" else "b",
        topology=name,
        testbed=name,
        workload=name,
    )


def result_of(change: ChangePoint, observation: Observation, measure: Measure) -> ComparisonResult:
    four = (TrialValue(value=1.0),) * 4
    return ComparisonResult(
        id="cmp-2026-11-11-1",
        purpose=Purpose.CONFIRMATION,
        suite="s",
        experiment="e",
        system="cassandra",
        baseline=side(change.last_before.release.version, "c" * 12),
        candidate=side(change.first_after.release.version, "c" * 12),
        seed=1,
        question_sha256="q",
        outcome=Outcome.REGRESSED,
        reason="slower",
        ended="decided",
        measures=(
            MeasureResult(
                measure=measure,
                is_trusted=True,
                outcome=Outcome.REGRESSED,
                reason="slower",
                relevant_change=0.05,
                effect=Effect(relative_change=-0.1, low=-0.14, high=-0.06, confidence=0.98),
                baseline=four,
                candidate=four,
            ),
        ),
        trials=(
            TrialRecord(
                id=observation.trial,
                side="baseline",
                block=1,
                status=TrialStatus.COMPLETED,
                duration_s=60.0,
            ),
        ),
        started_at=NOW - timedelta(minutes=8),
        finished_at=NOW,
    )


def test_results_become_answers_where_they_answer_this(
    change: ChangePoint, history: tuple[Observation, ...]
) -> None:
    turn = replace(history[0], purpose=Purpose.CONFIRMATION)
    measure = Measure(phase="saturation", operation="write", metric="throughput", statistic="mean")
    result = result_of(change, turn, measure)
    assert read_answers([result], [turn]) == (answer_to(change, AGREES),)
    (seen,) = result.measures
    beside = replace(result, measures=(replace(seen, is_trusted=False),))
    assert read_answers([beside], [turn]) == read_answers([result], [turn])
    for other in (
        replace(result, measures=(replace(seen, measure=replace(measure, statistic="p50")),)),
        replace(result, candidate=side("5.0.10", "d" * 12)),
        replace(result, remarks=("candidate: planted",)),
        replace(result, purpose=Purpose.BISECTION),
    ):
        assert read_answers([other], [turn]) == ()
    assert read_answers([result], []) == ()


def test_nothing_that_can_be_compared_is_said_so(change: ChangePoint) -> None:
    reply = find_reply(change, [answer_to(change, None)], {})
    assert reply is not None
    assert say_reply(reply).endswith("gave nothing that can be compared")


def test_the_command_asks_the_same(change: ChangePoint) -> None:
    options = "--experiment e --baseline 5.0.9 --candidate 5.0.10 --measure"
    asked = RemeasurementQuestion(changes=(change,))
    measure = "saturation/write/throughput/mean"
    assert compare_command(asked, "s", "e") == f"knickpoint compare --suite s {options} {measure}"
    assert compare_command(asked, "", "e") == f"knickpoint compare {options} {measure}"
