"""From trials that took turns to measures, blocks and the merged verdict."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from catalogs import shipped

from analysis.comparing.blocks import Measure
from analysis.comparing.sequential import InterimAnalysis
from analysis.comparing.turns import (
    Inquiry,
    build_blocks,
    choose_trusted,
    conclude,
    doubt_losses,
    find_measures,
    is_over,
    judge_measures,
    list_measures,
)
from analysis.detection.verdict import Outcome
from perf.model.design import SteppedLoad
from perf.model.results import Reason, Sample, SideName, Taken, Trial, TrialId, TrialStatus
from perf.model.rules import Comparing

MakeTrial = Callable[..., Trial]
CATALOG = shipped()
SETTINGS = CATALOG.detection
THROUGHPUT = Measure(phase="saturation", operation="write", metric="throughput", statistic="mean")
TAIL = Measure(phase="steady", operation="write", metric="response_time", statistic="p99")


def take(
    make_trial: MakeTrial,
    block: int,
    side: SideName,
    throughput: float,
    tail_ms: float | None = 9.0,
    status: TrialStatus = TrialStatus.COMPLETED,
    pair: str = "1",
) -> Taken:
    values = ((THROUGHPUT, throughput), *(((TAIL, tail_ms),) if tail_ms is not None else ()))
    samples = tuple(
        Sample(
            phase=measure.phase,
            operation=measure.operation,
            metric=measure.metric,
            statistic=measure.statistic,
            value=value * factor,
            iteration=iteration,
        )
        for measure, value in values
        for iteration, factor in ((None, 1.0), (2, 1.01), (1, 0.99))
    )
    trial_id = TrialId(f"t{block}{side}{throughput}")
    trial = make_trial(id=trial_id, samples=samples, status=status)
    return Taken(block=block, pair=pair, side=side, trial=trial)


def fill(make_trial: MakeTrial, blocks: int, factor: float) -> tuple[Taken, ...]:
    """Return whole blocks; the candidate's throughput is `factor` times that of the baseline."""
    return tuple(
        take(make_trial, block, side, base * (factor if side == "candidate" else 1.0), pair=pair)
        for block in range(1, blocks + 1)
        for pair, side, base in (
            ("1", "baseline", 1000.0 + block),
            ("1", "candidate", 1002.0 - block),
            ("2", "candidate", 999.0),
            ("2", "baseline", 1001.0),
        )
    )


def inquire(*trusted: Measure, most_blocks: int = 6) -> Inquiry:
    return Inquiry(settings=SETTINGS, trusted=trusted, most_blocks=most_blocks, seed=1)


def test_trusted_are_the_throughput_of_closed_loops_and_the_tail_of_open_ones() -> None:
    assert choose_trusted(CATALOG.workloads["sensor-write"], SETTINGS) == (THROUGHPUT, TAIL)


def test_each_step_of_a_ladder_can_be_trusted() -> None:
    workload = CATALOG.workloads["sensor-write"]
    ladder = SteppedLoad(kind="stepped", offered_loads_ops_per_s=(100, 200), in_flight=8)
    part = replace(workload.measurements[1], name="ladder", load=ladder)
    trusted = choose_trusted(replace(workload, measurements=(part,)), SETTINGS)
    assert [measure.phase for measure in trusted] == ["ladder-100", "ladder-200"]


def test_measures_that_can_be_asked_for_are_the_judged_ones() -> None:
    listed = list_measures(CATALOG.workloads["sensor-write"], SETTINGS)
    assert "steady/write/response_time/p99" in map(str, listed)
    assert not any(measure.metric in {"highest_load", "score", "cost"} for measure in listed)


def test_blocks_hold_completed_trials_with_their_iterations_in_order(make_trial: MakeTrial) -> None:
    taken = (
        take(make_trial, 2, "baseline", 3.0),
        take(make_trial, 2, "candidate", 4.0),
        take(make_trial, 1, "candidate", 2.0),
        take(make_trial, 1, "candidate", 9.0, status=TrialStatus.INVALID, pair="2"),
        take(make_trial, 1, "baseline", 8.0, pair="2"),
        take(make_trial, 1, "baseline", 1.0),
        take(make_trial, 3, "baseline", 5.0),
    )
    first, second = build_blocks(taken, THROUGHPUT)
    assert [one.value for one in (*first.baseline, *first.candidate)] == [1.0, 2.0]
    assert first.baseline[0].iterations == (0.99, 1.01)
    assert [one.block for one in (*first.candidate, *second.candidate)] == [1, 2]
    assert [one.value for one in (*second.baseline, *second.candidate)] == [3.0, 4.0]


def test_no_measure_is_made_of_a_sample_of_one_host_or_of_a_diagnostic(make_trial: MakeTrial) -> None:
    one = take(make_trial, 1, "baseline", 1.0)
    extra = (
        replace(one.trial.samples[0], host="node-1", phase="saturation-2"),
        replace(one.trial.samples[0], metric="client_cpu"),
    )
    trial = replace(one.trial, samples=(*one.trial.samples, *extra))
    assert find_measures((replace(one, trial=trial),), SETTINGS) == (THROUGHPUT, TAIL)


def test_a_slower_candidate_regresses_and_ends_the_comparison(make_trial: MakeTrial) -> None:
    taken = fill(make_trial, 3, factor=0.7)
    inquiry = inquire(THROUGHPUT, TAIL)
    assert is_over(taken, inquiry)
    first, second = judge_measures(taken, inquiry)
    assert (first.measure, first.outcome, first.is_trusted) == (THROUGHPUT, Outcome.REGRESSED, True)
    assert first.effect is not None
    assert first.effect.low < -0.3 < first.effect.high
    assert second.measure == TAIL
    outcome, reason = conclude((first, second))
    assert outcome is Outcome.REGRESSED
    assert "throughput of write, saturation" in reason


def test_equal_sides_are_unchanged(make_trial: MakeTrial) -> None:
    measures = judge_measures(fill(make_trial, 3, factor=1.0), inquire(THROUGHPUT, TAIL))
    assert conclude(measures)[0] is Outcome.UNCHANGED


def test_what_is_not_trusted_is_reported_and_decides_nothing(make_trial: MakeTrial) -> None:
    taken = fill(make_trial, 3, factor=0.7)
    tail, throughput = judge_measures(taken, inquire(TAIL))
    assert (tail.is_trusted, throughput.is_trusted) == (True, False)
    assert throughput.outcome is Outcome.REGRESSED
    assert conclude((tail, throughput))[0] is Outcome.UNCHANGED


def test_false_regressions_are_shared_out_among_trusted_measures() -> None:
    share = Comparing().false_regression_share
    assert inquire(THROUGHPUT, TAIL).rule(TAIL).false_share == share / 2
    assert inquire(THROUGHPUT).rule(TAIL).false_share == share


def test_a_measure_of_one_side_only_is_invalid(make_trial: MakeTrial) -> None:
    taken = (
        take(make_trial, 1, "baseline", 1.0),
        take(make_trial, 1, "candidate", 1.0, tail_ms=None),
        take(make_trial, 2, "candidate", 1.0, tail_ms=None),
        take(make_trial, 2, "baseline", 1.0),
    )
    measures = judge_measures(taken, inquire(THROUGHPUT, TAIL))
    assert {one.measure: one.outcome for one in measures}[TAIL] is Outcome.INVALID


def test_nothing_measured_is_no_verdict() -> None:
    assert not is_over((), inquire(THROUGHPUT))
    assert conclude(judge_measures((), inquire(THROUGHPUT)))[0] is Outcome.INVALID


def test_a_looker_of_its_own_judges_the_trusted_measures_only(make_trial: MakeTrial) -> None:
    def never(*_: object) -> InterimAnalysis:
        return InterimAnalysis(outcome=Outcome.UNDECIDED, is_over=True, reason="never")

    taken = fill(make_trial, 3, factor=0.7)
    trusted, other = judge_measures(taken, replace(inquire(TAIL), looker=never))
    assert (trusted.reason, other.outcome) == ("never", Outcome.REGRESSED)


def lose(make_trial: MakeTrial, side: SideName, count: int, kind: str) -> tuple[Taken, ...]:
    lost = take(make_trial, 9, side, 1.0, status=TrialStatus.INVALID)
    trial = replace(lost.trial, reasons=(Reason(kind=kind, text="x"),))
    return (replace(lost, trial=trial),) * count


@pytest.mark.parametrize(
    ("side", "count", "kind", "outcome", "stands"),
    [
        ("candidate", 2, "node-died", Outcome.UNCHANGED, False),
        ("candidate", 2, "node-died", Outcome.IMPROVED, False),
        ("candidate", 2, "node-died", Outcome.REGRESSED, True),
        ("candidate", 1, "node-died", Outcome.UNCHANGED, True),
        ("candidate", 5, "host-busy", Outcome.UNCHANGED, True),
        ("baseline", 2, "errors-above-limit", Outcome.REGRESSED, False),
        ("baseline", 2, "errors-above-limit", Outcome.IMPROVED, True),
    ],
)
def test_survivors_prove_nothing_good_of_a_side_that_lost_more(
    make_trial: MakeTrial, side: SideName, count: int, kind: str, outcome: Outcome, *, stands: bool
) -> None:
    taken = (*fill(make_trial, 3, factor=1.0), *lose(make_trial, side, count, kind))
    measures = judge_measures(taken, inquire(THROUGHPUT))
    found, reason = doubt_losses(taken, outcome, "as told", measures)
    assert found is (outcome if stands else Outcome.UNDECIDED)
    assert reason.endswith("as told")
    if not stands:
        assert reason.startswith(f"{count} of {6 + count} trials of the {side} were lost to its server")


def test_a_trusted_measure_that_nobody_has_is_reported_unless_it_is_a_step_of_a_ladder(
    make_trial: MakeTrial,
) -> None:
    missing = replace(TAIL, phase="ladder-200")
    inquiry = inquire(THROUGHPUT, missing)
    taken = fill(make_trial, 3, factor=1.0)
    reported = {one.measure: one.outcome for one in judge_measures(taken, inquiry)}
    assert reported[missing] is Outcome.INVALID
    steps = replace(inquiry, may_lack=frozenset({"ladder-200"}))
    assert missing not in {one.measure for one in judge_measures(taken, steps)}
