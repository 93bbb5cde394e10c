"""Operations per dollar: they move with throughput, and by themselves only if the price does."""

from collections.abc import Callable, Iterable, Sequence

import pytest

from analysis.detection.detection import ChangePoint
from analysis.detection.verdict import Outcome
from analysis.judging.description import describe, say_basis
from analysis.judging.incidents import Cause
from analysis.judging.judgement import Judgement
from analysis.judging.suspected_changes import choose_open
from analysis.judging.triage import Decision, propose
from perf.model.metrics import PRICE_PER_HOUR
from perf.model.results import Observation, TrialId
from perf.model.rules import TriageEntry, TriageState

Planted = Callable[..., tuple[Observation, ...]]
JudgePlanted = Callable[..., Judgement]
PER_DOLLAR = {"metric": "operations_per_dollar"}
STILL = [100.0] * 12
DROP = [100.0] * 6 + [90.0] * 6
RELEASES = range(1, 13)


def per_dollar(throughput: Sequence[float], prices: Sequence[float]) -> list[float]:
    return [value * 3600 / price for value, price in zip(throughput, prices, strict=True)]


def report(
    observations: Iterable[Observation], name: str, values: Iterable[object]
) -> list[tuple[TrialId, str, str]]:
    return [(one.trial, name, str(value)) for one, value in zip(observations, values, strict=True)]


def judge_priced(
    planted: Planted,
    judge_planted: JudgePlanted,
    throughput: Sequence[float],
    prices: Sequence[float],
    releases: Sequence[int] = (),
) -> Judgement:
    measured = planted(throughput, releases)
    environments = [
        *report(measured, PRICE_PER_HOUR, prices),
        *report(measured, "testbed rack", [f"hash-{price}" for price in prices]),
    ]
    priced = planted(per_dollar(throughput, prices), releases, **PER_DOLLAR)
    return judge_planted(measured, priced, environments=environments)


def metrics(changes: Iterable[ChangePoint]) -> list[str]:
    return [one.series.key.metric for one in changes]


@pytest.mark.parametrize("price", [0.1, 0.3, 1.5, 4.5, 7.0])
def test_at_one_price_they_join_the_incident_of_throughput_and_never_lead_it(
    planted: Planted, judge_planted: JudgePlanted, price: float
) -> None:
    alone = judge_planted(planted(DROP, RELEASES))
    judgement = judge_priced(planted, judge_planted, DROP, [price] * 12, RELEASES)
    (incident,) = judgement.incidents
    assert metrics(incident.changes) == ["throughput", "operations_per_dollar"]
    assert incident.name == alone.incidents[0].name
    assert metrics(one.change for one in judgement.suspects) == ["throughput"]


def test_a_price_that_rose_is_reported_as_the_testbeds_with_both_prices(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    judgement = judge_priced(planted, judge_planted, STILL, [4.5] * 6 + [6.0] * 6)
    (incident,) = judgement.incidents
    assert metrics(incident.changes) == ["operations_per_dollar"]
    assert (incident.cause, incident.is_news, incident.question) == (Cause.TESTBED, False, None)
    assert [(one.name, one.before, one.after) for one in incident.explanations] == [
        ("price_per_hour_usd", "4.5", "6.0"),
        ("testbed rack", "hash-4.5", "hash-6.0"),
    ]
    of_price, of_throughput = judgement.series
    assert of_throughput.verdict.outcome is Outcome.UNCHANGED
    assert of_price.verdict.outcome is Outcome.UNDECIDED
    assert (
        "is the testbed's, not the database's: the price per hour rose from $4.5 to $6.0, which makes"
        " −25.0 % by itself" in say_basis(of_price)
    )


def test_a_price_that_rose_is_one_story_over_releases_and_workloads(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    # Every night measures three releases, so in the order of releases the price goes up and down again.
    observations: list[Observation] = []
    environments: list[tuple[TrialId, str, str]] = []
    for minute, operation in ((0, "write"), (30, "read")):
        for ordinal in (1, 2, 3):
            of_release = planted(
                per_dollar([100.0] * 12, [4.5] * 6 + [6.0] * 6),
                [ordinal] * 12,
                minute=minute + ordinal,
                operation=operation,
                **PER_DOLLAR,
            )
            observations += of_release
            environments += report(of_release, PRICE_PER_HOUR, ["4.5"] * 6 + ["6"] * 6)
    judgement = judge_planted(observations, environments=environments)
    assert [len(judged.change_points) for judged in judgement.series] == [5, 5]
    (incident,) = judgement.incidents
    assert (incident.cause, incident.fixed_by, len(incident.changes)) == (Cause.TESTBED, (), 6)
    assert {round(one.relative_change, 2) for one in incident.changes} == {-0.25}
    assert incident.lead.index == 6
    assert [judged.verdict.outcome for judged in judgement.series] == [Outcome.UNDECIDED] * 2
    reported = " ".join(describe(judgement))
    assert "in 2 series; cause: testbed" in reported
    assert "the price per hour rose from $4.5 to $6, which makes −25.0 % by itself" in reported


def test_a_price_that_moved_at_a_new_release_asks_for_no_trials(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    judgement = judge_priced(planted, judge_planted, STILL, [4.5] * 11 + [6.0], RELEASES)
    assert metrics(judgement.incidents[0].changes) == ["operations_per_dollar"]
    assert judgement.suspects == ()
    assert choose_open(judgement.suspects) == ()


def test_a_price_cannot_hide_what_the_database_did(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    judgement = judge_priced(planted, judge_planted, DROP, [4.5] * 6 + [6.0] * 6)
    (incident,) = judgement.incidents
    assert metrics(incident.changes) == ["throughput", "operations_per_dollar"]
    assert (incident.cause, incident.is_news) == (Cause.UNKNOWN, True)
    assert [one.verdict.outcome for one in judgement.series] == [Outcome.REGRESSED] * 2


def test_a_dearer_host_that_is_faster_is_two_stories(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    rise = [100.0] * 6 + [106.0] * 6
    judgement = judge_priced(planted, judge_planted, rise, [4.0] * 6 + [6.0] * 6)
    of_throughput, of_price = judgement.incidents
    assert metrics(of_price.changes) == ["operations_per_dollar"]
    assert metrics(of_throughput.changes) == ["throughput"]
    assert [one.verdict.outcome for one in judgement.series] == [Outcome.UNDECIDED, Outcome.IMPROVED]


@pytest.mark.parametrize("prices", [("free", "6"), ("4", "-6"), ("4", "nan"), ("0", "6")])
def test_a_price_that_is_no_price_explains_nothing(
    planted: Planted, judge_planted: JudgePlanted, prices: tuple[str, str]
) -> None:
    observations = planted(DROP, **PER_DOLLAR)
    before, after = prices
    said = report(observations, PRICE_PER_HOUR, [before] * 6 + [after] * 6)
    (judged,) = judge_planted(observations, environments=said).series
    assert judged.verdict.outcome is Outcome.REGRESSED


def test_what_was_decided_about_throughput_is_decided_about_them(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    def is_news(metric: str) -> bool:
        entry = TriageEntry(
            name="known",
            state=TriageState.EXPECTED,
            system="cassandra",
            line="5.0",
            metric=metric,
            sign="drop",
            from_release="5.0.6",
            to_release="5.0.7",
            owner="ana",
            note="the price of checksums",
        )
        series = planted(DROP, RELEASES), planted(per_dollar(DROP, [2.0] * 12), RELEASES, **PER_DOLLAR)
        return any(incident.is_news for incident in judge_planted(*series, triage=(entry,)).incidents)

    assert not is_news("throughput")
    assert not is_news("*")
    assert is_news("operations_per_dollar")
    assert is_news("response_time")


def test_an_entry_for_an_incident_of_both_names_throughput(
    planted: Planted, judge_planted: JudgePlanted
) -> None:
    judgement = judge_priced(planted, judge_planted, DROP, [2.0] * 12, RELEASES)
    decision = Decision(state=TriageState.EXPECTED, owner="ana", note="the price of checksums")
    (entry,) = propose("known", judgement.incidents[0].changes, decision)
    assert entry.metric == "throughput"
    of_price = judge_priced(planted, judge_planted, STILL, [4.5] * 6 + [6.0] * 6).incidents[0]
    (entry,) = propose("dearer", of_price.changes, decision)
    assert entry.metric == "operations_per_dollar"
