"""What a reader is said of a load that is valid all the same: warm-ups at their cap, timeouts."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from perf.load.results.outcome import LoadOutcome, WarmedUp
from perf.model.design import OpenLoop
from perf.model.results import Counter, Interval
from perf.trial.validity import find_remarks
from perf.workloads.stages import Stage

MakeInterval = Callable[..., Interval]


def stage(phase: str = "steady", iteration: int = 1) -> Stage:
    return Stage(
        phase=phase,
        load=OpenLoop(kind="open", offered_load_ops_per_s=50.0, in_flight=8),
        warmup_s=1.0,
        warmup_cap_s=4.0,
        iteration_s=2.0,
        iterations=(iteration,),
    )


def count(**values: int) -> tuple[Counter, ...]:
    return tuple(
        Counter(
            phase="steady", operation="write", iteration=1, name=name.replace("__", ":"), value=value
        )
        for name, value in values.items()
    )


def test_a_warm_up_that_ran_to_its_cap_is_remarked() -> None:
    warm_ups = tuple(
        WarmedUp(phase=phase, duration_s=4.0, is_steady=is_steady)
        for phase, is_steady in (("steady", False), ("full", True), ("steady", True))
    )
    outcome = LoadOutcome(warm_ups=warm_ups)
    stages = [stage(), stage("full"), stage(iteration=2)]
    (remark,) = find_remarks(stages, outcome)
    assert remark.kind == "warm-up-capped"
    assert remark.text == (
        "steady: 1 of 2 warm-ups ran to their cap of 4 s: the rule was not met in time; "
        "the figures may be of a system that was still warming up"
    )
    fixed = [replace(one, warmup_cap_s=one.warmup_s) for one in stages]
    assert find_remarks(fixed, outcome) == ()


@pytest.mark.parametrize(
    ("timeouts", "said"),
    [
        (8, "8 of 900 operations (0.889%) {}: the p99 shown is p98.12 of all {} p99.11 are too good"),
        (585, "585 of 900 operations (65%) {}: the p99 shown is p35 of all {} p35 are too good"),
    ],
)
def test_unanswered_operations_are_remarked_with_the_percentiles_that_they_spoil(
    make_interval: MakeInterval, timeouts: int, said: str
) -> None:
    answered = 900 - timeouts
    outcome = LoadOutcome(
        counters=count(attempted=900, completed=answered, timeouts=timeouts),
        intervals=(make_interval([1000] * answered, phase="steady"),),
    )
    (remark,) = find_remarks([stage()], outcome)
    assert remark.kind == "unanswered"
    parts = ("timed out and are in no percentile", "of them, and those beyond")
    assert remark.text == f"steady: {said.format(*parts)}"


def test_a_rare_timeout_is_not_rounded_away_and_errors_are_no_slow_answers(
    make_interval: MakeInterval,
) -> None:
    times = (make_interval([1000], phase="steady"),)
    counters = count(attempted=1_000_000, completed=999_997, timeouts=3)
    (remark,) = find_remarks([stage()], LoadOutcome(counters=counters, intervals=times))
    assert "(0.0003%)" in remark.text
    assert "beyond p99.99970 are too good" in remark.text
    refused = count(attempted=100, completed=99, error__unavailable=1)
    assert find_remarks([stage()], LoadOutcome(counters=refused, intervals=times)) == ()
    nothing = LoadOutcome(counters=count(attempted=9, timeouts=9))
    assert find_remarks([stage()], nothing) == ()
