"""What a night measures again, and what it bisects: the most relevant first, each pair once."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from analysis.bisecting.bisection import Ending, Inconclusive
from analysis.bisecting.record import BisectionRecord
from analysis.detection.detection import ChangeState
from analysis.judging.judgement import Judgement
from analysis.judging.remeasurement import RemeasurementQuestion, measure_of
from analysis.judging.suspected_changes import choose_open, choose_traceable, is_final, traces
from perf.model.results import Observation, Purpose
from perf.model.rules import TriageEntry, TriageState

Planted = Callable[..., tuple[Observation, ...]]
JudgePlanted = Callable[..., Judgement]


def drop(to: float) -> list[float]:
    return [100.0] * 9 + [to]


@pytest.fixture
def judged(planted: Planted, judge_planted: JudgePlanted) -> Judgement:
    """Return a night with four suspicions, one of them in another experiment, and one too small."""
    releases = range(1, 11)
    return judge_planted(
        planted(drop(94.0), releases),
        planted(drop(60.0), releases, phase="steady", metric="response_time", statistic="p99"),
        planted(drop(50.0), releases, minute=3, workload="sensor-read@0123456789ab"),
        planted(drop(97.0), releases, minute=4, workload="tiny@0123456789ab"),
        planted(drop(80.0), minute=5, workload="old-release@0123456789ab"),
    )


def test_suspicions_are_asked_by_relevance_and_put_together_by_experiment(judged: Judgement) -> None:
    read, write = choose_open(judged.suspects)
    assert [read.key.workload[:11], write.key.workload[:12]] == ["sensor-read", "sensor-write"]
    assert [(one.metric, one.statistic) for one in write.measures] == [
        ("response_time", "p99"),
        ("throughput", "mean"),
    ]
    assert (write.baseline.version, write.candidate.version) == ("5.0.9", "5.0.10")
    assert [one.relevance for one in judged.suspects] == pytest.approx([10.0, 4.0, 1.2])


def test_what_was_decided_about_imported_or_not_measured_tonight_is_not_asked(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    series = planted(drop(80.0), range(1, 11))
    entry = TriageEntry(
        name="known",
        state=TriageState.ACKNOWLEDGED,
        system="cassandra",
        line="5.0",
        sign="drop",
        owner="ada",
        note="known",
    )
    assert choose_open(judge_planted(series).suspects)
    assert judge_planted(series, triage=[entry]).suspects == ()
    imported = [replace(one, purpose=Purpose.IMPORTED) for one in series]
    assert judge_planted(imported).suspects == ()
    newer = planted([1.0] * 12, minute=9, workload="other@0123456789ab")
    assert judge_planted(series, newer).suspects == ()


def test_what_is_confirmed_is_bisected_and_not_asked_again_regressions_first(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    releases = [1] * 9 + [5] * 3
    judgement = judge_planted(
        planted([100.0] * 9 + [180.0] * 3, releases),
        planted([100.0] * 9 + [80.0] * 3, releases, minute=3, workload="worse@0123456789ab"),
    )
    assert {one.change.state for one in judgement.suspects} == {ChangeState.CONFIRMED}
    assert choose_open(judgement.suspects) == ()
    worse, better = choose_traceable(judgement.suspects)
    assert worse.key.workload.startswith("worse@")
    assert better.key.workload.startswith("sensor-write@")
    blamed = [replace(one, is_of_testbed=True) for one in judgement.suspects]
    assert choose_traceable(blamed) == ()


def test_a_bisection_is_of_a_change_where_all_but_the_measure_is_the_same(judged: Judgement) -> None:
    question = choose_open(judged.suspects)[1]
    (first, second), started = question.measures, question.changes[0].series.points[0].started_at
    record = BisectionRecord(
        id="bis-1",
        question_sha256="q",
        purpose=Purpose.BISECTION,
        suite="s",
        experiment="e",
        system="cassandra",
        measure=second,
        releases=(question.baseline, question.candidate),
        most_trials=8,
        most_minutes=5.0,
        trials_per_probe=8,
        started_at=started + timedelta(days=9),
        updated_at=datetime(2026, 11, 12, tzinfo=UTC),
    )
    assert traces(record, question, "e")
    assert traces(replace(record, measure=first), question, "e")
    assert not traces(record, question, "other")
    assert not traces(replace(record, system="mongodb"), question, "e")
    assert not traces(replace(record, releases=record.releases[::-1]), question, "e")
    assert not traces(record, RemeasurementQuestion(changes=question.changes[:1]), "e")
    assert not traces(replace(record, started_at=started - timedelta(days=1)), question, "e")
    assert measure_of(question.key) == first
    ended = Inconclusive(
        ending=Ending.BUDGET,
        good=question.baseline,
        bad=question.candidate,
        skipped=(),
        chances=(),
        steps=(),
        cost_to_finish=4,
        trials=8,
        sentence="the budget was used up",
    )
    assert not is_final(record)
    assert not is_final(replace(record, found=ended))
    assert is_final(replace(record, found=replace(ended, ending=Ending.NOTHING_CHANGED)))
