from perf.design import Validity
from perf.load.engines import LoadOutcome
from perf.load.validity import find_faults
from perf.model import Counter, Reason

LIMITS = Validity(max_error_share=0.01, max_miss_share=0.0)


def count(iteration: int = 1, phase: str = "steady", **values: int) -> list[Counter]:
    return [
        Counter(
            phase=phase, operation="write", iteration=iteration, name=name.replace("__", ":"), value=n
        )
        for name, n in values.items()
    ]


def faults_of(counters: list[Counter], limits: Validity) -> tuple[Reason, ...]:
    return find_faults(LoadOutcome(counters=tuple(counters)), limits)


def test_a_clean_trial_has_no_fault() -> None:
    assert faults_of(count(attempted=100, completed=100), LIMITS) == ()


def test_errors_up_to_the_limit_are_borne_and_above_it_named_with_numbers() -> None:
    assert faults_of(count(attempted=100, completed=99, timeouts=1), LIMITS) == ()
    counters = count(attempted=50, completed=48, timeouts=1, error__unavailable=1)
    (reason,) = faults_of([*counters, *count(2, attempted=50, completed=49, timeouts=1)], LIMITS)
    assert reason.kind == "errors-above-limit"
    assert reason.text == (
        "steady, write: 3.00% of 100 operations (2 × timeouts, 1 × unavailable); the limit is 1.00%"
    )


def test_one_wrong_row_is_a_fault_where_none_is_allowed() -> None:
    (reason,) = faults_of(count(attempted=1000, completed=1000, wrong_data=1), LIMITS)
    assert reason.kind == "misses-above-limit"


def test_no_completed_operation_is_a_fault() -> None:
    (reason,) = faults_of(count(attempted=10, completed=0, timeouts=10), LIMITS)
    assert reason.text == "steady, write: none of 10 operations completed"


def test_warm_up_is_not_judged_and_phases_are_judged_apart() -> None:
    faults = faults_of(
        [
            *count(0, attempted=10, completed=1, timeouts=9),
            *count(1, attempted=1000, completed=1000),
            *count(1, phase="saturation", attempted=10, completed=8, timeouts=2),
        ],
        LIMITS,
    )
    assert [fault.text.partition(",")[0] for fault in faults] == ["saturation"]
