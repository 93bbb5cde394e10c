"""What the terminal says about two releases that took turns."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from analysis.comparing.blocks import Measure, TrialValue
from analysis.comparing.description import describe_releases
from analysis.comparing.results import ComparisonResult, MeasureResult, SideRecord
from analysis.detection.effects import Effect
from analysis.detection.verdict import Outcome
from perf.model.results import Named, Purpose

NAMED = Named(name="one", sha256="0123456789ab")
VALUES = (TrialValue(value=600.0), TrialValue(value=601.0), TrialValue(value=599.0))


def side(version: str) -> SideRecord:
    return SideRecord(
        label=version, version=version, config=NAMED, topology=NAMED, testbed=NAMED, workload=NAMED
    )


def measured(
    operation: str, outcome: Outcome, effect: Effect | None, metric: str = "throughput"
) -> MeasureResult:
    return MeasureResult(
        measure=Measure(
            phase=f"{operation}-saturation",
            operation=operation,
            metric=metric,
            statistic="mean" if metric == "throughput" else "p99",
        ),
        is_trusted=True,
        outcome=outcome,
        reason="3 trials are too few",
        relevant_change=0.05,
        before=600.0 if effect else None,
        after=618.0 if effect else None,
        effect=effect,
        baseline=VALUES,
        candidate=VALUES,
    )


def compared(outcome: Outcome, *measures: MeasureResult) -> ComparisonResult:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    return ComparisonResult(
        id="cmp-1",
        purpose=Purpose.COMPARISON,
        suite="quickstart",
        experiment="cassandra-sensor",
        system="cassandra",
        baseline=side("5.0.0"),
        candidate=side("5.0.9"),
        seed=1,
        question_sha256="",
        outcome=outcome,
        reason="",
        ended="",
        measures=measures,
        trials=(),
        started_at=at,
        finished_at=at,
    )


WIDE = Effect(relative_change=0.03, low=-0.06, high=0.13, confidence=0.96)
WORSE = Effect(relative_change=-0.2, low=-0.25, high=-0.15, confidence=0.96)


def test_where_no_difference_is_shown_the_smallest_that_is_excluded_is_said() -> None:
    undecided = measured("write", Outcome.UNDECIDED, WIDE)
    same = measured("read", Outcome.UNCHANGED, replace(WIDE, low=-0.01, high=0.04))
    sentence, write, read = describe_releases(compared(Outcome.UNDECIDED, undecided, same))
    assert sentence.endswith("no difference of 13 % or more after 3 trials of each")
    assert write.endswith("600 ops/s, +3.0 % (−6.0 % to +13.0 %): no difference of 13 % or more")
    assert read.endswith("600 ops/s, +3.0 % (−1.0 % to +4.0 %): the same")


def test_what_is_not_known_of_one_measure_hides_nothing_of_the_others() -> None:
    wide = replace(WIDE, low=-0.3, high=0.9)
    read, write = (measured(one, Outcome.UNDECIDED, WIDE) for one in ("read", "write"))
    times = measured("write", Outcome.UNDECIDED, wide, metric="response_time")
    first, *_, last = describe_releases(compared(Outcome.UNDECIDED, read, write, times))
    assert first.endswith(
        ": no difference of 13 % or more in throughput after 3 trials of each;"
        " p99 response time: too early to tell"
    )
    assert last.endswith(": too early to tell")


@pytest.mark.parametrize(
    ("outcome", "effect", "said"),
    [
        (Outcome.REGRESSED, WORSE, "worse after 3 trials of each: throughput of write, saturation"),
        (Outcome.UNDECIDED, replace(WIDE, high=12.0), "too early to tell after 3 trials of each"),
        (Outcome.INVALID, None, "cannot be compared after 3 trials of each"),
        (Outcome.UNDECIDED, None, "cannot be compared after 3 trials of each"),
    ],
)
def test_the_sentence_says_what_it_came_to(outcome: Outcome, effect: Effect | None, said: str) -> None:
    first, *_ = describe_releases(compared(outcome, measured("write", outcome, effect)))
    assert first == f"cassandra-sensor, 5.0.9 against 5.0.0: {said}"
