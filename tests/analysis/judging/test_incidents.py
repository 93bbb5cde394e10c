import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date
from itertools import combinations
from typing import Any

from budget import tries
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from analysis.detection.detection import ChangePoint, ChangeState, Detector
from analysis.detection.verdict import Outcome
from analysis.judging.change_locations import locate, meet
from analysis.judging.description import list_notes, say_basis
from analysis.judging.explanations import Explanation
from analysis.judging.incidents import Cause, Incident
from analysis.judging.judgement import Judgement
from analysis.judging.verdicts import WithinRelease
from perf.model.facts import METHOD
from perf.model.results import Observation, Purpose, TrialId
from perf.model.rules import TriageEntry, TriageState

Planted = Callable[..., tuple[Observation, ...]]
JudgePlanted = Callable[..., Judgement]
RELEASES = range(1, 13)
DROP = [100.0] * 6 + [90.0] * 6
RISE = [10.0] * 6 + [13.0] * 6
P99 = {"metric": "response_time", "statistic": "p99"}


def entry(**changes: Any) -> TriageEntry:  # noqa: ANN401  the fields of TriageEntry
    fields: dict[str, Any] = {
        "name": "known-drop",
        "state": TriageState.ACKNOWLEDGED,
        "system": "cassandra",
        "line": "5.0",
        "sign": "drop",
        "from_release": "5.0.6",
        "to_release": "5.0.7",
        "owner": "ana",
        "note": "the price of checksums",
    }
    return TriageEntry(**{**fields, **changes})


def places(incident: Incident) -> list[tuple[str, str, int]]:
    return [(one.series.key.operation, one.series.key.metric, one.index) for one in incident.changes]


def test_one_release_step_is_one_incident_over_metrics_workloads_and_testbeds(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    judgement = judge_planted(
        planted(DROP, RELEASES),
        planted(RISE, RELEASES, **P99),
        planted(DROP, RELEASES, operation="read", minute=5),
        planted(DROP, RELEASES, testbed_class="lab", minute=7),
        planted(DROP, RELEASES, host="node-2", minute=9),
    )
    (incident,) = judgement.incidents
    assert len(incident.changes) == 5
    assert incident.is_news


def test_different_steps_are_different_incidents(planted: Planted, judge_planted: JudgePlanted) -> None:
    later = [100.0] * 9 + [85.0] * 3
    judgement = judge_planted(planted(DROP, RELEASES), planted(later, RELEASES, operation="read"))
    assert sorted(len(incident.changes) for incident in judgement.incidents) == [1, 1]


def test_neighbouring_steps_are_one_where_the_detector_doubts_the_place(
    planted: Planted, judge_planted: JudgePlanted, jumps: Callable[..., Detector]
) -> None:
    next_one = [100.0] * 7 + [90.0] * 5
    series = planted(DROP, RELEASES), planted(next_one, RELEASES, operation="read")
    assert len(judge_planted(*series).incidents) == 2
    assert len(judge_planted(*series, detector=jumps(doubt=1)).incidents) == 1


def test_a_change_that_may_be_at_either_of_two_steps_does_not_join_them(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    # The second was not measured between 5.0.6 and 5.0.9, so its drop may be of 5.0.7 or of 5.0.9.
    sparse = planted(DROP, [1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14], operation="sparse")
    early = planted([100.0] * 6 + [80.0] * 6, RELEASES, operation="early")
    late = planted([100.0] * 8 + [85.0] * 4, RELEASES, operation="late")
    first, second = judge_planted(sparse, early, late).incidents
    assert [operation for operation, _, _ in places(first)] == ["early", "sparse"]
    assert [operation for operation, _, _ in places(second)] == ["late"]


def test_one_night_on_one_testbed_is_one_incident_over_systems(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    judgement = judge_planted(planted(DROP), planted(DROP, system="mongodb", line="8.0", minute=30))
    assert len(judgement.incidents) == 1
    elsewhere = planted(DROP, system="mongodb", line="8.0", minute=30, testbed_class="lab")
    assert len(judge_planted(planted(DROP), elsewhere).incidents) == 2


def test_a_regression_leads_then_a_confirmed_change_then_the_largest_in_noise_floors(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    # The floor of all is 0.5 in their own unit: of 100 it is 0.5 %, of 10 it is 5 %.
    rise, fall = [100.0] * 6 + [150.0] * 6, [100.0] * 6 + [94.0] * 6
    judgement = judge_planted(
        planted(rise, RELEASES, operation="better"),
        planted(fall, RELEASES, operation="small"),
        planted(DROP, RELEASES, operation="large"),
        planted([10.0] * 6 + [8.0] * 6, RELEASES, operation="noisy"),
    )
    (incident,) = judgement.incidents
    assert [operation for operation, _, _ in places(incident)] == [
        "large", "small", "noisy", "better",
    ]  # fmt: skip
    provisional = planted([100.0] * 6 + [50.0] * 2, range(1, 9), operation="provisional")
    (incident,) = judge_planted(provisional, planted(fall, RELEASES, operation="sure")).incidents
    assert incident.lead.series.key.operation == "sure"


def test_a_regression_and_its_later_fix_are_one_story(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    mended = [100.0] * 6 + [90.0] * 6 + [100.0] * 6
    (incident,) = judge_planted(planted(mended, range(1, 19))).incidents
    assert [change.index for change in incident.changes] == [6]
    assert [change.index for change in incident.fixed_by] == [12]
    assert not incident.is_news


def test_a_fix_that_is_not_confirmed_or_not_enough_leaves_the_news(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    (fresh,) = judge_planted(planted([100.0] * 6 + [90.0] * 6 + [100.0] * 2)).incidents
    assert fresh.fixed_by[0].state is ChangeState.PROVISIONAL
    assert fresh.is_news
    half = judge_planted(planted([100.0] * 6 + [80.0] * 6 + [90.0] * 6))
    assert [incident.fixed_by for incident in half.incidents] == [(), ()]


def test_one_fix_mends_two_regressions(planted: Planted, judge_planted: JudgePlanted) -> None:
    levels = (100.0, 90.0, 80.0, 100.0)
    judgement = judge_planted(planted([value for value in levels for _ in range(6)]))
    assert [[one.index for one in incident.fixed_by] for incident in judgement.incidents] == [[18]] * 2


def test_the_name_stays_while_points_are_added_and_differs_between_places(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    values = [100.0] * 6 + [90.0] * 6 + [70.0] * 6
    names = [
        {incident.name for incident in judge_planted(planted(values[:count])).incidents}
        for count in (10, 12, 16, 18)
    ]
    assert names[0] == names[1] < names[2] == names[3]
    assert all(len(name) == 8 for name in names[3])


def test_news_comes_first_then_the_largest(planted: Planted, judge_planted: JudgePlanted) -> None:
    judgement = judge_planted(
        planted([100.0] * 9 + [50.0] * 9, purpose=Purpose.IMPORTED, operation="imported"),
        planted([100.0] * 7 + [97.0] * 7, operation="too-small"),
        planted([100.0] * 6 + [90.0] * 6, operation="some"),
        planted([100.0] * 8 + [80.0] * 6, operation="more"),
    )
    assert [one.lead.series.key.operation for one in judgement.incidents] == [
        "more", "some", "imported", "too-small",
    ]  # fmt: skip
    assert [one.is_news for one in judgement.incidents] == [True, True, False, False]


def test_a_triaged_change_is_no_news_and_says_who_decided(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    judgement = judge_planted(planted(DROP, RELEASES), triage=(entry(),), today=date(2026, 11, 20))
    assert judgement.outcome is Outcome.UNCHANGED
    reason = say_basis(judgement.series[0])
    assert reason.startswith(
        "a drop of 10 % between 5.0.6 and 5.0.7: acknowledged by ana: the price of checksums"
        " (triage entry known-drop); since then, no change found"
    )
    (incident,) = judgement.incidents
    assert (incident.is_news, incident.triage) == (False, entry())
    expired = entry(expires=date(2026, 11, 19))
    again = judge_planted(planted(DROP, RELEASES), triage=(expired,), today=date(2026, 11, 20))
    assert again.outcome is Outcome.REGRESSED


def test_an_untriaged_change_of_a_triaged_incident_leads_and_is_news(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    judgement = judge_planted(
        planted(DROP, RELEASES), planted(RISE, RELEASES, **P99), triage=(entry(),)
    )
    (incident,) = judgement.incidents
    assert incident.lead.series.key.metric == "response_time"
    assert (incident.is_news, incident.triage) == (True, None)


def test_what_somebody_put_down_to_the_testbed_is_the_testbeds(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    known = entry(state=TriageState.TESTBED)
    (incident,) = judge_planted(planted(DROP, RELEASES), triage=(known,)).incidents
    assert (incident.cause, incident.is_news) == (Cause.TESTBED, False)


def test_a_change_that_comes_back_after_its_fix_alerts_again(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    fixed = entry(state=TriageState.FIXED, fixed_in="5.0.13", to_release="5.0.13")
    values = [*DROP, *[100.0] * 6, *[90.0] * 6]
    judgement = judge_planted(planted(values, range(1, 25)), triage=(fixed,))
    assert judgement.outcome is Outcome.REGRESSED
    assert "it came back: fixed in 5.0.13 by triage entry known-drop of ana" in (
        list_notes(judgement.series[0].verdict)
    )
    back, known = judgement.incidents
    assert (back.came_back_after, back.is_news) == (fixed, True)
    assert (known.triage, known.is_news) == (fixed, False)


def facts(
    observations: tuple[Observation, ...], name: str, values: str
) -> list[tuple[TrialId, str, str]]:
    return [(one.trial, name, value) for one, value in zip(observations, values, strict=True)]


def test_what_else_changed_there_is_listed_and_what_flickers_is_not(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    observations = planted(DROP)
    environments = [
        *facts(observations, "kernel of node-1", "aaaaaabbbbbb"),
        *facts(observations, "artifact", "kkkkkkllllll"),
        *facts(observations, f"{METHOD}load", "mmmmmmnnnnnn"),
        *facts(observations, "same", "cccccccccccc"),
        *facts(observations, "flickers", "dedededededf"),
        *facts(observations, "new each time", "ghijklmnopqr"),
        *facts(observations, "came later", "ssssssssstuu"),
    ]
    judgement = judge_planted(observations, environments=environments)
    (incident,) = judgement.incidents
    kernel = Explanation(name="kernel of node-1", before="a", after="b")
    method = Explanation(name="method:load", before="m", after="n")
    artifact = Explanation(name="artifact", before="k", after="l")
    assert incident.explanations == (artifact, kernel, method)
    assert (
        "what else changed there: artifact (k → l), kernel of node-1 (a → b), method:load (m → n)"
        in (list_notes(judgement.series[0].verdict))
    )
    # Between two releases, another artifact is what is measured.
    released = planted(DROP, RELEASES)
    environments = [*facts(released, "artifact", "k" * 6 + "l" * 6)]
    (incident,) = judge_planted(released, environments=environments).incidents
    assert incident.explanations == ()


def test_without_a_release_and_an_explanation_it_says_what_is_known(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    observations = planted(DROP)
    recorded = judge_planted(observations, environments=facts(observations, "kernel", "a" * 12))
    assert recorded.series[0].verdict.remark.notes == (WithinRelease.NOTHING_CHANGED,)
    unknown = judge_planted(observations).series[0].verdict.remark.notes
    assert unknown == (WithinRelease.NOTHING_RECORDED,)


def test_what_else_changed_leaves_the_cause_open_unless_it_is_the_reviewed_configuration(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    values = [100.0] * 12 + [90.0] * 8
    still = planted([50.0] * 20, minute=30, purpose=Purpose.SENTINEL)

    def causes(observations: tuple[Observation, ...]) -> list[Cause]:
        sides = "a" * 12 + "b" * 8
        reported = (
            [],
            facts(observations, "kernel of node-1", sides),
            facts(observations, "config default", sides),
        )
        judgements = (judge_planted(observations, watched=still, environments=one) for one in reported)
        return [judgement.incidents[0].cause for judgement in judgements]

    # Within one release the binaries are the same; between two, the database changed as well.
    assert causes(planted(values)) == [Cause.UNKNOWN, Cause.UNKNOWN, Cause.CONFIGURATION]
    released = planted(values, range(1, 21))
    assert causes(released) == [Cause.DATABASE, Cause.UNKNOWN, Cause.UNKNOWN]
    assert causes(builds(released)) == [Cause.DATABASE, Cause.UNKNOWN, Cause.UNKNOWN]


def builds(observations: tuple[Observation, ...]) -> tuple[Observation, ...]:
    """Make the releases builds of a moving target: of one ordinal, ordered by time."""
    return tuple(replace(one, release=replace(one.release, ordinal=0)) for one in observations)


def test_two_builds_of_a_moving_target_are_two_releases(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    observations = builds(planted(DROP, RELEASES))
    environments = facts(observations, "artifact", "k" * 6 + "l" * 6)
    judgement = judge_planted(observations, environments=environments)
    assert judgement.incidents[0].explanations == ()
    assert list_notes(judgement.series[0].verdict) == ()


def test_a_suspicion_between_two_releases_asks_to_be_measured_again(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    values = [100.0] * 9 + [90.0] * 3
    fresh, old = (judge_planted(planted(values[:count], range(1, count + 1))) for count in (10, 12))
    asked = fresh.incidents[0].question
    assert asked is not None
    assert (asked.baseline.version, asked.candidate.version) == ("5.0.9", "5.0.10")
    assert old.incidents[0].question is None
    assert judge_planted(planted(values[:10])).incidents[0].question is None


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, list[float], bool]]:
    """Draw series with steps anywhere: their operation, values, and whether each night is a release."""
    steps = st.lists(st.sampled_from([0.8, 1.0, 1.25, 1.0, 1.0]), min_size=12, max_size=18)
    drawn = []
    for number in range(draw(st.integers(1, 5))):
        level, values = 100.0, []
        for factor in draw(steps):
            level *= factor
            values.append(level)
        drawn.append((f"write-{number}", values, draw(st.booleans())))
    return drawn


@given(history=histories(), doubt=st.integers(0, 3), seed=st.integers(0, 99))
@examples(max_examples=tries(40))
def test_every_change_is_reported_once_and_the_order_of_arrival_does_not_matter(
    planted: Planted,
    judge_planted: JudgePlanted,
    jumps: Callable[..., Detector],
    history: list[tuple[str, list[float], bool]],
    doubt: int,
    seed: int,
) -> None:
    observations = [
        one
        for operation, values, is_released in history
        for one in planted(
            values, range(1, len(values) + 1) if is_released else (), operation=operation
        )
    ]
    judgement = judge_planted(observations, detector=jumps(doubt=doubt))
    shuffled = random.Random(seed).sample(observations, len(observations))  # noqa: S311  test data
    assert judge_planted(shuffled, detector=jumps(doubt=doubt)) == judgement

    def at(changes: Iterable[ChangePoint]) -> list[tuple[str, int]]:
        return sorted((one.series.key.operation, one.index) for one in changes)

    found = at(change for one in judgement.series for change in one.change_points)
    reported = at(change for one in judgement.incidents for change in one.changes)
    fixing = {where for one in judgement.incidents for where in at(one.fixed_by)}
    assert len(reported) == len(set(reported))
    assert sorted({*reported, *fixing}) == found
    assert not fixing & set(reported)
    assert all(one.lead == one.changes[0] for one in judgement.incidents)
    where = {
        (place.change.series.key, place.change.index): place
        for one in judgement.series
        for place in locate(one.change_points)
    }
    for incident in judgement.incidents:
        joined = [where[one.series.key, one.index] for one in incident.changes]
        assert all(meet(one, other) for one, other in combinations(joined, 2))
        assert len({one.series.key for one in incident.changes}) == len(joined)
    assert len({one.name for one in judgement.incidents}) == len(judgement.incidents)
