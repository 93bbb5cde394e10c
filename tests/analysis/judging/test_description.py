from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from analysis.detection.alerts import Alert
from analysis.detection.detection import (
    ChangeState,
    DetectorResult,
    Drift,
    Shift,
    SpreadChange,
    find_changes,
)
from analysis.detection.effects import Effect
from analysis.detection.noise import Noise
from analysis.detection.series import build_series
from analysis.detection.verdict import Outcome
from analysis.judging.description import describe
from analysis.judging.drift import WatchEvidence, WatchState
from analysis.judging.explanations import Explanation
from analysis.judging.incidents import Cause, Incident
from analysis.judging.judgement import Detectable, JudgedSeries, Judgement
from analysis.judging.remeasurement import RemeasurementQuestion, Reply, SeriesAnswer
from analysis.judging.verdicts import (
    ChangeRemark,
    Verdict,
    VerdictBasis,
    WithinRelease,
    find_reported,
)
from perf.model.results import Observation
from perf.model.rules import TriageEntry, TriageState

Make = Callable[..., tuple[Observation, ...]]
REGRESSED = Verdict(outcome=Outcome.REGRESSED, basis=VerdictBasis.NO_TRIAL)
ENTRY = TriageEntry(
    name="batch",
    state=TriageState.ACKNOWLEDGED,
    system="cassandra",
    line="5.0",
    sign="drop",
    owner="ada",
    note="commit log in batches",
)


@pytest.fixture
def judged(make_observations: Make) -> JudgedSeries:
    """Return a series of ten points, one release each, that drops by a tenth at the seventh."""
    observations = [
        replace(one, night=f"2026-03-01-{place}")
        for place, one in enumerate(make_observations([1000.0] * 6 + [900.0] * 4), start=1)
    ]
    (series,) = build_series(observations)
    shift = Shift(index=6, earliest=6, latest=6, p_value=1e-9, is_confirmed=True)
    alert = Alert(
        index=3,
        earliest=2,
        latest=4,
        rises=True,
        relative_change=0.04,
        state=ChangeState.PROVISIONAL,
        provisional_at=4,
        confirmed_at=None,
        withdrawn_at=5,
    )
    return JudgedSeries(
        series=series,
        change_points=find_changes(series, DetectorResult(shifts=(shift,)), "steps"),
        verdict=REGRESSED,
        noise=Noise(deviation=10.0, persistence=0.0, level=1000.0, points=10, all_points=60),
        detectable=(
            Detectable(nights=1, relative_change=0.062),
            Detectable(nights=3, relative_change=0.041),
        ),
        drifts=(Drift(first=0, last=3, before=1000.0, after=1050.0),),
        spreads=(SpreadChange(index=4, before=1.0, after=2.5, p_value=1e-6),),
        alerts=(alert, replace(alert, index=6, withdrawn_at=None)),
    )


@pytest.fixture
def incident(judged: JudgedSeries) -> Incident:
    """Return an incident of that drop with all that an incident can have."""
    (change,) = judged.change_points
    answer = SeriesAnswer(
        key=judged.series.key,
        baseline="5.0.6",
        candidate="5.0.7",
        config_sha256="",
        artifacts_sha256=("a", "b"),
        effect=Effect(relative_change=-0.06, low=-0.13, high=0.01, confidence=0.98),
        relevant_change=0.05,
        baseline_trials=4,
        candidate_trials=3,
        comparison="cmp-1",
        finished_at=datetime(2026, 3, 2, tzinfo=UTC),
    )
    return Incident(
        name="0a1b2c3d",
        lead=change,
        changes=(change,),
        fixed_by=(replace(change, relative_change=0.11),),
        cause=Cause.TESTBED,
        evidence=(
            WatchEvidence(
                key=replace(judged.series.key, line="4.1.0"),
                state=WatchState.STILL,
                before=6,
                after=4,
                visible=0.02,
            ),
        ),
        explanations=(Explanation(name="kernel of node-1", before="6.1.0", after="6.8.0"),),
        triage=ENTRY,
        is_news=False,
        question=RemeasurementQuestion(changes=(change,)),
        replies=((change, Reply(answer=answer, agrees=None)),),
        came_back_after=ENTRY,
    )


def lines(judgement: Judgement) -> list[str]:
    return [" ".join(line.split()) for line in describe(judgement)]


def test_a_series_is_reported_with_all_that_was_seen_in_it(judged: JudgedSeries) -> None:
    (change,) = judged.change_points
    told_about = Verdict(
        outcome=Outcome.REGRESSED,
        basis=VerdictBasis.CHANGE,
        change=change,
        sides=(6, 4),
        is_relevant=True,
        relevant_change=0.05,
        remark=ChangeRemark(notes=(replace(ENTRY, fixed_in="5.0.3"), WithinRelease.NOTHING_RECORDED)),
    )
    noted = replace(judged, verdict=told_about)
    verdict, reason, *seen, overall = lines(Judgement(series=(noted,), outcome=Outcome.REGRESSED))
    assert verdict.startswith("regressed cassandra 5.0 throughput of write at saturation")
    reported = find_reported(judged.detectable)
    assert reported
    could_see = f"detectable: ≥ {100 * reported.relative_change:.3g} % after {reported.nights} nights"
    assert reason == (
        "a drop of 10 % between 5.0.6 and 5.0.7 (p < 0.0001, 6 points before, 4 after): significant,"
        " and relevant: 5 % matter; it came back: fixed in 5.0.3 by triage entry batch of ada; no"
        f" release lies between, so look at the host and the configuration first; {could_see}"
    )
    assert overall == "Regressed: of 1 series, 1 regressed"
    assert [line if line.startswith("noise") else line.split(":")[0] for line in seen] == [
        "regressed between 5.0.6 and 5.0.7",
        "retracted",
        "drift",
        "scatter",
        "noise floor 1 %; detectable: ≥ 4.1 % after 3 nights",
    ]
    assert "1,000 → 900 ops/s −10.0 %" in seen[0]
    assert seen[1] == (
        "retracted: +4.0 % at 5.0.4 (night 1 Mar 2026 #4), suspected in night 1 Mar 2026 #5,"
        " no longer seen since night 1 Mar 2026 #6"
    )
    assert seen[2].startswith("drift: +5.0 % slowly from 5.0.1 (night 1 Mar 2026 #1) to 5.0.4")
    assert seen[3].startswith("scatter: standard deviation 1 → 2.5 since 5.0.5")


def test_a_withdrawn_change_that_may_be_older_than_the_replay_is_reported_by_a_night(
    make_observations: Make, judged: JudgedSeries
) -> None:
    observations = [
        replace(one, night=f"2026-03-01-{place}")
        for place, one in enumerate(make_observations([1000.0] * 14), start=1)
    ]
    (series,) = build_series(observations)
    reported = lines(Judgement(series=(replace(judged, series=series),)))
    assert any(
        "suspected by night 1 Mar 2026 #5, no longer seen since night" in one for one in reported
    )


def test_the_worst_series_comes_first(judged: JudgedSeries) -> None:
    fine = replace(judged, verdict=replace(REGRESSED, outcome=Outcome.UNCHANGED))
    reported = lines(Judgement(series=(fine, judged)))
    assert [one.split()[0] for one in reported if " cassandra 5.0 throughput of write" in one] == [
        "regressed",
        "unchanged",
    ]


def test_an_incident_is_reported_with_cause_evidence_and_what_is_to_be_done(
    judged: JudgedSeries, incident: Incident
) -> None:
    reported = lines(Judgement(series=(judged,), incidents=(incident,)))
    start = reported.index(
        "incident 0a1b2c3d known: a drop of 10 % between 5.0.6 and 5.0.7, in 1 series; cause: testbed"
    )
    assert reported[start + 1].startswith("−10.0 % cassandra 5.0")
    assert reported[start + 2 : start + 8] == [
        "resolved between 5.0.6 and 5.0.7: +11.0 %",
        (
            "sentinel cassandra 4.1.0, sensor-write: throughput of write at saturation: did not move"
            " (6 points before, 4 after, which show ≥ 2 %)"
        ),
        "may explain it as well: kernel of node-1: 6.1.0 → 6.8.0",
        "triage: acknowledged by ada: commit log in batches (batch)",
        "came back after its fix (batch)",
        (
            "−10.0 % by nights; side by side, 4 and 3 interleaved trials (2026-03-02) differ by −6.0 %"
            " (−13.0 % to +1.0 %), which cannot tell"
        ),
    ]
    assert reported[start + 8] == (
        "to be sure, measure both interleaved: knickpoint compare --baseline 5.0.6 --candidate 5.0.7"
        " --measure saturation/write/throughput/mean (and --suite, --experiment)"
    )


def test_news_is_called_news(judged: JudgedSeries, incident: Incident) -> None:
    plain = replace(
        incident, is_news=True, triage=None, came_back_after=None, question=None, replies=()
    )
    reported = "\n".join(lines(Judgement(series=(judged,), incidents=(plain,))))
    assert "0a1b2c3d news: a drop" in reported
    assert "triage" not in reported
    assert "side by side" not in reported


def test_what_the_testbed_did_is_reported(judged: JudgedSeries) -> None:
    reported = lines(Judgement(series=(judged,), watched=(judged,)))
    assert any(line.startswith("testbed cassandra 5.0") for line in reported)


def test_a_history_without_series_expects_nothing() -> None:
    assert lines(Judgement(series=())) == ["nothing has been measured yet"]
